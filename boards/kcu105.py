"""AMD KCU105: XCKU040, 2 GB of DDR4 (1 GiB is used), gigabit Ethernet (1000BASE-X) in SFP cage 0.

LiteEth has no 10G transceiver for UltraScale (GTH3), so the line is what its ``KU_1000BASEX`` makes
of the cage.
"""

from . import ultrascale
from .flash import flash_layout
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex_boards.platforms import xilinx_kcu105

    return xilinx_kcu105.Platform()


def _attach(soc):
    from litedram.modules import EDY4016A
    from liteeth.phy.ku_1000basex import KU_1000BASEX

    from .ultrascale_clocks import Clocks

    request = soc.platform.request
    button = request("cpu_reset")
    soc.crg = Clocks(soc, request("clk125"), 125e6, idelay_hz=200e6, reset=button, with_eth=True)
    ultrascale.ddr4(soc, EDY4016A, idelay_hz=200e6)
    ultrascale.base_x(soc, KU_1000BASEX, soc.crg.cd_eth.clk, request("sfp", 0))
    soc.comb += request("sfp_tx_disable_n", 0).eq(1)
    ultrascale.flash(soc)
    # The transceiver's reference comes from a clock generator of the FPGA, which works and which
    # Vivado takes for a fault.
    soc.platform.add_platform_command(
        "set_property SEVERITY {{Warning}} [get_drc_checks REQP-1753]"
    )


BOARD = Board(
    name="kcu105",
    title="AMD Kintex UltraScale KCU105",
    flow="vivado",
    device="xcku040-ffva1156-2-e",
    sys_clk_hz=125_000_000,
    dram_bytes=1 << 30,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    # The first of two Micron N25Q256A. Not all of these have the commands 12h and 21h: the board
    # reads the others, and cannot write them (docs/multiboot.md).
    flash=flash_layout(
        32 << 20,
        bitstream_bytes=0xF80000,  # one has up to 16,006,908
        part="n25q256-1.8v-spi-x1_x2_x4",
    ),
    multiboot="icap",
    capacity=ultrascale.KU040,
)
