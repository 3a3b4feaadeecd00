"""Which beat of operand goes where, and which step the lanes do next."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .array import StepLayout, StoreLayout

__all__ = ["Sequencer"]


class Sequencer(wiring.Component):
    """Fills one half of the operand stores while the lanes work on the other.

    Parameters
    ----------
    shape : Shape
        Sizes.
    depth : int
        Beats of result that fit what stands behind the array.

    ============  ====  =========================================================================
    member        dir   meaning
    ============  ====  =========================================================================
    ``i``         In    stream of beats: A, then B, row by row, of one multiplication after another
    ``store``     Out   :func:`~.array.StoreLayout`, with ``store_en``
    ``step``      Out   :func:`~.array.StepLayout`, with ``step_en``
    ``taken``     In    a beat of result has been taken away
    ============  ====  =========================================================================

    A half is filled only when every step on it has been done, and no step is done on it
    before it is full. A sweep begins only when all its beats have room. Latency from the last
    beat of a pair to its first step: 2 cycles. Throughput: a beat and a step a cycle.
    Back-pressure: ``i`` waits while both halves are in use. Reset: both halves are empty.
    Bad input: none.
    """

    def __init__(self, shape, depth):
        if not isinstance(depth, int) or depth < shape.sweep_beats:
            raise ValueError(
                f"Depth must be at least the {shape.sweep_beats} beats of a sweep, not {depth!r}"
            )
        self.shape, self.depth = shape, depth
        super().__init__(
            {
                "i": In(stream.Signature(shape.width)),
                "store": Out(StoreLayout(shape)),
                "store_en": Out(1),
                "step": Out(StepLayout(shape)),
                "step_en": Out(1),
                "taken": In(1),
            }
        )
        self.free = Signal(range(3), init=2)  # halves that nobody uses
        self.full = Signal(range(3))  # halves that hold a pair that was not begun
        self.at = Signal(range(shape.pair_beats))  # place of the next beat
        self.half = Signal()  # where its pair goes; toggled with the first beat
        self.room = Signal(range(depth + 1), init=depth)
        self.enough = Signal()  # room for a sweep
        self.running = Signal()
        self.count = Signal(range(shape.sweep))
        self.upcoming = Signal(range(shape.n * shape.tiles))  # the sweep that begins next
        self.final = Signal()  # the present one is the last of its pair

    def elaborate(self, platform):
        m = Module()
        self.claim = Signal()  # the first beat of a pair is taken
        self.stored = Signal()  # the last one is
        self.start = Signal()  # a sweep begins
        self.begin = Signal()  # it is the first of its pair
        self.release = Signal()  # the last step of a pair is done
        m.d.sync += [
            self.free.eq(self.free + self.release - self.claim),
            self.full.eq(self.full + self.stored - self.begin),
        ]
        self._fill(m)
        self._room(m)
        self._sweep(m)
        return m

    def _fill(self, m):
        shape, store, at = self.shape, self.store, self.at
        row_bits = (shape.n // shape.words - 1).bit_length()
        taken = Signal()
        m.d.comb += [
            self.i.ready.eq((at != 0) | (self.free != 0)),
            taken.eq(self.i.valid & self.i.ready),
            self.claim.eq(taken & (at == 0)),
            self.stored.eq(taken & (at == shape.pair_beats - 1)),
        ]
        m.d.sync += [
            self.store_en.eq(taken),
            store.data.eq(self.i.payload),
            store.half.eq(self.half ^ self.claim),
            store.beat.eq(at[:row_bits]),
            store.row.eq(at[row_bits:-1]),
            store.b.eq(at[-1]),
        ]
        with m.If(taken):
            m.d.sync += at.eq(at + 1)
        with m.If(self.claim):
            m.d.sync += self.half.eq(~self.half)

    def _room(self, m):
        # `enough` comes a cycle late, and sweeps are further apart.
        beats = self.shape.sweep_beats
        with m.If(self.start):
            m.d.sync += self.room.eq(self.room + self.taken - beats)
        with m.Elif(self.taken):
            m.d.sync += self.room.eq(self.room + 1)
        m.d.sync += self.enough.eq(self.room >= beats)

    # A half is released while its last step is done. What is stored from then on cannot overtake
    # that step: the first row of A comes first, and B only n rows later.
    def _sweep(self, m):
        shape, step = self.shape, self.step
        sweeps = shape.n * shape.tiles
        running, count, upcoming = self.running, self.count, self.upcoming
        fresh, turn = Signal(), Signal()
        m.d.comb += [
            fresh.eq(upcoming == 0),
            turn.eq(~running | (count == shape.sweep - 1)),
            self.start.eq(turn & self.enough & (~fresh | (self.full != 0))),
            self.begin.eq(self.start & fresh),
            step.k.eq(count),
            self.step_en.eq(running & (count < shape.n)),
            self.release.eq(running & (count == shape.n - 1) & self.final),
        ]
        with m.If(turn):
            m.d.sync += [running.eq(self.start), count.eq(0)]
        with m.Else():
            m.d.sync += count.eq(count + 1)
        with m.If(self.start):
            m.d.sync += [
                upcoming.eq(upcoming + 1),
                step.tile.eq(upcoming[: shape.tile_bits]),
                step.row.eq(upcoming[shape.tile_bits :]),
                step.half.eq(step.half ^ fresh),
                self.final.eq(upcoming == sweeps - 1),
            ]
