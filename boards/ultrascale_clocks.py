"""The clocks of UltraScale and UltraScale+ boards."""

from litex.gen import LiteXModule
from litex.soc.cores.clock import USIDELAYCTRL, USMMCM
from migen import ClockDomain, Instance, Signal

__all__ = ["Clocks"]


class Clocks(LiteXModule):
    """The clocks of a board, from one of its oscillators.

    The targets of litex_boards have such a class each; some need LitePCIe to be imported at all.

    ==========  =================================================================================
    domain      clock
    ==========  =================================================================================
    ``sys``     everything; in reset until the delay elements are calibrated
    ``sys4x``   four times as fast, in phase with it: the memory's pins
    ``idelay``  ``idelay_hz``: what delays are calibrated by
    ``eth``     200 MHz, only with ``with_eth``: reference of a transceiver
    ==========  =================================================================================

    ``rst`` restarts everything, also when it comes from the clock that it stops: LiteX registers
    it in the oscillator's.

    Parameters
    ----------
    soc : TrebuchetSoC
        Its frequency is that of ``sys``.
    clk : Record
        Pads of the oscillator, requested from the platform.
    clk_hz : float
        Its frequency.
    idelay_hz : float
        200 MHz on UltraScale, 300 to 800 MHz on UltraScale+.
    reset : Signal
        A button, 1 while it is pressed; may be left out.
    with_eth : bool
        There is the domain ``eth``.
    speed_grade : int
        Of the FPGA, -1 to -3.
    """

    def __init__(self, soc, clk, clk_hz, idelay_hz, reset=0, with_eth=False, speed_grade=-2):
        self.rst = Signal()
        self.cd_sys = ClockDomain()
        self.cd_sys4x = ClockDomain(reset_less=True)
        self.cd_pll4x = ClockDomain(reset_less=True)
        self.cd_idelay = ClockDomain()
        self.pll = pll = USMMCM(speedgrade=speed_grade)
        self.comb += pll.reset.eq(reset | self.rst)
        pll.register_clkin(clk, clk_hz)
        pll.create_clkout(self.cd_pll4x, soc.sys_clk_freq * 4, buf=None, with_reset=False)
        pll.create_clkout(self.cd_idelay, idelay_hz)
        if with_eth:
            self.cd_eth = ClockDomain()
            pll.create_clkout(self.cd_eth, 200e6)
        # The way of `rst` from `sys` to the oscillator's clock.
        soc.platform.add_false_path_constraints(self.cd_sys.clk, pll.clkin)
        fast = self.cd_pll4x.clk
        self.specials += [
            Instance("BUFGCE_DIV", p_BUFGCE_DIVIDE=4, i_CE=1, i_I=fast, o_O=self.cd_sys.clk),
            Instance("BUFGCE", i_CE=1, i_I=fast, o_O=self.cd_sys4x.clk),
        ]
        self.idelayctrl = USIDELAYCTRL(cd_ref=self.cd_idelay, cd_sys=self.cd_sys)
