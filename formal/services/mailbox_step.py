"""What the mailbox does with a session's record, once: the specification for its proof.

Written from the data sheet in ``cores/services/mailbox.py``.
"""

from amaranth.hdl import Mux, Signal, Value

from ...cores.tcp.service import EventKind

__all__ = ["LOG2", "MailboxStep", "idle", "more", "unread_of"]

#: log2 of a segment's bytes.
LOG2 = 8
LOW = LOG2 + 1


def unread_of(record):
    return (record.latest - record.consumed[:LOW])[:LOW]


def more(record):
    """Whether there is something to do for a session."""
    idle = ~record.held & ~record.out
    fresh = record.fresh & (unread_of(record) != 0)
    look = idle & (fresh | record.eof | record.late)
    return Mux(record.dead, idle, Mux(record.closing, unread_of(record) != 0, look))


def idle(record):
    """Whether the record is one that OPEN restores."""
    held = record.held | record.out | record.dead | record.eof
    return ~(held | (unread_of(record) != 0) | (record.expect != 0) | (record.tag != 0))


class MailboxStep:
    """One piece of work. ``kind``: 0 the session was listed, 1 an event, 2 the desk reports, 3 the
    session's turn in a sweep."""

    def __init__(self, m, kind, old, event, desk, rest=False):
        self.m, self.old, self.rest = m, old, rest
        work = (kind == 0) & more(old)
        live = work & ~old.dead & ~old.closing
        unread = unread_of(old)
        self.release = work & old.dead
        self.swallows = work & ~old.dead & old.closing
        awaits = old.expect != 0
        self.ends = live & (unread == 0) & ~awaits
        self.invites = live & ((unread != 0) | awaits) & desk.free
        decides = kind == 2
        self.lost = decides & old.dead
        report = decides & ~old.dead
        good = desk.matched | desk.full | desk.final | desk.late
        self.shows = report & desk.copied & good
        self.incomplete = report & desk.copied & ~good
        self.answers = report & ~desk.copied & ~desk.written & ~desk.drop & (desk.length != 0)
        finishes = report & ~desk.copied & ~self.answers
        self.learns = decides & ~desk.copied
        self.drops = finishes & desk.drop
        self.sends = finishes & ~desk.drop & (desk.written | desk.close)
        self.dismisses = self.lost | self.incomplete | finishes
        self.tx = self.ends | self.drops | self.sends
        self.free = self.release | self.swallows | self.shows
        self.tx_length = Mux(self.sends, desk.length, 0)
        self.tx_close = self.ends | (self.sends & desk.close)
        self.tx_abort = self.drops
        waits = ~(old.held | old.out | old.dead | old.closing | old.eof)
        self.waits = (kind == 3) & waits & ((unread != 0) | awaits)
        self.over = (kind == 3) & ~self.waits  # nothing that is not in the list already
        self._records(kind, event, desk, unread)

    def _records(self, kind, event, desk, unread):
        m, old = self.m, self.old
        self.after = after = Signal(old.shape(), name="after")
        m.d.comb += Value.cast(after).eq(Value.cast(old))
        with m.If(kind == 1):
            self._event(event, desk)
        with m.If(self.swallows | self.shows):
            count = Mux(self.shows, desk.count, unread)
            m.d.comb += [after.consumed.eq(old.consumed + count), after.fresh.eq(1)]
        with m.If(self.tx):
            m.d.comb += [after.out.eq(1), after.closing.eq(self.tx_close | self.tx_abort)]
        with m.If(self.dismisses):
            m.d.comb += after.held.eq(0)
        with m.If(self.learns):
            m.d.comb += [after.expect.eq(desk.expect), after.tag.eq(desk.expect >> 11)]
        with m.If(self.invites):
            m.d.comb += [after.held.eq(1), after.fresh.eq(0)]
        with m.If(self.shows):
            m.d.comb += [after.old.eq(0), after.late.eq(0)]
        with m.If(kind == 3):
            m.d.comb += [after.old.eq(self.waits), after.late.eq(old.late | (self.waits & old.old))]

    def _event(self, event, desk):
        m, after, old = self.m, self.after, self.old
        with m.Switch(event.kind):
            with m.Case(EventKind.OPEN):
                m.d.comb += Value.cast(after).eq(0)
                if self.rest:
                    m.d.comb += [after.consumed.eq(event.position), after.latest.eq(event.position)]
                    m.d.comb += after.closing.eq(~event.ok)
            with m.Case(EventKind.DATA):
                m.d.comb += [after.base.eq(event.base >> LOG2), after.latest.eq(event.position)]
                m.d.comb += after.fresh.eq(1)
            with m.Case(EventKind.EOF):
                m.d.comb += after.eof.eq(1)
            with m.Case(EventKind.SENT):
                m.d.comb += after.out.eq(0)
            with m.Case(EventKind.CLOSED):
                m.d.comb += after.dead.eq(1)
                m.d.comb += after.held.eq(old.held & ~desk.shown)
