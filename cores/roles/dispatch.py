"""Several instances of one role behind one job and one answer port.

Source: sopc-cloud-platform, 5.2 (task assignment: the next message goes to an idle core).
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...models.status import Status
from ..arbiter import StreamArbiter
from .contract import AnswerLayout, JobLayout

__all__ = ["Dispatcher"]


class Dispatcher(wiring.Component):
    """Hands each job to an idle instance of a role and merges the answers.

    Parameters
    ----------
    n : int
        Number of instances, 1 or more.
    depth : int
        Jobs that an instance may have taken and not answered, 1 or more.

    ===========  ==========  =====================================================================
    member       dir         meaning
    ===========  ==========  =====================================================================
    ``job``      In          stream of :data:`~trebuchet.cores.roles.contract.JobLayout`
    ``answer``   Out         stream of :data:`~trebuchet.cores.roles.contract.AnswerLayout`
    ``jobs``     Out, array  ``n`` job streams, one to each instance
    ``answers``  In, array   ``n`` answer streams, one from each instance
    ``enable``   In          bit k: instance k gets jobs; all set unless driven
    ``busy``     Out         bit k: instance k has a job, or one is being offered to it
    ===========  ==========  =====================================================================

    1. A job goes to exactly one instance, whole and unchanged; an answer comes from exactly one.
    2. Instances without a job go first, then (``depth`` > 1) those with fewer than ``depth``; in
       round robin among equals: an instance that stays enabled and without a job gets one after at
       most ``n - 1`` jobs to others.
    3. A disabled instance gets no further job; one that it is being offered stays offered
       (stream rule 2). To drain an instance clear its bit and wait for its ``busy`` to fall.
    4. While no bit of ``enable`` is set, jobs are answered ``STOPPED`` here.
    5. Answers take turns: an instance's answer waits for at most ``n`` others.

    Latency: none for a job when an instance is free, none for an answer when no other waits, else
    1 cycle; a job that waits for an instance is offered 2 cycles after the answer that frees one.
    Throughput: a job a cycle while several instances have room; the same instance every second
    cycle. Back-pressure: jobs wait while every enabled instance has ``depth``; an answer that is
    not taken holds the others. Reset: forgets all; the instances must be reset with it. Bad input:
    an instance that answers a job it was not given is believed and its count wraps.
    """

    def __init__(self, n, depth=1):
        for what, value in (("Number of instances", n), ("Depth", depth)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{what} must be an integer >= 1, not {value!r}")
        self.n, self.depth = n, depth
        super().__init__(
            {
                "job": In(stream.Signature(JobLayout)),
                "answer": Out(stream.Signature(AnswerLayout)),
                "jobs": Out(stream.Signature(JobLayout)).array(n),
                "answers": In(stream.Signature(AnswerLayout)).array(n),
                "enable": In(n, init=(1 << n) - 1),
                "busy": Out(n),
            }
        )
        # No ports: for proofs.
        self.arbiter = StreamArbiter(AnswerLayout, n + 1)
        self.refusals = self.arbiter.i[n]
        self.counts = [Signal(range(depth + 1), name=f"count{k}") for k in range(n)]
        self.selected = Signal(n)  # one-hot or 0: who gets the next job
        self.last = Signal(n, init=1)  # one-hot: who got the last one
        self.off = Signal()

    # The choice is a register, made anew in each cycle in which no job is on offer, so the job's
    # way is one gate on `valid` and one on `ready`; the payload goes to all instances as it is.
    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        wiring.connect(m, arbiter.o, wiring.flipped(self.answer))
        given = Signal()
        offered = Signal(self.n)
        readies = Cat(self.jobs[k].ready for k in range(self.n))
        refused = self._refuse(m)
        m.d.comb += [
            offered.eq(Mux(self.job.valid, self.selected, 0)),
            given.eq((readies & offered).any()),
            self.job.ready.eq((readies & self.selected).any() | refused),
        ]
        for k, count in enumerate(self.counts):
            jobs, answers = self.jobs[k], self.answers[k]
            wiring.connect(m, wiring.flipped(answers), arbiter.i[k])
            m.d.comb += [
                jobs.payload.eq(self.job.payload),
                jobs.valid.eq(offered[k]),
                self.busy[k].eq((count != 0) | offered[k]),
            ]
            m.d.sync += count.eq(
                count + (jobs.valid & jobs.ready) - (answers.valid & answers.ready)
            )
        with m.If(given):
            m.d.sync += self.last.eq(self.selected)
        with m.If(~offered.any() | given):
            m.d.sync += self.selected.eq(self._choice(m, offered))
        return m

    def _choice(self, m, offered):
        """One-hot: the first of the best after the last one used, which now gets ``offered``."""
        idle = Signal(self.n)
        room = Signal(self.n)
        for k, count in enumerate(self.counts):
            free = self.enable[k] & ~offered[k]
            m.d.comb += [room[k].eq(free & (count != self.depth)), idle[k].eq(free & (count == 0))]
        wanted = Mux(idle.any(), idle, room) if self.depth > 1 else idle
        last = Mux(offered.any(), offered, self.last)
        choice = Signal(self.n)
        for k in range(self.n):
            with m.If(last[k]):
                # Later assignments win: the nearest one.
                for other in reversed([(k + step) % self.n for step in range(1, self.n + 1)]):
                    with m.If(wanted[other]):
                        m.d.comb += choice.eq(1 << other)
        return choice

    def _refuse(self, m):
        """Rule 4; returns whether the waiting job is taken for that."""
        out, taken = self.refusals, Signal()
        m.d.sync += self.off.eq(self.enable == 0)
        m.d.comb += taken.eq(self.job.valid & self.off & ~self.selected.any() & ~out.valid)
        with m.If(out.ready):
            m.d.sync += out.valid.eq(0)
        with m.If(taken):
            m.d.sync += [
                out.valid.eq(1),
                out.payload.status.eq(Status.STOPPED),
                out.payload.length.eq(0),
            ]
            m.d.sync += [
                out.payload[name].eq(self.job.payload[name]) for name in ("source", "session", "id")
            ]
        return taken
