"""The ECG role: one or more pipelines behind the role contract."""

from amaranth import Module
from amaranth.lib import wiring

from ....models.ecg import model
from ....models.status import Status
from ...csr import RegisterBlock, counter
from ...memory_arbiter import MemoryArbiter
from ...stream import check_data_width
from ..contract import RoleSignature
from ..dispatch import Dispatcher
from .bank import PipelineBank
from .lane import EcgLane

__all__ = ["ECG_BLOCK", "EcgRole"]

ECG_BLOCK = RegisterBlock(
    "ecg_pipeline",
    (counter("blocks", "blocks classified"), counter("beats", "beats reported")),
    "the ECG role's own counters",
)

#: Jobs that a pipeline has at a time: one is loaded while the other's beats are worked on.
JOBS_PER_LANE = 2


class EcgRole(wiring.Component):
    """Classifies heart beats (role contract: ``cores/roles/contract.py``).

    Parameters
    ----------
    width, tag_width : int
        Of the memory port. The tag holds the pipeline's number and, with ``scratch``, a bit more.
    pipelines : int
        Pipelines, 1 or more; the next job goes to an idle one.
    buffers : int
        Blocks that a pipeline holds: 2, or 1, with which the next is loaded only when the beats of
        the last are done.
    weights : Weights or None
        The network's; ``None``: those in ``models/ecg``.
    scratch : int or None
        Address of 2 KiB of scratch memory a session, a multiple of 2 KiB, which makes the role
        take ``STREAM`` jobs; ``None``: there is none, and no such jobs come.
    sessions : int
        With ``scratch``: session numbers 0 to ``sessions - 1`` may come.

    1. The operand of a ``DATA`` job holds 64 to 4,096 samples, int16 little-endian: a block.
    2. The operand of a ``STREAM`` job is part of a record: 64 to 3,392 samples, a multiple of four,
       or nothing, which ends the record. It is put behind what is kept of the record, at most 704
       samples, and together they are a block. Beats of the parts together are those of the record:
       each is reported once, with the first part that has all it depends on (the 160 samples after
       it). Positions count from the beginning of the block (``models/ecg/record.py``).
    3. Any other length is answered ``BAD_LENGTH``. The result holds 16 bytes a beat (step 10 of the
       data sheet); none is an empty result. A result longer than ``room`` is answered ``NO_ROOM``.

    Each pipeline takes two jobs, so 4,096 samples with 12 beats take it no longer than their beats.
    Answers come in any order. Bound: the pipeline's cycles for the job and the one before it, plus
    memory latencies. Back-pressure on ``answer`` stops everything in the end. Reset: abandons all
    jobs; what is kept of records stays as it is.
    """

    def __init__(
        self,
        width=32,
        weights=None,
        tag_width=2,
        *,
        pipelines=1,
        buffers=2,
        scratch=None,
        sessions=1,
    ):
        self.width, self.tag_width = check_data_width(width), tag_width
        if not isinstance(pipelines, int) or pipelines < 1:
            raise ValueError(f"Number of pipelines must be an integer >= 1, not {pipelines!r}")
        bits = self.tag_bits(pipelines, scratch is not None)
        if tag_width < bits:
            raise ValueError(f"Tag width must be at least {bits}, not {tag_width!r}")
        self.outstanding = JOBS_PER_LANE * pipelines
        weights = model.load_weights() if weights is None else weights
        self.bank = PipelineBank(pipelines, weights, buffers=buffers)
        self.lanes = [
            EcgLane(
                self.bank.pipeline_signature,
                width,
                tag_width - (pipelines - 1).bit_length(),
                scratch=scratch,
                sessions=sessions,
            )
            for _ in range(pipelines)
        ]
        super().__init__(RoleSignature(ECG_BLOCK, width, tag_width))

    @staticmethod
    def tag_bits(pipelines, stream):
        """Least ``tag_width`` for so many pipelines, with or without records."""
        return (pipelines - 1).bit_length() + bool(stream)

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = self.bank
        for i, lane in enumerate(self.lanes):
            m.submodules[f"lane{i}"] = lane
            wiring.connect(m, lane.pipeline, self.bank.pipelines[i])
        if len(self.lanes) == 1:
            (lane,) = self.lanes
            wiring.connect(m, wiring.flipped(self.job), lane.job)
            wiring.connect(m, lane.answer, wiring.flipped(self.answer))
            wiring.connect(m, lane.mem, wiring.flipped(self.mem))
        else:
            self._share(m)
        answer = self.answer.payload
        with m.If(self.answer.valid & self.answer.ready & (answer.status == Status.OK)):
            m.d.sync += [
                self.csr.blocks.eq(self.csr.blocks + 1),
                self.csr.beats.eq(self.csr.beats + (answer.length >> 4)),
            ]
        return m

    def _share(self, m):
        """Jobs, answers and the memory port among several lanes."""
        n = len(self.lanes)
        m.submodules.dispatcher = dispatcher = Dispatcher(n, JOBS_PER_LANE)
        m.submodules.memory = memory = MemoryArbiter(n, self.width, self.lanes[0].tag_width)
        wiring.connect(m, wiring.flipped(self.job), dispatcher.job)
        wiring.connect(m, dispatcher.answer, wiring.flipped(self.answer))
        for i, lane in enumerate(self.lanes):
            wiring.connect(m, dispatcher.jobs[i], lane.job)
            wiring.connect(m, lane.answer, dispatcher.answers[i])
            wiring.connect(m, lane.mem, memory.ports[i])
        wiring.connect(m, memory.mem, wiring.flipped(self.mem))
