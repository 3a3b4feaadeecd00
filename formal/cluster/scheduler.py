"""Proof of ``JobScheduler`` in ``cores/cluster/scheduler.py``, the whole of it.

By induction, over its ports: each job that is taken goes, in that cycle and unaltered but for
``source``, to exactly one of this board's role and the callers, or is answered ``STOPPED``;
nobody gets a job that none of the clients, nor the server, has given; who gets one was enabled
when it was first offered; ``DATA`` jobs go to one who
has none of them, other kinds and those of peers to this board's role only; each answer leaves
exactly once, for the side that asked, unaltered but for ``source``; jobs taken and answers given
differ by what is inside. A job for the role sees at most one other go before it, so does an answer.

``source`` tells the role's jobs apart: 0 for a client's ``DATA`` job, 1 for a peer's, 2 for the
rest. The choice among the idle is ``Dispatcher``'s (``dispatcher_*``).

Not proved: a bound in cycles, which depends on role, peers and the consumers of answers; behaviour
under a reset while running; other numbers of peers than two.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.models.status import Status

from ..kit.parts import Opened, moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

DATA = 0  # a job's kind
OURS, PEERS, REST, NOBODY = range(4)  # `source` of the role's jobs
MOST = 3  # jobs of one source in the role, in this proof


def but_source(payload):
    names = [name for name, _ in payload.shape() if name != "source"]
    return Cat(Value.cast(payload[name]) for name in names)


class JobSchedulerProof(Elaboratable):
    def __init__(self, cores, dut):
        self.cores, self.dut = cores, dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.submodules.dut = Opened(self.cores, dut, platform).fragment
        inputs = {"job": dut.job, "role_answer": dut.role_answer, "peers_job": dut.peers_job}
        inputs |= {f"answers{k}": dut.answers[k] for k in range(dut.peers)}
        outputs = {"role_job": dut.role_job, "answer": dut.answer, "peers_answer": dut.peers_answer}
        outputs |= {f"jobs{k}": dut.jobs[k] for k in range(dut.peers)}
        free(m, dut.enable)
        for name, port in inputs.items():
            free(m, port.valid, port.payload)
            stream_rules(m, port, Assume, name)
        for name, port in outputs.items():
            free(m, port.ready)
            stream_rules(m, port, Assert, name)
        m.d.comb += [
            Assume(~dut.job.valid | (dut.job.payload.source == OURS)),
            Assume(~dut.peers_job.valid | (dut.peers_job.payload.source == PEERS)),
        ]
        self.refused = Signal(name="refused")  # a job that none of them was given
        held = self._held(m)
        self._jobs(m, held)
        self._answers(m)
        self._turns(m)
        self._invariants(m, held)
        return m

    def _held(self, m):
        """Who has how many jobs; they answer those they have. Of each source, and the callers."""
        dut, held = self.dut, [Signal(range(MOST + 2), name=f"held{k}") for k in range(3)]
        job, answer = dut.role_job, dut.role_answer
        for source, count in enumerate(held):
            gets = moves(job) & (job.payload.source == source)
            gives = moves(answer) & (answer.payload.source == source)
            m.d.sync += count.eq(count + gets - gives)
            mine = answer.valid & (answer.payload.source == source)
            m.d.comb += [Assume(~mine | (count != 0)), Assume(~gets | (count < MOST))]
        for k in range(dut.peers):
            count = Signal(range(MOST + 2), name=f"caller{k}")
            m.d.sync += count.eq(count + moves(dut.jobs[k]) - moves(dut.answers[k]))
            m.d.comb += Assume(~dut.answers[k].valid | (count != 0))
            held.append(count)
        return held

    def _jobs(self, m, held):
        dut, job, role = self.dut, self.dut.job, self.dut.role_job
        source, refuses = role.payload.source, Signal()
        given = Cat(
            moves(role) & (source == OURS),
            moves(role) & (source == REST),
            *(moves(dut.jobs[k]) for k in range(dut.peers)),
        )
        other_kind = Value.cast(job.payload.kind) != DATA
        m.d.comb += [
            refuses.eq(moves(job) & ~given.any()),
            Assert((given & (given - 1)) == 0),
            Assert(~given.any() | moves(job)),
            Assert(~refuses | (~other_kind & ~self.refused)),
            Assert((moves(role) & (source == PEERS)) == moves(dut.peers_job)),
            Assert(~role.valid | (source <= REST)),
        ]
        with m.If(role.valid):
            asked = Mux(source == PEERS, but_source(dut.peers_job.payload), but_source(job.payload))
            m.d.comb += Assert(but_source(role.payload) == asked)
            with m.If(source != PEERS):
                m.d.comb += [Assert(job.valid), Assert(other_kind == (source == REST))]
        with m.If(role.valid & (source == OURS)):
            m.d.comb += Assert(held[OURS] == 0)
        for k in range(dut.peers):
            with m.If(dut.jobs[k].valid):
                m.d.comb += [
                    Assert(job.valid & ~other_kind),
                    Assert(held[3 + k] == 0),
                    Assert(Value.cast(dut.jobs[k].payload) == Value.cast(job.payload)),
                ]
        # Only while all have been off.
        off = Signal()
        m.d.sync += off.eq(dut.enable == 0)
        m.d.comb += Assert(~refuses | off)
        self.refuses = refuses
        m.d.comb += [
            Cover(moves(role) & (source == REST) & (held[OURS] != 0)),
            Cover(moves(dut.jobs[1]) & (held[3] != 0) & (held[OURS] != 0)),
        ]

    def _answers(self, m):
        dut, out, answer = self.dut, self.dut.answer, self.dut.role_answer
        source = answer.payload.source
        taken = Cat(
            moves(answer) & ((source == OURS) | (source == REST)),
            *(moves(dut.answers[k]) for k in range(dut.peers)),
        )
        own, refused = Signal(), self.refused
        identity = {n: Signal.like(dut.job.payload[n], name=f"its_{n}") for n in ("session", "id")}
        with m.If(self.refuses):
            m.d.sync += [identity[name].eq(dut.job.payload[name]) for name in identity]
        m.d.comb += [
            own.eq(out.valid & ~taken.any()),
            Assert((taken & (taken - 1)) == 0),
            Assert(~taken.any() | moves(out)),
            Assert((moves(answer) & (source == PEERS)) == moves(dut.peers_answer)),
            Assert(~answer.valid | (source < NOBODY) | answer.ready),
            Assert(~out.valid | (out.payload.source == 0)),
        ]
        with m.If(moves(out) & own):
            m.d.comb += [
                Assert(refused),
                Assert(out.payload.status == Status.STOPPED),
                Assert(out.payload.length == 0),
                *(Assert(out.payload[name] == identity[name]) for name in identity),
            ]
        for n, port in enumerate((answer, *(dut.answers[k] for k in range(dut.peers)))):
            with m.If(taken[n]):
                m.d.comb += Assert(but_source(out.payload) == but_source(port.payload))
        with m.If(dut.peers_answer.valid):
            theirs = Value.cast(dut.peers_answer.payload)
            m.d.comb += [Assert(answer.valid), Assert(theirs == Value.cast(answer.payload))]
        m.d.sync += refused.eq((refused & ~(moves(out) & own)) | self.refuses)
        refusals = dut.dispatch.refusals
        m.d.comb += Assert(refusals.valid == refused)  # an invariant
        with m.If(refused):
            m.d.comb += [
                Assert(refusals.payload.status == Status.STOPPED),
                Assert(refusals.payload.length == 0),
                *(Assert(refusals.payload[name] == identity[name]) for name in identity),
            ]
        m.d.comb += [
            Cover(moves(out) & own),
            Cover(moves(answer) & (source == REST)),
            Cover(moves(dut.peers_answer)),
        ]

    def _turns(self, m):
        """Whoever waits for the role, or to answer, sees one other go, and is next."""
        for name, arbiter in (("merge", self.dut.merge), ("merged", self.dut.merged)):
            n = arbiter.n
            chosen, others = Signal(range(n), name=f"{name}_of"), Signal(2, name=f"{name}_others")
            waits = Array(arbiter.i[k].valid for k in range(n))[chosen]
            mine = arbiter.index == chosen
            m.d.comb += [chosen.eq(AnyConst(len(chosen))), Assume(chosen < n)]
            with m.If(~waits | mine):
                m.d.sync += others.eq(0)
            with m.Elif(moves(arbiter.o)):
                m.d.sync += others.eq(others + 1)
            m.d.comb += [
                Assert(others <= 1),
                Assert(~waits | mine | (others == 0)),
                Assert(arbiter.index < n),
                Cover(others == 1),
            ]

    def _invariants(self, m, held):
        dispatch = self.dut.dispatch
        counts = [held[OURS], *held[3:]]
        for k, count in enumerate(counts):
            m.d.comb += [
                Assert(dispatch.counts[k] == count),
                Assert(count <= 1),
                Assert(~dispatch.selected[k] | (count == 0)),
            ]
        selected, last, index = dispatch.selected, dispatch.last, dispatch.arbiter.index
        m.d.comb += [
            Assert((selected & (selected - 1)) == 0),
            Assert((last != 0) & ((last & (last - 1)) == 0)),
            Assert(index <= dispatch.n),
        ]
        # Whoever is offered a job was enabled when it was first offered.
        ports = [dispatch.jobs[k] for k in range(dispatch.n)]
        past, offered = Signal(dispatch.n, init=(1 << dispatch.n) - 1), Signal(dispatch.n)
        m.d.sync += past.eq(self.dut.enable)
        m.d.sync += offered.eq(Cat(port.valid & ~port.ready for port in ports))
        m.d.comb += Assert(dispatch.off == (past == 0))
        role = self.dut.role_job
        at_role = role.valid & (role.payload.source == OURS)
        m.d.comb += Assert(~at_role | ports[0].valid)
        for k, port in enumerate(ports):
            m.d.comb += Assert(~(port.valid | selected[k]) | offered[k] | past[k])
            if k:
                m.d.comb += Assert(port.valid == self.dut.jobs[k - 1].valid)


MUTANTS = (
    Mutant(
        "shares_all_kinds",
        "self.job.payload.kind != JobKind.DATA",
        "self.job.payload.kind == JobKind.CONFIGURE",
    ),
    Mutant("mixes_up_sources", "FROM_PEERS, NOT_SHARED = 1, 2", "FROM_PEERS, NOT_SHARED = 1, 0"),
    Mutant(
        "answers_of_the_rest_to_peers",
        "Mux(source <= NOT_SHARED, source, 3)",
        "source != 0",
    ),
    Mutant("takes_any_source", "Mux(source <= NOT_SHARED, source, 3)", "source"),
    Mutant(
        "turns_the_peers",
        "dispatch.jobs[k + 1], wiring.flipped(self.jobs[k])",
        "dispatch.jobs[self.peers - k], wiring.flipped(self.jobs[k])",
    ),
    Mutant(
        "off_by_one_enable",
        "dispatch.enable.eq(self.enable)",
        "dispatch.enable.eq(self.enable << 1)",
    ),
)

PROOFS = (
    Proof(
        name="cluster_scheduler",
        core="cores.cluster.scheduler.JobScheduler(2)",
        says="a job goes to one who has none, is answered once, to who asked; turns are fair",
        module="trebuchet.cores.cluster.scheduler",
        build=lambda cores: JobSchedulerProof(cores, cores.JobScheduler(2)),
        depth=3,
        cover_depth=12,
        mutants=MUTANTS,
        assumes="the stream rules on the inputs; role and callers answer only jobs they have",
        not_proved="a bound in cycles, which depends on role and peers; a reset while running",
    ),
)
