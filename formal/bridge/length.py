"""Proof of ``cores/bridge/length.py``.

``FrameBounds``, by induction, for every data path: told beat by beat, a frame is short or long
exactly when a count of its bytes says so; long on the first beat that makes it so.

Not proved: other sizes than those named.
"""

from amaranth.hdl import Assert, Assume, C, Cover, Elaboratable, Mux, Signal
from trebuchet.cores.stream import PacketSignature

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

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


#: Data path, and bytes of the shortest and longest frame; first of legal Ethernet frames.
LEGAL = ((32, 60, 1518), (64, 60, 1518), (128, 60, 1518))

LENGTHS = ((32, 1, 5), (32, 4, 8), (32, 6, 11), (64, 9, 16), (64, 8, 17), (128, 17, 47))


PROOFS = (
    Proof(
        name="bridge_length",
        core="cores.bridge.length.FrameBounds, all data paths, real and small lengths",
        says="a frame is short or long as a count of its bytes says, long on the first such beat",
        module="trebuchet.cores.bridge.length",
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
)
