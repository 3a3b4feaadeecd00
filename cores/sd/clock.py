"""Clock of an SD bus: divided, stopped without glitches, with strobes for edges and samples."""

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SdClock"]


class SdClock(wiring.Component):
    """Generates the bus clock and the strobes by which the engines move.

    ===============  ===  ====  ===========================================================
    member           dir  bits  meaning
    ===============  ===  ====  ===========================================================
    ``half``         In   8     cycles of each half period, less 1
    ``run``          In   1     the clock may rise; it stops low, and is never cut short
    ``delay``        In   2     cycles from the rising edge to the sample, 0 to 3
    ``cmd_driven``   In   1     the host drives CMD: what is sampled there is its own
    ``dat_driven``   In   1     as ``cmd_driven``, of the data lines
    ``sd_clk``       Out  1     the bus clock, from a register; 0 after reset
    ``fall``         Out  1     outputs change with the next edge of the system clock
    ``cmd_sample``   Out  1     a sample of CMD is valid: one for each rising edge at which
                                the host did not drive it
    ``dat_sample``   Out  1     as ``cmd_sample``, of the data lines
    ===============  ===  ====  ===========================================================

    The pins' inputs are registered once outside; with ``delay`` 0 a sample is the level just
    before the rising edge reaches the pin. Samples belong to their edge, also when the clock has
    stopped since. Each half period lasts ``half + 1`` cycles or, the low one, longer; a new
    ``half`` counts from the next edge on. Change ``delay`` while no sample is in flight. The
    levels are those of the SD Physical Layer Simplified Specification, 6.6 (host outputs change
    at the falling edge, which meets default and high-speed timing).
    """

    half: In(8)
    run: In(1)
    delay: In(2)
    cmd_driven: In(1)
    dat_driven: In(1)
    sd_clk: Out(1)
    fall: Out(1)
    cmd_sample: Out(1)
    dat_sample: Out(1)

    def elaborate(self, platform):
        m = Module()
        count, rise = Signal(8), Signal()
        self.count = count
        with m.If(count != 0):
            m.d.sync += count.eq(count - 1)
        with m.Elif(self.sd_clk | self.run):
            m.d.sync += [count.eq(self.half), self.sd_clk.eq(~self.sd_clk)]
            m.d.comb += [self.fall.eq(self.sd_clk), rise.eq(~self.sd_clk)]
        self.lines = {"cmd": Signal(4, name="cmd_line"), "dat": Signal(4, name="dat_line")}
        for line, driven, sample in (
            (self.lines["cmd"], self.cmd_driven, self.cmd_sample),
            (self.lines["dat"], self.dat_driven, self.dat_sample),
        ):
            m.d.sync += line.eq(Cat(rise & ~driven, line))
            m.d.comb += sample.eq(Array(line)[self.delay])
        return m
