"""Lattice ECP5 Versa: LFE5UM-45F, DDR3, gigabit Ethernet over RGMII, FT2232 for JTAG and UART.

The board has two Ethernet ports; the one next to the power connector (port 0) is used.
"""

import copy

from .flash import Flash
from .schema import Board

SYS_CLK_HZ = 50_000_000


def _platform():
    from litex_boards.platforms import lattice_versa_ecp5

    platform = lattice_versa_ecp5.Platform(device="LFE5UM", toolchain="trellis")
    # Comparisons with constants cost fewer LUTs outside the carry chains. LiteX has no option
    # for this, and its tool description is where it keeps the options of Yosys.
    platform.toolchain._synth_opts += "-cmp2softlogic "
    return platform


def _attach(soc):
    from litedram import modules
    from litedram.phy import ECP5DDRPHY
    from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII
    from litex_boards.targets.lattice_versa_ecp5 import _CRG

    from .ecp5_flash import EcpFlashPads

    class Mt41k64m16(modules.MT41K64M16):
        # LiteDRAM states tRFC in clocks, which wastes a tenth of the bandwidth at our clock; the
        # data sheet (Micron, 1Gb DDR3L) says 110 ns.
        speedgrade_timings = {"default": copy.copy(modules.MT41K64M16.speedgrade_timings["800"])}
        speedgrade_timings["default"].tRFC = (None, 110)

    soc.crg = _CRG(soc.platform, soc.sys_clk_freq)
    soc.ddrphy = ECP5DDRPHY(soc.platform.request("ddram"), sys_clk_freq=soc.sys_clk_freq)
    soc.comb += [
        soc.crg.stop.eq(soc.ddrphy.init.stop),
        soc.crg.reset.eq(soc.ddrphy.init.reset),
    ]
    soc.add_sdram(
        "sdram",
        phy=soc.ddrphy,
        module=Mt41k64m16(soc.sys_clk_freq, "1:2"),
        l2_cache_size=0,
    )
    soc.ethphy = LiteEthPHYRGMII(
        clock_pads=soc.platform.request("eth_clocks", 0),
        pads=soc.platform.request("eth", 0),
        tx_delay=0,
        rx_delay=0,
    )
    soc.flash_pads = EcpFlashPads(soc.platform.request("spiflash"))
    # The PHY chip's receive clock is the transmit clock too.
    soc.platform.add_period_constraint(soc.ethphy.crg.cd_eth_rx.clk, 8.0)


BOARD = Board(
    name="versa_ecp5",
    title="Lattice ECP5 Versa",
    flow="trellis",
    device="LFE5UM-45F-8BG381C",
    sys_clk_hz=SYS_CLK_HZ,
    dram_bytes=128 << 20,
    platform=_platform,
    attach=_attach,
    counter_width=16,  # half the LUTs of 24 counters and of their way to the CPU
    programmable=False,  # 40 registers less
    udp_services=False,  # with them the router does not come to an end
    seed=2,
    lut4_budget=43_848,
    flash=Flash(  # Micron N25Q128A, which also configures the FPGA
        size=16 << 20,
        golden=(0x000000, 0x200000),
        bitstream=(0x200000, 0x200000),
        firmware=(0x400000, 0x80000),
        config=(0x480000, 0x2000),
        max_hz=25_000_000,
    ),
    # openFPGALoader has no name for this board; its FT2232 is wired in the usual way.
    loader=("--cable", "ft2232"),
)
