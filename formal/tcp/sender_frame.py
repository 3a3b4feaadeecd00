"""Proof of ``cores/tcp/sender.py``: the bytes of every frame, for any segment and back-pressure.

The format is written down anew, from RFC 791, RFC 9293, 3.1, and the pseudo header of the latter.
Summed: of the header's beats, once each, those half words that IP's and TCP's checksums cover, with
the fields that hold the checksums 0; with TCP's goes, in time, the payload's sum, its protocol and
its length. Sent: the same beats with the complements of what the adders gave, as late as
they say, payload behind, zeros up to 60 bytes; ``first``, ``last``, ``empty``; as many beats are
read from the payload's buffer as it has, each in its turn. The counters count.

That a frame's segment is the next one is proved by tcp_sender_order, what the payload's beats hold
by tcp_payload_fill, the adder by net_checksum_32; all three are played by the solver here.

Not proved: 64 bits; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data
from trebuchet.cores.tcp.config import TcpConfig

from ..kit.inside import patched
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .checkout import Inside
from .sender import AnyReader

__all__ = ["PROOFS"]

LONGEST, ADDS = 1460, 4
#: An engine with every option; the shift that it announces is 5.
ALL = TcpConfig(scaling=True, segment_log2=20, runs=2, sack=True)


class AnyChecksum(Elaboratable):
    """In the place of an adder: any sum at any time."""

    def __init__(self, width):
        self.start, self.en, self.keep = Signal(), Signal(), Signal(width // 16)
        self.data, self.extra, self.sum = Signal(width), Signal(18), Signal(16)

    def elaborate(self, platform):
        m = Module()
        free(m, self.sum)
        return m


class HeldReader(AnyReader):
    """Like the payload reader it shows a beat until the next one is read."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        held, was = Signal(len(self.r_data)), Signal()
        m.d.sync += [held.eq(self.r_data), was.eq(self.r_en)]
        with m.If(~was):
            m.d.comb += Assume(self.r_data == held)
        return m


def _network(value):
    return [value[8 * k : 8 * k + 8] for k in reversed(range(len(value) // 8))]


def _wire(value):
    return [value[8 * k : 8 * k + 8] for k in range(len(value) // 8)]


def _bytes(*values):
    return [Const(b, 8) for b in values]


def _octets(seg, mac, ip, sizes, checks, config):
    """The header of a frame, as long as it may be; then zeros."""
    has = seg.mss != 0
    longer = config is not None
    words = Mux(has, 8 if longer else 6, 5)
    if longer:
        words = Mux(seg.blocks != 0, 6 + 2 * seg.blocks, words)
    frame = [*_wire(seg.mac), *_wire(mac), *_bytes(0x08, 0x00)]
    frame += [*_bytes(0x45, 0x00), *_network(sizes[0]), *_bytes(0, 0, 0x40, 0, 64, 6)]
    frame += [*_wire(checks[0]), *_network(ip), *_network(seg.ip)]
    frame += [*_network(seg.local_port), *_network(seg.remote_port)]
    frame += [
        *_network(seg.seq),
        *_network(seg.ack),
        (words << 4)[:8],
    ]
    frame += [seg.flags.as_value(), *_network(seg.window), *_wire(checks[1]), *_bytes(0, 0)]
    options = [*_bytes(2, 4), *_network(seg.mss)]
    told = []  # RFC 2018, 3
    if longer:  # RFC 7323, 2.2; RFC 2018, 2
        codes = ((seg.scaled, (1, 3, 3, config.shift)), (seg.permits, (1, 1, 4, 2)))
        options += [Mux(said, *_bytes(b, 1)) for said, code in codes for b in code]
        told = [*_bytes(1, 1, 5), (2 + 8 * seg.blocks)[:8]]
        for k in range(2 * config.runs):
            low = config.place_bits
            place = seg.places.word_select(k, low)
            # The first number from ACK on that has these low bits.
            edge = Cat(place, (seg.ack[low:] + (place < seg.ack[:low]))[: 32 - low])
            told += [Mux(seg.blocks > k // 2, octet, 0) for octet in _network(edge)]
    none = [*_bytes(0)] * max(len(options), len(told))
    both = zip((options + none)[: len(none)], (told + none)[: len(none)], strict=True)
    frame += [Mux(has, a, Mux(seg.blocks != 0, b, 0) if longer else 0)[:8] for a, b in both]
    return [*frame, *_bytes(0, 0)]


def _beat(m, octets, number, name):
    """Beat ``number`` of a frame that goes on with zeros."""
    beat = Signal(32, name=name)
    with m.Switch(number):
        for k in range(len(octets) // 4):
            with m.Case(k):
                m.d.comb += beat.eq(Cat(octets[4 * k : 4 * k + 4]))
    return beat


def _covers(m, number, beats, begin, end, name):
    """Half words of header beat ``number`` that lie in bytes ``begin`` to ``end - 1``."""
    keep = Signal(2, name=name)
    with m.Switch(number):
        for k in range(beats):
            with m.Case(k):
                m.d.comb += keep.eq(Cat(begin <= 4 * k + h < end for h in (0, 2)))
    return keep


ONE = data.StructLayout({"frame": 1, "ram": 1, "first": 1, "last": 1, "empty": 2})
OUT = data.StructLayout({"data": 32, "empty": 2, "first": 1, "last": 1})


class FrameProof(Elaboratable):
    def __init__(self, cores, config=None):
        self.cores, self.config = cores, config
        #: Of the options in a SYN, in bytes; of the longest header, in beats.
        self.options = 4 if config is None else 12
        self.most = self.short = self.header = (54 + self.options + 3) // 4

    def elaborate(self, platform):
        m = new_harness()
        self.dut = dut = self.cores.Sender(32, tag_width=1, config=self.config)
        with patched(self.cores, PayloadReader=HeldReader, Checksum=AnyChecksum):
            self.inside = inside = Inside(m, dut)
        self.seg = dut.meta
        free(m, dut.segment.valid, dut.segment.payload, dut.frame.ready, dut.sent.ready)
        m.d.comb += [dut.mac.eq(AnyConst(48)), dut.ip.eq(AnyConst(32))]
        if self.config is not None:  # SACK blocks are longer
            self.most = (54 + 4 + 8 * self.config.runs + 3) // 4
            self.header = Mux(self.seg.blocks != 0, self.most, self.header)
        (stored,) = inside.part("metas").read_ports
        m.d.comb += Assume(stored.data.length <= LONGEST)  # tcp_sender_order proves it
        m.d.comb += Assume(self._told_well(stored.data))
        self.begin = inside["begin"]
        self._sizes(m)
        self._summed(m)
        self._turns(m)
        self._sent(m)
        self._counters(m)
        self._invariants(m)
        return m

    def _told_well(self, seg):
        """Blocks go without text and MSS, as the transmit engine has it (tcp_windows_transmit)."""
        if self.config is None:
            return 1
        pure = (seg.length == 0) & (seg.mss == 0)
        return (seg.blocks == 0) | (pure & (seg.blocks <= self.config.runs))

    def _at(self, *names):
        return Cat(self.inside.state(name, "prepare") for name in names).any()

    def _sizes(self, m):
        seg, has = self.seg, self.seg.mss != 0
        self.ip_size, self.tcp_size, self.size = (Signal(16, name=f"size{k}") for k in range(3))
        self.beats, self.texts, self.head = (Signal(10, name=f"beats{k}") for k in range(3))
        options = Mux(has, self.options, 0)
        if self.config is not None:
            options = Mux(seg.blocks != 0, 4 + 8 * seg.blocks, options)
        self.last = Signal(10, name="beats3")
        padded = Mux(self.size < 60, 60, self.size)
        self.empty = (-padded)[:2]
        m.d.comb += [
            self.size.eq(14 + 20 + 20 + options + seg.length),
            self.ip_size.eq(self.size - 14),
            self.tcp_size.eq(self.size - 34),
            self.beats.eq((padded + 3) >> 2),
            self.last.eq(self.header),
            # The beat in which the header ends.
            self.head.eq(Mux(has, (54 + self.options) // 4, 13)),
            # Payload begins in the upper half of a beat.
            self.texts.eq(Mux(seg.length == 0, 0, (2 + seg.length + 3) >> 2)),
        ]

    def _summed(self, m):
        """What the adders are given; their results when they are due."""
        dut, inside, seg = self.dut, self.inside, self.seg
        units = [inside.part(name) for name in ("ip_sum", "tcp_sum")]
        zeros = (Const(0, 16), Const(0, 16))
        octets = _octets(seg, dut.mac, dut.ip, (self.ip_size, self.tcp_size), zeros, self.config)
        self.summed = k = Signal(5)
        beat = _beat(m, octets, k, "beat_to_sum")
        ranges = ((14, 34, "of_ip"), (26, 4 * self.most - 2, "of_tcp"))
        keeps = [_covers(m, k, self.most, *where) for where in ranges]
        self.checks = [Signal(16, name=f"check{i}") for i in range(2)]
        self.later = [Signal(name=f"later{i}") for i in range(ADDS)]
        last = units[0].en & (k == self.header - 1)
        m.d.sync += [b.eq(a) for a, b in zip([last, *self.later], self.later, strict=False)]
        m.d.comb += Assert(units[0].en == units[1].en)
        with m.If(self.begin):
            m.d.sync += k.eq(0)
        with m.Elif(units[0].en):
            m.d.sync += k.eq(k + 1)
        for unit, keep, check in zip(units, keeps, self.checks, strict=True):
            m.d.comb += Assert(unit.en | ~unit.start)
            with m.If(unit.en):
                m.d.comb += [
                    Assert(k < self.header),
                    Assert(unit.start == (k == 0)),
                    Assert(unit.data == beat),
                    Assert(unit.keep == keep),
                ]
            with m.If(self.later[-1]):
                m.d.sync += check.eq(~unit.sum)
        swapped = Cat(self.tcp_size[8:], self.tcp_size[:8])
        self.extra = Signal(18)
        m.d.comb += self.extra.eq(dut.payload_sum + swapped + Cat(Const(0, 8), Const(6, 8)))
        with m.If(self.later[0]):
            m.d.comb += [Assert(units[0].extra == 0), Assert(units[1].extra == self.extra)]

    def _turns(self, m):
        """Each segment taken over is sent once; its header is gone when the next one is taken."""
        dut = self.dut
        self.sending, self.owed = Signal(name="under_way"), Signal()
        self.starts, self.ends = Signal(name="frame_starts"), Signal(name="frame_ends")
        self.number = Signal(10)  # beats of this frame that have entered the pipeline
        # Of the frame that is sent; the segment may be the next one already.
        names = ("beats", "texts", "head", "empty", "last")
        self.mine = {k: Signal.like(getattr(self, k), name=f"my_{k}") for k in names}
        m.d.comb += [
            self.starts.eq(dut.prepared & dut.free),
            Assert(~self.starts | (self.owed & (~self.sending | self.ends))),
            Assert(~self.begin | ~self.owed),
        ]
        m.d.comb += Assert(~self.begin | ~self.sending | (self.number >= self.mine["last"]))
        with m.If(self.begin):
            m.d.sync += self.owed.eq(1)
        with m.If(self.ends):
            m.d.sync += self.sending.eq(0)
        with m.If(self.starts):
            m.d.sync += [self.owed.eq(0), self.sending.eq(1)]
            m.d.sync += [signal.eq(getattr(self, k)) for k, signal in self.mine.items()]

    def _sent(self, m):
        """The frame, by a pipeline of two stages that is filled as the core sends."""
        dut, inside, seg, mine = self.dut, self.inside, self.seg, self.mine
        reader, frame = inside.part("reader"), dut.frame
        sizes, j = (self.ip_size, self.tcp_size), self.number
        octets = _octets(seg, dut.mac, dut.ip, sizes, self.checks, self.config)
        beat = _beat(m, octets, j, "beat_to_send")
        self.one, self.text, self.there = Signal(OUT, name="one_"), Signal(), Signal(name="there")
        two, shown = Signal(OUT, name="two_"), Signal(name="shown")
        moves, enters = Signal(), Signal()
        text = (j >= mine["head"]) & (j < mine["head"] + mine["texts"])
        last = j == mine["beats"] - 1
        m.d.comb += [
            moves.eq(~self.there | ~shown | frame.ready),
            enters.eq(self.sending & moves),
            self.ends.eq(enters & last),
        ]
        with m.If(moves):
            m.d.sync += self.there.eq(enters)
        with m.If(enters):
            m.d.sync += [
                self.one.data.eq(Mux(j < mine["last"], beat, 0)),
                self.one.first.eq(j == 0),
                self.one.last.eq(last),
                self.one.empty.eq(Mux(last, mine["empty"], 0)),
                self.text.eq(text),
            ]
        with m.If(self.starts):
            m.d.sync += j.eq(0)
        with m.Elif(enters):
            m.d.sync += j.eq(j + 1)
        m.d.comb += Assert(reader.r_en == (enters & text))
        m.d.comb += Assert(~enters | (j < mine["beats"]))
        with m.If(~shown | frame.ready):
            m.d.sync += [shown.eq(self.there), two.eq(self.one)]
            m.d.sync += two.data.eq(self.one.data | Mux(self.text, reader.r_data, 0))
        m.d.comb += Assert(frame.valid == shown)
        m.d.comb += Assert(~frame.payload.error)
        with m.If(frame.valid):
            for name in OUT.members:
                m.d.comb += Assert(frame.payload[name] == two[name])
        m.d.comb += [
            Cover(frame.valid & frame.payload.first & (seg.length == LONGEST)),
            Cover(frame.valid & frame.ready & ~frame.payload.first & (seg.mss != 0)),
        ]

    def _counters(self, m):
        dut, begun = self.dut, Signal()
        counts = {name: Signal(32, name=f"count_{name}") for name in ("frames", "bytes", "cut")}
        taken = dut.segment.valid & dut.segment.ready
        too_long = taken & (dut.segment.payload.length > LONGEST)
        m.d.sync += [
            begun.eq(self.begin),
            counts["frames"].eq(counts["frames"] + self.begin),
            counts["bytes"].eq(counts["bytes"] + Mux(begun, self.seg.length, 0)),
            counts["cut"].eq(counts["cut"] + too_long),
        ]
        for name, field in (("frames", "frames"), ("bytes", "payload_bytes"), ("cut", "cut")):
            register = Value.cast(getattr(dut.csr, field))
            m.d.comb += Assert(register == counts[name][: len(register)])
        m.d.comb += Assert(begun == self._at("SIZE"))

    def _invariants(self, m):
        dut, inside, at, seg = self.dut, self.inside, self._at, self.seg
        k, later = self.summed, Cat(self.later)
        unit = inside.part("ip_sum")
        m.d.comb += [
            Assert(inside.known("prepare")),
            Assert(at("IDLE") | (seg.length <= LONGEST)),
            Assert(at("IDLE") | self._told_well(seg)),
            Assert(self.owed == at("SIZE", "SUM", "FOLD", "READY")),
            Assert(inside["over"] == later),
            Assert((later & (later - 1))[:ADDS] == 0),
            Assert(~unit.en | at("SUM", "FOLD")),
            Assert((later == 0) | at("FOLD")),
            Assert((dut.at == 0) | at("SUM")),
        ]
        with m.If(unit.en):
            m.d.comb += Assert(inside["ends"] == (k == self.header - 1))
        with m.Else():
            m.d.comb += Assert(~inside["ends"])
        with m.If(at("SIZE")):
            m.d.comb += [Assert(k == 0), Assert(~unit.en)]
        with m.If(at("SIZE", "SUM")):
            m.d.comb += [Assert(dut.ip_check == 0), Assert(dut.tcp_check == 0)]
        with m.If(at("SUM", "FOLD", "READY", "HEADER")):
            m.d.comb += [
                Assert(dut.with_mss == (seg.mss != 0)),
                Assert(dut.length == self.size),
                Assert(dut.ip_length == self.ip_size),
                Assert(dut.tcp_length == self.tcp_size),
            ]
        with m.If(at("SUM")):
            m.d.comb += Assert((dut.at == k + unit.en) & (dut.at < self.header))
        with m.If((at("SUM") & (dut.at != 0)) | at("FOLD")):
            m.d.comb += Assert(inside["extra"] == self.extra)
        with m.If(at("FOLD")):
            # One beat after the other goes through the adder, and then its last sum.
            m.d.comb += Assert(inside["ends"] | (later != 0))
            m.d.comb += Assert(~(unit.en & (later != 0)))
            m.d.comb += Assert(k == self.header - unit.en)
        with m.If(at("READY", "HEADER")):
            m.d.comb += Assert(dut.ip_check == self.checks[0])
            m.d.comb += Assert(dut.tcp_check == self.checks[1])
        self._sender(m)

    def _sender(self, m):
        dut, inside, at, mine, j = self.dut, self.inside, self._at, self.mine, self.number
        one = data.View(ONE, inside["one"])
        left, stored = inside["left"], inside["stored"]
        m.d.comb += [
            Assert(one.frame == self.there),
            Assert(inside["sending"] == self.sending),
            Assert(~at("HEADER") | (self.sending & (j < self.header))),
        ]
        with m.If(self.there):
            m.d.comb += [
                Assert(inside["word"] == self.one.data),
                Assert(one.ram == self.text),
                Assert(one.first == self.one.first),
                Assert(one.last == self.one.last),
                Assert(one.empty == self.one.empty),
            ]
        with m.If(self.sending):
            head, texts = mine["head"], mine["texts"]
            done = Mux(j < head, 0, Mux(j < head + texts, j - head, texts))
            m.d.comb += [
                Assert(dut.beat == j),
                Assert(j < mine["beats"]),
                Assert(mine["beats"] <= (54 + self.options + LONGEST + 3) // 4),
                Assert(texts <= (2 + LONGEST + 3) // 4),
                Assert(left == (mine["beats"] - 1 - j)[: len(left)]),
                Assert(stored == (texts - done)[: len(stored)]),
                Assert(inside["tail"] == mine["empty"]),
                Assert((head == 13) | (head == (54 + self.options) // 4)),
                Assert((mine["last"] == self.short) | (mine["last"] == self.most)),
                Assert((j >= mine["last"]) | at("HEADER")),
            ]
            with m.If(at("HEADER")):
                m.d.comb += [Assert(s == getattr(self, k)) for k, s in mine.items()]


PROOFS = (
    Proof(
        name="tcp_sender_frame",
        core="cores.tcp.sender.Sender(32, 4096, 1460), its payload reader and adders any",
        says="every byte of a frame, lengths, padding, what both checksums cover and when they are "
        "taken, are those of RFC 791 and 9293 for any segment",
        module="trebuchet.cores.tcp.sender",
        build=FrameProof,
        depth=2,
        cover_depth=30,
        mutants=(
            Mutant(
                "a_port_in_ips_sum",
                "self._keep(self.at, 14, 34)",
                "self._keep(self.at, 14, 36)",
                20,
            ),
            Mutant(
                "swapped_ports",
                "*network(meta.local_port),\n            *network(meta.remote_port)",
                "*network(meta.remote_port),\n            *network(meta.local_port)",
                20,
            ),
            Mutant("pads_too_little", "length < _MIN_FRAME", "length < _MIN_FRAME - 4", 32),
            Mutant(
                "sum_too_early",
                "self.summed.eq(over[-1])",
                "self.summed.eq(over[-2])",
                30,
            ),
            Mutant(
                "next_header_too_early",
                "with m.If(self.header_gone):",
                "with m.If(self.beat == 0):",
                32,
            ),
            Mutant(
                "header_lost",
                "word | (self.reader.r_data & one.ram.replicate(self.width))",
                "word & (self.reader.r_data & one.ram.replicate(self.width))",
                30,
            ),
            Mutant("a_beat_too_many", "((length + n - 1) >> bits)", "((length + n) >> bits)", 32),
        ),
        assumes="beats of the payload stay until the next one is read",
        not_proved="64 bits; which segment it is (tcp_sender_order); a reset while running",
    ),
    Proof(
        name="tcp_sender_all",
        core="cores.tcp.sender.Sender(32, 4096, 1460) of every option, with any reader and adders",
        says="the same with every option: those of a SYN, and SACK blocks, are as the RFCs say",
        module="trebuchet.cores.tcp.sender",
        build=lambda cores: FrameProof(cores, ALL),
        depth=2,
        cover_depth=32,
        mutants=(
            Mutant("scales_always", "Mux(meta.scaled, C(b, 8), C(1, 8))", "C(b, 8)", 24),
            Mutant(
                "a_word_short", "self.words = 1 + self.scaling + self.sack", "self.words = 1", 24
            ),
        ),
        assumes="beats of the payload stay until the next one is read",
        not_proved="64 bits; which segment it is (tcp_sender_order); a reset while running",
    ),
)
