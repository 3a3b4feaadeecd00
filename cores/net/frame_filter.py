"""Selects the frames that the CPU handles: what no core beside it answers.

Sources: RFC 791, 3.1 (IPv4 header); RFC 768 (UDP); RFC 826, RFC 5227, 2.4 (ARP); RFC 1122, 3.2.1.8
(options), 3.2.2.1 (unreachable) and 3.3.2 (reassembly), which is what the CPU does with them.
"""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..stream import PacketSignature, check_data_width

__all__ = ["FrameFilter"]

#: The last byte that matters.
_LAST = 37
#: Of byte 20 the bits beside "don't fragment": more fragments, and an offset.
_FRAGMENT = 0x3F


class FrameFilter(wiring.Component):
    """Marks all frames but those for the CPU with ``error``, for a ``PacketFifo`` to drop.

    ==========  ====  =============  =============================================================
    member      dir   width          meaning
    ==========  ====  =============  =============================================================
    ``i``       In    packet stream  frames without FCS; ``ready`` is always 1
    ``o``       Out   packet stream  the same a cycle later; ``ready`` must be 1
    ``mac``     In    48             our MAC address, its first byte in bits 7..0
    ``ip``      In    32             our IPv4 address as a number
    ``port``    In    16             UDP destination port of frames to any address
    ==========  ====  =============  =============================================================

    For the CPU are frames that go on past the beat with byte 37, and are one of:

    1. a UDP datagram to ``port``, whatever address it is sent to, in an IPv4 header without options
       (0x45) and no fragment: DHCP, before there is an address;
    2. an ARP frame (Ethertype 0x0806) whose sender's protocol address is ``ip``: a conflict, if the
       sender is another station; with ``arp`` also every ARP reply (operation 2);
    3. an IPv4 datagram to ``mac`` and ``ip`` that is not TCP, but for what the host services
       answer: neither ICMP without options or fragments, nor UDP without them to a port of
       ``served``.

    Lengths, checksums and all other fields are the CPU's to judge. A frame that comes with
    ``error`` keeps it. Throughput: a beat a cycle. Latency: one cycle. Reset: the frame under way
    is taken for a new one.

    Parameters
    ----------
    width : int
        Data path in bits.
    arp : bool
        For the CPU are ARP replies, too.
    served : tuple of int
        UDP ports that somebody else serves at our address, 1 to 65,535.
    """

    def __init__(self, width=32, arp=False, served=()):
        self.width = check_data_width(width)
        self.arp, self.served = bool(arp), tuple(served)
        for port in self.served:
            if not isinstance(port, int) or not 0 < port < 1 << 16:
                raise ValueError(f"A served UDP port must be 1 to 65535, not {port!r}")
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "mac": In(48),
                "ip": In(32),
                "port": In(16),
            }
        )
        # What the proof's invariants name.
        self.beat, self.heard = Signal(self.i.payload.shape()), Signal()
        self.index = Signal(range(_LAST // (width // 8) + 2))  # the last: past all that matters
        self.match = Signal()
        self.missed = {name: Signal(name=f"missed_{name}") for name in self.wanted()}

    def wanted(self):
        """Return, by name of a property, what bytes a frame with it has: ``(mask, value)``."""
        address = {30 + k: self.ip[24 - 8 * k : 32 - 8 * k] for k in range(4)}
        groups = {
            "ip": {12: 0x08, 13: 0x00},
            "version": {14: (0xF0, 0x40)},
            "plain": {14: 0x45, 20: (_FRAGMENT, 0), 21: 0},
            "tcp": {23: 6},
            "icmp": {23: 1},
            "udp": {23: 17},
            "port": {36: self.port[8:], 37: self.port[:8]},
            "mac": {k: self.mac[8 * k : 8 * k + 8] for k in range(6)},
            "to": address,
            "arp": {12: 0x08, 13: 0x06},
            "reply": {20: 0, 21: 2},
            "from": {at - 2: value for at, value in address.items()},
        }
        for port in self.served:
            groups[f"served_{port}"] = {36: port >> 8, 37: port & 0xFF}
        whole = {name: dict(group) for name, group in groups.items()}
        for group in whole.values():
            for at, value in group.items():
                group[at] = value if isinstance(value, tuple) else (0xFF, value)
        return whole

    # A property is missed if one of its bytes was wrong; which of them a frame has is known with
    # the beat of byte 37, and kept to the frame's end.
    def elaborate(self, platform):
        m = Module()
        beat, n = self.beat, self.width // 8
        m.d.comb += [
            self.i.ready.eq(1),
            self.o.valid.eq(self.heard),
            self.o.payload.eq(beat),
            self.o.payload.error.eq(beat.last & (beat.error | ~self.match)),
        ]
        m.d.sync += [self.heard.eq(self.i.valid), beat.eq(self.i.payload)]
        has = self._has(m)
        with m.If(self.heard):
            m.d.sync += self.index.eq(self.index + (self.index != _LAST // n + 1))
            with m.If(self.index == _LAST // n):
                m.d.sync += self.match.eq(self._for_cpu(has))
            with m.If(beat.last):
                m.d.sync += [self.index.eq(0), self.match.eq(0)]
                m.d.sync += [missed.eq(0) for missed in self.missed.values()]
        return m

    def _has(self, m):
        """Which properties the frame has as far as it has come, with the beat that is here."""
        n, beat, has = self.width // 8, self.beat, {}
        for name, group in self.wanted().items():
            wrong = Signal(name=f"wrong_{name}")
            with m.Switch(self.index):
                for number in sorted({at // n for at in group}):
                    terms = [
                        (beat.data.word_select(at % n, 8) & mask) != value
                        for at, (mask, value) in group.items()
                        if at // n == number
                    ]
                    with m.Case(number):
                        m.d.comb += wrong.eq(Cat(*terms).any())
            with m.If(self.heard):
                m.d.sync += self.missed[name].eq(self.missed[name] | wrong)
            has[name] = ~(self.missed[name] | wrong)
        return has

    def _for_cpu(self, has):
        served = Cat(*(has[f"served_{port}"] for port in self.served)).any() if self.served else 0
        answered = has["plain"] & (has["icmp"] | (has["udp"] & served))
        to_us = has["ip"] & has["version"] & has["mac"] & has["to"]
        return (
            (has["ip"] & has["plain"] & has["udp"] & has["port"])
            | (has["arp"] & (has["from"] | (has["reply"] if self.arp else 0)))
            | (to_us & ~has["tcp"] & ~answered)
        )
