"""The checksum of an ICMP message or a UDP datagram, while its frame passes (RFC 1071).

Sources: RFC 792 (ICMP); RFC 768 (UDP and its pseudo header); RFC 1122, 4.1.3.4 (a wrong one).
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PayloadSum", "add_word", "is_right", "sum_of_lanes"]

#: First byte behind the IPv4 header, and that of UDP's checksum.
_PAYLOAD, _UDP_SUM = 34, 40
#: Words of the IPv4 header that UDP's sum has, too: total length, addresses.
_PSEUDO = (16, 26, 28, 30, 32)
#: UDP's length is the total length less 20, its protocol 17: 17 - 20 as a one's complement word,
#: its first byte in bits 7..0.
_PSEUDO_SUM = 0xFCFF


def add_word(total, word):
    """Return a sum of 17 bits, of which the topmost is a carry not yet added, with a word more."""
    return (Cat(1, total[:16]) + Cat(total[16], word))[1:]


def sum_of_lanes(totals):
    """Return the sum of what :func:`add_word` has added up in each lane."""
    return sum(total[:16] for total in totals) + sum(total[16] for total in totals)


def is_right(whole, lanes):
    """Whether a :func:`sum_of_lanes` is that of words with their own right checksum."""
    return Cat(*(whole == 0xFFFF * k for k in range(1, lanes + 1))).any()


class PayloadSum(wiring.Component):
    """Checks the sum of what an IPv4 header of 20 bytes carries.

    =========  ===  ============  ===========================================================
    ``valid``  In   1             a beat of a frame without VLAN tag
    ``data``   In   ``width``     it
    ``last``   In   1             it is the frame's last one
    ``at``     In   ``beats``     which beat it is, if it is one of the first; a bit each
    ``count``  In   16            which beat it is
    ``end``    In   17            offset of the datagram's last byte in the frame, from the beat
                                  behind that with byte 17 on
    ``udp``    In   1             it is UDP, not ICMP, from the beat behind that with byte 23 on
    ``right``  Out  1             the last frame's sum is right, or UDP's was not made
    =========  ===  ============  ===========================================================

    ``at`` has bit 0 while no beat of a frame has come. ``right`` is so three cycles after the last
    beat, and until three cycles after that of the next frame. Bytes behind ``end`` do not count.
    It is of any value for a frame without a whole header, or whose datagram does not end in it; of
    UDP if its own length is not that of the IPv4 header. One beat a cycle; no back-pressure.

    Parameters: ``width``, 32 or 64; ``beats``, bits of ``at``, beyond that with byte 41.
    """

    def __init__(self, width, beats):
        self.n, self.beats = width // 8, beats
        super().__init__(
            {
                "valid": In(1),
                "data": In(width),
                "last": In(1),
                "at": In(beats),
                "count": In(16),
                "end": In(17),
                "udp": In(1),
                "right": Out(1),
            }
        )
        # Attributes for proofs: the sum of each lane, its carry on top; what becomes of them.
        self.totals = [Signal(17, name=f"total_{lane}") for lane in range(0, self.n, 2)]
        self.whole, self.unsummed, self.ended = Signal(20), Signal(), Signal(2)
        self.over = Signal()  # the datagram's last byte was in an earlier beat

    def elaborate(self, platform):
        m, n, at = Module(), self.n, self.at
        low = (n - 1).bit_length()
        # Before, `end` may be that of another frame.
        here = (self.count == self.end[low:]) & ~at[: 16 // n + 1].any()
        over, whole, unsummed, ended = self.over, self.whole, self.unsummed, self.ended
        with m.If(self.valid):
            m.d.sync += over.eq((over | here) & ~self.last)
        for lane in range(0, n, 2):
            counts = [~over & (~here | (self.end[:low] >= lane + k)) for k in range(2)]
            self._lane(m, lane, counts)
        with m.If(self.valid & at[_UDP_SUM // n]):
            m.d.sync += unsummed.eq(~self._half(_UDP_SUM).any())
        m.d.sync += [
            ended.eq(Cat(self.valid & self.last, ended)),
            whole.eq(sum_of_lanes(self.totals)),
        ]
        with m.If(ended[1]):
            right = is_right(whole, len(self.totals))
            m.d.sync += self.right.eq(right | (self.udp & unsummed))
        return m

    def _half(self, place):
        lane = place % self.n
        return self.data[8 * lane : 8 * lane + 16]

    def _lane(self, m, lane, counts):
        """Add up the words of a lane.

        Those of the pseudo header come first and are taken out again where it is not UDP.
        """
        n, at, total = self.n, self.at, self.totals[lane // 2]
        pseudo = [at[p // n] & (1 if p < 32 else self.udp) for p in _PSEUDO if p % n == lane]
        begun = ~at[: -(-(_PAYLOAD - lane) // n)].any()
        taken = [Cat(*pseudo).any() | (begun & count) for count in counts]
        word = self._half(lane) & Cat(*(bit.replicate(8) for bit in taken))
        base = Mux(at[_PAYLOAD // n] & ~self.udp, 0, total)
        with m.If(at[0]):
            m.d.sync += total.eq(_PSEUDO_SUM if lane == 0 else 0)
        with m.Elif(self.valid):
            m.d.sync += total.eq(add_word(base, word))
