"""The SPI flash that configures an ECP5, at the service of the design."""

from litex.gen import LiteXModule
from migen import Instance, Signal

__all__ = ["EcpFlashPads"]


class EcpFlashPads(LiteXModule):
    """Pins of the flash by name: ``clk``, ``cs_n``, ``mosi``, ``miso``.

    The clock pin is the configuration logic's own. A design reaches it through the primitive
    ``USRMCLK`` (Lattice FPGA-TN-02039, ECP5 and ECP5-5G sysCONFIG usage guide, "Master SPI").

    Parameters
    ----------
    pads : Record
        The platform's: ``cs_n``, ``mosi``, ``miso``, and ``wp`` and ``hold`` if they are wired,
        which are kept high.
    """

    def __init__(self, pads):
        self.clk = Signal()
        self.cs_n, self.mosi, self.miso = pads.cs_n, pads.mosi, pads.miso
        self.specials += Instance("USRMCLK", i_USRMCLKI=self.clk, i_USRMCLKTS=0)
        for name in ("wp", "hold"):
            if hasattr(pads, name):
                self.comb += getattr(pads, name).eq(1)
