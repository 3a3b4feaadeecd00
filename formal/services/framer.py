"""Proof of ``SmpFramer`` in ``cores/services/framer.py``: two sessions, segments of 256 bytes.

The session machine has the framer work on one session's record at a time: for an answer of the
role, for an event, because the session is listed, or in a sweep. :class:`Step` is the specification
of one such piece of work, written from the framer's numbered rules: what the record becomes, what
job is given, what answer is written where, what descriptor is posted, what is freed. The proof is
that each piece of work does that, once, for the session whose turn it is and for no other.

Of all sessions together: a job is in the role, or on offer to it, exactly for the sessions whose
record says so; what the machine asks of a service is asserted, and its own proof (``session.py``)
has the order of work, the list and the records that no work is about. With places: one is offered
only with a record that OPEN restores, and OPEN restores what came, what was consumed, and whether
the session had closed.

The header reader (``smp_header``) is left to the solver, the list is one of registers.

Not proved: more sessions, other widths and sizes; a reset while running.
"""

from amaranth.hdl import (
    Array,
    Assert,
    Assume,
    Cat,
    Const,
    Cover,
    Elaboratable,
    Mux,
    Signal,
    Value,
)

from ...cores.roles.contract import JobLayout
from ...cores.services.smp_registers import COUNTED
from ..kit.inside import Inside, patched
from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .session_view import (
    IDLE,
    LIST,
    LISTED,
    REQUEST,
    SETTLE,
    SWEPT,
    WAIT,
    WRITE,
    SessionView,
    open_machine,
)
from .smp_step import (
    BASE,
    BOARD,
    KINDS,
    LARGEST,
    LOG2,
    ROLES,
    SLOT,
    AnyHeader,
    Step,
    idle,
    in_parts,
    more,
    unread,
)

__all__ = ["PROOFS"]


class SmpFramerProof(Elaboratable):
    def __init__(self, cores, board=False, rest=False):
        self.cores, self.board, self.rest = cores, board, rest
        with open_machine(cores):
            self.dut = cores.SmpFramer(
                32, 2, 5, LOG2, BASE, SLOT, KINDS, LARGEST, ROLES, 2, rest, board
            )

    def elaborate(self, platform):
        m = new_harness()
        dut, mem = self.dut, self.dut.mem
        with patched(self.cores, SmpHeaderReader=AnyHeader):
            self.i = Inside(m, dut)
        m.d.comb += dut.machine.active.shows.eq(1)
        free(m, dut.job.ready, dut.answer.valid, dut.answer.payload, dut.sweep)
        free(m, dut.origin, dut.doors, dut.csr.lease, dut.csr.guard)
        if self.board:
            free(m, dut.door)
        free(m, mem.cmd.ready, mem.wdata.ready, mem.wdone.valid, mem.rdata.valid, mem.rdata.payload)
        stream_rules(m, dut.answer, Assume, "answer")
        stream_rules(m, dut.job, Assert, "job")
        stream_rules(m, mem.wdata, Assert, "wdata")
        self._work(m)
        self._sessions(m)
        self._record(m)
        self._outputs(m)
        self._answer_in_memory(m)
        self._fence(m)
        self._counters(m)
        return m

    def _fence(self, m):
        """With the guard on no job is made of a message of another epoch, nor the first of parts.

        Said by the header and the registers alone, as they were when the former was complete: two
        cycles before its job is made.
        """
        dut, header = self.dut, self.dut.reader.header
        lease, guard = [dut.csr.lease], [dut.csr.guard]
        for values in (lease, guard):
            for _ in range(2):
                past = Signal.like(values[-1])
                m.d.sync += past.eq(values[-1])
                values.append(past)
        begins = self.i.state("JOB")
        if self.board:
            begins |= self.i.state("PART") & ~in_parts(self.step.old)
        fits = (header[16:32] == lease[2]) & (lease[2] != 0)
        m.d.comb += Assert(~begins | ~guard[2] | fits)
        for state, k in ((self.i.state("CHECK"), 1), (begins, 2)):
            kept = (self.lease == lease[k]) & (self.guard == guard[k])
            m.d.comb += Assert(~state | kept)

    def _states(self, *names):
        known = [name for name in names if self.board or name not in ("PART", "GO_ON")]
        return Cat(self.i.state(name) for name in known).any()

    def _work(self, m):
        """What the work is for; the answer, doors and job on offer as it has found them."""
        dut, i, machine = self.dut, self.i, self.dut.machine
        answer = dut.answer
        self.view = view = SessionView(m, machine, dut.service, more)
        view.service_rules(Assert)
        self.kind, self.who = view.kind, view.who
        self.begins = begins = machine.work & i.state("BEGIN")
        blocked = Signal()  # the last job had not been taken when this one's turn came
        kept = Signal.like(answer.payload)
        with m.If(begins):
            m.d.sync += [blocked.eq(dut.job.valid), kept.eq(answer.payload)]
        self.answer = Signal.like(answer.payload, name="the_answer")
        m.d.comb += Value.cast(self.answer).eq(
            Mux(begins, Value.cast(answer.payload), Value.cast(kept))
        )
        # Doors open and close as they like; what counts is how it is when a message is looked at.
        shut, away, look = Signal(), Signal(), Signal()
        shown = ~dut.door if self.board else Const(0)
        looks = begins | self._states("HEADER", "CHECK")
        with m.If(i.state("CHECK")):
            m.d.sync += shut.eq(look)
        with m.If(looks):
            m.d.sync += away.eq(shown)
        # The registers change as they like; what counts is how they are when a header is complete.
        self.lease, self.guard = Signal.like(dut.csr.lease), Signal()
        with m.If(i.state("HEADER")):
            m.d.sync += [self.lease.eq(dut.csr.lease), self.guard.eq(dut.csr.guard)]
        self.step = step = Step(
            m,
            self.kind,
            view.start,
            dut.service.event.payload,
            self.answer,
            dut.reader.header,
            Mux(begins, dut.job.valid, blocked),
            self.who,
            dut.origin,
            Mux(i.state("CHECK"), look, shut),
            Mux(looks, shown, away),
            self.rest,
            self.lease,
            self.guard,
        )
        m.d.comb += look.eq(((step.role == 0) & ~dut.doors[0]) | ((step.role == 1) & ~dut.doors[1]))
        m.d.comb += [
            Assert(i.fsm_bounded()),
            Assert(i.state("BEGIN") | machine.work),
            Assert(begins == view.first),
            Assert(machine.request == answer.valid),
            Assert(machine.asked == answer.payload.session),
            Assert(machine.sweep == dut.sweep),
            Assert(answer.ready == (begins & (self.kind == REQUEST))),
        ]

    def _sessions(self, m):
        """What role and engine have of each session, and what those that are over left."""
        dut, view = self.dut, self.view
        in_role = Signal(2)
        answer, job = dut.answer, dut.job
        m.d.comb += [
            Assume(answer.payload.session < 2),
            Assume(~answer.valid | in_role.bit_select(answer.payload.session[0], 1)),
        ]
        with m.If(moves(answer)):
            m.d.sync += in_role.bit_select(answer.payload.session[0], 1).eq(0)
        with m.If(moves(job)):
            m.d.comb += Assert(~in_role.bit_select(job.payload.session[0], 1))
            m.d.sync += in_role.bit_select(job.payload.session[0], 1).eq(1)
        m.d.comb += Assert(~job.valid | (job.payload.session < 2))
        for s, now in enumerate(view.rows):
            offered = job.valid & (job.payload.session == s)
            left = ~view.alive[s] | view.said[s]
            over = now.dead | idle(now) | (~view.said[s] & (Value.cast(now) == 0))
            if self.board:  # OPEN's work begins with 0, and gives the role of the port
                over |= Value.cast(now) == 0
            m.d.comb += [
                Assert(now.busy == (in_role[s] | offered)),
                Assert(~now.closing | ~(now.busy | in_parts(now))),
                Assert(~(in_role[s] & offered)),
                Assert(~left | ~now.busy & over),
            ]
        released = view.frees & view.releases
        m.d.comb += Assert(~released | view.now.dead & ~view.now.busy)
        if self.rest:
            m.d.comb += Assert(~dut.machine.rests | idle(view.now))

    def _record(self, m):
        """The record in each state of the work, and at its end."""
        dut, i, step, machine, view = self.dut, self.i, self.step, self.dut.machine, self.view
        now = Value.cast(machine.record)
        ahead = ("HEADER", "CHECK", "LATE", "ERROR", "JOB", "PART")
        expected = (
            (self.begins | self._states(*ahead), step.old),
            (self._states("REPLY", "COMMAND", "DATA", "POST", "GO_ON"), step.before_post),
        )
        for while_, record in expected:
            with m.If(while_):
                m.d.comb += Assert(now == Value.cast(record))
        with m.If(self.begins | self._states("HEADER", "CHECK", "LATE", "ERROR", "JOB")):
            m.d.comb += Assert(dut.unread == step.unread)
        with m.If(machine.work & machine.done):
            m.d.comb += [
                Assert(Value.cast(machine.new) == Value.cast(step.settled)),
                Assert(machine.post == step.tx),
                Assert((machine.consume | machine.release) == step.free),
                Assert(machine.release == step.release),
                Assert(machine.forget == step.over),
            ]
        with m.If(view.stage == LIST):
            m.d.comb += Assert(dut.unread == unread(view.now))
            if self.rest:
                m.d.comb += Assert(machine.idle == idle(view.now))
        path = (
            (("LATE",), step.tardy),
            (("HEADER", "CHECK"), step.looks),
            (("ERROR",), step.error),
            (("JOB",), step.job),
            (("PART",), step.board_job),
            (("GO_ON",), step.goes_on & ~step.old.dead),
            (("REPLY", "COMMAND", "DATA", "POST"), step.reply),
        )
        for names, condition in path:
            with m.If(self._states(*names)):
                m.d.comb += Assert(condition)
        m.d.comb += [
            Assert(dut.reader.busy == i.state("HEADER")),
            Assert(~dut.reader.start | (dut.reader.base == step.old.base)),
            Assert(
                ~(dut.reader.start | dut.reader.busy)
                | (
                    (dut.reader.offset == step.old.consumed[:LOG2])
                    & (dut.reader.base == step.old.base)
                )
            ),
        ]

    def _outputs(self, m):
        dut, step, svc, view = self.dut, self.step, self.dut.service, self.view
        tx, machine = svc.tx.payload, self.dut.machine
        for port in (svc.tx, svc.free):
            m.d.comb += Assert(~port.valid | (dut.to == view.now.port))
        with m.If(svc.tx.valid):
            m.d.comb += [
                Assert(step.tx),
                Assert(tx.length == step.tx_length),
                Assert((tx.length == 0) | (tx.addr == step.tx_addr)),
                Assert(tx.push == step.reply),
                Assert(tx.close == step.closes),
                Assert(tx.tag == step.tx_tag),
            ]
        m.d.comb += [Assert(~tx.abort), Assert(tx.tag[2:] == 0)]
        m.d.comb += Assert(machine.position == machine.record.consumed)
        # Nothing else happens before the last item's outputs are taken.
        given, owed = Signal(JobLayout), Signal()
        with m.If(self._states("JOB", "PART")):
            m.d.comb += Assert(~dut.job.valid)
            m.d.sync += [given.eq(step.job_payload), owed.eq(1)]
        with m.Elif(dut.job.ready):
            m.d.sync += owed.eq(0)
        m.d.comb += [
            Assert(dut.job.valid == owed),
            Assert(~owed | (Value.cast(dut.job.payload) == Value.cast(given))),
        ]
        with m.If(self._states("HEADER", "CHECK", "ERROR", "JOB", "PART") & ~step.tardy):
            m.d.comb += Assert(~dut.job.valid)
        self._covers(m)

    def _covers(self, m):
        dut, step, svc, view = self.dut, self.step, self.dut.service, self.view
        m.d.comb += Cover(view.first & (self.kind == SWEPT))
        if self.board:  # an answer and IDLE again take a solver minutes more, and are of smp_framer
            m.d.comb += Cover(moves(dut.job) & (dut.job.payload.role == BOARD))
            return
        m.d.comb += Cover(moves(dut.job))
        if self.rest:  # a place is given back when what came after FIN is consumed, and taken again
            again = Signal()
            with m.If(view.given & (self.kind == LISTED)):
                m.d.sync += again.eq(1)
            m.d.comb += Cover(again & view.first & view.opening)
            return
        replied = Signal()
        with m.If(moves(svc.tx) & step.reply):
            m.d.sync += replied.eq(1)
        m.d.comb += Cover(replied & (view.stage == IDLE))

    def _answer_in_memory(self, m):
        """The sixteen bytes before a result, or an answer without one, and where they go."""
        dut, i, step, mem = self.dut, self.i, self.step, self.dut.mem
        sent = Signal(3)
        with m.If(i.state("COMMAND")):
            m.d.comb += [
                Assert(mem.cmd.valid & mem.cmd.payload.write),
                Assert(mem.cmd.payload.addr == step.slot_addr),
                Assert((mem.cmd.payload.beats == 3) & (mem.cmd.payload.tag == 0)),
            ]
            m.d.sync += sent.eq(0)
        with m.Else():
            m.d.comb += [
                Assert(mem.cmd.valid == dut.reader.mem_cmd.valid),
                Assert(Value.cast(mem.cmd.payload) == Value.cast(dut.reader.mem_cmd.payload)),
            ]
        m.d.comb += Assert(~dut.reader.mem_cmd.valid | (mem.cmd.ready == dut.reader.mem_cmd.ready))
        with m.If(moves(mem.wdata)):
            m.d.sync += sent.eq(sent + 1)
        words = Array(step.words)
        with m.If(mem.wdata.valid):
            m.d.comb += [
                Assert(i.state("DATA") & (sent < 4)),
                Assert(mem.wdata.payload.data == words[sent[:2]]),
                Assert(mem.wdata.payload.strb == 0xF),
                Assert(mem.wdata.payload.last == (sent == 3)),
            ]
        with m.If(i.state("DATA")):
            m.d.comb += [
                Assert(i.at == sent),
                Assert(sent <= 4),
                Assume(~mem.wdone.valid | (sent == 4)),
            ]
        with m.If(i.state("COMMAND")):
            m.d.comb += Assert(i.at == 0)
        reply = dut.reply
        m.d.comb += [
            Assert(mem.wdone.ready),
            Assert(dut.reader.mem_rdata.valid == mem.rdata.valid),
        ]
        with m.If(self._states("REPLY", "COMMAND", "DATA", "POST")):
            m.d.comb += [
                Assert(reply.error == step.reply_error),
                Assert(reply.fatal == step.fatal),
                Assert(~reply.error | (reply.status == step.status)),
                Assert(reply.id == step.reply_id),
                Assert(reply.error | (reply.length == self.answer.length)),
                Assert(reply.slot == step.slot),
                Assert(dut.total == step.total),
            ]
        after = self.view.at(SETTLE, LIST, WRITE, WAIT)
        with m.If(after & step.reply):
            m.d.comb += [Assert(reply.slot == step.slot), Assert(reply.error == step.reply_error)]
        with m.If(self._states("CHECK")):
            m.d.comb += [
                Assert(i.bad_type == step.bad_type),
                Assert(i.stale == step.stale),
                Assert(i.too_large == step.too_large),
                Assert(i.short == step.short),
                Assert(dut.total == (step.size + 8)[: LOG2 + 1]),
            ]
            if self.board:
                m.d.comb += Assert(i.to_board == step.to_board)
        with m.If(i.state("ERROR")):
            m.d.comb += [Assert(reply.fatal == step.fatal), Assert(reply.status == step.status)]
            m.d.comb += Assert(step.fatal | (dut.total == step.total))
        with m.If(i.state("JOB")):
            m.d.comb += Assert(dut.total == (step.size + 8)[: LOG2 + 1])
        with m.If(i.state("PART") if self.board else Const(0)):
            m.d.comb += Assert(dut.total == step.part_total)
        with m.If(i.state("GO_ON") if self.board else Const(0)):
            m.d.comb += [Assert(dut.total == step.old.need)]
            m.d.comb += Assert(dut.reply.length == self.answer.length)
        with m.If(self._states("CHECK", "ERROR", "JOB")):
            m.d.comb += [
                Assert(i.slot == step.slot),
                Assert(reply.error & (reply.slot == step.slot)),
                Assert(reply.id == Mux(i.state("ERROR"), step.reply_id, 0)),
            ]

    def _counters(self, m):
        i, step, csr = self.i, self.step, self.dut.csr
        posts = i.state("POST")
        lost = self.begins & step.lost
        counted = [("messages", 32, i.state("JOB")), ("aborted", 16, lost)]
        counted.append(("answers", 32, posts & ~step.reply_error))
        for status in COUNTED:
            hit = posts & step.reply_error & (step.status == status)
            counted.append((status.name.lower(), 16, hit))
        for name, width, event in counted:
            count = Signal(width, name=f"count_{name}")
            m.d.sync += count.eq(count + event)
            m.d.comb += Assert(getattr(csr, name) == count)


MUTANTS = (
    Mutant("always_old", "new.old.eq(self.waiting)", "new.old.eq(1)", 12),
    Mutant(
        "sweeps_up_nobody", "self.machine.forget.eq(~self.waiting)", "self.machine.forget.eq(0)", 14
    ),
    Mutant("needs_nothing", "new.need.eq(HEADER_BYTES)", "new.need.eq(0)", 10),
    Mutant(
        "lists_the_idle",
        "Mux(due, state.slots != 3, state.eof)",
        "(state.slots != 3) | state.eof",
        10,
    ),
    Mutant(
        "narrow_position",
        "[new.base.eq(event.base[self.segment_log2 :]), "
        "new.latest.eq(event.position[: self.segment_log2 + 1])]",
        "[new.base.eq(event.base[self.segment_log2 :]), "
        "new.latest.eq(event.position[: self.segment_log2])]",
        14,
    ),
    Mutant("port_of_another_event", "new.port.eq(self.origin)", "new.port.eq(~self.origin)", 14),
    Mutant("no_door", "m.Elif(self.choice.open)", "m.Elif(1)", 26),
    Mutant("counts_clean_ends", "~event.ok & inside", "~event.ok", 14),
    Mutant(
        "guards_data_only",
        "stale.eq(is_stale(epoch, self.csr.lease, self.csr.guard))",
        "stale.eq(is_stale(epoch, self.csr.lease, self.csr.guard) "
        "& (self.reader.header[:8] == TYPE_DATA))",
        23,
    ),
)

ASSUMES = "a role that answers jobs it has; an engine that opens a number after its release"
NOT_PROVED = "the header reader, which has a proof of its own; more sessions; a reset"

PROOFS = (
    Proof(
        name="smp_framer",
        core="cores.services.framer.SmpFramer(32, 2 sessions, segments of 256 bytes)",
        says="each message is a job or an error, once; answers, descriptors and records are those "
        "of its session; none is listed twice; with the guard on no message of another epoch is a "
        "job",
        module="trebuchet.cores.services.framer",
        build=SmpFramerProof,
        depth=1,
        cover_depth=40,
        mutants=MUTANTS,
        assumes=ASSUMES,
        not_proved=NOT_PROVED,
    ),
    Proof(
        name="smp_framer_board",
        core="cores.services.framer.SmpFramer(32, 2 sessions, segments of 256 bytes, board)",
        says="as smp_framer; a configuration that names no role goes to the board in the parts it "
        "asks for, and no session is released in the middle of one",
        module="trebuchet.cores.services.framer",
        build=lambda cores: SmpFramerProof(cores, board=True),
        depth=1,
        cover_depth=28,
        mutants=(
            Mutant("opens_without_role", "self._opens_with_role(m, new)", "pass", 14),
            Mutant("guards_no_parts", "m.If(to_board & ~stale)", "m.If(to_board)", 24),
        ),
        assumes=ASSUMES,
        not_proved=NOT_PROVED,
    ),
    Proof(
        name="smp_framer_rest",
        core="cores.services.framer.SmpFramer(32, 2 places, segments of 256 bytes)",
        says="as smp_framer; a place is offered when nothing is unread, at work or unanswered and "
        "no record has begun, and OPEN restores what its session left",
        module="trebuchet.cores.services.framer",
        build=lambda cores: SmpFramerProof(cores, rest=True),
        depth=1,
        cover_depth=40,
        mutants=(
            Mutant("rests_unread", "state.eof | (self.unread != 0)", "state.eof", 16),
            Mutant(
                "begins_at_nothing", "new.consumed.eq(event.position)", "new.consumed.eq(0)", 12
            ),
            Mutant("closes_again", "new.closing.eq(~event.ok)", "new.closing.eq(0)", 12),
        ),
        assumes=ASSUMES + " or rest",
        not_proved=NOT_PROVED,
    ),
)
