"""Proofs of ``MacArray`` in ``cores/roles/matmul/array.py``, of order 8: 8 lanes, and 4 lanes.

The lanes, which ``matmul_lane`` proves, are left to the solver. Contract, cycle by cycle, as the
data sheets of lane and array ask for it: each lane is given the address of every step, the word
of A that belongs to it (an arbitrary one, as stored last), and the mark of a sum's beginning,
each in its cycle; words of B go to the bank of their column and to no other; after the last step
of a sweep the sums of all lanes leave in ascending order, as they were when each was complete.

It takes no invariants but of the stores, because nothing goes round in a circle: the depth of the
induction is the length of the longest path.

Not proved: other orders and widths, which differ in constants; a reset while running.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...kit.inside import Inside, patched
from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness

__all__ = ["PROOFS"]

#: Cycles of a lane: the other factor, the mark, the sum; after the address, which comes two cycles
#: after the step in the first group, and a cycle later in each group after it.
ADDRESS, FACTOR, MARK, SUM = 2, 4, 7, 8
GROUP = 4


class AnyLane(wiring.Component):
    def __init__(self, depth):
        super().__init__(
            {
                "w_en": In(1),
                "w_addr": In(range(depth)),
                "w_data": In(32),
                "r_addr": In(range(depth)),
                "a": In(32),
                "first": In(1),
                "acc": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.acc.eq(AnySeq(32))
        return m


class MacArrayProof(Elaboratable):
    def __init__(self, cores, shape):
        self.cores, self.shape = cores, cores.Shape(*shape)

    def elaborate(self, platform):
        m = new_harness()
        dut = self.cores.MacArray(self.shape)
        cores, groups = self.cores, []

        class OpenGroup(cores.LaneGroup):
            """A group that is elaborated at once, with lanes that do what they like."""

            def __init__(self, shape, index):
                super().__init__(shape, index)
                with patched(cores, MacLane=AnyLane):
                    self.inside = Module()
                    parts = Inside(self.inside, super().elaborate(None), name="group")
                self.lanes = [parts.parts[f"lane{k}"] for k in range(GROUP)]
                groups.append(self)

            def elaborate(self, platform):
                return self.inside

        with patched(cores, LaneGroup=OpenGroup):
            i = Inside(m, dut)
        self.dut, self.lanes = dut, [lane for group in groups for lane in group.lanes]
        free(m, dut.store, dut.store_en, dut.step, dut.step_en)
        self._sweeps(m)
        self._steps(m, i)
        self._stores(m)
        self._results(m)
        return m

    def _late(self, m, value, cycles, name):
        """``value`` 0 to ``cycles`` cycles later."""
        line = [value]
        for k in range(cycles):
            later = Signal(len(Value.cast(value)), name=f"{name}{k + 1}")
            m.d.sync += later.eq(line[-1])
            line.append(later)
        return line

    def _sweeps(self, m):
        """Steps of a sweep follow each other; sweeps are as far apart as the data sheet asks."""
        step, n = self.dut.step, self.shape.n
        going, upcoming = Signal(), Signal(range(n))
        since = Signal(range(self.shape.sweep + 1), init=self.shape.sweep)
        begins = self.dut.step_en & (step.k == 0)
        m.d.comb += [
            Assume(~going | self.dut.step_en),
            Assume(~self.dut.step_en | (step.k == upcoming)),
            Assume(~begins | (since == self.shape.sweep)),
        ]
        with m.If(self.dut.step_en):
            m.d.sync += [upcoming.eq(upcoming + 1), going.eq(upcoming != n - 1)]
        m.d.sync += since.eq(Mux(begins, 1, since + (since != self.shape.sweep)))
        m.d.comb += [
            Assert(going == (upcoming != 0)),
            Assert((since >= upcoming) & (~going | (since == upcoming))),
        ]

    def _steps(self, m, i):
        dut, shape = self.dut, self.shape
        step, store, groups = dut.step, dut.store, shape.groups
        place = Cat(step.k, step.tile, step.half)
        address = self._late(m, place, ADDRESS + groups, "address")
        first = self._late(m, dut.step_en & (step.k == 0), MARK + groups, "first")
        # The chosen word of A, and when it was asked for.
        chosen, word = Signal(1 + 2 * shape.k_bits), Signal(32)
        word_bits = (shape.words - 1).bit_length()
        at = Cat(chosen[word_bits : shape.k_bits], chosen[shape.k_bits :])
        stored = dut.store_en & ~store.b & (Cat(store.beat, store.row, store.half) == at)
        asked = Cat(step.k, step.row, step.half) == chosen
        wanted = self._late(m, asked, FACTOR + groups, "wanted")
        words = self._late(m, word, FACTOR + groups, "word")
        m.d.comb += chosen.eq(AnyConst(len(chosen)))
        with m.If(stored):
            m.d.sync += word.eq(store.data.word_select(chosen[:word_bits], 32))
        for k in range(shape.words):
            peek = i.parts[f"a{k}"].read_port(domain="comb")
            m.d.comb += peek.addr.eq(at)
            with m.If(chosen[:word_bits] == k):
                m.d.comb += Assert(peek.data == word)
        for number, lane in enumerate(self.lanes):
            g = number // GROUP
            m.d.comb += [
                Assert(lane.r_addr == address[ADDRESS + g]),
                Assert(lane.first == first[MARK + g]),
                Assert(~wanted[FACTOR + g] | (lane.a == words[FACTOR + g])),
            ]

    def _stores(self, m):
        """A beat of B has the words of neighbouring columns."""
        dut, shape = self.dut, self.shape
        store = dut.store
        value = Cat(store.data, store.half, store.row, store.beat, dut.store_en & store.b)
        line = self._late(m, value, 1 + shape.groups, "stored")
        for number, lane in enumerate(self.lanes):
            now = line[1 + number // GROUP]
            data, rest = now[: shape.width], now[shape.width :]
            half, row = rest[0], rest[1 : 1 + shape.k_bits]
            beat, enabled = rest[1 + shape.k_bits : -1], rest[-1]
            column = (beat * shape.words)[: shape.k_bits]  # of its first word
            mine = (column % shape.macs) == number // shape.words * shape.words
            m.d.comb += Assert(lane.w_en == (enabled & mine))
            with m.If(lane.w_en):
                m.d.comb += [
                    Assert(lane.w_data == data.word_select(number % shape.words, 32)),
                    Assert(
                        lane.w_addr == Cat(row, (column // shape.macs)[: shape.tile_bits], half)
                    ),
                ]

    def _results(self, m):
        """Each beat waits for those before it: a place a cycle."""
        dut, shape = self.dut, self.shape
        beats = GROUP // shape.words
        last = dut.step_en & (dut.step.k == shape.n - 1)
        longest = SUM + shape.groups + shape.sweep_beats
        ended = self._late(m, last, longest, "ended")
        sums = Cat(lane.acc for lane in self.lanes)
        history = self._late(m, sums, shape.sweep_beats, "sums")
        out, out_en = Signal(shape.width), Signal()
        for beat in range(shape.sweep_beats):
            g = beat // beats
            loaded = history[1 + beat]
            with m.If(ended[SUM + 1 + g + beat]):
                m.d.comb += [out.eq(loaded.word_select(beat, shape.width)), out_en.eq(1)]
        m.d.comb += Assert(dut.o_en == out_en)
        with m.If(out_en):
            m.d.comb += Assert(dut.o == out)
        count = Signal(4)
        m.d.sync += count.eq(count + dut.o_en)
        m.d.comb += Cover((count == shape.sweep_beats - 1) & dut.o_en & dut.step_en)


MUTANTS = (
    Mutant("first_too_late", "flags[2 * ACC_DELAY]", "flags[2 * ACC_DELAY + 2]", 20),
    Mutant(
        "other_half",
        "Cat(self.step.k, self.step.tile, self.step.half)",
        "Cat(self.step.k, self.step.tile, self.step.k[0])",
    ),
    Mutant(
        "wrong_word",
        "Cat(words).word_select(at_later, 32)",
        "Cat(words).word_select(at, 32)",
        context="at, at_later",
    ),
    Mutant(
        "wrong_column",
        "self.index * beats + i // shape.words",
        "self.index * beats + i % shape.words",
    ),
    Mutant("loads_early", "flags[2 * LANE_DELAY + 1]", "flags[2 * LANE_DELAY - 1]", 20),
)

PROOFS = tuple(
    Proof(
        name=f"matmul_array_{name}",
        core=f"cores.roles.matmul.array.MacArray(Shape{shape})",
        says="each lane gets its words, marks and columns in their cycles; sums leave in order",
        module="trebuchet.cores.roles.matmul.array",
        build=lambda cores, shape=shape: MacArrayProof(cores, shape),
        depth=depth,
        cover_depth=32,
        mutants=mutants,
        assumes="steps and sweeps as the data sheet asks (matmul_sequencer gives them so)",
        not_proved="other orders and widths; a reset while running",
    )
    for name, shape, depth, mutants in (
        ("groups", (8, 8, 64), 16, MUTANTS),
        (
            "tiles",
            (8, 4, 64),
            13,
            (
                MUTANTS[1],
                Mutant(
                    "no_tile",
                    "Cat(store.row, tile, store.half)",
                    "Cat(store.row, store.half, tile)",
                ),
            ),
        ),
    )
)
