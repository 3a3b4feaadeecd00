"""A valve on a memory port, so that one requester can be reset while its neighbours work."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..memory import BEATS_WIDTH, MemorySignature

__all__ = ["MemoryGate"]

#: Bursts under way, at most.
BURSTS = 31


class MemoryGate(wiring.Component):
    """Between a requester and its memory port: lets the port end in order when it is to stop.

    ========  ===  ================================================================================
    ``i``     In   memory port of the requester
    ``o``     Out  memory port of the memory
    ``stop``  In   1: let what is on offer be taken, then nothing more; stays 1 until ``idle``
    ``shut``  Out  nothing of the requester is on offer any more: it may be reset
    ``idle``  Out  ``shut``, and the memory owes and is owed nothing
    ========  ===  ================================================================================

    Parameters: ``width``, ``tag_width`` of both ports.

    While ``stop`` is 0 everything passes in the same cycle, but for two things: write data wait
    for their command, and a write command for all data of the one before. At most 31 bursts are
    under way.

    Once ``shut``, the gate stands for the requester: it supplies write data that are still owed,
    with no byte strobed, and takes read data and ``wdone`` and forgets them. After ``stop`` falls
    the requester, fresh from reset, has the port again. ``wdata.last`` is the gate's own.

    ``shut`` comes when the memory has taken what was on offer, ``idle`` when all bursts have ended,
    both in a time that depends on the memory alone. Reset: nothing under way; memory and requester
    must be reset with it. Bad input: more data than commanded wait for ever, until ``stop``.
    """

    def __init__(self, width=32, tag_width=2):
        port = MemorySignature(width, tag_width)
        super().__init__(
            {"i": In(port), "o": Out(port), "stop": In(1), "shut": Out(1), "idle": Out(1)}
        )
        # No ports: for proofs.
        self.owing = Signal()  # data of the last write command are still to come
        self.left = Signal(BEATS_WIDTH)  # if so: how many after the next beat
        self.pending = Signal(range(BURSTS + 1))  # bursts without their last answer
        self.cmd_held, self.wdata_held = Signal(), Signal()  # offered and not taken

    def elaborate(self, platform):
        m = Module()
        i, o = self.i, self.o
        passes = Signal()
        full = self.pending == BURSTS
        m.d.comb += [
            passes.eq((~self.stop | self.cmd_held) & ~full & ~(i.cmd.payload.write & self.owing)),
            o.cmd.payload.eq(i.cmd.payload),
            o.cmd.valid.eq(i.cmd.valid & passes),
            i.cmd.ready.eq(o.cmd.ready & passes),
        ]
        m.d.sync += [
            self.cmd_held.eq(o.cmd.valid & ~o.cmd.ready),
            self.wdata_held.eq(o.wdata.valid & ~o.wdata.ready & ~self.shut),
            self.shut.eq(self.stop & (self.shut | ~(self.cmd_held | self.wdata_held))),
        ]
        self._write_data(m)
        self._responses(m)
        accepted = o.cmd.valid & o.cmd.ready
        with m.If(accepted & o.cmd.payload.write):
            m.d.sync += [self.owing.eq(1), self.left.eq(o.cmd.payload.beats)]
        with m.Elif(o.wdata.valid & o.wdata.ready):
            m.d.sync += [self.owing.eq(self.left != 0), self.left.eq(self.left - 1)]
        read_ends = o.rdata.valid & o.rdata.ready & o.rdata.payload.last
        write_ends = o.wdone.valid & o.wdone.ready
        change = Signal(signed(2))  # in one step: a carry chain instead of three
        m.d.comb += change.eq(accepted - (read_ends + write_ends))
        m.d.sync += self.pending.eq(self.pending + change)
        m.d.comb += self.idle.eq(self.shut & ~self.owing & (self.pending == 0))
        return m

    def _write_data(self, m):
        i, o = self.i.wdata, self.o.wdata
        passes = Signal()
        m.d.comb += [
            passes.eq(self.owing & (~self.stop | self.wdata_held) & ~self.shut),
            o.valid.eq((self.shut & self.owing) | (i.valid & passes)),
            i.ready.eq(o.ready & passes),
            o.payload.data.eq(i.payload.data),
            o.payload.strb.eq(Mux(self.shut, 0, i.payload.strb)),
            o.payload.last.eq(self.left == 0),
        ]

    def _responses(self, m):
        for name in ("rdata", "wdone"):
            i, o = getattr(self.i, name), getattr(self.o, name)
            m.d.comb += [
                i.valid.eq(o.valid & ~self.stop),
                i.payload.eq(o.payload),
                o.ready.eq(i.ready | self.stop),
            ]
