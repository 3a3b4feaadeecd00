"""Receive parser: Ethernet frames in, verified TCP segments and their payload out.

Sources: RFC 791 (IPv4), RFC 1071 (checksum), RFC 9293 sections 3.1 and 3.2 (TCP header, options),
RFC 7323 section 2.2 (window scale option).
"""

from amaranth import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import BlockFifo
from ..csr import CsrSignature, RegisterBlock, counter
from ..net.checksum import Checksum
from ..net.octets import byteswap
from ..net.rollback_fifo import RollbackFifo
from ..net.strip import EthernetStrip
from ..net.vlan import VlanStrip
from ..stream import PacketSignature
from .options import MssOption
from .segment import rx_segment_layout

__all__ = ["PARSER_BLOCK", "Parser"]

PARSER_BLOCK = RegisterBlock(
    "tcp_rx",
    (
        counter("segments", "segments handed to the engines"),
        counter("errors", "frames dropped: marked damaged, or shorter than they say"),
        counter("malformed", "frames dropped: no IPv4/TCP, fragment, wrong lengths or source"),
        counter("ip_checksum", "frames dropped: wrong IPv4 header checksum"),
        counter("tcp_checksum", "frames dropped: wrong TCP checksum"),
        counter("overflow", "frames dropped: no room for the payload or the segment"),
    ),
    "TCP receive parser",
)


class Parser(wiring.Component):
    """Verifies TCP/IPv4 frames and takes them apart.

    ===========  ====  ==================  =======================================================
    member       dir   shape               meaning
    ===========  ====  ==================  =======================================================
    ``frame``    In    packet stream       frames addressed to this board; ``ready`` is always 1
    ``segment``  Out   stream of           one item for each good segment, in order of arrival
                       rx_segment_layout
    ``payload``  Out   packet stream       payloads of the segments with ``length`` > 0, in the same
                                           order; ``error`` is always 0
    ``csr``      In    CsrSignature        counters, :data:`PARSER_BLOCK`
    ===========  ====  ==================  =======================================================

    Each frame is stored until its last beat is known, then either its segment and payload are
    handed on or it leaves no trace but a count. It is counted under the first of these that is so:

    1. ``errors``: ``error`` was set, the frame has less than 34 bytes, or less than the IP total
       length promises;
    2. ``malformed``: Ethertype is not 0x0800, version not 4, IHL < 5, a fragment (MF or an offset),
       protocol not 6, data offset < 5, total length too small for both headers, or a source that
       no host has (0/8, 127/8, multicast and all behind it: RFC 1122, 3.2.1.3, and RFC 9293,
       MUST-63);
    3. ``ip_checksum``, then ``tcp_checksum`` (pseudo header, header, options and payload);
    4. ``overflow``: the payload buffer or the segment queue had no room when it was needed.

    With ``config.vlan`` a VLAN tag is taken off before, and handed on with the segment.
    Bytes behind the IP total length are padding and are trimmed. IP options are skipped; of the TCP
    options only MSS is read, and those that ``config`` calls for
    (:class:`~trebuchet.cores.tcp.options.MssOption`). Whether the destination is ours is the
    classifier's business. A ``segment`` may be offered before the last
    beats of its payload have come through, and a payload before its segment was taken: take both.

    *Throughput*: one beat a cycle without gaps between frames. *Latency*: 7 cycles from a frame's
    last beat to its segment, one more at 64 bits with ``config.vlan``. *Back-pressure*: ``frame``
    never waits; stalled outputs fill the buffers, then whole frames are dropped. Reset drops
    everything.

    Parameters
    ----------
    width : int
        Data path in bits, 32 or 64.
    buffer_bytes : int
        Room for payloads, a power of two; each payload takes whole beats.
    segments : int
        Segments that may wait, a power of two.
    config : TcpConfig or None
        Says which options its engine looks at; None: those of every engine.
    """

    def __init__(self, width=32, buffer_bytes=4096, segments=16, config=None):
        if width not in (32, 64):
            raise ValueError(f"Parser data path width must be 32 or 64 bits, not {width!r}")
        for name, value in (("buffer_bytes", buffer_bytes), ("segments", segments)):
            if not isinstance(value, int) or value < 2 or value & (value - 1):
                raise ValueError(f"Parser {name} must be a power of two, not {value!r}")
        if buffer_bytes < 4 * width // 8:
            raise ValueError(f"Parser buffer_bytes must hold at least 4 beats, not {buffer_bytes}")
        self.width = width
        self.buffer_bytes = buffer_bytes
        self.segments = segments
        self.scaling = config is not None and config.scaling
        self.sack = config is not None and config.sack
        self.vlan = config is not None and config.vlan
        self.layout = rx_segment_layout(config)
        super().__init__(
            {
                "frame": In(PacketSignature(width)),
                "segment": Out(stream.Signature(self.layout)),
                "payload": Out(PacketSignature(width)),
                "csr": In(CsrSignature(PARSER_BLOCK)),
            }
        )

    def elaborate(self, platform):
        # A pipeline without back-pressure:
        #   strip -> [a] trim to the IP length -> [b] take fields, sum -> [c] store -> verdict
        # Stage b and c registers hold beats of the datagram. `end` marks that the frame is over,
        # with the datagram's last beat or later (padding). Between two frames' `end` and `first`
        # lie at least two cycles, so fields stand still until the verdict three cycles later.
        m = Module()
        m.submodules.strip = strip = EthernetStrip(self.width)
        if self.vlan:
            m.submodules.tags = self.tags = VlanStrip(self.width)
            wiring.connect(m, wiring.flipped(self.frame), self.tags.i)
            wiring.connect(m, self.tags.o, strip.i)
        else:
            wiring.connect(m, wiring.flipped(self.frame), strip.i)
        b = self.b = self._trim(m, strip)
        fields = self.fields = self._fields(m, strip, b)
        c = self.c = Signal(b.shape(), name="c")
        m.d.sync += [c.valid.eq(0), c.final.eq(0), c.end.eq(b.end)]
        m.d.sync += [c.short.eq(b.short), c.error.eq(b.error)]
        with m.If(b.valid):
            m.d.sync += c.eq(b)
        option = self._options(m, b, c, fields)
        sums = self._sums(m, b, fields)
        fifo = self._store(m, c, fields)
        self._verdict(m, strip, c, fields, sums, option, fifo)
        return m

    def _trim(self, m, strip):
        """Stage a: cut the datagram out of the frame; return the stage b register."""
        n, lanes = self.width // 8, self.width // 32
        bits = n.bit_length() - 1
        layout = {
            "valid": 1,  # a beat of the datagram
            "first": 1,
            "final": 1,  # the datagram's last beat
            "top": bits,  # index of the last valid byte, with `final`
            "keep": n,  # valid bytes; the others are 0
            "data": self.width,
            "word": signed(6),  # index of the lowest 32-bit word in the TCP header, < 0 before it
            "end": 1,  # the frame is over
            "error": 1,  # with `end`: it was marked damaged
            "short": 1,  # with `end`: it was over too early
        }
        b = Signal(data.StructLayout(layout), name="b")
        left, done = Signal(16), Signal()  # bytes left, less one; the datagram is over
        self.left, self.done = left, done
        enough, odd = divmod(20, n)  # whole beats of the shortest IP header, and bytes
        beats = self.beats = Signal(range(enough + 2))
        total = byteswap(strip.data[16:32])
        final, over, tiny = Signal(), Signal(), Signal()
        seen, held = Signal.like(beats), Signal.like(strip.bytes)
        top = left[:bits]
        m.d.comb += [
            final.eq(~strip.first & (left[bits:] == 0)),
            over.eq(~strip.first & done),
            tiny.eq(strip.first & (total <= n)),
            seen.eq(Mux(strip.first, 0, beats)),
            held.eq(Mux(strip.last, strip.bytes, n)),
        ]
        lacking = ~over & ~tiny & ~(final & (held > top))
        cut = (seen + 1 < enough) | ((seen + 1 == enough) & (odd != 0 or held != n))
        if odd:
            cut |= (seen == enough) & (held < odd)
        m.d.sync += [b.valid.eq(0), b.first.eq(0), b.final.eq(0)]
        m.d.sync += [b.end.eq(strip.valid & strip.last), b.error.eq(strip.error)]
        m.d.sync += b.short.eq(lacking | cut)
        with m.If(strip.valid):
            m.d.sync += [
                beats.eq(Mux(seen == enough + 1, seen, seen + 1)),
                left.eq(Mux(strip.first, total, left) - Mux(strip.first, n + 1, n)),
                done.eq(over | final | tiny),
                b.valid.eq(~over),
                b.first.eq(strip.first),
                b.final.eq(final & ~over),
                b.top.eq(top),
            ]
            for i in range(n):
                keep = ~final | (i <= top)
                byte = strip.data.word_select(i, 8)
                m.d.sync += b.keep[i].eq(keep)
                m.d.sync += b.data.word_select(i, 8).eq(byte & keep.replicate(8))
            with m.If(strip.first):
                m.d.sync += b.word.eq(-strip.data[:4])
            with m.Elif(~(b.word[4] & ~b.word[5])):  # stays where it is from 16 on
                m.d.sync += b.word.eq(b.word + lanes)
        return b

    def _fields(self, m, strip, b):
        """Stage b: pick the header fields as their words pass."""
        lanes = self.width // 32
        f = Signal(
            data.StructLayout(
                {
                    "ihl": 4,
                    "total": 16,
                    "offset": 4,
                    "bad": 1,  # no IPv4/TCP
                    "tcp_length": signed(17),
                    "length": signed(18),  # payload
                    "segment": self.layout,
                }
            ),
            name="fields",
        )
        beat, here = Signal(range(5 // lanes + 2)), Signal(range(5 // lanes + 2))
        self.field_beat = beat
        m.d.comb += here.eq(Mux(b.first, 0, beat))
        m.d.sync += f.tcp_length.eq(f.total - Cat(C(0, 2), f.ihl))
        m.d.sync += f.length.eq(f.tcp_length - Cat(C(0, 2), f.offset))

        def ip_word(k):
            return b.valid & (here == k // lanes), b.data.word_select(k % lanes, 32)

        with m.If(b.valid & (here != 5 // lanes + 1)):
            m.d.sync += beat.eq(here + 1)
        now, word = ip_word(0)
        with m.If(now):
            version = (word[4:8] != 4) | (word[:4] < 5) | (strip.type != 0x0800)
            m.d.sync += [f.ihl.eq(word[:4]), f.total.eq(byteswap(word[16:])), f.offset.eq(0)]
            m.d.sync += f.bad.eq(version)
        now, word = ip_word(1)
        with m.If(now & (Cat(word[16:22], word[24:]) != 0)):
            m.d.sync += f.bad.eq(1)
        now, word = ip_word(2)
        with m.If(now & (word[8:16] != 6)):
            m.d.sync += f.bad.eq(1)
        now, word = ip_word(3)
        with m.If(now):
            m.d.sync += [f.segment.ip.eq(byteswap(word)), f.segment.mac.eq(strip.mac)]
            if self.vlan:  # the next frame's is not there before this one's last byte is
                m.d.sync += f.segment.vlan.eq(self.tags.tag)
        with m.If(now & ((word[5:8] == 7) | (word[:8] == 0) | (word[:8] == 127))):
            m.d.sync += f.bad.eq(1)
        # An impossible IHL must not touch what the frame before still needs.
        now = b.valid & (here >= 4 // lanes)
        for lane in range(lanes):
            self._tcp_fields(m, b, now, lane, f)
        return f

    def _tcp_fields(self, m, b, now, lane, f):
        word = b.data.word_select(lane, 32)
        targets = {
            0: [
                f.segment.remote_port.eq(byteswap(word[:16])),
                f.segment.local_port.eq(byteswap(word[16:])),
            ],
            1: [f.segment.seq.eq(byteswap(word))],
            2: [f.segment.ack.eq(byteswap(word))],
            3: [
                f.offset.eq(word[4:8]),
                f.segment.flags.eq(word[8:16]),
                f.segment.window.eq(byteswap(word[16:])),
            ],
        }
        for index, statements in targets.items():
            with m.If(now & (b.word == index - lane)):
                m.d.sync += statements

    def _options(self, m, b, c, f):
        """A word of options goes to the search when the one after it is known, too."""
        lanes = self.width // 32
        m.submodules.option = option = MssOption(lanes, self.scaling, self.sack)
        waiting, pending, fire = Signal(), Signal(), Signal()
        self.waiting = waiting
        m.d.comb += [
            pending.eq(c.valid | waiting),
            fire.eq(pending & (b.valid | c.final)),
            option.clear.eq(b.first),
            option.data.eq(c.data),
            option.next.eq(b.data[:32]),
        ]
        m.d.sync += waiting.eq(pending & ~fire)
        for lane in range(lanes):
            index = c.word + lane
            m.d.comb += [
                option.en[lane].eq(fire & (index >= 5) & (index < f.offset)),
                option.more[lane].eq(index + 1 < f.offset),
            ]
        return option

    def _sums(self, m, b, f):
        """Both checksums; their totals are there three cycles after a beat was in stage b."""
        lanes = self.width // 32
        m.submodules.ip_sum = ip_sum = Checksum(self.width)
        m.submodules.tcp_sum = tcp_sum = Checksum(self.width)
        beat, here = Signal(range(4 // lanes + 2)), Signal(range(4 // lanes + 2))
        self.sum_beat = beat
        m.d.comb += here.eq(Mux(b.first, 0, beat))
        with m.If(b.valid & (here != 4 // lanes + 1)):
            m.d.sync += beat.eq(here + 1)
        for unit in (ip_sum, tcp_sum):
            m.d.comb += [unit.start.eq(b.first), unit.en.eq(b.valid), unit.data.eq(b.data)]
        for lane in range(lanes):
            header = b.word < -lane
            address = Cat(here == k // lanes for k in (3, 4) if k % lanes == lane).any()
            m.d.comb += [
                ip_sum.keep.word_select(lane, 2).eq(header.replicate(2)),
                tcp_sum.keep.word_select(lane, 2).eq((~header | address).replicate(2)),
            ]
        # The pseudo header's zero, protocol and length (RFC 9293, 3.1).
        m.d.comb += tcp_sum.extra.eq(byteswap(f.tcp_length.as_unsigned()[:16]) + 0x0600)
        return ip_sum.total, tcp_sum.total

    def _store(self, m, c, f):
        """Stage c: align the payload and write it, not yet committed, behind a register."""
        n = self.width // 8
        layout = data.StructLayout({"data": self.width, "empty": range(n), "last": 1})
        m.submodules.fifo = fifo = RollbackFifo(layout, self.buffer_bytes // n)
        word, write = Signal(layout), Signal()
        m.d.comb += [fifo.w_data.eq(word), fifo.w_en.eq(write)]
        wanted = ~f.bad & (f.offset >= 5)
        inside = c.word >= f.offset
        m.d.sync += write.eq(c.valid & inside & wanted)
        if self.width == 32:
            m.d.sync += [
                word.data.eq(c.data),
                word.last.eq(c.final),
                word.empty.eq(Mux(c.final, ~c.top, 0)),
            ]
        else:
            # A header with an odd number of words leaves the payload in the upper half.
            odd, upper, flush = f.ihl[0] ^ f.offset[0], Signal(32), Signal()
            self.upper = upper
            fits = ~odd | ~c.top[2]
            flush_empty = Signal(3)
            m.d.sync += [
                word.data.eq(Mux(odd, Cat(upper, c.data[:32]), c.data)),
                word.last.eq(c.final & fits),
                word.empty.eq(Mux(c.final & fits, ~c.top ^ (odd << 2), 0)),
                flush.eq(c.final & ~fits & wanted & (c.word + 1 >= f.offset)),
                flush_empty.eq(Cat(~c.top[:2], C(1, 1))),
            ]
            with m.If(c.valid):
                m.d.sync += upper.eq(c.data[32:])
            with m.If(flush):
                m.d.sync += [write.eq(1), word.data.eq(upper)]
                m.d.sync += [word.last.eq(1), word.empty.eq(flush_empty)]
        first = Signal(init=1)
        out = fifo.output
        with m.If(out.valid & out.ready):
            m.d.sync += first.eq(out.payload.last)
        m.d.comb += [
            self.payload.valid.eq(out.valid),
            out.ready.eq(self.payload.ready),
            self.payload.payload.data.eq(out.payload.data),
            self.payload.payload.empty.eq(out.payload.empty),
            self.payload.payload.last.eq(out.payload.last),
            self.payload.payload.first.eq(first),
        ]
        return fifo

    def _verdict(self, m, strip, c, f, sums, option, fifo):
        """Two cycles after `end` was in stage c: keep the frame or count why not."""
        segment = Signal(self.layout)
        m.submodules.queue = queue = BlockFifo(width=len(segment.as_value()), depth=self.segments)
        end, judge = Signal(), Signal()
        errors, malformed, overflow = Signal(), Signal(), Signal()
        self.overflow = overflow
        m.d.sync += [end.eq(c.end), judge.eq(end)]
        broken = Signal()
        m.d.sync += [broken.eq(c.error | c.short), errors.eq(broken)]
        m.d.sync += malformed.eq(f.bad | (f.offset < 5) | (f.length < 0))
        lost = overflow | (fifo.w_en & fifo.full)
        m.d.sync += overflow.eq(lost & ~judge)

        reasons = (
            ("errors", errors),
            ("malformed", malformed),
            ("ip_checksum", sums[0] != 0xFFFF),
            ("tcp_checksum", sums[1] != 0xFFFF),
            ("overflow", lost | ~queue.w_rdy),
        )
        good = judge
        for name, reason in reasons:
            count, event = getattr(self.csr, name), Signal(name=f"event_{name}")
            m.d.sync += event.eq(good & reason)
            m.d.sync += count.eq(count + event + (strip.runt if name == "errors" else 0))
            good = good & ~reason
        keep = Signal()
        m.d.comb += [
            keep.eq(good),
            fifo.commit.eq(keep),
            fifo.rollback.eq(judge & ~keep),
            segment.eq(f.segment),
            segment.mss.eq(option.mss),
            segment.length.eq(f.length.as_unsigned()[:16]),
            queue.w_en.eq(keep),
            queue.w_data.eq(segment.as_value()),
        ]
        if self.scaling:
            m.d.comb += [segment.scaled.eq(option.scaled), segment.scale.eq(option.scale)]
        if self.sack:
            m.d.comb += segment.permits.eq(option.permits)
        kept = Signal()
        m.d.sync += [kept.eq(keep), self.csr.segments.eq(self.csr.segments + kept)]

        out = self.segment
        m.d.comb += queue.r_en.eq(~out.valid | out.ready)
        with m.If(queue.r_en):
            m.d.sync += [out.valid.eq(queue.r_rdy), out.payload.eq(queue.r_data)]
