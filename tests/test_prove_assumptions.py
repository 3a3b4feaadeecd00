"""Assumptions are recorded where they are stated, and each needs a law with a ground."""

import pytest
from amaranth.hdl import Assert, Assume, Elaboratable, Signal
from prove_lib import Sum, proof_of
from trebuchet.formal.kit import runner
from trebuchet.formal.kit.assumptions import Law, faults, laws, page
from trebuchet.formal.kit.stated import Statement
from trebuchet.formal.stream import free, new_harness
from trebuchet.models.ledger import ROOT

HERE = "test_prove_assumptions"


def small(m, step, check):
    m.d.comb += check(step < 3)


class Harness(Elaboratable):
    """One law by ``small``, two statements of its own, in a loop, and in an expression's loop."""

    def __init__(self, check):
        self.check = check

    def elaborate(self, platform):
        m = new_harness()
        step, more = Signal(2), Signal(2)
        free(m, step, more)
        small(m, step, self.check)
        m.d.comb += Assert(step != more)
        for bit in more:
            m.d.comb += Assume(~bit)
        m.d.comb += [Assume(rule) for rule in (step == 0, step != 1)]
        return m


def texts(proof, kind):
    return {(s.text, s.shared) for s in runner.statements_of(proof) if s.kind == kind}


def test_statements_are_recorded_with_their_texts():
    reset = ("stream: ~ResetSignal()", False)
    own = {(f"{HERE}: ~bit", False), (f"{HERE}: rule for rule in (step == 0, step != 1)", False)}
    law = (f"{HERE}: step < 3", True)
    assert texts(proof_of(Harness(Assume)), "assume") == {reset, law, *own}
    assert texts(proof_of(Harness(Assert)), "assume") == {reset, *own}
    assert texts(proof_of(Harness(Assert)), "assert") == {law, (f"{HERE}: step != more", False)}


def test_an_assumption_that_is_planted_needs_a_law():
    """One that nobody has heard of: in a harness, not in `formal/laws`."""
    statements = {"planted": runner.statements_of(proof_of(Harness(Assert)))}
    found = faults(statements, [])
    assert f"planted: no law says who asserts `{HERE}: ~bit`" in found
    assert len(found) == 2
    assert faults({"sum": runner.statements_of(proof_of(Sum()))}, []) == []


def test_one_text_on_both_sides_needs_no_law():
    sides = {
        check.__name__: runner.statements_of(proof_of(Harness(check))) for check in (Assume, Assert)
    }
    own = (f"{HERE}: ~bit", f"{HERE}: rule for rule in (step == 0, step != 1)")
    known = [Law("own", own, "choice", ("why",))]
    assert faults(sides, known) == []
    del sides["Assert"]
    assert faults(sides, known) == [f"Assume: no law says who asserts `{HERE}: step < 3`"]


A, B = Statement("assume", "a: x", False), Statement("assert", "b: y", False)


@pytest.mark.parametrize(
    ("statements", "known", "message"),
    [
        ({"p": [A]}, [], "p: no law says who asserts `a: x`"),
        (
            {"p": [A]},
            [Law("l", ("a: x",), "asserted", ("b: y",))],
            "law 'l': no proof asserts `b: y`",
        ),
        (
            {"p": [A], "q": [B]},
            [Law("l", ("a: x", "a: z"), "asserted", ("b: y",))],
            "law 'l': no proof assumes `a: z`, or it needs no law",
        ),
        (
            {"p": [A], "q": [B]},
            [Law(name, ("a: x",), "asserted", ("b: y",)) for name in "lm"],
            "`a: x` is in 2 laws",
        ),
    ],
)
def test_faults(statements, known, message):
    assert message in faults(statements, known)


def test_a_law_with_its_ground_is_good():
    statements = {"p": [A], "q": [B], "r": [A, B]}
    known = [Law("l", ("a: x",), "asserted", ("b: y",), "file")]
    assert faults(statements, known) == []
    assert "| l | `a: x` | p, r | `b: y` (q, r) |" in page(statements, known)


def test_tests_that_laws_name_exist():
    for law in laws():
        for name in law.grounds if law.kind == "tested" else ():
            file, _, function = name.partition("::")
            assert f"def {function or 'test_'}" in (ROOT / "tests" / f"test_{file}.py").read_text()
