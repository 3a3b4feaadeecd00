"""LambdaConcept ECPIX-5 85F: 512 MB of DDR3, gigabit Ethernet, FT2232 for JTAG and UART."""

from . import ecp5
from .flash import flash_layout
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex_boards.platforms import lambdaconcept_ecpix5

    return ecp5.area_options(lambdaconcept_ecpix5.Platform(device="85F"))


def _attach(soc):
    from litedram.modules import MT41K256M16
    from litex_boards.targets.lambdaconcept_ecpix5 import _CRG

    from .ecp5_flash import EcpFlashPads

    soc.crg = _CRG(soc.platform, soc.sys_clk_freq)
    ecp5.ddr3(soc, MT41K256M16)
    ecp5.rgmii(soc, rx_delay=0)
    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))


BOARD = Board(
    name="ecpix5",
    title="LambdaConcept ECPIX-5 85F",
    flow="trellis",
    device="LFE5UM5G-85F-8BG554I",
    sys_clk_hz=60_000_000,
    dram_bytes=512 << 20,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    flash=flash_layout(16 << 20),  # ISSI IS25LP256D, of which three bytes of address reach half
    loader=("--board", "ecpix5"),
)
