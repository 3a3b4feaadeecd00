"""The ECG role: one pipeline behind the role contract."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring

from ....models.ecg import model
from ....models.status import Status
from ...csr import RegisterBlock, counter
from ...stream import check_data_width
from ..contract import AnswerLayout, JobLayout, RoleSignature
from ..fetch import MemoryJoin, OperandReader, ResultWriter
from .pipeline import EcgPipeline, PairSplitter

__all__ = ["ECG_BLOCK", "EcgRole"]

ECG_BLOCK = RegisterBlock(
    "ecg_pipeline",
    (counter("blocks", "blocks classified"), counter("beats", "beats reported")),
    "the ECG pipeline's own counters",
)


class EcgRole(wiring.Component):
    """Classifies the beats of a block of samples (role contract: ``cores/roles/contract.py``).

    The operand holds 64 to 4,096 samples, int16 little-endian; any other length is answered
    ``BAD_LENGTH``. The result holds 16 bytes a beat (step 10 of the data sheet); none is an empty
    result. A result longer than ``room`` is answered ``NO_ROOM``.

    Parameters: ``width``, data path of the memory port; ``weights``, see :class:`EcgPipeline`.
    One job at a time; bound: the pipeline's cycles plus memory latency. Reset: abandons the job.
    """

    def __init__(self, width=32, weights=None, tag_width=2):
        self.width = check_data_width(width)
        self.tag_width = tag_width
        self.weights = weights
        super().__init__(RoleSignature(ECG_BLOCK, width, tag_width))

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = OperandReader(self.width, self.tag_width)
        m.submodules.splitter = splitter = PairSplitter(self.width)
        m.submodules.pipeline = pipeline = EcgPipeline(self.weights)
        m.submodules.writer = writer = ResultWriter(self.width, self.tag_width)
        m.submodules.join = join = MemoryJoin(self.width, self.tag_width)
        wiring.connect(m, reader.packet, splitter.i)
        wiring.connect(m, splitter.o, pipeline.pair)
        wiring.connect(m, reader.mem, join.reader)
        wiring.connect(m, writer.mem, join.writer)
        wiring.connect(m, wiring.flipped(self.mem), join.mem)

        job = Signal(JobLayout)
        emitted = Signal.like(pipeline.found)
        answer = Signal(AnswerLayout)
        wanted, room_wanted, start = Signal(), Signal(), Signal()
        samples = job.length[1:]
        fits = Signal()
        m.d.comb += [
            fits.eq(
                ~job.length[0] & (samples >= model.MIN_SAMPLES) & (samples <= model.MAX_SAMPLES)
            ),
            pipeline.samples.eq(samples),
            pipeline.start.eq(start),
            reader.request.valid.eq(wanted),
            writer.request.valid.eq(room_wanted),
            writer.request.payload.addr.eq(job.result),
            writer.request.payload.room.eq(job.room),
            self.answer.payload.eq(answer),
        ]
        for name in ("base", "offset", "ring_log2", "length"):
            m.d.comb += reader.request.payload[name].eq(job[name])
        self._emit(m, writer.packet, pipeline, emitted)

        with m.If(reader.request.ready):
            m.d.sync += wanted.eq(0)
        with m.If(writer.request.ready):
            m.d.sync += room_wanted.eq(0)
        with m.FSM(name="role"):
            with m.State("IDLE"):
                m.d.comb += self.job.ready.eq(1)
                m.d.sync += job.eq(self.job.payload)
                with m.If(self.job.valid):
                    m.next = "CHECK"
            with m.State("CHECK"):
                m.d.sync += [answer[name].eq(job[name]) for name in ("source", "session", "id")]
                m.d.sync += [answer.status.eq(Status.OK), answer.length.eq(0), emitted.eq(0)]
                with m.If(fits):
                    m.d.comb += start.eq(1)
                    m.d.sync += wanted.eq(1)
                    m.next = "RUN"
                with m.Else():
                    m.d.sync += answer.status.eq(Status.BAD_LENGTH)
                    m.next = "ANSWER"
            with m.State("RUN"):
                # A writer is started only when there is something to write: packets are not empty.
                with m.If(pipeline.record.valid):
                    m.d.sync += room_wanted.eq(1)
                    m.next = "WRITE"
                with m.Elif(pipeline.counted & (pipeline.found == 0) & ~pipeline.busy):
                    m.next = "ANSWER"
            with m.State("WRITE"):
                with m.If(writer.done):
                    m.d.sync += answer.length.eq(writer.length)
                    with m.If(writer.overflow):
                        m.d.sync += [answer.length.eq(0), answer.status.eq(Status.NO_ROOM)]
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.answer.valid.eq(1)
                with m.If(self.answer.ready):
                    m.next = "IDLE"
        self._count(m, answer)
        return m

    def _emit(self, m, packet, pipeline, emitted):
        """Cut records into beats. The first goes when it is known how many there are."""
        count = 128 // self.width
        at = Signal(range(max(count, 2)))
        record = pipeline.record
        m.d.comb += [
            packet.valid.eq(record.valid & pipeline.counted),
            packet.payload.data.eq(record.payload.as_value().word_select(at, self.width)),
            packet.payload.first.eq((emitted == 0) & (at == 0)),
            packet.payload.last.eq((emitted + 1 == pipeline.found) & (at == count - 1)),
            record.ready.eq(packet.ready & pipeline.counted & (at == count - 1)),
        ]
        with m.If(packet.valid & packet.ready):
            m.d.sync += at.eq(Mux(at == count - 1, 0, at + 1))
            with m.If(at == count - 1):
                m.d.sync += emitted.eq(emitted + 1)

    def _count(self, m, answer):
        with m.If(self.answer.valid & self.answer.ready & (answer.status == Status.OK)):
            m.d.sync += [
                self.csr.blocks.eq(self.csr.blocks + 1),
                self.csr.beats.eq(self.csr.beats + (answer.length >> 4)),
            ]
