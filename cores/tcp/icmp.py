"""ICMP errors about our segments: frames in, notices for the receive engine out.

Sources: RFC 792 (Destination Unreachable), RFC 1191 section 4 (Next-Hop MTU), RFC 1071, RFC 5927
section 4 (what an attacker can forge), RFC 9293 section 3.9.2.2.
"""

from amaranth import C, Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo
from ..csr import CsrSignature, RegisterBlock, counter
from ..net.checksum import Checksum
from ..net.octets import byteswap
from ..net.strip import EthernetStrip
from ..net.vlan import VlanStrip
from ..stream import PacketSignature

__all__ = ["ICMP_BLOCK", "IcmpErrors", "notice_layout"]

ICMP_BLOCK = RegisterBlock(
    "icmp",
    (
        counter("notices", "ICMP errors handed to the TCP engine"),
        counter("errors", "ICMP errors dropped: marked damaged, or shorter than they say"),
        counter("malformed", "ICMP errors dropped: fragment, or too little of the segment quoted"),
        counter("ip_checksum", "ICMP errors dropped: wrong IPv4 header checksum"),
        counter("icmp_checksum", "ICMP errors dropped: wrong ICMP checksum"),
        counter("foreign", "ICMP errors dropped: what they quote is no segment of ours"),
        counter("overflow", "ICMP errors dropped: too many were waiting"),
    ),
    "ICMP errors about TCP segments",
)

#: Bytes of an ICMP error of use: its header, the IPv4 header quoted, ports and sequence number.
_QUOTE = 8 + 20 + 8


def notice_layout():
    """Of a segment that we sent: what somebody on its way says has become of it."""
    return data.StructLayout(
        {
            "ip": unsigned(32),  # who it was for
            "remote_port": unsigned(16),
            "local_port": unsigned(16),
            "seq": unsigned(32),
            "code": unsigned(8),  # of Destination Unreachable
            "mtu": unsigned(16),  # of the next hop if ``code`` is 4; 0: it was not told
        }
    )


class IcmpErrors(wiring.Component):
    """Picks Destination Unreachable messages about our segments out of a stream of frames.

    ===========  ====  ==================  =======================================================
    member       dir   shape               meaning
    ===========  ====  ==================  =======================================================
    ``frame``    In    packet stream       copy of a stream of frames; ``ready`` is always 1
    ``notice``   Out   stream of           one item for each good message, in order of arrival
                       notice_layout
    ``mac``      In    48                  this board's address, first byte on the wire in bits 7..0
    ``ip``       In    32                  this board's address as a number
    ``csr``      In    CsrSignature        counters, :data:`ICMP_BLOCK`
    ===========  ====  ==================  =======================================================

    A frame is looked at if it goes to ``mac`` and ``ip``, has Ethertype 0x0800, an IPv4 header of
    at least five words, protocol 1, and behind it ICMP type 3 within the IP total length; all
    others leave no trace. One that is looked at is handed on, or counted under the first of these
    that is so:

    1. ``errors``: ``error`` was set, or the frame has less bytes than the IP total length says;
    2. ``malformed``: it is a fragment (MF or an offset), or too short to hold the IPv4 header and
       eight bytes behind it that it must quote;
    3. ``ip_checksum``, then ``icmp_checksum``, which covers all of the message;
    4. ``foreign``: what is quoted is not the beginning of a segment of ours: an IPv4 header without
       options (0x45), fragment offset 0, protocol 6, source ``ip``. We send no IP options, so a
       quote with some is none of ours. Its total length and checksums are not looked at: routers
       change them (RFC 1812, 4.3.2.3);
    5. ``overflow``: ``depth`` notices were waiting.

    The message's own IP options are skipped, bytes behind the IP total length are padding. Whose
    the message is does not matter: any router on the way may send it, and any host may say it is
    one. What it quotes is held against the session (:mod:`~trebuchet.cores.tcp.icmp_error`).

    *Throughput*: one beat a cycle without gaps between frames. *Latency*: 8 cycles from a frame's
    last beat to its notice, one more at 64 bits with ``vlan``. *Back-pressure*: ``frame`` never
    waits; while ``notice`` is stalled the queue fills, then messages are dropped. ``mac`` and
    ``ip`` may change at any time; frames under way are then judged by either. Reset drops
    everything.

    Parameters
    ----------
    width : int
        Data path in bits, 32 or 64.
    depth : int
        Notices that may wait, at least 2.
    vlan : bool
        Frames may have a VLAN tag, which is not looked at.
    """

    def __init__(self, width=32, depth=4, vlan=False):
        if width not in (32, 64):
            raise ValueError(f"IcmpErrors data path width must be 32 or 64 bits, not {width!r}")
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"IcmpErrors depth must be an integer of at least 2, not {depth!r}")
        self.width, self.depth, self.vlan = width, depth, vlan
        super().__init__(
            {
                "frame": In(PacketSignature(width)),
                "notice": Out(stream.Signature(notice_layout())),
                "mac": In(48),
                "ip": In(32),
                "csr": In(CsrSignature(ICMP_BLOCK)),
            }
        )

    def watch(self, m, rx, mac, ip):
        """In module ``m``, look at all that goes through the packet stream ``rx``."""
        m.d.comb += [
            self.frame.valid.eq(rx.valid & rx.ready),
            self.frame.payload.eq(rx.payload),
            self.mac.eq(mac),
            self.ip.eq(ip),
        ]

    # A pipeline without back-pressure, as in the parser:
    #   strip -> [a] trim to the IP length -> [b] take fields, sum -> verdict
    # `end` marks in stage b that the frame is over. The next frame's first beat is there two cycles
    # later at the earliest, so the fields of its first words are registered before that; those of
    # later words stand still until the verdict, three cycles after `end`, as the sums do.
    def elaborate(self, platform):
        m = Module()
        m.submodules.strip = strip = EthernetStrip(self.width)
        frame = self.frame
        if self.vlan:
            m.submodules.tags = tags = VlanStrip(self.width)
            m.d.comb += [tags.i.valid.eq(frame.valid), tags.i.payload.eq(frame.payload)]
            m.d.comb += tags.o.ready.eq(1)
            frame = tags.o
        m.d.comb += [strip.i.valid.eq(frame.valid), strip.i.payload.eq(frame.payload)]
        m.d.comb += self.frame.ready.eq(1)
        b = self.b = self._trim(m, strip, self._addressed(m, frame))
        f = self.f = self._fields(m, b)
        sums = self._sums(m, b)
        self._verdict(m, b, f, sums)
        return m

    def _addressed(self, m, frame):
        """Whether the frame goes to our MAC, from the cycle after its first six bytes on."""
        n = self.width // 8
        beats = -(-6 // n)
        index = Signal(range(beats + 1))
        result, right = Signal(), Signal()
        self.index, self.addressed = index, result
        beat = frame.payload
        with m.Switch(index):
            for k in range(beats):
                here = min(6 - k * n, n)
                wanted = self.mac[8 * k * n : 8 * (k * n + here)]
                with m.Case(k):
                    m.d.comb += right.eq(beat.data[: 8 * here] == wanted)
        with m.If(frame.valid):
            with m.If(index != beats):
                m.d.sync += [index.eq(index + 1), result.eq(right & (result | (index == 0)))]
            with m.If(beat.last):
                m.d.sync += index.eq(0)
        return result

    def _trim(self, m, strip, addressed):
        """Stage a: cut the datagram out of the frame; return the stage b register."""
        n, lanes = self.width // 8, self.width // 32
        layout = {
            "valid": 1,  # a beat of the frame
            "first": 1,
            "wanted": 1,  # with `first`: frame and version are right
            "data": self.width,  # bytes behind the datagram, or the frame, are 0
            "word": signed(6),  # index of the lowest 32-bit word in the ICMP message, < 0 before it
            "at": range(5 // lanes + 2),  # beats of the frame before this one, saturating
            "end": 1,  # the frame is over
            "bad": 1,  # with `end`: it was marked damaged, or over too early
        }
        b = Signal(data.StructLayout(layout), name="b")
        left, here = Signal(16), Signal(16)  # bytes of the datagram from this beat on
        self.left = left
        held = Signal.like(strip.bytes)
        m.d.comb += [
            here.eq(Mux(strip.first, byteswap(strip.data[16:32]), left)),
            held.eq(Mux(strip.last, strip.bytes, n)),
        ]
        m.d.sync += [b.valid.eq(strip.valid), b.first.eq(strip.first)]
        m.d.sync += [b.end.eq(strip.valid & strip.last), b.bad.eq(strip.error | (here > held))]
        with m.If(strip.valid):
            m.d.sync += left.eq(Mux(here > n, here - n, 0))
            for i in range(n):
                byte, inside = strip.data.word_select(i, 8), (here > i) & (held > i)
                m.d.sync += b.data.word_select(i, 8).eq(byte & inside.replicate(8))
            with m.If(strip.first):
                right = (strip.type == 0x0800) & (strip.data[4:8] == 4) & (strip.data[:4] >= 5)
                m.d.sync += [b.word.eq(-strip.data[:4]), b.at.eq(0), b.wanted.eq(right & addressed)]
            with m.Else():
                with m.If(~(b.word[4] & ~b.word[5])):  # stays where it is from 16 on
                    m.d.sync += b.word.eq(b.word + lanes)
                with m.If(b.at != 5 // lanes + 1):
                    m.d.sync += b.at.eq(b.at + 1)
        return b

    def _fields(self, m, b):
        """Stage b: pick the fields as their words pass."""
        lanes = self.width // 32
        f = Signal(
            data.StructLayout(
                {
                    "off": 1,  # nothing that is looked at
                    "typed": 1,  # there was an ICMP header, of type 3
                    "fragment": 1,
                    "foreign": 1,
                    "ihl": 4,
                    "total": 16,
                    "length": signed(18),  # of the message, less what it must have
                    "notice": notice_layout(),
                }
            ),
            name="fields",
        )
        m.d.sync += f.length.eq(f.total - Cat(C(0, 2), f.ihl) - _QUOTE)
        with m.If(b.valid & b.first):
            m.d.sync += [f.off.eq(~b.wanted), f.typed.eq(0), f.fragment.eq(0), f.foreign.eq(0)]
            m.d.sync += [f.ihl.eq(b.data[:4]), f.total.eq(byteswap(b.data[16:32]))]
        for lane in range(lanes):
            word = b.data.word_select(lane, 32)
            for k in range(lane, 5, lanes):
                with m.If(b.valid & (b.at == k // lanes)):
                    self._ip_word(m, f, k, word)
            # A word that the IPv4 header has room for is never one of the message.
            with m.If(b.valid & (b.at >= (5 - lane + lanes - 1) // lanes)):
                for k in range(9):
                    with m.If(b.word == k - lane):
                        self._icmp_word(m, f, k, word)
        return f

    def _ip_word(self, m, f, k, word):
        if k == 1:
            m.d.sync += f.fragment.eq(Cat(word[16:22], word[24:]) != 0)
        if k == 2:
            with m.If(word[8:16] != 1):
                m.d.sync += f.off.eq(1)
        if k == 4:
            with m.If(byteswap(word) != self.ip):
                m.d.sync += f.off.eq(1)

    def _icmp_word(self, m, f, k, word):
        n = f.notice
        if k == 0:
            m.d.sync += [f.typed.eq(word[:8] == 3), n.code.eq(word[8:16])]
        if k == 1:
            m.d.sync += n.mtu.eq(byteswap(word[16:]))
        wrong = {
            2: word[:8] != 0x45,
            3: Cat(word[16:21], word[24:]) != 0,
            4: word[8:16] != 6,
            5: byteswap(word) != self.ip,
        }
        if k in wrong:
            with m.If(wrong[k]):
                m.d.sync += f.foreign.eq(1)
        if k == 6:
            m.d.sync += n.ip.eq(byteswap(word))
        if k == 7:
            m.d.sync += n.local_port.eq(byteswap(word[:16]))
            m.d.sync += n.remote_port.eq(byteswap(word[16:]))
        if k == 8:
            m.d.sync += n.seq.eq(byteswap(word))

    def _sums(self, m, b):
        """Both checksums; their totals are there three cycles after a beat was in stage b."""
        lanes = self.width // 32
        m.submodules.ip_sum = ip_sum = Checksum(self.width)
        m.submodules.icmp_sum = icmp_sum = Checksum(self.width)
        for unit in (ip_sum, icmp_sum):
            m.d.comb += [unit.start.eq(b.valid & b.first), unit.en.eq(b.valid)]
            m.d.comb += unit.data.eq(b.data)
        for lane in range(lanes):
            header = b.word < -lane
            m.d.comb += ip_sum.keep.word_select(lane, 2).eq(header.replicate(2))
            m.d.comb += icmp_sum.keep.word_select(lane, 2).eq((~header).replicate(2))
        return ip_sum.total, icmp_sum.total

    def _verdict(self, m, b, f, sums):
        """Three cycles after `end` was in stage b: keep the message or count why not."""
        m.submodules.queue = queue = StreamFifo(notice_layout(), self.depth)
        ended, ended_2 = Signal(), Signal()
        broken, broken_2, errors = Signal(), Signal(), Signal()
        meant, malformed, foreign = Signal(), Signal(), Signal()
        m.d.sync += [ended.eq(b.end), ended_2.eq(ended)]
        m.d.sync += [broken.eq(b.bad), broken_2.eq(broken), errors.eq(broken_2)]
        m.d.sync += [
            meant.eq(ended_2 & f.typed & ~f.off),
            malformed.eq(f.fragment | (f.length < 0)),
            foreign.eq(f.foreign),
        ]
        reasons = {
            "errors": errors,
            "malformed": malformed,
            "ip_checksum": sums[0] != 0xFFFF,
            "icmp_checksum": sums[1] != 0xFFFF,
            "foreign": foreign,
            "overflow": ~queue.i.ready,
        }
        good = meant
        for name, reason in reasons.items():
            count, event = getattr(self.csr, name), Signal(name=f"event_{name}")
            m.d.sync += [event.eq(good & reason), count.eq(count + event)]
            good = good & ~reason
        kept = Signal()
        m.d.comb += [queue.i.valid.eq(good), queue.i.payload.eq(f.notice)]
        m.d.sync += [kept.eq(good), self.csr.notices.eq(self.csr.notices + kept)]
        wiring.connect(m, queue.o, wiring.flipped(self.notice))
