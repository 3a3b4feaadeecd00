"""Docstrings as Sphinx reads them: numpydoc sections, and references within a package.

Sphinx's napoleon takes all that follows a section's entries for more entries, tables as well; here
a section ends at the first line that is neither an entry nor indented below one. A reference that
begins with a dot is what an import of that form would be: ``.memory`` is beside the module.
"""

import inspect
import re
import sys
import zlib
from pathlib import Path
from typing import Any

from amaranth.hdl import Elaboratable

__all__ = ["SECTIONS", "converted", "setup"]

SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Notes", "Members")

#: Title or `~`, dots, and the rest of the name.
_REFERENCE = re.compile(r"(:[a-z:]+:`(?:[^`<]*<)?~?)(\.+)(?=\w)")
_ENTRY = re.compile(r"\*{0,2}[A-Za-z_][\w.]*(, \*{0,2}[A-Za-z_][\w.]*)*( : .*)?")


def converted(lines: list[str]) -> list[str]:
    """Return a docstring's lines with its sections as a bold title and a definition list."""
    result: list[str] = []
    at = 0
    while at < len(lines):
        title = lines[at].strip()
        under = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if title in SECTIONS and re.fullmatch(r"-{3,}", under):
            result += [f"**{title}**", ""]
            at = _entries(lines, at + 2, result)
        else:
            result.append(lines[at])
            at += 1
    return result


def _entries(lines: list[str], at: int, result: list[str]) -> int:
    """Append the entries from line ``at`` on; return the first line behind them."""
    while at < len(lines) and _ENTRY.fullmatch(lines[at]) and _described(lines, at):
        name, _, kind = lines[at].partition(" : ")
        names = ", ".join(f"``{each}``" for each in name.split(", "))
        result.append(f"{names} : {kind}" if kind else names)
        at += 1
        if at == len(lines) or not lines[at].startswith(" "):
            result.append("    \\ ")  # a term must have a definition; this one is empty
        while at < len(lines) and (not lines[at].strip() or lines[at].startswith(" ")):
            result.append(lines[at])
            at += 1
    return at


def _described(lines: list[str], at: int) -> bool:
    return " : " in lines[at] or (at + 1 < len(lines) and lines[at + 1].startswith(" "))


def absolute(lines: list[str], package: str) -> list[str]:
    """Return the lines with references that begin with dots resolved in ``package``."""

    def full(match: re.Match[str]) -> str:
        base = package.split(".")
        base = base[: len(base) - len(match[2]) + 1]
        return f"{match[1]}{'.'.join(base)}."

    return [_REFERENCE.sub(full, line) for line in lines]


def package_of(name: str) -> str:
    """Return the package that an object of the dotted ``name`` is in."""
    while name and name not in sys.modules:
        name = name.rpartition(".")[0]
    is_package = hasattr(sys.modules.get(name), "__path__")
    return name if is_package else name.rpartition(".")[0]


def signature_of(component: Any) -> str:
    """Return the parameters of a class's constructor.

    Sphinx shows those of ``__new__`` where a class has both, which in Amaranth says nothing.
    """
    if component.__init__ is object.__init__:
        return "()"
    parameters = list(inspect.signature(component.__init__).parameters.values())[1:]
    return str(inspect.Signature(parameters))


def setup(app: Any) -> dict[str, int]:
    """Connect the conversion to Sphinx; called by Sphinx for an extension."""

    def convert(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
        lines[:] = converted(absolute(lines, package_of(name)))

    def show(
        app: Any, what: str, name: str, thing: Any, options: Any, arguments: Any, result: Any
    ) -> Any:
        if what == "class" and issubclass(thing, Elaboratable):
            return signature_of(thing), None
        return arguments, result

    app.connect("autodoc-process-docstring", convert)
    app.connect("autodoc-process-signature", show)
    # Pages that another version of this file has made are made anew.
    version = zlib.crc32(Path(__file__).read_bytes())
    return {"parallel_read_safe": True, "env_version": version}
