"""Where the network's weights lie in its memories, and how new ones get there."""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ....models.ecg import model

__all__ = ["NetworkShape", "WeightLoader"]


@dataclass(frozen=True)
class NetworkShape:
    """Size of a network, and how its weights are laid out for a number of lanes.

    A neuron has one row of ``lanes`` weights after the other; one that is not full uses the upper
    lanes, the others hold 0. The hidden layer's rows come first.
    """

    inputs: int
    hidden: int
    outputs: int
    lanes: int
    order: tuple[int, ...]

    @classmethod
    def of(cls, weights, lanes, order=None):
        if not isinstance(lanes, int) or lanes < 1:
            raise ValueError(f"Lanes must be an integer of at least 1, not {lanes!r}")
        hidden, inputs = weights.w1.shape
        order = tuple(range(inputs)) if order is None else tuple(order)
        if sorted(order) != list(range(inputs)):
            raise ValueError(f"Order must hold 0 to {inputs - 1} once each, not {order!r}")
        return cls(inputs, hidden, weights.w2.shape[0], lanes, order)

    @property
    def input_rows(self):
        return -(-self.inputs // self.lanes)

    @property
    def hidden_rows(self):
        return -(-self.hidden // self.lanes)

    @property
    def rows(self):
        return self.hidden * self.input_rows + self.outputs * self.hidden_rows

    @property
    def neurons(self):
        return self.hidden + self.outputs

    @property
    def accumulator(self):
        """Bits, signed, that hold any sum."""
        largest = (max(self.inputs, self.hidden) << 30) + (1 << model.BIAS_BITS - 1)
        return largest.bit_length() + 1

    def first_row_lane(self, count):
        """Lane of the first weight of a neuron with ``count`` inputs."""
        return max(0, self.lanes - count)

    def weight_rows(self, weights):
        """The contents of the rows, lane 0 in the lowest bits."""
        result = []
        for matrix in (weights.w1[:, list(self.order)], weights.w2):
            for neuron in matrix.tolist():
                for start in range(0, len(neuron), self.lanes):
                    part = neuron[start : start + self.lanes]
                    part = [0] * (self.lanes - len(part)) + part
                    result.append(sum((v & 0xFFFF) << 16 * i for i, v in enumerate(part)))
        return result


class WeightLoader(wiring.Component):
    """Writes new weights into a network's memories.

    ============  ===  ==========================================================================
    ``load``      In   stream of words in the order of :mod:`trebuchet.models.ecg.words`; always
                       ready; words after the last are dropped
    ``reload``    In   1 for one cycle: the next word is the first; also the state after reset
    ``row``       Out  address of a row, ``row_en`` one bit for each lane of it
    ``bias``      Out  address of a bias, ``bias_en``; ``bias_data``
    ``table``     Out  address of an entry of the table, ``table_en``
    ``data``      Out  the word for a lane or an entry
    ============  ===  ==========================================================================

    Parameters: ``shape``, a :class:`NetworkShape`. Combinational from ``load`` to the outputs.
    """

    def __init__(self, shape):
        self.shape = shape
        super().__init__(
            {
                "load": In(stream.Signature(unsigned(16), always_ready=True)),
                "reload": In(1),
                "row": Out(range(shape.rows)),
                "row_en": Out(shape.lanes),
                "bias": Out(range(shape.neurons)),
                "bias_en": Out(1),
                "bias_data": Out(model.BIAS_BITS),
                "table": Out(model.TABLE_LOG2),
                "table_en": Out(1),
                "data": Out(16),
            }
        )

    # One counter says where the next word goes, first in rows, then in biases, then in the table.
    # In the rows it is helped by the lane, the rows that come before the neuron's last, and the
    # neurons that the hidden layer still has.
    def elaborate(self, platform):
        m = Module()
        shape = self.shape
        word, go = self.load.payload, self.load.valid
        section = Signal(2)  # rows, biases, table, end
        place = Signal(max(model.TABLE_LOG2, len(self.row), len(self.bias)))
        ends = (shape.rows, shape.neurons, 1 << model.TABLE_LOG2)
        lane = Signal(range(shape.lanes), init=shape.first_row_lane(shape.inputs))
        part = Signal(2)
        held = Signal(32)  # the two lower words of a bias
        step, last = Signal(), Signal()
        m.d.comb += [
            self.row.eq(place),
            self.bias.eq(place),
            self.table.eq(place),
            self.data.eq(word),
            self.bias_data.eq(Cat(held, word)),
        ]
        with m.Switch(section):
            with m.Case(0):
                m.d.comb += [self.row_en.eq(go << lane), step.eq(go & (lane == shape.lanes - 1))]
            with m.Case(1):
                m.d.comb += [self.bias_en.eq(step), step.eq(go & (part == 2))]
            with m.Case(2):
                m.d.comb += [self.table_en.eq(go), step.eq(go)]
        for number, end in enumerate(ends):
            with m.If(section == number):
                m.d.comb += last.eq(place == end - 1)
        with m.If(go):
            m.d.sync += [
                held.eq(Cat(held[16:], word)),
                part.eq(Mux((part == 2) | (section != 1), 0, part + 1)),
            ]
        with m.If(step):
            m.d.sync += place.eq(place + 1)
            with m.If(last):
                m.d.sync += [place.eq(0), section.eq(section + 1)]
        self._next_lane(m, go & (section == 0), step, lane)
        with m.If(self.reload):
            m.d.sync += [x.eq(x.init) for x in (section, place, part, lane, self._before)]
            m.d.sync += self._neuron.eq(0)
        return m

    def _next_lane(self, m, go, step, lane):
        shape = self.shape
        self._before = before = Signal(
            range(max(shape.input_rows, shape.hidden_rows)), init=shape.input_rows - 1
        )
        self._neuron = neuron = Signal(range(shape.neurons + 1))
        with m.If(go):
            m.d.sync += lane.eq(lane + 1)
        with m.If(go & step):
            with m.If(before == 0):
                m.d.sync += neuron.eq(neuron + 1)
                with m.If(neuron >= shape.hidden - 1):
                    m.d.sync += [
                        before.eq(shape.hidden_rows - 1),
                        lane.eq(shape.first_row_lane(shape.hidden)),
                    ]
                with m.Else():
                    m.d.sync += [
                        before.eq(shape.input_rows - 1),
                        lane.eq(shape.first_row_lane(shape.inputs)),
                    ]
            with m.Else():
                m.d.sync += [before.eq(before - 1), lane.eq(0)]
                with m.If(before == 1):
                    m.d.sync += lane.eq(
                        Mux(
                            neuron >= shape.hidden,
                            -shape.hidden % shape.lanes,
                            -shape.inputs % shape.lanes,
                        )
                    )
