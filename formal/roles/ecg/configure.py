"""Proof of ``WeightPort`` in ``cores/roles/ecg/configure.py``.

A job waits until the role is idle, is answered once, ``BAD_LENGTH`` with nothing read if its length
is not exactly that of all words; otherwise the packet's words but the first four go to the network
in order, then it is answered; registers write words only while no job is there; the counters are
those of the data sheet.

Not proved: the reader (``role_operand_reader``); a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ....models.status import Status
from ...kit.inside import Inside, patched
from ...kit.parts import moves
from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness, stream_rules
from ..packet_role import AnyReader

__all__ = ["PROOFS"]

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
            Assert(reader.request.valid == (moves(job) & fits)),
            Assume(~reader.request.valid | reader.request.ready),
        ]
        with m.If(idle & job.valid):
            m.d.sync += waits.eq(1)
        with m.If(moves(job)):
            m.d.sync += [waits.eq(0), reads.eq(fits), answers.eq(~fits)]
            m.d.sync += [who.eq(identity), good.eq(fits), asked.eq(ours)]
        with m.If(reads & reader.done):
            m.d.sync += [reads.eq(0), answers.eq(1)]
        with m.If(moves(answer)):
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
        words = self._words(m, dut, idle & ~job.valid, reads, moves(job) & fits)
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
            Assume(self.reader.done == (moves(packet) & beat.last)),
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
            Cover(moves(dut.answer) & (index == WORDS + 4)),
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


PROOFS = (
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
)
