"""What the SMP framer does with a session's record, once: the specification for its proof.

Written from the numbered rules of ``cores/services/framer.py`` and from ``models/smp_framing.py``.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...cores.memory import MemorySignature
from ...cores.roles.contract import JobKind, JobLayout
from ...cores.tcp.service import EventKind
from ...models.status import Status

__all__ = [
    "AnyHeader",
    "BASE",
    "KINDS",
    "LARGEST",
    "LOG2",
    "ROLES",
    "SLOT",
    "Step",
    "idle",
    "in_parts",
    "more",
    "unread",
]

#: log2 of a segment's bytes; the largest message; base of the slots, no multiple of all, and size.
LOG2, LARGEST, BASE, SLOT = 8, 200, 0x1010, 32
KINDS = (JobKind.STREAM, JobKind.CONFIGURE)
#: Role of each of two TCP ports, of two roles; the second has none.
ROLES = (1, 31)
CONFIGURATION, RESPONSE, DATA, STREAM = 1, 2, 3, 4
FIN = 2
#: Role of jobs for the board's firmware.
BOARD = 30


class AnyHeader(wiring.Component):
    """In the place of the header reader: any 96 bits, some time after ``start``."""

    def __init__(self, width, segment_log2):
        mem = MemorySignature(width)
        super().__init__(
            {
                "start": In(1),
                "base": In(32 - segment_log2),
                "offset": In(segment_log2),
                "done": Out(1),
                "header": Out(96),
                "mem_cmd": Out(stream.Signature(mem.cmd_layout)),
                "mem_rdata": In(stream.Signature(mem.rdata_layout)),
            }
        )
        self.busy = Signal()

    def elaborate(self, platform):
        m = Module()
        chosen, ends = Signal(96), Signal()
        m.d.comb += [
            ends.eq(AnySeq(1)),
            self.done.eq(self.busy & ends),
            self.header.eq(chosen),
            self.mem_cmd.valid.eq(self.busy & AnySeq(1)),
            self.mem_cmd.payload.addr.eq(AnySeq(32)),
            self.mem_rdata.ready.eq(1),
        ]
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), chosen.eq(AnySeq(96))]
        with m.Elif(self.done):
            m.d.sync += self.busy.eq(0)
        return m


def unread(record):
    return (record.latest - record.consumed[: LOG2 + 1])[: LOG2 + 1]


def in_parts(record):
    return record.part if "part" in record.shape().members else Const(0)


def of_board(record):
    return record.job_board if "part" in record.shape().members else Const(0)


def more(record):
    """Whether there is something to do for a session."""
    due = (unread(record) >= record.need) | record.late | (record.eof & in_parts(record))
    over = ~record.busy & (record.slots == 0) & ~record.fin_out
    look = ~record.busy & Mux(due, record.slots != 3, record.eof)
    return Mux(record.dead, over, Mux(record.closing, unread(record) != 0, look))


def idle(record):
    """Whether the record is one that OPEN restores."""
    held = record.busy | (record.slots != 0) | record.fin_out | record.going | in_parts(record)
    if "part" in record.shape().members:
        held |= record.role != Mux(record.port, ROLES[1], ROLES[0])
    return ~(held | record.dead | record.eof | (unread(record) != 0))


class Step:
    """One piece of work.

    ``kind``: 0 the session was listed, 1 an event, 2 an answer, 3 it is the session's turn in a
    sweep. ``origin``: port of the event. ``shut``: the door of the role that a message is for was
    closed when it was looked at; ``away``: that of the board, for a message or a part of one.
    ``lease``, ``guard``: the registers when the header was complete.
    """

    def __init__(
        self,
        m,
        kind,
        old,
        event,
        answer,
        header,
        blocked,
        who,
        origin,
        shut,
        away,
        rest,
        lease,
        guard,
    ):
        self.m, self.old, self.who, self.origin, self.rest = m, old, who, origin, rest
        self.lease, self.guard = lease, guard
        self.layout = old.shape()
        self.board = "part" in self.layout.members
        listed = kind == 0
        self.unread = unread(old)
        self._message(header)
        work = listed & more(old)
        enough = self.unread >= old.need
        parts = in_parts(old)
        live = work & ~old.dead & ~old.closing & ~parts
        self.release = work & old.dead & ~parts
        self.swallows = work & ~old.dead & old.closing & ~parts
        self.looks = live & enough & ~blocked
        self.tardy = live & ~enough & old.late
        self.ends = live & ~enough & ~old.late
        complete = (self.size + 8)[: LOG2 + 1] <= self.unread
        fatal = self.bad_type | self.too_large
        judged = self.looks & ~(self.to_board & ~self.stale)
        wrong = judged & (fatal | (complete & (self.short | self.stale)))
        self.error = wrong | self.tardy
        self.waits = judged & ~fatal & ~complete
        self.job = judged & ~fatal & complete & ~self.short & ~self.stale & ~shut
        # A part of a message to the board: its header, what was asked for, or why that is missing.
        whole = enough & ~old.dead
        part = work & parts & ~blocked & ~away
        self.board_job = part | (self.looks & self.to_board & ~self.stale & ~away)
        self.part_total = Mux(parts, Mux(whole, old.need, 0), 8)
        self.missing = parts & (self.part_total == 0)
        good = (kind == 2) & of_board(old) & (answer.status == Status.OK)
        self.goes_on = good & (answer.length != 0)
        self.gives_role = good & answer.id[5]
        closes = (kind == 2) & ~old.dead & of_board(old) & (answer.length != 0) & ~self.goes_on
        self.fatal = self.tardy | (wrong & fatal) | closes
        live = ~(old.busy | old.dead | old.closing | old.eof)
        self.lingers = (kind == 3) & live & ~enough & ((self.unread != 0) | parts)
        self.over = (kind == 3) & ~self.lingers  # nothing that is not in the list already
        answered = (kind == 2) & ~old.dead & ~self.goes_on
        self.reply = self.error | answered
        self._reply(kind, old, answer, header)
        self._records(kind, old, event, answer)
        self._outputs(old, answer)
        self._job(old, header)
        unclean = ~event.ok & (old.busy | (self.unread != 0) | parts)
        self.lost = (kind == 1) & (event.kind == EventKind.CLOSED) & unclean

    def _record(self, name, value):
        record = Signal(self.layout, name=name)
        self.m.d.comb += Value.cast(record).eq(Value.cast(value))
        return record

    def _message(self, header):
        self.type, self.size = header[:8], header[32:64]
        # The first reserved byte: 0 is the port's role, n is role n - 1, more than there is none.
        asked = header[8:16]
        named = Mux(asked >= (31 if self.board else 32), 31, asked - 1)
        mine = self.old.role if self.board else Mux(self.old.port, ROLES[1], ROLES[0])
        self.role = Mux(asked == 0, mine, named)[:5]
        known = (self.type == DATA) | (self.type == STREAM) | (self.type == CONFIGURATION)
        self.to_board = (self.type == CONFIGURATION) & (asked == 0) & int(self.board)
        self.bad_type = ~known
        epoch = header[16:32]
        self.stale = self.guard & ~((epoch == self.lease) & (epoch != 0))
        self.too_large = self.size > LARGEST - 8
        self.short = self.size < 4

    def _reply(self, kind, old, answer, header):
        """What goes into memory before the result, and what it answers."""
        failed = (answer.status != Status.OK) | old.job_configure | of_board(old)
        self.slot = Mux(kind == 2, old.job_slot, old.slots[0])
        self.reply_error = self.error | failed
        why = Mux(
            self.bad_type,
            Status.BAD_TYPE,
            Mux(
                self.too_large,
                Mux(self.stale, Status.STALE, Status.TOO_LARGE),
                Mux(self.short, Status.BAD_LENGTH, Status.STALE),
            ),
        )
        why = Mux(self.tardy, Status.TIMED_OUT, why)
        self.status = Mux(kind == 2, answer.status, why)
        refused = self.error & ~self.fatal & ~self.short & ~self.to_board  # has an ID, is stale
        of_message = Mux(refused, header[64:96], 0)
        self.reply_id = Mux((kind == 2) & ~of_board(old), answer.id, of_message)
        size = (self.size + 8)[: LOG2 + 1]
        self.total = Mux(kind == 2, old.need, Mux(self.fatal, self.unread, size))
        error = self.reply_error
        self.words = [
            Mux(error, Const(RESPONSE, 32), 0),
            Mux(error, Const(8, 32), DATA),
            Mux(error, self.status, answer.length + 4)[:32],
            self.reply_id,
        ]
        self.slot_addr = Signal(32, name="slot_addr")
        self.m.d.comb += self.slot_addr.eq(BASE + (2 * self.who + self.slot) * SLOT)

    def _records(self, kind, old, event, answer):
        m = self.m
        self.before_post = before = self._record("before_post", old)
        self.settled = settled = self._record("settled", old)
        with m.If(kind == 1):
            self._event(settled, event)
        with m.Elif(kind == 2):
            for record in (before, settled):
                m.d.comb += record.busy.eq(0)
                with m.If(old.job_stream):
                    m.d.comb += record.going.eq(answer.status == Status.OK)
                if self.board:
                    m.d.comb += record.part.eq(self.goes_on)
                    with m.If(self.gives_role):
                        m.d.comb += record.role.eq(answer.id)
                    with m.If(self.goes_on):
                        m.d.comb += record.slots.eq(old.slots & Mux(old.job_slot, 1, 2))
            with m.If(self.goes_on & ~old.dead):
                m.d.comb += settled.consumed.eq(old.consumed + old.need)
                m.d.comb += settled.need.eq(answer.length)
            with m.If(old.dead):
                m.d.comb += settled.slots.bit_select(old.job_slot, 1).eq(0)
        with m.If(self.error):
            for record in (before, settled):
                m.d.comb += record.slots.eq(old.slots | Mux(self.slot, 2, 1))
                m.d.comb += [record.old.eq(0), record.late.eq(0)]
        with m.Elif(kind == 3):
            m.d.comb += settled.old.eq(self.lingers)
            m.d.comb += settled.late.eq(old.late | (self.lingers & old.old))
        with m.If(self.reply):
            m.d.comb += [
                settled.consumed.eq(old.consumed + self.total),
                settled.need.eq(8),
                settled.closing.eq(self.fatal),
            ]
        with m.If(self.swallows):
            m.d.comb += settled.consumed.eq(old.consumed + self.unread)
        with m.If(self.ends):
            m.d.comb += [settled.closing.eq(1), settled.fin_out.eq(1)]
        with m.If(self.waits | self.job):
            m.d.comb += settled.need.eq(self.size + 8)
        with m.If(self.board_job):
            m.d.comb += settled.need.eq(self.part_total)
        with m.If(self.job | self.board_job):
            m.d.comb += [
                settled.busy.eq(1),
                settled.old.eq(0),
                settled.late.eq(0),
                settled.job_slot.eq(self.slot),
                settled.slots.eq(old.slots | Mux(self.slot, 2, 1)),
                settled.job_stream.eq(self.job & (self.type == STREAM)),
                settled.job_configure.eq(self.job & (self.type == CONFIGURATION)),
            ]
            if self.board:
                m.d.comb += settled.job_board.eq(self.board_job)

    def _event(self, record, event):
        m = self.m
        m.d.comb += Value.cast(record).eq(Value.cast(self.old))
        with m.Switch(event.kind):
            with m.Case(EventKind.OPEN):
                m.d.comb += [
                    Value.cast(record).eq(0),
                    record.need.eq(8),
                    record.port.eq(self.origin),
                ]
                if self.rest:
                    m.d.comb += [
                        record.consumed.eq(event.position),
                        record.latest.eq(event.position),
                        record.closing.eq(~event.ok),
                    ]
                if self.board:
                    m.d.comb += record.role.eq(Mux(self.origin, ROLES[1], ROLES[0]))
            with m.Case(EventKind.DATA):
                m.d.comb += record.base.eq(event.base >> LOG2)
                m.d.comb += record.latest.eq(event.position)
            with m.Case(EventKind.EOF):
                m.d.comb += record.eof.eq(1)
            with m.Case(EventKind.SENT):
                with m.If(event.tag == FIN):
                    m.d.comb += record.fin_out.eq(0)
                with m.Else():
                    m.d.comb += record.slots.eq(self.old.slots & Mux(event.tag[0], 1, 2))
            with m.Case(EventKind.CLOSED):
                m.d.comb += record.dead.eq(1)

    def _outputs(self, old, answer):
        self.tx = self.reply | self.ends
        self.free = self.reply | self.swallows | self.release | (self.goes_on & ~old.dead)
        self.closes = self.fatal | self.ends
        length = Mux(self.reply_error, 16, answer.length + 12)[:20]
        self.tx_length = Mux(self.reply, length, 0)
        self.tx_addr = self.slot_addr + Mux(self.reply_error, 0, 4)
        self.tx_tag = Mux(self.ends, FIN, self.slot)

    def _job(self, old, header):
        """The job that a message becomes: behind header and ID, into the slot behind 16 bytes."""
        self.job_payload = job = Signal(JobLayout, name="job_payload")
        kind = Mux(self.type == STREAM, 1, Mux(self.type == CONFIGURATION, 2, 0))
        m = self.m
        m.d.comb += [
            Value.cast(job.kind).eq(kind),
            job.first.eq(~old.going),
            job.role.eq(self.role),
            job.source.eq(5),
            job.session.eq(self.who),
            job.id.eq(header[64:96]),
            job.base.eq(Cat(Const(0, LOG2), old.base)),
            job.offset.eq((old.consumed[:LOG2] + 12)[:LOG2]),
            job.ring_log2.eq(LOG2),
            job.length.eq(self.size - 4),
            job.result.eq(self.slot_addr + 16),
            job.room.eq(SLOT - 16),
        ]
        with m.If(self.board_job):
            why = Cat(~in_parts(old), self.missing & old.late, self.missing & old.dead)
            m.d.comb += [
                Value.cast(job.kind).eq(2),
                job.role.eq(BOARD),
                job.id.eq(why),
                job.offset.eq(old.consumed[:LOG2]),
                job.length.eq(self.part_total),
            ]
