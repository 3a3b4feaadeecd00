"""The SMP framer: cuts a TCP connection's bytes into messages and has roles work on them.

Source: distributed-fpga-framework, 3.2 (Serial Messaging Protocol). ``models/smp_framing.py`` is
the naive model of the decisions made here.
"""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from trebuchet.models.epoch import EPOCH_BITS
from trebuchet.models.smp_framing import TYPE_CONFIGURATION, TYPE_DATA
from trebuchet.models.status import Status

from ..csr import CsrSignature
from ..memory import ADDR_WIDTH, MemorySignature
from ..roles.contract import NO_ROLE, AnswerLayout, JobKind, JobLayout, check_kinds
from ..stream import check_data_width
from ..tcp.service import LENGTH_WIDTH, POSITION_WIDTH, EventKind, ServiceSignature
from .discard import check_sessions
from .echo import check_segment_log2
from .session import SessionMachine, Work
from .smp_header import RoleChoice, SmpHeaderReader
from .smp_jobs import SmpJobs
from .smp_parts import SmpParts
from .smp_registers import (
    BOARD,
    HEADER_BYTES,
    SMP_BLOCK,
    TYPES,
    check_largest,
    check_roles,
    check_slots,
    check_source,
    is_stale,
)
from .smp_reply import SmpReply

__all__ = ["SMP_BLOCK", "SmpFramer"]

#: Descriptor tag of a FIN without data; 0 and 1 are the result slots.
FIN_TAG = 2


class SmpFramer(SmpJobs, SmpParts, SmpReply, wiring.Component):
    """Service for SMP messages: one job a message, the operand where it lies in the receive ring.

    Parameters
    ----------
    width : int
        Data path of the memory port, in bits.
    sessions : int
        Session numbers 0 to ``sessions - 1`` may come.
    source : int
        ``source`` of the jobs.
    segment_log2 : int
        log2 of the bytes of a segment of the receive pool; a whole message must fit one.
    slots_base : int
        Address of the result slots, a multiple of 16: two a session, ``2 * sessions *
        slot_bytes`` bytes.
    slot_bytes : int
        Bytes of a result slot, a power of two; a result may have 16 fewer.
    kinds : tuple of JobKind
        Kinds of job the role takes besides ``DATA``; each has a message type of its own.
    largest : int or None
        Bytes of the largest message with its header; None: a segment. Not more than are certain
        to come unread (:attr:`~trebuchet.cores.tcp.config.TcpConfig.unread`).
    roles : tuple of int
        For each of its TCP ports the number of the role that messages go to which name none.
    count : int
        Roles that there are, by which it heeds ``doors``.
    rest : bool
        Sessions are places (:mod:`~trebuchet.cores.tcp.service`), 9. below.
    board : bool
        Configuration messages that name no role go to the board's firmware, 10. below.

    ===========  ====  ==========================================================================
    member       dir   meaning
    ===========  ====  ==========================================================================
    ``service``  In    :class:`~trebuchet.cores.tcp.service.ServiceSignature`
    ``job``      Out   stream of :data:`~trebuchet.cores.roles.contract.JobLayout`
    ``answer``   In    stream of :data:`~trebuchet.cores.roles.contract.AnswerLayout`
    ``mem``      Out   memory port
    ``csr``      In    :data:`SMP_BLOCK`
    ``sweep``    In    strobe: a message that was incomplete at the last one, too, is late
    ``origin``   In    with several ports: which one the event on offer is of
    ``to``       Out   likewise: the port of what ``service.tx`` and ``service.free`` offer
    ``doors``    In    with several roles: bit k: a job for role k is taken at once
    ``door``     In    with ``board``: a job for it is taken at once
    ===========  ====  ==========================================================================

    Behaviour, for each connection:

    1. A data message (type 3) of at least 4 bytes becomes one job when all of it is there and one
       of the session's two result slots is free. The next message becomes a job when this one is
       answered. So do a stream message (type 4) and a configuration message (type 1) if ``kinds``
       has theirs; otherwise they are of another type (4.). The first of the header's reserved bytes
       names the role: 0, as the paper has it, the port's; n role n - 1. While that role's door is
       closed other connections have their turn.
    2. The result goes back as a data message with the same ID; the framer writes its header into
       the 16 bytes before it. Any status but ``OK`` goes back as a type 2 message with a payload
       of 8 bytes: status, three zero bytes, ID. So does ``OK`` of a configuration message.
    3. A message of fewer than 4 bytes is answered ``BAD_LENGTH`` (ID 0) and skipped.
    4. Another type, or a message larger than ``largest``, is answered ``BAD_TYPE`` or
       ``TOO_LARGE`` (ID 0; ``STALE`` if it is, 11.) and the connection is closed; what still comes
       is consumed and ignored.
    5. A message whose rest does not come until the second sweep is answered ``TIMED_OUT`` (ID 0)
       and the connection is closed, as in 4. While a job of the connection is at work nothing of it
       is late; nor is a connection on which nothing of a message has come.
    6. After the peer's FIN the complete messages are answered, then the connection is closed.
    7. A stream message's job has ``first`` = 1 if none of the connection's stream messages was
       answered ``OK`` before, or the latest was answered with another status.
    8. A session that is over is released when the role has answered its job and the engine every
       descriptor: until then the role may read the ring and the engine the slot.
    9. With ``rest`` a connection gives its place, and with it its result slots, back when all that
       came is consumed and answered, and every answer is acknowledged; not while a part of a
       message has come, nor after a stream message that was answered ``OK``, since ``first`` of the
       next one and the role's scratch memory depend on it. A job's ``session`` is the place.
    10. With ``board`` a configuration message whose header names no role goes in parts to the role
        :data:`~.smp_registers.BOARD` (:mod:`~.smp_board`): its header, then as many bytes as each
        answer asks for; neither its length nor its contents matter here. Nothing is sent but the
        last answer, a type 2 message with ID 0. When the rest does not come, a job without bytes
        says why: time (5.), the peer's FIN, or the connection's end; the session is not released
        before the answer to it. An answer may give the connection another role than the port's.
    11. While ``guard`` is 1 a message is *stale* unless its epoch, the second and third reserved
        byte, is that of ``lease``, and not 0. A stale message becomes no job, and none of its parts
        does. It is answered ``STALE``, with its ID (0 of one to the board), and skipped when all of
        it is there. Errors of 3. and 5. come before.

    Race: the CPU writes ``lease`` or ``guard`` at any time, each in one cycle. A message is judged
    by the values of one cycle, that in which its header is complete, and its job, if it becomes
    one, is offered three cycles later. If it has to wait, for its rest or for a door, its header is
    read and judged again. So the last job by the old values is offered two cycles after the new
    ones hold, before the CPU can have read the register back. Jobs offered until then are worked
    on and answered as usual; the firmware refuses what is left of a message in parts.

    Bad input: 2 to 6. A job's session may vanish; the role still answers, and nothing is sent.
    Throughput: about 60 cycles and two memory latencies a message, with the role working on
    other sessions meanwhile; 9 cycles an event. Back-pressure: while ``tx``, ``free`` or the
    memory port waits nothing is taken (the contract allows it); a role that takes no job stops
    neither events nor answers. Reset: forgets every session and job; role and engine must be
    reset with it.
    """

    def __init__(
        self,
        width,
        sessions,
        source,
        segment_log2,
        slots_base,
        slot_bytes,
        kinds=(),
        largest=None,
        roles=(0,),
        count=1,
        rest=False,
        board=False,
    ):
        self.rest, self.board = rest, board
        self.width = check_data_width(width)
        self.sessions = check_sessions(sessions)
        self.segment_log2 = check_segment_log2(segment_log2)
        self.largest = check_largest(largest, 1 << segment_log2)
        self.source, self.kinds = check_source(source), check_kinds(kinds)
        check_slots(slots_base, slot_bytes)
        self.slots_base, self.slot_bytes = slots_base, slot_bytes
        self.roles, self.count = check_roles(roles), count
        self.choice = RoleChoice(count, BOARD - 1 if board else NO_ROLE - 1)
        ports = len(self.roles)
        super().__init__(
            {
                "service": In(ServiceSignature(rest)),
                "job": Out(stream.Signature(JobLayout)),
                "answer": In(stream.Signature(AnswerLayout)),
                "mem": Out(MemorySignature(width)),
                "csr": In(CsrSignature(SMP_BLOCK)),
                "sweep": In(1),
                **({"origin": In(range(ports)), "to": Out(range(ports))} if ports > 1 else {}),
                **({"doors": In(count)} if count > 1 else {}),
                **({"door": In(1)} if board else {}),
            }
        )
        extra = {"port": range(ports)} if ports > 1 else {}
        if JobKind.STREAM in kinds:
            extra |= {"job_stream": 1, "going": 1}  # the job's kind; a record has begun
        if JobKind.CONFIGURE in kinds:
            extra["job_configure"] = 1
        extra |= self._board_fields()
        self.state_layout = data.StructLayout(
            {
                **extra,
                "base": ADDR_WIDTH - segment_log2,
                "consumed": POSITION_WIDTH,
                "latest": segment_log2 + 1,  # low bits of the position after the newest byte
                "need": segment_log2 + 1,  # unread bytes with which a look is worth while
                "slots": 2,  # result slots in use
                "job_slot": 1,
                "busy": 1,  # a job is in the role
                "fin_out": 1,  # a FIN without data is unanswered
                "eof": 1,
                "closing": 1,  # FIN was posted; what comes is ignored
                "dead": 1,  # CLOSED has come
                "old": 1,  # the last sweep found its message incomplete
                "late": 1,  # two sweeps in a row did
            }
        )
        self.machine = SessionMachine(self.state_layout, sessions, rest, lag=True)

    # The session machine has one record worked on at a time: for an answer of the role, an event, a
    # sweep, or because the session is listed. The work's first cycle is state BEGIN of a second
    # machine, which goes on with what takes longer: a header to read, an answer to write.
    def elaborate(self, platform):
        m = Module()
        m.submodules.machine = machine = self.machine
        m.submodules.reader = self.reader = SmpHeaderReader(self.width, self.segment_log2)
        m.submodules.choice = self.choice
        self.reply = Signal(
            data.StructLayout(
                {"error": 1, "fatal": 1, "status": 8, "id": 32, "length": LENGTH_WIDTH, "slot": 1}
            )
        )
        self.total = Signal(self.segment_log2 + 1)  # bytes of the message at hand
        state, new = machine.record, machine.new
        self._measure(m, state)
        self._connect(m, state)
        self._connect_choice(m, state)
        with m.If(self.job.ready):
            m.d.sync += self.job.valid.eq(0)
        m.d.comb += new.eq(state)
        with m.FSM():
            with m.State("BEGIN"):
                m.d.comb += machine.done.eq(1)
                with m.If(machine.work):
                    self._begin(m, state, new)
            self._check(m, state, new)
            self._reply(m, state, new)
            if self.board:
                self._part(m, state, new)
        return m

    def _connect(self, m, state):
        machine, answer = self.machine, self.answer
        wiring.connect(m, machine.service, wiring.flipped(self.service))
        m.d.comb += [
            machine.request.eq(answer.valid),
            machine.asked.eq(answer.payload.session),
            machine.sweep.eq(self.sweep),
            # The record stays as it is until both streams have been taken.
            machine.position.eq(state.consumed),
            machine.descriptor.addr.eq(
                self._slot_address(self.reply.slot) | ((~self.reply.error) << 2)
            ),
            self.reader.base.eq(state.base),
            self.reader.offset.eq(state.consumed[: self.segment_log2]),
        ]

    def _count(self, m, name):
        register = getattr(self.csr, name)
        m.d.sync += register.eq(register + 1)

    def _go_on(self, m, name):
        """The work goes on in the next cycle, in state ``name``."""
        m.next = name
        m.d.comb += self.machine.done.eq(0)

    def _end(self, m):
        """The work ends with this cycle."""
        m.next = "BEGIN"
        m.d.comb += self.machine.done.eq(1)

    def _measure(self, m, state):
        """How much is unread (registered), and whether there is something to do."""
        low, machine = self.segment_log2 + 1, self.machine
        self.unread = Signal(low)
        m.d.sync += self.unread.eq(state.latest - state.consumed[:low])
        self.enough = Signal()
        self.waiting = Signal()  # for the rest of a message
        rest = ~self.enough & ((self.unread != 0) | self._in_parts(state))
        calm = ~state.busy & ~state.dead & ~state.closing & ~state.eof
        m.d.comb += [self.enough.eq(self.unread >= state.need), self.waiting.eq(calm & rest)]
        with m.If(state.dead):
            m.d.comb += machine.more.eq(~state.busy & (state.slots == 0) & ~state.fin_out)
        with m.Elif(state.closing):
            m.d.comb += machine.more.eq(self.unread != 0)
        with m.Elif(~state.busy):
            due = self.enough | state.late | (state.eof & self._in_parts(state))
            m.d.comb += machine.more.eq(Mux(due, state.slots != 3, state.eof))
        # With all consumed the record is as after OPEN.
        going = state.going if JobKind.STREAM in self.kinds else 0
        kept = going | self._in_parts(state) | self._has_own_role(state)
        held = state.busy | state.slots.any() | state.fin_out | kept
        ends = state.dead | state.eof | (self.unread != 0)
        m.d.comb += machine.idle.eq(~held & ~ends)

    def _consume(self, m, state, new, count):
        m.d.comb += [new.consumed.eq(state.consumed + count), self.machine.consume.eq(1)]

    def _begin(self, m, state, new):
        with m.Switch(self.machine.kind):
            with m.Case(Work.LISTED):
                self._run(m, state, new)
            with m.Case(Work.EVENT):
                self._event(m, state, new)
            with m.Case(Work.REQUEST):
                self._answer(m, state, new)
            with m.Default():
                self._sweep(m, state, new)

    def _sweep(self, m, state, new):
        # The number may be nobody's; and what else there is to do is listed already.
        m.d.comb += [new.old.eq(self.waiting), self.machine.forget.eq(~self.waiting)]
        with m.If(self.waiting & state.old):
            m.d.comb += new.late.eq(1)

    def _event(self, m, state, new):
        event = self.service.event.payload
        with m.Switch(event.kind):
            with m.Case(EventKind.OPEN):  # of a record that is 0
                m.d.comb += new.need.eq(HEADER_BYTES)
                self._opens_with_role(m, new)
                if len(self.roles) > 1:
                    m.d.comb += new.port.eq(self.origin)
                if self.rest:
                    m.d.comb += [
                        new.consumed.eq(event.position),
                        new.latest.eq(event.position[: self.segment_log2 + 1]),
                        new.closing.eq(~event.ok),
                    ]
            with m.Case(EventKind.DATA):
                m.d.comb += [
                    new.base.eq(event.base[self.segment_log2 :]),
                    new.latest.eq(event.position[: self.segment_log2 + 1]),
                ]
            with m.Case(EventKind.EOF):
                m.d.comb += new.eof.eq(1)
            with m.Case(EventKind.SENT):
                with m.If(event.tag == FIN_TAG):
                    m.d.comb += new.fin_out.eq(0)
                with m.Else():
                    m.d.comb += new.slots.bit_select(event.tag[0], 1).eq(0)
            with m.Case(EventKind.CLOSED):
                m.d.comb += new.dead.eq(1)
                inside = state.busy | (self.unread != 0) | self._in_parts(state)
                with m.If(~event.ok & inside):
                    self._count(m, "aborted")

    def _answer(self, m, state, new):
        answer = self.answer.payload
        m.d.comb += [self.answer.ready.eq(1), new.busy.eq(0)]
        m.d.sync += [
            self.reply.error.eq((answer.status != Status.OK) | self._configures(state)),
            self.reply.fatal.eq(self._of_board(state) & (answer.length != 0)),
            self.reply.status.eq(answer.status),
            self.reply.id.eq(Mux(self._of_board(state), 0, answer.id)),
            self.reply.length.eq(answer.length),
            self.reply.slot.eq(state.job_slot),
            self.total.eq(state.need),
        ]
        self._go_on(m, "REPLY")
        if JobKind.STREAM in self.kinds:
            with m.If(state.job_stream):
                m.d.comb += new.going.eq(answer.status == Status.OK)
        if self.board:
            self._answer_of_board(m, state, new)
        with m.If(state.dead):
            m.d.comb += new.slots.bit_select(state.job_slot, 1).eq(0)
            self._end(m)

    def _configures(self, state):
        configure = state.job_configure if JobKind.CONFIGURE in self.kinds else 0
        return configure | self._of_board(state)

    def _run(self, m, state, new):
        machine, tx = self.machine, self.machine.descriptor
        with m.If(~machine.more):
            pass
        with m.Elif(self._in_parts(state)):
            self._next_part(m, state)
        with m.Elif(state.dead):
            m.d.comb += machine.release.eq(1)
        with m.Elif(state.closing):
            self._consume(m, state, new, self.unread)
        with m.Elif(self.enough):
            # While the role's door is blocked the session goes back to the end of the list.
            with m.If(~self.job.valid):
                m.d.comb += self.reader.start.eq(1)
                self._go_on(m, "HEADER")
        with m.Elif(state.late):
            self._go_on(m, "LATE")
        with m.Else():  # the peer has closed, and what is left is no message
            m.d.comb += [new.closing.eq(1), new.fin_out.eq(1), machine.post.eq(1)]
            m.d.sync += [tx.length.eq(0), tx.push.eq(0), tx.close.eq(1), tx.tag.eq(FIN_TAG)]

    def _check(self, m, state, new):
        header = self.reader.header
        slot = Signal()
        bad_type = Signal()
        stale = Signal()
        too_large = Signal()
        short = Signal()
        to_board = Signal()
        size, epoch = header[32:64], header[16 : 16 + EPOCH_BITS]
        with m.State("HEADER"):
            m.d.sync += [
                bad_type.eq(~header[:8].matches(TYPE_DATA, *(TYPES[k] for k in self.kinds))),
                stale.eq(is_stale(epoch, self.csr.lease, self.csr.guard)),
                too_large.eq(size > self.largest - HEADER_BYTES),
                short.eq(size < 4),
                self.total.eq(size[: self.segment_log2 + 1] + HEADER_BYTES),
                slot.eq(state.slots[0]),
                self.reply.error.eq(1),
                self.reply.id.eq(0),
                self.reply.slot.eq(state.slots[0]),
            ]
            if self.board:
                m.d.sync += to_board.eq(header[:16] == TYPE_CONFIGURATION)
            with m.If(self.reader.done):
                m.next = "CHECK"
        with m.State("CHECK"):
            m.d.sync += self.reply.fatal.eq((bad_type & ~to_board) | too_large)
            m.next = "ERROR"
            with m.If(to_board & ~stale):
                self._header_of_board(m)
            with m.Elif(bad_type & ~to_board):
                m.d.sync += self.reply.status.eq(Status.BAD_TYPE)
            with m.Elif(too_large):
                m.d.sync += self.reply.status.eq(Mux(stale, Status.STALE, Status.TOO_LARGE))
            with m.Elif(self.unread < self.total):
                m.d.comb += new.need.eq(self.total)
                self._end(m)
            with m.Elif(short):
                m.d.sync += self.reply.status.eq(Status.BAD_LENGTH)
            with m.Elif(stale):
                m.d.sync += self.reply.status.eq(Status.STALE)
                m.d.sync += self.reply.id.eq(Mux(to_board, 0, header[64:96]))
            with m.Elif(self.choice.open):
                m.next = "JOB"
            with m.Else():
                self._end(m)
        with m.State("LATE"):
            m.d.sync += [
                slot.eq(state.slots[0]),
                self.reply.error.eq(1),
                self.reply.id.eq(0),
                self.reply.slot.eq(state.slots[0]),
                self.reply.fatal.eq(1),
                self.reply.status.eq(Status.TIMED_OUT),
            ]
            m.next = "ERROR"
        with m.State("ERROR"):
            m.d.comb += [new.old.eq(0), new.late.eq(0)]
            m.d.comb += new.slots.bit_select(slot, 1).eq(1)
            with m.If(self.reply.fatal):
                m.d.sync += self.total.eq(self.unread)
            m.next = "REPLY"
        with m.State("JOB"):
            self._post_job(m, state, new, header, slot)
            self._end(m)
