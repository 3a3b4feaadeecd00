"""Folders that builds empty: only those that an earlier build made, which a mark in them says."""

import os
import shutil

from ..models.errors import TrebuchetError
from ..models.files import writing_to

__all__ = ["MARK", "check_own", "make_own", "remove_own"]

#: The file in a folder that says that a build made it.
MARK = ".trebuchet"


def check_own(folder):
    """Raise if what is there is not a build's: nothing, an empty folder, or one with the mark."""
    if not os.path.lexists(folder) or (folder / MARK).is_file() and not folder.is_symlink():
        return
    with writing_to(folder):
        if folder.is_symlink() or not folder.is_dir() or any(folder.iterdir()):
            raise TrebuchetError(
                f"{folder} is not from an earlier build; move it away, or choose another folder"
            )


def remove_own(folder):
    """Remove a folder of a build, if it is there."""
    check_own(folder)
    with writing_to(folder):
        if folder.exists():
            shutil.rmtree(folder)


def make_own(folder):
    """Make a folder of a build, empty but for the mark."""
    remove_own(folder)
    with writing_to(folder):
        folder.mkdir(parents=True)
        (folder / MARK).touch()
