"""OrangeCrab r0.2 85F: DDR3 on a Feather board; Ethernet by a LAN8720 module.

The module is on the Feather header: clock 13, RX0 5, RX1 6, CRS 9, TX0 10, TX1 11, TX_EN 12. The
console is on its pins TX and RX, at 3.3 V.
"""

from . import ecp5
from .flash import flash_layout
from .presets import ONE_ECG
from .rmii_module import lan8720
from .schema import Board


def _platform():
    from litex_boards.platforms import gsd_orangecrab

    platform = gsd_orangecrab.Platform(device="85F")
    platform.add_extension(gsd_orangecrab.feather_serial)
    pins = lan8720("GPIO:13", "GPIO:5 GPIO:6", "GPIO:9", "GPIO:10 GPIO:11", "GPIO:12")
    platform.add_extension(pins)
    return ecp5.area_options(platform)


def _attach(soc):
    from litedram.modules import MT41K64M16
    from litex_boards.targets.gsd_orangecrab import _CRGSDRAM

    from .ecp5_flash import EcpFlashPads

    soc.crg = _CRGSDRAM(soc.platform, soc.sys_clk_freq)
    pads = ecp5.ddr3(soc, MT41K64M16, dm_remapping={0: 1, 1: 0}, cmd_delay=100)
    soc.ddrphy.settings.rtt_nom = "disabled"
    # Pins beside the memory's are wired to its supplies.
    soc.comb += [pads.vccio.eq(~0), pads.gnd.eq(0)]
    ecp5.rmii(soc)
    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))


BOARD = Board(
    name="orangecrab",
    title="OrangeCrab r0.2 85F with LAN8720",
    flow="trellis",
    device="LFE5U-85F-8MG285C",
    sys_clk_hz=60_000_000,
    dram_bytes=128 << 20,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    router="patient",  # the quick one has not been tried
    # Winbond W25Q128JV, behind the bootloader, which starts one bitstream only
    flash=flash_layout(16 << 20, start=512 << 10, bitstream=(0, 0)),
    loader=("--vid", "0x1209", "--pid", "0x5af0", "--dfu"),
)
