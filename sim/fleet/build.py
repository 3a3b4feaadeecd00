"""Compiles boards with the switch into one executable, and the switch alone for its tests."""

import dataclasses
from pathlib import Path

from ...models.errors import TrebuchetError
from ..build import Source, build

__all__ = ["HARNESS", "build_fleet", "fleet_source"]

HARNESS = Path(__file__).resolve().parent / "harness"
#: With the harness of one board, whose `main` these replace.
_FILES = ("fleet.cpp", "plan.cpp", "switch.cpp")
_HEADERS = ("plan.h", "switch.h")


def fleet_source(board: Source) -> Source:
    """``board``, so that many of it run beside each other on a switch."""
    if board.kind not in ("board", "fabric"):
        raise TrebuchetError(f"several boards need a top of kind board or fabric, not {board.kind}")
    headers = {name: (HARNESS / name).read_text() for name in _HEADERS}
    return dataclasses.replace(
        board,
        texts={**board.texts, **headers},
        files=(*board.files, *(HARNESS / name for name in _FILES)),
    )


def build_fleet(board: Source) -> Path:
    """The executable for boards like ``board``."""
    return build(fleet_source(board))
