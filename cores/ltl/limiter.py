"""Bandwidth limit by random early drop.

Sources: cloud-scale-acceleration, section V.A ("bandwidth limiting via random early drops");
Floyd and Jacobson, Random Early Detection (1993).
"""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Limiter"]


class Limiter(wiring.Component):
    """Drops frames by chance, the more the further their bytes exceed a rate.

    ===========  ====  =====================================================================
    ``rate``     In    1/65536 beat a cycle; 0: no limit
    ``minimum``  In    beats in the imagined queue from which on frames are dropped
    ``slope``    In    a frame is dropped with chance (beats above minimum) * 2 ** slope / 65536
    ``drop``     Out   drop the frame that begins in this cycle, if one does
    ``spend``    In    for one cycle: a frame is sent, or dropped if ``drop`` is set,
    ``beats``    In    of so many beats
    ===========  ====  =====================================================================

    The queue exists in numbers only: it grows by the frames that were sent and shrinks at ``rate``.
    It holds no frame back. ``drop`` comes from a register; the queue counts a frame 2 cycles
    after it. Chances come from a linear feedback register of 16 bits that moves every cycle.
    *Reset*: an empty queue.
    """

    rate: In(16)
    minimum: In(16)
    slope: In(4)
    drop: Out(1)
    spend: In(1)
    beats: In(9)

    def elaborate(self, platform):
        m = Module()
        level, grown = Signal(signed(34)), Signal(26)  # 16 bits of each are fraction
        lfsr = Signal(16, init=1)
        above, chance = Signal(signed(18)), Signal(33)
        self.level, self.grown, self.lfsr = level, grown, lfsr
        self.above, self.chance = above, chance
        m.d.sync += [
            lfsr.eq(Cat(lfsr[15] ^ lfsr[14] ^ lfsr[12] ^ lfsr[3], lfsr)),
            grown.eq(0),
            above.eq(level[16:33] - self.minimum),
            chance.eq(Mux(above < 0, 0, above[:17] << self.slope)),
            self.drop.eq((self.rate != 0) & (chance > lfsr)),
        ]
        with m.If(self.spend & ~self.drop):
            m.d.sync += grown.eq(self.beats << 16)
        after = Signal(signed(35))
        m.d.comb += after.eq(level + grown - self.rate)
        m.d.sync += level.eq(Mux((after < 0) | (self.rate == 0), 0, after))
        with m.If(after[33] & ~after[34]):
            m.d.sync += level.eq((1 << 33) - 1)
        return m
