"""Proof of ``cores/net/hosts/payload.py``: the sum of an ICMP message or a UDP datagram.

Specification: of each half word of a beat the bytes that count are told by their places in the
frame alone: those of the payload, from byte 34 to the datagram's last one, and with UDP those of
the pseudo header (RFC 768). They are added in each lane with the carry added in again at once (RFC
1071); UDP begins with its protocol and the difference between the two lengths. ``right`` is
whether the sum of the lanes is 0xFFFF, or UDP's checksum is 0. Held for any frames of at least 42
bytes, one after the other with any pauses, all of one protocol and length; until they are there
``end`` and ``udp`` are arbitrary.

Not proved: frames with less than two headers, which the data sheet excludes; a reset while running.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness
from ..checksum import around

__all__ = ["PROOFS"]

#: Places of what UDP's sum takes from the IPv4 header, the payload's first byte, UDP's checksum.
PSEUDO, PAYLOAD, UDP_SUM = (16, 17, *range(26, 34)), 34, 40


class PayloadSumProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        n = dut.n
        free(m, dut.valid, dut.last, dut.data)
        beat, self.end, self.udp = Signal(9), Signal(17), Signal()
        self.beat = beat
        ends, ended = dut.valid & dut.last, Signal(2)
        m.d.sync += ended.eq(Cat(ends, ended))
        with m.If(dut.valid):
            m.d.sync += beat.eq(Mux(dut.last, 0, beat + 1))
        m.d.comb += [
            self.end.eq(AnyConst(17)),
            self.udp.eq(AnyConst(1)),
            Assume(self.end >= PAYLOAD + 7),
            Assume(~ends | (beat >= UDP_SUM // n)),
            Assume(~dut.valid | dut.last | ~beat.all()),
            dut.at.eq(Cat(beat == k for k in range(dut.beats))),
            dut.count.eq(beat),
            dut.end.eq(Mux(beat > 16 // n, self.end, AnySeq(17))),
            # Of the last frame for a while.
            dut.udp.eq(Mux((beat > 22 // n) | ended.any(), self.udp, AnySeq(1))),
            Assert(~ended[0] | (beat == 0)),
            Assert(~ended[1] | (beat <= 1)),
            Assert(dut.ended == ended),
        ]
        low = (n - 1).bit_length()
        m.d.comb += Assert(dut.over == (beat > self.end[low:]))
        lanes = [self._lane(m, lane, ended[0]) for lane in range(0, n, 2)]
        self._result(m, lanes, ended[1])
        return m

    def _lane(self, m, lane, ended):
        """The lane's sum as specified. The core's, before the payload, is of UDP in any case."""
        dut, n, places = self.dut, self.dut.n, []
        word, total = Signal(16, name=f"word_{lane}"), Signal(16, name=f"sum_{lane}")
        for k in (lane, lane + 1):
            place = Signal(13, name=f"place_{k}")
            m.d.comb += place.eq(self.beat * n + k)
            pseudo = Cat(place == p for p in PSEUDO).any() & self.udp
            counts = pseudo | ((place >= PAYLOAD) & (place <= self.end))
            places.append(Mux(counts, dut.data.word_select(k, 8), 0))
        m.d.comb += word.eq(Cat(*places))
        with m.If(self.beat == 0):
            m.d.sync += total.eq(Mux(self.udp & (lane == 0), 0xFCFF, 0))
        with m.Elif(dut.valid):
            m.d.sync += total.eq(around(m, total + word, 16, f"next_{lane}_"))
        same = self.udp | (self.beat > PAYLOAD // n) | ended
        m.d.comb += [
            Assert(~same | (around(m, dut.totals[lane // 2], 16, f"core_{lane}_") == total)),
            Assert(same | (total == 0)),
        ]
        return total

    def _result(self, m, lanes, later):
        dut = self.dut
        result, right = Signal(16), Signal()
        unsummed = Signal()
        with m.If(dut.valid & (self.beat == UDP_SUM // dut.n)):
            m.d.sync += unsummed.eq(dut.data.word_select(UDP_SUM % dut.n // 2, 16) == 0)
        m.d.sync += result.eq(around(m, sum(lanes), 16, "all"))
        with m.If(later):
            m.d.sync += right.eq((result == 0xFFFF) | (self.udp & unsummed))
        m.d.comb += [
            Assert(dut.unsummed == unsummed),
            Assert(~later | (around(m, dut.whole, 16, "whole") == result)),
            Assert(dut.right == right),
            Cover(dut.right & ~self.udp & later),
            Cover(dut.right & self.udp & ~unsummed),
            Cover(dut.right & self.udp & unsummed),
            Cover(later & (result == 0xFFFF) & self.udp),
        ]


PROOFS = tuple(
    Proof(
        name=f"hosts_payload_{width}",
        core=f"cores.net.hosts.payload.PayloadSum({width}, {beats})",
        says="the sum is of the bytes that the datagram's length and protocol name, and no other",
        module="trebuchet.cores.net.hosts.payload",
        build=lambda cores, w=width, b=beats: PayloadSumProof(cores.PayloadSum(w, b)),
        depth=2,
        cover_depth=24,
        mutants=(
            Mutant(
                "one_byte_more", "self.end[:low] >= lane + k", "self.end[:low] + 1 >= lane + k", 20
            ),
            Mutant(
                "padding_counts",
                "~over & (~here | (self.end[:low] >= lane + k))",
                "~here | (self.end[:low] >= lane + k)",
                20,
            ),
            Mutant("no_addresses", "(16, 26, 28, 30, 32)", "(16, 28, 30, 32)", 20),
            Mutant("pseudo_header_of_icmp", "at[_PAYLOAD // n] & ~self.udp", "0", 20),
            Mutant("no_protocol", "_PSEUDO_SUM if lane == 0 else 0", "0 if lane == 0 else 0", 20),
            Mutant("any_udp", "(self.udp & unsummed)", "self.udp", 20),
            Mutant("loses_a_carry", "Cat(total[16], word)", "Cat(0, word)", 20),
        ),
        assumes="frames of two headers at least, of one protocol and length",
        not_proved="frames without two whole headers; behaviour under a reset while running",
    )
    for width, beats in ((32, 14), (64, 8))
)
