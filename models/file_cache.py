"""Values computed from single files, kept on this machine by path, size and time of change."""

import atexit
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from .files import write_whole

__all__ = ["FileCache"]

T = TypeVar("T")
FOLDER = Path(__file__).resolve().parent.parent / "build" / "files"


class FileCache(Generic[T]):
    """``compute(path)``, which must depend on the file's contents alone and give JSON.

    Parameters
    ----------
    name : str
        Of the file below ``build/files`` in which values are kept from one process to the next. It
        is read at the first use and written when the process ends; what cannot be read is computed
        again. Two processes that end at once lose one's values, not their correctness.
    """

    def __init__(self, name: str, compute: Callable[[Path], T]) -> None:
        self._path = FOLDER / f"{name}.json"
        self._compute = compute
        self._values: dict[str, list[Any]] | None = None
        self._changed = False

    def value(self, path: Path) -> T:
        """Return the value for a file as it is now."""
        if self._values is None:
            self._values = self._read()
            atexit.register(self._write)
        state = path.stat()
        stamp = [state.st_mtime_ns, state.st_size, state.st_ino]
        name = str(path)
        found = self._values.get(name)
        if found is None or found[:-1] != stamp:
            found = self._values[name] = [*stamp, self._compute(path)]
            self._changed = True
        return found[-1]

    def _read(self) -> dict[str, list[Any]]:
        try:
            values = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return {}
        good = isinstance(values, dict) and all(
            isinstance(entry, list) and len(entry) == 4 for entry in values.values()
        )
        return values if good else {}

    def _write(self) -> None:
        if self._changed and self._values is not None:
            with contextlib.suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(self._path, json.dumps(self._values).encode())
