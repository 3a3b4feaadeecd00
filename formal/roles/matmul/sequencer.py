"""Proof of ``cores/roles/matmul/sequencer.py``: matrices of order 4, a path of 64 bits.

Contract, over public ports: beats are stored in order, each unaltered and in its place; steps
are done in order of row, tile and k; a step is done only on a half that is full, and a beat stored
only in a half of which every step has been done; sweeps are at least ``shape.sweep`` cycles apart;
the beats of the sweeps begun never exceed what is behind the array.

The invariants that make this inductive speak about the sequencer's registers.

Not proved: that it goes on (the simulations show it); that the lanes are right (they are compared
with the model); other orders and widths, which differ in constants only; behaviour under a reset
while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ....cores.roles.matmul.array import Shape
from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]


class SequencerProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        free(m, dut.i.valid, dut.i.payload, dut.taken)
        stream_rules(m, dut.i, Assume, "i")
        self.full = Signal(2)  # by half: complete, and not every step done
        self._stores(m, dut)
        self._steps(m, dut)
        self._room(m, dut)
        self._fill_invariants(m, dut)
        self._sweep_invariants(m, dut)
        pairs = Signal(range(4))
        with m.If(dut.store_en & (self.place == 0) & (pairs != 3)):
            m.d.sync += pairs.eq(pairs + 1)
        m.d.comb += [
            Cover((pairs == 3) & dut.store_en & dut.step_en),
            Cover(self.full.all() & dut.step_en & (self.owed == dut.depth)),
        ]
        return m

    def _stores(self, m, dut):
        """The place of each beat is the number of beats before it."""
        shape, store = dut.shape, dut.store
        self.place = place = Signal(range(shape.pair_beats))
        self.into = into = Signal(init=1)
        past = Signal(shape.width)
        m.d.sync += past.eq(dut.i.payload)
        with m.If(dut.store_en):
            m.d.comb += [
                Assert(Cat(store.beat, store.row, store.b) == place),
                Assert(store.half == into),
                Assert(~self.full.bit_select(into, 1)),
                Assert(store.data == past),
            ]
            m.d.sync += place.eq(place + 1)
            with m.If(place == shape.pair_beats - 1):
                m.d.sync += [into.eq(~into), self.full.bit_select(into, 1).eq(1)]

    def _steps(self, m, dut):
        """Steps count up too; the last one of a pair empties its half."""
        shape, step = dut.shape, dut.step
        steps = shape.n * shape.tiles * shape.n
        self.number = number = Signal(range(steps))
        self.source = source = Signal(init=1)
        self.since = since = Signal(range(shape.sweep + 1), init=shape.sweep)  # a sweep began
        self.begins = Signal()
        m.d.comb += self.begins.eq(dut.step_en & (step.k == 0))
        m.d.sync += since.eq(since + (since != shape.sweep))
        with m.If(self.begins):
            m.d.comb += Assert(since == shape.sweep)
            m.d.sync += since.eq(1)
        with m.If(dut.step_en):
            m.d.comb += [
                Assert(Cat(step.k, step.tile, step.row) == number),
                Assert(step.half == source),
                Assert(self.full.bit_select(source, 1)),
            ]
            m.d.sync += number.eq(number + 1)
            with m.If(number == steps - 1):
                m.d.sync += [source.eq(~source), self.full.bit_select(source, 1).eq(0)]

    def _room(self, m, dut):
        """Beats of the sweeps begun, less those taken away."""
        beats = dut.shape.sweep_beats
        self.owed = owed = Signal(range(2 * dut.depth + 1))
        due = Signal.like(owed)
        m.d.comb += [
            due.eq(owed + Mux(self.begins, beats, 0)),
            Assume(~dut.taken | (owed != 0)),
            Assert(due <= dut.depth),
        ]
        m.d.sync += owed.eq(due - dut.taken)

        # Invariants.
        m.d.comb += Assert(dut.room + due == dut.depth)
        with m.If(dut.enough & ~self.begins):
            m.d.comb += Assert(dut.room >= beats)

    def _fill_invariants(self, m, dut):
        last = dut.shape.pair_beats - 1
        full, place, into, source = self.full, self.place, self.into, self.source
        filling, begun = Signal(), Signal()
        m.d.comb += [
            filling.eq((place != 0) | dut.store_en),
            begun.eq((self.number != 0) | dut.step_en),
            Assert(dut.at == (place + dut.store_en)[: len(dut.at)]),
            Assert(dut.half == into ^ ~filling),
            Assert(dut.free + full[0] + full[1] + filling == 2),
            Assert(
                dut.full + begun == full[0] + full[1] + (dut.store_en & (place == last)),
            ),
        ]
        with m.If(source != into):
            m.d.comb += Assert(full == Mux(source, 0b10, 0b01))
        with m.Else():
            m.d.comb += Assert(full.all() | ~full.any())
        with m.If(filling):
            m.d.comb += Assert(~full.bit_select(into, 1))
        with m.If(begun):
            m.d.comb += Assert(full.bit_select(source, 1))

    def _sweep_invariants(self, m, dut):
        shape = dut.shape
        sweeps = shape.n * shape.tiles
        sweep = self.number[shape.k_bits :]
        idle = ~dut.running & (self.number == 0)
        m.d.comb += [
            Assert(self.number[: shape.k_bits] == dut.count),
            Assert(dut.running | (dut.count == 0)),
            Assert(dut.upcoming == (sweep + dut.running)[: len(dut.upcoming)]),
            Assert(dut.step.half == self.source ^ idle),
            Assert(self.since == Mux(dut.count != 0, dut.count, shape.sweep)),
        ]
        with m.If(dut.running):
            m.d.comb += [
                Assert(Cat(dut.step.tile, dut.step.row) == sweep),
                Assert(dut.final == (sweep == sweeps - 1)),
            ]


PROOFS = (
    Proof(
        name="matmul_sequencer",
        core="cores.roles.matmul.sequencer.Sequencer(Shape(4, 4, 64), 5)",
        says="operands in order into a half that is free, steps in order on one that is full; room",
        module="trebuchet.cores.roles.matmul.sequencer",
        build=lambda cores: SequencerProof(cores.Sequencer(Shape(4, 4, 64), 5)),
        depth=3,
        cover_depth=56,
        mutants=(
            Mutant("third_pair", "(self.free != 0)", "(self.free != 3)", 40),
            Mutant("begins_early", "(self.full != 0)", "(self.full != 3)"),
            Mutant("no_room", "self.room >= beats", "self.room >= beats - 1", 40),
            Mutant("releases_early", "upcoming == sweeps - 1", "upcoming == sweeps - 2", 40),
        ),
        assumes="the stream rules at the input; no more beats are taken away than there were",
    ),
)
