"""Lattice ECP5 Versa: LFE5UM-45F, DDR3, gigabit Ethernet over RGMII, FT2232 for JTAG and UART.

The board has two Ethernet ports; the one next to the power connector (port 0) is used.
"""

from . import ecp5
from .flash import flash_layout
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex_boards.platforms import lattice_versa_ecp5

    return ecp5.area_options(lattice_versa_ecp5.Platform(device="LFE5UM", toolchain="trellis"))


def _attach(soc):  # spelled out: with other names of signals, seed 2 does not come to an end
    from litedram.modules import MT41K64M16
    from litedram.phy import ECP5DDRPHY
    from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII
    from litex_boards.targets.lattice_versa_ecp5 import _CRG

    from .ecp5_flash import EcpFlashPads

    soc.crg = _CRG(soc.platform, soc.sys_clk_freq)
    soc.ddrphy = ECP5DDRPHY(soc.platform.request("ddram"), sys_clk_freq=soc.sys_clk_freq)
    ecp5.stop_and_reset(soc)
    module = ecp5.ddr3_module(soc, MT41K64M16)
    settings = ecp5.ddr3_controller()
    soc.add_sdram(
        "sdram", phy=soc.ddrphy, module=module, l2_cache_size=0, controller_settings=settings
    )
    clock_pads, pads = soc.platform.request("eth_clocks", 0), soc.platform.request("eth", 0)
    soc.ethphy = LiteEthPHYRGMII(clock_pads=clock_pads, pads=pads, tx_delay=0, rx_delay=0)
    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))


BOARD = Board(
    name="versa_ecp5",
    title="Lattice ECP5 Versa",
    flow="trellis",
    device="LFE5UM-45F-8BG381C",
    sys_clk_hz=60_000_000,
    dram_bytes=128 << 20,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    tcp="lean",
    udp_services=False,  # with them the router does not come to an end
    seed=2,
    cpu_variant="lite",
    firmware="memory",  # it would take a quarter of the block RAMs
    sram_bytes=0x1000,
    # Micron N25Q128A, which also configures the FPGA.
    flash=flash_layout(16 << 20, with_golden_firmware=True),
    # openFPGALoader has no name for this board; its FT2232 is wired in the usual way.
    loader=("--cable", "ft2232"),
)
