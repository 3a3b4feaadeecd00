"""Proof of ``RoleDemux`` in ``cores/roles/demux.py``: three roles, jobs of any kind.

Each job that is taken goes to the role that it names, once, unaltered, and to no other; or it is
refused once, at once, with who asked and the reason of the data sheet. Each answer that leaves is a
role's or a refusal, in full. A role that takes no job is in nobody's way: its place is the only
thing that it holds, and an open door means that a job for it is taken in the cycle in which it is
offered.

A job that is refused waits for answers alone.

Not proved: that roles answer; the arbiter's fairness, which has a proof of its own.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Signal, Value

from ...cores.roles.contract import JobKind, JobLayout
from ...models.status import Status
from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]

KINDS = ((), (JobKind.STREAM,), (JobKind.STREAM, JobKind.CONFIGURE))
IDENTITY = ("source", "session", "id")


class RoleDemuxProof(Elaboratable):
    def __init__(self, cores, kinds):
        self.kinds, self.dut = kinds, cores.RoleDemux(kinds)

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        n = len(self.kinds)
        free(m, dut.job.valid, dut.job.payload, dut.answer.ready)
        stream_rules(m, dut.job, Assume, "job")
        stream_rules(m, dut.answer, Assert, "answer")
        for k in range(n):
            free(m, dut.jobs[k].ready, dut.answers[k].valid, dut.answers[k].payload)
            stream_rules(m, dut.jobs[k], Assert, f"job{k}")
            stream_rules(m, dut.answers[k], Assume, f"answer{k}")
        job = dut.job.payload
        kind, taken = Value.cast(job.kind), moves(dut.job)
        m.d.comb += Assume(kind != 3)  # there is none
        there = Cat(job.role == k for k in range(n))
        fits = [kind == 0] * n
        for k, kinds in enumerate(self.kinds):
            for each in kinds:
                fits[k] |= kind == each.value
        goes = [there[k] & fits[k] for k in range(n)]
        refused = ~Cat(goes).any()
        for k in range(n):
            self._role(m, k, goes[k], taken)
        # One answer leaves at a time, and it is one of those that are on offer.
        gone = Signal(n + 1)
        m.d.comb += [gone[k].eq(moves(dut.answers[k])) for k in range(n)]
        m.d.comb += gone[n].eq(taken & refused)
        m.d.comb += Assert(sum(gone) == moves(dut.answer))
        answer = dut.answer.payload
        for k in range(n):
            with m.If(gone[k]):
                m.d.comb += Assert(Value.cast(answer) == Value.cast(dut.answers[k].payload))
        with m.If(gone[n]):
            reason = Signal(8)
            m.d.comb += reason.eq(Status.NO_ROLE)
            with m.If(there.any()):
                m.d.comb += reason.eq(Status.BAD_TYPE)
            m.d.comb += [Assert(answer[name] == job[name]) for name in IDENTITY]
            m.d.comb += [Assert(answer.status == reason), Assert(answer.length == 0)]
        others = Cat(dut.answers[k].valid for k in range(n)).any()
        waits = dut.job.valid & refused & ~others & dut.answer.ready
        within(m, ~waits | taken, 2, "refuse")
        seen = Signal(2)
        m.d.sync += seen.eq(seen | Cat(gone[0], gone[n]))
        m.d.comb += Cover((seen == 3) & dut.answer.valid)
        return m

    def _role(self, m, k, goes, taken):
        """What role k is given, and when."""
        dut = self.dut
        job, out = dut.job, dut.jobs[k]
        if len(self.kinds) == 1:
            m.d.comb += [
                Assert(out.valid == (job.valid & goes)),
                Assert(~goes | (job.ready == out.ready)),
                Assert(~out.valid | (Value.cast(out.payload) == Value.cast(job.payload))),
            ]
            return
        held, full = Signal(JobLayout, name=f"held{k}"), Signal(name=f"full{k}")
        with m.If(out.ready):
            m.d.sync += full.eq(0)
        with m.If(taken & goes):
            m.d.comb += Assert(~full)
            m.d.sync += [full.eq(1), held.eq(job.payload)]
        past_door = Signal(name=f"past_door{k}")
        m.d.sync += past_door.eq(dut.doors[k])
        offered = job.valid & goes
        m.d.comb += [
            Assert(out.valid == full),
            Assert(~full | (Value.cast(out.payload) == Value.cast(held))),
            Assert(~offered | (job.ready == ~full)),  # whatever the other roles do
            Assert(dut.doors[k] == (~full & ~offered)),
            Assert(~(past_door & offered) | job.ready),
        ]


PROOFS = tuple(
    Proof(
        name=name,
        core=f"cores.roles.demux.RoleDemux({len(kinds)} roles)",
        says="each job goes to the role that it names, once and unaltered, or is refused with who "
        "asked; an open door is kept; each answer leaves once",
        module="trebuchet.cores.roles.demux",
        build=lambda cores, kinds=kinds: RoleDemuxProof(cores, kinds),
        depth=2,
        cover_depth=8,
        mutants=mutants,
        assumes="the stream rules of asker and roles; jobs of a kind that there is",
        not_proved="that roles answer",
    )
    for name, kinds, mutants in (
        (
            "role_demux",
            KINDS,
            (
                Mutant("any_kind", "takes = job.payload.kind == JobKind.DATA", "takes = 1"),
                Mutant("door_ajar", "~out.valid & ~offered", "~out.valid"),
                Mutant("swallows", "with m.If(offered & ~out.valid):", "with m.If(0):"),
                Mutant("overwrites", "return ~out.valid", "return 1"),
                Mutant("wrong_role", "job.payload.role == k", "job.payload.role[:1] == k"),
                Mutant("never_absent", "self.refusal.eq(Status.NO_ROLE)", "self.refusal.eq(0)"),
            ),
        ),
        (
            "role_demux_1",
            KINDS[2:],
            (
                Mutant("takes_all", "job.valid & self.to[k]", "job.valid"),
                Mutant("no_asker", "ours.payload[name].eq(job.payload[name])", "ours.valid.eq(1)"),
            ),
        ),
    )
)
