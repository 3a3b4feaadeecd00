"""What counts in a source file, and its hash: comments and docstrings change no result.

Of Python files comments, docstrings and blank lines do not count; their spans are found with the
tokenizer and the line numbers of the syntax tree, which are the same in every Python version, so a
hash made with 3.11 is good under 3.13. Of C, C++ and Verilog comments and white space at the ends
of lines do not count. Of other files every byte counts.
"""

import ast
import functools
import hashlib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from .file_cache import FileCache

__all__ = ["ROOT", "content_hash", "files_below", "folders_hash", "significant", "significant_c"]

#: The top folder of the tree.
ROOT = Path(__file__).resolve().parent.parent
#: Suffixes of files with C's comments.
C_LIKE = (".c", ".cpp", ".cs", ".h", ".hpp", ".inc", ".scala", ".sv", ".v")
#: Names of folders and files that are made, not written.
MADE = ("__pycache__", "build")
#: Hidden folders that are part of the tree; all others are caches of tools.
HIDDEN = (".ci",)

_C_TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.DOTALL | re.VERBOSE
)


def significant(source: str) -> str:
    """Return ``source``, a Python module, without comments, docstrings and blank lines."""
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


def significant_c(source: str) -> str:
    """Return ``source``, in C, C++ or Verilog, without comments and blank lines."""

    def replaced(found: re.Match[str]) -> str:
        return " " if found[0].startswith("/") else found[0]

    lines = _C_TOKEN.sub(replaced, source).splitlines()
    return "\n".join(kept for line in lines if (kept := line.rstrip()))


def content_hash(path: Path) -> str:
    """Return the hash of what counts in a file; kept by its path, size and time of change."""
    return _HASHES.value(path)


def _hash_of(path: Path) -> str:
    content = path.read_bytes()
    try:
        if path.suffix == ".py":
            content = significant(content.decode()).encode()
        elif path.suffix in C_LIKE:
            content = significant_c(content.decode()).encode()
    except (SyntaxError, UnicodeDecodeError, tokenize.TokenError):
        pass  # broken: every byte counts
    return hashlib.sha256(content).hexdigest()[:16]


_HASHES: FileCache[str] = FileCache("content", _hash_of)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, sorted, but for those that are made."""
    for path in sorted(folder.iterdir()):
        if path.name in MADE or path.suffix in (".pyc", ".egg-info"):
            continue
        if path.is_dir() and (path.name in HIDDEN or not path.name.startswith(".")):
            yield from files_below(path)
        elif path.is_file():
            yield path


def folders_hash(folders: Iterable[str], root: Path = ROOT) -> str:
    """Return the hash of what counts in all files of top folders: names and contents."""
    state = hashlib.sha256()
    for folder in sorted(folders):
        for path in files_below(root / folder):
            name = path.relative_to(root).as_posix()
            state.update(f"{name}\0{content_hash(path)}\0".encode())
    return state.hexdigest()[:16]


@functools.cache
def tree_hash(folders: tuple[str, ...]) -> str:
    """Return :func:`folders_hash` of this tree, as it was when this process first asked."""
    return folders_hash(folders)
