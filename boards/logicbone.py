"""Logicbone rev0: LFE5UM5G-45F, 1 GB of DDR3, gigabit Ethernet."""

from . import ecp5
from .flash import Flash
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
    sys_clk_hz=50_000_000,
    dram_bytes=1 << 30,
    platform=_platform,
    attach=_attach,
    counter_width=16,
    lut_ram=1024,  # block RAM is scarcer than LUTs
    programmable=False,
    udp_services=False,
    lut4_budget=ecp5.COMB["45F"],
    flash=Flash(
        size=16 << 20,
        golden=(0x000000, 0x200000),
        bitstream=(0x200000, 0x200000),
        firmware=(0x400000, 0x80000),
        config=(0x480000, 0x2000),
    ),
    loader=("--vid", "0x1d50", "--pid", "0x6130", "--dfu"),
)
