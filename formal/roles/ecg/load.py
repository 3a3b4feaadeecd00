"""Proof of ``PairPacker`` in ``cores/roles/ecg/load.py``.

Each beat has the next pairs in order, the last one as many as there are.

Not proved: a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ...kit.inside import Inside
from ...kit.parts import moves
from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]


class PairPackerProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        i = Inside(m, dut)
        free(m, dut.i.valid, dut.i.payload, dut.o.ready)
        stream_rules(m, dut.i, Assume, "i")
        begins = stream_rules(m, dut.o, Assert, "o")
        have, held, begun = Signal(), Signal(32), Signal()
        pair = Cat(dut.i.payload.even, dut.i.payload.odd)
        last, beat = dut.i.payload.last, dut.o.payload
        ends = have | last
        m.d.comb += [
            Assert(dut.o.valid == (dut.i.valid & ends)),
            Assert(dut.i.ready == (dut.o.ready | ~ends)),
        ]
        with m.If(dut.o.valid):
            m.d.comb += [
                Assert(beat.data[:32] == Mux(have, held, pair)),
                Assert(~have | (beat.data[32:] == pair)),
                Assert(beat.empty == Mux(have, 0, 4)),
                Assert(beat.first == ~begun),
                Assert(beat.last == last),
                Assert(~beat.error),
            ]
        with m.If(moves(dut.i)):
            m.d.sync += [have.eq(~ends), held.eq(pair)]
            with m.If(ends):
                m.d.sync += begun.eq(~last)
        m.d.comb += [
            Assert(i.at == have),
            Assert(~have | (Value.cast(i.held)[:32] == held)),
            Assert(i.begun == begun),
            Assert(begins == ~begun),
            Cover(dut.o.valid & begun & ~have),
        ]
        return m


PROOFS = (
    Proof(
        name="ecg_pair_packer",
        core="cores.roles.ecg.load.PairPacker(64)",
        says="two pairs a beat in order, the last beat as many as there are",
        module="trebuchet.cores.roles.ecg.load",
        build=lambda cores: PairPackerProof(cores.PairPacker(64)),
        depth=2,
        cover_depth=8,
        mutants=(
            Mutant(
                "wrong_empty",
                "self.o.payload.empty.eq((count - 1 - at) << 2)",
                "self.o.payload.empty.eq((count - at) << 2)",
            ),
            Mutant("takes_always", "self.i.ready.eq(self.o.ready | ~end)", "self.i.ready.eq(1)"),
            Mutant("never_first", "begun.eq(~self.i.payload.last)", "begun.eq(1)"),
        ),
    ),
)
