"""One process does a piece of work on files, the others wait for it."""

import fcntl
from pathlib import Path
from types import TracebackType

from .errors import TrebuchetError
from .files import make_folder

__all__ = ["FileLock"]


class FileLock:
    """Context manager: holds the lock file ``path`` (made if need be) for this process alone.

    The lock goes with the process, however it ends; the file stays.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        make_folder(self.path.parent)
        try:
            self.file = self.path.open("w")
        except OSError as error:
            raise TrebuchetError(f"cannot write {self.path}: {error.strerror}") from error
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.file.close()
