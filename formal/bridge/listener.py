"""Proof of ``TapListener`` in ``cores/bridge/listener.py``.

By induction, its store hollow, for any frames and at any pace of the tap: each beat that is shown
goes to the store once, as it is; a frame's last one without ``error`` exactly if the frame came
without and is for the station, or for a group; the tap is told to drop the beat in which the
destination ends exactly if that is the station's address; ``source`` is that of the last frame
which had a usable one; ``lost`` says when the store had no room for a frame for the station.

Not proved: other data paths than 32 bits; addresses that change while a frame is under way;
behaviour under a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value

from ..kit.parts import hollow, same
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]


class ListenerProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        store, tap = hollow(dut.store), dut.tap
        free(m, tap.valid, tap.step, tap.beat, dut.o.ready)
        same(m, store.o, dut.o)
        beat, take = tap.beat, Signal()
        m.d.comb += [
            dut.mac.eq(AnyConst(48)),
            take.eq(tap.valid & tap.step),
            Assume(beat.last | ~beat.error),
        ]
        # The model: the frame's first bytes, as they came; `nth` beats came before.
        nth, head = Signal(3), Signal(96)
        now = Signal(96)
        m.d.comb += now.eq(head)
        for k in range(3):
            with m.If(nth == k):
                m.d.comb += now[32 * k : 32 * k + 32].eq(beat.data)
        with m.If(take):
            m.d.sync += [head.eq(now), nth.eq(Mux(beat.last, 0, Mux(nth == 3, 3, nth + 1)))]
        self._judged(m, take, beat, nth, now)
        self._learned(m, take, beat, nth, head, now)
        # Invariants.
        ours = head[:48] == dut.mac
        m.d.comb += [
            Assert(dut.index == nth),
            Assert(nth <= 3),
            Assert((nth != 1) | (dut.miss == (head[:32] != dut.mac[:32]))),
            Assert((nth == 0) | (dut.group == head[0])),
            Assert(dut.wanted == ((nth >= 2) & (ours | head[0]))),
            Assert((nth != 0) | ~dut.miss),
            Assert((nth < 2) | (dut.seen[:16] == head[48:64])),
            Assert((nth < 3) | (dut.seen == head[48:])),
        ]
        return m

    def _judged(self, m, take, beat, nth, now):
        dut, put = self.dut, self.dut.store.i
        good, drop, ends = Signal(), Signal(), Signal()
        plain, stored = Signal(beat.shape()), Signal(beat.shape())
        m.d.comb += [
            good.eq((nth >= 2) & ((now[:48] == dut.mac) | now[0]) & ~beat.error),
            plain.eq(beat),
            plain.error.eq(beat.last & ~good),
            stored.eq(put.p),
            Assert(put.valid == take),
            Assert(~take | (Value.cast(stored) == Value.cast(plain))),
            Assert(dut.tap.drop == drop),
            Assert(~dut.tap.alter),
            Assert(dut.lost == (dut.store.dropped_overflow & ends)),
            Assert(dut.ours == ends),  # an invariant
        ]
        with m.If(dut.tap.step):
            m.d.sync += drop.eq(dut.tap.valid & (nth == 1) & (now[:48] == dut.mac))
        with m.If(take & beat.last):
            m.d.sync += ends.eq(good)
        m.d.comb += [
            Cover(take & beat.last & good & (nth == 3) & ~now[0]),
            Cover(take & beat.last & good & now[0]),
            Cover(drop),
            Cover(dut.lost),
        ]

    def _learned(self, m, take, beat, nth, head, now):
        dut, source = self.dut, Signal(48)
        with m.If(take & beat.last & ~beat.error & (nth == 3) & ~head[48]):
            m.d.sync += source.eq(head[48:])
        m.d.comb += [Assert(dut.source == source), Cover(source.any() & (now[48:] != source))]


PROOFS = (
    Proof(
        name="bridge_listener",
        quick=True,
        core="cores.bridge.listener.TapListener(32), its store hollow",
        says="a station gets its frames and group frames, whole; its own it takes off the wire",
        module="trebuchet.cores.bridge.listener",
        build=lambda cores: ListenerProof(cores.TapListener(32)),
        depth=2,
        cover_depth=8,
        mutants=(
            Mutant("hears_everything", "(beat.error | ~self.wanted)", "beat.error"),
            Mutant("takes_the_damaged", "(beat.error | ~self.wanted)", "~self.wanted"),
            Mutant("drops_groups", "tap.drop.eq(settled & ~missed)", "tap.drop.eq(settled)"),
            Mutant("no_groups", "self.wanted.eq(~missed | group)", "self.wanted.eq(~missed)"),
            Mutant(
                "half_an_address",
                "wrong if end == 0 else self.miss | wrong",
                "wrong if end == 0 else wrong",
            ),
            Mutant("learns_groups", "m.If(good & ~seen[0])", "m.If(good)"),
            Mutant(
                "learns_the_damaged",
                "beat.last & ~beat.error & (self.index == self.beats)",
                "beat.last & (self.index == self.beats)",
            ),
            Mutant(
                "counts_the_others", "store.dropped_overflow & self.ours", "store.dropped_overflow"
            ),
            Mutant("in_its_own_time", "with m.If(tap.step):", "with m.If(1):"),
        ),
        assumes="a beat that is not a last one has no error; the address is constant",
        not_proved="the store, which is proved by packet_fifo_drops; a reset while running",
    ),
)
