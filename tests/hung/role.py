"""A role that hangs: for tests of the watchdog, alone and in a board's plan."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from trebuchet.cores.roles.contract import RoleSignature

__all__ = ["HungRole"]


class HungRole(wiring.Component):
    """Takes two jobs, asks for memory all the time, never answers; ends no burst by itself.

    It reads and writes where the results of its last job may lie. Parameters: ``width``,
    ``tag_width`` of the memory port. Reset: as it began.
    """

    def __init__(self, width=32, tag_width=2):
        super().__init__(RoleSignature(None, width, tag_width))

    def elaborate(self, platform):
        m = Module()
        taken = Signal(2)
        cmd, beat = self.mem.cmd, Signal(4)
        m.d.comb += [
            self.job.ready.eq(taken != 2),
            cmd.valid.eq(taken != 0),
            cmd.payload.beats.eq(15),
            self.mem.rdata.ready.eq(1),
            self.mem.wdone.ready.eq(1),
            self.mem.wdata.valid.eq(taken != 0),
            self.mem.wdata.payload.strb.eq(1),
            self.mem.wdata.payload.last.eq(beat == 15),
        ]
        with m.If(self.mem.wdata.valid & self.mem.wdata.ready):
            m.d.sync += beat.eq(beat + 1)
        with m.If(cmd.valid & cmd.ready):
            m.d.sync += cmd.payload.write.eq(~cmd.payload.write)
        with m.If(self.job.valid & self.job.ready):
            m.d.sync += taken.eq(taken + 1)
            m.d.sync += cmd.payload.addr.eq(self.job.payload.result)
        return m
