"""The SPI flash that configures an UltraScale or UltraScale+ FPGA, at the service of the design."""

from litex.gen import LiteXModule
from migen import Cat, Instance, Signal

__all__ = ["StartupFlashPads"]


class StartupFlashPads(LiteXModule):
    """Pins of the flash by name: ``clk``, ``cs_n``, ``mosi``, ``miso``.

    All of them belong to the configuration logic; a design reaches them through the primitive
    ``STARTUPE3`` (AMD UG570, "STARTUPE3"), of which the first two clocks are lost. Write protection
    and hold, the other two of the flash's four data pins, are kept high.
    """

    def __init__(self):
        self.clk, self.cs_n, self.mosi, self.miso = (Signal() for _ in range(4))
        data_in = Signal(4)
        self.comb += self.miso.eq(data_in[1])
        self.specials += Instance(
            "STARTUPE3",
            **{name: 0 for name in ("i_GSR", "i_GTS", "i_PACK", "i_USRCCLKTS")},
            i_KEYCLEARB=1,  # active low: would clear the AES key in battery-backed RAM
            i_USRDONEO=1,
            i_USRDONETS=1,
            i_USRCCLKO=self.clk,
            i_FCSBO=self.cs_n,
            i_FCSBTS=0,
            i_DO=Cat(self.mosi, 0, 1, 1),
            i_DTS=0b0010,
            o_DI=data_in,
        )
