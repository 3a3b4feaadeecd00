"""Several roles behind one job and one answer port."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...models.status import Status
from ..arbiter import StreamArbiter
from .contract import NO_ROLE, AnswerLayout, JobKind, JobLayout, check_kinds

__all__ = ["RoleDemux"]


class RoleDemux(wiring.Component):
    """Hands each job to the role that its field ``role`` names, and merges the answers.

    Parameters
    ----------
    kinds : sequence of tuple of JobKind
        For each role, by its number, the kinds of job that it takes besides ``DATA``; 0 to 31
        roles.

    ===========  ==========  =====================================================================
    member       dir         meaning
    ===========  ==========  =====================================================================
    ``job``      In          stream of :data:`~trebuchet.cores.roles.contract.JobLayout`
    ``answer``   Out         stream of :data:`~trebuchet.cores.roles.contract.AnswerLayout`
    ``jobs``     Out, array  a job stream to each role
    ``answers``  In, array   an answer stream from each role
    ``doors``    Out         bit k: a job for role k, offered in the next cycle, is taken at once
    ===========  ==========  =====================================================================

    1. A job goes to exactly one role, whole and unchanged, in the order in which they came. One for
       a role that is not there is answered ``NO_ROLE`` here, and one of a kind that its role does
       not take ``BAD_TYPE``.
    2. Each of several roles has a place for a job, so that one which takes none is in nobody's way
       as long as ``job`` heeds ``doors``. A role alone has no such place.
    3. Answers take turns: one waits for at most one of each other role and one of the demux's own.

    Latency: of a job 1 cycle, none with one role; of an answer none when no other waits, else 1
    cycle. Throughput: a job and an answer a cycle; a job every second cycle to the same of several
    roles. Back-pressure: a job whose role's place is full waits, and holds up those behind it; an
    answer that is not taken holds the others. Reset: no job is kept.
    """

    def __init__(self, kinds):
        self.kinds = tuple(map(check_kinds, kinds))
        n = self.n = len(self.kinds)
        if n > NO_ROLE:
            raise ValueError(f"Number of roles must be 0 to {NO_ROLE}, not {n}")
        super().__init__(
            {
                "job": In(stream.Signature(JobLayout)),
                "answer": Out(stream.Signature(AnswerLayout)),
                "jobs": Out(stream.Signature(JobLayout)).array(n),
                "answers": In(stream.Signature(AnswerLayout)).array(n),
                "doors": Out(n),
            }
        )
        # No ports: for proofs.
        self.arbiter = StreamArbiter(AnswerLayout, n + 1)
        self.refusal = Signal(8)  # status with which the job on offer is refused; OK: it is not
        self.to = Signal(n)  # one-hot: the role that gets it; 0: it is refused

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        wiring.connect(m, arbiter.o, wiring.flipped(self.answer))
        job, ours = self.job, arbiter.i[self.n]
        m.d.comb += self.refusal.eq(Status.NO_ROLE)
        for k, kinds in enumerate(self.kinds):
            wiring.connect(m, wiring.flipped(self.answers[k]), arbiter.i[k])
            with m.If(job.payload.role == k):
                takes = job.payload.kind == JobKind.DATA
                for kind in kinds:
                    takes |= job.payload.kind == kind
                m.d.comb += self.refusal.eq(Status.BAD_TYPE)
                with m.If(takes):
                    m.d.comb += [self.refusal.eq(Status.OK), self.to[k].eq(1)]
        readies = [self._place(m, k) for k in range(self.n)]
        refused = self.refusal != Status.OK
        identity = ("source", "session", "id")
        m.d.comb += [
            ours.valid.eq(job.valid & refused),
            ours.payload.status.eq(self.refusal),
            *(ours.payload[name].eq(job.payload[name]) for name in identity),
            job.ready.eq((Cat(readies) & self.to).any() | (refused & ours.ready)),
        ]
        return m

    def _place(self, m, k):
        """Role k's way in; returns whether a job for it would be taken."""
        job, out = self.job, self.jobs[k]
        offered = job.valid & self.to[k]
        if self.n == 1:
            m.d.comb += [
                out.payload.eq(job.payload),
                out.valid.eq(offered),
                self.doors[k].eq(~offered),
            ]
            return out.ready
        m.d.comb += self.doors[k].eq(~out.valid & ~offered)
        with m.If(out.ready):
            m.d.sync += out.valid.eq(0)
        with m.If(offered & ~out.valid):
            m.d.sync += [out.valid.eq(1), out.payload.eq(job.payload)]
        return ~out.valid
