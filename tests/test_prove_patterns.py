"""Patterns of mutants: what they match, what becomes of it, and what the messages say."""

import ast
import re

import pytest
from trebuchet.formal.kit.patch import patched
from trebuchet.formal.kit.scopes import Source
from trebuchet.models.errors import TrebuchetError

CORE = """
LIMIT = 3


class First:
    def elaborate(self, platform):
        m = Module()
        level, full = Signal(4), Signal()
        both = self.i.valid & ~full & self.enable
        m.d.comb += [self.o.valid.eq(level != 0), full.eq(level == LIMIT)]
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.start):
                    m.d.sync += level.eq(1)
                    m.next = "RUN"
            with m.State("RUN"):
                with m.If(both):
                    m.next = "IDLE"
                with m.Else():
                    m.d.sync += level.eq(0)
        return m


class Second:
    def elaborate(self, platform):
        m = Module()
        space = Signal(4)
        widths = {"a": 1, "b": 2}
        m.submodules.fifo = fifo = Fifo(width=1, depth=4)
        m.d.comb += self.o.valid.eq(space != 0)
        if platform:
            m.d.comb += fifo.i.eq([Mux(space[k], 1, widths["a"]) for k in range(4)])
        else:
            m.d.comb += fifo.i.eq(0)
        return m
"""


def patch(old, new, **place):
    """Lines of the core without and with the patch."""
    source = Source(ast.parse(CORE.replace("Module()", "object()")))
    source.known |= {"Signal", "Fifo", "Mux"}
    lines = [
        ast.unparse(tree).split("\n") for tree in (source.tree, patched(source, old, new, **place))
    ]
    common = [
        [line.strip() for line in own if line not in other] for own, other in (lines, lines[::-1])
    ]
    return common[0], common[1]


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        # An expression, whatever its variables are called and however it is written.
        ("x == LIMIT", "x != LIMIT", "full.eq(level == LIMIT)", "full.eq(level != LIMIT)"),
        ("(\n x  # limit\n == LIMIT)", "0", "full.eq(level == LIMIT)", "full.eq(0)"),
        # A part of a chain of operators; its place takes one operand or several.
        ("~f & self.enable", "f", "valid & ~full & self.enable", "valid & full"),
        ("self.i.valid & ~f", "f & 1", "self.i.valid & ~full & self", "full & 1 & self"),
        # Elements, arguments and entries; they can be deleted.
        ("a.eq(x == LIMIT)", "", ", full.eq(level == LIMIT)]", "!= 0)]"),
        ("depth=4", "depth=5, other=6", "depth=4)", "depth=5, other=6)"),
        ("'b': 2", "'b': 3, **{}", "'b': 2}", "'b': 3, **{}}"),
        ("w[k], 1", "w[k], 2", "Mux(space[k], 1,", "Mux(space[k], 2,"),
        # Statements, headers, and what `...` keeps.
        ("with m.If(b): m.next = 'IDLE'", "with m.If(b): m.next = b", "'IDLE'", "m.next = both"),
        ("with m.If(self.start):", "with m.If(1):", "(self.start)", "(1)"),
        ("if platform:", "if not platform:", "if platform", "if not platform"),
        ("for k in ...", "for k in 2", None, None),
        ("Mux(w[k], 1, ...)", "Mux(w[k], 0, ...)", "k], 1, widths['a'])", "k], 0, widths['a'])"),
        ("[..., f.eq(l == LIMIT)]", "[..., f.eq(0)]", "full.eq(level == LIMIT)]", "full.eq(0)]"),
    ],
)  # fmt: skip
def test_matches(old, new, before, after):
    if before is None:
        with pytest.raises(TrebuchetError, match="has a `old` that is neither"):
            patch(old, new)
        return
    (was,), (now,) = patch(old, new)
    assert before in was
    assert after in now


def test_a_header_can_begin_its_body_anew():
    old = "with m.If(b):\n    m.next = 'IDLE'\n    ..."
    assert patch(old, "with m.If(b):\n    pass\n    ...") == (["m.next = 'IDLE'"], ["pass"])


def test_within_and_context_say_where():
    """A class, a method, a state; a variable that is only in the new text."""
    for within in (["Second"], ["Second.elaborate"]):
        assert patch("self.o.valid.eq(l != 0)", "self.o.valid.eq(l)", within=within) == (
            ["m.d.comb += self.o.valid.eq(space != 0)"],
            ["m.d.comb += self.o.valid.eq(space)"],
        )
    states = ['with m.State("RUN"):']
    assert patch("m.d.sync += l.eq(0)", "pass", within=states)[1] == ["pass"]
    found = patch("self.enable", "s", context=["s == LIMIT"])
    assert found[1] == ["both = self.i.valid & ~full & level"]


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("self.gone", "0", {}, "must match one place, not none"),
        ("self.start", "0", {"within": ["Second"]}, "place with its `within` and `context`, no"),
        ("self.o.valid.eq(l != 0)", "0", {}, "not 2 (lines 10, 30): say more in `old`, or where"),
        ("self.enable", "level", {}, "must bind the local variable 'level' of `new`, in `old` or"),
        ("self.enable", "lvel", {}, "must not use the unknown name 'lvel' in `new`"),
        ("~f", "s", {"context": ["s != 0"], "within": ["Second"]}, "not none"),
        ("'b': 2", "0", {}, "of the same kind: both expressions, or both statements"),
        ("self.start)", "0)", {}, "neither an expression, nor statements, elements, entries or a"),
        ("l.eq(...)", "l.eq(... + ...)", {"within": ["m.FSM"]}, "not none"),
        ("l.eq(0)", "l.eq(...)", {}, "must not have more `...` in `new` than in `old`"),
    ],
)  # fmt: skip
def test_messages(old, new, place, message):
    with pytest.raises(TrebuchetError, match=re.escape(message)):
        patch(old, new, **place)
