"""Internet checksum (RFC 1071) at line rate.

The one's complement sum does not care about byte order as long as both bytes of a half word stay
together, so sums are kept over little-endian half words as they stand in a beat; the result has
the same byte order. Over data that contain their own right checksum the sum is 0xFFFF.
"""

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..stream import check_data_width

__all__ = ["Checksum"]


class Checksum(wiring.Component):
    """Running one's complement sum over beats.

    ==========  ====  =========  =================================================================
    member      dir   width      meaning
    ==========  ====  =========  =================================================================
    ``start``   In    1          forget the sum so far (before this cycle's beat, if ``en``)
    ``en``      In    1          add this cycle's beat
    ``keep``    In    width/16   which half words of the beat count
    ``data``    In    width      the beat
    ``extra``   In    18         added once to the result, one cycle before ``total`` shows it
    ``total``   Out   17         the sum, carry not yet folded; equals 0xFFFF if and only if the sum
                                 is 0xFFFF (provided any byte summed was not 0)
    ``sum``     Out   16         the sum, folded
    ==========  ====  =========  =================================================================

    A beat of cycle k is in ``total`` in cycle k + 3 and in ``sum`` in cycle k + 4; a beat can be
    taken every cycle, and each result is there for the cycle that belongs to it. Sums are right
    for any number of beats: carries are saved and added the next time round.
    """

    def __init__(self, width=32):
        self.width = check_data_width(width)
        super().__init__(
            {
                "start": In(1),
                "en": In(1),
                "keep": In(width // 16),
                "data": In(width),
                "extra": In(18),
                "total": Out(17),
                "sum": Out(16),
            }
        )
        self.accs = [Signal(33, name=f"acc{lane}") for lane in range(width // 32)]
        self.wide = Signal(21)

    def elaborate(self, platform):
        # One 32-bit accumulator a lane with its carry saved: 2**32 is 1 modulo 0xFFFF.
        m = Module()
        parts = []
        for lane, acc in enumerate(self.accs):
            word = self.data[32 * lane : 32 * lane + 32]
            keep = self.keep[2 * lane : 2 * lane + 2] & self.en.replicate(2)
            masked = Cat(word[:16] & keep[0].replicate(16), word[16:] & keep[1].replicate(16))
            base = Mux(self.start, C(0, 33), acc)
            with m.If(self.en | self.start):
                m.d.sync += acc.eq(base[:32] + masked + base[32])
            parts += [acc[:16], acc[16:32], acc[32]]
        m.d.sync += self.wide.eq(sum(parts, self.extra))
        m.d.sync += self.total.eq(self.wide[:16] + self.wide[16:])
        m.d.sync += self.sum.eq(self.total[:16] + self.total[16])
        return m
