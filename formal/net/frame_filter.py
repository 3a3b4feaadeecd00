"""Proof of the frame filter in ``cores/net/frame_filter.py``.

Contract, over public ports: each beat goes through once, a cycle later, unchanged but for ``error``
of a last beat, which is 0 if and only if the frame came undamaged and is one of those that the data
sheet names. Which they are is said here of the frame's bytes, all kept, as ``models/net.py`` says
it; the core keeps only whether a beat was wrong.

Not proved: behaviour under a reset while running; addresses and a port that change; other data
paths and served ports.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

LAST = 37
SERVED = (7, 0x1240)


def big_endian(octets):
    return Cat(*reversed(octets))


class FrameFilterProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        free(m, dut.i.valid, dut.i.payload)
        m.d.comb += [
            dut.mac.eq(AnyConst(48)),
            dut.ip.eq(AnyConst(32)),
            dut.port.eq(AnyConst(16)),
            dut.o.ready.eq(1),
            Assert(dut.i.ready),
        ]
        begins_in = stream_rules(m, dut.i, Assume, "i")
        begins_out = stream_rules(m, dut.o, Assert, "o")

        came, beat = Signal(), Signal(dut.i.payload.shape())
        m.d.sync += [came.eq(dut.i.valid), beat.eq(dut.i.payload)]
        number = Signal(range(LAST // 4 + 2))  # of this beat; past byte 37 it stays
        octets = [Signal(8, name=f"octet_{at}") for at in range(4 * (LAST // 4 + 1))]
        with m.If(came):
            m.d.sync += number.eq(Mux(beat.last, 0, number + (number != LAST // 4 + 1)))
            for at, octet in enumerate(octets):
                with m.If(number == at // 4):
                    m.d.sync += octet.eq(beat.data.word_select(at % 4, 8))
        wanted = self._wanted(octets) & (number > LAST // 4)

        shown = dut.o.payload
        m.d.comb += [
            Assert(dut.o.valid == came),
            Assert(~came | (shown.data == beat.data)),
            Assert(~came | (shown.empty == beat.empty)),
            Assert(~came | (shown.first == beat.first)),
            Assert(~came | (shown.last == beat.last)),
            Assert(~came | ~beat.last | (shown.error == (beat.error | ~wanted))),
        ]

        # Invariants: what the core remembers of the frame so far.
        m.d.comb += [
            Assert(begins_in == Mux(came, beat.last, begins_out)),
            Assert(~came | (beat.first == begins_out)),
            Assert(~came | beat.last | ((beat.empty == 0) & ~beat.error)),
            Assert(number <= LAST // 4 + 1),
            Assert(dut.heard == came),
            Assert(dut.beat == beat),
            Assert(dut.index == number),
            Assert(dut.match == wanted),
        ]
        for name, group in dut.wanted().items():
            off = [
                (number > at // 4) & ((octets[at] & mask) != value)
                for at, (mask, value) in group.items()
            ]
            m.d.comb += Assert(dut.missed[name] == Cat(*off).any())

        good = came & beat.last & ~shown.error
        for kind in self.kinds:
            m.d.comb += Cover(good & kind)
        m.d.comb += Cover(came & beat.last & ~beat.error & shown.error & (number > LAST // 4))
        return m

    def _wanted(self, octets):
        """The data sheet's three kinds."""
        dut = self.dut
        address = Cat(dut.ip[24:], dut.ip[16:24], dut.ip[8:16], dut.ip[:8])
        ethertype, port = big_endian(octets[12:14]), big_endian(octets[36:38])
        plain = (octets[14] == 0x45) & (big_endian(octets[20:22])[:14] == 0)
        ip, protocol = ethertype == 0x0800, octets[23]
        dhcp = ip & plain & (protocol == 17) & (port == dut.port)
        conflict = (ethertype == 0x0806) & (Cat(*octets[28:32]) == address)
        reply = (ethertype == 0x0806) & (big_endian(octets[20:22]) == 2) & dut.arp
        served = Cat(*(port == known for known in dut.served)).any()
        to_us = ip & (octets[14][4:] == 4) & (Cat(*octets[:6]) == dut.mac)
        to_us &= (Cat(*octets[30:34]) == address) & (protocol != 6)
        ours = to_us & ~(plain & ((protocol == 1) | ((protocol == 17) & served)))
        closed = ours & plain & (protocol == 17) & ~dhcp
        part = ours & (octets[14] == 0x45) & ~plain
        options = ours & (octets[14] == 0x46)
        self.kinds = [dhcp & ~ours, conflict, closed, part, options]
        if dut.arp:
            self.kinds.append(reply & ~conflict)
        return dhcp | conflict | reply | ours


_COMMON = {
    "module": "trebuchet.cores.net.frame_filter",
    "depth": 2,
    "cover_depth": 14,
    "assumes": "the stream rules on the input; addresses and port that do not change",
    "not_proved": "other data paths and served ports; behaviour under a reset while running",
}

PROOFS = (
    Proof(
        name="frame_filter",
        core="cores.net.frame_filter.FrameFilter(32)",
        says="just the frames that nobody beside the CPU answers pass undamaged",
        build=lambda cores: FrameFilterProof(cores.FrameFilter(32, served=SERVED)),
        mutants=(
            Mutant("takes_damaged", "(beat.error | ~self.match)", "~self.match"),
            Mutant("half_an_offset", "_FRAGMENT = 0x3F", "_FRAGMENT = 0x1F"),
            Mutant(
                "half_a_port",
                '"port": {36: self.port[8:], 37: self.port[:8]}',
                '"port": {37: self.port[:8]}',
                14,
            ),
            Mutant("any_address", '"to": address', '"to": {}', 14),
            Mutant("takes_tcp", '(to_us & ~has["tcp"] & ~answered)', "(to_us & ~answered)"),
            Mutant("any_mac", 'has["version"] & has["mac"]', 'has["version"]'),
            Mutant("any_version", 'has["ip"] & has["version"]', 'has["ip"]'),
            Mutant("takes_served", 'has["udp"] & served', 'has["udp"] & 0'),
            Mutant(
                "takes_echo", 'has["icmp"] | (has["udp"] & served)', '0 | (has["udp"] & served)'
            ),
            Mutant(
                "takes_short",
                "with m.If(self.index == _LAST // n):\n"
                "    m.d.sync += self.match.eq(self._for_cpu(has))",
                "with m.If(self.index == 23 // n):\n"
                "    m.d.sync += self.match.eq(self._for_cpu(has))",
            ),
            Mutant(
                "forgets_nothing",
                "[missed.eq(0) for missed in self.missed.values()]",
                "[missed.eq(missed) for missed in self.missed.values()]",
            ),
        ),
        **_COMMON,
    ),
    Proof(
        name="frame_filter_arp",
        core="cores.net.frame_filter.FrameFilter(32, arp)",
        says="the same with ARP replies",
        build=lambda cores: FrameFilterProof(cores.FrameFilter(32, arp=True, served=SERVED)),
        mutants=(
            Mutant("takes_requests", '"reply": {20: 0, 21: 2}', '"reply": {20: 0}'),
            Mutant("half_an_operation", '"reply": {20: 0, 21: 2}', '"reply": {21: 2}'),
            Mutant(
                "no_conflicts",
                'has["from"] | (has["reply"] if self.arp else 0)',
                '0 | (has["reply"] if self.arp else 0)',
            ),
        ),
        **_COMMON,
    ),
)
