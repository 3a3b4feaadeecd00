"""GSG ButterStick r1.0: LFE5UM5G-85F, DDR3, gigabit Ethernet, three SYZYGY connectors.

The board has no UART of its own: the console is on pins S0 (from the board) and S1 of the first
SYZYGY connector, at 3.3 V.
"""

from . import ecp5
from .flash import flash_layout
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex.build.generic_platform import IOStandard, Pins, Subsignal
    from litex_boards.platforms import gsd_butterstick

    platform = gsd_butterstick.Platform(device="85F")
    tx, rx = Subsignal("tx", Pins("SYZYGY0:S0")), Subsignal("rx", Pins("SYZYGY0:S1"))
    flash = [("cs_n", "R2"), ("mosi", "W2"), ("miso", "V2"), ("wp", "Y2"), ("hold", "W1")]
    flash = [Subsignal(name, Pins(pin)) for name, pin in flash]
    level = IOStandard("LVCMOS33")
    platform.add_extension([("serial", 0, tx, rx, level), ("spiflash", 0, *flash, level)])
    return ecp5.area_options(platform)


def _attach(soc):
    from litedram.modules import MT41K64M16
    from litex_boards.targets.gsd_butterstick import _CRG

    from .ecp5_flash import EcpFlashPads

    soc.crg = _CRG(soc.platform, soc.sys_clk_freq)
    ecp5.ddr3(soc, MT41K64M16)
    ecp5.rgmii(soc, rx_delay=0)  # its KSZ9031 delays the receive clock
    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))


BOARD = Board(
    name="butterstick",
    title="ButterStick r1.0",
    flow="trellis",
    device="LFE5UM5G-85F-8BG381C",
    sys_clk_hz=60_000_000,
    dram_bytes=128 << 20,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    router="patient",  # the quick one drives wires apart
    # Winbond W25Q128JV, behind the bootloader, which starts one bitstream only
    flash=flash_layout(16 << 20, start=4 << 20, bitstream=(0, 0)),
    loader=("--board", "butterstick"),
)
