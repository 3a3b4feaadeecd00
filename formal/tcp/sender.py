"""Proof of ``cores/tcp/sender.py``: which segment a frame belongs to.

An arbitrary segment is followed through the ring: the session told on ``sent`` and the
header fields and payload sum that a frame is made of are those of the segments, in their order,
none lost or doubled, each only after its payload was read; at most eight are inside. The payload
reader is any circuit that is done once for each job, in order, at any time.

Not proved: a reset while running; the bytes of frames (tcp_sender_frame).
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from trebuchet.cores.memory import MemorySignature

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .checkout import Inside

__all__ = ["PROOFS"]

LONGEST = 5
FIELDS = ("mac", "ip", "remote_port", "local_port", "seq", "ack", "flags", "window", "mss")


class AnyReader(wiring.Component):
    """In the place of the payload reader: done once for each job, whenever the solver likes."""

    def __init__(self, width, depth, jobs, tag_width):
        del jobs
        n = width // 8
        layout = data.StructLayout({"addr": 32, "length": range(8 * depth), "offset": range(n)})
        super().__init__(
            {
                "job": In(stream.Signature(layout)),
                "mem": Out(MemorySignature(width, tag_width)),
                "done": Out(1),
                "sum": Out(16),
                "r_en": In(1),
                "r_data": Out(width),
            }
        )
        self.waiting = Signal(4)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.job.ready.eq(AnySeq(1)),
            self.done.eq(AnySeq(1) & (self.waiting != 0)),
            self.sum.eq(AnySeq(16)),
            self.r_data.eq(AnySeq(len(self.r_data))),
        ]
        m.d.sync += self.waiting.eq(self.waiting + (self.job.valid & self.job.ready) - self.done)
        return m


class OrderProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        cores = self.cores
        self.dut = dut = cores.Sender(32, buffer_bytes=64, max_payload=LONGEST, tag_width=1)
        kept, cores.PayloadReader = cores.PayloadReader, AnyReader
        try:
            self.inside = inside = Inside(m, dut)
        finally:
            cores.PayloadReader = kept
        reader = inside.part("reader")
        seg = dut.segment.payload
        free(m, dut.segment.valid, dut.segment.payload, dut.frame.ready, dut.sent.ready)
        free(m, dut.mac, dut.ip)
        # Counts modulo 16, twice what fits, and the segment that comes as number `index`.
        index = Signal(4)
        taken, loaded, told, emitted = (
            Signal(4, name=f"n_{k}") for k in ("in", "read", "told", "out")
        )
        word, total = Signal(seg.shape(), name="segment_chosen"), Signal(16, name="sum_chosen")
        begin = inside["begin"]
        moved = dut.segment.valid & dut.segment.ready
        m.d.comb += index.eq(AnyConst(4))
        m.d.sync += [
            taken.eq(taken + moved),
            loaded.eq(loaded + reader.done),
            told.eq(told + (dut.sent.valid & dut.sent.ready)),
            emitted.eq(emitted + begin),
        ]
        with m.If(moved & (taken == index)):
            m.d.sync += word.eq(seg)
        with m.If(reader.done & (loaded == index)):
            m.d.sync += total.eq(reader.sum)
        with m.If(moved):
            m.d.comb += [
                Assert(reader.job.valid & reader.job.ready),
                Assert(reader.job.payload.addr == seg.addr),
                Assert(reader.job.payload.length == Mux(seg.length > LONGEST, LONGEST, seg.length)),
                Assert(reader.job.payload.offset == 2),
            ]

        def upto(a, b):
            return (b - a)[:4]

        m.d.comb += [
            Assert(~reader.job.valid | dut.segment.valid),
            Assert(dut.segment.ready | ~(reader.job.valid & reader.job.ready)),
            Assert(upto(told, taken) <= 8),
            Assert(upto(emitted, taken) <= 8),
            Assert(upto(told, loaded) <= upto(told, taken)),
            Assert(upto(emitted, loaded) <= upto(emitted, taken)),
            Assert(reader.waiting == upto(loaded, taken)),
            Assert(dut.sent.valid == (told != loaded)),
            Assert(~begin | (emitted != loaded)),
        ]
        with m.If(dut.sent.valid & (told == index)):
            m.d.comb += Assert(dut.sent.payload == word.session)
        self._frame(m, (emitted == index + 1), word, total)
        self._ring(m, index, word, total, (taken, loaded, told, emitted))
        m.d.comb += [
            Cover((upto(emitted, taken) == 8) & (upto(told, taken) == 2)),
            Cover((told == index) & dut.sent.valid & (upto(emitted, told) == 3)),
        ]
        return m

    def _frame(self, m, mine, word, total):
        """Until its header has gone, a frame's fields and its payload's sum are its segment's."""
        dut, inside = self.dut, self.inside
        with m.If(mine & ~inside.state("IDLE", "prepare")):
            meta = dut.meta
            for name in FIELDS:
                m.d.comb += Assert(Value.cast(meta[name]) == Value.cast(word[name]))
            m.d.comb += [
                Assert(meta.length == Mux(word.length > LONGEST, LONGEST, word.length)),
                Assert(dut.payload_sum == total),
            ]
        beat = dut.frame.payload.as_value()
        stalled, past = Signal(name="stalled"), Signal(len(beat), name="beat_past")
        m.d.sync += [stalled.eq(dut.frame.valid & ~dut.frame.ready), past.eq(beat)]
        with m.If(stalled):
            m.d.comb += Assert(dut.frame.valid & (beat == past))

    def _ring(self, m, index, word, total, counts):
        """Where the chosen segment lies; the core's pointers count what the ports do."""
        taken, loaded, told, emitted = counts
        inside = self.inside
        for name, count in zip(("taken", "loaded", "told", "emitted"), counts, strict=True):
            m.d.comb += Assert(inside[name] == count)
        meta, session, sums = (
            inside.part(name).read_port(domain="comb") for name in ("metas", "sessions", "sums")
        )
        m.d.comb += [port.addr.eq(index[:3]) for port in (meta, session, sums)]
        with m.If((index - told)[:4] < (taken - told)[:4]):
            m.d.comb += Assert(session.data == word.session)
        with m.If((index - emitted)[:4] < (taken - emitted)[:4]):
            for name in FIELDS:
                m.d.comb += Assert(Value.cast(meta.data[name]) == Value.cast(word[name]))
            length = Mux(word.length > LONGEST, LONGEST, word.length)
            m.d.comb += Assert(meta.data.length == length)
        with m.If((index - emitted)[:4] < (loaded - emitted)[:4]):
            m.d.comb += Assert(sums.data == total)


PROOFS = (
    Proof(
        name="tcp_sender_order",
        core="cores.tcp.sender.Sender(32, 64, 5) without its payload reader",
        says="each frame and each `sent` belong to the next segment, once, after its payload is "
        "read; never more than eight segments are inside",
        module="trebuchet.cores.tcp.sender",
        build=lambda cores: OrderProof(cores),
        depth=3,
        cover_depth=14,
        mutants=(
            Mutant(
                "session_of_another",
                "ask_session.addr.eq(slot[2])",
                "ask_session.addr.eq(slot[3])",
                14,
            ),
            Mutant(
                "sent_before_read",
                "self.sent.valid.eq(told != loaded)",
                "self.sent.valid.eq(told != taken)",
                16,
                context="taken, loaded, told, emitted = pointers",
            ),
            Mutant(
                "sum_of_another",
                "ask.addr.eq(slot[3]), ask_sum.addr.eq(slot[3])",
                "ask.addr.eq(slot[3]), ask_sum.addr.eq(slot[1])",
                16,
            ),
            Mutant("not_cut", "Mux(cut, self.max_payload, segment.length)", "segment.length", 16),
        ),
        assumes="the payload reader is done once for each job, in order",
        not_proved="that a frame goes out at all; the bytes of frames (tcp_sender_frame)",
    ),
)
