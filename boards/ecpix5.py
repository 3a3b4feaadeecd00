"""LambdaConcept ECPIX-5 85F: 512 MB of DDR3, gigabit Ethernet, FT2232 for JTAG and UART."""

from . import ecp5
from .flash import Flash
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
    sys_clk_hz=50_000_000,
    dram_bytes=512 << 20,
    platform=_platform,
    attach=_attach,
    active=True,
    inspect=True,
    lut4_budget=ecp5.COMB["85F"],
    flash=Flash(  # ISSI IS25LP256D, of which three bytes of address reach half
        size=16 << 20,
        golden=(0x000000, 0x200000),
        bitstream=(0x200000, 0x200000),
        firmware=(0x400000, 0x80000),
        config=(0x480000, 0x2000),
    ),
    loader=("--board", "ecpix5"),
)
