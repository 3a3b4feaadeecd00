"""Autocorrelations of a window's subbands, four lags at a time (step 8, features 4 to 6)."""

from amaranth import Array, Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["BANDS", "LAGS", "R_WIDTH", "VALUE_WIDTH", "Correlator"]

#: Subbands, their first place in the RAM, and log2 of their lengths.
BANDS = (("d1", 0, 5), ("d2", 32, 4), ("a2", 48, 4))
#: Lags computed at the same time, a multiplier each.
LAGS = 4
VALUE_WIDTH = 13
R_WIDTH = 31

#: What goes with a value: lanes that take it; the run's last; of the band's first run; of its last.
FlagLayout = data.StructLayout({"lanes": LAGS, "end": 1, "first": 1, "final": 1})


class Correlator(wiring.Component):
    """Autocorrelation r[k] of each of the :data:`BANDS` that lie in a RAM, one after the other.

    ==========================  ===  =========================================================
    ``start``                   In   1 for one cycle while not ``busy``
    ``busy``                    Out  1 as long as values are wanted
    ``a_addr`` ``b_addr``       Out  which two values are wanted
    ``a_data`` ``b_data``       In   these values, in the next cycle; signed 13
    ``x`` ``x_valid``           Out  every value of a band once, before its r[0]
    ``r`` ``r_valid``           Out  r[0], r[1] ... of a band, signed 31
    ``r_first`` ``r_last``      Out  it is r[0]; it is the band's last
    ==========================  ===  =========================================================

    Cycles: ``busy`` for 144 + 40 + 40; the last r comes 8 cycles later. r of a band may come as
    fast as one a cycle, r[0] 7 cycles after the band's last x. No back-pressure. Reset: idle.
    """

    def __init__(self):
        super().__init__(
            {
                "start": In(1),
                "busy": Out(1),
                "a_addr": Out(6),
                "a_data": In(signed(VALUE_WIDTH)),
                "b_addr": Out(6),
                "b_data": In(signed(VALUE_WIDTH)),
                "x": Out(signed(VALUE_WIDTH)),
                "x_valid": Out(1),
                "r": Out(signed(R_WIDTH)),
                "r_valid": Out(1),
                "r_first": Out(1),
                "r_last": Out(1),
            }
        )

    # r[k0 + j] = sum over t of x[t - j] * x[t + k0]: a run reads x from its start and from k0 on;
    # lane j sees the one j cycles later than the other, and works j cycles after lane 0, so that
    # the lanes' sums are ready one after the other, at the end of each run of n - k0 >= 4 values.
    # Sums are never cleared: r is the difference from the sum at the end of the lane's last run,
    # which is exact modulo 2**31.
    def elaborate(self, platform):
        m = Module()
        flags = [Signal(FlagLayout, name=f"flags{i}") for i in range(4 + LAGS)]
        m.d.comb += flags[0].eq(self._control(m))
        m.d.sync += [after.eq(before) for before, after in zip(flags, flags[1:], strict=False)]
        depth = 2 * LAGS - 1
        x = [Signal(signed(VALUE_WIDTH), name=f"x{i}") for i in range(depth)]
        y = [Signal(signed(VALUE_WIDTH), name=f"y{i}") for i in range(LAGS)]
        m.d.sync += [Cat(x).eq(Cat(self.a_data, x)), Cat(y).eq(Cat(self.b_data, y))]
        m.d.comb += [self.x.eq(x[0]), self.x_valid.eq(flags[2].lanes[0] & flags[2].first)]

        sums = [Signal(signed(R_WIDTH), name=f"sum{j}") for j in range(LAGS)]
        for j in range(LAGS):
            product = Signal(signed(2 * VALUE_WIDTH), name=f"product{j}")
            m.d.sync += product.eq(x[2 * j] * y[j])
            with m.If(flags[3 + j].lanes[j]):
                m.d.sync += sums[j].eq(sums[j] + product)

        # `lane` is the one whose sum is ready; it is in step with the lanes' delays.
        before = [Signal(signed(R_WIDTH), name=f"before{j}") for j in range(LAGS)]
        lane = Signal(range(LAGS))
        ready, run = Signal(), Signal(FlagLayout)
        newest = Signal(signed(R_WIDTH))
        m.d.comb += [
            newest.eq(Array(sums)[lane]),
            ready.eq(flags[4].end | (lane != 0)),
            run.eq(flags[4]),
        ]
        held = Signal(FlagLayout)
        with m.If(flags[4].end):
            m.d.sync += held.eq(flags[4])
        with m.If(lane != 0):
            m.d.comb += run.eq(held)
        with m.If(ready):
            m.d.sync += [
                lane.eq(lane + 1),
                self.r.eq(newest - before[0]),
                Cat(before).eq(Cat(*before[1:], newest)),
            ]
        m.d.sync += [
            self.r_valid.eq(ready),
            self.r_first.eq(run.first & (lane == 0)),
            self.r_last.eq(run.final & (lane == LAGS - 1)),
        ]
        return m

    def _control(self, m):
        """Count t = 0 .. n - k0 - 1 for k0 = 0, 4 .. n - 4, for each band."""
        at, lag, right = Signal(5), Signal(5), Signal(5)
        band = Signal(range(len(BANDS)))
        flags = Signal(FlagLayout)
        short = band != 0
        m.d.comb += [
            right.eq(at + lag),
            self.a_addr.eq(_address(band, at)),
            self.b_addr.eq(_address(band, right)),
            flags.end.eq(self.busy & right[:4].all() & (right[4] | short)),
            flags.first.eq(lag == 0),
            flags.final.eq(lag[2:4].all() & (lag[4] | short)),
        ]
        m.d.comb += [flags.lanes[j].eq(self.busy & (at >= j)) for j in range(LAGS)]
        with m.If(self.start):
            m.d.sync += [at.eq(0), lag.eq(0), band.eq(0), self.busy.eq(1)]
        with m.Elif(self.busy):
            m.d.sync += at.eq(at + 1)
            with m.If(flags.end):
                m.d.sync += [at.eq(0), lag.eq(lag + LAGS)]
                with m.If(flags.final):
                    m.d.sync += [lag.eq(0), band.eq(band + 1)]
                    m.d.sync += self.busy.eq(band != len(BANDS) - 1)
        return flags


def _address(band, at):
    """Place of a band's value in the RAM; see :data:`BANDS`."""
    low, high = at[:4], at[4]
    return Cat(low, ((band == 0) & high) | band[1], band != 0)
