"""Proof of ``WeightLoader`` in ``cores/roles/ecg/weights.py``.

Word number k since the last reload goes to the row and lane, bias or entry of the table that a list
made from the layout's description names, and to no other; what comes after the last is dropped.

Not proved: other shapes; a reset while running.
"""

from amaranth.hdl import Array, Assert, Cat, Const, Cover, Elaboratable, Mux, Signal

from ....cores.roles.ecg.weights import NetworkShape
from ...kit.inside import Inside
from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness

__all__ = ["PROOFS"]

INPUTS, HIDDEN, OUTPUTS, LANES, TABLE = 5, 3, 2, 2, 1024


def _places():
    """``(row, lane)`` of each weight; a last row that is not full uses the upper lanes."""
    result, row = [], 0
    for count, neurons in ((INPUTS, HIDDEN), (HIDDEN, OUTPUTS)):
        for _ in range(neurons):
            for start in range(0, count, LANES):
                size = min(LANES, count - start)
                result += [(row, LANES - size + k) for k in range(size)]
                row += 1
    return result


class WeightLoaderProof(Elaboratable):
    def __init__(self, cores):
        shape = NetworkShape(INPUTS, HIDDEN, OUTPUTS, LANES, tuple(range(INPUTS)))
        self.dut = cores.WeightLoader(shape)

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        i = Inside(m, dut)
        free(m, dut.load.valid, dut.load.payload, dut.reload)
        places = _places()
        weights, biases = len(places), 3 * (HIDDEN + OUTPUTS)
        total = weights + biases + TABLE
        count, at = Signal(range(total + 1)), Signal(range(total + 1))
        go, word = dut.load.valid, dut.load.payload
        older, old = Signal(16), Signal(16)  # the two words before
        with m.If(dut.reload):
            m.d.sync += count.eq(0)
        with m.Elif(go & (count != total)):
            m.d.sync += count.eq(count + 1)
        with m.If(go):
            m.d.sync += [old.eq(word), older.eq(old)]
        in_rows, in_biases = count < weights, (count >= weights) & (count < weights + biases)
        in_table = (count >= weights + biases) & (count != total)
        row = Array(row for row, _ in places)[at]
        lane = Array(lane for _, lane in places)[at]
        number = Array(k // 3 for k in range(biases))[at]
        part = Array(k % 3 for k in range(biases))[at]
        m.d.comb += at.eq(Mux(in_rows, count, Mux(in_biases, count - weights, 0)))
        m.d.comb += [
            Assert(dut.row_en == Mux(go & in_rows, Const(1, LANES) << lane, 0)[:LANES]),
            Assert(dut.bias_en == (go & in_biases & (part == 2))),
            Assert(dut.table_en == (go & in_table)),
            Assert(dut.data == word),
        ]
        with m.If(in_rows):
            m.d.comb += Assert(dut.row == row)
        with m.If(dut.bias_en):
            bits = len(dut.bias_data)
            m.d.comb += Assert(dut.bias == number)
            m.d.comb += Assert(dut.bias_data == Cat(older, old, word)[:bits])
        with m.If(in_table):
            m.d.comb += Assert(dut.table == count - weights - biases)
        again = Signal()
        m.d.sync += again.eq(again | (dut.reload & (count == 7)))
        m.d.comb += [Cover(again & (count == weights) & go), Cover(dut.bias_en & (dut.bias == 1))]
        self._invariants(m, i, count, at, in_rows, in_biases, in_table, weights, biases)
        m.d.comb += Assert(i.held == Cat(older, old))
        m.d.comb += Assert(~in_biases | (i.part == part))
        return m

    def _invariants(self, m, i, count, at, in_rows, in_biases, in_table, weights, biases):
        """Where the loader's counters are at each word."""
        rows = [row for row, _ in _places()]
        ends = [k + 1 == len(rows) or rows[k + 1] != row for k, row in enumerate(rows)]
        first = -(-INPUTS // LANES)
        second = -(-HIDDEN // LANES)
        neurons, before = [], []
        for row in rows:
            hidden = row < HIDDEN * first
            per = first if hidden else second
            inside = row if hidden else row - HIDDEN * first
            neurons.append(inside // per + (0 if hidden else HIDDEN))
            before.append(per - 1 - inside % per)
        assert any(ends)
        place = i.signal("place")
        section = Mux(in_rows, 0, Mux(in_biases, 1, Mux(in_table, 2, 3)))
        m.d.comb += [Assert(i.section == section), Assert(count <= weights + biases + TABLE)]
        with m.If(in_rows):
            m.d.comb += [
                Assert(place == Array(rows)[at]),
                Assert(i.lane == Array(lane for _, lane in _places())[at]),
                Assert(self.dut._neuron == Array(neurons)[at]),
                Assert(self.dut._before == Array(before)[at]),
                Assert(i.part == 0),
            ]
        with m.Elif(in_biases):
            m.d.comb += Assert(place == Array(k // 3 for k in range(biases))[at])
        with m.Elif(in_table):
            m.d.comb += Assert(place == count - weights - biases)


PROOFS = (
    Proof(
        name="ecg_weights",
        core="cores.roles.ecg.weights.WeightLoader(5 inputs, 3 hidden, 2 outputs, 2 lanes)",
        says="each word goes to its row and lane, bias or entry, and what is too much nowhere",
        module="trebuchet.cores.roles.ecg.weights",
        build=WeightLoaderProof,
        depth=1,
        cover_depth=34,
        mutants=(
            Mutant("lower_lanes", "-shape.inputs % shape.lanes", "0", 14),
            Mutant("one_neuron_less", "neuron >= shape.hidden - 1", "neuron >= shape.hidden", 24),
            Mutant("two_words", "step.eq(go & (part == 2))", "step.eq(go & (part == 1))", 30),
            Mutant(
                "keeps_place",
                "(section, place, part, lane, self._before)",
                "(section, part, lane, self._before)",
                14,
            ),
        ),
        assumes="nothing",
        not_proved="other shapes; a reset while running",
    ),
)
