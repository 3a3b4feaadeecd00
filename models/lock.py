"""Folders that are written into: one process does a piece of work there, the others wait for it."""

import contextlib
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from .errors import TrebuchetError

__all__ = ["FileLock", "make_folder", "writing_to"]


@contextlib.contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """What the system says against writing into ``folder`` becomes one line that names it."""
    try:
        yield
    except OSError as error:
        # mkdir says of a file in the way that it exists, which is no reason to a reader.
        exists = isinstance(error, FileExistsError)
        reason = os.strerror(errno.ENOTDIR) if exists else error.strerror
        raise TrebuchetError(
            f"cannot write {folder}: {reason}; choose another with --output, or make it writable"
        ) from error


def make_folder(folder: Path) -> None:
    """Make ``folder`` if it is not there; raise :class:`TrebuchetError` if it takes no files."""
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


class FileLock:
    """Context manager: holds the lock file ``path`` (made if need be) for this process alone.

    The lock goes with the process, however it ends; the file stays.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        with writing_to(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file = self.path.open("w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.file.close()
