"""Colorlight i5 v7.0 on its extension board: LFE5U-25F, SDRAM, two gigabit Ethernet ports.

Ethernet is the first port (0). There is no processor: the FPGA holds the TCP engine and a role.
"""

from . import ecp5
from .flash import Flash
from .schema import Board


def _platform():
    from litex_boards.platforms import colorlight_i5

    return ecp5.area_options(colorlight_i5.Platform(board="i5", revision="7.0"))


def _attach(soc):
    from litedram.modules import M12L64322A  # compatible with the board's EM638325
    from litex_boards.targets.colorlight_i5 import _CRG

    from .ecp5_flash import EcpFlashPads

    soc.crg = _CRG(soc.platform, soc.sys_clk_freq)
    ecp5.sdram(soc, M12L64322A)
    ecp5.rgmii(soc, tx_delay=0)
    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))


BOARD = Board(
    name="colorlight_i5",
    title="Colorlight i5 7.0",
    flow="trellis",
    device="LFE5U-25F-6BG381C",
    sys_clk_hz=60_000_000,
    dram_bytes=8 << 20,
    dram_masks=False,
    platform=_platform,
    attach=_attach,
    cpu_variant="none",
    tcp="lean",
    sessions=16,  # their records fit LUT RAM
    udp_services=False,
    lut4_budget=ecp5.COMB["25F"],
    flash=Flash(size=2 << 20, golden=(0, 1 << 20)),  # GigaDevice GD25Q16
    loader=("--board", "colorlight-i5"),
)
