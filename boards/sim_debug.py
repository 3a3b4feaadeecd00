"""The simulated board with the debug port of its CPU: for GDB (``sim/gdb``).

The same board but for the CPU core: VexRiscv's ``minimal`` variant with its debug plugin and two
hardware breakpoints. Addresses, registers and so the firmware's bytes are those of the board
without. Ports beside the board's own (:mod:`trebuchet.boards.sim`):

====================  =====  ====================================================================
port                  width  meaning
====================  =====  ====================================================================
``debug_valid``       1      a command for the debug plugin; taken when ``debug_ready`` is 1
``debug_write``       1      it writes
``debug_address``     8      of the plugin's register: 0 flags, 4 instruction or result,
                             0x40 and 0x44 breakpoints
``debug_data``        32     what is written
``debug_result``      32     the register of the address of a cycle before
``debug_rom_write``   1      stores of the CPU change the ROM: for breakpoints and for new firmware
====================  =====  ====================================================================

Only the board's reset resets the plugin: a CPU that was halted before it was reset by a register
comes out of that halted. The signal ``o_halted`` of ``soc.cpu``, of the same name as LiteX's, is 1
while the CPU is halted: whoever expects something of the firmware (a watchdog) must wait meanwhile.
"""

import dataclasses
from pathlib import Path

__all__ = ["add_port", "io", "with_debug_port"]

_VERILOG = "VexRiscv_MinDebugHwBP.v"


def io():
    """The port's pins, for the platform."""
    from litex.build.generic_platform import Pins, Subsignal

    widths = {
        "valid": 1,
        "ready": 1,
        "write": 1,
        "address": 8,
        "data": 32,
        "result": 32,
        "rom_write": 1,
    }
    return [("debug", 0, *(Subsignal(name, Pins(width)) for name, width in widths.items()))]


def add_port(soc):
    """Give the CPU of ``soc`` the port. To be called before the SoC is finalized."""
    from litex import get_data_mod

    pads = soc.platform.request("debug")
    verilog = Path(get_data_mod("cpu", "vexriscv").data_location) / _VERILOG
    # As an external variant the core keeps the name by which the firmware is compiled.
    soc.cpu.use_external_variant(str(verilog))
    # LiteX's own add_debug() makes a bus slave of the plugin, which would be in the memory map.
    soc.cpu.cpu_params.update(
        i_debugReset=soc.platform.lookup_request("sys_rst"),
        i_debug_bus_cmd_valid=pads.valid,
        o_debug_bus_cmd_ready=pads.ready,
        i_debug_bus_cmd_payload_wr=pads.write,
        i_debug_bus_cmd_payload_address=pads.address,
        i_debug_bus_cmd_payload_data=pads.data,
        o_debug_bus_rsp_data=pads.result,
    )
    _make_writable(soc, pads.rom_write)
    soc.cpu.o_halted = _halted(soc, pads)


def _halted(soc, pads):
    """1 while the CPU is halted, told by the flags, which the plugin shows without being asked."""
    from migen import If, Signal

    shown, halted = Signal(), Signal()
    soc.sync += [shown.eq(~pads.address[2]), If(shown, halted.eq(pads.result[1]))]
    return halted


def _make_writable(soc, allowed):
    """A write port for the ROM, which LiteX's has not."""
    from migen import If

    bus = soc.rom.bus
    port = soc.rom.mem.get_port(write_capable=True, we_granularity=8)
    soc.specials += port
    soc.comb += [
        port.adr.eq(bus.adr[: len(port.adr)]),
        port.dat_w.eq(bus.dat_w),
        If(allowed & bus.cyc & bus.stb & bus.we, port.we.eq(bus.sel)),
    ]


def with_debug_port(board):
    """The simulated board ``board``, of any role, with the debug port."""

    def platform():
        made = board.platform()
        made.add_extension(io())
        return made

    def attach(soc):
        board.attach(soc)
        add_port(soc)

    if (board.flow, board.cpu_variant) != ("sim", "minimal"):
        raise ValueError(
            "The debug port must be on a simulated board with a minimal CPU, "
            f"not on {board.name!r} with a {board.cpu_variant} one"
        )
    return dataclasses.replace(board, platform=platform, attach=attach)
