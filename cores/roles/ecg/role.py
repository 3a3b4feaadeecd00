"""The ECG role: one pipeline behind the role contract."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ....models.status import Status
from ...csr import RegisterBlock, counter
from ...stream import PacketSignature, check_data_width
from ..contract import AnswerLayout, JobLayout, RoleSignature
from ..fetch import MemoryJoin, OperandReader, ResultWriter
from .detect import Detector
from .dwt import TwoLevelDwt
from .logarithm import FeatureStage
from .network import Network, RecordLayout
from .window import WindowStage

__all__ = ["ECG_BLOCK", "EcgPipeline", "EcgRole", "PairSplitter"]

ECG_BLOCK = RegisterBlock(
    "ecg_pipeline",
    (counter("blocks", "blocks classified"), counter("beats", "beats reported")),
    "the ECG pipeline's own counters",
)

PairLayout = data.StructLayout({"even": signed(16), "odd": signed(16), "last": 1})


class PairSplitter(wiring.Component):
    """Cuts a packet of little-endian 16-bit samples into pairs, one a cycle.

    ``i``: packet stream of ``width`` bits; ``o``: stream of even sample, odd sample, last. The odd
    sample of a last incomplete pair is don't-care. Combinational for 32 bits; throughput one pair
    a cycle for all widths. Back-pressure is handed on. Bad input: a last odd byte is taken as half
    a sample.
    """

    def __init__(self, width=32):
        self.width = check_data_width(width)
        super().__init__({"i": In(PacketSignature(width)), "o": Out(stream.Signature(PairLayout))})

    def elaborate(self, platform):
        m = Module()
        count = self.width // 32
        at = Signal(range(max(count, 2)))
        end = Signal()
        pair = Signal(32)
        m.d.comb += [
            end.eq((at + 1) * 4 >= self.width // 8 - self.i.payload.empty),
            pair.eq(self.i.payload.data.word_select(at, 32)),
            self.o.valid.eq(self.i.valid),
            self.o.payload.even.eq(pair[:16]),
            self.o.payload.odd.eq(pair[16:]),
            self.o.payload.last.eq(self.i.payload.last & end),
            self.i.ready.eq(self.o.ready & end),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += at.eq(Mux(end, 0, at + 1))
        return m


class EcgPipeline(wiring.Component):
    """One block of samples in, its records out.

    ===========  ===  ============================================================================
    ``samples``  In   number of samples in the block, 64 to 4,096; stable while ``busy``
    ``start``    In   1 for one cycle while not ``busy``: a block begins
    ``pair``     In   stream of sample pairs; taken while a block is being loaded
    ``record``   Out  stream of :data:`~.network.RecordLayout`, in order of position
    ``found``    Out  records the block has, final when ``counted``
    ``counted``  Out  the whole block was searched for beats
    ``busy``     Out  a block is inside: loading, or beats not yet handed out
    ===========  ===  ============================================================================

    Parameters: ``weights`` (default: the trained ones in ``models/ecg``).

    Cycles for 4,096 samples: 2,048 to load, detection at most 90 and 3 for each crossing that could
    be a beat, then at most 340 a beat, overlapping detection; the network works beside it.
    Back-pressure on ``record`` stalls the stages one after the other, nothing is lost. Reset: idle.
    """

    def __init__(self, weights=None):
        self.weights = model.load_weights() if weights is None else weights
        super().__init__(
            {
                "samples": In(13),
                "start": In(1),
                "pair": In(stream.Signature(PairLayout)),
                "record": Out(stream.Signature(RecordLayout)),
                "found": Out(range(model.MAX_BEATS + 1)),
                "counted": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = ram = Memory(shape=unsigned(32), depth=model.MAX_SAMPLES // 2, init=[])
        m.submodules.dwt = dwt = TwoLevelDwt(16)
        m.submodules.detector = detector = Detector()
        m.submodules.window = window = WindowStage()
        m.submodules.feature = feature = FeatureStage()
        m.submodules.network = network = Network(self.weights)
        wiring.connect(m, detector.beat, window.beat)
        wiring.connect(m, window.item, feature.item)
        wiring.connect(m, feature.go, network.go)
        wiring.connect(m, wiring.flipped(self.record), network.record)

        place = Signal(range(model.MAX_SAMPLES // 2))
        loading = Signal()
        write, read = ram.write_port(), ram.read_port()
        taken = Signal()
        m.d.comb += [
            self.pair.ready.eq(loading),
            taken.eq(self.pair.valid & self.pair.ready),
            write.addr.eq(place),
            write.data.eq(Cat(self.pair.payload.even, self.pair.payload.odd)),
            write.en.eq(taken),
            read.addr.eq(window.addr),
            window.pair.eq(read.data),
            detector.samples.eq(self.samples),
            detector.clear.eq(self.start),
            detector.i_valid.eq(dwt.valid2),
            detector.i_last.eq(dwt.last2),
            detector.i_d2.eq(dwt.d2),
            network.f_valid.eq(feature.valid),
            network.f_index.eq(feature.feature),
            network.f_value.eq(feature.value),
            self.found.eq(detector.found),
            self.counted.eq(detector.done),
        ]
        # The transform takes whole groups of four samples only; the rest just lies in the RAM.
        used = Signal(range(model.MAX_SAMPLES // 2 + 1))
        m.d.comb += used.eq(self.samples[2:] << 1)
        m.d.sync += [
            dwt.i_valid.eq(taken & (place < used)),
            dwt.i_last.eq(place == used - 1),
            dwt.i_even.eq(self.pair.payload.even),
            dwt.i_odd.eq(self.pair.payload.odd),
        ]
        given = Signal.like(self.found)
        with m.If(taken):
            m.d.sync += [place.eq(place + 1), loading.eq(~self.pair.payload.last)]
        with m.If(self.record.valid & self.record.ready):
            m.d.sync += given.eq(given + 1)
        with m.If(self.counted & (given == self.found)):
            m.d.sync += self.busy.eq(0)
        with m.If(self.start):
            m.d.sync += [place.eq(0), given.eq(0), loading.eq(1), self.busy.eq(1)]
        return m


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
