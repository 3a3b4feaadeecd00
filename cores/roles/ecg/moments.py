"""Sums that variances are made of, and extrema (step 8)."""

from amaranth import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from .correlate import R_WIDTH, VALUE_WIDTH

__all__ = ["BandSums", "ScaledSums"]

Q_WIDTH = 18


class BandSums(wiring.Component):
    """Sum and extrema of the values of a band.

    ===================  ===  =================================================================
    ``x`` ``x_valid``    In   a value, signed 13
    ``clear``            In   1 for one cycle without ``x_valid``: the next band begins
    ``total``            Out  sum, signed 18
    ``most`` ``least``   Out  largest value, 0 if none is positive; smallest, 0 if none is negative
    ===================  ===  =================================================================

    Latency 1 cycle. Reset: as after ``clear``.
    """

    def __init__(self):
        super().__init__(
            {
                "x": In(signed(VALUE_WIDTH)),
                "x_valid": In(1),
                "clear": In(1),
                "total": Out(signed(VALUE_WIDTH + 5)),
                "most": Out(signed(VALUE_WIDTH)),
                "least": Out(signed(VALUE_WIDTH)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        with m.If(self.x_valid):
            m.d.sync += self.total.eq(self.total + self.x)
            with m.If(self.x > self.most):
                m.d.sync += self.most.eq(self.x)
            with m.If(self.x < self.least):
                m.d.sync += self.least.eq(self.x)
        with m.If(self.clear):
            m.d.sync += [self.total.eq(0), self.most.eq(0), self.least.eq(0)]
        return m


class ScaledSums(wiring.Component):
    """Sum and sum of squares, of the window or of an autocorrelation scaled by its r[0].

    ===========================  ===  ========================================================
    ``value`` ``value_valid``    In   a value of the window, signed 12
    ``r`` ``r_valid``            In   a value of an autocorrelation, signed 31; ``r_first``: r[0];
                                      ``r_last``: its last. Never as long as values come
    ``clear``                    In   1 for one cycle: forget both sums; nothing is on its way
    ``total``                    Out  sum, signed 23
    ``squares``                  Out  sum of squares, 38 bit
    ``shift``                    Out  the scale of the autocorrelation
    ``done``                     Out  1 for one cycle: the sums of an autocorrelation hold
    ===========================  ===  ========================================================

    Latency: 2 cycles for values, 5 for an autocorrelation (``done``). Throughput one a cycle.
    Reset: as after ``clear``.
    """

    def __init__(self):
        super().__init__(
            {
                "value": In(signed(12)),
                "value_valid": In(1),
                "r": In(signed(R_WIDTH)),
                "r_valid": In(1),
                "r_first": In(1),
                "r_last": In(1),
                "clear": In(1),
                "total": Out(signed(23)),
                "squares": Out(38),
                "shift": Out(4),
                "done": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        low = model.CORRELATION_BITS
        with m.If(self.r_valid & self.r_first):
            m.d.sync += self.shift.eq(0)
            for i in range(low, R_WIDTH):
                with m.If(self.r[i]):
                    m.d.sync += self.shift.eq(i - low + 1)
        a, b = Signal(signed(R_WIDTH)), Signal(signed(R_WIDTH))
        q, operand, addend = (Signal(signed(Q_WIDTH), name=n) for n in ("q", "operand", "addend"))
        square = Signal(2 * Q_WIDTH)
        valid, last = Signal(3), Signal(5)
        add = Signal()
        m.d.sync += [
            valid.eq(Cat(self.r_valid, valid)),
            last.eq(Cat(self.r_valid & self.r_last, last)),
            a.eq(self.r),
            b.eq(a >> Cat(C(0, 2), self.shift[2:])),
            q.eq(b >> self.shift[:2]),
            addend.eq(operand),
            square.eq(operand * operand),
            add.eq(valid[-1] | self.value_valid),
        ]
        m.d.comb += [operand.eq(Mux(self.value_valid, self.value, q)), self.done.eq(last[-1])]
        with m.If(self.clear):
            m.d.sync += [self.total.eq(0), self.squares.eq(0)]
        with m.Elif(add):
            m.d.sync += [
                self.total.eq(self.total + addend),
                self.squares.eq(self.squares + square),
            ]
        return m
