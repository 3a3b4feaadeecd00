"""Results in the tree: rows of JSON in a folder, one file for each group of rows, one row a line.

A measurement or a proof takes long, so its result is checked in, together with the hash of what
its tools read (``inputs``). A row whose hash is no longer that of today's inputs is stale.

Format of ``FOLDER/GROUP.json``, the same that :meth:`Ledger.record` writes::

    {
    "tcp.http_1k_cycles": {"value": 240.1, "inputs": "5e…", "sum": "0f3a"},
    …
    }

Names are sorted, so branches that measure different figures change different lines. ``sum`` is a
hash of the row's name and other values: a row that was edited by hand is refused.
"""

import contextlib
import hashlib
import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .errors import TrebuchetError
from .files import write_whole
from .lock import FileLock

__all__ = ["GATEWARE", "ROOT", "Ledger", "gateware_commits_since", "origin", "unique_json"]
__all__ += ["value_of"]

#: The top folder of the tree.
ROOT = Path(__file__).resolve().parent.parent
#: Folders whose commits age a dated figure.
GATEWARE = ("cores", "soc", "boards")


class Ledger:
    """Rows by name; every row holds ``inputs``, the hash of what it was made from.

    Parameters
    ----------
    folder : Path
        Where the files are; none need be there.
    remedy : str
        Command that makes rows anew; it ends the messages about invalid ones.

    A file that is no JSON, that names a row twice or has a row with a wrong ``sum`` raises
    :class:`TrebuchetError`.
    """

    def __init__(self, folder: Path, remedy: str = "trebuchet bench") -> None:
        self.folder, self.remedy = folder, remedy
        self.rows: dict[str, dict[str, Any]] = {}
        #: Group of each row: the name of its file.
        self.groups: dict[str, str] = {}
        self._read()

    def _read(self) -> None:
        self.rows, self.groups = {}, {}
        for path in sorted(self.folder.glob("*.json")):
            for name, row in self._rows_of(path).items():
                if name in self.rows:
                    self._refuse(path, f"row {name!r} is in {self.groups[name]}.json as well")
                self.rows[name], self.groups[name] = row, path.stem

    def _rows_of(self, path: Path) -> dict[str, dict[str, Any]]:
        try:
            rows = unique_json(path.read_text())
        except KeyError as error:
            self._refuse(path, str(error.args[0]))
        except ValueError as error:
            self._refuse(path, f"it is not JSON: {error}")
        if not isinstance(rows, dict):
            self._refuse(path, "it must hold one object, with a row for each name")
        for name, row in rows.items():
            if not isinstance(row, dict) or "inputs" not in row:
                self._refuse(path, f"row {name!r} must be an object with `inputs`")
            if row.pop("sum", None) != _sum(name, row):
                self._refuse(path, f"row {name!r} was changed by hand: its `sum` does not match")
        return rows

    def _refuse(self, path: Path, fault: str) -> None:
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        raise TrebuchetError(
            f"{shown}: {fault}; restore it with git, or remove what is wrong and run: {self.remedy}"
        )

    def current(self, name: str, inputs: str) -> dict[str, Any] | None:
        """The row ``name`` if there is one and it was made from ``inputs``, else ``None``."""
        row = self.rows.get(name)
        return row if row is not None and row.get("inputs") == inputs else None

    def record(self, group: str, name: str, inputs: str, **values: Any) -> None:
        """Put a row into ``group``, or replace it there, and write the file at once.

        Rows that another process has recorded since this one read the folder are kept.
        """
        self.record_all(group, {name: {**values, "inputs": inputs}})

    def record_all(self, group: str, rows: dict[str, dict[str, Any]]) -> None:
        """:meth:`record` for several rows of a group, each with its ``inputs``."""
        with self._changing():
            self.rows |= {name: dict(row) for name, row in rows.items()}
            self.groups |= dict.fromkeys(rows, group)

    def keep(self, names: Iterable[str]) -> None:
        """Drop all other rows."""
        names = set(names)
        with self._changing():
            self.rows = {name: row for name, row in self.rows.items() if name in names}

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with FileLock(ROOT / "build" / "locks" / f"ledger-{self.folder.parent.name}"):
            self._read()
            before = {name: (self.groups[name], dict(row)) for name, row in self.rows.items()}
            yield
            after = {name: (self.groups[name], row) for name, row in self.rows.items()}
            names = {name for name in before.keys() | after.keys()}
            changed = {name for name in names if before.get(name) != after.get(name)}
            pairs = [both for name in changed for both in (before.get(name), after.get(name))]
            for group in sorted({pair[0] for pair in pairs if pair is not None}):
                self._write(group)

    def _write(self, group: str) -> None:
        path = self.folder / f"{group}.json"
        rows = {name: row for name, row in sorted(self.rows.items()) if self.groups[name] == group}
        if not rows:
            path.unlink(missing_ok=True)
            return
        lines = [
            f"{json.dumps(name)}: {json.dumps({**row, 'sum': _sum(name, row)}, ensure_ascii=False)}"
            for name, row in rows.items()
        ]
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def unique_json(text: str) -> Any:
    """Parse JSON; raise :class:`KeyError` for a name that an object has twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for name, count in Counter(name for name, _ in pairs).items():
            if count > 1:
                raise KeyError(f"{name!r} is there {count} times")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=unique)


def _sum(name: str, row: dict[str, Any]) -> str:
    text = json.dumps([name, row], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def origin(root: Path = ROOT) -> dict[str, str]:
    """Date (ISO, UTC) and commit of a measurement that is made now.

    The commit ends in ``+`` if the gateware has uncommitted changes, and is empty without git.
    """
    commit = _git(root, "rev-parse", "--short=10", "HEAD") or ""
    changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", *GATEWARE)
    mark = "+" if commit and changed else ""
    return {"date": datetime.now(UTC).date().isoformat(), "commit": commit + mark}


def value_of(row: dict[str, Any]) -> float:
    """Return the value of a figure's row; of several seeds the median."""
    return row["median"] if "median" in row else row["value"]


def gateware_commits_since(commit: str, root: Path = ROOT) -> int | None:
    """Commits after ``commit`` that touch the folders of :data:`GATEWARE`.

    ``None`` if git cannot say: no repository here, or the commit is not in its history.
    """
    found = _git(root, "rev-list", "--count", f"{commit.removesuffix('+')}..HEAD", "--", *GATEWARE)
    return int(found) if found else None


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
