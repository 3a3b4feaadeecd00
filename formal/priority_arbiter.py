"""Proof of ``cores/priority_arbiter.py``: two sizes of classes, patience 1 and 2.

Contract, over public ports: the stream rules at the output, given those at the inputs; each beat
that leaves is taken from exactly the input that ``index`` names; while an arbitrary input waits, at
most ``waiting_bound`` beats of others are transferred, a bound that is reached in each class; at
most one idle cycle while any input waits. A beat of class 0 is shown before one of class 1, unless
that was shown before or ``patience`` beats of class 0 have passed it.

Not proved: a bound in cycles, which depends on the consumer; other numbers of inputs; behaviour
under a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Const, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import data

from .kit.proof import Mutant, Proof
from .stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS", "PriorityInvariants"]

BEAT = data.StructLayout({"word": 2})


class PriorityInvariants:
    """Invariants of a ``PriorityArbiter``, for proofs of what it is in.

    ``valids``: ``valid`` of its inputs. ``left(k)``: how many transfers of other inputs input ``k``
    waits for, at most, from now on.
    """

    def __init__(self, m, dut, valids):
        self.m, self.dut, self.valids = m, dut, valids
        self.shown = []
        for members, ring in zip(dut.members, dut.rings, strict=True):
            shown = Signal()
            m.d.comb += [
                shown.eq(Array(valids[k] for k in members)[ring.index]),
                Assert(ring.index < len(members)),
                Assert(ring.o.valid == shown),
            ]
            self.shown.append(shown)
        high, low = self.shown
        m.d.comb += [
            Assert(dut.passed <= dut.patience),
            Assert((dut.passed == 0) | low),
            Assert((dut.passed != dut.patience) | dut.low),
            Assert(~dut.held | Mux(dut.held_low, low, high)),
        ]

    def left(self, k):
        dut, c = self.dut, self.dut.priority[k]
        members, ring, patience = dut.members[c], dut.rings[c], dut.patience
        place, n = members.index(k), len(members)
        distance, left = Signal(range(n)), Signal(range(dut.waiting_bound(k) + patience + 2))
        self.m.d.comb += distance.eq(Mux(place >= ring.index, place, place + n) - ring.index)
        if c:
            # Each beat of class 1 before it, and `patience` of class 0 before each.
            rest = Mux(self.shown[1], patience - dut.passed, 0)
            value = Array(Const(d * (patience + 1)) for d in range(n))[distance] + rest
        else:
            # Class 1's beat that is shown, and one after each `patience` beats of class 0.
            often = Array(Const(d // patience) for d in range(n + patience))
            turns = Mux(dut.low & self.shown[1], 1 + often[distance], often[distance + dut.passed])
            value = distance + turns
        self.m.d.comb += left.eq(value)
        return left

    def bounded(self, bounds, moves, taken):
        """Assert that an arbitrary input waits for no more transfers of others than its bound.

        ``bounds``: of each input; ``moves``: one is transferred; ``taken(k)``: one of input ``k``.
        Returns which input is looked at, whether it waits, and for how many it has, for covers.
        """
        m, n = self.m, len(bounds)
        chosen = Signal(range(n), name="chosen")
        m.d.comb += [chosen.eq(AnyConst(len(chosen))), Assume(chosen < n)]
        others = Signal(range(max(bounds) + 2), name="others")
        waits = Array(self.valids)[chosen]
        with m.If(~waits | taken(chosen)):
            m.d.sync += others.eq(0)
        with m.Elif(moves):
            m.d.sync += others.eq(others + 1)
        for k, bound in enumerate(bounds):
            with m.If(chosen == k):
                m.d.comb += Assert(others <= bound)
                with m.If(waits):
                    m.d.comb += Assert(others + self.left(k) <= bound)
        return chosen, waits, others


class PriorityArbiterProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.submodules.dut = dut
        n = len(dut.priority)
        inputs = [dut.i[k] for k in range(n)]
        free(m, dut.o.ready)
        for k, i in enumerate(inputs):
            free(m, i.valid, i.payload)
            stream_rules(m, i, Assume, f"i{k}")
        stream_rules(m, dut.o, Assert, "o")
        moves = dut.o.valid & dut.o.ready
        m.d.comb += Assert(dut.index < n)
        for k, i in enumerate(inputs):
            m.d.comb += Assert((i.valid & i.ready) == (moves & (dut.index == k)))
            with m.If(dut.o.valid & (dut.index == k)):
                m.d.comb += Assert(Value.cast(dut.o.payload) == Value.cast(i.payload))
        valids = [i.valid for i in inputs]
        within(m, ~Cat(valids).any() | dut.o.valid, 1, "o")
        invariants = PriorityInvariants(m, dut, valids)
        self._first(m, dut.rings)
        self._waiting(m, moves, invariants)
        return m

    def _first(self, m, rings):
        """Class 0 first; counted here, at the ports, what has passed class 1's beat."""
        dut, n = self.dut, len(self.dut.priority)
        low = Array(Const(c) for c in dut.priority)[dut.index]
        held, passed = Signal(name="was_held"), Signal(range(dut.patience + 2), name="has_passed")
        m.d.sync += held.eq(dut.o.valid & ~dut.o.ready)
        with m.If(dut.o.valid & dut.o.ready):
            m.d.sync += passed.eq(Mux(low, 0, passed + rings[1].o.valid))
        m.d.comb += [
            Assert(dut.held == held),
            Assert(dut.passed == passed),
            Assert(~dut.o.valid | (low == dut.low)),
            Assert(Const(n) == len(dut.i)),
        ]
        with m.If(dut.o.valid & ~held & rings[0].o.valid):
            m.d.comb += Assert(low == (passed == dut.patience))

    def _waiting(self, m, moves, invariants):
        dut, n = self.dut, len(self.dut.priority)
        bounds = [dut.waiting_bound(k) for k in range(n)]
        chosen, waits, others = invariants.bounded(
            bounds, moves, lambda chosen: moves & (dut.index == chosen)
        )
        for c in (0, 1):
            k = dut.members[c][-1]
            m.d.comb += Cover((chosen == k) & waits & (others == bounds[k]))


MUTANTS = (
    Mutant("no_patience", "low.o.valid & (due | ~high.o.valid)", "low.o.valid & ~high.o.valid", 16),
    Mutant("class_1_first", "(due | ~high.o.valid)", "1", 16),
    Mutant(
        "withdraws",
        "Mux(self.held, self.held_low, low.o.valid & (due | ~high.o.valid))",
        "Mux(0, self.held_low, low.o.valid & (due | ~high.o.valid))",
    ),
    Mutant("no_new_count", "m.d.sync += self.passed.eq(0)", "pass", 16),
    Mutant("takes_both", "self.o.ready & ~self.low", "self.o.ready"),
)

PROOFS = tuple(
    Proof(
        name=f"priority_arbiter_{name}",
        core=f"cores.priority_arbiter.PriorityArbiter(2 bits, {priority}, {patience})",
        says="class 0 first; a bound on the transfers of others that each input waits for",
        module="trebuchet.cores.priority_arbiter",
        build=lambda cores, p=priority, q=patience: PriorityArbiterProof(
            cores.PriorityArbiter(BEAT, p, q)
        ),
        depth=3,
        cover_depth=18,
        mutants=MUTANTS,
        not_proved="a bound in cycles, which depends on the consumer; a reset while running",
    )
    for name, priority, patience in (("low", (1, 0, 1, 0, 1), 2), ("high", (0, 0, 0, 1), 1))
)
