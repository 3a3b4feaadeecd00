"""Small harnesses for tests of the proof runner, and proofs of them that no module registers."""

import time
from pathlib import Path

from amaranth.hdl import Assert, Cover, Elaboratable, Signal
from trebuchet.formal.kit.internals import mark_used
from trebuchet.formal.kit.proof import Mutant, Proof
from trebuchet.formal.stream import free, new_harness

__all__ = [
    "CORE", "NO_MUTANT", "Counter", "Factors", "Sum", "nobody_works_in", "proof_of", "says",
    "working_in",
]  # fmt: skip

#: A module that is no core of theirs: a proof must name one.
CORE = "trebuchet.cores.stream"
NO_MUTANT = (Mutant("none", "no such text", ""),)


class Counter(Elaboratable):
    """Counts 0, 1, 2, 0 …; ``state`` adds statements about it."""

    def __init__(self, state):
        self.state = state

    def elaborate(self, platform):
        m = new_harness()
        count = Signal(3)
        with m.If(count == 2):
            m.d.sync += count.eq(0)
        with m.Else():
            m.d.sync += count.eq(count + 1)
        self.state(m, count)
        return m


class Sum(Elaboratable):
    """``total`` adds up ``step``, 0 or 1: never 2 within two cycles, but 3 in the fourth."""

    def __init__(self, limit=8, wide=4):
        self.limit, self.wide = limit, wide

    def elaborate(self, platform):
        m = new_harness()
        step, total = Signal(), Signal(self.wide)
        free(m, step)
        m.d.sync += total.eq(total + step)
        m.d.comb += [Assert(total < self.limit), Cover(total == 2)]
        return m


class Factors(Elaboratable):
    """Two factors of the product of two primes: no solver finds them within a test."""

    def elaborate(self, platform):
        m = new_harness()
        a, b = Signal(40), Signal(40)
        free(m, a, b)
        m.d.comb += Assert((a * b != 1_000_000_007 * 998_244_353) | (a <= 1) | (b <= 1))
        m.d.comb += Cover(a == 2)
        return m


def says(*statements):
    """For :class:`Counter`: each of ``statements`` makes a statement about the count."""

    def state(m, count):
        for statement in statements:
            m.d.comb += statement(count)

    return state


def proof_of(harness, **arguments):
    """An induction over ``harness``, unless ``arguments`` of :class:`Proof` say otherwise."""
    if harness is not None:
        mark_used(harness)  # some tests look at the proof alone
    arguments = {"depth": 3, "cover_depth": 6, "mutants": NO_MUTANT, "name": "test", **arguments}
    arguments.setdefault("bounded", "a test" if arguments.get("method") == "bmc" else "")
    return Proof(core="a core", says="", module=CORE, build=lambda _: harness, **arguments)


def working_in(folder):
    """Processes whose working directory is ``folder`` or lies below it."""
    return [
        int(link.parent.name) for link in Path("/proc").glob("[0-9]*/cwd") if _below(link, folder)
    ]


def nobody_works_in(folder):
    """Wait until no process works in ``folder``."""
    deadline = time.monotonic() + 60
    while working := working_in(folder):
        assert time.monotonic() < deadline, working
        time.sleep(0.1)


def _below(link, folder):
    try:
        return link.resolve().is_relative_to(folder)
    except OSError:
        return False
