"""What LiteX and its makes print goes to a file; what they fail of is told in one line."""

import contextlib
import os
import re
import subprocess
import sys
import traceback
import warnings

from amaranth.hdl import UnusedElaboratable
from litex.build.generic_platform import ConstraintError
from litex.soc.integration.soc import SoCError

from ..boards.faults import in_words
from ..models.errors import TrebuchetError
from ..models.files import make_folder
from .board_calls import of_pll

__all__ = ["litex_errors", "quiet_when_cut_short"]


@contextlib.contextmanager
def quiet_when_cut_short():
    """Amaranth complains of each component that was not used, which after Ctrl-C are many."""
    try:
        yield
    except BaseException:
        warnings.simplefilter("ignore", UnusedElaboratable)
        raise


@contextlib.contextmanager
def _output_to(path):
    """Everything that is printed goes to the file ``path``."""
    make_folder(path.parent)
    sys.stdout.flush()
    sys.stderr.flush()
    errors = sys.stderr  # LiteX's SoCError takes it away
    here = os.getcwd()  # and a build of LiteX's that fails stays in its own folder
    saved = os.dup(1), os.dup(2)
    with path.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr = errors
            os.chdir(here)
            sys.stdout.flush()
            sys.stderr.flush()
            for number, copy in enumerate(saved, start=1):
                os.dup2(copy, number)
                os.close(copy)


def _last_error(log):
    """The last error of LiteX's in a log, without its colours, and the name of the part."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", log.read_text(errors="replace"))
    found = re.findall(r"^ERROR:(?:\w+:)?(.*)", text, re.MULTILINE)
    return " ".join(found[-1].split()).rstrip(":") if found else "it gives no reason"


@contextlib.contextmanager
def litex_errors(board, log):
    """What is printed goes to the file ``log``; a line about ``board`` tells what goes wrong."""
    try:
        with _output_to(log):
            yield
    except TrebuchetError:
        raise
    except subprocess.CalledProcessError as error:
        raise TrebuchetError(f"building the firmware failed; see {log}") from error
    except SoCError as error:
        raise TrebuchetError(
            f"board {board.name!r}: LiteX: {_last_error(log)}; see {log}"
        ) from error
    except ConstraintError as error:
        raise TrebuchetError(
            f"board {board.name!r}: platform and attach differ: {error}"
        ) from error
    except Exception as error:
        if of_pll(error):
            raise TrebuchetError(
                f"board {board.name!r}: no setting of the PLL makes sys_clk_hz="
                f"{board.sys_clk_hz}; try a rounder frequency"
            ) from error
        with log.open("a") as file:
            traceback.print_exception(error, file=file)
        raise TrebuchetError(
            f"board {board.name!r}: LiteX cannot build it: {in_words(error)}; see {log}"
        ) from error
