"""What a proof states, recorded while its harness is elaborated: its assumptions and assertions.

A statement is told by the module of ``formal/`` and the text of its condition there. A helper that
states something for its callers (:data:`HELPERS`) counts as the call of it.
"""

import ast
import contextlib
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import amaranth

from .internals import Property
from .statements import Place, place_of

__all__ = ["HELPERS", "Statement", "recorded"]

#: Functions that state something of what their caller names.
HELPERS = {
    "kit.contracts._rules",
    "kit.contracts.steady",
    "kit.standins.stand_in",
    "stream.stream_rules",
    "tcp.checkout.steady",
}

_FORMAL = Path(__file__).parents[1]
_AMARANTH = str(Path(amaranth.__file__).parent)
_STATING = ("Assume", "Assert", "Cover")


@dataclass(frozen=True, order=True)
class Statement:
    """An assumption or an assertion of a proof.

    ``text``: the module of ``formal/`` and the condition there. ``shared``: the kind of the
    statement is an argument of the function that makes it.
    """

    kind: str
    text: str
    shared: bool


@contextlib.contextmanager
def recorded() -> Iterator[list[Statement]]:
    """Within the block, the statements that are made. Not for several threads at a time."""
    original, made = Property.__init__, dict[Statement, None]()
    statements: list[Statement] = []

    def initialise(self, kind, test, message=None, *, src_loc_at=0):
        original(self, kind, test, message, src_loc_at=1 + src_loc_at)
        # `src_loc_at` counts from the caller of this function, as in `named_statements`.
        if (made_by := _statement(self.kind.value, sys._getframe(1 + src_loc_at))) is not None:
            made[made_by] = None

    Property.__init__ = initialise
    try:
        yield statements
    finally:
        Property.__init__ = original
        statements += sorted(made)


def _statement(kind: str, frame: FrameType | None) -> Statement | None:
    if kind == "cover" or frame is None or _foreign(frame):
        return None  # Amaranth itself copies statements
    text, call = "", _call(place_of(frame))
    shared = call is not None and _name(call.func) not in _STATING
    while _title(frame) in HELPERS and frame.f_back is not None and not _foreign(frame.f_back):
        frame = frame.f_back
        call = _call(place_of(frame))
        text = ast.unparse(call) if call is not None else ""
    if not text and call is not None:
        text = _condition(call, place_of(frame).file)
    return Statement(kind, f"{_module(frame)}: {text}", shared)


def _foreign(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_AMARANTH)


def _module(frame: FrameType) -> str:
    """Return the dotted name of a module below ``formal/``; of a file elsewhere, its name."""
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(_FORMAL):
        return path.stem
    return ".".join(path.relative_to(_FORMAL).with_suffix("").parts)


def _title(frame: FrameType) -> str:
    return f"{_module(frame)}.{frame.f_code.co_qualname}"


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else ""


def _condition(call: ast.Call, file: str) -> str:
    """What is stated; if it is the variable of a loop in an expression, the loop."""
    condition = call.args[0]
    text, loop = ast.unparse(condition), _calls(file)[1].get(_span(call))
    if not isinstance(condition, ast.Name) or loop is None:
        return text
    return ast.unparse(loop)[1:-1].replace(ast.unparse(call), text, 1)


def _call(place: Place) -> ast.Call | None:
    if not place.span or not Path(place.file).is_file():
        return None  # Python was told to leave columns out; or to run a string, which has no source
    column, last, end = place.span
    return _calls(place.file)[0].get((place.line, column, last, end))


def _span(node: ast.expr) -> tuple[int, ...]:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


@functools.cache
def _calls(file: str) -> tuple[dict[tuple[int, ...], ast.Call], dict[tuple[int, ...], ast.expr]]:
    """The calls in a file by their places, and those that are all that a comprehension makes."""
    nodes = list(ast.walk(ast.parse(Path(file).read_text())))
    loops = [n for n in nodes if isinstance(n, ast.ListComp | ast.GeneratorExp)]
    return (
        {_span(node): node for node in nodes if isinstance(node, ast.Call)},
        {_span(loop.elt): loop for loop in loops if isinstance(loop.elt, ast.Call)},
    )
