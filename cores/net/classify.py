"""Frame classifier: IPv4/TCP for this board goes to the TCP engine, everything else elsewhere.

Sources: IEEE 802.3 clause 3 (frame), RFC 791 section 3.1 (IPv4 header).
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature, RegisterBlock, counter
from ..stream import PacketSignature, beat_layout, check_data_width
from .vlan import VlanStrip

__all__ = ["CLASSIFIER_BLOCK", "Classifier"]

CLASSIFIER_BLOCK = RegisterBlock(
    "classifier",
    (
        counter("toe_frames", "frames handed to the TCP engine"),
        counter("other_frames", "frames handed to the other port"),
        counter("errors", "frames that came with an error mark (they are handed on with it)"),
        counter("drops", "frames for the other port dropped or cut because it was blocked"),
    ),
    "frame classifier",
)

#: Bytes that must be seen before a frame can be told: up to the end of the IPv4 addresses.
_HEADER_BYTES = 34


class Classifier(wiring.Component):
    """Sends each received frame whole to one of two outputs.

    ===========  ====  ==============  =============================================================
    member       dir   width           meaning
    ===========  ====  ==============  =============================================================
    ``rx``       In    packet stream   frames from the MAC
    ``toe``      Out   packet stream   IPv4/TCP frames to ``mac`` and ``ip`` that are no fragments,
                                       from a station that can be answered
    ``other``    Out   packet stream   all other frames (ARP, ICMP, UDP, broadcast, …)
    ``mac``      In    48              this board's address, first byte on the wire in bits 7..0
    ``ip``       In    32              this board's address as a number (192.168.1.50 = 0xC0A80132)
    ``enable``   In    1               0: every frame goes to ``other``
    ``csr``      In    CsrSignature    counters, :data:`CLASSIFIER_BLOCK`
    ===========  ====  ==============  =============================================================

    A station can be answered unless its MAC address is that of a group or ours, or its IP address
    is ours (RFC 1122, 3.3.6 and 3.2.1.3): the engine sends to the source of what it takes.
    ``mac``, ``ip`` and ``enable`` may change at any time; frames under way then go to either
    output, but whole. IP options, a wrong header length or checksum do not matter here: the
    parser judges them. A frame shorter than 34 bytes goes to ``other``. ``error`` is handed on.

    *Latency*: the first beat leaves when 34 bytes (or the frame's last beat) have come, plus 3
    cycles, 5 with ``vlan``. *Throughput*: one beat a cycle.

    *Back-pressure*: ``rx`` waits for the output its frame goes to. ``other`` cannot stop ``toe``
    for ever: when it has not taken a beat for ``patience`` cycles, the frame under way is cut (its
    rest is dropped; when ``other`` comes back it gets a last beat with ``error``) and whole frames
    for ``other`` are dropped until it takes beats again; each such frame counts in ``drops``.
    ``toe`` is trusted: put a buffer behind it that drops whole frames when it is full.

    Parameters
    ----------
    width : int
        Data path in bits.
    patience : int
        Cycles that ``other`` may hold a beat up, a power of two of at least 2.
    vlan : bool
        A frame is told by what it is without its VLAN tag; its beats go where they go with it.
    """

    def __init__(self, width=32, patience=1024, vlan=False):
        self.width = check_data_width(width)
        if not isinstance(patience, int) or patience < 2 or patience & (patience - 1):
            raise ValueError(f"Patience must be a power of two of at least 2, not {patience!r}")
        self.patience, self.vlan = patience, vlan
        super().__init__(
            {
                "rx": In(PacketSignature(width)),
                "toe": Out(PacketSignature(width)),
                "other": Out(PacketSignature(width)),
                "mac": In(48),
                "ip": In(32),
                "enable": In(1),
                "csr": In(CsrSignature(CLASSIFIER_BLOCK)),
            }
        )

    def elaborate(self, platform):
        # A short delay line holds a frame's first beats while the matcher looks at them; the
        # matcher's verdicts queue beside it, one bit a frame.
        m = Module()
        beats = -(-_HEADER_BYTES * 8 // self.width)
        layout = beat_layout(self.width)
        # One place a beat of the header, and room for the verdict to travel.
        depth = max(8, beats + 7 + 2 * self.vlan)
        m.submodules.delay = delay = SyncFIFO(width=layout.size, depth=depth)
        m.submodules.verdicts = verdicts = SyncFIFO(width=1, depth=delay.depth)
        take = Signal()
        m.d.comb += [
            self.rx.ready.eq(delay.w_rdy),
            take.eq(self.rx.valid & delay.w_rdy),
            delay.w_en.eq(take),
            delay.w_data.eq(self.rx.payload.as_value()),
        ]
        self._match(m, *self._plain(m, take), beats, verdicts)
        self._dispatch(m, layout, delay, verdicts)
        return m

    def _plain(self, m, take):
        """Beats that are compared: when, and which."""
        if not self.vlan:
            return take, self.rx.payload
        m.submodules.tags = tags = VlanStrip(self.width)
        m.d.comb += [tags.i.valid.eq(take), tags.i.payload.eq(self.rx.payload), tags.o.ready.eq(1)]
        return tags.o.valid, tags.o.payload

    def _match(self, m, take, seen, beats, verdicts):
        """Compare the header as it passes; queue the verdict after the beat that settles it."""
        n = self.width // 8
        index = Signal(range(beats + 1))
        miss = Signal()
        self.differs = Signal()  # the source address under way is not ours
        verdict, decided = Signal(), Signal()
        self.index, self.miss = index, miss  # for the invariants of the proofs, like those below
        m.d.sync += decided.eq(0)
        ip = Cat(self.ip.word_select(3 - i, 8) for i in range(4))
        mac = [self.mac.word_select(i, 8) for i in range(6)]
        wanted = {12: 0x08, 13: 0x00, 23: 6} | dict(enumerate(mac))
        wanted |= {30 + i: ip.word_select(i, 8) for i in range(4)}
        # Our own addresses at the places of a frame's source.
        own = [{6 + i: byte for i, byte in enumerate(mac)}]
        own.append({26 + i: ip.word_select(i, 8) for i in range(4)})
        wrong, differing = Signal(), Signal()
        with m.Switch(index):
            for beat in range(beats):
                byte = {beat * n + i: seen.data[8 * i : 8 * i + 8] for i in range(n)}
                terms = [byte[i] != w for i, w in wanted.items() if i in byte]
                if 6 in byte:
                    terms.append(byte[6][0])
                if 14 in byte:
                    terms.append(byte[14][4:] != 4)
                if 20 in byte:  # more fragments, or an offset
                    terms.append(Cat(byte[20][:6], byte[21]) != 0)
                with m.Case(beat):
                    terms += self._source_is_ours(m, own, byte, differing)
                    m.d.comb += wrong.eq(Cat(*terms).any() if terms else 0)
        with m.If(take):
            m.d.sync += self.differs.eq(differing)
            last = seen.last
            short = index * n + (n - seen.empty) < _HEADER_BYTES
            with m.If(index != beats):
                m.d.sync += [index.eq(index + 1), miss.eq(miss | wrong)]
                with m.If(last | (index == beats - 1)):
                    m.d.sync += [
                        decided.eq(1),
                        verdict.eq(~miss & ~wrong & ~(last & short) & self.enable),
                    ]
            with m.If(last):
                m.d.sync += [index.eq(0), miss.eq(0)]
        m.d.comb += [verdicts.w_en.eq(decided), verdicts.w_data.eq(verdict)]

    def _source_is_ours(self, m, own, byte, differing):
        """Terms that are 1 where a source address ends and all its bytes were those of ``own``.

        ``own`` are addresses, bytes by their places in a frame; ``byte`` are those of this beat. An
        address that began in an earlier beat has left there in ``differs`` whether it is another.
        """
        terms = []
        for address in own:
            here = [byte[place] != value for place, value in address.items() if place in byte]
            if here:
                other = Cat(*here).any() | (self.differs & (min(address) not in byte))
                if max(address) in byte:
                    terms.append(~other)
                else:
                    m.d.comb += differing.eq(other)
        return terms

    def _dispatch(self, m, layout, delay, verdicts):
        """Move beats from the delay line to the output registers."""
        beat = Signal(layout)
        m.d.comb += beat.eq(delay.r_data)
        inside, to_toe_held = Signal(), Signal()
        to_toe = Mux(inside, to_toe_held, verdicts.r_data)
        room = {port: Signal(name=f"room_{port}") for port in ("toe", "other")}
        move = Signal()
        cutting, owed = Signal(), Signal()  # dropping this frame's rest; a closing beat is due
        stall = Signal(self.patience.bit_length())
        self.inside, self.to_toe, self.cutting, self.owed = inside, to_toe_held, cutting, owed
        self.stall = stall
        stuck = stall[-1]
        for name, out in (("toe", self.toe), ("other", self.other)):
            m.d.comb += room[name].eq(~out.valid | out.ready)
            with m.If(out.ready):
                m.d.sync += out.valid.eq(0)
        with m.If(~self.other.valid | self.other.ready):
            m.d.sync += stall.eq(0)
        with m.Elif(~stuck):
            m.d.sync += stall.eq(stall + 1)

        # A frame for `other` goes on, or is thrown away from here to its end.
        refuse = cutting | stuck | owed
        available = delay.r_rdy & (inside | verdicts.r_rdy)
        m.d.comb += [
            move.eq(available & Mux(to_toe, room["toe"], refuse | room["other"])),
            delay.r_en.eq(move),
            verdicts.r_en.eq(move & ~inside),
        ]
        dropped = Signal()
        with m.If(move):
            m.d.sync += [inside.eq(~beat.last), to_toe_held.eq(to_toe)]
            with m.If(to_toe):
                m.d.sync += [self.toe.valid.eq(1), self.toe.payload.eq(beat)]
            with m.Elif(refuse):
                m.d.comb += dropped.eq(~cutting)
                m.d.sync += cutting.eq(~beat.last)
                with m.If(inside & ~cutting):
                    m.d.sync += owed.eq(1)
            with m.Else():
                m.d.sync += [self.other.valid.eq(1), self.other.payload.eq(beat)]
        with m.If(owed & room["other"]):
            m.d.sync += [
                owed.eq(0),
                self.other.valid.eq(1),
                self.other.payload.eq(0),
                self.other.payload.last.eq(1),
                self.other.payload.error.eq(1),
            ]

        begun = move & ~inside
        for name, event in (
            ("toe_frames", begun & to_toe),
            ("other_frames", begun & ~to_toe & ~refuse),
            ("errors", move & beat.last & beat.error),
            ("drops", dropped),
        ):
            count = getattr(self.csr, name)
            m.d.sync += count.eq(count + event)
