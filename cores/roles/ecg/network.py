"""The 11-20-6 network: ten multiply-accumulate lanes, a sigmoid table (step 9)."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from .detect import INDEX_WIDTH

__all__ = ["LANES", "Network", "RecordLayout"]

LANES = 10
ACCUMULATOR = 36
HALVES = model.HIDDEN // LANES
#: Steps of one beat: the parts are two halves of the hidden layer, then the output layer; each ends
#: with a step that clears the sums.
PART = model.FEATURES + 1
HIDDEN_STEPS = HALVES * PART
STEPS = HIDDEN_STEPS + model.HIDDEN + 1

#: A result record as it lies in memory (step 10).
RecordLayout = data.StructLayout(
    {
        "position": unsigned(16),
        "label": unsigned(8),
        "zero": unsigned(8),
        "scores": data.ArrayLayout(unsigned(16), model.OUTPUTS),
    }
)


class Network(wiring.Component):
    """Classifies one beat.

    ===================================  ===  ===================================================
    ``f_valid`` ``f_index`` ``f_value``  In   feature number ``f_index`` is ``f_value`` (signed 16)
    ``go``                               In   stream: the features are complete; payload: beat index
    ``record``                           Out  stream of :data:`RecordLayout`
    ``busy``                             Out  a beat is being classified
    ===================================  ===  ===================================================

    Parameters: ``weights``, a :class:`trebuchet.models.ecg.model.Weights`.

    Cycles: 59 from the transfer on ``go`` to ``record.valid``; ``busy`` all that time. ``go``
    waits while ``busy`` and while a record waits. Features of the next beat may come at any time:
    they go to the other of two banks, which change places at ``go``. Reset: idle.
    """

    def __init__(self, weights):
        self.weights = weights
        super().__init__(
            {
                "f_valid": In(1),
                "f_index": In(4),
                "f_value": In(signed(16)),
                "go": In(stream.Signature(INDEX_WIDTH)),
                "record": Out(stream.Signature(RecordLayout)),
                "busy": Out(1),
            }
        )

    # Step s of STEPS multiplies one input by ten weights. The sums of a layer part leave the lanes
    # when its last step is through and pass one by one through bias, clamp and table, while the
    # next part is already being summed: the first half's outputs are ready just before the output
    # layer needs them.
    def elaborate(self, platform):
        m = Module()
        step, stepping = Signal(range(STEPS)), Signal()
        accept = Signal()
        m.d.comb += [
            self.go.ready.eq(~self.busy & ~self.record.valid),
            accept.eq(self.go.valid & self.go.ready),
        ]
        with m.If(accept):
            m.d.sync += [self.busy.eq(1), stepping.eq(1), step.eq(0)]
            m.d.sync += self.record.payload.position.eq(self.go.payload << 2)
        with m.Elif(stepping):
            m.d.sync += [step.eq(step + 1), stepping.eq(step != STEPS - 1)]
        with m.If(self.record.valid & self.record.ready):
            m.d.sync += self.record.valid.eq(0)

        hidden_write, hidden_value = Signal(), Signal(16)
        operand = self._operand(m, accept, step, hidden_write, hidden_value)
        sums, dumped, part = self._lanes(m, step, stepping, operand)
        self._activate(m, sums, dumped, part, accept, hidden_write, hidden_value)
        return m

    def _operand(self, m, accept, step, hidden_write, hidden_value):
        """The input of each step: a feature, then an output of the hidden layer."""
        m.submodules.features = features = Memory(shape=signed(16), depth=32, init=[])
        m.submodules.hidden = hidden = Memory(shape=unsigned(16), depth=32, init=[])
        bank = Signal()
        f_write, f_read = features.write_port(), features.read_port(domain="comb")
        h_write, h_read = hidden.write_port(), hidden.read_port(domain="comb")
        f_index, h_index = Signal(4), Signal(5)
        operand = Signal(signed(16))
        with m.If(accept):
            m.d.sync += [bank.eq(~bank), f_index.eq(0), h_index.eq(0)]
            m.d.sync += h_write.addr.eq(0)
        with m.Else():
            m.d.sync += f_index.eq(Mux(f_index == PART - 1, 0, f_index + 1))
            m.d.sync += h_index.eq(Mux(step < HIDDEN_STEPS, 0, h_index + 1))
            m.d.sync += h_write.addr.eq(h_write.addr + hidden_write)
        m.d.comb += [
            f_write.en.eq(self.f_valid),
            f_write.addr.eq(Cat(self.f_index, bank)),
            f_write.data.eq(self.f_value),
            f_read.addr.eq(Cat(f_index, ~bank)),
            h_write.en.eq(hidden_write),
            h_write.data.eq(hidden_value >> 1),
            h_read.addr.eq(h_index),
        ]
        m.d.sync += operand.eq(Mux(step < HIDDEN_STEPS, f_read.data, h_read.data))
        return operand

    def _lanes(self, m, step, stepping, operand):
        """Multiply and accumulate; ``dumped`` is 1 in the cycle in which ``sums`` are complete."""
        w = self.weights
        rows = []
        for s in range(STEPS):
            half, i = divmod(s, PART)
            row = 0
            for lane in range(LANES):
                value = 0
                if s < HIDDEN_STEPS and i < model.FEATURES:
                    value = int(w.w1[half * LANES + lane][i])
                elif HIDDEN_STEPS <= s < STEPS - 1 and lane < model.OUTPUTS:
                    value = int(w.w2[lane][s - HIDDEN_STEPS])
                row |= (value & 0xFFFF) << (16 * lane)
            rows.append(row)
        m.submodules.weights = rom = Memory(shape=unsigned(16 * LANES), depth=STEPS, init=rows)
        port = rom.read_port()
        m.d.comb += port.addr.eq(step)

        # The step after a part's last one multiplies by 0; in its place the sums are handed on and
        # cleared.
        part = Signal(range(HALVES + 1))
        flags = [Signal(4, name=f"flags{i}") for i in range(2)]  # valid, clear, part
        ends = [PART * (h + 1) - 1 for h in range(HALVES)] + [STEPS - 1]
        m.d.comb += part.eq(sum((step >= PART * (h + 1)) for h in range(HALVES)))
        m.d.sync += Cat(flags).eq(Cat(stepping, Cat(step == s for s in ends).any(), part, flags))
        sums = []
        for lane in range(LANES):
            product = Signal(signed(32), name=f"product{lane}")
            total = Signal(signed(ACCUMULATOR), name=f"sum{lane}")
            m.d.sync += product.eq(port.data[16 * lane : 16 * (lane + 1)].as_signed() * operand)
            with m.If(flags[1][1]):
                m.d.sync += total.eq(0)
            with m.Elif(flags[1][0]):
                m.d.sync += total.eq(total + product)
            sums.append(total)
        return sums, flags[1][0] & flags[1][1], flags[1][2:]

    def _activate(self, m, sums, dumped, part, accept, hidden_write, hidden_value):
        """Clamp and look up one sum a cycle; keep the greatest output."""
        table = [int(v) for v in self.weights.table]
        m.submodules.table = rom = Memory(shape=unsigned(16), depth=len(table), init=table)
        port = rom.read_port()
        held = [Signal(signed(ACCUMULATOR), name=f"held{i}") for i in range(LANES)]
        left = Signal(range(LANES + 1))
        outputs = Signal()
        at = Signal(range(model.HIDDEN + model.OUTPUTS))  # the neuron whose sum is held[0]
        with m.If(dumped):
            m.d.sync += [h.eq(s) for h, s in zip(held, sums, strict=True)]
            m.d.sync += [left.eq(LANES), outputs.eq(part == HALVES)]
            with m.If(part == HALVES):
                m.d.sync += left.eq(model.OUTPUTS)
        with m.Elif(left != 0):
            m.d.sync += [held[i].eq(held[i + 1]) for i in range(LANES - 1)]
            m.d.sync += [left.eq(left - 1), at.eq(at + 1)]
        with m.If(accept):
            m.d.sync += at.eq(0)
        biases = [int(v) for v in (*self.weights.b1, *self.weights.b2)]
        bias = Signal(signed(ACCUMULATOR))
        biased = Signal(signed(ACCUMULATOR))
        with m.Switch(at):
            for i, value in enumerate(biases):
                with m.Case(i):
                    m.d.comb += bias.eq(value)
        m.d.sync += biased.eq(held[0] + bias)

        scaled = Signal(signed(ACCUMULATOR))
        half = 1 << model.TABLE_LOG2 - 1
        flags = [Signal(3, name=f"a_flags{i}") for i in range(5)]  # valid, output layer, last
        address = Signal(model.TABLE_LOG2)
        m.d.sync += [
            Cat(flags).eq(Cat(left != 0, outputs, outputs & (left == 1), flags)),
            scaled.eq(Mux(flags[0][1], biased >> model.SHIFT2, biased >> model.SHIFT1)),
            address.eq(scaled[: model.TABLE_LOG2] ^ half),
        ]
        with m.If(scaled >= half):
            m.d.sync += address.eq(2 * half - 1)
        with m.Elif(scaled < -half):
            m.d.sync += address.eq(0)
        m.d.comb += port.addr.eq(address)
        value = Signal(16)
        m.d.sync += value.eq(port.data)

        m.d.comb += [
            hidden_write.eq(flags[4][0] & ~flags[4][1]),
            hidden_value.eq(value),
        ]
        scores = self.record.payload.scores
        with m.If(flags[4][0] & flags[4][1]):
            m.d.sync += scores.as_value().eq(Cat(scores.as_value()[16:], value))
            with m.If(flags[4][2]):
                m.d.sync += [self.record.valid.eq(1), self.busy.eq(0)]
        self._classify(m, biased, flags[0][0] & flags[0][1], accept)

    def _classify(self, m, y, valid, accept):
        """Index of the greatest output, the lowest such index."""
        best = Signal(signed(ACCUMULATOR))
        index, any_yet = Signal(range(model.OUTPUTS)), Signal()
        with m.If(accept):
            m.d.sync += [any_yet.eq(0), index.eq(0)]
        with m.Elif(valid):
            m.d.sync += [any_yet.eq(1), index.eq(index + 1)]
            with m.If(~any_yet | (y > best)):
                m.d.sync += [best.eq(y), self.record.payload.label.eq(index)]
