"""Byte realignment of packet streams: drop leading bytes, put bytes in front.

Both components obey the rules of :mod:`trebuchet.cores.stream` and rotate each beat once: a beat
rotated by the packet's offset holds the upper bytes of one output beat and the lower bytes of the
next, so that a select per byte joins two rotated beats.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .stream import PacketSignature, check_data_width

__all__ = ["PacketPrepend", "PacketTrim"]


def _rotate_up(data, count, n):
    """``data``, ``n`` bytes, rotated by ``count`` bytes: byte 0 goes to position ``count``."""
    for stage in range((n - 1).bit_length()):
        data = Mux(count[stage], data.rotate_left(8 << stage), data)
    return data


def _join(low, high, count, n):
    """Bytes below position ``count`` from ``low``, the others from ``high``."""
    return Cat(Mux(count > j, low.word_select(j, 8), high.word_select(j, 8)) for j in range(n))


class PacketTrim(wiring.Component):
    """Drops the first ``skip`` bytes of each packet; what follows starts in bits 7..0.

    =============  ===  =================================================================
    ``i``          In   packet stream
    ``skip``       In   bytes to drop, 0 to ``max_skip``; taken with the packet's first beat, so
                        it keeps its value while that beat is offered
    ``o``          Out  packet stream
    ``swallowed``  Out  for one cycle: a packet of at most ``skip`` bytes vanished
    =============  ===  =================================================================

    Parameters: ``width``, data path; ``max_skip``, at least 0, by default one beat less a byte.

    ``o`` comes from registers. One beat a cycle; the next packet's first beat is taken while the
    last bytes of the one before leave, except when that beat is its only one (1 cycle more).
    Latency: 1 cycle behind the input beat with the last byte needed. ``error`` is handed on; that
    of a swallowed packet is lost with it. Reset: idle.
    """

    def __init__(self, width=32, max_skip=None):
        self.n = check_data_width(width) // 8
        if max_skip is None:
            max_skip = self.n - 1
        if not isinstance(max_skip, int) or max_skip < 0:
            raise ValueError(f"Bytes to skip must be a non-negative integer, not {max_skip!r}")
        self.width, self.max_skip = width, max_skip
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "skip": In(range(max_skip + 1)),
                "o": Out(PacketSignature(width)),
                "swallowed": Out(1),
            }
        )

    # `held` is the rotated beat whose upper bytes are still to leave. It is there while a packet is
    # under way (`started`), and once more after its last beat if bytes remain (`flush`).
    def elaborate(self, platform):
        m = Module()
        n, i, o = self.n, self.i.payload, self.o.payload
        bits = (n - 1).bit_length()
        beats_now, beats_left = (Signal(range(self.max_skip // n + 1)) for _ in range(2))
        shift_now, shift = Signal(bits), Signal(bits)  # bytes dropped of the first kept beat
        m.d.comb += [
            beats_now.eq(Mux(i.first, self.skip >> bits, beats_left)),
            shift_now.eq(Mux(i.first, self.skip[:bits], shift)),
        ]
        held, rotated = Signal(self.width), Signal(self.width)
        started, flush, emits, empties = Signal(), Signal(), Signal(), Signal()
        begun = Signal()  # output of this packet has begun
        empty, flush_empty, flush_error = Signal(bits), Signal(bits), Signal()
        step, take, error = Signal(), Signal(), i.error
        self.held, self.shift, self.left = held, shift, beats_left  # for the proof
        self.started, self.begun, self.flush = started, begun, flush
        self.flush_empty, self.flush_error = flush_empty, flush_error
        kept = Signal(range(n + 1))  # lower bytes of the output beat that come from `held`
        m.d.comb += [
            rotated.eq(_rotate_up(i.data, (-shift_now)[:bits], n)),
            empty.eq(i.empty + shift_now),
            empties.eq(n - i.empty <= shift_now),
            kept.eq(Mux(flush, n, Mux(started & ~i.first, n - shift_now, 0))),
            step.eq(~self.o.valid | self.o.ready),
            # The first kept beat only fills `held`, unless it is the last one too.
            emits.eq((beats_now == 0) & (started & ~i.first | i.last)),
            self.i.ready.eq(step & ~(flush & emits)),
            take.eq(self.i.valid & self.i.ready),
        ]
        m.d.sync += self.swallowed.eq(0)
        with m.If(step):
            m.d.sync += [self.o.valid.eq(flush), flush.eq(0), o.first.eq(~begun)]
            m.d.sync += [o.data.eq(_join(held, rotated, kept, n)), o.last.eq(1)]
            m.d.sync += o.empty.eq(flush_empty)
            m.d.sync += o.error.eq(flush_error)
            with m.If(flush):
                m.d.sync += begun.eq(0)
        with m.If(take):
            m.d.sync += [held.eq(rotated), shift.eq(shift_now), started.eq(~i.last)]
            with m.If(beats_now != 0):
                m.d.sync += [started.eq(0), beats_left.eq(beats_now - 1)]
                m.d.sync += self.swallowed.eq(i.last)
            with m.Elif(i.first | ~started):
                m.d.sync += beats_left.eq(0)
                with m.If(i.last):
                    m.d.sync += [self.o.valid.eq(~empties), self.swallowed.eq(empties)]
                    m.d.sync += [o.empty.eq(empty), o.error.eq(error)]
            with m.Else():
                last = i.last & empties
                m.d.sync += [self.o.valid.eq(1), o.last.eq(last), o.empty.eq(Mux(last, empty, 0))]
                m.d.sync += [o.error.eq(last & error), begun.eq(~last)]
                m.d.sync += [flush.eq(i.last & ~empties), flush_empty.eq(empty)]
                m.d.sync += flush_error.eq(error)
        return m


class PacketPrepend(wiring.Component):
    """Puts ``count`` bytes in front of each packet, so that it starts at that offset of a beat.

    =========  ===  ==============================================================================
    ``i``      In   packet stream
    ``count``  In   bytes to insert, 0 to ``n - 1``
    ``head``   In   those bytes, the first in bits 7..0; bytes from ``count`` on are ignored
    ``o``      Out  packet stream
    =========  ===  ==============================================================================

    Parameters: ``width``, data path of ``n = width // 8`` bytes. ``count`` and ``head`` are taken
    with the packet's first beat and keep their values while it is offered.

    ``o`` comes from registers. Latency 1 cycle; one beat out a cycle, so the input waits for one
    cycle after a packet that needs one beat more than it came in. ``error`` is handed on.
    Reset: idle.
    """

    def __init__(self, width=32):
        self.n = check_data_width(width) // 8
        self.width = width
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "count": In(range(self.n)),
                "head": In(8 * (self.n - 1)),
                "o": Out(PacketSignature(width)),
            }
        )

    # `held` is the rotated beat whose lower bytes are still to leave; for the first beat `head`
    # takes its place.
    def elaborate(self, platform):
        m = Module()
        n, i, o = self.n, self.i.payload, self.o.payload
        count_now, count = (Signal(range(n), name=k) for k in ("count_now", "count_held"))
        held, rotated = Signal(self.width), Signal(self.width)
        flush, flush_empty, flush_error, fits = Signal(), Signal(range(n)), Signal(), Signal()
        step = Signal()
        self.held, self.shift, self.flush = held, count, flush  # for the proof
        self.flush_empty, self.flush_error = flush_empty, flush_error
        low = Mux(i.first & ~flush, self.head, held)
        m.d.comb += [
            count_now.eq(Mux(i.first, self.count, count)),
            rotated.eq(_rotate_up(i.data, count_now, n)),
            fits.eq(i.empty >= count_now),
            step.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(step & ~flush),
        ]
        with m.If(step):
            m.d.sync += [self.o.valid.eq(self.i.valid | flush), flush.eq(0)]
            m.d.sync += o.data.eq(_join(low, rotated, Mux(flush, n, count_now), n))
            with m.If(flush):
                m.d.sync += [o.first.eq(0), o.last.eq(1)]
                m.d.sync += [o.empty.eq(flush_empty), o.error.eq(flush_error)]
            with m.Else():
                last = i.last & fits
                m.d.sync += [o.first.eq(i.first), o.last.eq(last), o.error.eq(i.error & last)]
                m.d.sync += o.empty.eq(Mux(last, i.empty - count_now, 0))
                with m.If(self.i.valid):
                    m.d.sync += [held.eq(rotated), count.eq(count_now)]
                    m.d.sync += [flush.eq(i.last & ~fits), flush_error.eq(i.error)]
                    m.d.sync += flush_empty.eq(i.empty - count_now)
        return m
