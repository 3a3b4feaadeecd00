"""Proofs of ``cores/tcp/sender.py``: what a frame looks like, and which segment it belongs to.

Frame: for any one segment, any payload of up to the longest one (and longer ones, which are cut)
at any alignment in memory, with and without the MSS option, every byte of the frame is compared
with the formats of RFC 791 and RFC 9293, 3.1: lengths, fixed fields, network order, both checksums
over exactly what they cover (with the pseudo header), payload, zeros as padding up to 60 bytes;
``first``, ``last``, ``empty`` and the counters. Bounded: a frame is over after a known time.

Order: an arbitrary segment is followed through the ring: the session told on ``sent`` and the
header fields and payload sum that a frame is made of are those of the segments, in their order,
none lost or doubled, each only after its payload was read; at most eight are inside. The payload
reader is any circuit that is done once for each job, in order, at any time (tcp_payload).

Not proved: a reset while running; frames under any back-pressure.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from trebuchet.cores.memory import MemorySignature

from .proof import Mutant, Proof
from .stream import free, new_harness
from .tcp_checkout import Inside

__all__ = ["PROOFS"]

LONGEST = 5
#: Cycles of the run in which the frame is not taken: in the header, in the payload.
STALLS = (38, 51, 52, 54)
FIELDS = ("mac", "ip", "remote_port", "local_port", "seq", "ack", "flags", "window", "mss")


def _network(value):
    return [value[8 * k : 8 * k + 8] for k in reversed(range(len(value) // 8))]


def _wire(value):
    return [value[8 * k : 8 * k + 8] for k in range(len(value) // 8)]


def _bytes(*values):
    return [Const(b, 8) for b in values]


class FrameProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        seg = Signal(dut.segment.payload.shape(), name="chosen")
        for name in seg.shape().members:
            m.d.comb += Value.cast(seg[name]).eq(AnyConst(len(Value.cast(seg[name]))))
        offered, time = Signal(init=1), Signal(6)
        m.d.comb += [
            dut.mac.eq(AnyConst(48)),
            dut.ip.eq(AnyConst(32)),
            dut.segment.valid.eq(offered),
            dut.segment.payload.eq(seg),
            dut.frame.ready.eq(~Cat(time == t for t in STALLS).any()),
            dut.sent.ready.eq(1),
        ]
        m.d.sync += time.eq(time + 1)
        with m.If(dut.segment.ready):
            m.d.sync += offered.eq(0)
        length = Signal(range(LONGEST + 1))
        m.d.comb += length.eq(Mux(seg.length > LONGEST, LONGEST, seg.length))
        words = self._memory(m, seg)
        self._expect(m, seg, length, words)
        self._check(m, seg, length)
        return m

    def _memory(self, m, seg):
        """Answers the one burst; asserts that it covers the payload and no more."""
        mem, length = self.dut.mem, Signal(16)
        words = [Signal(32, name=f"word_{k}") for k in range(2)]
        m.d.comb += [w.eq(AnyConst(32)) for w in words]
        asked, given = Signal(2), Signal(2)
        lines = Signal(2)
        m.d.comb += [
            length.eq(Mux(seg.length > LONGEST, LONGEST, seg.length)),
            lines.eq(Mux(length == 0, 0, (seg.addr[:2] + length + 3) >> 2)),
            mem.cmd.ready.eq(1),
            mem.rdata.valid.eq(given != asked),
            mem.rdata.payload.data.eq(Array(words)[given]),
            mem.rdata.payload.last.eq(given + 1 == asked),
            Assert(~mem.wdata.valid),
        ]
        with m.If(mem.cmd.valid):
            m.d.comb += [
                Assert((asked == 0) & (mem.cmd.payload.beats + 1 == lines)),
                Assert(mem.cmd.payload.addr == Cat(Const(0, 2), seg.addr[2:])),
                Assert(~mem.cmd.payload.write & (mem.cmd.payload.tag == 0)),
            ]
            m.d.sync += asked.eq(mem.cmd.payload.beats + 1)
        with m.If(mem.rdata.valid & mem.rdata.ready):
            m.d.sync += given.eq(given + 1)
        self.all_read = Signal()
        m.d.comb += self.all_read.eq(given == lines)
        return words

    def _expect(self, m, seg, length, words):
        """The frame's bytes: ``octets``; ``size`` without padding."""
        dut, has = self.dut, seg.mss != 0
        self.head = Mux(has, 58, 54)
        self.size = Signal(8, name="size")
        m.d.comb += self.size.eq(self.head + length)
        ip_length, tcp_length = Signal(16), Signal(16)
        m.d.comb += [ip_length.eq(self.size - 14), tcp_length.eq(self.size - 34)]
        payload = Signal(8 * LONGEST)
        m.d.comb += payload.eq(Cat(*words) >> (seg.addr[:2] << 3))
        body = []
        for k in range(LONGEST):
            body.append(Mux(k < length, payload[8 * k : 8 * k + 8], 0))
        ip = [*_bytes(0x45, 0), *_network(ip_length), *_bytes(0, 0, 0x40, 0, 64, 6, 0, 0)]
        ip += [*_network(dut.ip), *_network(seg.ip)]
        tcp = [*_network(seg.local_port), *_network(seg.remote_port)]
        tcp += [*_network(seg.seq), *_network(seg.ack), Mux(has, Const(0x60, 8), Const(0x50, 8))]
        tcp += [seg.flags.as_value(), *_network(seg.window), *_bytes(0, 0, 0, 0)]
        options = [Mux(has, b, Const(0, 8)) for b in (*_bytes(2, 4), *_network(seg.mss))]
        ip_check, tcp_check = Signal(16), Signal(16)
        m.d.comb += ip_check.eq(self._sum(m, "ip", _bytes(0, 0) + ip + _bytes(0, 0), 0))
        # Addresses, ports and so on to the options; then the rest of the pseudo header.
        covered = _bytes(0, 0) + ip[12:] + tcp + options + _bytes(0, 0)
        placed = [*_bytes(0, 0), *body, *_bytes(0)]  # in the beat that the header ends in
        payload_sum = self._sum(m, "text", placed, 0, invert=False)
        rest = Signal(18)
        swapped = Cat(tcp_length[8:], tcp_length[:8])
        m.d.comb += rest.eq(payload_sum + swapped + Const(0x0600, 16))  # protocol 6, length
        m.d.comb += tcp_check.eq(self._sum(m, "tcp", covered, rest))
        frame = [*_wire(seg.mac), *_wire(dut.mac), *_bytes(8, 0), *ip, *tcp]
        frame[24:26], frame[50:52] = _wire(ip_check), _wire(tcp_check)
        plain, option = [*frame, *body], [*frame, *options, *body]
        blank = _bytes(*[0] * 16)
        self.octets = [
            Mux(has, b, a) for a, b in zip((plain + blank)[:64], (option + blank)[:64], strict=True)
        ]

    def _sum(self, m, name, octets, extra, invert=True):
        """One's complement sum (RFC 1071) of bytes in wire order, and what is to be added."""
        total = Const(0, 33)
        for k in range(0, len(octets), 4):
            part = Signal(33, name=f"{name}_{k}")
            m.d.comb += part.eq(total[:32] + Cat(*octets[k : k + 4]) + total[32])
            total = part
        wide, folded, result = Signal(21), Signal(17), Signal(16)
        m.d.comb += [
            wide.eq(total[:16] + total[16:32] + total[32] + extra),
            folded.eq(wide[:16] + wide[16:]),
            result.eq(folded[:16] + folded[16]),
        ]
        return ~result if invert else result

    def _check(self, m, seg, length):
        dut, out = self.dut, self.dut.frame.payload
        beat, told, over = Signal(5), Signal(), Signal()
        short = self.size < 60
        beats = Signal(5)
        m.d.comb += beats.eq(Mux(short, 15, (self.size + 3) >> 2))
        with m.If(dut.frame.valid):
            m.d.comb += [
                Assert(~over),
                Assert(out.first == (beat == 0)),
                Assert(out.last == (beat + 1 == beats)),
                Assert(out.empty == Mux(out.last & ~short, (-self.size)[:2], 0)),
                Assert(~out.error),
            ]
            for k in range(16):
                with m.If(beat == k):
                    m.d.comb += Assert(out.data == Cat(*self.octets[4 * k : 4 * k + 4]))
            with m.If(dut.frame.ready):
                m.d.sync += [beat.eq(beat + 1), over.eq(out.last)]
        with m.If(dut.sent.valid):
            m.d.comb += [Assert(~told & self.all_read), Assert(dut.sent.payload == seg.session)]
            m.d.sync += told.eq(1)
        with m.If(over):
            m.d.comb += [
                Assert(told & (dut.csr.frames == 1)),
                Assert(dut.csr.payload_bytes == length),
                Assert(dut.csr.cut == (seg.length > LONGEST)),
            ]
        m.d.comb += [
            Cover(over & (seg.mss != 0) & (length == 3) & (seg.addr[:2] == 3)),
            Cover(over & (seg.mss == 0) & dut.csr.cut & (beat == 15)),
        ]


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
        """While a frame is made, its fields and its payload's sum are those of its segment."""
        dut, inside = self.dut, self.inside
        with m.If(mine & ~inside.state("IDLE", "emit")):
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
        name="tcp_sender_frame",
        core="cores.tcp.sender.Sender(32, 64, 5)",
        says="every byte of a frame, both checksums, the lengths, the padding and the burst read "
        "are those of RFC 791 and 9293 for any segment and any short payload",
        module="trebuchet.cores.tcp.sender",
        build=lambda cores: FrameProof(
            cores.Sender(32, buffer_bytes=64, max_payload=LONGEST, tag_width=1)
        ),
        depth=59,
        cover_depth=59,
        mutants=(
            Mutant(
                "sums_the_ports_for_ip", "self._keep(beat, 14, 34)", "self._keep(beat, 14, 36)", 59
            ),
            Mutant(
                "swapped_ports",
                "*network(meta.local_port),\n            *network(meta.remote_port)",
                "*network(meta.remote_port),\n            *network(meta.local_port)",
                59,
            ),
            Mutant(
                "pads_too_little",
                "short = length < _MIN_FRAME",
                "short = length < _MIN_FRAME - 2",
                59,
            ),
        ),
        method="bmc",
        assumes="one segment; a memory that answers at once; back-pressure in four cycles",
        not_proved="longer payloads; other back-pressure",
        bounded="one segment is in and out again after 58 cycles, so nothing is left to check; the "
        "fields of later ones are the matter of tcp_sender_order",
    ),
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
            ),
            Mutant("sum_of_another", "ask_sum.addr.eq(slot[3])", "ask_sum.addr.eq(slot[1])", 16),
            Mutant("not_cut", "Mux(cut, self.max_payload, segment.length)", "segment.length", 16),
        ),
        assumes="the payload reader is done once for each job, in order",
        not_proved="that a frame goes out at all (tcp_sender_frame)",
    ),
)
