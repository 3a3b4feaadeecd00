"""AMD Alveo U200: XCU200 (a VU9P), 16 GB of DDR4 (1 GiB is used), gigabit Ethernet (1000BASE-X).

The line is lane 1 of QSFP cage 0, for an SFP module in an adapter: what LiteEth has for these
transceivers. Its 10GBASE-R for them is the transceiver alone, without 64b/66b coding.

The memory's chips have no byte masks, so every write is of whole words (``soc/words.py``).
"""

from . import ultrascale
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex_boards.platforms import xilinx_alveo_u200

    return ultrascale.add_qsfp(
        xilinx_alveo_u200.Platform(),
        # The oscillator Si570: 156.25 MHz from power-up. The cage's other reference, of an Si5335,
        # has 161.13 MHz until that is reset with another choice; but clk300 comes from it too.
        clk=("M11", "M10"),
        lane=("N4", "N3", "N9", "N8"),
        control={"modskll": "BE16", "resetl": "BE17", "lpmode": "BD18", "refclk_reset": "AT22"},
        standard="LVCMOS12",
    )


def _attach(soc):
    from litedram.modules import MTA18ASF2G72PZ

    from .ultrascale_clocks import Clocks

    soc.crg = Clocks(soc, soc.platform.request("clk300", 0), 300e6, idelay_hz=500e6)
    ultrascale.ddr4(soc, MTA18ASF2G72PZ, idelay_hz=500e6, cmd_latency=1, is_rdimm=True)
    ultrascale.qsfp_base_x(soc, modskll=0, resetl=1, lpmode=0, refclk_reset=0)
    ultrascale.flash(soc)


BOARD = Board(
    name="alveo_u200",
    title="AMD Alveo U200",
    flow="vivado",
    device="xcu200-fsgd2104-2-e",
    sys_clk_hz=125_000_000,
    dram_bytes=1 << 30,
    dram_masks=False,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    data_width=64,
    flash=ultrascale.mt25qu01g(0x1002000),  # behind the card's own recovery image
    multiboot="icap",
    capacity=ultrascale.VU9P,
)
