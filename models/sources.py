"""What counts in a source file, and its hash: comments and layout do not, code does.

Of Python files the syntax tree counts, without docstrings, in a form that is the same in every
version of Python. Of C, C++ and Verilog the lines without comments count. Of other files, and of
Python files that have no valid syntax, every byte counts.
"""

import ast
import contextlib
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .file_cache import FileCache

__all__ = ["ROOT", "content_hash", "files_below", "folders_hash", "significant_bytes", "tree_hash"]

#: The top folder of the tree.
ROOT = Path(__file__).resolve().parent.parent
#: Languages whose comments are ``//`` and ``/* */``.
C_LIKE = {".c", ".cc", ".cpp", ".cs", ".h", ".hpp", ".inc", ".scala", ".sv", ".svh", ".v", ".vh"}
#: Folders that hold what tools have made.
MADE = {"build", "__pycache__"}
#: Hidden folders that are part of the tree; all others are caches of tools.
HIDDEN = {".ci"}
#: A raw string, a string, a character or a comment, whichever begins first.
_C_TOKEN = re.compile(
    r'R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\[^\'\n]+|[^\'\\\n])\''
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)",
    re.DOTALL,
)


def significant_bytes(path: Path) -> bytes:
    """Return the content of a file without comments, docstrings and layout."""
    content = path.read_bytes()
    if path.suffix == ".py":
        with contextlib.suppress(SyntaxError, ValueError):
            return _dump(_without_docstrings(ast.parse(content))).encode("utf-8", "surrogatepass")
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


def _dump(node: Any) -> str:
    """A syntax tree as text. Empty fields are left out: newer versions of Python have more."""
    if isinstance(node, ast.AST):
        fields = ((n, v) for n, v in ast.iter_fields(node) if v not in (None, []) and n != "kind")
        return f"{type(node).__name__}({','.join(f'{n}={_dump(v)}' for n, v in fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_dump, node))}]"
    return repr(node)


def _hash(path: Path) -> str:
    return hashlib.sha256(significant_bytes(path)).hexdigest()


_HASHES: FileCache[str] = FileCache("content", _hash)


def content_hash(path: Path) -> str:
    """Return the hash of what counts in a file; kept by its path, size and time of change."""
    return _HASHES.value(path)


def files_below(folder: Path, without: Iterable[Path] = ()) -> Iterator[Path]:
    """Yield the files below a folder in an order that does not depend on the file system.

    Left out are what tools have made, hidden folders that are not part of the tree, and
    ``without``: files and folders.
    """
    skipped = set(without)
    for path in sorted(folder.iterdir()):
        if path.name in MADE or path.suffix in (".pyc", ".egg-info") or path in skipped:
            continue
        if path.is_dir():
            if path.name in HIDDEN or not path.name.startswith("."):
                yield from files_below(path, skipped)
        elif path.is_file():
            yield path


def folders_hash(folders: Iterable[str], root: Path = ROOT, without: Iterable[str] = ()) -> str:
    """Return the hash of names and significant content of all files in folders below ``root``.

    ``without``: files and folders below ``root`` that do not count. Raise :class:`ValueError` if a
    folder is missing.
    """
    state, skipped = hashlib.sha256(), [root / name for name in without]
    for folder in sorted(set(folders)):
        if not (root / folder).is_dir():
            raise ValueError(f"Folder must exist below {root}, not {folder!r}")
        for path in files_below(root / folder, skipped):
            name = path.relative_to(root).as_posix()
            state.update(f"{name}\0{content_hash(path)}\n".encode())
    return state.hexdigest()[:16]


@functools.cache
def tree_hash(folders: tuple[str, ...], without: tuple[str, ...] = ()) -> str:
    """Return :func:`folders_hash` of this tree, as it was when this process first asked."""
    return folders_hash(folders, without=without)
