"""The simulated board: the whole SoC as the Verilog module ``trebuchet_sim``.

Ports (byte streams with ready and valid; the harness in ``sim/harness`` is at the other end):

====================  =====  ====================================================================
port                  width  meaning
====================  =====  ====================================================================
``sys_clk``           1      the clock of everything
``sys_rst``           1      synchronous reset
``restarting``        1      the SoC is in reset, also by itself (watchdog, command)
``uart_tx_valid``     1      console, from the SoC; ``uart_tx_ready``, ``uart_tx_data[8]``
``uart_rx_valid``     1      console, to the SoC; ``uart_rx_ready``, ``uart_rx_data[8]``
``eth_rx_valid``      1      link, to the SoC; ``eth_rx_ready``, ``eth_rx_data[8]``, ``eth_rx_last``
``eth_tx_valid``      1      link, from the SoC; ``eth_tx_ready``, ``eth_tx_data[8]``,
                             ``eth_tx_last``
``host_eth_…``               with a bridge only: the link to the host, as ``eth_…``, which is then
                             the one to the network
``flash_clk``         1      SPI flash; ``flash_cs_n``, ``flash_mosi``, ``flash_miso`` (in)
``drive_…``                  with ``drive="stream"`` only: a drive port (``cores/drive/port.py``),
                             ``drive_wide`` is 1 if its beats have 64 bits
``sdcard_…``                 with ``drive="sd"`` only: a card slot: ``sdcard_clk``, ``sdcard_cd``
                             (in, 0: a card is there), ``sdcard_cmd_o``, ``sdcard_cmd_oe``,
                             ``sdcard_cmd_i``, ``sdcard_dat_o[4]``, ``sdcard_dat_oe``,
                             ``sdcard_dat_i[4]``
``tick_external``     1      1: protocol time advances with ``tick``; 0: with the divided clock
``tick``              1      one cycle a millisecond of protocol time
====================  =====  ====================================================================

Frames have their preamble and FCS, so LiteEth's checkers are part of the simulation. The SDRAM is
LiteDRAM's model of a single-data-rate chip, the smallest that takes the shell's memory map.
"""

from ..models.plan import Plan
from .flash import Flash
from .schema import HOST_DOMAINS, Board

__all__ = ["BOARD", "with_boot_rom", "with_bridge", "without_cpu"]

#: SDRAM timings are those of this clock; they do not depend on how fast the simulation runs.
SDRAM_CLK_HZ = 100_000_000


def _io():
    from litex.build.generic_platform import Pins, Subsignal

    def byte_stream(prefix, last):
        lines = [
            Subsignal(f"{prefix}_valid", Pins(1)),
            Subsignal(f"{prefix}_ready", Pins(1)),
            Subsignal(f"{prefix}_data", Pins(8)),
        ]
        return lines + [Subsignal(f"{prefix}_last", Pins(1))] if last else lines

    return [
        ("sys_clk", 0, Pins(1)),
        ("sys_rst", 0, Pins(1)),
        ("restarting", 0, Pins(1)),
        ("uart", 0, *byte_stream("tx", last=False), *byte_stream("rx", last=False)),
        ("eth", 0, *byte_stream("tx", last=True), *byte_stream("rx", last=True)),
        ("host_eth", 0, *byte_stream("tx", last=True), *byte_stream("rx", last=True)),
        (
            "flash",
            0,
            Subsignal("clk", Pins(1)),
            Subsignal("cs_n", Pins(1)),
            Subsignal("mosi", Pins(1)),
            Subsignal("miso", Pins(1)),
        ),
        ("drive", 0, *_drive_port()),
        ("sdcard", 0, *_card_slot()),
        ("tick_external", 0, Pins(1)),
        ("tick", 0, Pins(1)),
    ]


def _drive_port():
    from litex.build.generic_platform import Pins, Subsignal

    widths = {
        "cmd": {"write": 1, "lba": 48, "count": 16},
        "wdata": {"data": 64, "last": 1},
        "rdata": {"data": 64, "last": 1, "error": 1},
        "done": {"status": 3},
    }
    for stream, parts in widths.items():
        for name, width in ({"valid": 1, "ready": 1} | parts).items():
            yield Subsignal(f"{stream}_{name}", Pins(width))
    for name, width in (("sectors", 48), ("ready", 1), ("present", 1), ("wide", 1)):
        yield Subsignal(name, Pins(width))


def _card_slot():
    from litex.build.generic_platform import Pins, Subsignal

    widths = {"clk": 1, "cd": 1}
    for name, width in (("cmd", 1), ("dat", 4)):
        widths |= {f"{name}_o": width, f"{name}_oe": 1, f"{name}_i": width}
    return [Subsignal(name, Pins(width)) for name, width in widths.items()]


def _platform():
    from .sim_platform import VerilogPlatform

    return VerilogPlatform("trebuchet_sim", _io())


def _sdram(modules, size):
    """The class of a chip of which two, 32 bits wide, are a memory of ``size`` bytes.

    Larger ones than the smallest have up to 1,024 columns, then more rows.
    """
    chip = modules.MT48LC4M16
    words = size // (4 * chip.nbanks)
    columns = max(chip.ncols, min(1024, words // chip.nrows))
    if words == chip.nrows * chip.ncols:
        return chip
    return type("SimulatedSdram", (chip,), {"nrows": words // columns, "ncols": columns})


def _attach(soc):
    from litedram import modules
    from litedram.phy.model import SDRAMPHYModel
    from migen import ClockDomainsRenamer

    from .sim_platform import ByteStreamPhy, SimClock

    soc.crg = SimClock(soc.platform)
    module = _sdram(modules, soc.board.dram_bytes)(SDRAM_CLK_HZ, "1:1")
    soc.sdrphy = SDRAMPHYModel(module=module, data_width=32, clk_freq=SDRAM_CLK_HZ, verbosity=0)
    soc.add_sdram("sdram", phy=soc.sdrphy, module=module, l2_cache_size=0)
    soc.ethphy = ByteStreamPhy(soc.platform.request("eth"))
    if soc.board.bridge:
        host_phy = ByteStreamPhy(soc.platform.request("host_eth"))
        soc.host_ethphy = ClockDomainsRenamer(HOST_DOMAINS)(host_phy)
    soc.flash_pads = soc.platform.request("flash")
    if soc.board.drive == "stream":
        soc.drive_pads = soc.platform.request("drive")
    if not soc.board.has_cpu:  # the harness has a console all the same
        soc.comb += soc.platform.request("uart").rx_ready.eq(1)


BOARD = Board(
    name="sim",
    title="simulated board (Verilator)",
    flow="sim",
    device="Verilator",
    sys_clk_hz=1_000_000,
    dram_bytes=16 << 20,
    platform=_platform,
    attach=_attach,
    plan=Plan.of_roles("ecg:buffers=2,stream=true,loadable=true"),
    mac="02:00:00:00:00:02",
    dhcp_retry_ms=500,
    external_tick=True,
    flash=Flash(
        size=1 << 20,
        golden_firmware=(0x40000, 0x40000),
        firmware=(0x80000, 0x40000),
        config=(0xFE000, 0x2000),
        max_hz=500_000,  # as fast as the controller goes
    ),
)


def without_cpu(board):
    """The simulated board ``board``, of any role, as those without a processor are."""
    return board.variant(
        cpu_variant="none",
        sessions=16,
        programmable=False,
        active=False,
        inspect=False,
        flash=None,
    )


def with_boot_rom(board):
    """The simulated board ``board`` with its firmware in external memory."""
    return board.variant(firmware="memory", cpu_variant="lite", sram_bytes=0x1000)


def with_bridge(board):
    """The simulated board ``board`` with a second port: it lies between a host and the network."""
    return board.variant(bridge=True)
