"""What is at the shell's drive port: the pins of the harness's drive, or an SD card slot."""

from litex.build.io import SDROutput, SDRTristate
from litex.gen import LiteXModule
from migen import Signal
from migen.genlib.cdc import MultiReg

from ..cores.sd.host import SdHost
from ..models.errors import TrebuchetError
from .bridge import AmaranthModule, struct_fields

__all__ = ["SdSlot", "stream_drive"]

#: Ports of the host that are lines of the bus.
_PINS = ("sd_clk", "cmd_i", "cmd_o", "cmd_oe", "dat_i", "dat_o", "dat_oe")


def stream_drive(fabric, pads, signature):
    """Statements that join a drive port with the pins of the harness's drive.

    Parameters
    ----------
    fabric : AmaranthModule
        What has the port, as its member ``drive``.
    pads : Record
        ``drive`` of ``boards/sim.py``.
    signature : DriveSignature
        Of the port. Beats narrower than 64 bits are the low bits of the pins.
    """

    def at(*path):
        return fabric.ports[("drive", *path)]

    cmd = struct_fields(at("cmd", "payload"), signature.cmd_layout)
    done = struct_fields(at("done", "payload"), signature.done_layout)
    wdata, rdata = fabric.packets["drive__wdata"], fabric.packets["drive__rdata"]
    return [
        pads.cmd_valid.eq(at("cmd", "valid")),
        at("cmd", "ready").eq(pads.cmd_ready),
        *(getattr(pads, f"cmd_{name}").eq(value) for name, value in cmd.items()),
        pads.wdata_valid.eq(wdata.valid),
        wdata.ready.eq(pads.wdata_ready),
        pads.wdata_data.eq(wdata.data),
        pads.wdata_last.eq(wdata.last),
        rdata.valid.eq(pads.rdata_valid),
        pads.rdata_ready.eq(rdata.ready),
        rdata.data.eq(pads.rdata_data),
        rdata.last.eq(pads.rdata_last),
        rdata.last_be.eq(pads.rdata_last << (signature.width // 8 - 1)),
        rdata.error.eq(pads.rdata_error),
        at("done", "valid").eq(pads.done_valid),
        pads.done_ready.eq(at("done", "ready")),
        done["status"].eq(pads.done_status),
        *(at(name).eq(getattr(pads, name)) for name in ("sectors", "ready", "present")),
        pads.wide.eq(signature.width == 64),
    ]


class SdSlot(LiteXModule):
    """The SD host (``cores/sd/host.py``) between a shell's drive port and the card slot.

    The slot is resource ``sdcard`` of the board's platform: ``clk``, ``cmd`` and ``data``, of 1 or
    4 lines, with pull-ups; if there are such pins, ``cd``, low with a card in the slot, and the
    directions of a level shifter, ``cmd_dir``, ``dat0_dir``, ``dat13_dir``, 1 from the host to the
    card. Each pin has a register of its own in both directions, so the sample point is a cycle
    later than the host's own. Without ``cd`` there always seems to be a card.

    Parameters
    ----------
    board : Board
        Its clock is the host's.
    platform : LiteX platform
        Of the board. If it names no slot, TrebuchetError says so.
    fabric : AmaranthModule
        What has the port, as its member ``drive``.
    width : int
        Data path of the port.
    directory : path
        Where the converted Verilog goes.

    Attributes
    ----------
    banks : dict
        Registers of the host.
    """

    def __init__(self, board, platform, fabric, width, directory):
        pads = platform.request("sdcard", loose=True)
        if pads is None:
            raise TrebuchetError(
                f"board {board.name!r}: drive 'sd' needs a card slot, but the board's platform has "
                "no resource 'sdcard'; leave drive at 'none', or add the slot's pins with "
                "add_extension in the board file's platform()"
            )
        simulated = board.flow == "sim"
        lines = len(pads.dat_o if simulated else pads.data)
        host = SdHost(board.sys_clk_hz, width, 0, lines, delay=1)
        self.host = AmaranthModule(platform, host, "sd_host", directory)
        self.banks = self.host.banks
        self._join(fabric)
        self._detect(pads)
        if simulated:
            self._registers(pads)
        else:
            self._cells(pads, lines)

    def _join(self, fabric):
        """The host's drive port and the shell's."""
        host, shell = self.host, fabric.ports
        for name, source, sink in (("cmd", shell, host.ports), ("done", host.ports, shell)):
            self.comb += [
                sink["drive", name, "valid"].eq(source["drive", name, "valid"]),
                sink["drive", name, "payload"].eq(source["drive", name, "payload"]),
                source["drive", name, "ready"].eq(sink["drive", name, "ready"]),
            ]
        for name in ("sectors", "ready", "present"):
            self.comb += shell["drive", name].eq(host.ports["drive", name])
        self.comb += [
            fabric.packets["drive__wdata"].connect(host.packets["drive__wdata"]),
            host.packets["drive__rdata"].connect(fabric.packets["drive__rdata"]),
        ]

    def _detect(self, pads):
        detect = self.host.ports["detect",]
        if hasattr(pads, "cd"):
            self.specials += MultiReg(~pads.cd, detect)
        else:
            self.comb += detect.eq(1)

    def _cells(self, pads, lines):
        """The registers of an FPGA's pins."""
        ports = {name: self.host.ports[name,] for name in _PINS}
        self.specials += SDROutput(ports["sd_clk"], pads.clk)
        pins = [(pads.cmd, ports["cmd_o"], ports["cmd_oe"], ports["cmd_i"])]
        for i in range(lines):
            pins.append((pads.data[i], ports["dat_o"][i], ports["dat_oe"], ports["dat_i"][i]))
        for pad, o, oe, i in pins:
            self.specials += SDRTristate(pad, o, oe, i)
        for name in ("cmd_dir", "dat0_dir", "dat13_dir"):
            if hasattr(pads, name):
                driven = ports["cmd_oe" if name == "cmd_dir" else "dat_oe"]
                self.specials += SDROutput(driven, getattr(pads, name))

    def _registers(self, pads):
        """The same registers of a simulated board."""
        ports = self.host.ports
        clk = Signal()
        self.sync += clk.eq(ports["sd_clk",])
        self.comb += pads.clk.eq(clk)
        for name in ("cmd", "dat"):
            pad_o, pad_oe = getattr(pads, f"{name}_o"), getattr(pads, f"{name}_oe")
            idle = (1 << len(pad_o)) - 1
            o, oe = Signal(len(pad_o), reset=idle), Signal()
            i = Signal(len(pad_o), reset=idle)
            self.sync += [
                o.eq(ports[f"{name}_o",]),
                oe.eq(ports[f"{name}_oe",]),
                i.eq(getattr(pads, f"{name}_i")),
            ]
            self.comb += [pad_o.eq(o), pad_oe.eq(oe), ports[f"{name}_i",].eq(i)]
