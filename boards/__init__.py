"""Boards: one file each, and the schema they fill in (:mod:`trebuchet.boards.schema`)."""

import copy
import importlib
import importlib.util
import os
from pathlib import Path

from ..models.errors import TrebuchetError, did_you_mean
from .faults import in_one_line
from .neighbours import importable
from .schema import Board

__all__ = ["BUILT", "NAMES", "VENDOR", "load_board"]

#: Those that open tools build from Python to bitstream (flow ``trellis``).
BUILT = (
    "butterstick",
    "colorlight_5a_75b",
    "colorlight_i5",
    "colorlight_i9",
    "colorlight_i9_bridge",
    "ecpix5",
    "ecpix5_45f",
    "ecpix5_cluster",
    "logicbone",
    "orangecrab",
    "trellisboard",
    "ulx3s",
    "versa_ecp5",
)

#: Those that become a Vivado project, which open tools check (flow ``vivado``).
VENDOR = ("aesku40", "alveo_u200", "kcu105", "vcu118")

#: Every board, by the name of its file: the simulated one, then the others.
NAMES = ("sim", *sorted((*BUILT, *VENDOR)))


def load_board(name):
    """The :class:`~trebuchet.boards.schema.Board` called ``name``, or of a board file's path.

    A path has a ``/`` in it or ends in ``.py``. The file's own folder need not be a package; it
    imports from here as ``from trebuchet.boards import ecp5``, and what lies beside it by its name.
    """
    text = str(name)
    if "/" in text or text.endswith(".py"):
        return _load_file(Path(text))
    if text not in NAMES:
        near = did_you_mean(text, NAMES)
        raise TrebuchetError(
            f"there is no board {text!r}{near}; the boards are: {', '.join(NAMES)}; "
            "or name a file of yours, like ./my_board.py"
        )
    return importlib.import_module(f".{text}", __name__).BOARD


def _load_file(path):
    # Path.is_dir raises where a folder above may not be entered.
    if os.path.isdir(path):
        raise TrebuchetError(f"{path} is a folder, not a board file; name a file in it")
    if not os.path.isfile(path):
        raise TrebuchetError(f"there is no board file {path}")
    if path.suffix != ".py":
        raise TrebuchetError(f"the name of a board file must end in .py, not {path}")
    real = path.resolve()
    in_tree = real.parent == Path(__file__).resolve().parent and real.stem.isidentifier()
    try:
        module = importlib.import_module(f".{real.stem}", __name__) if in_tree else _module_of(path)
        board = getattr(module, "BOARD", None)
    except (TrebuchetError, KeyboardInterrupt):
        raise
    except BaseException as error:  # whatever a user's file does, sys.exit included
        raise TrebuchetError(
            f"{in_one_line(error, path)}; docs/porting.md shows a board file that works"
        ) from error
    if not isinstance(board, Board):
        raise TrebuchetError(f"{path} must define BOARD, a trebuchet.boards.schema.Board")
    if board.name in NAMES and not in_tree:
        raise TrebuchetError(
            f"{path}: there is a board called {board.name!r} already; give yours another name"
        )
    if not in_tree:
        # A copy: what the file defines may be a board of the tree, or of another file.
        board = copy.copy(board)
        object.__setattr__(board, "source", real)
    return board


def _module_of(path):
    """The module that a file outside the tree is."""
    spec = importlib.util.spec_from_file_location(f"trebuchet_board_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    with importable(path):
        spec.loader.exec_module(module)
    return module
