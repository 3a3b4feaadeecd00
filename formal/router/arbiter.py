"""Proof of ``RoundRobin`` in ``cores/router/arbiter.py``.

Exactly one requester is granted when there is one, and only one that asks: the first of them after
the one that was granted last, counted round; after the reset, requester 0 comes first. Fairness: a
requester that keeps asking sees at most ``n - 1`` grants to others, so it waits for at most
``n - 1`` cycles, whatever the others do.

Not proved: a reset while running; other numbers of requesters than those named.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..stream import new_harness

__all__ = ["PROOFS"]


class RoundRobinProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        n = dut.n
        asker, waited = Signal(range(n)), Signal(range(n + 2))
        m.d.comb += [dut.i.eq(AnySeq(n)), asker.eq(AnyConst(len(asker))), Assume(asker < n)]
        m.d.comb += [
            Assert((dut.o & ~dut.i) == 0),
            Assert((dut.o & (dut.o - 1)) == 0),
            Assert(dut.o.any() == dut.i.any()),
        ]
        asks, has = dut.i.bit_select(asker, 1), dut.o.bit_select(asker, 1)
        with m.If(~asks | has):
            m.d.sync += waited.eq(0)
        with m.Else():
            m.d.sync += waited.eq(waited + 1)
        m.d.comb += [Assert(waited <= n - 1), Cover((waited == n - 1) & has)]

        self._next(m)

        # Invariants: `behind` is all above some requester; those before the asker have had turns.
        m.d.comb += Assert((~dut.behind & (~dut.behind + 1)[:n]) == 0)
        start = Signal(range(n + 1))  # who has the highest priority; n: nobody is behind
        m.d.comb += start.eq(n - sum(dut.behind[k] for k in range(n)))
        ahead = Signal(range(n + 1))  # requesters with a higher priority than the asker
        m.d.comb += ahead.eq(
            Mux(start == n, asker, Mux(asker >= start, asker - start, n - start + asker))
        )
        m.d.comb += Assert(waited + ahead <= n - 1)
        return m

    def _next(self, m):
        """Who has the grant is the first that asks after the one that had it last."""
        dut, n = self.dut, self.dut.n
        last = Signal(range(n), init=n - 1)
        first = Signal(n)
        with m.Switch(last):
            for k in range(n):
                with m.Case(k):
                    for step in reversed(range(1, n + 1)):  # the nearest wins
                        other = (k + step) % n
                        with m.If(dut.i[other]):
                            m.d.comb += first.eq(1 << other)
        for k in range(n):
            with m.If(dut.o[k]):
                m.d.sync += last.eq(k)
            m.d.comb += Assert(dut.behind[k] == (last < k))  # an invariant
        m.d.comb += [Assert(dut.o == first), Assert(last < n)]


MUTANTS = (
    Mutant("always_the_lowest", "self.behind.eq(before)", "self.behind.eq(0)"),
    Mutant("keeps_the_winner", "self.behind.eq(before)", "self.behind.eq(before | self.o)"),
    Mutant("grants_two", "wanted & ~before", "wanted"),
    Mutant("grants_nobody", "Mux(preferred.any(), preferred, self.i)", "preferred"),
)

PROOFS = tuple(
    Proof(
        name=f"router_arbiter_{n}",
        core=f"cores.router.arbiter.RoundRobin({n})",
        says="one grant a cycle, to the next in turn; who keeps asking waits for at most n - 1",
        module="trebuchet.cores.router.arbiter",
        build=lambda cores, n=n: RoundRobinProof(cores.RoundRobin(n)),
        depth=2,
        cover_depth=12,
        mutants=MUTANTS,
        assumes="nothing",
        not_proved="a reset while running",
    )
    for n in (3, 8)
)
