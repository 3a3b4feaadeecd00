"""Proof of ``Dispatcher`` in ``cores/roles/dispatch.py``.

Contract, over public ports: the stream rules on every stream it drives, given those on every
stream it is driven with; each job that is taken goes to exactly one instance, whole, or is answered
``STOPPED``, and nothing else does; an instance gets a job only if it has fewer than ``depth`` and
was enabled when the job was first offered; each answer of an instance leaves exactly once,
unchanged; jobs taken and answers given differ by what is inside. Fairness: an instance that
stays enabled and without a job sees at most ``n - 1`` jobs go to others; an answer that waits
sees at most ``n`` others leave. Progress: a job is offered within 2 cycles of an enabled instance
being idle, or refused within 3 of all being off.

Not proved: a bound in cycles where instances or the consumer of answers withhold ``ready``;
behaviour under a reset while running; other numbers of instances than those named.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.models.status import Status

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]

IDENTITY = ("source", "session", "id")


def _moves(stream):
    return stream.valid & stream.ready


class DispatcherProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        jobs, answers = ([port[k] for k in range(dut.n)] for port in (dut.jobs, dut.answers))
        free(m, dut.job.valid, dut.job.payload, dut.answer.ready, dut.enable)
        stream_rules(m, dut.job, Assume, "job")
        stream_rules(m, dut.answer, Assert, "answer")
        held = [Signal(range(dut.depth + 2), name=f"held{k}") for k in range(dut.n)]
        for k in range(dut.n):
            free(m, jobs[k].ready, answers[k].valid, answers[k].payload)
            stream_rules(m, jobs[k], Assert, f"jobs{k}")
            stream_rules(m, answers[k], Assume, f"answers{k}")
            m.d.sync += held[k].eq(held[k] + _moves(jobs[k]) - _moves(answers[k]))
            m.d.comb += [
                Assume(~answers[k].valid | (held[k] != 0)),
                Assert(held[k] <= dut.depth),
                Assert(held[k] == dut.counts[k]),  # an invariant
                Assert(dut.busy[k] == ((held[k] != 0) | jobs[k].valid)),
            ]
        refused = self._jobs(m, jobs, held)
        self._answers(m, answers, refused)
        self._idle_instance(m, jobs, held)
        self._waiting_answer(m, answers)
        return m

    def _jobs(self, m, jobs, held):
        """One job in, one job out; returns whether the dispatcher holds a refused one."""
        dut = self.dut
        given = Cat(_moves(port) for port in jobs)
        past_enable, begun = Signal(dut.n, init=(1 << dut.n) - 1), Signal()
        refused, refuses = Signal(), Signal()
        identity = {name: Signal.like(dut.job.payload[name]) for name in IDENTITY}
        m.d.comb += refuses.eq(_moves(dut.job) & ~given.any())
        m.d.sync += [past_enable.eq(dut.enable), begun.eq(dut.job.valid & ~dut.job.ready)]
        # One-hot: at most one instance is offered the job, and the job is taken when it is.
        offers = Cat(port.valid for port in jobs)
        m.d.comb += [
            Assert((offers & (offers - 1)) == 0),
            Assert((dut.selected & (dut.selected - 1)) == 0),
            Assert(~given.any() | _moves(dut.job)),
            Assert(~offers.any() | dut.job.valid),
            # Only when everything has been off for a cycle.
            Assert(~refuses | (past_enable == 0)),
        ]
        was_offered = Signal(dut.n)
        m.d.sync += was_offered.eq(offers & ~given)
        for k, port in enumerate(jobs):
            with m.If(port.valid):
                m.d.comb += [
                    Assert(Value.cast(port.payload) == Value.cast(dut.job.payload)),
                    Assert(held[k] < dut.depth),
                    Assert(was_offered[k] | past_enable[k]),
                ]
            # Invariants: whoever is chosen has room, and was enabled or is being offered a job.
            with m.If(dut.selected[k]):
                m.d.comb += [Assert(held[k] < dut.depth), Assert(was_offered[k] | past_enable[k])]
        m.d.comb += [
            Assert((dut.last != 0) & ((dut.last & (dut.last - 1)) == 0)),
            Assert(dut.off == (past_enable == 0)),
        ]
        with m.If(refuses):
            m.d.sync += [identity[name].eq(dut.job.payload[name]) for name in IDENTITY]
        leaves = _moves(dut.answer) & self._from_dispatcher(m, refused, identity)
        m.d.sync += refused.eq((refused & ~leaves) | refuses)
        m.d.comb += Assert(~refuses | ~refused)
        idle = Cat(dut.enable[k] & (held[k] == 0) for k in range(dut.n)).any()
        within(m, ~dut.job.valid | ~idle | offers.any(), 2, "offer")
        within(m, ~dut.job.valid | dut.enable.any() | offers.any() | refused | refuses, 3, "refuse")
        m.d.comb += Cover(refuses & begun)
        return refused

    def _from_dispatcher(self, m, refused, identity):
        """The answer on offer is that of the refused job."""
        out, arbiter = self.dut.answer, self.dut.refusals
        mine = Signal()
        m.d.comb += [mine.eq(arbiter.valid & arbiter.ready), Assert(arbiter.valid == refused)]
        with m.If(arbiter.valid):
            m.d.comb += [
                Assert(arbiter.payload.status == Status.STOPPED),
                Assert(arbiter.payload.length == 0),
                *(Assert(arbiter.payload[name] == identity[name]) for name in IDENTITY),
            ]
        with m.If(mine):
            m.d.comb += Assert(Value.cast(out.payload) == Value.cast(arbiter.payload))
        return mine

    def _answers(self, m, answers, refused):
        """One answer in, the same answer out."""
        dut = self.dut
        taken = Cat(*(_moves(port) for port in answers), _moves(dut.refusals))
        m.d.comb += [
            Assert((taken & (taken - 1)) == 0),
            Assert(taken.any() == _moves(dut.answer)),
        ]
        for port in answers:
            with m.If(_moves(port)):
                m.d.comb += Assert(Value.cast(port.payload) == Value.cast(dut.answer.payload))
        waiting = Cat(port.valid for port in answers).any() | refused
        within(m, ~waiting | dut.answer.valid, 1, "answer")
        seen = Signal(dut.n + 1)
        m.d.sync += seen.eq(seen | taken)
        m.d.comb += Cover(seen.all())

    def _idle_instance(self, m, jobs, held):
        """Rule 2: an arbitrary instance that stays enabled and idle."""
        dut, n = self.dut, self.dut.n
        chosen, others = Signal(range(n), name="chosen"), Signal(range(n + 2), name="others")
        stays, stayed = Signal(), Signal()  # in this cycle, in the last one
        mine = Array(_moves(port) for port in jobs)[chosen]
        idle = dut.enable.bit_select(chosen, 1) & (Array(held)[chosen] == 0)
        m.d.comb += [chosen.eq(AnyConst(len(chosen))), Assume(chosen < n), stays.eq(idle & ~mine)]
        m.d.sync += stayed.eq(stays)
        with m.If(~stays):
            m.d.sync += others.eq(0)
        with m.Elif(Cat(_moves(port) for port in jobs).any()):
            m.d.sync += others.eq(others + 1)
        m.d.comb += [Assert(others <= n - 1), Cover((others == n - 1) & mine)]
        # Invariants: each job to another comes nearer to the chosen one.
        far, next_far = (Signal(range(n + 1), name=name) for name in ("far", "next_far"))
        for k in range(n):
            distance = Mux(chosen > k, 0, n) + chosen - k
            with m.If(dut.last[k]):
                m.d.comb += far.eq(distance)
            with m.If(dut.selected[k]):
                m.d.comb += next_far.eq(distance)
        with m.If(stayed & idle):
            m.d.comb += [Assert(dut.selected != 0), Assert(others + far <= n)]
            m.d.comb += Assert((next_far == n) | (others + next_far <= n - 1))

    def _waiting_answer(self, m, answers):
        """Rule 5: an arbitrary instance whose answer waits."""
        dut, n = self.dut, self.dut.n
        asker, left = Signal(range(n), name="asker"), Signal(range(n + 3), name="left")
        port_valid = Array(port.valid for port in answers)[asker]
        port_ready = Array(port.ready for port in answers)[asker]
        m.d.comb += [asker.eq(AnyConst(len(asker))), Assume(asker < n)]
        with m.If(~port_valid | port_ready):
            m.d.sync += left.eq(0)
        with m.Elif(_moves(dut.answer)):
            m.d.sync += left.eq(left + 1)
        grant = dut.arbiter.index
        distance = Signal(range(n + 1), name="grant_distance")
        m.d.comb += [
            Assert(left <= n),
            Cover(left == min(n, 2)),
            Assert(grant <= n),
            distance.eq(Mux(asker >= grant, 0, n + 1) + asker - grant),
        ]
        with m.If(port_valid):
            m.d.comb += Assert(left + distance <= n)


MUTANTS = (
    Mutant("doubles_a_job", "jobs.valid.eq(offered[k])", "jobs.valid.eq(self.job.valid)"),
    Mutant("loses_the_turn", "Mux(offered.any(), offered, self.last)", "Mux(1, 1, self.last)"),
    Mutant("withdraws", "~offered.any() | given", "~(offered & self.enable).any() | given"),
    Mutant(
        "forgets_refusals",
        "~self.selected.any() & ~out.valid",
        "~self.selected.any()",
    ),
    Mutant("serves_stopped_ones", "free = self.enable[k] & ~offered[k]", "free = ~offered[k]"),
)
OVERFILLS = Mutant("overfills", "count != self.depth", "count <= self.depth")

PROOFS = tuple(
    Proof(
        name=f"dispatcher_{name}",
        core=f"cores.roles.dispatch.Dispatcher({n}, {depth})",
        says="each job goes to one instance and is answered once; turns are fair",
        module="trebuchet.cores.roles.dispatch",
        build=lambda cores, n=n, depth=depth: DispatcherProof(cores.Dispatcher(n, depth)),
        depth=3,
        cover_depth=14,
        mutants=MUTANTS if depth == 1 else (*MUTANTS, OVERFILLS),
        assumes="the stream rules on the inputs; instances answer only jobs they have",
        not_proved="a bound in cycles, which depends on the instances; a reset while running",
    )
    for name, n, depth in (("three", 3, 1), ("two_deep", 2, 2))
)
