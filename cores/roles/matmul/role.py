"""The matrix-multiply role: products of pairs of matrices behind the role contract."""

from dataclasses import dataclass

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from ....models.status import Status
from ...buffers import BlockFifo
from ...csr import RegisterBlock, counter
from ...memory import ADDR_WIDTH
from ...tcp.service import LENGTH_WIDTH
from ..contract import AnswerLayout, JobKind, JobLayout, RoleSignature
from ..fetch import MemoryJoin, OperandReader, ResultWriter
from ..needs import RoleNeeds
from .array import MacArray, Shape
from .sequencer import Sequencer

__all__ = ["MATMUL_BLOCK", "MatmulConfig", "MatmulRole", "Multiplier"]

MATMUL_BLOCK = RegisterBlock(
    "matmul_array",
    (
        counter("products", "matrices multiplied"),
        counter("mac_cycles", "clock cycles in which the MACs did a step"),
    ),
    "the matrix multiplier's own counters",
)

#: Pairs in a message, for which a simulated board has segments.
PAIRS = 3
#: Jobs that may wait between their check and the writing of their results.
JOBS = 4


class Multiplier(wiring.Component):
    """Pairs of matrices in, their products out.

    Parameters
    ----------
    shape : Shape
        Sizes.
    depth : int
        Beats of result that are stored when nobody takes them.

    ===========  ====  ==========================================================================
    member       dir   meaning
    ===========  ====  ==========================================================================
    ``i``        In    stream of beats: A, then B, row by row, of one multiplication after another
    ``o``        Out   stream of beats: C = A * B modulo 2**32, row by row
    ``working``  Out   the MACs do a step in this cycle
    ===========  ====  ==========================================================================

    Cycles of a product: ``n * n / macs`` sweeps of ``shape.sweep`` cycles, while the next pair is
    taken and the last product given out. Latency from the last beat of a pair to the first of
    its product: n + 12 cycles. Back-pressure: on ``o`` stops the sweeps in the end, and so ``i``.
    Reset: forgets everything. Bad input: none; words are signed or unsigned alike.
    """

    def __init__(self, shape, depth=512):
        self.shape, self.depth = shape, depth
        super().__init__(
            {
                "i": In(stream.Signature(shape.width)),
                "o": Out(stream.Signature(shape.width)),
                "working": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.sequencer = sequencer = Sequencer(self.shape, self.depth)
        m.submodules.array = array = MacArray(self.shape)
        m.submodules.fifo = fifo = BlockFifo(width=self.shape.width, depth=self.depth)
        wiring.connect(m, wiring.flipped(self.i), sequencer.i)
        m.d.comb += [
            array.store.eq(sequencer.store),
            array.store_en.eq(sequencer.store_en),
            array.step.eq(sequencer.step),
            array.step_en.eq(sequencer.step_en),
            fifo.w_data.eq(array.o),
            fifo.w_en.eq(array.o_en),
            self.o.payload.eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
            sequencer.taken.eq(fifo.r_rdy & fifo.r_en),
            self.working.eq(sequencer.step_en),
        ]
        return m


EntryLayout = data.StructLayout(
    {"answer": AnswerLayout, "result": unsigned(ADDR_WIDTH)},
)


@dataclass(frozen=True)
class MatmulConfig:
    """Options of the role in a shell's plan.

    Attributes
    ----------
    macs : int
        Multiply-accumulate units, a power of two from 4 to ``n``.
    n : int
        Order of the matrices: 4, 8, 16, 32 or 64.
    """

    macs: int = 32
    n: int = 64

    def __post_init__(self):
        Shape(self.n, self.macs, 32)


class MatmulRole(wiring.Component):
    """Multiplies matrices of 32-bit integers (role contract: ``cores/roles/contract.py``).

    The operand is one or more pairs of n by n matrices, A before B, each row by row in 32-bit
    little-endian words: ``8 * n * n`` bytes a pair. The result is the products in the same order
    and form, half as long, as C computes them: the low 32 bits, whatever the signs. A length that
    is 0 or no multiple of a pair is answered ``BAD_LENGTH``, a result longer than ``room``
    ``NO_ROOM``, another kind of job than ``DATA`` ``BAD_TYPE``, each without reading the operand.
    Source: distributed-fpga-framework, 4.3.

    Parameters
    ----------
    width, tag_width : int
        Data path and tag bits of the memory port.
    macs : int
        Multiply-accumulate units, a power of two from 4 to ``n``; three 18x18 multipliers each.
    n : int
        Order of the matrices: 64, or for tests 4, 8, 16 or 32.

    Cycles: a product takes ``n**3 / macs``, sustained over the inputs of a job and over jobs, as
    long as the memory moves the ``3 * n * n`` words of a product in that time. A job alone takes in
    addition the reading of its first pair and the latency of the memory. Jobs are taken while
    others are in work, up to 6, and answered in order, at the latest when all jobs before have been
    computed. Back-pressure on ``answer`` stops everything in the end. Reset: abandons all jobs;
    bursts under way must be drained outside.
    """

    #: Jobs that the role holds, at most: one is being checked, one answered.
    outstanding = JOBS + 2
    prompt_writes = True

    Config = MatmulConfig

    @classmethod
    def needs(cls, config):
        """What it needs of a shell: segments for three pairs in a message."""
        return RoleNeeds(
            operand=PAIRS * 8 * config.n**2,
            largest_result=lambda operand: cls.largest_result(operand, config.n),
        )

    @staticmethod
    def largest_result(operand, n=64):
        """Bytes of the longest result for operands of at most ``operand`` bytes."""
        return operand // (8 * n * n) * (4 * n * n)

    def __init__(self, width=32, tag_width=2, *, macs=32, n=64):
        self.shape = Shape(n, macs, width)
        self.width, self.tag_width = width, tag_width
        super().__init__(RoleSignature(MATMUL_BLOCK, width, tag_width))

    # Three stages, each on another job if need be: jobs are checked and their operands read; the
    # multiplier knows no jobs; products are written and the jobs answered.
    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = self.reader = OperandReader(self.width, self.tag_width)
        m.submodules.multiplier = multiplier = Multiplier(self.shape)
        m.submodules.writer = self.writer = ResultWriter(self.width, self.tag_width)
        m.submodules.join = join = MemoryJoin(self.width, self.tag_width)
        m.submodules.pending = pending = SyncFIFO(width=EntryLayout.size, depth=JOBS)
        wiring.connect(m, self.reader.mem, join.reader)
        wiring.connect(m, self.writer.mem, join.writer)
        wiring.connect(m, wiring.flipped(self.mem), join.mem)
        m.d.comb += [
            multiplier.i.payload.eq(self.reader.packet.payload.data),
            multiplier.i.valid.eq(self.reader.packet.valid),
            self.reader.packet.ready.eq(multiplier.i.ready),
        ]
        self._take_jobs(m, pending)
        self._answer_jobs(m, pending, multiplier)
        csr = self.csr
        m.d.sync += csr.mac_cycles.eq(csr.mac_cycles + multiplier.working)
        return m

    def _take_jobs(self, m, pending):
        job = Signal(JobLayout)
        entry = Signal(EntryLayout)
        odd = Signal()
        pair_bits = self.shape.pair_bytes.bit_length() - 1
        request = self.reader.request
        m.d.comb += [odd.eq(job.length[:pair_bits].any() | ~job.length[pair_bits:].any())]
        m.d.comb += [request.payload[name].eq(job[name]) for name, _ in request.payload.shape()]
        m.d.comb += pending.w_data.eq(entry)
        with m.FSM(name="take"):
            with m.State("IDLE"):
                m.d.comb += self.job.ready.eq(1)
                m.d.sync += job.eq(self.job.payload)
                with m.If(self.job.valid):
                    m.next = "CHECK"
            with m.State("CHECK"):
                answer = entry.answer
                m.d.sync += [answer[name].eq(job[name]) for name in ("source", "session", "id")]
                m.d.sync += [entry.result.eq(job.result), answer.length.eq(0)]
                with m.If(job.kind != JobKind.DATA):
                    m.d.sync += answer.status.eq(Status.BAD_TYPE)
                with m.Elif(odd):
                    m.d.sync += answer.status.eq(Status.BAD_LENGTH)
                with m.Elif(job.room < job.length[1:]):
                    m.d.sync += answer.status.eq(Status.NO_ROOM)
                with m.Else():
                    m.d.sync += [answer.status.eq(Status.OK), answer.length.eq(job.length[1:])]
                m.next = "QUEUE"
            with m.State("QUEUE"):
                m.d.comb += pending.w_en.eq(1)
                with m.If(pending.w_rdy):
                    m.next = "IDLE"
                    with m.If(entry.answer.status == Status.OK):
                        m.next = "READ"
            with m.State("READ"):
                m.d.comb += request.valid.eq(1)
                with m.If(request.ready):
                    m.next = "IDLE"

    def _answer_jobs(self, m, pending, multiplier):
        entry = Signal(EntryLayout)
        beat_bits = (self.width // 8).bit_length() - 1
        left = Signal(LENGTH_WIDTH - beat_bits)  # beats of result still to come
        first = Signal()
        writing = Signal()
        writer, packet, csr = self.writer, self.writer.packet, self.csr
        m.d.comb += [
            writer.request.payload.addr.eq(entry.result),
            writer.request.payload.room.eq(entry.answer.length),
            packet.valid.eq(multiplier.o.valid & writing & (left != 0)),
            packet.payload.data.eq(multiplier.o.payload),
            packet.payload.first.eq(first),
            packet.payload.last.eq(left == 1),
            multiplier.o.ready.eq(packet.ready & writing & (left != 0)),
            self.answer.payload.eq(entry.answer),
        ]
        with m.If(packet.valid & packet.ready):
            m.d.sync += [left.eq(left - 1), first.eq(0)]
        with m.FSM(name="answer"):
            with m.State("IDLE"):
                m.d.comb += pending.r_en.eq(1)
                m.d.sync += [entry.eq(pending.r_data), first.eq(1)]
                with m.If(pending.r_rdy):
                    m.next = "CHOOSE"
            with m.State("CHOOSE"):
                m.d.sync += left.eq(entry.answer.length[beat_bits:])
                with m.If(entry.answer.status != Status.OK):
                    m.next = "ANSWER"
                with m.Else():
                    m.d.comb += writer.request.valid.eq(1)
                    with m.If(writer.request.ready):
                        m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += writing.eq(1)
                with m.If(writer.done):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.answer.valid.eq(1)
                with m.If(self.answer.ready):
                    m.next = "IDLE"
        # A product is counted with its last beat.
        shape = self.shape
        product_bits = (shape.result_beats - 1).bit_length()
        with m.If(packet.valid & packet.ready & (left[:product_bits] == 1)):
            m.d.sync += csr.products.eq(csr.products + 1)
