"""Proofs of ``cores/arbiter.py``: arbiter, for units of one beat and of many; demultiplexer.

Contract of the arbiter (:class:`ArbiterContract`), over public ports: the stream rules at the
output, given those at the inputs; each beat that leaves is taken from exactly the input that
``index`` names; a unit that has begun keeps ``index`` until its end; an input that waits sees at
most ``n - 1`` units of others; no idle cycle but one while anybody waits.

Not proved: a bound in cycles on the wait, which depends on the consumer and on the length of units;
behaviour under a reset while running; other numbers of inputs than three.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import data

from .kit.proof import Mutant, Proof
from .stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS", "ArbiterContract"]

BEAT = data.StructLayout({"word": 2, "end": 1})


class ArbiterContract:
    """The contract of an arbiter over its ports ``i``, ``o`` and ``index``: bind it to any arbiter.

    Drives the arbiter. Attributes, for invariants: ``inputs``; ``started``, whether a unit is under
    way; ``owner``, whose beat was shown in the cycle before; ``ends``, whether a unit ends now;
    ``chosen``, an arbitrary input; ``waits``, whether it waits; ``units`` of others that it has
    waited for.
    """

    def __init__(self, m, dut):
        self.dut, self.inputs = dut, [dut.i[k] for k in range(dut.n)]
        free(m, dut.o.ready)
        for k, i in enumerate(self.inputs):
            free(m, i.valid, i.payload)
            stream_rules(m, i, Assume, f"i{k}")
        stream_rules(m, dut.o, Assert, "o")
        moves = dut.o.valid & dut.o.ready
        self.ends = moves & (dut.o.payload[dut.last] if dut.last else 1)

        m.d.comb += Assert(dut.index < dut.n)
        for k, i in enumerate(self.inputs):
            m.d.comb += Assert((i.valid & i.ready) == (moves & (dut.index == k)))
            with m.If(dut.o.valid & (dut.index == k)):
                m.d.comb += Assert(Value.cast(dut.o.payload) == Value.cast(i.payload))
        self.started, self.owner = Signal(name="started"), Signal.like(dut.index, name="owner")
        m.d.sync += self.owner.eq(dut.index)
        if dut.last:
            with m.If(moves):
                m.d.sync += self.started.eq(~self.ends)
        with m.If(self.started):
            m.d.comb += Assert(dut.index == self.owner)
        anybody = Signal()
        m.d.comb += anybody.eq(sum(i.valid for i in self.inputs) != 0)
        within(m, ~anybody | dut.o.valid | self.started, 1, "o")
        self._fairness(m)

    def _fairness(self, m):
        dut, n, ends, started = self.dut, self.dut.n, self.ends, self.started
        self.chosen = chosen = Signal(range(n), name="chosen")
        self.units = units = Signal(range(n + 2), name="units")
        self.waits = waits = Signal(name="waits")
        mine = dut.index == chosen
        m.d.comb += [
            chosen.eq(AnyConst(len(chosen))),
            Assume(chosen < n),
            waits.eq(Array(i.valid for i in self.inputs)[chosen] & ~(mine & started)),
        ]
        with m.If(~waits | (mine & dut.o.ready)):
            m.d.sync += units.eq(0)
        with m.Elif(ends):
            m.d.sync += units.eq(units + 1)
        m.d.comb += Assert(units <= n - 1)
        m.d.comb += Cover(units == n - 1)
        m.d.comb += Cover(ends & mine & started if dut.last else ends & mine & (units == 0))


class StreamArbiterProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        contract = ArbiterContract(m, dut)
        # Invariants: who is under way; each unit of another brings the grant nearer.
        n, chosen = dut.n, contract.chosen
        distance = Signal(range(n))
        m.d.comb += [
            Assert(dut.started == contract.started),
            distance.eq(Mux(chosen >= dut.index, 0, n) + chosen - dut.index),
        ]
        with m.If(contract.waits):
            m.d.comb += Assert(contract.units + distance <= n - 1)
        return m


class StreamDemuxProof(Elaboratable):
    """Each beat goes to the named output, in the same cycle, or nowhere if there is none."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        i, n, select = dut.i, dut.n, dut.select
        free(m, i.valid, i.payload, select, *(dut.o[k].ready for k in range(n)))
        stream_rules(m, i, Assume, "i")
        waits, past = Signal(), Signal.like(select)
        m.d.sync += [waits.eq(i.valid & ~i.ready), past.eq(select)]
        with m.If(waits):
            m.d.comb += Assume(select == past)
        taken = Signal()
        for k in range(n):
            o = dut.o[k]
            stream_rules(m, o, Assert, f"o{k}")
            m.d.comb += Assert(o.valid == (i.valid & (select == k)))
            with m.If(o.valid):
                m.d.comb += Assert(Value.cast(o.payload) == Value.cast(i.payload))
                m.d.comb += taken.eq(o.ready)
            m.d.comb += Cover(o.valid & o.ready & waits)
        nowhere = select >= n
        with m.If(i.valid):
            m.d.comb += Assert(i.ready == (taken | nowhere))
        m.d.comb += Cover(i.valid & nowhere)
        return m


MUTANTS = (
    Mutant("leaves_stalled", "~self.started & ~self.o.valid", "~self.started & ~self.o.ready"),
    Mutant("fixed_priority", "(k + step) % self.n", "(step - 1) % self.n"),
    Mutant("forgets_ready", "inputs[k].ready.eq(self.o.ready)", "inputs[k].ready.eq(1)"),
)
INTERLEAVES = Mutant(
    "interleaves",
    "Mux(moves, ends, ~self.started & ~self.o.valid)",
    "Mux(moves, 1, ~self.started & ~self.o.valid)",
)

PROOFS = (
    *(
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
    ),
    Proof(
        name="stream_demux",
        quick=True,
        core="cores.arbiter.StreamDemux(3 bits, 3)",
        says="a beat goes to the output named, unchanged, at once; one for nowhere is swallowed",
        module="trebuchet.cores.arbiter",
        build=lambda cores: StreamDemuxProof(cores.StreamDemux(BEAT, 3)),
        depth=2,
        cover_depth=5,
        mutants=(
            Mutant(
                "hangs_on_nowhere",
                "self.select < self.n, readies[self.select], 1",
                "self.select < self.n, readies[self.select], 0",
            ),
            Mutant("shows_all", "self.i.valid & (self.select == k)", "self.i.valid"),
            Mutant("last_missing", "self.select < self.n", "self.select < self.n - 1"),
        ),
        assumes="the stream rules on the input; `select` is kept while a beat waits",
    ),
)
