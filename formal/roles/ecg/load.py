"""Proofs of how data and weights reach the ECG role: ``cores/roles/ecg/weights.py``,
``configure.py``, and of ``VectorStore`` in ``bank.py`` and ``PairPacker`` in ``load.py``.

Weights: word number k since the last reload goes to the row and lane, bias or entry of the table
that a list made from the layout's description names, and to no other; what comes after the last is
dropped.

Configuration: a job waits until the role is idle, is answered once, ``BAD_LENGTH`` with nothing
read if its length is not exactly that of all words; otherwise the packet's words but the first
four go to the network in order, then it is answered; registers write words only while no job is
there; the counters are those of the data sheet.

Vectors: a queue of values in which a vector is offered only when all of it is inside. Pairs: each
beat has the next pairs in order, the last one as many as there are.

Not proved: other shapes; the reader (``role_operand_reader``); a reset while running.
"""

from amaranth.hdl import Array, Assert, Assume, Cat, Const, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import data

from ....cores.roles.ecg.weights import NetworkShape
from ....models.status import Status
from ...kit.inside import Inside, RegisterStreamFifo, patched
from ...kit.proof import Mutant, Proof
from ...stream import Queue, free, new_harness, stream_rules
from ..packet_role import AnyReader

__all__ = ["PROOFS"]

INPUTS, HIDDEN, OUTPUTS, LANES, TABLE = 5, 3, 2, 2, 1024


def _moves(port):
    return port.valid & port.ready


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


WORDS = 3
CONFIGURE = 2  # a job's kind


class WeightPortProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        dut = self.cores.WeightPort(WORDS, 32, 1)
        with patched(self.cores, OperandReader=AnyReader):
            self.i = i = Inside(m, dut)
        self.reader = reader = i.parts["reader"]
        csr, job, answer = dut.csr, dut.job, dut.answer
        free(m, job.valid, job.payload, answer.ready, dut.idle)
        free(m, csr.weights_restart, csr.weights_data)
        free(m, dut.mem.cmd.ready, dut.mem.rdata.valid)
        stream_rules(m, job, Assume, "job")
        stream_rules(m, answer, Assert, "answer")
        waits, reads, answers = Signal(), Signal(), Signal()
        ours = Value.cast(job.payload.kind) == CONFIGURE
        fits = ours & (job.payload.length == 8 + 2 * WORDS)
        who, good, asked = Signal(53), Signal(), Signal()
        identity = Cat(job.payload.source, job.payload.session, job.payload.id)
        idle = ~(waits | reads | answers)
        m.d.comb += [
            Assert(job.ready == (waits & dut.idle)),
            Assert(dut.busy == (~idle | job.valid)),
            Assert(answer.valid == answers),
            Assert(reader.request.valid == (_moves(job) & fits)),
            Assume(~reader.request.valid | reader.request.ready),
        ]
        with m.If(idle & job.valid):
            m.d.sync += waits.eq(1)
        with m.If(_moves(job)):
            m.d.sync += [waits.eq(0), reads.eq(fits), answers.eq(~fits)]
            m.d.sync += [who.eq(identity), good.eq(fits), asked.eq(ours)]
        with m.If(reads & reader.done):
            m.d.sync += [reads.eq(0), answers.eq(1)]
        with m.If(_moves(answer)):
            m.d.sync += answers.eq(0)
        with m.If(reader.request.valid):
            for name in reader.request.payload.shape().members:
                m.d.comb += Assert(reader.request.payload[name] == job.payload[name])
        with m.If(answer.valid):
            theirs = answer.payload
            m.d.comb += [
                Assert(Cat(theirs.source, theirs.session, theirs.id) == who),
                Assert(
                    theirs.status
                    == Mux(good, Status.OK, Mux(asked, Status.BAD_LENGTH, Status.STOPPED))
                ),
                Assert(theirs.length == 0),
            ]
        words = self._words(m, dut, idle & ~job.valid, reads, _moves(job) & fits)
        self._count(m, dut, *words)
        states = (("IDLE", idle), ("DRAIN", waits), ("WORDS", reads), ("ANSWER", answers))
        for name, flag in states:
            m.d.comb += Assert(i.state(name, "configure") == flag)
        m.d.comb += Assert(waits + reads + answers <= 1)
        ticket = i.ticket
        m.d.comb += Assert(~waits | (ticket == identity))
        m.d.comb += Assert(~(reads | answers) | (ticket == who))
        m.d.comb += Assert(~waits | job.valid)
        m.d.comb += Assert(~reads | (good & (answer.payload.status == Status.OK)))
        m.d.comb += Assert(answer.payload.length == 0)
        return m

    def _words(self, m, dut, free_, reads, begins):
        """Words of the packet in order, two a beat; then (valid, word, restart)."""
        packet, csr = self.reader.packet, dut.csr
        index = Signal(range(WORDS + 5))
        beat = packet.payload
        last = Mux(beat.last, index == WORDS + 3, index[0])
        m.d.comb += [
            # The reader gives the operand: seven words, the last in half a beat, and is done.
            Assume(~packet.valid | reads),
            Assume(~packet.valid | (beat.last == (index >= WORDS + 3 - (WORDS + 3) % 2))),
            Assume(~packet.valid | (beat.empty == Mux(beat.last, 2, 0))),
            Assume(self.reader.done == (_moves(packet) & beat.last)),
        ]
        with m.If(begins):
            m.d.sync += index.eq(0)
        with m.Elif(packet.valid):
            m.d.comb += Assert(packet.ready == last)
            m.d.sync += index.eq(index + 1)
        valid = Mux(reads, packet.valid & (index >= 4), free_ & csr.weights_data[16])
        word = Mux(reads, beat.data.word_select(index[0], 16), csr.weights_data[:16])
        restart = (free_ & csr.weights_restart) | begins
        m.d.comb += [
            Assert(dut.load.valid == valid),
            Assert(~valid | (dut.load.payload == word)),
            Assert(dut.reload == restart),
            Assert(~reads | (index <= WORDS + 3)),
            Cover(_moves(dut.answer) & (index == WORDS + 4)),
        ]
        with m.If(reads):
            m.d.comb += Assert(self.i.at == index[0])
            m.d.comb += Assert(self.i.skip == Mux(index < 4, 4 - index, 0))
        return valid, word, restart

    def _count(self, m, dut, valid, word, restart):
        csr = dut.csr
        words, total, dropped = Signal(16), Signal(32), Signal(16)
        with m.If(restart):
            m.d.sync += [words.eq(0), total.eq(0)]
        with m.Elif(valid):
            m.d.sync += words.eq(words + 1)
            m.d.sync += total.eq(Cat(total[31], total[:31]) + word)
            m.d.sync += dropped.eq(dropped + (words >= WORDS))
        m.d.comb += [
            Assert(csr.weights_words == words),
            Assert(csr.weights_sum == total),
            Assert(csr.weights_dropped == dropped),
        ]
        partial = Signal()  # the last word was a job's, and not the last one
        with m.If(valid):
            m.d.sync += partial.eq((dut.busy | partial) & (words + 1 < WORDS))
        m.d.comb += [Assert(dut.partial == partial), Cover(partial)]


class VectorStoreProof(Elaboratable):
    """With a FIFO of registers, whose cells tell how many vectors are inside."""

    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        dut = self.cores.VectorStore(3)
        with patched(self.cores, StreamFifo=RegisterStreamFifo):
            i = Inside(m, dut)
        fifo = i.parts["fifo"].fifo
        m.d.comb += fifo.shows.eq(1)
        free(m, dut.i.valid, dut.i.payload, dut.o.ready)
        stream_rules(m, dut.i, Assume, "i")
        stream_rules(m, dut.o, Assert, "o")
        depth = 2 * dut.inputs
        puts, gets = _moves(dut.i), _moves(dut.o)
        queue = Queue(
            m,
            puts=puts,
            put_word=dut.i.payload,
            gets=gets,
            get_valid=dut.o.valid,
            get_word=dut.o.payload,
            capacity=depth,
        )
        ends = Signal(range(depth + 1))  # last values inside
        m.d.sync += ends.eq(ends + (puts & dut.i.payload.last) - (gets & dut.o.payload.last))
        m.d.comb += [
            Assert(dut.o.valid == (ends != 0)),
            Assert(dut.i.ready == (queue.level != depth)),
            Assert(i.complete == ends),
            Assert(fifo.level == queue.level),
            Cover(gets & dut.o.payload.last & (queue.level == 4)),
        ]
        lasts = [data.View(dut.i.payload.shape(), cell).last for cell in fifo.cells]
        m.d.comb += Assert(ends == sum((fifo.level > k) & last for k, last in enumerate(lasts)))
        for k, cell in enumerate(fifo.cells):
            with m.If(queue.inside & (queue.place == k)):
                m.d.comb += Assert(cell == queue.word)
        return m


class PairPackerProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        i = Inside(m, dut)
        free(m, dut.i.valid, dut.i.payload, dut.o.ready)
        stream_rules(m, dut.i, Assume, "i")
        begins = stream_rules(m, dut.o, Assert, "o")
        have, held, begun = Signal(), Signal(32), Signal()
        pair = Cat(dut.i.payload.even, dut.i.payload.odd)
        last, beat = dut.i.payload.last, dut.o.payload
        ends = have | last
        m.d.comb += [
            Assert(dut.o.valid == (dut.i.valid & ends)),
            Assert(dut.i.ready == (dut.o.ready | ~ends)),
        ]
        with m.If(dut.o.valid):
            m.d.comb += [
                Assert(beat.data[:32] == Mux(have, held, pair)),
                Assert(~have | (beat.data[32:] == pair)),
                Assert(beat.empty == Mux(have, 0, 4)),
                Assert(beat.first == ~begun),
                Assert(beat.last == last),
                Assert(~beat.error),
            ]
        with m.If(_moves(dut.i)):
            m.d.sync += [have.eq(~ends), held.eq(pair)]
            with m.If(ends):
                m.d.sync += begun.eq(~last)
        m.d.comb += [
            Assert(i.at == have),
            Assert(~have | (Value.cast(i.held)[:32] == held)),
            Assert(i.begun == begun),
            Assert(begins == ~begun),
            Cover(dut.o.valid & begun & ~have),
        ]
        return m


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
    Proof(
        name="ecg_configure",
        core="cores.roles.ecg.configure.WeightPort(3)",
        says="a job's words reach the network in order, once all others are done; sums are right",
        module="trebuchet.cores.roles.ecg.configure",
        build=WeightPortProof,
        depth=1,
        cover_depth=16,
        mutants=(
            Mutant("does_not_wait", "with m.If(self.idle):", "with m.If(1):"),
            Mutant(
                "any_length",
                "job.length == PREFIX + 2 * self.words",
                "job.length >= PREFIX",
            ),
            Mutant("half_is_enough", "(partial | self.busy) & left", "0"),
            Mutant("skips_less", "skip.eq(PREFIX // 2)", "skip.eq(PREFIX // 2 - 1)"),
            Mutant(
                "wrong_sum", "Cat(csr.weights_sum[-1], csr.weights_sum[:-1])", "csr.weights_sum"
            ),
            Mutant(
                "drops_one_late",
                "csr.weights_words >= self.words",
                "csr.weights_words > self.words",
            ),
        ),
        assumes="a reader that gives the operand as one packet; the stream rules",
        not_proved="other numbers of words; a reset while running",
    ),
    Proof(
        name="ecg_vector_store",
        core="cores.roles.ecg.bank.VectorStore(3)",
        says="a queue of values that offers a vector only when all of it is there",
        module="trebuchet.cores.roles.ecg.bank",
        build=VectorStoreProof,
        depth=1,
        cover_depth=14,
        mutants=(
            Mutant("offers_parts", "offered.eq(complete != 0)", "offered.eq(1)"),
            Mutant("counts_values", "self.o.ready & self.o.payload.last", "self.o.ready"),
        ),
    ),
    Proof(
        name="ecg_pair_packer",
        core="cores.roles.ecg.load.PairPacker(64)",
        says="two pairs a beat in order, the last beat as many as there are",
        module="trebuchet.cores.roles.ecg.load",
        build=lambda cores: PairPackerProof(cores.PairPacker(64)),
        depth=2,
        cover_depth=8,
        mutants=(
            Mutant(
                "wrong_empty",
                "self.o.payload.empty.eq((count - 1 - at) << 2)",
                "self.o.payload.empty.eq((count - at) << 2)",
            ),
            Mutant("takes_always", "self.i.ready.eq(self.o.ready | ~end)", "self.i.ready.eq(1)"),
            Mutant("never_first", "begun.eq(~self.i.payload.last)", "begun.eq(1)"),
        ),
    ),
)
