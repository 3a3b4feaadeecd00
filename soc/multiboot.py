"""Golden and application bitstream: the gateware that starts the other one, and their difference.

Both are made of the same placed and routed design. What tells the design which of them it is in is
one bit, the *mark*: on an ECP5 the contents of a LUT, on UltraScale bit 0 of USR_ACCESS. And each
says in itself which bitstream follows it (ECP5: BOOTADDR).
"""

import json
import re

from litex.gen import LiteXModule
from migen import ClockSignal, Constant, Instance, Signal
from migen.fhdl.specials import Tristate

from ..cores.multiboot.start import ConfigPort, ProgramPin
from ..models.errors import TrebuchetError
from .bridge import AmaranthModule

__all__ = ["MARK", "Multiboot", "jump_page", "marked"]

#: Name of the LUT that is the mark.
MARK = "multiboot_mark"
#: Where the page that :func:`jump_page` makes lies, before the end of what three bytes address.
PAGE = 256


class Multiboot(LiteXModule):
    """The registers of ``cores/multiboot/start.py`` in a SoC whose board has ``multiboot``.

    ``soc.board.multiboot`` says which of its components; ``banks`` are its registers.
    """

    def __init__(self, soc, directory):
        pin = soc.board.multiboot == "pin"
        component = ProgramPin() if pin else ConfigPort()
        self.core = core = AmaranthModule(soc.platform, component, "multiboot_core", directory)
        self.banks = core.banks
        (self._add_pin if pin else self._add_port)(soc, core.ports)

    def _add_pin(self, soc, ports):
        mark = Signal()
        zeros = Constant(0, 16)
        lut = Instance("LUT4", name=MARK, p_INIT=zeros, i_A=0, i_B=0, i_C=0, i_D=0, o_Z=mark)
        lut.attr.add("keep")
        self.specials += [lut, Tristate(soc.programn, o=0, oe=ports[("pull",)])]
        self.comb += ports[("application",)].eq(mark)

    def _add_port(self, soc, ports):
        access = Signal(32)
        self.specials += [
            Instance(
                "ICAPE3",
                i_CLK=ClockSignal("sys"),
                i_CSIB=ports[("csib",)],
                i_RDWRB=ports[("rdwrb",)],
                i_I=ports[("data",)],
            ),
            Instance("USR_ACCESSE2", o_DATA=access),
        ]
        self.comb += ports[("application",)].eq(access[0])


def marked(config, netlist):
    """Text of an ECP5's configuration, with the mark set: that of the application's bitstream.

    ``config`` is nextpnr's, ``netlist`` the text of what it placed (``--write``).
    """
    modules = json.loads(netlist)["modules"].values()
    cells = [m["cells"][MARK]["attributes"]["NEXTPNR_BEL"] for m in modules if MARK in m["cells"]]
    place = re.fullmatch(r"X(\d+)/Y(\d+)/(SLICE[A-D])\.(?:COMB|K)([01])", "".join(cells))
    if place is None:
        raise TrebuchetError(f"nextpnr's netlist must place one LUT {MARK!r}, not {cells!r}")
    x, y, slice_, lut = place.groups()
    word = re.escape(f"word: {slice_}.K{lut}.INIT ")
    tile = rf"(^\.tile R{y}C{x}:PLC2\n(?:(?!\.tile).*\n)*?{word})0{{16}}$"
    changed, count = re.subn(tile, r"\g<1>" + "1" * 16, config, flags=re.MULTILINE)
    if count != 1:
        raise TrebuchetError(f"nextpnr's configuration has no LUT {MARK!r} of zeros at {cells[0]}")
    return changed


def jump_page(address):
    """The last page of an ECP5's flash: where the FPGA goes on when a bitstream is no good.

    A bitstream of nothing but preamble, control register 0, and the jump to ``address`` (Lattice
    FPGA-TN-02203, "ECP5 dual boot and multi-boot"; as Project Trellis's ecpmulti writes it).
    """
    code = bytes.fromhex("ffff bdb3 ffffffff 22000000 00000000 7e000000 03")
    return (b"\xff" * 16 + code + address.to_bytes(3, "big")).ljust(PAGE, b"\xff")
