"""Transmit side: segments in, Ethernet frames with their payload from memory out.

Sources: RFC 791, RFC 6864 section 4.1 (ID of atomic datagrams), RFC 9293 section 3.1, RFC 1071,
RFC 7323 section 2.2 (window scale option), RFC 2018 sections 2 and 3 (SACK options).
"""

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature, RegisterBlock, counter
from ..memory import MemorySignature
from ..net.checksum import Checksum
from ..net.vlan import VLAN_WIDTH, VlanInsert
from ..stream import PacketSignature
from .segment import tx_segment_layout
from .service import SESSION_WIDTH
from .tx_payload import PayloadReader

__all__ = ["SENDER_BLOCK", "Sender"]

SENDER_BLOCK = RegisterBlock(
    "tcp_tx",
    (
        counter("frames", "frames sent"),
        counter("payload_bytes", "payload bytes in them"),
        counter("cut", "segments longer than a frame takes, cut to what it does"),
    ),
    "TCP transmit side",
)

#: Segments inside at most. Each costs nothing but LUT RAM, which comes 16 deep.
_SLOTS = 8
_TTL = 64
_MIN_FRAME = 60
#: Bytes of the headers without options.
_HEADER = 54


class Sender(wiring.Component):
    """Reads payloads, computes checksums, emits frames in the order of the segments.

    ===========  ====  =======================  ==================================================
    member       dir   shape                    meaning
    ===========  ====  =======================  ==================================================
    ``segment``  In    stream of                what to send
                       tx_segment_layout
    ``mem``      Out   MemorySignature          reads only, all with tag 0; ``wdata`` is never valid
    ``frame``    Out   packet stream            Ethernet frames, padded to 60 bytes; ``error`` is 0
    ``sent``     Out   stream of session        one for each segment, in order: its memory has been
                                                read for the last time
    ``mac``      In    48                       this board's address, first byte in bits 7..0
    ``ip``       In    32                       this board's address as a number
    ``csr``      In    CsrSignature             counters, :data:`SENDER_BLOCK`
    ===========  ====  =======================  ==================================================

    Frames have TTL 64, DF, ID 0, no IP options, and of TCP options MSS alone when ``mss`` is not 0;
    behind it, with ``config.scaling``, the window scale option if ``scaled``, or as much NOP, and
    with ``config.sack`` SACK-permitted if ``permits``, or as much NOP. Without ``mss`` and payload,
    ``blocks`` SACK blocks; their upper bits are those of places from ``ack`` on.
    With ``config.vlan`` a frame has the segment's tag, if its top bit says that there is one.
    ``mac`` and ``ip`` stand still while segments are inside.
    A segment without payload touches no memory. A ``length`` above ``max_payload`` is cut to it
    (counter ``cut``); the peer then sees a shorter segment, which TCP repairs.

    *Throughput*: the next segments' payloads are read while a frame goes out, and the next header
    is summed, in 22 cycles at 32 bits, 10 at 64 (2 more with options), while the payload does. So a
    frame with as many beats of payload costs its own beats alone: with 1460 bytes 96 % of the data
    path, given a memory that keeps up at a latency below 300 cycles.
    *Latency*: 33 cycles without payload.
    *Back-pressure*: at most eight segments and ``buffer_bytes`` of payload are inside; memory is
    asked only for what has its place reserved, so ``rdata`` never waits for ``frame`` or ``sent``
    (only a few cycles between payloads). Reset drops everything.

    Parameters
    ----------
    width : int
        Data path in bits, 32 or 64.
    buffer_bytes : int
        Payload buffer, a power of two; twice ``max_payload`` or more for full throughput.
    max_payload : int
        Longest payload of a frame, at most 1460 and at most ``buffer_bytes - width / 4``.
    config : TcpConfig or None
        Says which options its engine sends; None: those of every engine.
    """

    def __init__(self, width=32, buffer_bytes=4096, max_payload=1460, tag_width=2, *, config=None):
        if width not in (32, 64):
            raise ValueError(f"Sender data path width must be 32 or 64 bits, not {width!r}")
        if (
            not isinstance(buffer_bytes, int)
            or buffer_bytes < 64
            or buffer_bytes & (buffer_bytes - 1)
        ):
            raise ValueError(
                f"Sender buffer_bytes must be a power of two of at least 64, not {buffer_bytes!r}"
            )
        most = min(1460, buffer_bytes - width // 4)
        if not isinstance(max_payload, int) or not 1 <= max_payload <= most:
            raise ValueError(f"Sender max_payload must be 1 to {most}, not {max_payload!r}")
        self.width = width
        self.buffer_bytes = buffer_bytes
        self.max_payload = max_payload
        self.config = config
        self.scaling = config is not None and config.scaling
        self.sack = config is not None and config.sack
        self.vlan = config is not None and config.vlan
        layout = tx_segment_layout(config)
        #: What the emitting side needs to know of a segment.
        self.meta_layout = data.StructLayout(
            {name: field.shape for name, field in layout if name not in ("session", "addr")}
        )
        #: Words of options in a SYN; bytes of its header, and of the longest header.
        self.words = 1 + self.scaling + self.sack
        self.longest = _HEADER + 4 * self.words
        self.most = _HEADER + 4 + 8 * config.runs if self.sack else self.longest
        super().__init__(
            {
                "segment": In(stream.Signature(layout)),
                "mem": Out(MemorySignature(width, tag_width)),
                "frame": Out(PacketSignature(width)),
                "sent": Out(stream.Signature(SESSION_WIDTH)),
                "mac": In(48),
                "ip": In(32),
                "csr": In(CsrSignature(SENDER_BLOCK)),
            }
        )

    def elaborate(self, platform):
        # Segments wait in a ring of slots. Four pointers chase each other round it: `taken` (put
        # in), `loaded` (payload in the buffer, its sum known), `told` (`sent` reported) and
        # `emitted`. A slot is free again when the last two have passed it.
        m = Module()
        n = self.width // 8
        m.submodules.reader = self.reader = PayloadReader(
            self.width, self.buffer_bytes // n, _SLOTS, self.mem.signature.tag_width
        )
        wiring.connect(m, self.reader.mem, wiring.flipped(self.mem))
        pointers = [
            Signal(range(2 * _SLOTS), name=s) for s in ("taken", "loaded", "told", "emitted")
        ]
        taken, loaded, told, emitted = pointers
        slot = [p[:-1] for p in pointers]

        m.submodules.metas = metas = Memory(shape=self.meta_layout, depth=_SLOTS, init=[])
        m.submodules.sessions = sessions = Memory(shape=SESSION_WIDTH, depth=_SLOTS, init=[])
        m.submodules.sums = sums = Memory(shape=16, depth=_SLOTS, init=[])
        put, ask = metas.write_port(), metas.read_port(domain="comb")
        put_session, ask_session = sessions.write_port(), sessions.read_port(domain="comb")
        put_sum, ask_sum = sums.write_port(), sums.read_port(domain="comb")

        segment, job = self.segment.payload, self.reader.job
        room = (taken - emitted)[: len(taken)] != _SLOTS
        room &= (taken - told)[: len(taken)] != _SLOTS
        take, cut = Signal(), Signal()
        m.d.comb += [
            cut.eq(segment.length > self.max_payload),
            job.valid.eq(self.segment.valid & room),
            self.segment.ready.eq(job.ready & room),
            take.eq(job.valid & job.ready),
            job.payload.addr.eq(segment.addr),
            job.payload.length.eq(Mux(cut, self.max_payload, segment.length)),
            job.payload.offset.eq(Mux(segment.mss != 0, self.longest, _HEADER) % n),
            put.addr.eq(slot[0]),
            put_session.addr.eq(slot[0]),
            put.en.eq(take),
            put_session.en.eq(take),
            put_session.data.eq(segment.session),
            put.data.length.eq(job.payload.length),
        ]
        for name in self.meta_layout.members:
            if name != "length":
                m.d.comb += getattr(put.data, name).eq(getattr(segment, name))
        m.d.comb += [
            put_sum.addr.eq(slot[1]),
            put_sum.en.eq(self.reader.done),
            put_sum.data.eq(self.reader.sum),
            ask_session.addr.eq(slot[2]),
            self.sent.valid.eq(told != loaded),
            self.sent.payload.eq(ask_session.data),
            ask.addr.eq(slot[3]),
            ask_sum.addr.eq(slot[3]),
        ]
        begin = Signal()
        m.d.sync += [
            taken.eq(taken + take),
            loaded.eq(loaded + self.reader.done),
            told.eq(told + (self.sent.valid & self.sent.ready)),
            emitted.eq(emitted + begin),
            self.csr.cut.eq(self.csr.cut + (take & cut)),
        ]
        self._emit(m, emitted != loaded, begin, ask.data, ask_sum.data)
        return m

    def _emit(self, m, ready, begin, meta_next, sum_next):
        """Two passes over the header: one to sum it, one to send it, the payload behind it.

        The first pass begins as soon as the header of the frame before has gone, so that it is over
        before that frame is.
        """
        meta, payload_sum = Signal(self.meta_layout), Signal(16)
        self.meta, self.payload_sum = meta, payload_sum  # for proofs
        n = self.width // 8
        self.last_header = -(-self.longest // n) - 1
        longest = -(-max(self.most, self.longest) // n) - 1
        most = self.longest + self.max_payload

        def one(name, shape=1):
            setattr(self, name, Signal(shape, name=name))

        one("ip_length", 16)
        one("tcp_length", 16)
        one("ip_check", 16)
        one("tcp_check", 16)
        one("length", range(most + 1))  # of the frame, without padding
        one("with_mss")
        one("prepared")  # the header may be sent
        one("free")  # a frame may begin
        one("header_gone")
        one("summing")  # the first pass
        one("summed")  # both sums are there
        # Places in the two passes, which never need the header at the same time.
        one("at", range(longest + 1))
        one("beat", range(-(-most // n) + 1))
        if self.sack:  # a header with blocks takes more beats
            self.last_header = Mux(meta.blocks != 0, longest, self.last_header)
        select = Mux(self.summing, self.at, self.beat)
        header = self._header(m, meta, select)
        self._prepare(m, ready, begin, meta_next, sum_next)
        self._sums(m, header)
        self._send(m, header)

    def _prepare(self, m, ready, begin, meta_next, sum_next):
        """Take a segment over, sum its header, and keep both until its header has gone."""
        meta = self.meta
        has = meta.mss != 0
        late = self.width == 64  # the checksums come while the frame goes out already
        words = Mux(has, self.words, 0)
        if self.sack:
            words = Mux(has, self.words, Mux(meta.blocks != 0, 1 + 2 * meta.blocks, 0))
        options = words << 2
        with m.FSM(name="prepare") as prepare:
            with m.State("IDLE"):
                m.d.sync += [meta.eq(meta_next), self.payload_sum.eq(sum_next)]
                m.d.sync += [self.ip_check.eq(0), self.tcp_check.eq(0)]
                with m.If(ready):
                    m.d.comb += begin.eq(1)
                    m.d.sync += self.csr.frames.eq(self.csr.frames + 1)
                    m.next = "SIZE"
            with m.State("SIZE"):
                m.d.sync += [
                    self.with_mss.eq(has),
                    self.ip_length.eq(meta.length + options + _HEADER - 14),
                    self.tcp_length.eq(meta.length + options + _HEADER - 34),
                    self.length.eq(meta.length + options + _HEADER),
                    self.csr.payload_bytes.eq(self.csr.payload_bytes + meta.length),
                ]
                m.next = "SUM"
            with m.State("SUM"):
                m.d.comb += self.summing.eq(1)
                m.d.sync += self.at.eq(self.at + 1)
                with m.If(self.at == self.last_header):
                    m.d.comb += self.prepared.eq(late)
                    m.d.sync += self.at.eq(0)
                    m.next = "READY" if late else "FOLD"
                    with m.If(self.prepared & self.free):
                        m.next = "HEADER"
            if not late:
                with m.State("FOLD"):
                    with m.If(self.summed):
                        m.next = "READY"
            with m.State("READY"):
                m.d.comb += self.prepared.eq(1)
                with m.If(self.free):
                    m.next = "HEADER"
            with m.State("HEADER"):
                with m.If(self.header_gone):
                    m.next = "IDLE"
        self.own = prepare.ongoing("HEADER")  # the header is that of the frame going out

    def _sums(self, m, header):
        """Both checksums, in time for the second pass.

        The IP header's is there 2 cycles after the last beat of the sum, the segment's after 5. At
        64 bits the second pass may have begun then: it sends the one with beat 3, after 4 cycles at
        the earliest, the other with beat 6, after 7.
        """
        n = self.width // 8
        tcp_length = self.tcp_length
        summand, keep_ip, keep_tcp = Signal(self.width), Signal(n // 2), Signal(n // 2)
        adds, starts, ends = Signal(), Signal(), Signal()
        extra = Signal(18)
        m.d.sync += [
            summand.eq(header),
            keep_ip.eq(self._keep(self.at, 14, 34)),
            keep_tcp.eq(self._keep(self.at, 26, max(self.most, self.longest))),
            adds.eq(self.summing),
            starts.eq(self.summing & (self.at == 0)),
            ends.eq(self.at == self.last_header),
            extra.eq(self.payload_sum + Cat(tcp_length[8:], tcp_length[:8]) + 0x0600),
        ]
        ip_sum, tcp_sum = Checksum(self.width), Checksum(self.width)
        m.submodules.ip_sum, m.submodules.tcp_sum = ip_sum, tcp_sum
        for unit, keep in ((ip_sum, keep_ip), (tcp_sum, keep_tcp)):
            m.d.comb += [
                unit.start.eq(starts),
                unit.en.eq(adds),
                unit.keep.eq(keep),
                unit.data.eq(summand),
            ]
        over = Signal(4)
        m.d.comb += [self.summed.eq(over[-1]), tcp_sum.extra.eq(extra)]
        m.d.sync += over.eq(Cat(ends, over))
        with m.If(over[0] if self.width == 64 else self.summed):
            m.d.sync += self.ip_check.eq(~ip_sum.sum)
        with m.If(self.summed):
            m.d.sync += self.tcp_check.eq(~tcp_sum.sum)

    def _send(self, m, header):
        n = self.width // 8
        bits = n.bit_length() - 1
        beat, length, frame = self.beat, self.length, self._line(m)
        left = Signal.like(beat)  # beats of the frame after this one
        stored = Signal.like(beat)  # beats of payload left in the buffer
        tail = Signal(bits)  # bytes that the last beat does not have
        sending = Signal()
        move = Signal()

        # Stage 1: the header's beat and, beside it in the RAM's output, the payload's.
        word = Signal(self.width)
        one = Signal(
            data.StructLayout({"frame": 1, "ram": 1, "first": 1, "last": 1, "empty": bits})
        )
        zero = Signal(one.shape())
        tag = Signal(VLAN_WIDTH)
        m.d.comb += move.eq(~one.frame | ~frame.valid | frame.ready)
        with m.If(move):
            m.d.sync += [one.eq(zero), word.eq(header)]
            if self.vlan:
                m.d.sync += tag.eq(self.meta.vlan)
            with m.If(~self.own):
                m.d.sync += word.eq(0)

        # Stage 2: the output register.
        out = frame.payload
        with m.If(~frame.valid | frame.ready):
            m.d.sync += frame.valid.eq(one.frame)
            if self.vlan:
                m.d.sync += self.tags.tag.eq(tag)
            m.d.sync += [out.first.eq(one.first), out.last.eq(one.last), out.empty.eq(one.empty)]
            m.d.sync += out.data.eq(word | (self.reader.r_data & one.ram.replicate(self.width)))

        head = Mux(self.with_mss, self.longest // n, _HEADER // n)  # the payload's first beat
        short = length < _MIN_FRAME
        m.d.comb += [
            zero.frame.eq(sending),
            zero.first.eq(beat == 0),
            zero.ram.eq(sending & (beat >= head) & (stored != 0)),
            zero.last.eq(left == 0),
            zero.empty.eq(Mux(left == 0, tail, 0)),
            self.reader.r_en.eq(zero.ram & move),
            self.header_gone.eq(move & ((beat == self.last_header) | (left == 0))),
            self.free.eq(~sending | (move & (left == 0))),
        ]
        with m.If(sending & move):
            m.d.sync += [beat.eq(beat + 1), left.eq(left - 1), stored.eq(stored - zero.ram)]
        with m.If(self.free):
            m.d.sync += [
                sending.eq(self.prepared),
                beat.eq(0),
                left.eq(Mux(short, -(-_MIN_FRAME // n) - 1, (length - 1) >> bits)),
                stored.eq(Mux(self.meta.length == 0, 0, ((length + n - 1) >> bits) - head)),
                tail.eq(Mux(short, -_MIN_FRAME % n, -length[:bits])),
            ]

    def _line(self, m):
        """The packet stream that frames go out by; their tags come into them behind it."""
        if not self.vlan:
            return self.frame
        frame = self.untagged = PacketSignature(self.width).create(path=("untagged",))
        m.submodules.tags = self.tags = VlanInsert(self.width)
        wiring.connect(m, frame, self.tags.i)
        wiring.connect(m, self.tags.o, wiring.flipped(self.frame))
        return frame

    def _blocks(self, meta, option, network):
        """Octets of options, a SYN's or SACK's, and words of the header."""
        bits, has = self.config.place_bits, meta.blocks != 0
        octets = [C(1, 8), C(1, 8), C(5, 8), Cat(C(2, 3), meta.blocks, C(0, 8))[:8]]
        for k in range(2 * self.config.runs):
            off = (meta.places[bits * k : bits * (k + 1)] - meta.ack)[:bits]
            shown = meta.blocks > k // 2
            octets += [Mux(shown, octet, C(0, 8)) for octet in network((meta.ack + off)[:32])]
        short = [C(0, 8)] * (len(octets) - len(option))
        option = [
            Mux(self.with_mss, a, Mux(has, b, C(0, 8)))
            for a, b in zip(option + short, octets, strict=True)
        ]
        words = Mux(has, 6 + 2 * meta.blocks, 5)
        return option, Mux(self.with_mss, 5 + self.words, words)

    def _keep(self, beat, begin, end):
        """Which half words of a beat lie in bytes ``begin`` .. ``end`` of the frame."""
        n = self.width // 8
        halves = []
        for i in range(n // 2):
            beats = [b for b in range(-(-end // n)) if begin <= b * n + 2 * i < end]
            halves.append((beat >= beats[0]) & (beat <= beats[-1]))
        return Cat(*halves)

    def _header(self, m, meta, beat):
        """The header's beat number ``beat``; zeros behind its end."""
        n, with_mss = self.width // 8, self.with_mss

        def network(value):
            return [value.word_select(i, 8) for i in reversed(range(len(value) // 8))]

        def wire(value):  # already in wire order
            return [value.word_select(i, 8) for i in range(len(value) // 8)]

        option = [C(2, 8), C(4, 8), *network(meta.mss)]
        if self.scaling:  # NOP, kind, length, shift; or four NOPs
            option += [Mux(meta.scaled, C(b, 8), C(1, 8)) for b in (1, 3, 3, self.config.shift)]
        if self.sack:
            option += [Mux(meta.permits, C(b, 8), C(1, 8)) for b in (1, 1, 4, 2)]
        option = [Mux(with_mss, octet, C(0, 8)) for octet in option]
        words = 5 + Mux(with_mss, self.words, C(0, 3))
        if self.sack:
            option, words = self._blocks(meta, option, network)
        octets = [
            *wire(meta.mac),
            *wire(self.mac),
            *(C(b, 8) for b in (0x08, 0x00, 0x45, 0x00)),
            *network(self.ip_length),
            *(C(b, 8) for b in (0, 0, 0x40, 0, _TTL, 6)),
            *wire(self.ip_check),
            *network(self.ip),
            *network(meta.ip),
            *network(meta.local_port),
            *network(meta.remote_port),
            *network(meta.seq),
            *network(meta.ack),
            Cat(C(0, 4), words[:4]),
            meta.flags.as_value(),
            *network(meta.window),
            *wire(self.tcp_check),
            C(0, 8),
            C(0, 8),
            *option,
        ]
        header = Signal(self.width)
        with m.Switch(beat):
            for at in range(0, len(octets), n):
                with m.Case(at // n):
                    m.d.comb += header.eq(Cat(*octets[at : at + n]))
        return header
