"""Proof of the logic check of ``cores/roles/burnin/lane.py``.

Without an injected fault the two copies of the generator never differ; after one they differ after
each step.

Not proved: checks of products and of block RAM (the tests inject faults and compare with the golden
model); a reset while running.
"""

from amaranth.hdl import Assert, Cover, Elaboratable, Signal

from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness

__all__ = ["PROOFS"]


class LaneProof(Elaboratable):
    """The copies of the generator, with faults injected at any time while they are equal."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        free(m, dut.init, dut.start, dut.step, dut.inject)
        hurt = Signal()
        again = Signal()
        stepped = Signal()
        due = Signal()
        with m.If(dut.start):
            m.d.sync += [hurt.eq(0), again.eq(0)]
        with m.Elif(dut.step & dut.inject[0]):
            m.d.sync += [hurt.eq(1), again.eq(again | hurt)]
        differ = Signal(32)
        wrong = Signal()
        m.d.comb += [differ.eq(dut.word ^ ~dut.complement), wrong.eq(differ != 0)]
        m.d.sync += [stepped.eq(dut.step & ~dut.start), due.eq(stepped & wrong)]
        m.d.comb += [
            # A second fault may undo the first.
            Assert(again | (hurt == wrong)),
            Assert(hurt | ~again),
            Assert(dut.lut_bad == due),
        ]
        count = Signal(3)
        m.d.sync += count.eq(count + (dut.lut_bad & (count != 7)))
        m.d.comb += Cover((count == 3) & ~hurt)
        return m


PROOFS = (
    Proof(
        name="burnin_lane",
        core="cores.roles.burnin.lane.BurninLane(4)",
        says="the logic check reports nothing without a fault, and each step after one",
        module="trebuchet.cores.roles.burnin.lane",
        build=lambda lane: LaneProof(lane.BurninLane(4)),
        depth=3,
        cover_depth=10,
        mutants=(
            Mutant("compares_equal", "word != ~complement", "word != complement"),
            Mutant("checks_at_once", "stepped & (word != ~complement)", "word != ~complement"),
            Mutant("keeps_the_copy", "complement.eq(~self.init)", "complement.eq(self.init)"),
        ),
        not_proved="checks of products and of block RAM; a reset while running",
    ),
)
