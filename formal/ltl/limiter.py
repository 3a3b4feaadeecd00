"""Proof of ``Limiter`` in ``cores/ltl/limiter.py``: when it may drop a frame, and how often.

The imagined queue is kept anew: it grows by the beats of each frame that was sent, two cycles
later, shrinks at the rate, is never negative and saturates; without a rate it is empty. A frame is
dropped only if the queue was longer than ``minimum``, and then exactly if a draw of 16 bits is
below what the data sheet says; draws go through all values but 0.

Not proved: that successive draws look random.
"""

from amaranth.hdl import Assert, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .parts import opened

__all__ = ["PROOFS"]

FULL = (1 << 33) - 1


class LimiterProof(Elaboratable):
    def __init__(self, cores):
        self.cores, self.dut = cores, cores.Limiter()

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.submodules.dut = opened(dut, platform, self.cores)
        free(m, dut.rate, dut.minimum, dut.slope, dut.spend, dut.beats)
        queue, coming, draw = Signal(33, name="queue"), Signal(9, name="coming"), Signal(16, init=1)
        total = Signal(35)
        m.d.comb += total.eq(queue + (coming << 16))
        m.d.sync += coming.eq(Mux(dut.spend & ~dut.drop, dut.beats, 0))
        with m.If(total > FULL + dut.rate):
            m.d.sync += queue.eq(FULL)
        with m.Elif((dut.rate == 0) | (total < dut.rate)):
            m.d.sync += queue.eq(0)
        with m.Else():
            m.d.sync += queue.eq(total - dut.rate)
        # x^16 + x^15 + x^13 + x^4 + 1.
        bit = draw[15] ^ draw[14] ^ draw[12] ^ draw[3]
        m.d.sync += draw.eq((draw << 1) | bit)
        over, chance, drops = Signal(17), Signal(33), Signal()
        beats = queue[16:]
        m.d.sync += [
            over.eq(Mux(beats > dut.minimum, beats - dut.minimum, 0)),
            chance.eq(over << dut.slope),
            drops.eq((dut.rate != 0) & (chance > draw)),
        ]
        m.d.comb += [Assert(dut.drop == drops), Assert(draw != 0)]
        # Invariants.
        m.d.comb += [
            Assert(dut.level == queue),
            Assert(dut.grown == coming << 16),
            Assert(dut.lfsr == draw),
            Assert(Mux(dut.above < 0, 0, dut.above) == over),
            Assert(dut.chance == chance),
        ]
        # Not dropped while the queue is short; two cycles behind.
        short, shorter = Signal(), Signal()
        m.d.sync += [short.eq(beats <= dut.minimum), shorter.eq(short)]
        m.d.comb += Assert(~shorter | (chance == 0))
        m.d.comb += [Cover(dut.drop & dut.spend), Cover((queue == 0) & (over != 0))]
        return m


PROOFS = (
    Proof(
        name="ltl_limiter",
        core="cores.ltl.limiter.Limiter",
        says="the queue is what was sent beyond the rate; frames are dropped by the chance stated",
        module="trebuchet.cores.ltl.limiter",
        build=LimiterProof,
        depth=2,
        cover_depth=12,
        mutants=(
            Mutant("counts_dropped", "self.spend & ~self.drop", "self.spend", 12),
            Mutant("goes_negative", "(after < 0) | (self.rate == 0)", "self.rate == 0", 6),
            Mutant("slope_off", "above[:17] << self.slope", "above[:16] << self.slope >> 1", 10),
            Mutant("always_draws", "chance > lfsr", "chance >= lfsr", 12),
            Mutant("never_drains", "level + grown - self.rate", "level + grown", 8),
        ),
        assumes="nothing",
    ),
)
