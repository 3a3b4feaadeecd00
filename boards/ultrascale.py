"""What UltraScale boards have in common: the parts that their ``attach`` is made of."""

from .capacity import Capacity
from .flash import Flash

__all__ = ["KU040", "VU9P", "add_qsfp", "base_x", "ddr4", "flash", "mt25qu01g", "qsfp_base_x"]

#: What the FPGAs have (AMD DS890, tables 4 and 11). The Alveo U200's XCU200 is a VU9P (DS962).
KU040 = Capacity(family="xcu", lut6=242_400, ff=484_800, bram36=600, dsp=1_920)
VU9P = Capacity(family="xcup", lut6=1_182_240, ff=2_364_480, bram36=2_160, dsp=6_840)


def ddr4(soc, module, idelay_hz, **phy):
    """Give the SoC its DDR4 memory, a class of ``litedram.modules``, at four times its clock.

    ``phy`` are arguments of LiteDRAM's PHY. Of a larger memory the first ``dram_bytes`` are used.
    """
    from litedram.phy import usddrphy

    plus = soc.board.capacity.family == "xcup"
    soc.ddrphy = (usddrphy.USPDDRPHY if plus else usddrphy.USDDRPHY)(
        soc.platform.request("ddram"),
        memtype="DDR4",
        sys_clk_freq=soc.sys_clk_freq,
        iodelay_clk_freq=idelay_hz,
        **phy,
    )
    soc.add_sdram(
        "sdram",
        phy=soc.ddrphy,
        module=module(soc.sys_clk_freq, "1:4"),
        size=soc.board.dram_bytes,
        l2_cache_size=0,
        with_soc_interconnect=soc.board.dram_masks,
    )


def base_x(soc, phy, clock, lane, clock_hz=200e6):
    """Give the SoC gigabit Ethernet over a transceiver: 1000BASE-X, for an optical module.

    ``phy`` is LiteEth's class of it; ``clock`` its reference, pads or a signal, of ``clock_hz``;
    ``lane`` are the pads ``rxp``, ``rxn``, ``txp`` and ``txn``.
    """
    soc.ethphy = phy(clock, lane, soc.sys_clk_freq, refclk_freq=clock_hz)
    platform, made = soc.platform, soc.ethphy
    for clk, hertz in ((made.txoutclk, made.tx_clk_freq), (made.rxoutclk, made.rx_clk_freq)):
        platform.add_period_constraint(clk, 1e9 / hertz)
        platform.add_false_path_constraints(soc.crg.cd_sys.clk, clk)
    platform.add_false_path_constraints(made.txoutclk, made.rxoutclk)


def add_qsfp(platform, clk, lane, control, standard):
    """Give ``platform`` the first lane of a QSFP cage alone, for :func:`qsfp_base_x`.

    ``clk`` are the pins of its reference clock (p, n); ``lane`` those of ``rxp``, ``rxn``, ``txp``
    and ``txn``; ``control`` pins by name, with the I/O ``standard``.
    """
    from litex.build.generic_platform import IOStandard, Pins, Subsignal

    def signals(pins):
        return [Subsignal(name, Pins(pin)) for name, pin in pins.items()]

    clk = dict(zip(("p", "n"), clk, strict=True))
    lane = dict(zip(("rxp", "rxn", "txp", "txn"), lane, strict=True))
    platform.add_extension(
        [
            ("qsfp_clk", 0, *signals(clk)),
            ("qsfp_lane", 0, *signals(lane)),
            ("qsfp_control", 0, *signals(control), IOStandard(standard)),
        ]
    )
    return platform


def qsfp_base_x(soc, **levels):
    """Give the SoC gigabit Ethernet over the lane of :func:`add_qsfp`, whose clock has 156.25 MHz.

    ``levels`` are those of the control pins, by name.
    """
    from liteeth.phy.usp_gty_1000basex import USP_GTY_1000BASEX

    request = soc.platform.request
    control = request("qsfp_control")
    soc.comb += [getattr(control, name).eq(level) for name, level in levels.items()]
    clock = request("qsfp_clk")
    soc.platform.add_period_constraint(clock.p, 1e9 / 156.25e6)
    base_x(soc, USP_GTY_1000BASEX, clock, request("qsfp_lane"), clock_hz=156.25e6)


def mt25qu01g(golden=0):
    """Layout of a Micron MT25QU01G, or of the first of two, for bitstreams of a VU9P.

    A whole one has 80,159,108 bytes; compressed, as :func:`flash` has them, what they use of the
    FPGA decides. ``golden`` is where the FPGA starts.
    """
    return Flash(
        size=128 << 20,
        golden=(golden, 0x4000000 - golden),
        bitstream=(0x4000000, 0x3000000),
        firmware=(0x7000000, 0x80000),
        config=(0x7080000, 0x2000),
        part="mt25qu01g-spi-x1_x2_x4",
    )


#: Cycles after which a load that never begins or never ends falls back (AMD UG570, "Watchdog
#: Timer": 30 bits, counted down at CCLK until start-up has ended). A whole bitstream of a VU9P, the
#: largest here, has 641,272,864 bits: 160,318,216 cycles of SPI x4, a minute at the slowest CCLK,
#: 2.7 MHz; over JTAG, should the clock be TCK there, a cycle each. So the count is the latter and a
#: quarter more: 805,306,368, five minutes at 2.7 MHz.
_LOAD_CYCLES = 0x30000000

#: Of both bitstreams (AMD UG908, table A-1): one that is no good lets the FPGA fall back.
_BITSTREAM = {
    "GENERAL.COMPRESS": "TRUE",
    "CONFIG.SPI_BUSWIDTH": "4",
    "CONFIG.SPI_32BIT_ADDR": "YES",
    "CONFIG.SPI_FALL_EDGE": "YES",
    "CONFIG.CONFIGFALLBACK": "ENABLE",
    "CONFIG.TIMER_CFG": f"0x{_LOAD_CYCLES:08x}",
}


def _set(name, value):
    return f"set_property BITSTREAM.{name} {value} [current_design]"


def flash(soc):
    """Give the SoC the flash that configures the FPGA, and the project the flash's contents.

    Beside ``NAME.bit`` Vivado then writes ``NAME.mcs``, the same as the flash's golden bitstream,
    and ``NAME_application.bin``, of which ``trebuchet image`` makes the application's. They differ
    in USR_ACCESS, by which the design knows in which of them it is (``soc/multiboot.py``).
    """
    from .ultrascale_flash import StartupFlashPads

    soc.flash_pads = StartupFlashPads()
    layout, toolchain = soc.board.flash, soc.platform.toolchain
    toolchain.bitstream_commands += [_set(name, value) for name, value in _BITSTREAM.items()]
    toolchain.bitstream_commands.append(_set("CONFIG.USR_ACCESS", "0x00000000"))
    toolchain.additional_commands += [
        f"write_cfgmem -force -format mcs -interface SPIx4 -size {layout.size >> 20} "
        f'-loadbit "up {layout.golden[0]:#x} {{build_name}}.bit" -file {{build_name}}.mcs',
        _set("CONFIG.USR_ACCESS", "0x00000001"),
        "write_bitstream -force -bin_file {build_name}_application.bit",
    ]
