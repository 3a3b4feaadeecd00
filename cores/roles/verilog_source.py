"""Verilog files of other people: find their modules, and make them readable for every tool.

Verilator takes a byte-order mark, comments in any encoding and files included from beside; Yosys
and the project's own readers do not. :func:`readable` gives them a copy without those.
"""

import hashlib
import re
from pathlib import Path

from ...models.files import make_folder, read_file, write_whole
from ...models.paths import build_folder

__all__ = ["LANGUAGE", "module_names", "readable"]

#: What both tools accept, for messages.
LANGUAGE = (
    "Verilog-2005, or the SystemVerilog that both Verilator and Yosys (read_verilog -sv) read"
)

#: Includes within includes.
MAX_DEPTH = 16
SKIPPED = re.compile(
    r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|\(\*(?!\s*\)).*?\*\)|(\\\S+)', re.DOTALL
)
MODULE = re.compile(
    r"(?<![\w$`.\\])(?:macro)?module\s+(?:(?:automatic|static)\s+)?(\\\S+|[a-zA-Z_][\w$]*)"
)
INCLUDE = re.compile(r'^([ \t]*)`include[ \t]+"([^"\n]+)"', re.MULTILINE)


def decode(data: bytes) -> str:
    """Return the text of a file in UTF-8, with or without byte-order mark, or in Latin-1."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def module_names(text: str) -> list[str]:
    """Return the names of the modules of a text, those that are escaped without ``\\``.

    Comments, attributes and strings are not looked into.
    """
    bare = SKIPPED.sub(lambda match: match[1] or " ", text)
    return [name.removeprefix("\\") for name in MODULE.findall(bare)]


def with_includes(text: str, folder: Path, depth: int = 0) -> str:
    """Return the text with files that lie in ``folder`` in place of their includes."""

    def replace(match: re.Match[str]) -> str:
        path = folder / match[2]
        if not path.is_file():
            return match[0]
        if depth == MAX_DEPTH:
            raise ValueError(f"Verilog file {str(path)!r} must not include itself")
        return with_includes(decode(read_file(path)), path.parent, depth + 1)

    return INCLUDE.sub(replace, text)


def readable(path: Path) -> tuple[Path, str]:
    """Return a file with the contents of ``path`` that every tool can read, and its text.

    It is the file itself if that can be. A copy has ASCII only, ``?`` for other characters, and
    no includes of files beside it.
    """
    data = read_file(path)
    text = with_includes(decode(data), path.parent).encode("ascii", "replace").decode()
    if text.encode() == data:
        return path, text
    folder = make_folder(build_folder("verilog"))
    # The path as well, so that messages of tools about two files are told apart.
    name = hashlib.sha256(f"{path.resolve()}\0{text}".encode()).hexdigest()[:16]
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", path.stem)
    copy = folder / f"{stem}-{name}{path.suffix}"
    if not copy.is_file():
        write_whole(copy, text.encode())
    return copy, text
