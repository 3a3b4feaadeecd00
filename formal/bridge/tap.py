"""Proofs of the bridge's tap and multiplexer: ``cores/bridge/tap.py`` and ``fair.py``.

``FairMux``, by induction: the stream rules at the output; each beat is that of the input that
``index`` names; packets stay whole; no cycle is lost but one when the other input takes over an
idle output; once an input has waited for ``quantum`` beats of the other, the other begins no
packet.

``FrameTap``, by induction, for any role and any frames: what leaves is, beat by beat and in order,
what came in less what the role dropped and with the bytes that it gave; a role that is not shown a
frame has no say in it, and is shown a frame whole or not at all; a frame that is cut, damaged, too
short or too long leaves with ``error`` and no other does; each frame has one fate; only ``o`` can
stall it. Lengths are said in bytes here, in beats there.

Not proved: other sizes than those named; behaviour under a reset while running. The lane around
them is in ``bridge.py``, its other parts in ``parts.py``.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import (
    Array,
    Assert,
    Assume,
    Cat,
    Cover,
    Elaboratable,
    Fragment,
    Mux,
    Signal,
    Value,
)
from amaranth.lib import data
from trebuchet.cores.stream import beat_layout

from ..kit.proof import Mutant, Proof
from ..stream import Queue, free, new_harness, stream_rules, within

__all__ = ["PROOFS"]


def _moves(stream):
    return stream.valid & stream.ready


# --- the multiplexer ---------------------------------------------------------------------------


class FairMuxProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        inputs, o = [dut.i[0], dut.i[1]], dut.o
        free(m, o.ready)
        moves = _moves(o)
        begins_out = stream_rules(m, o, Assert, "o")
        started = Signal()
        with m.If(moves):
            m.d.sync += started.eq(~o.p.last)
        m.d.comb += [Assert(dut.started == started), Assert(begins_out == ~started)]
        for k, i in enumerate(inputs):
            free(m, i.valid, i.payload)
            begins = stream_rules(m, i, Assume, f"i{k}")
            m.d.comb += Assert(begins == ~(started & (dut.index == k)))
            m.d.comb += Assert(_moves(i) == (moves & (dut.index == k)))
            with m.If(o.valid & (dut.index == k)):
                m.d.comb += Assert(Value.cast(o.p) == Value.cast(i.p))
        owner = Signal()
        m.d.sync += owner.eq(dut.index)
        with m.If(started):
            m.d.comb += Assert(dut.index == owner)
        within(m, ~(inputs[0].valid | inputs[1].valid) | o.valid | started, 1, "o")
        self._no_starvation(m, inputs, moves, started)
        return m

    def _no_starvation(self, m, inputs, moves, started):
        dut, quantum = self.dut, self.dut.quantum
        chosen, waits = Signal(name="chosen"), Signal(name="waits")
        waited = Signal(range(quantum + 1), name="waited")  # beats of the other, up to `quantum`
        m.d.comb += [
            chosen.eq(AnyConst(1)),
            waits.eq(Array(i.valid for i in inputs)[chosen] & (dut.index != chosen)),
        ]
        with m.If(~waits):
            m.d.sync += waited.eq(0)
        with m.Elif(moves & (waited != quantum)):
            m.d.sync += waited.eq(waited + 1)
        begins = moves & dut.o.p.first
        with m.If(begins & waits):
            m.d.comb += Assert(waited < quantum)
        m.d.comb += [
            Cover(begins & waits & (waited == quantum - 1)),
            Cover(begins & ~waits & (waited == quantum)),
        ]
        # Invariants: the balance says at least how long the chosen one has waited.
        ahead = Mux(chosen, -dut.lead, dut.lead)
        m.d.comb += [Assert(dut.lead <= quantum), Assert(dut.lead >= -quantum)]
        with m.If(waits):
            m.d.comb += Assert(ahead + quantum >= waited)
            m.d.comb += Assert(started | (waited == 0) | (ahead < 0))


FAIR_MUTANTS = (
    Mutant(
        "takes_no_turns",
        "o.p.last & due",
        "o.p.last & ~other",
        context="granted, other = Signal(), Signal()",
    ),
    Mutant("interleaves", "o.p.last & due", "due"),
    Mutant("does_not_count", "with m.If(moves & other):", "with m.If(moves & ~other):", 16),
    Mutant(
        "leaves_stalled",
        "~self.started & ~granted",
        "~self.started & ~o.ready",
        context="o, grant, lead = self.o, Signal(), self.lead",
    ),
)


# --- the tap -----------------------------------------------------------------------------------


class TapProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.submodules.dut = Fragment.get(dut, platform)  # at once: it makes registers
        i, o, tap = dut.i, dut.o, dut.tap
        free(m, i.valid, i.payload, o.ready, dut.enable, tap.drop, tap.alter, tap.data)
        begins_in = stream_rules(m, i, Assume, "i")
        begins_out = stream_rules(m, o, Assert, "o")
        shows = Signal()  # the frame under way is shown
        shown = Mux(i.p.first, dut.enable, shows)
        with m.If(_moves(i)):
            m.d.sync += shows.eq(shown)
        m.d.comb += [
            Assert(i.ready == tap.step),
            Assert(tap.step | (o.valid & ~o.ready)),
            Assert(tap.valid == (i.valid & shown)),
            Assert(~tap.valid | (Value.cast(tap.beat) == Value.cast(i.p))),
            Assert(dut.shows == shows),
        ]
        # The role's own pipeline, where it stays in step with the beats.
        place = data.StructLayout({"beat": beat_layout(dut.width), "shown": 1, "valid": 1})
        past = [Signal(place, name=f"past{k}") for k in range(dut.latency)]
        with m.If(tap.step):
            m.d.sync += [past[0].beat.eq(i.p), past[0].shown.eq(shown), past[0].valid.eq(i.valid)]
            m.d.sync += [b.eq(a) for a, b in zip(past, past[1:], strict=False)]
        nth, gone = Signal(4), Signal()
        word, goes = self._fate(m, past[-1], nth, gone)
        gets = _moves(o)
        queue = Queue(
            m, puts=goes, put_word=word, gets=gets, get_valid=o.valid, get_word=o.p, capacity=1
        )
        m.d.comb += Assert(queue.level == o.valid)
        self._invariants(m, past, nth, gone, begins_in, begins_out)
        return m

    def _fate(self, m, end, nth, gone):
        """What becomes of the beat that the role judges now: the word that leaves, and whether."""
        dut, tap, beat, events = self.dut, self.dut.tap, end.beat, self.dut.events
        n, bounds = dut.width // 8, dut.bounds
        word, size = Signal(beat_layout(dut.width), name="word"), Signal(8, name="size")
        drop, alter = end.shown & tap.drop, end.shown & tap.alter
        decided, long, short = (Signal(name=name) for name in ("decided", "long", "short"))
        ends, bad, goes = (Signal(name=name) for name in ("ends", "bad", "goes"))
        changed = Signal(name="changed")  # the role has altered a beat of the frame
        m.d.comb += [
            decided.eq(end.valid & tap.step),
            size.eq(n * nth + n - beat.empty),
            long.eq((size > bounds.longest) | (~beat.last & (size >= bounds.longest))),
            short.eq(size < bounds.shortest),
            ends.eq(decided & ~gone & (beat.last | drop | long)),
            bad.eq(drop | long | beat.error | short),
            goes.eq(decided & ~gone & ~(beat.first & drop)),
            word.eq(beat),
            word.data.eq(Mux(alter, tap.data, beat.data)),
            word.last.eq(beat.last | drop | long),
            word.error.eq(word.last & bad),
        ]
        with m.If(decided):
            m.d.sync += nth.eq(Mux(beat.last, 0, Mux(gone, nth, nth + 1)))
            m.d.sync += gone.eq(~beat.last & (gone | drop | long))
            m.d.sync += changed.eq(~beat.last & (changed | alter))
        fates = Cat(events.passed, events.dropped, events.oversize, events.damaged, events.runt)
        m.d.comb += [
            Assert(fates.any() == ends),
            Assert((fates & (fates - 1)) == 0),
            Assert(events.passed == (ends & ~bad)),
            # The first reason that applies is the frame's fate.
            Assert(events.dropped == (ends & drop)),
            Assert(events.oversize == (ends & ~drop & long)),
            Assert(events.damaged == (ends & ~drop & ~long & beat.error)),
            Assert(events.altered == (events.passed & (changed | alter))),
            Assert(dut.changed == (changed & ~gone)),  # an invariant
            *(Cover(fate & ~beat.first) for fate in fates),
            Cover(events.altered & ~alter),
        ]
        return word, goes

    def _invariants(self, m, past, nth, gone, begins_in, begins_out):
        dut, o = self.dut, self.dut.o
        begins = nth == 0  # walking from the oldest place to the newest
        for mine, theirs in reversed(list(zip(past, dut.places, strict=True))):
            m.d.comb += Assert(mine.valid == theirs.valid)
            with m.If(mine.valid):
                m.d.comb += [
                    Assert(Value.cast(mine) == Value.cast(theirs)),
                    Assert(mine.beat.first == begins),
                    Assert(mine.beat.last | ((mine.beat.empty == 0) & ~mine.beat.error)),
                ]
            begins = Mux(mine.valid, mine.beat.last, begins)
        m.d.comb += [
            Assert(begins_in == begins),
            Assert(dut.swallow == gone),
            Assert(dut.before == Mux(gone, 0, nth)),
            Assert(~gone | (nth != 0)),
            Assert(nth <= dut.bounds.beats),
            Assert(gone | (nth < dut.bounds.beats)),
            Assert(Mux(o.valid, o.p.last, begins_out) == ((nth == 0) | gone)),
        ]


TAP_MUTANTS = (
    Mutant("alters_unseen", "alter.eq(end.shown & tap.alter)", "alter.eq(tap.alter)"),
    Mutant("sends_the_rest", "~beat.last & (self.swallow | cut)", "~beat.last & cut"),
    Mutant("passes_runts", "(beat.error | short)", "beat.error"),
    Mutant("switches_within", "Mux(i.p.first, self.enable, self.shows)", "self.enable"),
    Mutant("never_waits", "step.eq(~end.valid | ~self.o.valid | self.o.ready)", "step.eq(1)"),
    Mutant("forgets_it_changed", "changed.eq(changed | alter)", "changed.eq(alter)"),
    Mutant("leaves_a_trace", "~(beat.first & drop)", "~(beat.last & drop)"),
)


PROOFS = (
    Proof(
        name="bridge_mux",
        quick=True,
        core="cores.bridge.fair.FairMux(32, quantum=3)",
        says="packets stay whole and unaltered; nobody starves; no cycle is lost",
        module="trebuchet.cores.bridge.fair",
        build=lambda cores: FairMuxProof(cores.FairMux(32, 3)),
        depth=3,
        cover_depth=14,
        mutants=FAIR_MUTANTS,
    ),
    Proof(
        name="bridge_tap",
        core="cores.bridge.tap.FrameTap(32, latency=2, shortest=6, longest=11)",
        says="frames leave as they came, but for what the role said; bad ones are marked",
        module="trebuchet.cores.bridge.tap",
        build=lambda cores: TapProof(cores.FrameTap(32, 2, 6, 11)),
        depth=3,
        cover_depth=14,
        mutants=TAP_MUTANTS,
    ),
)
