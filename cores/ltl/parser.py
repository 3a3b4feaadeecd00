"""The parser: checks received frames, takes header and payload apart.

Sources: IEEE 802.3 clause 3, RFC 791, RFC 768, RFC 3168, docs/network.md (LTL).
"""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..crc import CRC_INIT, crc_step
from ..net.checksum import Checksum
from ..stream import PacketSignature
from .config import CRC_FROM, HEADER_BYTES, TRAILER_BYTES, VERSION, Kind

__all__ = ["HEADER", "Parser"]

#: What the parser tells of a frame's header, as numbers.
HEADER = data.StructLayout(
    {
        "kind": 4,
        "nack": 1,
        "cnp": 1,
        "marked": 1,  # congestion experienced
        "connection": 16,
        "incarnation": 16,
        "seq": 32,
        "length": 16,
        "credit": 16,
    }
)

#: Byte of the frame and width in bytes.
_FIELDS = {
    "connection": (44, 2),
    "incarnation": (46, 2),
    "seq": (48, 4),
    "length": (52, 2),
    "credit": (54, 2),
    "ip_length": (16, 2),
    "udp_length": (38, 2),
    "first": (42, 1),
    "flags": (43, 1),
    "tos": (15, 1),
}
#: A frame of so many bytes or fewer cannot be told to be for us; a longer one has at least a port.
_SHORTEST = 48


class Parser(wiring.Component):
    """Takes LTL frames apart, and says at their end whether they were good.

    ==============  ====  =====================================================================
    ``rx``          In    whole Ethernet frames without FCS; ``ready`` is always 1
    ``mac``         In    our address, first byte on the wire in bits 7..0
    ``ip``          In    our address as a number
    ``port``        In    our UDP port
    ``max_length``  In    bytes of the longest message
    ``lookup``      Out   for one cycle: the frame is about connection ``about``
    ``about``       Out
    ``header``      Out   from 2 cycles after the header's last beat (H) on, until ``end``
    ``body``        Out   a beat of the message, from H + 3 on; it may be that the frame has no more
    ``data``        Out   the beat
    ``last``        Out   it is the message's last one
    ``end``         Out   for one cycle, after the last ``body``: the frame has ended,
    ``good``        Out   everything was right with it; else exactly one of these:
    ``foreign``     Out   it is no LTL frame for us
    ``corrupt``     Out   the MAC's error mark, wrong IPv4 checksum, or wrong CRC
    ``malformed``   Out   wrong version, kind, length or UDP checksum
    ==============  ====  =====================================================================

    *Latency*: ``end`` 3 cycles after the last beat. *Throughput*: one beat a cycle, frames without
    gaps. *Bad input*: frames of any length from one byte on; of one that is shorter than its
    header no field counts. *Reset*: the next beat starts a frame.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "rx": In(PacketSignature(config.width)),
                "mac": In(48),
                "ip": In(32),
                "port": In(16),
                "max_length": In(11),
                "lookup": Out(1),
                "about": Out(16),
                "header": Out(HEADER),
                "body": Out(1),
                "data": Out(config.width),
                "last": Out(1),
                "end": Out(1),
                "good": Out(1),
                "foreign": Out(1),
                "corrupt": Out(1),
                "malformed": Out(1),
            }
        )

    # A beat stands in `beat` for one cycle; `at` counts beats of the frame. Everything else
    # follows from these two in a pipeline that never stops.
    def elaborate(self, platform):
        m = Module()
        n = self.config.bytes
        limit = (HEADER_BYTES + 1504) // n
        self.valid, self.beat = Signal(), Signal.like(self.rx.payload)
        self.at = at = Signal(range(limit + 1))
        m.d.comb += self.rx.ready.eq(1)
        m.d.sync += [self.valid.eq(self.rx.valid), self.beat.eq(self.rx.payload)]
        with m.If(self.valid):
            m.d.sync += at.eq(Mux(self.beat.last, 0, at + (at != limit)))
        fields = self._capture(m)
        self._verdict(m, fields, self._addressed(m), self._sums(m))
        self._body(m)
        return m

    def _bytes(self, k):
        """Bytes of a frame that beat number ``k`` holds, by place in the frame."""
        n = self.config.bytes
        return {k * n + i: self.beat.data[8 * i : 8 * i + 8] for i in range(n)}

    def _header_beats(self, m):
        """Within ``m.Switch``: a case for each beat of the header, with its bytes."""
        for k in range(HEADER_BYTES // self.config.bytes):
            with m.Case(k):
                yield self._bytes(k)

    def _capture(self, m):
        fields = {name: Signal(8 * size, name=name) for name, (_, size) in _FIELDS.items()}
        self.fields = fields
        about = _FIELDS["connection"][0]
        with m.If(self.valid):
            with m.Switch(self.at):
                for octets in self._header_beats(m):
                    for name, (place, size) in _FIELDS.items():
                        for i in range(size):
                            if place + i in octets:
                                part = fields[name].word_select(size - 1 - i, 8)
                                m.d.sync += part.eq(octets[place + i])
                    if about in octets:
                        m.d.comb += self.lookup.eq(1)
                        m.d.comb += self.about.eq(Cat(octets[about + 1], octets[about]))
        # Held apart: that field is the next frame's before this one has ended.
        marked = Signal()
        with m.If(self.lookup):
            m.d.sync += marked.eq(fields["tos"][:2] == 3)
        for name in ("connection", "incarnation", "seq", "length", "credit"):
            m.d.comb += self.header[name].eq(fields[name])
        m.d.comb += [
            self.header.kind.eq(fields["first"][:4]),
            self.header.nack.eq(fields["flags"][0]),
            self.header.cnp.eq(fields["flags"][1]),
            self.header.marked.eq(marked),
        ]
        return fields

    def _addressed(self, m):
        """Whether all beats of the header but the one in ``beat`` were ours, and whether it is."""
        ip = Cat(self.ip.word_select(3 - i, 8) for i in range(4))
        wanted = {12: 0x08, 13: 0x00, 14: 0x45, 23: 17}
        wanted |= {i: self.mac.word_select(i, 8) for i in range(6)}
        wanted |= {30 + i: ip.word_select(i, 8) for i in range(4)}
        wanted |= {36: self.port[8:], 37: self.port[:8]}
        wrong, miss = Signal(), Signal()
        self.miss = miss
        with m.Switch(self.at):
            for octets in self._header_beats(m):
                terms = [octets[i] != w for i, w in wanted.items() if i in octets]
                if 20 in octets:  # more fragments, or an offset
                    terms.append(Cat(octets[20][:6], octets[21]) != 0)
                m.d.comb += wrong.eq(Cat(*terms).any() if terms else 0)
        with m.If(self.valid):
            m.d.sync += miss.eq(~self.beat.last & (miss | wrong))
        return miss | wrong

    def _sums(self, m):
        """IPv4 checksum and CRC, each right one cycle after the last beat."""
        n = self.config.bytes
        m.submodules.sum = total = Checksum(self.config.width)
        keep = Signal(n // 2)
        with m.Switch(self.at):
            for k in range(14 // n, -(-34 // n)):
                with m.Case(k):
                    m.d.comb += keep.eq(Cat(14 <= k * n + 2 * i < 34 for i in range(n // 2)))
        m.d.comb += [
            total.start.eq(self.valid & (self.at == 0)),
            total.en.eq(self.valid),
            total.keep.eq(keep),
            total.data.eq(self.beat.data),
        ]
        crc = Signal(32)
        after = crc_step(m, crc, self.beat.data, "rx_crc")
        match, held, rest, right = Signal(), Signal(), Signal(), Signal()
        self.crc, self.held = crc, held
        m.d.comb += match.eq(self.beat.data[:32] == ~crc)
        if n == 4:  # the CRC was in the beat before
            m.d.comb += rest.eq(held & (self.beat.data == 0))
        else:
            m.d.comb += rest.eq(match & (self.beat.data[32:] == 0))
        with m.If(self.valid):
            m.d.sync += [
                crc.eq(Mux(self.at >= CRC_FROM // n, after, C(CRC_INIT, 32))),
                held.eq(match),
                right.eq(rest),
            ]
        return (total.total == 0xFFFF) & right

    def _verdict(self, m, fields, miss, sums):
        # Stage 1: what the last beat settles. Stage 2: sums, lengths. Stage 3: out.
        n = self.config.bytes
        ended, damaged, foreign, count = Signal(), Signal(), Signal(), Signal.like(self.at)
        ragged = Signal()
        m.d.sync += [
            ended.eq(self.valid & self.beat.last),
            damaged.eq(self.beat.error),
            ragged.eq(self.beat.empty != 0),
            foreign.eq(miss | (self.at < _SHORTEST // n)),
            count.eq(self.at),
        ]
        padded, length = Signal(17), fields["length"]
        m.d.comb += padded.eq((length + 7) & 0x1FFF8)
        control = (fields["first"][:4] == Kind.ACK) | (fields["first"][:4] == Kind.PROBE)
        is_data = fields["first"][:4] == Kind.DATA
        self.checksum = checksum = Signal(16)  # the UDP checksum's field
        with m.If(self.valid & (self.at == CRC_FROM // n)):
            m.d.sync += checksum.eq(self.beat.data[:16])
        beats = (padded + HEADER_BYTES + TRAILER_BYTES)[(n - 1).bit_length() :]
        wrong = Cat(
            ragged,
            count + 1 != beats,
            fields["first"][4:] != VERSION,
            ~(is_data | control),
            control & (length != 0),
            is_data & ((length == 0) | (length > self.max_length)),
            fields["ip_length"] != padded + 50,
            fields["udp_length"] != padded + 30,
            checksum != 0,
        )
        ended2, foreign2, corrupt2, wrong2 = (
            Signal(name=n) for n in ("ended2", "foreign2", "corrupt2", "wrong2")
        )
        m.d.sync += [
            ended2.eq(ended),
            foreign2.eq(foreign),
            corrupt2.eq(damaged | ~sums),
            wrong2.eq(wrong.any()),
        ]
        m.d.sync += [
            self.end.eq(ended2),
            self.foreign.eq(ended2 & foreign2),
            self.corrupt.eq(ended2 & ~foreign2 & corrupt2),
            self.malformed.eq(ended2 & ~foreign2 & ~corrupt2 & wrong2),
            self.good.eq(ended2 & ~foreign2 & ~corrupt2 & ~wrong2),
        ]

    def _body(self, m):
        """Beats of the message, three cycles later, when the header is known and judged."""
        n, shift = self.config.bytes, (self.config.bytes - 1).bit_length()
        layout = data.StructLayout({"body": 1, "start": 1, "data": self.config.width})
        stages = [Signal(layout, name=f"delay{i}") for i in range(3)]
        in_body = self.valid & (self.at >= HEADER_BYTES // n)
        m.d.sync += stages[0].eq(Cat(in_body, self.valid & (self.at == 0), self.beat.data))
        m.d.sync += [b.eq(a) for a, b in zip(stages, stages[1:], strict=False)]
        out, index, words = stages[-1], Signal.like(self.at), Signal(17)
        self.index = index
        m.d.sync += words.eq((self.header.length + n - 1)[shift:])
        with m.If(out.start):
            m.d.sync += index.eq(0)
        with m.Elif(out.body):
            m.d.sync += index.eq(index + 1)
        m.d.comb += [
            self.body.eq(out.body & (index < words)),
            self.data.eq(out.data),
            self.last.eq(index + 1 == words),
        ]
