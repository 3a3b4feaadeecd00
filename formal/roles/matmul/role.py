"""Proof of ``MatmulRole`` in ``cores/roles/matmul/role.py``: order 4, beats of 32 bits.

Reader, writer and multiplier, which have proofs of their own, do what they like as far as their
data sheets allow. Contract, over public ports: jobs are answered in order, each once, with who
asked (an arbitrary one); the status is that of its kind, its length or its room, in this order, and
the length of the result half of the operand's; exactly the operands of good jobs are read, in
order, and go beat by beat to the multiplier; exactly the result's beats of each are taken from it
and written where the job said, marked as a packet; the answer comes when they are in memory.
Products are counted with their last beats.

Not proved: that memory and multiplier come to an end; other orders; a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ....models.status import Status
from ...kit.inside import Inside, RegisterFifo, patched
from ...kit.proof import Mutant, Proof
from ...stream import Queue, free, new_harness, stream_rules
from ..packet_role import AnyReader, AnyWriter, _Any

__all__ = ["PROOFS"]

PAIR, RESULT, BEATS = 128, 64, 16
JOBS = 4


def _moves(port):
    return port.valid & port.ready


class AnyMultiplier(_Any):
    def __init__(self, shape):
        super().__init__(
            {
                "i": In(stream.Signature(shape.width)),
                "o": Out(stream.Signature(shape.width)),
                "working": Out(1),
            }
        )


class MatmulRoleProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        self.dut = dut = self.cores.MatmulRole(32, 1, macs=4, n=4)
        parts = {"OperandReader": AnyReader, "ResultWriter": AnyWriter}
        fakes = {"Multiplier": AnyMultiplier, "SyncFIFO": RegisterFifo}
        with patched(self.cores, **parts, **fakes):
            self.i = Inside(m, dut)
        self.multiplier, self.pending = self.i.parts["multiplier"], self.i.parts["pending"]
        m.d.comb += self.pending.shows.eq(1)
        free(m, dut.job.valid, dut.job.payload, dut.answer.ready)
        free(m, dut.mem.cmd.ready, dut.mem.wdata.ready, dut.mem.rdata.valid, dut.mem.wdone.valid)
        stream_rules(m, dut.job, Assume, "job")
        stream_rules(m, dut.answer, Assert, "answer")
        stream_rules(m, dut.reader.request, Assert, "read")
        stream_rules(m, dut.writer.request, Assert, "write")
        stream_rules(m, self.multiplier.o, Assume, "product")
        self._jobs(m)
        self._operands(m)
        self._results(m)
        return m

    @staticmethod
    def _entry(job):
        """What becomes of a job: answer and place of the result."""
        odd = (job.length % PAIR != 0) | (job.length == 0)
        half = job.length >> 1
        room = Mux(job.room < half, Status.NO_ROOM, Status.OK)
        kind = Value.cast(job.kind)
        status = Mux(kind != 0, Status.BAD_TYPE, Mux(odd, Status.BAD_LENGTH, room))
        length = Mux(status == Status.OK, half, 0)[:20]
        identity = Cat(job.source, job.session, job.id)
        return Cat(identity, status, Const(0, 8 - len(status)), length, job.result)

    def _jobs(self, m):
        dut, i, pending = self.dut, self.i, self.pending
        answer = dut.answer.payload
        given = Signal(113)
        taken = Signal(dut.job.payload.shape())  # the last job
        m.d.comb += given.eq(self._entry(dut.job.payload))
        with m.If(_moves(dut.job)):
            m.d.sync += taken.eq(dut.job.payload)
        self.taken = taken
        state = i.state
        second = i.signal("entry", 1)
        own = Cat(answer.source, answer.session, answer.id, answer.status, answer.length)
        queue = Queue(
            m,
            puts=_moves(dut.job),
            put_word=given,
            gets=_moves(dut.answer),
            get_valid=dut.answer.valid,
            get_word=Cat(own, second[-32:]),
            capacity=JOBS + 2,
        )
        # Invariants: where each job is.
        checking = state("CHECK", "take") | state("QUEUE", "take")
        answering = ~state("IDLE", "answer")
        entry = i.signal("entry", 0)
        where = queue.place - answering
        m.d.comb += [
            Assert(i.fsm_bounded("take") & i.fsm_bounded("answer")),
            Assert(queue.level == checking + pending.level + answering),
            Assert(pending.level <= JOBS),
            Assert(dut.job.ready == state("IDLE", "take")),
            Assert(dut.answer.valid == state("ANSWER", "answer")),
            Assert(state("IDLE", "take") | (i.job == Value.cast(taken))),
        ]
        with m.If(queue.inside):
            for k in range(JOBS):
                with m.If((where == k) & (pending.level > k) & (queue.place >= answering)):
                    m.d.comb += Assert(pending.cells[k] == queue.word)
            with m.If(answering & (queue.place == 0)):
                m.d.comb += Assert(second == queue.word)
            with m.If(checking & (queue.place == queue.level - 1)):
                m.d.comb += Assert(queue.word == self._entry(taken))
                m.d.comb += Assert(~state("QUEUE", "take") | (entry == queue.word))
        m.d.comb += Assert(~state("QUEUE", "take") | (entry == self._entry(taken)))
        m.d.comb += Cover((queue.level == JOBS + 2) & dut.answer.valid)

    def _operands(self, m):
        """The reader is asked once for each good job, before the next one is taken."""
        dut, i, reader = self.dut, self.i, self.dut.reader
        owed = Signal()
        good = self._entry(dut.job.payload)[53:61] == Status.OK
        with m.If(_moves(dut.job)):
            m.d.sync += owed.eq(good)
            m.d.comb += Assert(~owed)
        with m.Elif(_moves(reader.request)):
            m.d.sync += owed.eq(0)
        with m.If(reader.request.valid):
            m.d.comb += Assert(owed)
            for name in reader.request.payload.shape().members:
                m.d.comb += Assert(reader.request.payload[name] == self.taken[name])
        now_good = self._entry(self.taken)[53:61] == Status.OK
        m.d.comb += [
            Assert(reader.request.valid == i.state("READ", "take")),
            Assert(~i.state("READ", "take") | owed),
            Assert(~i.state("IDLE", "take") | ~owed),
            Assert(~owed | now_good),
            Assert((i.state("IDLE", "take") | i.state("READ", "take")) | (owed == now_good)),
            Assert(self.multiplier.i.valid == reader.packet.valid),
            Assert(self.multiplier.i.payload == reader.packet.payload.data),
            Assert(reader.packet.ready == self.multiplier.i.ready),
        ]

    def _results(self, m):
        dut, i, writer = self.dut, self.i, self.dut.writer
        product, packet = self.multiplier.o, writer.packet
        answer = dut.answer.payload
        second = i.signal("entry", 1)
        status, length, place = second[53:61], second[61:81], second[81:113]
        sent, writing = Signal(19), Signal()
        beats = length >> 2
        products, cycles = Signal(32), Signal(32)
        m.d.comb += [
            # The writer is done when it has taken the last beat, not before.
            Assume(~writer.done | (writing & (sent == beats))),
            Assert(_moves(product) == _moves(packet)),
            Assert(~packet.valid | (writing & (sent < beats) & product.valid)),
            Assert(packet.valid | ~(writing & (sent < beats) & product.valid)),
            Assert(~packet.valid | (packet.payload.data == product.payload)),
            Assert(~packet.valid | (packet.payload.first == (sent == 0))),
            Assert(~packet.valid | (packet.payload.last == (sent == beats - 1))),
            Assert((packet.payload.empty == 0) & ~packet.payload.error & ~writer.finish),
        ]
        with m.If(writer.request.valid):
            m.d.comb += [
                Assert(~writing & (status == Status.OK)),
                Assert(writer.request.payload.addr == place),
                Assert(writer.request.payload.room == length),
            ]
        with m.If(_moves(writer.request)):
            m.d.sync += [writing.eq(1), sent.eq(0)]
        with m.If(_moves(packet)):
            m.d.sync += sent.eq(sent + 1)
            m.d.sync += products.eq(products + ((sent % BEATS) == BEATS - 1))
        with m.If(writer.done):
            m.d.sync += writing.eq(0)
        written = Signal()
        with m.If(i.state("CHOOSE", "answer")):
            m.d.sync += written.eq(0)
        with m.If(writer.done):
            m.d.sync += written.eq(1)
        with m.If(dut.answer.valid):
            m.d.comb += Assert((answer.status != Status.OK) | written)
        m.d.sync += cycles.eq(cycles + self.multiplier.working)
        m.d.comb += [
            Assert(dut.csr.products == products),
            Assert(dut.csr.mac_cycles == cycles),
            Assert(writing == i.state("WRITE", "answer")),
            Assert(~writing | (status == Status.OK)),
            Assert(~i.state("ANSWER", "answer") | written | (status != Status.OK)),
            Assert(~writing | ((sent <= beats) & (i.left == (beats - sent)[:18]))),
            Assert(~writing | (i.first == (sent == 0))),
            Assert(~i.state("CHOOSE", "answer") | i.first),
            # What is answered OK is whole products.
            Assert(i.state("IDLE", "answer") | self._whole(status, length)),
        ]
        for k in range(JOBS):
            cell = self.pending.cells[k]
            with m.If(self.pending.level > k):
                m.d.comb += Assert(self._whole(cell[53:61], cell[61:81]))
        m.d.comb += Cover(dut.answer.valid & (answer.length == RESULT))

    @staticmethod
    def _whole(status, length):
        return (status != Status.OK) | ((length % RESULT == 0) & (length != 0))


PROOFS = (
    Proof(
        name="matmul_role",
        core="cores.roles.matmul.role.MatmulRole(32, 1, macs=4, n=4)",
        says="jobs are answered in order, once, by kind, length, room; good ones read and written",
        module="trebuchet.cores.roles.matmul.role",
        build=MatmulRoleProof,
        depth=1,
        cover_depth=30,
        mutants=(
            Mutant("room_of_the_operand", "job.room < job.length[1:]", "job.room < job.length[2:]"),
            Mutant(
                "half_pairs", "job.length[:pair_bits].any()", "job.length[: pair_bits - 1].any()"
            ),
            Mutant(
                "one_beat_less",
                "left.eq(entry.answer.length[beat_bits:])",
                "left.eq(entry.answer.length[beat_bits + 1 :])",
            ),
            Mutant(
                "reads_bad_ones", "with m.If(entry.answer.status == Status.OK):", "with m.If(1):"
            ),
        ),
        assumes="the streams' rules; the writer is done when it has its packet",
        not_proved="that memory and multiplier come to an end; other orders; a reset",
    ),
)
