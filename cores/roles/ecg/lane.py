"""One ECG pipeline as a role: takes the next job while it works on the last one."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from ....models.ecg import model
from ....models.ecg import record as parts
from ....models.status import Status
from ...memory import ADDR_WIDTH
from ...memory_arbiter import MemoryArbiter
from ...stream import check_data_width
from ...tcp.service import LENGTH_WIDTH, SESSION_WIDTH
from ..contract import ID_WIDTH, SOURCE_WIDTH, JobKind, RoleSignature
from ..fetch import MemoryJoin, ResultWriter
from .load import HEADER_OFFSET, HOLD, TAIL, BlockLoader, RecordLoader, ZoneLayout

__all__ = ["EcgLane"]

#: Groups of four samples that two beats are apart at least, from part to part.
GAP = parts.GAP // 4

#: What is remembered of a job until it is answered.
TicketLayout = data.StructLayout(
    {
        "source": unsigned(SOURCE_WIDTH),
        "session": unsigned(SESSION_WIDTH),
        "id": unsigned(ID_WIDTH),
        "result": unsigned(ADDR_WIDTH),
        "room": unsigned(LENGTH_WIDTH),
        "bad": unsigned(1),
    }
)
COPIED = tuple(name for name in TicketLayout.members if name != "bad")


class EcgLane(wiring.Component):
    """What a pipeline needs to be a role (role contract: ``cores/roles/contract.py``).

    Parameters
    ----------
    pipeline : PipelineSignature
        Of the pipeline.
    width, tag_width : int
        Of the memory port. All bursts carry tag 0, or 0 and 1 with ``scratch``.
    scratch : int or None
        Address of the sessions' scratch memory, ``2**STORE_LOG2`` bytes each; ``None``: only
        ``DATA`` jobs come.
    sessions, tail : int
        With ``scratch``: see :class:`~.load.RecordLoader`.

    Besides the ports of a role there is ``pipeline``, where the pipeline is connected.

    Lengths, statuses and results are those of :class:`~.role.EcgRole`. Jobs are answered in order;
    a second one is taken before the first is answered, so that its samples are read, transformed
    and searched while the beats of the first are worked on. Bound: that of the pipeline plus
    memory latencies. Reset: abandons both jobs.
    """

    def __init__(self, pipeline, width=32, tag_width=2, *, scratch=None, sessions=1, tail=TAIL):
        self.width, self.tag_width = check_data_width(width), tag_width
        self.streams = scratch is not None
        if self.streams and tag_width < 1:
            raise ValueError(f"Tag width must be at least 1 with records, not {tag_width!r}")
        self.inner_tag_width = tag_width - self.streams
        if self.streams:
            self.loader = RecordLoader(
                width,
                self.inner_tag_width,
                scratch=scratch,
                sessions=sessions,
                tail=tail,
                index_width=pipeline.width,
            )
        else:
            self.loader = BlockLoader(width, tag_width, pipeline.width)
        role = RoleSignature(None, width, tag_width)
        super().__init__({**role.members, "pipeline": Out(pipeline)})

    # A job is in one of two places: `coming` while it is loaded, `current` while its records are
    # written. The pipeline holds the samples of both.
    def elaborate(self, platform):
        m = Module()
        m.submodules.loader = loader = self.loader
        m.submodules.writer = writer = ResultWriter(self.width, self.inner_tag_width)
        wiring.connect(m, loader.block, wiring.flipped(self.pipeline.block))
        wiring.connect(m, loader.pair, wiring.flipped(self.pipeline.pair))
        self._join(m, loader.mem, writer.mem)
        self.coming, self.current = Signal(TicketLayout), Signal(TicketLayout)
        self.zone = Signal(ZoneLayout)
        self.waiting, self.loading = Signal(), Signal()
        self.move = Signal()  # the coming job becomes the current one
        self._take(m)
        self._answer(m, writer)
        return m

    def _join(self, m, loader, writer):
        """One memory port; the loader of records writes, too, so its responses need a tag."""
        if self.streams:
            m.submodules.join = join = MemoryArbiter(
                2, self.width, self.inner_tag_width, prompt=range(2)
            )
            wiring.connect(m, loader, join.ports[0])
            wiring.connect(m, writer, join.ports[1])
        else:
            m.submodules.join = join = MemoryJoin(self.width, self.tag_width)
            wiring.connect(m, loader, join.reader)
            wiring.connect(m, writer, join.writer)
        wiring.connect(m, join.mem, wiring.flipped(self.mem))

    def _fits(self, job):
        """The job's length is allowed."""
        samples = job.length[1:]
        block = ~job.length[0] & (samples >= model.MIN_SAMPLES) & (samples <= model.MAX_SAMPLES)
        if not self.streams:
            return block
        part = (job.length[:3] == 0) & (
            (samples == 0) | ((samples >= model.MIN_SAMPLES) & (samples <= parts.MAX_PART))
        )
        return Mux(job.kind == JobKind.STREAM, part, block)

    def _take(self, m):
        job, loader = self.job.payload, self.loader
        load = loader.request
        fits, taken = Signal(), Signal()
        for name in ("base", "offset", "ring_log2", "length"):
            m.d.comb += load.payload.operand[name].eq(job[name])
        if self.streams:
            m.d.comb += [
                load.payload.stream.eq(job.kind == JobKind.STREAM),
                load.payload.first.eq(job.first),
                load.payload.session.eq(job.session),
            ]
        m.d.comb += [
            fits.eq(self._fits(job)),
            load.valid.eq(self.job.valid & ~self.waiting & fits),
            self.job.ready.eq(~self.waiting & load.ready),
            taken.eq(self.job.valid & self.job.ready),
        ]
        with m.If(taken):
            m.d.sync += [self.coming[name].eq(job[name]) for name in COPIED]
            m.d.sync += [self.coming.bad.eq(~fits), self.waiting.eq(1), self.loading.eq(fits)]
        with m.If(loader.done):
            m.d.sync += self.loading.eq(0)
        with m.If(self.move):
            m.d.sync += [self.current.eq(self.coming), self.waiting.eq(0)]
            if self.streams:
                m.d.sync += self.zone.eq(loader.zone)

    def _answer(self, m, writer):
        answer, current = self.answer.payload, self.current
        for name in ("source", "session", "id"):
            m.d.comb += answer[name].eq(current[name])
        flowing, heading = Signal(), Signal()
        end = self.pipeline.end
        self._emit(m, writer, flowing, heading)
        m.d.comb += [
            writer.request.payload.addr.eq(current.result),
            writer.request.payload.room.eq(current.room),
        ]
        with m.FSM(name="answer"):
            with m.State("IDLE"):
                m.d.comb += self.move.eq(self.waiting & ~self.loading)
                m.d.sync += [
                    answer.length.eq(0),
                    answer.status.eq(Mux(self.coming.bad, Status.BAD_LENGTH, Status.OK)),
                ]
                with m.If(self.move):
                    m.next = "REQUEST"
                    with m.If(self.coming.bad):
                        m.next = "ANSWER"
            with m.State("REQUEST"):
                m.d.comb += writer.request.valid.eq(1)
                m.next = "RECORDS"
            with m.State("RECORDS"):
                m.d.comb += [flowing.eq(1), end.ready.eq(1), writer.finish.eq(end.valid)]
                with m.If(end.valid):
                    m.next = "FINISH"
            with m.State("FINISH"):
                with m.If(writer.done):
                    m.next = "ANSWER"
                    m.d.sync += answer.length.eq(writer.length)
                    with m.If(writer.overflow):
                        m.d.sync += [answer.length.eq(0), answer.status.eq(Status.NO_ROOM)]
                    if self.streams:
                        with m.If(self.zone.stream):
                            m.next = "PLACE"
            if self.streams:
                self._write_header(m, writer, heading)
            with m.State("ANSWER"):
                m.d.comb += self.answer.valid.eq(1)
                with m.If(self.answer.ready):
                    m.next = "IDLE"

    def _write_header(self, m, writer, heading):
        """What the next part of the record must know, behind the samples that are kept."""
        with m.State("PLACE"):
            m.d.comb += [
                writer.request.valid.eq(1),
                writer.request.payload.addr.eq(
                    self.loader.store(self.current.session) | HEADER_OFFSET
                ),
                writer.request.payload.room.eq(16),
            ]
            m.next = "HEADER"
        with m.State("HEADER"):
            m.d.comb += heading.eq(1)
            with m.If(writer.done):
                m.next = "ANSWER"

    def _emit(self, m, writer, flowing, heading):
        """Records into beats of the result; or the header."""
        record, packet = self.pipeline.record, writer.packet
        count = 128 // self.width
        at = Signal(range(max(count, 2)))
        last_beat = at == count - 1
        begun = Signal()
        words = record.payload.as_value()
        if self.streams:
            words = Mux(heading, self._header(m, record), words)
        m.d.comb += [
            packet.valid.eq((flowing & record.valid) | heading),
            packet.payload.data.eq(words.word_select(at, self.width)),
            packet.payload.first.eq(~begun),
            packet.payload.last.eq(heading & last_beat),
            record.ready.eq(flowing & packet.ready & last_beat),
        ]
        with m.If(writer.request.valid):
            m.d.sync += begun.eq(0)
        with m.If(packet.valid & packet.ready):
            m.d.sync += [at.eq(Mux(last_beat, 0, at + 1)), begun.eq(1)]

    def _header(self, m, record):
        """What the next part of the record must know."""
        zone = self.zone
        free = Signal(11)  # the first crossing that may still be a beat
        with m.If(self.move):
            m.d.sync += free.eq(self.loader.zone.low)
        with m.Elif(record.valid & record.ready):
            m.d.sync += free.eq(record.payload.position[2:] + GAP)
        held, late = Signal(8), Signal(8)
        m.d.comb += [
            held.eq(Mux(zone.groups > HOLD, HOLD, zone.groups)),
            late.eq(Mux(free > zone.high, free - zone.high, 0)),
        ]
        return Mux(zone.ending, 0, Cat(held, late))
