"""Logicbone rev0: LFE5UM5G-45F, 1 GB of DDR3, gigabit Ethernet."""

from . import ecp5
from .flash import flash_layout
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex_boards.platforms import logicbone

    return ecp5.area_options(logicbone.Platform(device="45F"))


def _attach(soc):
    from litedram.modules import MT41K512M16
    from litex_boards.targets.logicbone import _CRG

    from .ecp5_flash import EcpFlashPads

    soc.crg = _CRG(soc.platform, soc.sys_clk_freq)
    ecp5.ddr3(soc, MT41K512M16)
    ecp5.rgmii(soc)
    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))


BOARD = Board(
    name="logicbone",
    title="Logicbone rev0",
    flow="trellis",
    device="LFE5UM5G-45F-8BG381C",
    sys_clk_hz=60_000_000,
    dram_bytes=1 << 30,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    tcp="lean",
    udp_services=False,
    # behind the bootloader, which starts one bitstream only
    flash=flash_layout(16 << 20, start=1 << 20, bitstream=(0, 0)),
    loader=("--vid", "0x1d50", "--pid", "0x6130", "--dfu"),
)
