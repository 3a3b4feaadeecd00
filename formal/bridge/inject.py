"""Proof of ``cores/bridge/inject.py``.

``Injector``, by induction, for a role that may do anything, also stop in the middle of a frame and
begin another: each beat that comes is stored, or swallowed because it belongs to no frame or to one
that is refused; what goes to the store are whole frames, in order, unaltered, no longer than the
longest, and all but the good ones end with an error mark, so that the store drops them
(``packet_fifo_waits``) and only good ones leave, whole; each frame is counted once.

Not proved: other sizes than those named; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Assume, C, Cover, Elaboratable, Mux, Signal

from ..kit.parts import hollow, moves, same
from ..kit.proof import Mutant, Proof
from ..stream import Queue, free, new_harness, stream_rules

__all__ = ["PROOFS"]


class InjectorProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        kept, bounds, n = hollow(dut.store).i, dut.bounds, dut.width // 8
        i, beat, events = dut.i, dut.i.payload, dut.events
        free(m, i.valid, i.payload, dut.enable, dut.o.ready)
        same(m, dut.store.o, dut.o)
        begins = stream_rules(m, kept, Assert, "kept")
        m.d.comb += Assume(beat.last | (beat.empty == 0))
        # The model: beats of the frame under way that have been stored.
        nth, size, word = Signal(4), Signal(8), Signal(beat.shape())
        under, breaks, begins_one, takes = (Signal(name=f"model{k}") for k in range(4))
        long, short, good, room = (Signal(name=name) for name in ("long", "short", "good", "room"))
        m.d.comb += [
            under.eq(nth != 0),
            size.eq(n * nth + n - beat.empty),
            long.eq((size > bounds.longest) | (~beat.last & (size >= bounds.longest))),
            short.eq(size < bounds.shortest),
            good.eq(~long & ~short & ~beat.error),
            # Broken off: the role begins anew, or has no say any more.
            breaks.eq(under & (~dut.enable | (i.valid & beat.first))),
            begins_one.eq(~under & dut.enable & beat.first),
            takes.eq(i.valid & ~breaks & (under | begins_one)),
            word.eq(beat),
            word.last.eq(beat.last | long),
            word.error.eq(word.last & ~good),
        ]
        with m.If(breaks):
            m.d.comb += [word.eq(0), word.last.eq(1), word.error.eq(1)]
        with m.If(room & breaks):
            m.d.sync += nth.eq(0)
        with m.Elif(room & takes):
            m.d.sync += nth.eq(Mux(word.last, 0, nth + 1))
        queue = Queue(
            m,
            puts=room & (breaks | takes),
            put_word=word,
            gets=moves(kept),
            get_valid=kept.valid,
            get_word=kept.payload,
            capacity=1,
        )
        m.d.comb += [
            room.eq((queue.level == 0) | kept.ready),
            Assert(kept.valid == (queue.level != 0)),
            Assert(events.injected == (room & takes & beat.last & good)),
        ]
        with m.If(i.valid):
            swallowed = ~breaks & ~under & ~begins_one
            m.d.comb += Assert(i.ready == (swallowed | (takes & room)))
            off = ~dut.enable & beat.first & ~breaks
        spoilt = room & takes & word.last & ~good
        refused = spoilt | (room & breaks) | (i.valid & off)
        m.d.comb += Assert(events.refused == refused)
        # No frame is longer than the store, which so never overflows.
        m.d.comb += [Assert(nth < bounds.beats), Assert(C(dut.store.depth, 16) >= bounds.beats)]
        m.d.comb += Assert(C(not dut.store.drop_when_full))
        # Invariants.
        m.d.comb += [
            Assert(dut.inside == under),
            Assert(dut.before == nth),
            Assert(Mux(kept.valid, kept.payload.last, begins) == ~under),
            Assert(~kept.valid | (kept.payload.first == begins)),
        ]
        seen = Signal()
        with m.If(room & breaks & dut.enable):
            m.d.sync += seen.eq(1)
        m.d.comb += [
            Cover(seen & events.injected & (nth == 2)),
            Cover(room & takes & long & beat.last),
            Cover(room & breaks & ~dut.enable),
        ]
        return m


PROOFS = (
    Proof(
        name="bridge_inject",
        core="cores.bridge.inject.Injector(32, shortest=6, longest=11), its store hollow",
        says="a role's good frames are stored whole, once; all others end with error or are none",
        module="trebuchet.cores.bridge.inject",
        build=lambda cores: InjectorProof(cores.Injector(32, 6, 11)),
        depth=2,
        cover_depth=14,
        mutants=(
            Mutant(
                "joins_two_frames",
                "self.inside & (~self.enable | (i.valid & i.p.first))",
                "self.inside & ~self.enable",
            ),
            Mutant(
                "begins_in_bypass",
                "self.inside | (self.enable & i.p.first)",
                "self.inside | i.p.first",
            ),
            Mutant("passes_runts", "i.p.error | self.bounds.short(before, i.p)", "i.p.error"),
            Mutant("closes_well", "kept.p.error.eq(1)", "kept.p.error.eq(0)"),
            Mutant("overwrites", "room.eq(~kept.valid | kept.ready)", "room.eq(1)"),
        ),
        assumes="a beat that is not a last one has no empty bytes; the store is a stream",
        not_proved="the store, which is proved by packet_fifo_waits; a reset while running",
    ),
)
