"""Where the project is and where it builds; paths in which makefiles cannot."""

import os
import re
from pathlib import Path

from .errors import TrebuchetError

__all__ = ["BUILD", "IN_CHECKOUT", "TREE", "UNBUILDABLE", "build_folder", "cache_home"]
__all__ += ["check_buildable"]

#: The checkout; of an installed package, its folder.
TREE = Path(__file__).resolve().parent.parent
#: Whether this is a checkout, not a package that pip has installed.
IN_CHECKOUT = (TREE / "pyproject.toml").is_file()


def cache_home() -> Path:
    """Return the folder of the user's caches (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


def _build() -> Path:
    if IN_CHECKOUT:
        return TREE / "build"
    if folder := os.environ.get("TREBUCHET_BUILD"):
        return Path(folder).resolve()
    return cache_home() / "trebuchet" / "build"


#: Where everything is built: ``build`` of a checkout. Of an installed package the folder that
#: ``TREBUCHET_BUILD`` names, else one in the user's cache: what pip installed is only read.
BUILD = _build()


def build_folder(kind: str) -> Path:
    """Return the folder for what is built of a kind, such as ``verilator``; it may not exist yet.

    It is below :data:`BUILD`, in a checkout too below ``TREBUCHET_BUILD`` if that is set.
    """
    return Path(os.environ.get("TREBUCHET_BUILD") or BUILD) / kind


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
