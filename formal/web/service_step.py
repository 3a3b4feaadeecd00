"""What the web service does with a session's record, once: the specification for its proof.

Written from the data sheet in ``cores/web/service.py``.
"""

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from ...cores.tcp.service import EventKind
from ...cores.web.answer import PIECE
from ...cores.web.scan import ScanState
from ...models.http.image import PLACES
from ...models.http.limits import Limits
from ...models.http.request import Verdict
from ..services.session_view import EVENT, LISTED, REQUEST, SWEPT

__all__ = ["HEAD", "LIMITS", "LOG2", "LOW", "MOST", "WebStep", "idle", "left", "more", "unread_of"]

#: log2 of a ring's bytes; bits of a number of bytes in it.
LOG2 = 8
LOW = LOG2 + 1
#: Largest head, and with an empty line before it; bytes of a job at most.
HEAD = 60
LIMITS = Limits(head=HEAD, target=30, path=16)
MOST = HEAD + 2


def rest_address(record):
    """Where the rest is, if there is one; else those bits say what was scanned."""
    low = Cat(record.scanned, Value.cast(record.scan), record.complete)
    return Cat(low, record.rest_addr)


def unread_of(record):
    return (record.latest - record.head[:LOW])[:LOW]


def _full(record):
    return unread_of(record) >= MOST


def _seen(record):
    return Mux(_full(record), MOST, unread_of(record))


def _fresh(record):
    return _seen(record) != record.scanned


def left(record):
    """Whether there are bytes to look at: new ones, a whole head, or all that a head may have."""
    return record.complete | _full(record) | _fresh(record)


def more(record):
    """Whether there is something to do for a session."""
    r = record
    waits = (r.rest != 0) | left(r) | r.eof | r.late
    live = ~r.busy & (r.out != 4) & waits
    return Mux(r.dead, ~r.busy & (r.out == 0), Mux(r.closing, unread_of(r) != 0, live))


def idle(record):
    """Whether nothing is held for a session."""
    r = record
    held = r.busy | (r.out != 0) | (r.rest != 0) | r.eof | r.dead
    return ~held & (unread_of(r) == 0)


class WebStep:
    """One piece of work on record ``old``.

    ``slots``, ``answer`` and ``images`` are what the work is told, and whether a job can begin;
    ``enable`` is the register.
    """

    def __init__(self, m, kind, old, event, slots, answer, images, enable, rest):
        self.m, self.old, self.slots, self.answer, self.images = m, old, slots, answer, images
        listed, report = kind == LISTED, kind == REQUEST
        due = listed & more(old)
        live = due & ~old.dead & ~old.closing
        self.release = due & old.dead
        self.swallows = due & ~old.dead & old.closing
        self.piece = live & (old.rest != 0)
        asks = left(old) | (old.late & ~old.eof)
        self.refuses = live & (old.rest == 0) & asks & ~enable
        self.looks = live & (old.rest == 0) & left(old) & enable
        self.begins = self.looks & ~images.switching
        ends = live & (old.rest == 0) & ~left(old) & ~self.refuses
        self.times_out = ends & old.late & ~old.eof
        self.silent_end = ends & ~self.times_out
        self.scanned = report & slots.is_scan
        self.answered = report & ~slots.is_scan
        self.answers = self.answered & ~old.dead
        waiting = ~(old.busy | old.closing | old.dead | (old.rest != 0) | left(old) | old.eof)
        self.waits = (kind == SWEPT) & waiting & (unread_of(old) != 0)
        self.forget = (kind == SWEPT) & ~self.waits
        self.tx = self.piece | self.refuses | self.times_out | self.silent_end | self.answers
        self.consume = self.swallows | self.answers
        self._job(m)
        self._descriptor(m, images.now_base)
        self._record(m, kind == EVENT, event, rest)

    def _job(self, m):
        """From the head on if a parser is to have it, else on from where the last scan ended."""
        old, full = self.old, _full(self.old)
        self.parse, self.whole = Signal(name="parse"), Signal(name="whole")
        self.skipped, self.length = Signal(LOW, name="skipped"), Signal(LOW, name="job_length")
        self.state = Mux(self.parse, ScanState.START, old.scan)
        all_seen = full & ~_fresh(old)
        m.d.comb += [
            self.parse.eq((old.scanned == 0) | old.complete | all_seen),
            self.whole.eq(full & (all_seen | (old.scanned == 0))),
            self.skipped.eq(Mux(self.parse, 0, old.scanned)),
            self.length.eq(_seen(old) - self.skipped),
        ]

    def _descriptor(self, m, base):
        old, answer = self.old, self.answer
        self.addr, self.tx_length = Signal(32, name="tx_addr"), Signal(20, name="tx_length")
        self.close = Signal(name="tx_close")
        self.epoch = Mux(self.piece, old.rest_epoch, self.images.epoch)
        late = PLACES[Verdict.TIMEOUT, True]
        with m.If(self.piece):
            last = old.rest <= PIECE
            m.d.comb += [
                self.addr.eq(rest_address(old)),
                self.tx_length.eq(Mux(last, old.rest, PIECE)),
                self.close.eq(last & old.rest_close),
            ]
        with m.Elif(self.times_out):
            m.d.comb += [
                self.addr.eq(Cat(Const(late.offset, 12), base[12:])),
                self.tx_length.eq(late.whole),
            ]
            m.d.comb += self.close.eq(1)
        with m.Elif(self.silent_end | self.refuses):
            m.d.comb += self.close.eq(1)
        with m.Else():
            m.d.comb += [
                self.addr.eq(answer.addr),
                self.tx_length.eq(answer.length),
                self.close.eq(answer.close & (answer.rest == 0)),
            ]

    def _record(self, m, is_event, event, rest):
        old, slots, answer = self.old, self.slots, self.answer
        self.after = after = Signal(old.shape(), name="after")
        m.d.comb += Value.cast(after).eq(Value.cast(old))
        with m.If(is_event):
            self._event(m, after, event, rest)
        with m.If(self.tx):
            m.d.comb += [after.out.eq(old.out + 1), after.closing.eq(self.close)]
        with m.If(self.swallows):
            m.d.comb += after.head.eq(old.head + unread_of(old))
        with m.If(self.piece):
            m.d.comb += after.rest.eq(Mux(old.rest <= PIECE, 0, old.rest - PIECE))
            m.d.comb += rest_address(after).eq(rest_address(old) + PIECE)
            with m.If(old.rest <= PIECE):
                m.d.comb += [after.scanned.eq(0), after.scan.eq(0), after.complete.eq(0)]
        with m.If(self.looks):
            m.d.comb += after.busy.eq(slots.free & self.begins)
        with m.If(self.scanned):
            m.d.comb += [
                after.busy.eq(0),
                after.scan.eq(slots.scan.state),
                after.scanned.eq(old.scanned + slots.scanned),
                after.complete.eq(slots.scan.found),
            ]
        with m.If(self.answered):
            m.d.comb += [after.busy.eq(0), after.old.eq(0), after.late.eq(0)]
            m.d.comb += [after.scanned.eq(0), after.scan.eq(0), after.complete.eq(0)]
        with m.If(self.answers):
            m.d.comb += [
                after.head.eq(old.head + answer.bytes),
                after.rest.eq(answer.rest),
                rest_address(after).eq(Mux(answer.rest == 0, 0, answer.rest_addr)),
                after.rest_close.eq(answer.close),
                after.rest_epoch.eq(self.images.epoch),
            ]
        with m.If(self.waits):
            m.d.comb += [after.old.eq(1), after.late.eq(old.late | old.old)]
        with m.If(self.forget):
            m.d.comb += after.old.eq(0)

    def _event(self, m, after, event, rest):
        with m.Switch(event.kind):
            with m.Case(EventKind.OPEN):
                m.d.comb += Value.cast(after).eq(0)
                if rest:
                    m.d.comb += [after.head.eq(event.position), after.latest.eq(event.position)]
                    m.d.comb += after.closing.eq(~event.ok)
            with m.Case(EventKind.DATA):
                m.d.comb += [after.base.eq(event.base >> LOG2), after.latest.eq(event.position)]
            with m.Case(EventKind.EOF):
                m.d.comb += after.eof.eq(1)
            with m.Case(EventKind.SENT):
                m.d.comb += after.out.eq(self.old.out - 1)
            with m.Case(EventKind.CLOSED):
                m.d.comb += after.dead.eq(1)
