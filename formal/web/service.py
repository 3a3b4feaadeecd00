"""Proof of ``Web`` in ``cores/web/service.py``: two sessions, rings of 256 bytes, heads of 60.

The service works on one session's record at a time: for an event, for what its slots report, or
because the session is listed or swept. :class:`~trebuchet.formal.web.service_step.WebStep`
specifies one such piece of work. Proved, by induction, is that each does that, and of every
session, told from the ports of the engine and from the jobs that begin:

- at most 4 descriptors are unanswered, none is empty, and none follows one with ``close``;
- no job begins behind a ``close``, and one at a time; a job looks at 1 byte or more, all of them
  there, from the head on, or on from where the last scan ended, so each byte is scanned once;
- each job ends with one report; an answer is posted once and consumes the bytes of its head, never
  one that has not come; while the service is enabled, FIN without an answer is posted only when
  every byte that came has been looked at, and they are not a whole head;
- a session is released only when nothing of it is unanswered or under way, and it offers its place
  only when nothing is unread either.

Slots, finder, lanes, answers and images are left out: their outputs are the solver's choice, as far
as their data sheets allow: one report for each job that began. The list is one of registers.

Not proved: firmware's part (``desk``); more sessions, other sizes; that partners answer; a reset
while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ...cores.tcp.service import EventKind
from ..kit.inside import Inside
from ..kit.parts import hollow, moves
from ..kit.proof import Mutant, Proof
from ..services.session_view import EVENT, LIST, LISTED, REQUEST, SessionView, open_machine
from ..stream import free, new_harness
from .service_step import LIMITS, LOG2, LOW, MOST, WebStep, idle, more, unread_of

__all__ = ["PROOFS"]


class _Job:
    """What was begun for a session, and not reported."""

    def __init__(self, number):
        name = f"job{number}"
        self.busy, self.length = Signal(name=name), Signal(LOW, name=f"{name}_length")
        self.parse = Signal(name=f"{name}_parse")
        self.sure = Signal(name=f"{name}_sure")  # its bytes have the end, or are all there may be


class WebProof(Elaboratable):
    def __init__(self, cores, rest=False):
        self.rest = rest
        with open_machine(cores):
            self.dut = cores.Web(64, 2, LOG2, rest=rest, limits=LIMITS)
        dut = self.dut
        for part in (
            dut.slots,
            dut.finder,
            *dut.lanes,
            dut.merge,
            dut.answer,
            dut.memory,
            dut.images,
        ):
            hollow(part)

    def elaborate(self, platform):
        m = new_harness()
        dut, machine = self.dut, self.dut.machine
        Inside(m, dut)
        m.d.comb += machine.active.shows.eq(1)
        free(m, dut.sweep, dut.csr.enable, dut.csr.base, dut.mem.cmd.ready, dut.mem.wdata.ready)
        free(m, dut.mem.rdata.valid, dut.mem.rdata.payload, dut.mem.wdone.valid)
        self.view = view = SessionView(m, machine, dut.service, more)
        view.service_rules(Assert)
        self.answer = dut.answer.o.payload
        event = dut.service.event.payload
        self.step = WebStep(
            m,
            view.kind,
            view.start,
            event,
            dut.slots,
            self.answer,
            dut.images,
            dut.csr.enable,
            self.rest,
        )
        self._reports(m)
        self._work(m)
        self._descriptors(m)
        self._sessions(m)
        self._covers(m)
        return m

    def _during(self, kind):
        return self.dut.machine.work & (self.view.kind == kind)

    def _reports(self, m):
        """One report for each job, of as many bytes as it had."""
        dut, slots, view, step = self.dut, self.dut.slots, self.view, self.step
        self.jobs = [_Job(s) for s in range(2)]
        held = Cat(slots.is_scan, slots.report_session, Value.cast(slots.scan), slots.scanned)
        waits, past = Signal(name="report_waits"), Signal(len(held))
        said = Cat(dut.answer.o.valid, Value.cast(self.answer))
        past_said = Signal(len(said))
        m.d.sync += [waits.eq(slots.report & ~slots.reported), past.eq(held), past_said.eq(said)]
        m.d.comb += [
            Assume(~waits | slots.report & (held == past)),
            Assume(~waits | slots.is_scan | (said == past_said)),
            Assume(~slots.report | (slots.report_session < 2)),
            Assume(~slots.report | slots.is_scan | (self.answer.length != 0)),
        ]
        for s, job in enumerate(self.jobs):
            reported = slots.report & (slots.report_session == s)
            fits = (self.answer.bytes != 0) & (self.answer.bytes <= job.length)
            m.d.comb += [
                Assume(~reported | job.busy),
                Assume(~reported | slots.is_scan | job.parse & fits),
                Assume(~reported | ~slots.is_scan | (slots.scanned == job.length)),
                Assume(~reported | ~slots.is_scan | ~(job.parse & (job.sure | slots.scan.found))),
            ]
            with m.If(slots.begin & slots.free & (view.who == s)):
                m.d.sync += [
                    job.busy.eq(1),
                    job.length.eq(slots.new_job.length),
                    job.parse.eq(slots.parse),
                    job.sure.eq(slots.whole | view.start.complete),
                ]
            with m.If(slots.reported & (view.who == s)):
                m.d.sync += job.busy.eq(0)
        with m.If(slots.begin):
            old = view.start
            m.d.comb += [
                Assert(step.begins & self._during(LISTED)),
                Assert(slots.session == view.who),
                Assert((slots.parse == step.parse) & (slots.whole == step.whole)),
                Assert(slots.new_job.base == old.base),
                Assert(slots.new_job.position == (old.head + step.skipped)[:LOG2]),
                Assert(slots.new_job.length == step.length),
                Assert(Value.cast(slots.new_job.state) == step.state),
                # Bytes that are there, one at least, and none that was scanned before.
                Assert((step.length != 0) & (step.skipped + step.length <= unread_of(old))),
                Assert(step.parse | (step.skipped == old.scanned)),
                Assert(step.length <= MOST),
            ]
        m.d.comb += Assert(slots.reported == self._during(REQUEST))
        m.d.comb += Assert(dut.answer.o.ready == (self._during(REQUEST) & step.answered))

    def _work(self, m):
        """Each work takes a cycle, and does what the specification says."""
        dut, machine, view, step = self.dut, self.dut.machine, self.view, self.step
        event, old = dut.service.event.payload, view.start
        m.d.comb += [
            Assert(machine.request == dut.slots.report),
            Assert(~machine.request | (machine.asked == dut.slots.report_session)),
            Assert(machine.sweep == dut.sweep),
        ]
        with m.If(self._during(EVENT) & (event.kind == EventKind.DATA)):
            # More of it has come, and nothing beyond a ring from what was consumed on.
            now = (event.position[:LOW] - old.head[:LOW])[:LOW]
            m.d.comb += Assume((now >= unread_of(old)) & (now <= 1 << LOG2))
        with m.If(machine.work):
            m.d.comb += [
                Assert(machine.done),
                Assert(Value.cast(machine.record) == Value.cast(old)),
                Assert(Value.cast(machine.new) == Value.cast(step.after)),
                Assert(machine.post == step.tx),
                Assert(machine.consume == step.consume),
                Assert(machine.release == step.release),
                Assert(machine.forget == step.forget),
            ]
        with m.If(view.stage == LIST):
            m.d.comb += Assert(machine.idle == idle(view.now))
        requests, timeouts = Signal(32, name="requests"), Signal(32, name="timeouts")
        m.d.sync += requests.eq(requests + (machine.work & step.answers))
        m.d.sync += timeouts.eq(timeouts + (machine.work & step.times_out))
        m.d.comb += Assert((dut.csr.requests == requests) & (dut.csr.timeouts == timeouts))

    def _descriptors(self, m):
        """What is posted; of each session how many are unanswered, and whether one closes."""
        dut, svc, step, view = self.dut, self.dut.service, self.step, self.view
        machine, tx, event = dut.machine, svc.tx.payload, svc.event.payload
        posted = Cat(step.addr, step.tx_length, step.close, step.epoch)
        kept = Signal(len(posted), name="posted")
        with m.If(machine.work):
            m.d.sync += kept.eq(posted)
        with m.If(svc.tx.valid):
            m.d.comb += [
                Assert(Cat(tx.addr, tx.length, tx.close, tx.tag[0]) == kept),
                Assert(tx.push == (tx.length != 0)),
                Assert((tx.length != 0) | tx.close),
            ]
        m.d.comb += [
            Assert(~tx.abort & (tx.tag[1:] == 0)),
            Assert(machine.position == machine.record.head),
        ]
        self.out = [Signal(3, name=f"unanswered{s}") for s in range(2)]
        self.closed = [Signal(name=f"closed{s}") for s in range(2)]
        for s, (out, closed) in enumerate(zip(self.out, self.closed, strict=True)):
            posts = svc.tx.valid & (tx.session == s)
            mine = event.session == s
            sent = mine & (event.kind == EventKind.SENT)
            opens = mine & (event.kind == EventKind.OPEN)
            taken = moves(svc.event)
            m.d.sync += out.eq(out + (posts & svc.tx.ready) - (taken & sent))
            with m.If(posts & svc.tx.ready & tx.close):
                m.d.sync += closed.eq(1)
            with m.If(taken & opens):
                m.d.sync += closed.eq(~event.ok & int(self.rest))
            m.d.comb += [
                Assume(~(svc.event.valid & sent) | (out != 0)),
                Assert(out <= 4),
                Assert(~posts | (out < 4)),
                Assert(~posts | ~closed),
                Assert(~(dut.slots.begin & (view.who == s)) | ~closed & ~self.jobs[s].busy),
            ]
            gives = svc.free.valid & (svc.free.payload.session == s)
            over = svc.free.payload.release
            if self.rest:
                over = over | svc.free.payload.rest
            m.d.comb += Assert(~(gives & over) | (out == 0) & ~posts & ~self.jobs[s].busy)

    def _sessions(self, m):
        """What each record means, in terms of what was begun, posted and answered."""
        view, svc, step = self.view, self.dut.service, self.step
        for s, now in enumerate(view.rows):
            alive, job, out, closed = view.alive[s], self.jobs[s], self.out[s], self.closed[s]
            posts = svc.tx.valid & (svc.tx.payload.session == s)
            at_rest = ~alive | view.said[s]
            open_ = alive & ~now.closing & ~now.dead
            looks = open_ & (now.rest == 0)
            unread = unread_of(now)
            seen = Mux(unread >= MOST, MOST, unread)
            m.d.comb += [
                Assert(~alive | (now.busy == job.busy)),
                Assert(~alive | (now.out == out + posts)),
                Assert(~alive | (now.closing == (closed | (posts & svc.tx.payload.close)))),
                Assert(alive | ~job.busy & (out == 0) & ~posts),
                Assert(~at_rest | idle(now) | now.dead & ~alive),
                Assert(~(alive & now.busy) | ~now.closing & (now.rest == 0) & (now.out < 4)),
                Assert(~(alive & now.closing) | (now.rest == 0)),
                Assert(unread <= 1 << LOG2),
                Assert(~looks | (now.scanned <= seen)),
                Assert(~looks | ~now.complete | (now.scanned != 0)),
                Assert(~(open_ & job.busy) | (job.length != 0) & (job.length <= seen)),
                Assert(~(open_ & job.busy & ~job.parse) | (now.scanned + job.length <= seen)),
                Assert(~(open_ & job.busy & job.parse & ~job.sure) | (now.scanned == 0)),
                Assert(~(open_ & job.busy & ~job.parse) | ~now.complete),
            ]
        released = view.frees & view.releases
        m.d.comb += Assert(~released | view.now.dead & ~view.now.busy & (view.now.out == 0))
        if self.rest:
            m.d.comb += Assert(~self.dut.machine.rests | idle(view.now))
        else:
            m.d.comb += Assert(view.said == 0)
        old = view.start
        with m.If(self.dut.machine.work & step.silent_end):
            m.d.comb += Assert(
                old.eof & ~old.busy & ~old.complete & (old.scanned == unread_of(old))
            )
        with m.If(self.dut.machine.work & step.answers):
            m.d.comb += Assert((self.answer.bytes <= unread_of(old)) & ~old.closing)
        with m.If(self.dut.machine.work & step.scanned & ~old.dead):
            m.d.comb += Assert(old.scanned + self.dut.slots.scanned <= unread_of(old))

    def _covers(self, m):
        svc, step, machine = self.dut.service, self.step, self.dut.machine
        m.d.comb += [
            Cover(machine.work & step.begins),
            Cover(moves(svc.free) & svc.free.payload.release),
            Cover(moves(svc.tx) & (svc.tx.payload.length == 0)),
        ]
        if self.rest:
            m.d.comb += Cover(machine.work & step.swallows)


CORE = "cores.web.service.Web(64, 2 {}, segments of 256 bytes, heads of 60)"
ASSUMES = (
    "one report for each job, as the data sheets of slots and finder say; the engine's contract"
)
NOT_PROVED = (
    "a service with a desk; more sessions, other sizes; that partners answer; a reset while running"
)

PROOFS = (
    Proof(
        name="web_service",
        core=CORE.format("sessions"),
        says="at most 4 descriptors unanswered, none behind a close; each byte scanned once, each "
        "job answered once; FIN only when no whole head is left; release when all is answered",
        module="trebuchet.cores.web.service",
        build=WebProof,
        depth=1,
        cover_depth=22,
        mutants=(Mutant("forgets_the_end", "new.eof.eq(1)", "new.eof.eq(0)"),),
        assumes=ASSUMES,
        not_proved=NOT_PROVED,
    ),
    Proof(
        name="web_service_rest",
        core=CORE.format("places"),
        says="the same; a place is offered when nothing is unread, under way or unanswered, and "
        "OPEN restores where its session left off, and whether it was closed",
        module="trebuchet.cores.web.service",
        build=lambda cores: WebProof(cores, rest=True),
        depth=1,
        cover_depth=22,
        mutants=(
            Mutant("parses_again", "new.closing.eq(~event.ok)", "new.closing.eq(0)"),
            Mutant("begins_at_nothing", "new.head.eq(event.position)", "new.head.eq(0)"),
            Mutant(
                "is_never_done_behind_close",
                "machine.more.eq(self.unread != 0)",
                "machine.more.eq(1)",
                14,
            ),
        ),
        assumes=ASSUMES,
        not_proved=NOT_PROVED,
    ),
)
