"""Paths in which the makefiles of Verilator and LiteX cannot build."""

import re
from pathlib import Path

from .errors import TrebuchetError

__all__ = ["UNBUILDABLE", "check_buildable"]

#: Characters that end a name in a makefile, or mean something to make or to a shell.
#: tools/bootstrap.py has the same, because it runs before anything is installed.
UNBUILDABLE = re.compile(r"[\s#$%:;&|<>()*?'\"`\\=]")


def check_buildable(path: Path | str, what: str = "checkout") -> None:
    """Raise :class:`TrebuchetError` if make cannot work with files below ``path``."""
    found = UNBUILDABLE.search(str(path))
    if found:
        character = "a space" if found[0].isspace() else found[0]
        raise TrebuchetError(
            f"make cannot build in {str(path)!r}, which has {character} in it; "
            f"move the {what} to a folder without"
        )
