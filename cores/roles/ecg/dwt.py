"""Two-level decimating wavelet transform (quadratic spline), a pair of samples a cycle."""

from amaranth import Cat, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["DwtLevel", "TwoLevelDwt"]


class DwtLevel(wiring.Component):
    """One level: ``a = (before + 3 even + 3 odd + after + 4) >> 3``, ``d = even - odd`` (step 1).

    =============================  ===  =========================================================
    ``i_valid`` ``i_last``         In   a pair is there; it ends the block
    ``i_even`` ``i_odd``           In   samples 2n and 2n+1, ``bits`` wide, signed
    ``o_valid`` ``o_last``         Out  a coefficient pair is there; it ends the block
    ``o_a`` ``o_d``                Out  approximation (``bits``) and detail (``bits + 1``), signed
    =============================  ===  =========================================================

    Parameters: ``bits``; ``gap``, cycles from the last pair until its own coefficients are begun.

    Throughput: a pair a cycle. Latency: 2 cycles after the following pair (or ``gap`` after the
    last one). No back-pressure: the consumer takes every value. At least one cycle without
    ``i_valid`` follows ``i_last``. A block may have any number of pairs from 1 on. Reset: between
    blocks.
    """

    def __init__(self, bits, gap=1):
        self.bits, self.gap = bits, gap
        super().__init__(
            {
                "i_valid": In(1),
                "i_last": In(1),
                "i_even": In(signed(bits)),
                "i_odd": In(signed(bits)),
                "o_valid": Out(1),
                "o_last": Out(1),
                "o_a": Out(signed(bits)),
                "o_d": Out(signed(bits + 1)),
            }
        )

    # A pair waits in (even, odd) for its right neighbour; the last pair, having none, is its own.
    def elaborate(self, platform):
        m = Module()
        bits = self.bits
        even, odd, before = (Signal(signed(bits), name=n) for n in ("even", "odd", "before"))
        waiting = Signal()
        flush = Signal()
        after = Signal(signed(bits))

        valid, last = Signal(), Signal()
        middle = Signal(signed(bits + 2))
        sides = Signal(signed(bits + 2))
        detail = Signal(signed(bits + 1))

        m.d.comb += after.eq(odd)
        with m.If(self.i_valid):
            m.d.comb += after.eq(self.i_even)
            m.d.sync += [even.eq(self.i_even), odd.eq(self.i_odd), waiting.eq(1)]
            with m.If(waiting):
                m.d.sync += before.eq(odd)
            with m.Else():
                m.d.sync += before.eq(self.i_even)
        flushes = Signal(self.gap)
        m.d.comb += flush.eq(flushes[-1])
        m.d.sync += flushes.eq(Cat(self.i_valid & self.i_last, flushes))
        with m.If(flush):
            m.d.sync += waiting.eq(0)

        m.d.sync += [
            valid.eq((self.i_valid & waiting) | flush),
            last.eq(flush),
            # x - ~y is x + y + 1, which makes three times the one and once the other 4 more.
            middle.eq(even - ~odd),
            sides.eq(before - ~after),
            detail.eq(even - odd),
            self.o_valid.eq(valid),
            self.o_last.eq(last),
            self.o_a.eq(((middle << 1) + middle + sides) >> 3),
            self.o_d.eq(detail),
        ]
        return m


class TwoLevelDwt(wiring.Component):
    """Two levels of :class:`DwtLevel`; the second works on the first's approximation.

    ======================================  ===  ================================================
    ``i_valid i_last i_even i_odd``         In   as :class:`DwtLevel`; an even number of pairs
    ``valid1`` ``a1`` ``d1``                Out  level 1, half as many values as samples
    ``valid2`` ``last2`` ``a2`` ``d2``      Out  level 2, a quarter; ``last2`` ends the block
    ======================================  ===  ================================================

    Latency of level 2: 5 cycles after the pair that completes it. At least 8 cycles without
    ``i_valid`` follow ``i_last`` before the next block. Throughput, back-pressure: as one level.
    """

    def __init__(self, bits, gap=1):
        self.bits, self.gap = bits, gap
        super().__init__(
            {
                "i_valid": In(1),
                "i_last": In(1),
                "i_even": In(signed(bits)),
                "i_odd": In(signed(bits)),
                "valid1": Out(1),
                "a1": Out(signed(bits)),
                "d1": Out(signed(bits + 1)),
                "valid2": Out(1),
                "last2": Out(1),
                "a2": Out(signed(bits)),
                "d2": Out(signed(bits + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.level1 = level1 = DwtLevel(self.bits, self.gap)
        m.submodules.level2 = level2 = DwtLevel(self.bits, self.gap)
        held = Signal(signed(self.bits))
        odd = Signal()
        with m.If(level1.o_valid):
            m.d.sync += [held.eq(level1.o_a), odd.eq(~odd & ~level1.o_last)]
        m.d.comb += [
            level1.i_valid.eq(self.i_valid),
            level1.i_last.eq(self.i_last),
            level1.i_even.eq(self.i_even),
            level1.i_odd.eq(self.i_odd),
            self.valid1.eq(level1.o_valid),
            self.a1.eq(level1.o_a),
            self.d1.eq(level1.o_d),
            level2.i_valid.eq(level1.o_valid & odd),
            level2.i_last.eq(level1.o_last),
            level2.i_even.eq(held),
            level2.i_odd.eq(level1.o_a),
            self.valid2.eq(level2.o_valid),
            self.last2.eq(level2.o_last),
            self.a2.eq(level2.o_a),
            self.d2.eq(level2.o_d),
        ]
        return m
