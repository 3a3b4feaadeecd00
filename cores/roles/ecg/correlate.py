"""Sums over the variance of an autocorrelation, four lags at a time (step 8, features 4 to 6)."""

from amaranth import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ....models.ecg import model

__all__ = ["LAGS", "Correlator"]

#: Lags computed at the same time, a multiplier each.
LAGS = 4
VALUE_WIDTH = 13
R_WIDTH = 31
Q_WIDTH = 18


class Correlator(wiring.Component):
    """Autocorrelation of n values, scaled by r[0], and the sums its variance is made of.

    ====================  ===  ===============================================================
    ``start``             In   1 for one cycle while not ``busy``: work on ``size`` values
    ``size_log2``         In   4 or 5: n = 16 or 32; stable until ``done``
    ``a_addr`` ``b_addr``  Out  which two values are wanted
    ``a_data`` ``b_data``  In   these values, in the same cycle; signed 13
    ``busy``              Out  1 until no more values are wanted
    ``done``              Out  1 for one cycle: the results below are valid in it
    ``total``             Out  sum of q[k], signed 23
    ``squares``           Out  sum of q[k]**2, 38 bit
    ``shift``             Out  the scale s
    ====================  ===  ===============================================================

    Cycles while busy: 144 + 1 for n = 32, 40 + 1 for n = 16; ``done`` comes 11 cycles later; the
    next start may come as soon as ``busy`` is 0. Reset: idle.
    """

    def __init__(self):
        super().__init__(
            {
                "start": In(1),
                "size_log2": In(3),
                "a_addr": Out(5),
                "a_data": In(signed(VALUE_WIDTH)),
                "b_addr": Out(5),
                "b_data": In(signed(VALUE_WIDTH)),
                "busy": Out(1),
                "done": Out(1),
                "total": Out(signed(23)),
                "squares": Out(38),
                "shift": Out(4),
            }
        )

    # r[k0 + j] = sum over t of x[t - j] * x[t + k0]: one stream of x from its start, one from k0
    # on, and a delay line on the former give four lags. Four sums leave the multipliers at the end
    # of each run of n - k0 >= 4 values, so that handing them on one by one never falls behind.
    def elaborate(self, platform):
        m = Module()
        begin, end, first, final = (Signal(name=n) for n in ("begin", "end", "first", "final"))
        self._control(m, begin, end, first, final)
        lane = [Signal(signed(VALUE_WIDTH), name=f"lane{j}") for j in range(LAGS)]
        right = Signal(signed(VALUE_WIDTH))
        flags1, flags2, flags3 = (Signal(5, name=f"flags{i}") for i in (1, 2, 3))
        flags = Cat(self.busy, begin, end, first, final)
        m.d.sync += [flags1.eq(flags), flags2.eq(flags1), flags3.eq(flags2)]
        m.d.sync += [lane[0].eq(self.a_data), right.eq(self.b_data)]
        for j in range(1, LAGS):
            m.d.sync += lane[j].eq(Mux(begin, 0, lane[j - 1]))

        product = [Signal(signed(2 * VALUE_WIDTH), name=f"product{j}") for j in range(LAGS)]
        sums = [Signal(signed(R_WIDTH), name=f"sum{j}") for j in range(LAGS)]
        for j in range(LAGS):
            m.d.sync += product[j].eq(lane[j] * right)
            with m.If(flags2[0]):
                m.d.sync += sums[j].eq(Mux(flags2[1], 0, sums[j]) + product[j])

        held = [Signal(signed(R_WIDTH), name=f"held{j}") for j in range(LAGS)]
        left = Signal(range(LAGS + 1))
        is_first, is_final = Signal(), Signal()
        with m.If(flags3[0] & flags3[2]):
            m.d.sync += [held[j].eq(sums[j]) for j in range(LAGS)]
            m.d.sync += [left.eq(LAGS), is_first.eq(flags3[3]), is_final.eq(flags3[4])]
        with m.Elif(left != 0):
            m.d.sync += [held[j].eq(held[j + 1]) for j in range(LAGS - 1)]
            m.d.sync += [left.eq(left - 1), is_first.eq(0)]
        self._scale(m, held[0], left != 0, is_first, is_final & (left == 1))
        return m

    def _control(self, m, begin, end, first, final):
        """Count t = 0 .. n - k0 - 1 for k0 = 0, 4 .. n - 4."""
        at, lag = Signal(6), Signal(6)
        size = Signal(6)
        m.d.comb += [
            size.eq(Mux(self.size_log2 == 5, 32, 16)),
            self.a_addr.eq(at),
            self.b_addr.eq(at + lag),
            begin.eq(at == 0),
            end.eq(at + lag == size - 1),
            first.eq(lag == 0),
            final.eq(lag == size - LAGS),
        ]
        with m.If(self.start):
            m.d.sync += [at.eq(0), lag.eq(0), self.busy.eq(1)]
        with m.Elif(self.busy):
            m.d.sync += at.eq(at + 1)
            with m.If(end):
                m.d.sync += [at.eq(0), lag.eq(lag + LAGS), self.busy.eq(~final)]

    def _scale(self, m, value, valid, first, final):
        """q = r >> s, then its sum and sum of squares; five stages."""
        low = model.CORRELATION_BITS
        shift = Signal(4)
        a, b = Signal(signed(R_WIDTH)), Signal(signed(R_WIDTH))
        q, q2 = Signal(signed(Q_WIDTH)), Signal(signed(Q_WIDTH))
        square = Signal(2 * Q_WIDTH)
        flags = [Signal(3, name=f"q_flags{i}") for i in range(5)]
        m.d.sync += [
            Cat(flags).eq(Cat(valid, first, final, flags)),
            a.eq(value),
            b.eq(a >> Cat(C(0, 2), shift[2:])),
            q.eq(b >> shift[:2]),
            q2.eq(q),
            square.eq(q * q),
        ]
        with m.If(valid & first):
            m.d.sync += shift.eq(0)
            for i in range(low, R_WIDTH):
                with m.If(value[i]):
                    m.d.sync += shift.eq(i - low + 1)
        m.d.sync += self.done.eq(flags[3][0] & flags[3][2])
        with m.If(flags[3][0]):
            m.d.sync += [
                self.total.eq(Mux(flags[3][1], 0, self.total) + q2),
                self.squares.eq(Mux(flags[3][1], 0, self.squares) + square),
                self.shift.eq(shift),
            ]
