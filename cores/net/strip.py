"""Ethernet header stripper: the first stage of every parser of frames."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..stream import PacketSignature, check_data_width

__all__ = ["EthernetStrip"]

_HEADER = 14


class EthernetStrip(wiring.Component):
    """Takes the 14 header bytes off each frame and aligns what follows to bit 0.

    ``i`` is always ready, and the output cannot be stopped: one beat is at most one beat later out.

    ==========  ====  =============  =============================================================
    member      dir   width          meaning
    ==========  ====  =============  =============================================================
    ``i``       In    packet stream  frames; ``ready`` is always 1
    ``valid``   Out   1              a beat is on ``data``
    ``data``    Out   width          what follows the header, first byte in bits 7..0
    ``first``   Out   1              first beat behind a header
    ``last``    Out   1              last beat of the frame
    ``bytes``   Out   log2(n) + 1    valid bytes of the last beat, 1 to n
    ``error``   Out   1              with ``last``: the frame is damaged
    ``runt``    Out   1              a frame has ended from which no beat came (pulse)
    ``mac``     Out   48             source address, first byte in bits 7..0
    ``type``    Out   16             Ethertype as a number
    ==========  ====  =============  =============================================================

    A frame yields beats only if it goes on past the beat that holds the header's end. ``mac`` and
    ``type`` hold from the frame's first beat to its last; above 32 bits they may already be the
    next frame's when a frame's last beat is made of what its last input beat left over. *Latency*
    two cycles; *throughput* one beat a cycle, no gap between frames.
    """

    def __init__(self, width=32):
        self.width = check_data_width(width)
        n = width // 8
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "valid": Out(1),
                "data": Out(width),
                "first": Out(1),
                "last": Out(1),
                "bytes": Out(range(n + 1)),
                "error": Out(1),
                "runt": Out(1),
                "mac": Out(48),
                "type": Out(16),
            }
        )

    def elaborate(self, platform):
        # The header ends inside beat `head`, so beats after it pair their low bytes with the high
        # bytes of the one before. A frame's left-over bytes go out in the cycle after its last
        # beat: the next frame cannot need that cycle, because its first beat yields nothing.
        m = Module()
        n = self.width // 8
        head, shift = divmod(_HEADER, n)
        beat = self.i.payload
        index = Signal(range(head + 2))
        previous = Signal(self.width)
        flush, flush_bytes = Signal(), Signal.like(self.bytes)
        flush_error = Signal()
        count = Signal.like(self.bytes)
        self.index, self.previous = index, previous  # for the invariants of its proof
        m.d.comb += [self.i.ready.eq(1), count.eq(n - beat.empty)]

        m.d.sync += [self.valid.eq(0), self.first.eq(0), self.last.eq(0), self.error.eq(0)]
        m.d.sync += [self.runt.eq(0), flush.eq(0)]
        with m.If(self.i.valid):
            past = index == head + 1
            spill = count > shift
            m.d.sync += previous.eq(beat.data)
            m.d.sync += index.eq(Mux(beat.last, 0, Mux(past, index, index + 1)))
            with m.If(past):
                m.d.sync += [
                    self.valid.eq(1),
                    self.last.eq(beat.last & ~spill),
                    self.error.eq(beat.error & ~spill),
                    flush.eq(beat.last & spill),
                    flush_bytes.eq(count - shift),
                    flush_error.eq(beat.error),
                ]
            m.d.sync += self.runt.eq(beat.last & ~past)
        started = Signal()
        self.started, self.flushing = started, (flush, flush_bytes, flush_error)
        with m.If(self.i.valid & (index == head)):
            m.d.sync += started.eq(1)
        with m.If(self.i.valid & (index == head + 1)):
            m.d.sync += [self.first.eq(started), started.eq(0)]
        m.d.sync += [
            self.data.eq(Cat(previous[8 * shift :], beat.data[: 8 * shift])),
            self.bytes.eq(n - shift + count),
        ]
        with m.If(flush):
            m.d.sync += [
                self.valid.eq(1),
                self.last.eq(1),
                self.error.eq(flush_error),
                self.bytes.eq(flush_bytes),
            ]

        taken = {6 + i: self.mac.word_select(i, 8) for i in range(6)}
        taken |= {12: self.type[8:], 13: self.type[:8]}
        for at, register in taken.items():
            with m.If(self.i.valid & (index == at // n)):
                m.d.sync += register.eq(beat.data.word_select(at % n, 8))
        return m
