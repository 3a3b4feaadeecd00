"""Hash of the significant content of source files: a comment does not change it, code does.

The key of results that are kept on this machine only: hashes of Python files depend on the version
of Python. Rows in the tree are keyed by :func:`~.ledger.digest`.
"""

import ast
import contextlib
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from .files import write_whole
from .ledger import ROOT

__all__ = ["folders_hash", "significant_bytes"]

#: Folders that hold what tools have made.
MADE = {"build", "__pycache__"}
#: Languages whose comments are ``//`` and ``/* */``.
C_LIKE = {".c", ".cc", ".cpp", ".h", ".hpp", ".v", ".sv", ".svh", ".vh"}
#: A raw string, a string, a character or a comment, whichever begins first.
_C_TOKEN = re.compile(
    r'R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\[^\'\n]+|[^\'\\\n])\''
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)",
    re.DOTALL,
)
#: Hashes of files as of this Python; a new value drops the cache.
_VERSION = f"1 {sys.version_info.major}.{sys.version_info.minor}"
#: A file that was changed this short a time ago, in ns, could change again at the same time stamp.
_RACY = 2_000_000_000


def significant_bytes(path: Path) -> bytes:
    """The content of a file without comments, docstrings and layout, if its language is known.

    Of Python, the syntax tree; of C, C++ and Verilog, the lines without comments; else, and if a
    Python file has no valid syntax, every byte.
    """
    content = path.read_bytes()
    if path.suffix == ".py":
        with contextlib.suppress(SyntaxError, ValueError):
            return ast.dump(_without_docstrings(ast.parse(content)), annotate_fields=False).encode()
    if path.suffix in C_LIKE:
        text = content.decode("utf-8", "surrogateescape")
        text = _C_TOKEN.sub(lambda found: " " if found["comment"] else found[0], text)
        lines = (line.rstrip() for line in text.splitlines())
        return "\n".join(filter(None, lines)).encode("utf-8", "surrogateescape")
    return content


def _without_docstrings(tree: ast.Module) -> ast.Module:
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, owners) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return tree


def folders_hash(folders: Iterable[str], root: Path = ROOT, without: Iterable[str] = ()) -> str:
    """Hash of the names and the significant content of all files in ``folders`` below ``root``.

    ``without``: files and folders below ``root`` that do not count. Nothing in a folder ``build``
    or ``__pycache__`` counts, and no ``*.pyc``. Raise :class:`ValueError` if a folder is missing.
    """
    skipped = {root / name for name in without}
    with _Cache(root) as cache:
        state = hashlib.sha256(_VERSION.encode())
        for folder in sorted(set(folders)):
            if not (root / folder).is_dir():
                raise ValueError(f"Folder must exist below {root}, not {folder!r}")
            for path in _files(root / folder, skipped):
                name = path.relative_to(root).as_posix()
                state.update(f"{name}\0{cache.hash_of(name, path)}\n".encode())
    return state.hexdigest()[:16]


def _files(folder: Path, skipped: set[Path]) -> Iterator[Path]:
    """The files below ``folder``, in an order that does not depend on the file system."""
    for here, folders, names in os.walk(folder):
        top = Path(here)
        folders[:] = sorted(n for n in folders if n not in MADE and top / n not in skipped)
        for name in sorted(names):
            if not name.endswith(".pyc") and top / name not in skipped:
                yield top / name


class _Cache:
    """Hashes of files by name, valid for one size and time of change; one file below ``build``."""

    def __init__(self, root: Path) -> None:
        self.path = root / "build" / "sources.json"
        self.new: dict[str, list] = {}

    def __enter__(self) -> "_Cache":
        self.known = self._read()
        return self

    def hash_of(self, name: str, path: Path) -> str:
        found = path.stat()
        state = [found.st_size, found.st_mtime_ns, found.st_ctime_ns]
        known = self.known.get(name)
        if isinstance(known, list) and known[:-1] == state and isinstance(known[-1], str):
            return known[-1]
        value = hashlib.sha256(significant_bytes(path)).hexdigest()
        if time.time_ns() - max(state[1:]) > _RACY:
            self.new[name] = [*state, value]
        return value

    def __exit__(self, *error: object) -> None:
        """Add what is new. Of two processes at the same time one may win: nothing else is lost."""
        if self.new:
            files = {**self._read(), **self.new}
            with contextlib.suppress(OSError):  # a tree that takes no files has no cache
                self.path.parent.mkdir(exist_ok=True)
                write_whole(self.path, json.dumps({"version": _VERSION, "files": files}).encode())

    def _read(self) -> dict[str, list]:
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(self.path.read_bytes())
            if isinstance(found, dict) and found.get("version") == _VERSION:
                files = found.get("files")
                return files if isinstance(files, dict) else {}
        return {}
