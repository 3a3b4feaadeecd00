"""Values computed from single files, kept on this machine by path, size and time of change."""

import atexit
import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from .files import write_whole
from .paths import BUILD

__all__ = ["FileCache"]

T = TypeVar("T")
FOLDER = BUILD / "files"
#: A file that was changed this short a time ago, in ns, could change again at the same time stamp.
RACY = 2_000_000_000


class FileCache(Generic[T]):
    """``compute(path)``, which must depend on the file's contents alone and give JSON.

    Parameters
    ----------
    name : str
        Of the file below ``build/files`` in which values are kept from one process to the next. It
        is read at the first use and written when the process ends; what cannot be read is computed
        again. Of two processes that end at once one's values may be lost; they are computed again.
    """

    _all: ClassVar[list["FileCache"]] = []

    def __init__(self, name: str, compute: Callable[[Path], T]) -> None:
        self._all.append(self)
        self._name = name
        self._compute = compute
        self._values: dict[str, list[Any]] | None = None
        self._new: dict[str, list[Any]] = {}

    def value(self, path: Path) -> T:
        """Return the value for a file as it is now."""
        if self._values is None:
            self._values = self._read()
            atexit.register(self.write)
        state = path.stat()
        stamp = [state.st_size, state.st_mtime_ns, state.st_ctime_ns]
        found = self._values.get(str(path))
        if found is not None and found[:-1] == stamp:
            return found[-1]
        value = self._compute(path)
        if time.time_ns() - max(stamp[1:]) > RACY:
            self._new[str(path)] = self._values[str(path)] = [*stamp, value]
        return value

    def _file(self) -> Path:
        return FOLDER / f"{self._name}.json"

    def _read(self) -> dict[str, list[Any]]:
        try:
            values = json.loads(self._file().read_text())
        except (OSError, ValueError):
            return {}
        good = isinstance(values, dict) and all(
            isinstance(entry, list) and len(entry) == 4 for entry in values.values()
        )
        return values if good else {}

    @classmethod
    def write_all(cls) -> None:
        """Keep what is new in all caches now, for processes that are about to start."""
        for cache in cls._all:
            cache.write()

    def write(self) -> None:
        """Keep what is new for other processes; a tree that takes no files has no cache."""
        if not self._new:
            return
        values = {name: entry for name, entry in self._read().items() if Path(name).exists()}
        with contextlib.suppress(OSError):
            self._file().parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file(), json.dumps(values | self._new).encode())
        self._new = {}
