"""Who does a job: this board's role, or that of a peer."""

from amaranth import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import StreamArbiter, StreamDemux
from ..roles.contract import AnswerLayout, JobKind, JobLayout
from ..roles.dispatch import Dispatcher
from .contract import check_peers

__all__ = ["FROM_PEERS", "JobScheduler"]

#: ``source`` of jobs at this board's role: shared ones keep the framer's 0.
FROM_PEERS, NOT_SHARED = 1, 2


class JobScheduler(wiring.Component):
    """Hands out the clients' jobs to this board's role and to peers, and merges what comes back.

    ==================  ==========  ===============================================================
    ``job`` ``answer``  In/Out      of this board's clients; ``source`` is 0
    ``role_job``        Out         to this board's role; ``role_answer`` In, from there
    ``jobs``            Out, array  to the callers, one for each peer; ``answers`` In, from there
    ``peers_job``       In          from the server, ``source`` :data:`FROM_PEERS`;
                                    ``peers_answer`` Out, to it
    ``enable``          In          bit 0: this board's role gets jobs of its clients; bit p: peer p
    ==================  ==========  ===============================================================

    All are streams of :data:`~trebuchet.cores.roles.contract.JobLayout` and ``AnswerLayout``.

    ``DATA`` jobs go to whoever is enabled and has none of them, in turn
    (:class:`~trebuchet.cores.roles.dispatch.Dispatcher`); with nobody enabled they are answered
    ``STOPPED``. Other kinds belong to a connection or to the role: this board's role gets them,
    enabled or not. So do jobs of peers. Parameter: ``peers``, how many.

    Latency: none while nobody else waits, else a cycle for each. Throughput: this board's role has
    one ``DATA`` job of its clients at a time, and any number of the others. Back-pressure: goes
    through. Reset: all jobs forgotten, whoever does them is reset, too. Bad input: an answer with
    another ``source`` is swallowed.
    """

    def __init__(self, peers):
        self.peers = check_peers(peers)
        job, answer = stream.Signature(JobLayout), stream.Signature(AnswerLayout)
        super().__init__(
            {
                "job": In(job),
                "answer": Out(answer),
                "role_job": Out(job),
                "role_answer": In(answer),
                "jobs": Out(job).array(peers),
                "answers": In(answer).array(peers),
                "peers_job": In(job),
                "peers_answer": Out(answer),
                "enable": In(peers + 1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.kinds = kinds = StreamDemux(JobLayout, 2)
        m.submodules.dispatch = dispatch = Dispatcher(self.peers + 1)
        m.submodules.merge = merge = StreamArbiter(JobLayout, 3)
        m.submodules.sort = sort = StreamDemux(AnswerLayout, 3)
        m.submodules.answers = answers = StreamArbiter(AnswerLayout, 2)
        # No ports: for the proof's invariants.
        self.dispatch, self.merge, self.merged = dispatch, merge, answers
        wiring.connect(m, wiring.flipped(self.job), kinds.i)
        wiring.connect(m, kinds.o[0], dispatch.job)
        wiring.connect(m, kinds.o[1], merge.i[2])
        wiring.connect(m, dispatch.jobs[0], merge.i[0])
        wiring.connect(m, wiring.flipped(self.peers_job), merge.i[1])
        wiring.connect(m, merge.o, wiring.flipped(self.role_job))
        wiring.connect(m, wiring.flipped(self.role_answer), sort.i)
        wiring.connect(m, sort.o[0], dispatch.answers[0])
        wiring.connect(m, sort.o[1], wiring.flipped(self.peers_answer))
        wiring.connect(m, dispatch.answer, answers.i[0])
        wiring.connect(m, sort.o[2], answers.i[1])
        wiring.connect(m, answers.o, wiring.flipped(self.answer))
        for k in range(self.peers):
            wiring.connect(m, dispatch.jobs[k + 1], wiring.flipped(self.jobs[k]))
            wiring.connect(m, wiring.flipped(self.answers[k]), dispatch.answers[k + 1])
        source = self.role_answer.payload.source
        m.d.comb += [
            kinds.select.eq(self.job.payload.kind != JobKind.DATA),
            dispatch.enable.eq(self.enable),
            # Output 3 does not exist: what has another source than the three goes nowhere.
            sort.select.eq(Mux(source <= NOT_SHARED, source, 3)),
        ]
        m.d.comb += merge.i[2].payload.source.eq(NOT_SHARED)
        m.d.comb += self.answer.payload.source.eq(0)
        return m
