"""Proof of ``StreamArbiter`` in ``cores/arbiter.py``, for units of one beat and of many.

Contract, over public ports: the stream rules at the output, given those at the inputs; each
beat that leaves is taken from exactly the input that ``index`` names; a unit that has begun keeps
``index`` until its end; an input that waits sees at most ``n - 1`` units of others; no idle cycle
but one while anybody waits.

Not proved: a bound in cycles on the wait, which depends on the consumer and on the length of units;
behaviour under a reset while running; other numbers of inputs than three.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import data

from .proof import Mutant, Proof
from .stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]

BEAT = data.StructLayout({"word": 2, "end": 1})


class StreamArbiterProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        inputs = [dut.i[k] for k in range(dut.n)]
        free(m, dut.o.ready)
        for k, i in enumerate(inputs):
            free(m, i.valid, i.payload)
            stream_rules(m, i, Assume, f"i{k}")
        stream_rules(m, dut.o, Assert, "o")
        moves = dut.o.valid & dut.o.ready
        ends = moves & (dut.o.payload[dut.last] if dut.last else 1)

        m.d.comb += Assert(dut.index < dut.n)
        for k, i in enumerate(inputs):
            m.d.comb += Assert((i.valid & i.ready) == (moves & (dut.index == k)))
            with m.If(dut.o.valid & (dut.index == k)):
                m.d.comb += Assert(Value.cast(dut.o.payload) == Value.cast(i.payload))
        started = Signal()  # inside a unit, after its first beat
        owner = Signal.like(dut.index)
        m.d.sync += owner.eq(dut.index)
        if dut.last:
            with m.If(moves):
                m.d.sync += started.eq(~ends)
        m.d.comb += Assert(dut.started == started)  # an invariant
        with m.If(started):
            m.d.comb += Assert(dut.index == owner)
        anybody = Signal()
        m.d.comb += anybody.eq(sum(i.valid for i in inputs) != 0)
        within(m, ~anybody | dut.o.valid | started, 1, "o")
        self._fairness(m, inputs, ends, started)
        return m

    def _fairness(self, m, inputs, ends, started):
        dut, n = self.dut, self.dut.n
        chosen, units = Signal(range(n), name="chosen"), Signal(range(n + 2), name="units")
        distance = Signal(range(n), name="distance")
        waits = Signal(name="waits")
        mine = dut.index == chosen
        m.d.comb += [
            chosen.eq(AnyConst(len(chosen))),
            Assume(chosen < n),
            waits.eq(Array(i.valid for i in inputs)[chosen] & ~(mine & started)),
            distance.eq(Mux(chosen >= dut.index, 0, n) + chosen - dut.index),
        ]
        with m.If(~waits | (mine & dut.o.ready)):
            m.d.sync += units.eq(0)
        with m.Elif(ends):
            m.d.sync += units.eq(units + 1)
        m.d.comb += Assert(units <= n - 1)
        m.d.comb += Cover(units == n - 1)
        m.d.comb += Cover(ends & mine & started if dut.last else ends & mine & (units == 0))
        # Invariant: each unit of another brings the grant nearer.
        with m.If(waits):
            m.d.comb += Assert(units + distance <= n - 1)


MUTANTS = (
    Mutant("leaves_stalled", "~self.started & ~self.o.valid", "~self.started & ~self.o.ready"),
    Mutant("fixed_priority", "(k + step) % self.n", "(step - 1) % self.n"),
    Mutant("forgets_ready", "inputs[k].ready.eq(self.o.ready)", "inputs[k].ready.eq(1)"),
)
INTERLEAVES = Mutant("interleaves", "Mux(moves, ends,", "Mux(moves, 1,")

PROOFS = tuple(
    Proof(
        name=f"stream_arbiter_{name}",
        core=f"cores.arbiter.StreamArbiter(3 bits, 3, last={last!r})",
        says="beats come from the named input, units stay whole, at most n - 1 units of wait",
        module="trebuchet.cores.arbiter",
        build=lambda cores, last=last: StreamArbiterProof(cores.StreamArbiter(BEAT, 3, last)),
        depth=3,
        cover_depth=12,
        mutants=MUTANTS if last is None else (*MUTANTS, INTERLEAVES),
        not_proved="a bound in cycles, which depends on the consumer; a reset while running",
    )
    for name, last in (("beats", None), ("units", "end"))
)
