"""Names for statements that are made in loops: the values of the loops' variables.

Solvers report a statement by file and line. Of one that a loop makes for each field of a record, or
a function for each of its callers, that says too little. :func:`named_statements` adds, to the
place of each ``Assert``, ``Assume`` and ``Cover``, the loop variables in its scope, and the places
and loop variables of the callers, up to the harness's ``elaborate``; where that is not enough, a
number. So no two statements are called the same. :func:`parse` reads it back from a solver's log.
Netlists stay as they are, but for these source attributes.
"""

import ast
import contextlib
import enum
import functools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import FrameType
from urllib.parse import quote, unquote

import amaranth
from amaranth.hdl import Signal, Value, ValueCastable

from .internals import Property

__all__ = ["Place", "named_statements", "parse", "place_of", "text_of"]

_AMARANTH = str(Path(amaranth.__file__).parent)
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
#: How many callers are named at most.
_CALLERS = 4
_PLACE = re.compile(r"(\S+?):(\d+)(?:\.(\d+)-(\d+)\.(\d+))?(?:\[(\S*?)\])?")


@dataclass(frozen=True)
class Place:
    """A call in a file, and the loop variables there as ``name=value``.

    ``span``: first column, last line, column after the last, in bytes; empty if only the line is
    known.
    """

    file: str
    line: int
    names: tuple[str, ...] = ()
    span: tuple[int, int, int] | tuple[()] = ()

    @property
    def begin(self) -> tuple[str, int, int]:
        return self.file, self.line, self.span[0] if self.span else 0

    def __str__(self) -> str:
        names = f" [{', '.join(self.names)}]" if self.names else ""
        return f"{Path(self.file).name}:{self.line}{names}"


@contextlib.contextmanager
def named_statements() -> Iterator[None]:
    """Within the block, the source location of a statement says in which turns of loops it is made.

    Not for several threads at a time; neither is Amaranth.
    """
    original, made = Property.__init__, Counter()

    def initialise(self, kind, test, message=None, *, src_loc_at=0):
        original(self, kind, test, message, src_loc_at=1 + src_loc_at)
        # `src_loc_at` counts from the caller of this function. Amaranth itself copies statements,
        # and their locations afterwards.
        if places := _places(sys._getframe(1 + src_loc_at)):
            made[text := _format(places)] += 1
            # A loop whose variables have no names, or a function that is called by one.
            nameless = not places[0].names and _targets(*places[0].begin)
            if made[text] > 1 or nameless:
                turn = (*places[0].names, f"turn={made[text]}")
                text = _format([replace(places[0], names=turn), *places[1:]])
            file, rest = text.split(":", 1)
            self.src_loc = (file, rest)  # written as "file:rest"

    Property.__init__ = initialise
    try:
        yield
    finally:
        Property.__init__ = original


def _places(frame: FrameType | None) -> list[Place]:
    """The statement's place, then those of callers in whose loops it is made."""
    places: list[Place] = []
    inner = False
    while frame is not None and not frame.f_code.co_filename.startswith(_AMARANTH):
        place = place_of(frame)
        # A comprehension has a frame of its own, which is part of the function around it.
        if places and inner:
            names = tuple(n for n in place.names if n not in places[-1].names)
            places[-1] = replace(places[-1], names=names + places[-1].names)
        else:
            places.append(place)
        inner = frame.f_code.co_name in _COMPREHENSIONS
        frame = frame.f_back
    callers = [place for place in places[1:] if place.names or place.file != places[0].file]
    return places[:1] + callers[:_CALLERS]


def place_of(frame: FrameType) -> Place:
    """Where ``frame`` is: the call that it is in."""
    place = Place(frame.f_code.co_filename, frame.f_lineno)
    at = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), ())
    if len(at) == 4 and None not in at:  # else Python was told to leave columns out
        line, last, column, end = at
        place = replace(place, line=line, span=(column, last, end))
    values = {name: frame.f_locals.get(name) for name in _targets(*place.begin)}
    texts = {name: _text(value) for name, value in values.items()}
    return replace(place, names=tuple(f"{name}={text}" for name, text in texts.items() if text))


def _text(value: object) -> str | None:
    """A loop variable's value as a name, or ``None`` if it has none."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, tuple) and value and all(isinstance(v, str | int) for v in value):
        return ".".join(map(str, value))
    if isinstance(value, ValueCastable):
        value = Value.cast(value)
    if isinstance(value, Value) and not isinstance(value, Signal):
        return f"{Path(value.src_loc[0]).name}:{value.src_loc[1]}" if value.src_loc else None
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else None


@functools.cache
def _loops(file: str) -> list[tuple[tuple[int, int], tuple[int, int], list[str]]]:
    """Of each loop and comprehension in a file: its begin, its end, names that it sets."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError):
        return []
    loops = []
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            targets = [node.target]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            targets = [part.target for part in node.generators]
        else:
            continue
        names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        begin, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        loops.append((begin, end, names))
    return loops


@functools.cache
def _targets(file: str, line: int, column: int) -> list[str]:
    """Loop variables at a place, those of outer loops first, each once."""
    around = [names for begin, end, names in _loops(file) if begin <= (line, column) < end]
    return list(dict.fromkeys(name for names in around for name in names if name != "_"))


def _format(places: list[Place]) -> str:
    """Without white space: ``file:line.column-line.column[name=value,…];file:…``."""
    parts = []
    for place in places:
        names = ",".join(quote(name, safe="=") for name in place.names)
        span = ".{}-{}.{}".format(*place.span) if place.span else ""
        parts.append(f"{quote(place.file)}:{place.line}{span}{f'[{names}]' if names else ''}")
    return ";".join(parts)


def parse(text: str) -> list[Place]:
    """The places in a statement's source location: its own, then those of its callers."""
    places = []
    for part in text.split(";"):
        if found := _PLACE.match(part):
            file, line, *span, names = found.groups()
            words = tuple(unquote(name) for name in (names or "").split(",") if name)
            numbers = tuple(int(number) for number in span if number)
            places.append(Place(unquote(file), int(line), words, numbers))
    return places


def text_of(place: Place) -> str:
    """The source of the call at a place, or its line, in one line; empty if it cannot be read."""
    try:
        lines = Path(place.file).read_bytes().splitlines()
        if not place.span:
            return lines[place.line - 1].decode().strip()
        column, last, end = place.span
        lines = lines[place.line - 1 : last]
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][column:]
        return " ".join(line.decode().strip() for line in lines)
    except (OSError, UnicodeDecodeError, IndexError):
        return ""
