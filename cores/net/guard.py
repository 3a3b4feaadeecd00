"""Frame guard: lets only whole, undamaged frames of legal length pass.

Source: IEEE 802.3, 3.2.7 and 4.2.3.3 (frame length; without the FCS, 60 to 1514 bytes).
"""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..buffers import PacketFifo
from ..csr import CsrSignature, RegisterBlock, counter
from ..stream import PacketSignature, check_data_width

__all__ = ["GUARD_BLOCK", "FrameGuard"]

GUARD_BLOCK = RegisterBlock(
    "guard",
    (
        counter("frames", "frames passed on"),
        counter("short", "frames dropped because they were too short"),
        counter("long", "frames dropped because they were too long"),
        counter("damaged", "frames dropped because they came with an error mark"),
    ),
    "frames for the host services: ARP, ICMP and UDP",
)


class FrameGuard(wiring.Component):
    """Stores a frame and hands it on when its end is here and it is good.

    For consumers that rely on headers being complete and cannot take back what they have begun.

    ===========  ====  ==============  ======================================================
    member       dir   width           meaning
    ===========  ====  ==============  ======================================================
    ``i``        In    packet stream   frames as they come
    ``o``        Out   packet stream   good frames; ``error`` is always 0
    ``csr``      In    CsrSignature    :data:`GUARD_BLOCK`
    ===========  ====  ==============  ======================================================

    A frame counts in exactly one counter: ``long`` wins over ``damaged`` over ``short``.
    Latency: 4 cycles from the last beat in to the first out. Throughput: one beat a cycle.
    Back-pressure: ``i`` waits while the store (2 KiB) is full; a frame that is too long is dropped
    as it comes and never fills it for good. Reset: empty, counters 0.

    Parameters
    ----------
    width : int
        Data path in bits.
    shortest, longest : int
        Bytes that a good frame has; the longest at most 2,044.
    """

    def __init__(self, width=32, shortest=60, longest=1514):
        check_data_width(width)
        if not isinstance(shortest, int) or shortest < 1:
            raise ValueError(f"Shortest frame must be at least 1 byte, not {shortest!r}")
        if not isinstance(longest, int) or not shortest <= longest <= 2044:
            raise ValueError(
                f"Longest frame must be from {shortest} to 2044 bytes, not {longest!r}"
            )
        self.width, self.shortest, self.longest = width, shortest, longest
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "csr": In(CsrSignature(GUARD_BLOCK)),
            }
        )

    # A beat is marked on its way into the store; the store drops what carries `error`. Lengths are
    # compared as beats before the last one and unused bytes in it, so that nothing is added up.
    def elaborate(self, platform):
        m = Module()
        n = self.width // 8
        m.submodules.store = store = PacketFifo(self.width, 2048 // n, drop_when_full=False)
        wiring.connect(m, store.o, wiring.flipped(self.o))
        beats = Signal(range(2048 // n))  # whole beats before this one, saturating
        self.beats = beats  # for the invariants of its proof
        i, kept = self.i, store.i
        short, long = Signal(), Signal()

        def bound(size):
            """Beats before the last one of a frame of ``size`` bytes, and unused bytes in it."""
            before = (size - 1) // n
            return before, (before + 1) * n - size

        low, low_empty = bound(self.shortest)
        high, high_empty = bound(self.longest)
        m.d.comb += [
            short.eq((beats < low) | ((beats == low) & (i.p.empty > low_empty))),
            long.eq((beats > high) | ((beats == high) & (i.p.empty < high_empty))),
        ]
        moved = i.valid & i.ready
        with m.If(~kept.valid | kept.ready):
            m.d.sync += kept.valid.eq(i.valid)
        m.d.comb += i.ready.eq(~kept.valid | kept.ready)
        with m.If(moved):
            m.d.sync += [
                kept.p.eq(i.p),
                kept.p.error.eq(i.p.last & (i.p.error | short | long)),
                beats.eq(Mux(i.p.last, 0, Mux(beats.all(), beats, beats + 1))),
            ]
        csr = self.csr
        with m.If(moved & i.p.last):
            with m.If(long):
                m.d.sync += csr.long.eq(csr.long + 1)
            with m.Elif(i.p.error):
                m.d.sync += csr.damaged.eq(csr.damaged + 1)
            with m.Elif(short):
                m.d.sync += csr.short.eq(csr.short + 1)
            with m.Else():
                m.d.sync += csr.frames.eq(csr.frames + 1)
        return m
