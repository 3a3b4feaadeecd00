"""One process does a piece of work on files, the others wait for it."""

import fcntl
from pathlib import Path
from types import TracebackType

__all__ = ["FileLock"]


class FileLock:
    """Context manager: holds the lock file ``path`` (made if need be) for this process alone.

    The lock goes with the process, however it ends; the file stays.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
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
