"""Proof of ``SmpFramer`` in ``cores/services/framer.py``: two sessions, segments of 256 bytes.

The framer works on one session's record at a time: for an answer of the role, for an event, or
because the session is listed. :class:`Step` is the specification of one such piece of work,
written from the framer's numbered rules: what the record becomes, what job is given, what answer is
written where, what descriptor is posted, what is freed. The proof is that each piece of work
does that, once, for the session whose turn it is and for no other.

Of all sessions together: a job is in the role, or on offer to it, exactly for the sessions whose
record says so; a session is in the list exactly if its record says so, so once at most.

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

from ..cores.roles.contract import JobLayout
from ..cores.services.smp_registers import COUNTED
from ..cores.tcp.service import EventKind, EventLayout
from .inside import Inside, RegisterFifo, patched
from .parts import moves
from .proof import Mutant, Proof
from .smp_step import BASE, BOARD, KINDS, LARGEST, LOG2, ROLES, SLOT, AnyHeader, Step, in_parts
from .stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]


class SmpFramerProof(Elaboratable):
    def __init__(self, cores, board=False):
        self.cores, self.board = cores, board
        self.dut = cores.SmpFramer(
            32, 2, 5, LOG2, BASE, SLOT, KINDS, LARGEST, ROLES, 2, board=board
        )

    def elaborate(self, platform):
        m = new_harness()
        dut, svc, mem = self.dut, self.dut.service, self.dut.mem
        with patched(self.cores, BlockFifo=RegisterFifo, SmpHeaderReader=AnyHeader):
            self.i = Inside(m, dut)
        m.d.comb += dut.active.shows.eq(1)
        free(m, svc.event.valid, svc.event.payload, svc.tx.ready, svc.free.ready)
        free(m, dut.job.ready, dut.answer.valid, dut.answer.payload, dut.sweep)
        free(m, dut.origin, dut.doors)
        if self.board:
            free(m, dut.door)
        free(m, mem.cmd.ready, mem.wdata.ready, mem.wdone.valid, mem.rdata.valid, mem.rdata.payload)
        for port, check in ((svc.event, Assume), (dut.answer, Assume)):
            stream_rules(m, port, check, "event" if port is svc.event else "answer")
        for port, name in ((svc.tx, "tx"), (svc.free, "free"), (dut.job, "job")):
            stream_rules(m, port, Assert, name)
        stream_rules(m, mem.wdata, Assert, "wdata")
        # The port is the event's, and stays with it; any later one is its session's.
        before = Signal.like(dut.origin)
        m.d.sync += before.eq(dut.origin)
        held = Signal()
        m.d.sync += held.eq(svc.event.valid & ~svc.event.ready)
        m.d.comb += Assume(~held | (dut.origin == before))
        self._work(m)
        self._sessions(m)
        self._record(m)
        self._outputs(m)
        self._answer_in_memory(m)
        self._counters(m)
        return m

    def _states(self, *names):
        known = [name for name in names if self.board or name not in ("PART", "GO_ON")]
        return Cat(self.i.state(name) for name in known).any()

    def _work(self, m):
        """Whose record is in work, for what, and what it was; the event or answer taken."""
        dut, i, svc = self.dut, self.i, self.dut.service
        event, answer = svc.event, dut.answer
        self.kind, self.who, self.begun = Signal(2), Signal(), Signal()
        self.old = Signal(dut.state_layout)
        self.event, self.answer = Signal(EventLayout), Signal(answer.payload.shape())
        self.blocked = Signal()  # the last job had not been taken when this one's turn came
        idle, listed, turn = i.state("IDLE"), dut.active.level != 0, dut.sweeper.turn
        swept = idle & ~answer.valid & ~event.valid & (turn | listed)
        m.d.comb += Assert(dut.sweeper.idle == swept)
        m.d.comb += [Assume(event.payload.session < 2), Assume(answer.payload.session < 2)]
        with m.If(idle):
            m.d.sync += [
                self.kind.eq(Mux(answer.valid, 2, event.valid)),
                self.begun.eq(answer.valid | event.valid | listed | turn),
            ]
            with m.If(~answer.valid & ~event.valid & turn):
                m.d.sync += self.kind.eq(3)
            with m.If(answer.valid):
                m.d.sync += self.who.eq(answer.payload.session)
            with m.Elif(event.valid):
                m.d.sync += self.who.eq(event.payload.session)
            with m.Else():
                m.d.sync += self.who.eq(Mux(turn, dut.sweeper.session, dut.active.cells[0]))
        m.d.comb += [
            Assert(i.fsm_bounded()),
            Assert(~idle | ~(answer.ready | event.ready)),
            Assert(event.ready == i.state("EVENT")),
            Assert(answer.ready == i.state("ANSWER")),
        ]
        past_idle = Signal(init=1)
        m.d.sync += past_idle.eq(idle)
        m.d.comb += Assert(i.state("READ") == (past_idle & self.begun & ~idle))
        with m.If(past_idle & idle):
            m.d.comb += Assert(~self.begun)
        peek = dut.read._memory.read_port(domain="comb")
        m.d.comb += peek.addr.eq(self.who)
        with m.If(~idle):
            m.d.comb += [Assert(dut.session == self.who), Assert(i.kind == self.kind)]
        with m.If(i.state("READ")):
            m.d.sync += self.old.eq(peek.data)
            m.d.comb += Assert(Value.cast(dut.read.data) == Value.cast(peek.data))
        with m.Elif(~idle & ~i.state("WAIT")):
            m.d.comb += Assert(Value.cast(peek.data) == Value.cast(self.old))
        with m.If(self._states("READ", "MEASURE", "EVENT", "ANSWER")):
            m.d.sync += [self.event.eq(event.payload), self.answer.eq(answer.payload)]
            with m.If(self.kind == 1):
                m.d.comb += Assert(event.valid & (event.payload.session == self.who))
            with m.If(self.kind == 2):
                m.d.comb += Assert(answer.valid & (answer.payload.session == self.who))
            with m.If((self.kind == 1) | (self.kind == 2)):
                m.d.comb += Assert(
                    ~self._states("READ", "MEASURE") | (past_idle == i.state("READ"))
                )
        with m.If(self._states("MEASURE", "EVENT", "ANSWER")):
            with m.If(self.kind == 1):
                m.d.comb += Assert(Value.cast(self.event) == Value.cast(event.payload))
            with m.If(self.kind == 2):
                m.d.comb += Assert(Value.cast(self.answer) == Value.cast(answer.payload))
        with m.If(i.state("RUN")):
            m.d.sync += self.blocked.eq(dut.job.valid)
        blocked = Mux(i.state("RUN"), dut.job.valid, self.blocked)
        # Doors open and close as they like; what counts is how it is when a message is looked at.
        shut, origin, look = Signal(), Signal(), Signal()
        shown = ~dut.door if self.board else Const(0)
        away = Signal()
        with m.If(i.state("CHECK")):
            m.d.sync += shut.eq(look)
        with m.If(self._states("RUN", "HEADER", "CHECK")):
            m.d.sync += away.eq(shown)
        with m.If(self._states("READ", "MEASURE", "EVENT")):
            m.d.sync += origin.eq(dut.origin)
        now = Mux(i.state("CHECK"), look, shut)
        self.step = step = Step(
            m,
            self.kind,
            self.old,
            self.event,
            self.answer,
            dut.reader.header,
            blocked,
            self.who,
            origin,
            now,
            Mux(self._states("RUN", "HEADER", "CHECK"), shown, away),
        )
        m.d.comb += look.eq(((step.role == 0) & ~dut.doors[0]) | ((step.role == 1) & ~dut.doors[1]))
        with m.If(i.state("WAIT")):
            m.d.comb += Assert(Value.cast(peek.data) == Value.cast(self.step.new))

    def _sessions(self, m):
        """What role, engine and list have of each session."""
        dut, i, svc = self.dut, self.i, self.dut.service
        alive, in_role = Signal(2), Signal(2)
        event, answer, job = svc.event, dut.answer, dut.job
        here = event.payload.session[0]
        opens = event.payload.kind == EventKind.OPEN
        m.d.comb += [
            Assume(~event.valid | (alive.bit_select(here, 1) != opens)),
            Assume(~event.valid | (Value.cast(event.payload.kind) <= 4)),
            Assume(~answer.valid | in_role.bit_select(answer.payload.session[0], 1)),
        ]
        with m.If(moves(event) & opens):
            m.d.sync += alive.bit_select(here, 1).eq(1)
        released = moves(svc.free) & svc.free.payload.release
        with m.If(released):
            m.d.sync += alive.bit_select(svc.free.payload.session[0], 1).eq(0)
        with m.If(moves(answer)):
            m.d.sync += in_role.bit_select(answer.payload.session[0], 1).eq(0)
        with m.If(moves(job)):
            m.d.comb += Assert(~in_role.bit_select(job.payload.session[0], 1))
            m.d.sync += in_role.bit_select(job.payload.session[0], 1).eq(1)
        m.d.comb += Assert(~job.valid | (job.payload.session < 2))
        for s in range(2):
            record = dut.read._memory.read_port(domain="comb")
            working = (self.who == s) & ~i.state("IDLE") & ~i.state("WAIT")
            now = Signal(dut.state_layout, name=f"record{s}")
            listed = sum((dut.active.level > k) & (dut.active.cells[k] == s) for k in range(2))
            m.d.comb += [record.addr.eq(s), now.eq(record.data)]
            with m.If(working & ~i.state("READ")):
                m.d.comb += now.eq(dut.state)
            offered = job.valid & (job.payload.session == s)
            answering = working & (self.kind == 2)
            early = self._states("READ", "MEASURE", "EVENT")
            taken_event = (self.kind != 1) | ~early
            taken = answering & ~self._states("READ", "MEASURE", "ANSWER")
            m.d.comb += [
                Assert(now.busy == (in_role[s] | offered)),
                Assert(~now.closing | ~(now.busy | in_parts(now))),
                Assert(~(in_role[s] & offered)),
                Assert(~taken | ~in_role[s]),
                Assert(alive[s] | ~now.busy),
                Assert(alive[s] | ~now.listed),
                Assert(alive[s] | now.dead | (Value.cast(now) == 0)),
                Assert(alive[s] | ~working | self.step.release | ~taken_event | (self.kind == 3)),
            ]
            popped = working & (self.kind == 0) & self._states("READ", "MEASURE")
            m.d.comb += Assert(listed == (now.listed & ~popped))
            m.d.comb += Assert(~popped | now.listed)
        m.d.comb += Assert(dut.active.level <= 2)

    def _record(self, m):
        """The record in each state of the work, and at its end."""
        dut, i, step = self.dut, self.i, self.step
        now = Value.cast(dut.state)
        expected = (
            (("MEASURE", "EVENT", "ANSWER", "SWEEP"), step.old),
            (("RUN", "HEADER", "CHECK", "LATE", "ERROR", "JOB", "PART"), step.unlisted),
            (("REPLY", "COMMAND", "DATA", "POST", "GO_ON"), step.before_post),
            (("SETTLE", "LIST"), step.settled),
            (("WRITE", "WAIT"), step.new),
        )
        for names, record in expected:
            with m.If(self._states(*names)):
                m.d.comb += Assert(now == Value.cast(record))
        work = ("EVENT", "ANSWER", "SWEEP", "RUN", "HEADER", "CHECK", "LATE", "ERROR", "JOB")
        with m.If(self._states(*work)):
            m.d.comb += Assert(dut.unread == step.unread)
        with m.If(i.state("LIST")):
            m.d.comb += Assert(dut.unread == step.settled_unread)
            m.d.comb += Assert(dut.active.w_en == (step.new.listed & ~step.settled.listed))
        with m.Else():
            m.d.comb += Assert(~dut.active.w_en)
        m.d.comb += Assert(dut.write.en == i.state("WRITE"))
        m.d.comb += Assert(~dut.active.w_en | dut.active.w_rdy)
        with m.If(i.state("WRITE")):
            m.d.comb += [
                Assert(dut.write.addr == self.who),
                Assert(Value.cast(dut.write.data) == Value.cast(step.new)),
            ]
        path = (
            (("EVENT",), self.kind == 1),
            (("ANSWER",), self.kind == 2),
            (("RUN",), self.kind == 0),
            (("SWEEP",), self.kind == 3),
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
        after = self._states("SETTLE", "LIST", "WRITE")
        m.d.comb += Assert(~after | (dut.released == (step.release | step.over)))
        m.d.comb += Assert(after | i.state("IDLE") | i.state("WAIT") | ~dut.released)

    def _outputs(self, m):
        dut, i, step, svc = self.dut, self.i, self.step, self.dut.service
        after = self._states("SETTLE", "LIST", "WRITE", "WAIT")
        for port, due in ((svc.tx, step.tx), (svc.free, step.free)):
            gone = Signal()  # it was taken
            m.d.sync += gone.eq((gone | moves(port)) & after)
            m.d.comb += Assert(port.valid == (after & due & ~gone))
            m.d.comb += Assert(port.payload.session == dut.session)
            m.d.comb += Assert(~port.valid | (dut.to == step.new.port))
        tx, free_ = svc.tx.payload, svc.free.payload
        with m.If(svc.tx.valid):
            m.d.comb += [
                Assert(tx.length == step.tx_length),
                Assert((tx.length == 0) | (tx.addr == step.tx_addr)),
                Assert(tx.push == step.reply),
                Assert(tx.close == step.closes),
                Assert(~tx.abort),
                Assert(tx.tag == step.tx_tag),
            ]
        with m.If(svc.free.valid):
            m.d.comb += Assert(free_.release == step.release)
            m.d.comb += Assert(free_.release | (free_.position == step.new.consumed))
        m.d.comb += [Assert(~tx.abort), Assert(tx.tag[2:] == 0)]
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
        if self.board:  # an answer and IDLE again take a solver minutes more, and are of smp_framer
            m.d.comb += Cover(moves(dut.job) & (dut.job.payload.role == BOARD))
        else:
            seen = Signal(3)
            with m.If(moves(svc.tx) & step.reply):
                m.d.sync += seen[0].eq(1)
                with m.If(self.kind == 2):
                    m.d.sync += seen[1].eq(1)
            m.d.comb += [Cover(seen[0] & i.state("IDLE")), Cover(moves(dut.job))]
        m.d.comb += Cover(i.state("SWEEP"))

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
        with m.If(self._states("SETTLE", "LIST", "WRITE", "WAIT") & step.reply):
            m.d.comb += [Assert(reply.slot == step.slot), Assert(reply.error == step.reply_error)]
        with m.If(self._states("CHECK")):
            m.d.comb += [
                Assert(i.bad_type == step.bad_type),
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
                Assert(reply.error & (reply.id == 0) & (reply.slot == step.slot)),
            ]

    def _counters(self, m):
        i, step, csr = self.i, self.step, self.dut.csr
        posts = i.state("POST")
        lost = i.state("EVENT") & step.lost
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
    Mutant("always_old", "state.old.eq(self.waiting)", "state.old.eq(1)", 12),
    Mutant("sweeps_up_nobody", "released.eq(~self.waiting)", "released.eq(0)", 14),
    Mutant("needs_nothing", "state.need.eq(HEADER_BYTES)]", "state.need.eq(0)]", 8),
    Mutant(
        "lists_the_idle",
        "Mux(due, state.slots != 3, state.eof)",
        "(state.slots != 3) | state.eof",
        8,
    ),
    Mutant(
        "narrow_position",
        "event.payload.position[: self.segment_log2 + 1]",
        "event.payload.position[: self.segment_log2]",
        14,
    ),
    Mutant(
        "port_of_another_event", "state.port.eq(self.origin)", "state.port.eq(~self.origin)", 14
    ),
    Mutant("no_door", "m.Elif(self.choice.open)", "m.Elif(1)", 26),
    Mutant("counts_clean_ends", "~event.payload.ok & inside", "~event.payload.ok", 14),
)

PROOFS = (
    Proof(
        name="smp_framer",
        core="cores.services.framer.SmpFramer(32, 2 sessions, segments of 256 bytes)",
        says="each message is a job or an error, once; answers, descriptors and records are those "
        "of its session; none is listed twice",
        module="trebuchet.cores.services.framer",
        build=SmpFramerProof,
        depth=1,
        cover_depth=40,
        mutants=MUTANTS,
        assumes="a role that answers jobs it has; an engine that opens a number after its release",
        not_proved="the header reader, which has a proof of its own; more sessions; a reset",
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
        mutants=(Mutant("opens_without_role", "self._opens_with_role(m, state)", "pass", 14),),
        assumes="a role that answers jobs it has; an engine that opens a number after its release",
        not_proved="the header reader, which has a proof of its own; more sessions; a reset",
    ),
)
