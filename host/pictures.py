"""Pictures in files that the user named: what is wrong with a name is said before the long run."""

from pathlib import Path
from typing import Any

from ..models.errors import TrebuchetError
from ..models.files import make_folder

__all__ = ["check_picture", "save_picture"]

SUFFIXES = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Can a picture be written there? Makes the folder if need be."""
    if path.suffix not in SUFFIXES:
        raise TrebuchetError(f"the picture must be a .png, .svg or .pdf file, not {path.name!r}")
    if path.is_dir():
        raise TrebuchetError(f"cannot write the picture {path}: it is a folder; name a file in it")
    make_folder(path.parent)


def save_picture(figure: Any, path: Path, **options: Any) -> None:
    """Write a figure of matplotlib; the suffix says of which kind."""
    try:
        figure.savefig(path, **options)
    except OSError as error:
        raise TrebuchetError(
            f"cannot write the picture {path}: {error.strerror or error}"
        ) from error
