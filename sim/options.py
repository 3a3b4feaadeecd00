"""Values of the simulator's options, checked before anything is generated or compiled."""

import os
import re
from pathlib import Path

from ..models.errors import TrebuchetError

__all__ = ["chance_of", "check_chances", "check_files", "check_time", "check_uart"]

_TIME = re.compile(r"wall|soc|cycles:[1-9][0-9]*")
_UART = re.compile(r"none|stdout|stdio|pty|file:.+")


def chance_of(value: object) -> float | None:
    """A chance that is a number, or text like ``"0.03"`` or ``"3%"``; None if it is none."""
    number: object = value
    if isinstance(value, str):
        percent = value.endswith("%")
        try:
            number = float(value.removesuffix("%")) / (100 if percent else 1)
        except ValueError:
            return None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        return None
    return float(number)


def check_chances(chances: dict[str, str]) -> None:
    """Refuse a chance that is none; option names without dashes, ``""`` where nothing was said."""
    for name, text in chances.items():
        if text and chance_of(text) is None:
            raise TrebuchetError(
                f"--{name} must be a chance from 0 to 1 or in per cent, like 3%, not {text!r}"
            )


def check_time(text: str) -> None:
    """Refuse what ``--time`` of the harness does not take."""
    if not _TIME.fullmatch(text):
        raise TrebuchetError(f"--time must be wall, soc or cycles:N, not {text!r}")


def check_uart(text: str | None) -> None:
    """Refuse what ``--uart`` of the harness does not take; None: it was left out."""
    if text is not None and not _UART.fullmatch(text):
        raise TrebuchetError(f"--uart must be none, stdout, stdio, pty or file:PATH, not {text!r}")


def check_files(files: dict[str, Path | None]) -> None:
    """Refuse a file to be written whose folder is not there, or may not be written to."""
    for name, path in files.items():
        if path is None:
            continue
        folder = path.resolve().parent
        if not folder.is_dir():
            raise TrebuchetError(f"--{name} {path}: there is no folder {folder}")
        if path.is_dir():
            raise TrebuchetError(f"--{name} {path}: this is a folder; name a file in it")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise TrebuchetError(f"--{name} {path}: it may not be written")
