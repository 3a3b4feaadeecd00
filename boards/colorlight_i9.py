"""Colorlight i9 v7.2 on its extension board: LFE5U-45F, SDRAM, two gigabit Ethernet ports.

Ethernet is the first port (0); :mod:`.colorlight_i9_bridge` uses the second, too. The console is
the serial port of the extension board's USB.
"""

from . import ecp5
from .flash import flash_layout
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex_boards.platforms import colorlight_i5

    return ecp5.area_options(colorlight_i5.Platform(board="i9", revision="7.2"))


def _attach(soc):
    from litedram.modules import M12L64322A  # compatible with the board's EM638325
    from litex_boards.targets.colorlight_i5 import _CRG

    from .ecp5_flash import EcpFlashPads

    soc.crg = _CRG(soc.platform, soc.sys_clk_freq)
    ecp5.sdram(soc, M12L64322A)
    ecp5.rgmii(soc, tx_delay=0)
    if soc.board.bridge:
        ecp5.host_rgmii(soc, tx_delay=0)
    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))


BOARD = Board(
    name="colorlight_i9",
    title="Colorlight i9 7.2",
    flow="trellis",
    device="LFE5U-45F-6BG381C",
    sys_clk_hz=50_000_000,
    dram_bytes=8 << 20,
    dram_masks=False,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    tcp="lean",
    udp_services=False,
    seed=1,
    flash=flash_layout(8 << 20),  # Winbond W25Q64JV
    loader=("--board", "colorlight-i9"),
)
