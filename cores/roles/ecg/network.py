"""The two-layer network: a row of multipliers, an adder tree, a sigmoid table (step 9)."""

from amaranth import Array, Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ...buffers import NO_COLLISIONS
from .weights import NetworkShape, WeightLoader

__all__ = ["LANES", "Network", "RecordLayout", "TaggedRecord", "VectorLayout"]

#: With as many lanes as features each hidden neuron takes one cycle.
LANES = 11

#: A result record as it lies in memory (step 10).
RecordLayout = data.StructLayout(
    {
        "position": unsigned(16),
        "label": unsigned(8),
        "zero": unsigned(8),
        "scores": data.ArrayLayout(unsigned(16), model.OUTPUTS),
    }
)


def VectorLayout(tag_width=0):
    """One input of the network: ``value``; with the ``last`` one of a beat come the ``index`` of
    its crossing and a ``tag`` that its record will carry."""
    return data.StructLayout(
        {"value": signed(16), "last": 1, "index": unsigned(14), "tag": unsigned(tag_width)}
    )


def TaggedRecord(tag_width=0):
    """A record and the tag that its inputs had."""
    return data.StructLayout({"record": RecordLayout, "tag": unsigned(tag_width)})


#: What goes with a row through the pipeline: of the output layer; the neuron's first row and its
#: last; a row of the layer's last neuron.
FlagLayout = data.StructLayout({"valid": 1, "output": 1, "first": 1, "end": 1, "final": 1})


class RowBuffer(wiring.Component):
    """Collects values one by one and hands them out in rows.

    ==============  ===  ========================================================================
    ``put``         In   ``value`` comes; ``last``: it is the vector's last
    ``row``         In   row wanted of the oldest vector
    ``data``        Out  that row, in the same cycle; from the second cycle after ``put`` on
    ``release``     In   the oldest vector is not needed any more
    ``write_bank``  Out  where the next value goes
    ``read_bank``   Out  where the oldest vector is
    ==============  ===  ========================================================================

    Parameters: ``lanes``, values of a row; ``size``, of a vector; ``banks``. A last row that is not
    full uses the upper lanes; the lower ones hold anything. A vector of one row lies in the
    register in which it was collected; others in one of ``banks`` parts of a RAM.
    """

    def __init__(self, lanes, size, banks):
        if banks not in (1, 2, 4):
            raise ValueError(f"Banks must be 1, 2 or 4, not {banks!r}")
        self.lanes = lanes
        self.rows = -(-size // lanes)
        self.banks = 1 if self.rows == 1 else banks
        super().__init__(
            {
                "put": In(1),
                "value": In(16),
                "last": In(1),
                "row": In(range(max(self.rows, 2))),
                "data": Out(16 * lanes),
                "release": In(1),
                "write_bank": Out(range(self.banks)),
                "read_bank": Out(range(self.banks)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        chunk = Signal(16 * self.lanes)
        with m.If(self.put):
            m.d.sync += chunk.eq(Cat(chunk[16:], self.value))
        if self.rows == 1:
            m.d.comb += self.data.eq(chunk)
            return m
        row_bits = (self.rows - 1).bit_length()
        m.submodules.ram = ram = Memory(
            shape=unsigned(16 * self.lanes), depth=self.banks << row_bits, init=[]
        )
        write, read = ram.write_port(), ram.read_port(domain="comb")
        lane, row = Signal(range(max(self.lanes, 2))), Signal(row_bits)
        row_end = Signal()
        m.d.comb += [
            row_end.eq(self.put & (self.last | (lane == self.lanes - 1))),
            write.data.eq(chunk),
            read.addr.eq(Cat(self.row[:row_bits], self.read_bank)),
            self.data.eq(read.data),
        ]
        m.d.sync += [write.en.eq(row_end), write.addr.eq(Cat(row, self.write_bank))]
        with m.If(self.put):
            m.d.sync += lane.eq(Mux(row_end, 0, lane + 1))
        with m.If(row_end):
            m.d.sync += row.eq(Mux(self.last, 0, row + 1))
            m.d.sync += self.write_bank.eq(self.write_bank + self.last)
        with m.If(self.release):
            m.d.sync += self.read_bank.eq(self.read_bank + 1)
        return m


class Network(wiring.Component):
    """Classifies one beat after the other.

    ==========  ===  ============================================================================
    ``vector``  In   stream of :func:`VectorLayout`: the inputs of a beat in the order ``order``
    ``record``  Out  stream of :func:`TaggedRecord`, in order
    ``load``    In   stream of 16-bit words, only with ``loadable``: new weights
                     (:mod:`trebuchet.models.ecg.words`); always ready
    ``reload``  In   1 for one cycle, only with ``loadable``: the next word is the first
    ``busy``    Out  a beat whose inputs are complete is not classified yet
    ==========  ===  ============================================================================

    Parameters
    ----------
    weights : trebuchet.models.ecg.model.Weights
        Initial contents; its matrices say how large the network is: any number of inputs and
        hidden neurons, :data:`~trebuchet.models.ecg.model.OUTPUTS` outputs.
    lanes : int
        Multipliers. A neuron takes as many cycles as its inputs divided by ``lanes``, rounded up.
    order : tuple of int or None
        Numbers of the features in the order in which they come; None: 0, 1, 2 …
    shifts : (int, int)
        Scale of the two layers.
    vectors : int
        Beats, 1, 2 or 4, whose inputs are buffered; with one row of inputs it is always 1.
    loadable : bool
        Whether weights can be replaced at run time. While words come, results mean nothing.
    tag_width : int
        Bits of the tag.

    Cycles from the transfer of the last input to ``record.valid``, for F inputs, H hidden neurons,
    L lanes and ``t = log2(L)`` rounded up: ``H ceil(F / L) + 6 ceil(H / L) + 2 t + 20`` at most; 60
    for 11-20-6 and 11 lanes. One row of inputs (F <= L) is buffered singly, ``vector`` waits while
    the hidden layer works. A beat begins when the record before was taken.
    Reset: idle, weights stay as they are.
    """

    def __init__(
        self,
        weights,
        *,
        lanes=LANES,
        order=None,
        shifts=(model.SHIFT1, model.SHIFT2),
        vectors=2,
        loadable=False,
        tag_width=0,
    ):
        self.shape = NetworkShape.of(weights, lanes, order)
        self.weights, self.shifts = weights, shifts
        self.vectors, self.loadable, self.tag_width = vectors, loadable, tag_width
        ports = {
            "vector": In(stream.Signature(VectorLayout(tag_width))),
            "record": Out(stream.Signature(TaggedRecord(tag_width))),
            "busy": Out(1),
        }
        if loadable:
            ports |= {
                "load": In(stream.Signature(unsigned(16), always_ready=True)),
                "reload": In(1),
            }
        super().__init__(ports)

    # One row after the other is multiplied by its weights, lane by lane, and the products are added
    # up by a tree; the sums of a neuron's rows are added to its bias, clamped, looked up, and
    # collected to rows of the next layer's inputs. Weights lie in the order in which they are used.
    def elaborate(self, platform):
        m = Module()
        shape = self.shape
        depth = (shape.lanes - 1).bit_length()
        self._memories(m)
        m.submodules.inputs = inputs = RowBuffer(shape.lanes, shape.inputs, self.vectors)
        m.submodules.hidden = hidden = RowBuffer(shape.lanes, shape.hidden, 1)
        pending = Signal(3)  # beats whose inputs are complete
        begin, release = Signal(), Signal()
        self._working = working = Signal()
        taken, complete = Signal(), Signal()
        m.d.comb += [
            self.vector.ready.eq(pending != inputs.banks),
            taken.eq(self.vector.valid & self.vector.ready),
            complete.eq(taken & self.vector.payload.last),
            inputs.put.eq(taken),
            inputs.value.eq(self.vector.payload.value),
            inputs.last.eq(self.vector.payload.last),
            begin.eq(~working & (pending != 0) & ~self.record.valid),
            self.busy.eq(working | (pending != 0)),
        ]
        # The last row is read a cycle after its step, as late as rows of operands are.
        m.d.sync += [pending.eq(pending + complete - release), inputs.release.eq(release)]
        self._label(m, inputs, complete, begin)
        with m.If(begin):
            m.d.sync += working.eq(1)
        with m.If(self.record.valid & self.record.ready):
            m.d.sync += self.record.valid.eq(0)

        self._hidden_complete = Signal()
        flags, row = self._sequence(m, begin, release)
        # Operands lag the weights by the cycle in which those pass their output register.
        operand = Signal(16 * shape.lanes)
        weights = Signal(16 * shape.lanes)
        late_row, output = Signal.like(row), Signal()
        m.d.sync += [late_row.eq(row), output.eq(flags.output), weights.eq(self._row_port.data)]
        m.d.comb += [inputs.row.eq(late_row), hidden.row.eq(late_row)]
        m.d.sync += operand.eq(Mux(output, hidden.data, inputs.data))
        total = self._tree(m, weights, operand)
        stages = [Signal(FlagLayout, name=f"flags{i}") for i in range(depth + 7)]
        for before, stage in zip([flags, *stages], stages, strict=False):
            m.d.sync += stage.eq(before)
        accumulator = self._accumulate(m, total, stages[depth + 1], stages[depth + 2], begin)
        self._activate(m, accumulator, stages[depth + 3 :], hidden)
        self._classify(m, accumulator, stages[depth + 3], begin)
        if self.loadable:
            self._connect_loader(m)
        return m

    def _memories(self, m):
        weights, table = self.weights, [int(v) for v in self.weights.table]
        biases = [int(v) for v in (*weights.b1, *weights.b2)]
        shapes = {
            "row": (unsigned(16 * self.shape.lanes), self.shape.weight_rows(weights)),
            "bias": (signed(model.BIAS_BITS), biases),
            "table": (unsigned(16), table),
        }
        memories = {}
        for name, (shape, init) in shapes.items():
            memories[name] = Memory(shape=shape, depth=len(init), init=init, attrs=NO_COLLISIONS)
            m.submodules[f"{name}_memory"] = memories[name]
        # By themselves the tools would spend a hundred LUTs on these few words.
        memories["bias"].attrs["ram_style"] = "block"
        self._row_port = memories["row"].read_port()
        self._bias_port = memories["bias"].read_port()
        self._table_port = memories["table"].read_port()
        if self.loadable:
            self._write_ports = {
                "row": memories["row"].write_port(granularity=16),
                "bias": memories["bias"].write_port(),
                "table": memories["table"].write_port(),
            }

    def _connect_loader(self, m):
        m.submodules.loader = loader = WeightLoader(self.shape)
        row, bias, table = (self._write_ports[name] for name in ("row", "bias", "table"))
        wiring.connect(m, wiring.flipped(self.load), loader.load)
        m.d.comb += [
            loader.reload.eq(self.reload),
            row.addr.eq(loader.row),
            row.en.eq(loader.row_en),
            row.data.eq(loader.data.replicate(self.shape.lanes)),
            bias.addr.eq(loader.bias),
            bias.en.eq(loader.bias_en),
            bias.data.eq(loader.bias_data),
            table.addr.eq(loader.table),
            table.en.eq(loader.table_en),
            table.data.eq(loader.data),
        ]

    def _label(self, m, inputs, complete, begin):
        """Position and tag of a beat go with its inputs."""
        names = Cat(self.vector.payload.index, self.vector.payload.tag)
        kept = [Signal(len(names), name=f"kept{i}") for i in range(inputs.banks)]
        for i, signal in enumerate(kept):
            with m.If(complete & (inputs.write_bank == i)):
                m.d.sync += signal.eq(names)
        oldest = Array(kept)[inputs.read_bank]
        position, tag = self.record.payload.record.position, self.record.payload.tag
        with m.If(begin):
            m.d.sync += [position.eq(oldest[:14] << 2), tag.eq(oldest[14:])]

    def _sequence(self, m, begin, release):
        """Step through the rows of all neurons of one layer, then of the other."""
        shape = self.shape
        flags = Signal(FlagLayout)
        running, output = Signal(), Signal()
        row = Signal(range(max(shape.input_rows, shape.hidden_rows)))
        neuron = Signal(range(max(shape.hidden, shape.outputs)))
        at = Signal(range(shape.rows))
        last_row, last_neuron = Signal(), Signal()
        m.d.comb += [
            last_row.eq(row == Mux(output, shape.hidden_rows - 1, shape.input_rows - 1)),
            last_neuron.eq(neuron == Mux(output, shape.outputs - 1, shape.hidden - 1)),
            release.eq(running & ~output & last_row & last_neuron),
            flags.valid.eq(running),
            flags.output.eq(output),
            flags.first.eq(row == 0),
            flags.end.eq(running & last_row),
            flags.final.eq(last_neuron),
            self._row_port.addr.eq(at),
        ]
        with m.If(begin):
            m.d.sync += [running.eq(1), output.eq(0), at.eq(0)]
        with m.Elif(self._hidden_complete):
            m.d.sync += [running.eq(1), output.eq(1)]
        with m.Elif(running):
            m.d.sync += [at.eq(at + 1), row.eq(row + 1)]
            with m.If(last_row):
                m.d.sync += [row.eq(0), neuron.eq(neuron + 1)]
                with m.If(last_neuron):
                    m.d.sync += [neuron.eq(0), running.eq(0)]
        return flags, row

    def _tree(self, m, weights, operand):
        """Products, then sums of two, a register each."""
        terms = []
        for lane in range(self.shape.lanes):
            product = Signal(signed(32), name=f"product{lane}")
            a, b = (x[16 * lane : 16 * lane + 16].as_signed() for x in (weights, operand))
            m.d.sync += product.eq(a * b)
            terms.append(product)
        level = 0
        while len(terms) > 1:
            level += 1
            sums = [
                Signal(signed(32 + level), name=f"sum{level}_{i}")
                for i in range(-(-len(terms) // 2))
            ]
            for i, signal in enumerate(sums):
                m.d.sync += signal.eq(sum(terms[2 * i : 2 * i + 2]))
            terms = sums
        return terms[0]

    def _accumulate(self, m, total, early, flags, begin):
        """Add a neuron's bias and the sums of its rows."""
        neuron = Signal(range(self.shape.neurons))
        accumulator = Signal(signed(self.shape.accumulator))
        m.d.comb += self._bias_port.addr.eq(neuron)
        with m.If(begin):
            m.d.sync += neuron.eq(0)
        with m.Elif(early.end):
            m.d.sync += neuron.eq(neuron + 1)
        with m.If(flags.valid):
            m.d.sync += accumulator.eq(Mux(flags.first, self._bias_port.data, accumulator) + total)
        return accumulator

    def _activate(self, m, accumulator, stages, hidden):
        """Clamp and look up a finished sum; hidden values become inputs, the others scores."""
        bits = model.TABLE_LOG2
        low, over, negative = Signal(bits), Signal(), Signal()
        parts = [(accumulator[s : s + bits], accumulator[s + bits - 1 :]) for s in self.shifts]
        (low1, top1), (low2, top2) = parts
        output = stages[0].output
        m.d.sync += [
            low.eq(Mux(output, low2, low1)),
            over.eq(Mux(output, top2.any() & ~top2.all(), top1.any() & ~top1.all())),
            negative.eq(accumulator[-1]),
        ]
        value = Signal(16)
        m.d.comb += self._table_port.addr.eq(
            Mux(over, (~negative).replicate(bits), low ^ (1 << bits - 1))
        )
        m.d.sync += value.eq(self._table_port.data)

        done = stages[3]
        m.d.comb += [
            hidden.put.eq(done.end & ~done.output),
            hidden.value.eq(value >> 1),
            hidden.last.eq(done.final),
            hidden.release.eq(done.end & done.output & done.final),
            self._hidden_complete.eq(hidden.put & hidden.last),
        ]
        scores = self.record.payload.record.scores.as_value()
        with m.If(done.end & done.output):
            m.d.sync += scores.eq(Cat(scores[16:], value))
            with m.If(done.final):
                m.d.sync += [self.record.valid.eq(1), self._working.eq(0)]

    def _classify(self, m, y, flags, begin):
        """Index of the greatest output, the lowest such index."""
        best = Signal.like(y)
        index, any_yet = Signal(range(model.OUTPUTS)), Signal()
        with m.If(begin):
            m.d.sync += [any_yet.eq(0), index.eq(0)]
        with m.Elif(flags.end & flags.output):
            m.d.sync += [any_yet.eq(1), index.eq(index + 1)]
            with m.If(~any_yet | (y > best)):
                m.d.sync += [best.eq(y), self.record.payload.record.label.eq(index)]
