"""Folders that the user named, or that a variable names."""

from pathlib import Path

from .errors import TrebuchetError

__all__ = ["make_folder"]


def make_folder(folder: Path) -> Path:
    """Make the folder and those above it, if need be; one that cannot be made is the user's."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrebuchetError(f"cannot make the folder {folder}: {error.strerror}") from error
    return folder
