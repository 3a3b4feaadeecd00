"""Where a role puts frames of its own on the wire: only whole, legal ones get through."""

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import PacketFifo
from ..stream import PacketSignature
from .length import LONGEST, SHORTEST, FrameBounds

__all__ = ["INJECT_EVENTS", "Injector"]

INJECT_EVENTS = data.StructLayout({"injected": 1, "refused": 1})


class Injector(wiring.Component):
    """Takes a role's frames, whatever state the role is in, and hands on the good ones whole.

    ===========  ====  ==================  ========================================================
    member       dir   shape               meaning
    ===========  ====  ==================  ========================================================
    ``i``        In    packet stream       frames of a role
    ``o``        Out   packet stream       the good ones, each without a pause; ``error`` is 0
    ``enable``   In    1                   0: bypass; whatever comes is swallowed
    ``events``   Out   ``INJECT_EVENTS``   strobes for counters
    ===========  ====  ==================  ========================================================

    A frame is stored before its first beat leaves, so a role that stops in the middle of a frame
    holds nobody up. Refused are frames that are too short, too long, marked with ``error``, broken
    off (``first`` again before ``last``, as from a role that was reset), under way when ``enable``
    falls, or begun while it is 0. What was stored before ``enable`` fell still leaves.

    *Latency*: 5 cycles from the last beat in to the first out. *Throughput*: one beat a cycle.
    *Back-pressure*: ``i`` waits while the store is full; never while ``enable`` is 0. *Bad input*:
    as said; beats outside any frame are swallowed. *Reset*: empty.

    Parameters
    ----------
    width : int
        Data path in bits.
    shortest, longest : int
        Bytes of a legal frame, without FCS.
    depth : int or None
        Beats in the store, a power of two; None for the next above the longest frame.
    """

    def __init__(self, width=64, shortest=SHORTEST, longest=LONGEST, depth=None):
        self.bounds = FrameBounds(width, shortest, longest)
        self.depth = 1 << self.bounds.beats.bit_length() if depth is None else depth
        if self.depth < self.bounds.beats:
            raise ValueError(
                f"Store must have at least the {self.bounds.beats} beats of the longest frame, "
                f"not {depth!r}"
            )
        self.width = width
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "enable": In(1),
                "events": Out(INJECT_EVENTS),
            }
        )
        # No ports: for the proof's invariants.
        self.store = PacketFifo(width, self.depth, drop_when_full=False)
        self.before = Signal(range(self.bounds.beats))  # beats of the frame that have gone on
        self.inside = Signal()  # a frame is under way to the store

    # Only a `first` beat starts a frame. Everything else outside one is swallowed, so the rest of
    # a frame that was cut needs no state of its own.
    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = self.store
        wiring.connect(m, store.o, wiring.flipped(self.o))
        i, kept, before = self.i, store.i, self.before
        room, close, starts, take, cut, bad = (Signal() for _ in range(6))
        m.d.comb += [
            room.eq(~kept.valid | kept.ready),
            close.eq(self.inside & (~self.enable | (i.valid & i.p.first))),
            starts.eq(self.inside | (self.enable & i.p.first)),
            i.ready.eq(~close & (room | ~starts)),
            take.eq(i.valid & i.ready & starts),
            cut.eq(self.bounds.long(before, i.p)),
            bad.eq(i.p.last & (i.p.error | self.bounds.short(before, i.p))),
        ]
        with m.If(room):
            m.d.sync += kept.valid.eq(take | close)
            with m.If(close):
                m.d.sync += [
                    kept.p.eq(0),
                    kept.p.last.eq(1),
                    kept.p.error.eq(1),
                    self.inside.eq(0),
                    before.eq(0),
                ]
        with m.If(take):
            m.d.sync += [
                kept.p.eq(i.p),
                kept.p.last.eq(i.p.last | cut),
                kept.p.error.eq(cut | bad),
                self.inside.eq(~i.p.last & ~cut),
                before.eq(before + 1),
            ]
            with m.If(i.p.last | cut):
                m.d.sync += before.eq(0)
        m.d.comb += [
            self.events.injected.eq(take & i.p.last & ~cut & ~bad),
            self.events.refused.eq(
                (take & (cut | bad))
                | (close & room)
                | (i.valid & ~self.enable & i.p.first & ~close)
            ),
        ]
        return m
