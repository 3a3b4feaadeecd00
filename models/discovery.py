"""Discovery of boards: what a host asks, and what a board answers (docs/firmware.md)."""

import json
from dataclasses import dataclass
from typing import Any

from .role_folders import role_of_instance

__all__ = ["PORT", "REQUEST", "Found", "parse_answer"]

#: UDP port of boards (``firmware/discover.h``).
PORT = 47600
#: What a host sends. An answer is never longer than its request, hence the zeros.
REQUEST = b"trebuchet discover 1\n".ljust(470, b"\0")
#: No text of an answer is longer.
_MOST = 64


@dataclass(frozen=True)
class Found:
    """A board that answered.

    Attributes
    ----------
    address : str
        From which the answer came.
    name : str
        Its setting ``name``; empty: none.
    mac : str
        Its MAC address, which is its serial number: ``"02:00:00:00:00:02"``.
    roles : tuple of str
        Names of its roles by their numbers, as many as the answer has room for.
    """

    address: str
    name: str
    board: str
    version: str
    mac: str
    roles: tuple[str, ...]


def parse_answer(data: bytes, sender: str) -> Found | None:
    """Return what the board at ``sender`` answered; None if no board sends such an answer."""
    try:
        said = json.loads(data)
        if not isinstance(said, dict) or said.get("trebuchet") != 1:
            return None
        return Found(
            sender,
            _text(said["name"]),
            _text(said["board"]),
            _text(said["version"]),
            _text(said["mac"]),
            tuple(role_of_instance(_text(role)) for role in said["roles"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _text(value: Any) -> str:
    """A short text that a terminal shows as it is; raises :class:`ValueError` for another one."""
    if not isinstance(value, str) or len(value) > _MOST or not (value.isprintable() or not value):
        raise ValueError("no short printable text")
    return value
