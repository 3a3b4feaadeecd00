"""Receive DMA: payloads go from the parser to their place in the pool, once."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo
from ..memory import BEATS_WIDTH, MemorySignature
from ..realign import PacketPrepend, PacketTrim
from ..stream import PacketSignature
from .receive import verdict_layout

__all__ = ["ReceiveDma", "written_layout"]


def written_layout(config):
    """Stream ``written``: what has reached memory and may be published."""
    return data.StructLayout({"session": config.session_bits, "end": 32, "fin": 1, "text": 1})


class ReceiveDma(wiring.Component):
    """Carries out one verdict per payload, in order.

    =============  ===  =====================================================================
    ``verdict``    In   stream of :func:`~trebuchet.cores.tcp.receive.verdict_layout`
    ``payload``    In   packet stream: one packet for each verdict with ``arrived`` > 0
    ``mem``        Out  memory port; writes only, tag 0
    ``written``    Out  stream of :func:`written_layout`, one for each verdict with ``commit``,
                        but not ``ahead``, in order, offered after the last ``wdone`` of it and
                        of all before it
    ``idle``       Out  nothing under way
    =============  ===  =====================================================================

    A verdict with ``commit`` = 0 makes its payload vanish. One with ``arrived`` = 0 (a FIN alone)
    only passes through, behind the writes before it. Bursts end at multiples of 64 beats, so
    none crosses the end of a ring; the address wraps there because the upper bits stay.
    One beat a cycle, and 2 cycles for each burst, 6 for each payload. Reset: idle.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "verdict": In(stream.Signature(verdict_layout(config))),
                "payload": In(PacketSignature(config.width)),
                "mem": Out(MemorySignature(config.width, config.tag_width)),
                "written": Out(stream.Signature(written_layout(config))),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        n = self.config.width // 8
        lane = (n - 1).bit_length()
        ring = self.config.segment_log2
        m.submodules.trim = trim = PacketTrim(self.config.width, max_skip=(1 << 16) - 1)
        m.submodules.prepend = prepend = PacketPrepend(self.config.width)
        m.submodules.pending = pending = StreamFifo(self._pending_layout(), 4)
        job = Signal(verdict_layout(self.config))
        offset = Signal(ring - lane)  # of the next beat in the ring
        left = Signal(17)  # beats still to write
        burst, burst_left = Signal(BEATS_WIDTH + 1), Signal(BEATS_WIDTH + 1)
        bursts = Signal(9)
        first, final = Signal(), Signal()
        end_lane = Signal(lane)  # lanes used of the final beat, 0: all
        to_edge = Signal(BEATS_WIDTH + 1)
        cmd, wdata = self.mem.cmd, self.mem.wdata
        self._fed = Signal()  # the payload's last beat is in the aligner

        m.d.comb += [
            trim.skip.eq(job.skip),
            prepend.count.eq(job.addr[:lane]),
            trim.i.payload.eq(self.payload.payload),
            to_edge.eq((1 << BEATS_WIDTH) - offset[:BEATS_WIDTH]),
            cmd.payload.write.eq(1),
            cmd.payload.addr.eq(Cat(C(0, lane), offset, job.addr[ring:])),
            cmd.payload.beats.eq(burst - 1),
            wdata.payload.data.eq(prepend.o.payload.data),
            wdata.payload.last.eq(burst_left == 1),
            final.eq(left == 1),
        ]
        wiring.connect(m, trim.o, prepend.i)
        for k in range(n):
            after = ~first | (k >= job.addr[:lane])
            before = ~final | (end_lane == 0) | (k < end_lane)
            m.d.comb += wdata.payload.strb[k].eq(after & before)

        with m.If(trim.i.valid & trim.i.ready & self.payload.payload.last):
            m.d.sync += self._fed.eq(1)
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.sync += self._fed.eq(0)
                m.d.comb += self.verdict.ready.eq(1)
                m.d.sync += [job.eq(self.verdict.payload), bursts.eq(0), first.eq(1)]
                with m.If(self.verdict.valid):
                    m.next = "PLAN"
            with m.State("PLAN"):
                m.d.sync += left.eq((job.addr[:lane] + job.length + (n - 1)) >> lane)
                m.d.sync += end_lane.eq(job.addr[:lane] + job.length[:lane])
                m.d.sync += offset.eq(job.addr[lane:ring])
                with m.If(~job.commit):
                    m.next = "VANISH"
                with m.Elif(job.arrived == 0):
                    m.next = "NOTE"
                with m.Elif(job.length == 0):  # only the FIN behind it is new
                    m.next = "VANISH"
                with m.Else():
                    m.next = "BURST"
            with m.State("VANISH"):
                m.d.comb += self.payload.ready.eq(1)
                with m.If(self.payload.valid & self.payload.payload.last):
                    m.next = "IDLE"
                    with m.If(job.commit):
                        m.next = "NOTE"
            with m.State("BURST"):
                m.d.comb += self._feed(trim)
                m.d.sync += burst.eq(Mux(left > to_edge, to_edge, left))
                m.next = "COMMAND"
            with m.State("COMMAND"):
                m.d.comb += [self._feed(trim), cmd.valid.eq(1)]
                m.d.sync += burst_left.eq(burst)
                with m.If(cmd.ready):
                    m.d.sync += bursts.eq(bursts + 1)
                    m.next = "DATA"
            with m.State("DATA"):
                m.d.comb += [self._feed(trim), wdata.valid.eq(prepend.o.valid)]
                m.d.comb += prepend.o.ready.eq(wdata.ready)
                with m.If(wdata.valid & wdata.ready):
                    m.d.sync += [left.eq(left - 1), burst_left.eq(burst_left - 1), first.eq(0)]
                    m.d.sync += offset.eq(offset + 1)
                    with m.If(final):
                        m.next = "REST"
                        with m.If(prepend.o.payload.last):
                            m.next = "NOTE"
                    with m.Elif(burst_left == 1):
                        m.next = "BURST"
            with m.State("REST"):  # what did not fit the window
                m.d.comb += [self._feed(trim), prepend.o.ready.eq(1)]
                with m.If(prepend.o.valid & prepend.o.payload.last):
                    m.next = "NOTE"
            with m.State("NOTE"):
                m.d.comb += pending.i.valid.eq(1)
                with m.If(pending.i.ready):
                    m.next = "IDLE"
        m.d.comb += [
            pending.i.payload.session.eq(job.session),
            pending.i.payload.end.eq(job.end),
            pending.i.payload.fin.eq(job.fin),
            pending.i.payload.text.eq(job.length != 0),
            pending.i.payload.bursts.eq(bursts),
            pending.i.payload.ahead.eq(job.ahead),
            self.idle.eq(fsm.ongoing("IDLE") & (pending.level == 0) & ~self.written.valid),
        ]
        self._finish(m, pending.o)
        return m

    def _pending_layout(self):
        members = dict(written_layout(self.config).members)
        return data.StructLayout(members | {"bursts": 9, "ahead": 1})

    def _feed(self, trim):
        """The payload may enter the aligner, up to its last beat and no further."""
        p = self.payload
        return [trim.i.valid.eq(p.valid & ~self._fed), p.ready.eq(trim.i.ready & ~self._fed)]

    def _finish(self, m, pending):
        """Offer the oldest written payload when all its bursts are done."""
        done = Signal(12)  # bursts done that no payload has been credited with
        head = pending.payload
        enough, take = Signal(), Signal()
        m.d.comb += [
            self.mem.wdone.ready.eq(1),
            enough.eq(done >= head.bursts),
            take.eq(pending.valid & enough & (~self.written.valid | self.written.ready)),
            pending.ready.eq(take),
        ]
        m.d.sync += done.eq(done + self.mem.wdone.valid - Mux(take, head.bursts, 0))
        with m.If(self.written.ready):
            m.d.sync += self.written.valid.eq(0)
        with m.If(take):
            m.d.sync += self.written.valid.eq(~head.ahead)
            for name in ("session", "end", "fin", "text"):
                m.d.sync += self.written.payload[name].eq(head[name])
