"""The functions of a board file are called here; what is wrong with them is told in one line."""

import inspect
import traceback
from pathlib import Path

from litex.build.generic_platform import ConstraintError, GenericPlatform

from ..boards.faults import in_one_line
from ..models.errors import TrebuchetError

__all__ = ["attach", "make_platform", "of_pll"]


def make_platform(board):
    """The board's platform."""
    platform = _call(board, board.platform)
    if not isinstance(platform, GenericPlatform):
        raise TrebuchetError(
            f"board {board.name!r}: platform() must return a platform of LiteX, not {platform!r}"
        )
    return platform


def attach(board, soc):
    """Give ``soc`` the board's parts, and see that they are there."""
    _call(board, board.attach, soc)
    needed = {"crg": "clocks", "ethphy": "Ethernet", "sdram": "the external memory"}
    if board.bridge:
        needed["host_ethphy"] = "Ethernet of the host's port"
    if board.flash is not None:
        needed["flash_pads"] = "the flash"
    if board.multiboot == "pin":
        needed["programn"] = "the pin that pulls PROGRAMN"
    for name, what in needed.items():
        if not hasattr(soc, name):
            raise TrebuchetError(f"board {board.name!r}: attach gives no {name}: {what}")


def of_pll(error):
    """An error is LiteX's about a PLL, from ``litex/soc/cores/clock``."""
    if not isinstance(error, (AssertionError, ValueError)):
        return False
    return "clock" in Path(traceback.extract_tb(error.__traceback__)[-1].filename).parts


def _call(board, function, *arguments):
    try:
        return function(*arguments)
    except (ConstraintError, TrebuchetError):
        raise
    except Exception as error:  # whatever a user's file does
        if of_pll(error):
            raise
        said = in_one_line(error, Path(inspect.getfile(function)))
        raise TrebuchetError(f"board {board.name!r}: {said}") from error
