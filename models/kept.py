"""Folders of what takes long to make: made once, by one process, and whole or not there."""

import shutil
from collections.abc import Callable
from pathlib import Path

from .lock import FileLock

__all__ = ["kept"]


def kept(folder: Path, make: Callable[[Path], None]) -> Path:
    """``folder``; if it is not there, ``make`` has filled another that is then renamed to it.

    Its name must tell all that its contents depend on. Processes that want the same wait for the
    one that makes it. What a ``make`` that was broken off has left is removed by the next.
    """
    if folder.is_dir():
        return folder
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if folder.is_dir():
            return folder
        temporary = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        make(temporary)
        temporary.rename(folder)
    return folder
