"""Boards: one file each, and the schema they fill in (:mod:`trebuchet.boards.schema`)."""

import importlib

from ..models.errors import TrebuchetError

__all__ = ["NAMES", "load_board"]

#: Every board, by the name of its file.
NAMES = ("sim", "versa_ecp5")


def load_board(name):
    """The :class:`~trebuchet.boards.schema.Board` called ``name``."""
    if name not in NAMES:
        raise TrebuchetError(f"there is no board {name!r}; the boards are: {', '.join(NAMES)}")
    return importlib.import_module(f".{name}", __name__).BOARD
