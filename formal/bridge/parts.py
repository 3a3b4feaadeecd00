"""Proofs of ``cores/bridge/length.py`` and ``inject.py``, and of the shares of ``FairMux``.

``FrameBounds``, by induction, for every data path: told beat by beat, a frame is short or long
exactly when a count of its bytes says so; long on the first beat that makes it so.

``Injector``, by induction, for a role that may do anything, also stop in the middle of a frame and
begin another: each beat that comes is stored, or swallowed because it belongs to no frame or to one
that is refused; what goes to the store are whole frames, in order, unaltered, no longer than the
longest, and all but the good ones end with an error mark, so that the store drops them
(``packet_fifo_waits``) and only good ones leave, whole; each frame is counted once.

``FairMux``, by induction: over any time in which both inputs always wait, from an arbitrary cycle
on, the beats that they have sent differ by no more than twice the quantum.

Not proved: other sizes than those named; behaviour under a reset while running.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, C, Cover, Elaboratable, Mux, Signal, signed
from trebuchet.cores.stream import PacketSignature

from ..kit.parts import hollow, moves, same
from ..kit.proof import Mutant, Proof
from ..stream import Queue, free, new_harness, stream_rules

__all__ = ["PROOFS"]


class LengthProof(Elaboratable):
    def __init__(self, bounds):
        self.bounds = bounds

    def elaborate(self, platform):
        m = new_harness()
        for k, (bounds, shortest, longest) in enumerate(self.bounds):
            self._counts(m, bounds, k, shortest, longest)
        return m

    def _counts(self, m, bounds, k, shortest, longest):
        n = bounds.n
        i = PacketSignature(8 * n).create(path=(f"i{k}",))
        free(m, i.valid, i.payload)
        beat = i.payload
        m.d.comb += Assume(beat.last | (beat.empty == 0))
        before, size = Signal(12, name=f"before{k}"), Signal(16, name=f"size{k}")
        gone, long = Signal(name=f"gone{k}"), Signal(name=f"long{k}")
        m.d.comb += [
            size.eq(n * before + n - beat.empty),
            long.eq((size > longest) | (~beat.last & (size >= longest))),
        ]
        with m.If(i.valid & ~gone):
            m.d.sync += before.eq(Mux(beat.last | long, 0, before + 1))
            m.d.comb += [
                Assert(bounds.long(before, beat) == long),
                Assert(bounds.short(before, beat) == (beat.last & (size < shortest))),
            ]
        with m.If(i.valid):
            m.d.sync += gone.eq(~beat.last & (gone | long))
        m.d.comb += [
            Assert(before < bounds.beats),
            Assert(C(bounds.beats, 16) == -(-longest // n)),
            Assert(~gone | (before == 0)),
        ]
        if bounds.beats < 8:
            if longest % n:  # else the last beat is never too long, but the one before it
                m.d.comb += Cover(i.valid & ~gone & long & beat.last)
            m.d.comb += Cover(i.valid & ~gone & beat.last & (size == longest))


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


class ShareProof(Elaboratable):
    """Beats of both inputs since a cycle that the solver picks, while both always wait."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        o, q = dut.o, dut.quantum
        free(m, o.ready)
        begun = []
        for k in range(2):
            free(m, dut.i[k].valid, dut.i[k].payload)
            begun.append(stream_rules(m, dut.i[k], Assume, f"i{k}"))
        both, counts, moves_o = Signal(), Signal(), moves(o)
        # Beats of the packet under way; those of input 1 less those of input 0; less its lead.
        nth, ahead, slack = Signal(4), Signal(signed(8)), Signal(signed(8))
        first = Signal(init=1)  # the packet in which the count began is still under way
        begins_now = Signal()
        m.d.comb += [
            both.eq(dut.i[0].valid & dut.i[1].valid),
            begins_now.eq(AnySeq(1)),
            slack.eq(ahead - dut.lead),
            Assume(~o.valid | o.p.last | (nth < q - 1)),  # no packet is longer than the quantum
        ]
        with m.If(moves_o):
            m.d.sync += nth.eq(Mux(o.p.last, 0, nth + 1))
        with m.If(~both | begins_now):
            m.d.sync += [counts.eq(both), ahead.eq(0), first.eq(1)]
        with m.Elif(counts & moves_o):
            m.d.sync += [ahead.eq(Mux(dut.index, ahead + 1, ahead - 1))]
            m.d.sync += first.eq(first & ~o.p.last)
        with m.If(counts & both):
            m.d.comb += [Assert(ahead <= 2 * q), Assert(ahead >= -2 * q)]
            m.d.comb += [Cover(ahead == q), Cover(ahead == -q)]
        # Invariants: after the first packet the lead is never cut off at the quantum.
        m.d.comb += [
            Assert((dut.lead <= q) & (dut.lead >= -q)),
            Assert(nth < q),
            Assert(dut.started == (nth != 0)),
        ]
        for k in range(2):
            m.d.comb += Assert(begun[k] == ~(dut.started & (dut.index == k)))
        lead = Mux(dut.index, dut.lead, -dut.lead)  # of the granted input
        beats = Mux(dut.index, ahead, -ahead)
        with m.If(counts):
            m.d.comb += [Assert(slack <= q), Assert(slack >= -q)]
            with m.If(first):
                m.d.comb += [Assert(beats >= 0), Assert(beats <= nth)]
            with m.Else():
                m.d.comb += Assert(lead <= nth)
        return m


MODULE = "trebuchet.cores.bridge"
#: Data path, and bytes of the shortest and longest frame; first of legal Ethernet frames.
LEGAL = ((32, 60, 1518), (64, 60, 1518), (128, 60, 1518))
LENGTHS = ((32, 1, 5), (32, 4, 8), (32, 6, 11), (64, 9, 16), (64, 8, 17), (128, 17, 47))

PROOFS = (
    Proof(
        name="bridge_length",
        core="cores.bridge.length.FrameBounds, all data paths, real and small lengths",
        says="a frame is short or long as a count of its bytes says, long on the first such beat",
        module=f"{MODULE}.length",
        build=lambda cores: LengthProof(
            [(cores.FrameBounds(width), *sizes) for width, *sizes in LEGAL]
            + [(cores.FrameBounds(*sizes), *sizes[1:]) for sizes in LENGTHS]
        ),
        depth=3,
        cover_depth=6,
        mutants=(
            Mutant(
                "counts_the_fcs", "SHORTEST, LONGEST = 60, 1518", "SHORTEST, LONGEST = 64, 1518"
            ),
            Mutant("short_by_one", "beat.empty > empty", "beat.empty >= empty"),
            Mutant("long_by_one", "beat.empty < empty", "beat.empty <= empty"),
            Mutant(
                "no_room_for_the_last", "self._border(longest)[0] + 1", "self._border(longest)[0]"
            ),
        ),
        assumes="a beat that is not a last one has no empty bytes",
        not_proved="other lengths than those named",
    ),
    Proof(
        name="bridge_inject",
        core="cores.bridge.inject.Injector(32, shortest=6, longest=11), its store hollow",
        says="a role's good frames are stored whole, once; all others end with error or are none",
        module=f"{MODULE}.inject",
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
    Proof(
        name="bridge_mux_share",
        core="cores.bridge.fair.FairMux(32, quantum=3)",
        says="while both inputs wait, the beats that they send differ by at most twice the quantum",
        module=f"{MODULE}.fair",
        build=lambda cores: ShareProof(cores.FairMux(32, 3)),
        depth=3,
        cover_depth=14,
        mutants=(
            Mutant("turns_by_packets", "Mux(grant, following >= 0, following <= 0)", "1", 16),
            Mutant(
                "counts_one_side",
                "with m.If(grant & (lead != self.quantum)):",
                "with m.If(grant & (lead < 0)):",
                16,
            ),
        ),
        assumes="the stream rules on the inputs; no packet is longer than the quantum",
    ),
)
