"""Folders that are written into: one process does a piece of work there, the others wait for it."""

import fcntl
from pathlib import Path
from types import TracebackType

from .files import writing_to

__all__ = ["FileLock"]


class FileLock:
    """Context manager: holds the lock file ``path`` (made if need be) for this process alone.

    The lock goes with the process, however it ends; the file stays.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        self._open()
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def try_enter(self) -> bool:
        """Take the lock if it is free; whether it was. Who has it must call :meth:`release`."""
        self._open()
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            return False
        return True

    def release(self) -> None:
        self.file.close()

    def _open(self) -> None:
        with writing_to(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with writing_to(self.path):
            self.file = self.path.open("w")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
