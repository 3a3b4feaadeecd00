"""Radiona ULX3S 85F: SDRAM, FT231 for JTAG and UART; Ethernet by a LAN8720 module.

The module is on header J1: clock GP0 (a clock pin), RX0 GN1, RX1 GP1, CRS GN0, TX0 GN2, TX1 GP2,
TX_EN GN3.
"""

from . import ecp5
from .flash import flash_layout
from .presets import ONE_ECG
from .rmii_module import lan8720
from .schema import Board


def _platform():
    from litex.build.generic_platform import IOStandard, Pins
    from litex_boards.platforms import radiona_ulx3s

    platform = radiona_ulx3s.Platform(device="LFE5U-85F")
    platform.add_extension(lan8720("B11", "A11 A10", "C11", "B10 A9", "C10"))
    platform.add_extension([("programn", 0, Pins("M4"), IOStandard("LVCMOS33"))])
    return ecp5.area_options(platform)


def _attach(soc):
    from litedram.modules import MT48LC16M16
    from litex_boards.targets.radiona_ulx3s import _CRG

    from .ecp5_flash import EcpFlashPads

    soc.crg = _CRG(soc.platform, soc.sys_clk_freq, sdram_rate="1:2")
    ecp5.sdram(soc, MT48LC16M16, "1:2")  # newer boards have a chip of twice the size
    ecp5.rmii(soc)
    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))
    soc.programn = soc.platform.request("programn")


BOARD = Board(
    name="ulx3s",
    title="Radiona ULX3S 85F with LAN8720",
    flow="trellis",
    device="LFE5U-85F-6BG381C",
    sys_clk_hz=40_000_000,
    dram_bytes=32 << 20,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    router="patient",  # the quick one does not come to an end with seeds 1 and 2
    flash=flash_layout(16 << 20),  # ISSI IS25LP128
    multiboot="pin",
    loader=("--board", "ulx3s"),
)
