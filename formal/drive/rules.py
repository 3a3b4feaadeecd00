"""What a drive does at its port, stated once: assumed of it, or asserted.

:class:`DriveRules` states of rules 2 to 4 of :mod:`trebuchet.cores.drive.port` what
concerns one command at a time: no data and no completion without a command, a completion
after the data; and, unless ``lax``, a read's packet of the right length, or a shorter one with
``error``, and a status that says so.
"""

from amaranth.hdl import Assert, Assume, Module, Mux, Signal
from trebuchet.cores.drive.port import SECTOR, DriveStatus

from ..kit.parts import moves
from ..stream import stream_rules

__all__ = ["DriveRules"]


class DriveRules:
    """The command in flight at a drive port, and what may happen until it is completed.

    ``check`` is ``Assume`` or ``Assert``. Attributes: ``busy``, a command is in flight;
    ``write``, ``beats``, ``tag``: of it; ``got``, beats of its packet that moved; ``over``, all
    of them did; ``bad``, the read's packet ended with ``error``.
    """

    def __init__(self, m: Module, drive, check, *, lax=False, sector=SECTOR):
        if check not in (Assert, Assume):
            raise TypeError(f"Rules are stated with Assert or Assume, not {check!r}")
        per_sector = sector // (drive.signature.width // 8)
        self.bits = 16 + per_sector.bit_length()
        self.busy, self.write = Signal(name="drive_busy"), Signal(name="drive_write")
        self.over, self.bad = Signal(name="drive_over"), Signal(name="drive_bad")
        self.tag = Signal(drive.signature.tag_width, name="drive_tag")
        self.beats, self.got = (
            Signal(self.bits, name="drive_beats"),
            Signal(self.bits, name="drive_got"),
        )
        self.begins = stream_rules(m, drive.rdata, check, "drive_rdata")
        stream_rules(m, drive.done, check, "drive_done")
        self._follow(m, drive, per_sector)
        with m.If(drive.rdata.valid):
            m.d.comb += check(self.busy & ~self.write & ~self.over)
        with m.If(drive.done.valid):
            m.d.comb += check(self.busy & self.over)
        if not lax:
            self._strict(m, drive.rdata, drive.done, check)

    def _strict(self, m, rdata, done, check):
        with m.If(rdata.valid):
            last, error = rdata.payload.last, rdata.payload.error
            m.d.comb += [
                check(~last | error | (self.got + 1 == self.beats)),
                check(last | (self.got + 1 != self.beats)),
                check(rdata.payload.empty == 0),
            ]
        with m.If(done.valid):
            m.d.comb += [
                check(done.payload.tag == self.tag),
                check(self.write | (self.bad == (done.payload.status != DriveStatus.OK))),
            ]

    def _follow(self, m, drive, per_sector):
        data = Mux(self.write, moves(drive.wdata), moves(drive.rdata))
        last = Mux(self.write, drive.wdata.payload.last, drive.rdata.payload.last)
        with m.If(moves(drive.done)):
            m.d.sync += self.busy.eq(0)
        with m.If(moves(drive.cmd)):
            cmd = drive.cmd.payload
            m.d.sync += [self.busy.eq(1), self.write.eq(cmd.write), self.tag.eq(cmd.tag)]
            m.d.sync += [self.beats.eq(cmd.count * per_sector), self.got.eq(0)]
            m.d.sync += [self.over.eq(0), self.bad.eq(0)]
        with m.Elif(data):
            m.d.sync += [self.got.eq(self.got + 1), self.over.eq(self.over | last)]
            m.d.sync += self.bad.eq(last & ~self.write & drive.rdata.payload.error)
