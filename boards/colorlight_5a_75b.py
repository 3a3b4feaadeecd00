"""Colorlight 5A-75B v8.0, a receiver card for LED walls: LFE5U-25F, SDRAM, two gigabit ports.

Ethernet is the first port (0). There is no processor: the FPGA holds the TCP engine and a role. For
a card of revision 7.0 say so below.
"""

from . import ecp5
from .flash import Flash
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex_boards.platforms import colorlight_5a_75b

    return ecp5.area_options(colorlight_5a_75b.Platform(revision="8.0"))


def _attach(soc):
    from litedram.modules import M12L64322A
    from litex_boards.targets.colorlight_5a_75x import _CRG

    from .ecp5_flash import EcpFlashPads

    soc.crg = _CRG(soc.platform, soc.sys_clk_freq)  # the button resets the board
    ecp5.sdram(soc, M12L64322A)
    ecp5.rgmii(soc, tx_delay=0)
    if soc.board.bridge:
        ecp5.host_rgmii(soc, tx_delay=0)
    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))


BOARD = Board(
    name="colorlight_5a_75b",
    title="Colorlight 5A-75B 8.0",
    flow="trellis",
    device="LFE5U-25F-6BG256C",
    sys_clk_hz=60_000_000,
    dram_bytes=8 << 20,
    dram_masks=False,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    cpu_variant="none",
    tcp="lean",
    sessions=16,  # their records fit LUT RAM
    udp_services=False,
    flash=Flash(size=4 << 20, golden=(0, 1 << 20)),  # Winbond W25Q32JV
    loader=("--board", "colorlight"),
)
