"""The ECG role: one or more pipelines behind the role contract."""

from dataclasses import dataclass

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring

from ....models.ecg import model
from ....models.ecg.presets import PRESETS
from ....models.ecg.words import weight_words
from ....models.status import Status
from ...csr import Register, RegisterBlock, counter
from ...memory_arbiter import MemoryArbiter
from ...stream import check_data_width
from ..contract import JobKind, RoleSignature
from ..dispatch import Dispatcher
from ..needs import RoleNeeds
from .bank import PipelineBank
from .configure import WEIGHTS_BLOCK, WeightPort
from .lane import EcgLane
from .load import STORE_LOG2

__all__ = ["ECG_BLOCK", "EcgConfig", "EcgRole", "ecg_block"]

ECG_BLOCK = RegisterBlock(
    "ecg_pipeline",
    (counter("blocks", "blocks classified"), counter("beats", "beats reported")),
    "the ECG role's own counters",
)


def ecg_block(preset=model.FAITHFUL, loadable=False):
    """The registers of an ECG role; the faithful preset with fixed weights has the least."""
    registers = ECG_BLOCK.registers
    if preset is not model.FAITHFUL:
        registers += (Register("preset", "ro", 16, "which preset; 0 is the faithful one"),)
    if loadable:
        registers += WEIGHTS_BLOCK.registers
    return RegisterBlock(ECG_BLOCK.name, registers, ECG_BLOCK.description)


#: Jobs that a pipeline has at a time: one is loaded while the other's beats are worked on.
JOBS_PER_LANE = 2


@dataclass(frozen=True)
class EcgConfig:
    """Options of the role in a shell's plan.

    Attributes
    ----------
    preset : str
        Features and network, one of ``models/ecg/presets.py``.
    pipelines : int
        Pipelines, 1 to 64.
    buffers : int
        Blocks that each of them holds, 1 or 2.
    stream : bool
        Records may come in parts (SMP message type 4).
    loadable : bool
        The network takes new weights at run time (SMP message type 1, and registers).
    """

    preset: str = model.FAITHFUL.name
    pipelines: int = 1
    buffers: int = 1
    stream: bool = False
    loadable: bool = False

    def __post_init__(self):
        for name, allowed in (
            ("preset", tuple(PRESETS)),
            ("pipelines", range(1, 65)),
            ("buffers", (1, 2)),
        ):
            value = getattr(self, name)
            if value not in allowed:
                words = "1 to 64" if name == "pipelines" else " or ".join(map(str, allowed))
                raise ValueError(f"{name} must be {words}, not {value!r}")


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
    preset : trebuchet.models.ecg.model.Preset
        Which features, and which network; ``weights`` must be of this preset.
    loadable : bool
        Weights can be replaced at run time: by ``CONFIGURE`` jobs and by registers
        (:class:`~.configure.WeightPort`).

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

    prompt_writes = True

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
        preset=model.FAITHFUL,
        loadable=False,
    ):
        self.width, self.tag_width = check_data_width(width), tag_width
        self.preset = preset
        if not isinstance(pipelines, int) or pipelines < 1:
            raise ValueError(f"Number of pipelines must be an integer >= 1, not {pipelines!r}")
        self.ports = pipelines + loadable  # that share the role's memory port
        bits = self.tag_bits(pipelines, scratch is not None, loadable)
        if tag_width < bits:
            raise ValueError(f"Tag width must be at least {bits}, not {tag_width!r}")
        self.lane_tag_width = tag_width - (self.ports - 1).bit_length()
        self.outstanding = JOBS_PER_LANE * pipelines
        weights = model.default_weights(preset) if weights is None else weights
        self.bank = PipelineBank(
            pipelines, weights, preset=preset, buffers=buffers, loadable=loadable
        )
        self.lanes = [
            EcgLane(
                self.bank.pipeline_signature,
                width,
                self.lane_tag_width,
                scratch=scratch,
                sessions=sessions,
                tail=preset.tail,
            )
            for _ in range(pipelines)
        ]
        self.weights = None
        if loadable:
            order = self.bank.network.shape.order
            count = len(weight_words(weights, order))
            self.weights = WeightPort(count, width, self.lane_tag_width)
        super().__init__(RoleSignature(ecg_block(preset, loadable), width, tag_width))

    Config = EcgConfig

    @classmethod
    def needs(cls, config):
        """What it needs of a shell (:class:`~trebuchet.cores.roles.needs.RoleNeeds`)."""
        kinds = ((JobKind.STREAM, config.stream), (JobKind.CONFIGURE, config.loadable))
        return RoleNeeds(
            tag_width=cls.tag_bits(config.pipelines, config.stream, config.loadable),
            scratch_log2=STORE_LOG2 if config.stream else None,
            kinds=tuple(kind for kind, built in kinds if built),
            largest_result=lambda _: model.MAX_RESULT,
        )

    @classmethod
    def place(cls, config, place):
        """The role for its place in a shell (:class:`~trebuchet.cores.roles.needs.RolePlace`)."""
        return cls(
            place.width,
            tag_width=place.tag_width,
            pipelines=config.pipelines,
            buffers=config.buffers,
            scratch=place.scratch,
            sessions=place.sessions,
            preset=PRESETS[config.preset],
            loadable=config.loadable,
        )

    @staticmethod
    def tag_bits(pipelines, stream=False, loadable=False):
        """Least ``tag_width`` for so many pipelines and these options."""
        return (pipelines + bool(loadable) - 1).bit_length() + bool(stream)

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = self.bank
        for i, lane in enumerate(self.lanes):
            m.submodules[f"lane{i}"] = lane
            wiring.connect(m, lane.pipeline, self.bank.pipelines[i])
        job, answer = self._share_jobs(m)
        if self.weights is None:
            wiring.connect(m, wiring.flipped(self.job), job)
            wiring.connect(m, answer, wiring.flipped(self.answer))
        else:
            self._configure(m, job, answer)
        self._share_memory(m)
        given = self.answer.payload
        with m.If(self.answer.valid & self.answer.ready & (given.status == Status.OK)):
            m.d.sync += [
                self.csr.blocks.eq(self.csr.blocks + 1),
                self.csr.beats.eq(self.csr.beats + (given.length >> 4)),
            ]
        if hasattr(self.csr, "preset"):
            m.d.comb += self.csr.preset.eq(tuple(PRESETS).index(self.preset.name))
        return m

    def _share_jobs(self, m):
        """The job and the answer stream of all lanes together."""
        if len(self.lanes) == 1:
            return self.lanes[0].job, self.lanes[0].answer
        m.submodules.dispatcher = dispatcher = Dispatcher(len(self.lanes), JOBS_PER_LANE)
        for i, lane in enumerate(self.lanes):
            wiring.connect(m, dispatcher.jobs[i], lane.job)
            wiring.connect(m, lane.answer, dispatcher.answers[i])
        return dispatcher.job, dispatcher.answer

    def _share_memory(self, m):
        mems = [lane.mem for lane in self.lanes]
        if self.weights is not None:
            mems.append(self.weights.mem)
        if len(mems) == 1:
            wiring.connect(m, mems[0], wiring.flipped(self.mem))
            return
        ports = range(len(mems))
        m.submodules.memory = memory = MemoryArbiter(
            len(mems), self.width, self.lane_tag_width, prompt=ports
        )
        for i, mem in enumerate(mems):
            wiring.connect(m, mem, memory.ports[i])
        wiring.connect(m, memory.mem, wiring.flipped(self.mem))

    def _configure(self, m, job, answer):
        """``CONFIGURE`` jobs go to the port of weights, and wait there until no other is here.

        So do all others, to be refused, while the network has a part of its weights only.
        """
        m.submodules.weights = weights = self.weights
        ours = (self.job.payload.kind == JobKind.CONFIGURE) | weights.partial
        inside = Signal(range(self.outstanding + 1))
        m.d.sync += inside.eq(inside + (job.valid & job.ready) - (answer.valid & answer.ready))
        m.d.comb += [
            job.valid.eq(self.job.valid & ~ours & ~weights.busy),
            job.payload.eq(self.job.payload),
            weights.job.valid.eq(self.job.valid & ours),
            weights.job.payload.eq(self.job.payload),
            weights.idle.eq(inside == 0),
            self.job.ready.eq(Mux(ours, weights.job.ready, job.ready & ~weights.busy)),
            # While one of them has an answer the other has none.
            self.answer.valid.eq(answer.valid | weights.answer.valid),
            self.answer.payload.eq(
                Mux(weights.answer.valid, weights.answer.payload, answer.payload)
            ),
            answer.ready.eq(self.answer.ready),
            weights.answer.ready.eq(self.answer.ready),
        ]
        wiring.connect(m, weights.load, self.bank.load)
        m.d.comb += self.bank.reload.eq(weights.reload)
        for register in WEIGHTS_BLOCK.registers:
            inner, outer = getattr(weights.csr, register.name), getattr(self.csr, register.name)
            m.d.comb += outer.eq(inner) if register.access == "ro" else inner.eq(outer)
