"""Receive DMA: payloads go from the parser to their place in the pool, once."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo
from ..memory import BEATS_WIDTH, MemorySignature
from ..realign import PacketPrepend, PacketTrim
from ..stream import PacketSignature
from .segment import verdict_layout

__all__ = ["ReceiveDma", "written_layout"]


def written_layout(config):
    """Stream ``written``: what has reached memory and may be published."""
    return data.StructLayout({"session": config.session_bits, "end": 32, "fin": 1, "text": 1})


class ReceiveDma(wiring.Component):
    """Carries out one verdict per payload, in order.

    =============  ===  =====================================================================
    ``verdict``    In   stream of :func:`~trebuchet.cores.tcp.segment.verdict_layout`
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
    One beat a cycle, and 4 cycles more for each payload. Reset: idle.
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

    # Commands and data are two loops beside each other: the data know by their place in the ring
    # where a burst ends. Only a payload's final beat waits until all its commands were taken, so
    # that a job's registers can be reloaded behind it.
    def elaborate(self, platform):
        m = Module()
        n = self.config.width // 8
        lane = (n - 1).bit_length()
        ring = self.config.segment_log2
        block = lane + BEATS_WIDTH  # log2 of the bytes of the largest burst
        m.submodules.trim = trim = PacketTrim(self.config.width, max_skip=self.config.rx_buffer)
        m.submodules.prepend = prepend = PacketPrepend(self.config.width)
        m.submodules.pending = pending = StreamFifo(self._pending_layout(), 4)
        job = Signal(verdict_layout(self.config))
        asking, bursts = Signal(), Signal(self._burst_bits)  # commands are missing; those taken
        end = Signal(
            self.config.payload_bits - lane + 1
        )  # the final beat, counted from the first one's block
        at = Signal.like(end)  # the next beat, counted the same way
        low, high = Signal(BEATS_WIDTH), Signal(ring - block)  # of the next command's address
        first = Signal()
        end_lane = Signal(lane)  # lanes used of the final beat, 0: all
        cmd, wdata = self.mem.cmd, self.mem.wdata
        self._fed = Signal()  # the payload's last beat is in the aligner
        final, final_burst = Signal(), Signal()

        m.d.comb += [
            trim.skip.eq(job.skip),
            prepend.count.eq(job.addr[:lane]),
            trim.i.payload.eq(self.payload.payload),
            final_burst.eq(bursts == end[BEATS_WIDTH:]),
            cmd.valid.eq(asking),
            cmd.payload.write.eq(1),
            cmd.payload.addr.eq(Cat(C(0, lane), low, high, job.addr[ring:])),
            cmd.payload.beats.eq(Mux(final_burst, end[:BEATS_WIDTH], (1 << BEATS_WIDTH) - 1) - low),
            final.eq(at == end),
            wdata.payload.data.eq(prepend.o.payload.data),
            wdata.payload.last.eq(final | at[:BEATS_WIDTH].all()),
        ]
        wiring.connect(m, trim.o, prepend.i)
        for k in range(n):
            after = ~first | (k >= job.addr[:lane])
            before = ~final | (end_lane == 0) | (k < end_lane)
            m.d.comb += wdata.payload.strb[k].eq(after & before)

        with m.If(trim.i.valid & trim.i.ready & self.payload.payload.last):
            m.d.sync += self._fed.eq(1)
        with m.If(cmd.valid & cmd.ready):
            m.d.sync += [asking.eq(~final_burst), bursts.eq(bursts + 1)]
            m.d.sync += [low.eq(0), high.eq(high + 1)]
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += self.verdict.ready.eq(1)
                m.d.sync += [job.eq(self.verdict.payload), self._fed.eq(0), bursts.eq(0)]
                m.d.sync += first.eq(1)
                with m.If(self.verdict.valid):
                    m.next = "PLAN"
            with m.State("PLAN"):
                m.d.sync += [
                    end.eq((job.addr[:block] + job.length - 1) >> lane),
                    end_lane.eq(job.addr[:lane] + job.length[:lane]),
                    at.eq(job.addr[lane:block]),
                    low.eq(job.addr[lane:block]),
                    high.eq(job.addr[block:ring]),
                ]
                with m.If(~pending.i.ready):  # it then has room whenever this job ends
                    pass
                with m.Elif(job.commit & (job.arrived == 0)):
                    m.d.comb += pending.i.valid.eq(1)
                    m.next = "IDLE"
                with m.Elif(~job.commit | (job.length == 0)):  # at most the FIN behind it is new
                    m.next = "VANISH"
                with m.Else():
                    m.d.comb += self._feed(trim)
                    m.d.sync += asking.eq(1)
                    m.next = "DATA"
            with m.State("VANISH"):
                m.d.comb += self.payload.ready.eq(1)
                with m.If(self.payload.valid & self.payload.payload.last):
                    m.d.comb += pending.i.valid.eq(job.commit)
                    m.next = "IDLE"
            with m.State("DATA"):
                m.d.comb += [
                    self._feed(trim),
                    wdata.valid.eq(prepend.o.valid & ~(final & asking)),
                    prepend.o.ready.eq(wdata.ready & ~(final & asking)),
                ]
                with m.If(wdata.valid & wdata.ready):
                    m.d.sync += [at.eq(at + 1), first.eq(0)]
                    with m.If(final & prepend.o.payload.last):
                        m.d.comb += pending.i.valid.eq(1)
                        m.next = "IDLE"
                    with m.Elif(final):
                        m.next = "REST"
            with m.State("REST"):  # what did not fit the window
                m.d.comb += [self._feed(trim), prepend.o.ready.eq(1)]
                with m.If(prepend.o.valid & prepend.o.payload.last):
                    m.d.comb += pending.i.valid.eq(1)
                    m.next = "IDLE"
        # For the invariants of its proof.
        self.job, self.fsm, self.commands = job, fsm, (asking, bursts, low, high)
        self.beats = at, end, first, end_lane
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

    @property
    def _burst_bits(self):
        """Of the number of bursts of a payload: one more than its whole blocks of 64 beats."""
        lane = (self.config.width // 8 - 1).bit_length()
        return max(1, self.config.payload_bits - lane - BEATS_WIDTH + 1)

    def _pending_layout(self):
        members = dict(written_layout(self.config).members)
        return data.StructLayout(members | {"bursts": self._burst_bits, "ahead": 1})

    def _feed(self, trim):
        """The payload may enter the aligner, up to its last beat and no further."""
        p = self.payload
        return [trim.i.valid.eq(p.valid & ~self._fed), p.ready.eq(trim.i.ready & ~self._fed)]

    def _finish(self, m, pending):
        """Offer the oldest written payload when all its bursts are done."""
        done = Signal(12)  # bursts done that no payload has been credited with
        head = pending.payload
        enough, take = Signal(), Signal()
        self.done = done
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
