"""Proof of the frame guard in ``cores/net/guard.py``.

The guard is a marker in front of a ``PacketFifo`` that drops what is marked. Proved: each beat goes
through the marker once, unchanged and in order; a frame's last beat is marked if and only if the
frame came damaged or its bytes, counted one by one, are not from ``shortest`` to ``longest``; each
frame counts in exactly one counter, by the order of reasons of the data sheet; the store waits
instead of dropping, has the promised size, and is all that the output shows.

With ``packet_fifo_waits``, which proves the store, this says that whole good frames pass and
nothing else. Not proved: behaviour under a reset while running; other lengths than those named.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated
from ..stream import Queue, free, new_harness, stream_rules

__all__ = ["PROOFS"]

STORE_BYTES = 2048
COUNTERS = ("long", "damaged", "short", "frames")


class GuardProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        store = elaborated(dut).submodules.store
        i, kept, n = dut.i, store.i, dut.width // 8
        free(m, i.valid, i.payload, dut.o.ready)
        begins_in = stream_rules(m, i, Assume, "i")
        begins_kept = stream_rules(m, kept, Assert, "kept")
        beat, puts, gets = i.payload, i.valid & i.ready, kept.valid & kept.ready

        # Bytes of the frame so far, and with this beat; it stops where every frame is too long.
        limit = STORE_BYTES - n
        so_far, size = Signal(range(STORE_BYTES + 1)), Signal(range(STORE_BYTES + 1))
        m.d.comb += size.eq(so_far + n - beat.empty)
        with m.If(puts):
            m.d.sync += so_far.eq(Mux(beat.last, 0, Mux(so_far >= limit, limit, so_far + n)))
        long, short = size > dut.longest, size < dut.shortest
        mark = beat.last & (beat.error | long | short)

        queue = Queue(
            m,
            puts=puts,
            put_word=Cat(beat.data, beat.empty, beat.first, beat.last, mark),
            gets=gets,
            get_valid=kept.valid,
            get_word=kept.payload,
            capacity=1,
        )
        m.d.comb += Assert(i.ready == ((queue.level == 0) | kept.ready))
        m.d.comb += Assert(kept.valid == (queue.level != 0))

        counts = {name: Signal(32, name=f"{name}_frames") for name in COUNTERS}
        reasons = dict(zip(COUNTERS, (long, beat.error, short, 1), strict=True))
        taken = puts & beat.last
        for name, reason in reasons.items():
            m.d.sync += counts[name].eq(counts[name] + (taken & reason))
            m.d.comb += Assert(getattr(dut.csr, name) == counts[name])
            taken = taken & ~reason

        stored, shown = Value.cast(store.o.payload), Value.cast(dut.o.payload)
        m.d.comb += [
            Assert(store.depth * n == STORE_BYTES),
            Assert(~Value.cast(store.drop_when_full).bool()),
            Assert(dut.o.valid == store.o.valid),
            Assert(store.o.ready == dut.o.ready),
            Assert(stored == shown),
            Assert(~dut.o.payload.error),
        ]
        whole = Signal(range(4))
        with m.If(puts & beat.last & ~mark & (whole != 3)):
            m.d.sync += whole.eq(whole + 1)
        seen = [counts[name] != 0 for name in COUNTERS[:3]]
        m.d.comb += [
            Cover((whole == 2) & seen[0] & seen[1] & seen[2]),
            Cover(dut.o.valid & dut.o.ready & dut.o.payload.last & ~dut.o.payload.first),
            Cover(puts & ~mark & beat.last & (size == dut.longest)),
            Cover(puts & ~mark & beat.last & (size == dut.shortest) & ~beat.first),
        ]

        # Invariants: whole beats so far; where frames begin.
        m.d.comb += Assert(so_far == n * dut.beats)
        m.d.comb += Assert(Mux(kept.valid, kept.payload.last, begins_kept) == begins_in)
        return m


PROOFS = (
    Proof(
        name="guard",
        core="cores.net.guard.FrameGuard(32, 6, 15)",
        says="frames of legal length and undamaged are kept as they came; each counts once",
        module="trebuchet.cores.net.guard",
        build=lambda cores: GuardProof(cores.FrameGuard(32, 6, 15)),
        depth=2,
        cover_depth=20,
        mutants=(
            Mutant("shortest_less_one", "i.p.empty > low_empty", "i.p.empty >= low_empty"),
            Mutant("longest_less_one", "i.p.empty < high_empty", "i.p.empty <= high_empty"),
            Mutant("ignores_damage", "(i.p.error | short | long)", "(short | long)"),
            Mutant(
                "never_restarts",
                "Mux(i.p.last, 0, Mux(beats.all(), beats, beats + 1))",
                "Mux(i.p.first, 0, Mux(beats.all(), beats, beats + 1))",
            ),
            Mutant(
                "counts_damaged_first",
                "with m.If(long):",
                "with m.If(long & ~i.p.error):",
                within="with m.If(moved & i.p.last):",
            ),
        ),
        not_proved="the store (packet_fifo_waits); other lengths",
    ),
)
