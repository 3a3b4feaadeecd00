"""Proof of the races between a session that gets and gives back its place, and its service.

The rules are those of ``cores/tcp/places.py`` (``due``, ``may_rest``, ``may_release``), by which
the event and the application engine decide; that they do so, each within one checkout, is proved of
them (``tcp_events_places``, ``tcp_application_places``). Here one session is followed through
checkouts in any order, one a cycle: bytes and FIN arrive, the session ends, an event is told, the
service takes it, consumes, posts a descriptor, says ``rest`` or releases, the application engine
takes its ``tx`` and ``free``. One event, and one item of ``tx`` and of ``free``, may be on its way
at a time, for any time. The service does what the contract allows, and no more.

Proved: when a place is given back no event, ``tx`` or ``free`` of it is on its way, and the service
knows of every byte that was told; OPEN begins at the byte that the service would read next, so none
is lost or read twice; nothing is told, and no descriptor posted, without a place; after a ``rest``
that is ignored, and has been followed by nothing yet, an event is on its way or due, or the service
has taken EOF; a session is released only when all was told. That ``may_rest`` looks at the
descriptors is for services that break the contract.

Not proved: that what is on its way arrives.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal
from amaranth.lib import data

from ...cores.tcp.record import Phase
from ...cores.tcp.service import EventKind
from ..kit.proof import Mutant, Proof
from ..stream import new_harness

__all__ = ["PROOFS"]

BITS = 4  # of positions
MOST = 7  # bytes that may be unread
RECORD = data.StructLayout(
    {
        **{"phase": Phase, "placed": 1, "fin_told": 1, "count": 3},
        **{"ev_data": 1, "ev_eof": 1, "ev_closed": 1, "rcv_pub": BITS, "rcv_cons": BITS},
    }
)
OPS = ("bytes", "fin", "end", "tell", "take", "consume", "post", "enter", "rest", "release", "free")


def _less(a, b):
    return (a - b)[:BITS]


class RestProof(Elaboratable):
    def __init__(self, rules):
        self.rules = rules

    def elaborate(self, platform):
        m = new_harness()
        self.op, self.n = Signal(range(len(OPS))), Signal(BITS)
        m.d.comb += [self.op.eq(AnySeq(len(self.op))), self.n.eq(AnySeq(BITS))]
        self.r = Signal(RECORD, init={"phase": Phase.OPEN.value})
        self.gone = Signal()  # the slot is free
        self.over = Signal()
        m.d.comb += self.over.eq(self.r.phase != Phase.OPEN)
        # On their way: an event, a descriptor, a free.
        self.told = Signal(data.StructLayout({"valid": 1, "kind": EventKind, "position": BITS}))
        self.tx = Signal()
        free = {"valid": 1, "position": BITS, "rest": 1, "release": 1}
        self.free = Signal(data.StructLayout(free))
        # What the service knows: bytes told and consumed, unanswered descriptors.
        row = {"open": 1, "told": BITS, "cons": BITS, "out": 3, "eof": 1, "dead": 1}
        self.row = Signal(data.StructLayout(row))
        self.news = Signal()  # an event was taken since ``rest`` was said last
        with m.If(~self.gone):
            self._network(m)
            self._tell(m)
            self._take(m)
            self._service(m)
            self._application(m)
        self._covers(m)
        self._invariants(m)
        return m

    def _at(self, m, name, when=1):
        return m.If((self.op == OPS.index(name)) & when)

    def _network(self, m):
        r, n = self.r, self.n
        live = ~self.over & ~r.fin_told
        room = (n != 0) & (n <= MOST - _less(r.rcv_pub, r.rcv_cons))
        with self._at(m, "bytes", live & room & (_less(r.rcv_pub, r.rcv_cons) <= MOST)):
            m.d.sync += [r.rcv_pub.eq(r.rcv_pub + n), r.ev_data.eq(1)]
        with self._at(m, "fin", live):
            m.d.sync += [r.fin_told.eq(1), r.ev_eof.eq(1)]
        with self._at(m, "end", ~self.over):
            ends = Mux(n[0] & r.fin_told, Phase.TIME_WAIT, Phase.CLOSED)
            m.d.sync += [r.phase.eq(ends), r.ev_closed.eq(1)]

    def _tell(self, m):
        """The event engine's checkout."""
        r, told = self.r, self.told
        with self._at(m, "tell", ~told.valid):
            m.d.sync += told.position.eq(r.rcv_pub)
            with m.If(~r.placed):
                with m.If(self.rules.due(r)):
                    m.d.sync += [r.placed.eq(1), told.valid.eq(1), told.kind.eq(EventKind.OPEN)]
                    m.d.sync += told.position.eq(r.rcv_cons)
            with m.Elif(r.ev_data):
                m.d.sync += [r.ev_data.eq(0), told.valid.eq(1), told.kind.eq(EventKind.DATA)]
            with m.Elif(r.ev_eof):
                m.d.sync += [r.ev_eof.eq(0), told.valid.eq(1), told.kind.eq(EventKind.EOF)]
            with m.Elif((r.count != 0) & (self.n[0] | self.over)):
                m.d.sync += [r.count.eq(r.count - 1), told.valid.eq(1)]
                m.d.sync += told.kind.eq(EventKind.SENT)
            with m.Elif(r.ev_closed & (r.count == 0)):
                m.d.sync += [r.ev_closed.eq(0), told.valid.eq(1), told.kind.eq(EventKind.CLOSED)]

    def _take(self, m):
        """The service takes an event. It may do so while its own requests wait."""
        told, row = self.told, self.row
        with self._at(m, "take", told.valid):
            m.d.sync += [told.valid.eq(0), self.news.eq(1)]
            with m.Switch(told.kind):
                with m.Case(EventKind.OPEN):
                    m.d.comb += Assert(~row.open)
                    m.d.comb += Assert(told.position == row.cons)
                    m.d.sync += [row.open.eq(1), row.told.eq(told.position)]
                with m.Case(EventKind.DATA):
                    m.d.comb += Assert(row.open & ~row.eof & ~row.dead)
                    m.d.comb += Assert(told.position != row.told)
                    m.d.sync += row.told.eq(told.position)
                with m.Case(EventKind.EOF):
                    m.d.comb += Assert(row.open & ~row.dead & (told.position == row.told))
                    m.d.sync += row.eof.eq(1)
                with m.Case(EventKind.SENT):
                    m.d.comb += Assert(row.open & (row.out != 0))
                    m.d.sync += row.out.eq(row.out - 1)
                with m.Case(EventKind.CLOSED):
                    m.d.comb += Assert(row.open & ~row.dead)
                    m.d.sync += row.dead.eq(1)

    def _service(self, m):
        row, free, n = self.row, self.free, self.n
        idle = (row.cons == row.told) & (row.out == 0) & ~row.dead
        with self._at(m, "consume", row.open & ~free.valid & (n <= _less(row.told, row.cons))):
            m.d.sync += [row.cons.eq(row.cons + n), free.valid.eq(1), free.rest.eq(0)]
            m.d.sync += [free.position.eq(row.cons + n), free.release.eq(0)]
        # It says nothing more of a session after ``rest`` until it takes an event.
        with self._at(m, "post", row.open & self.news & ~self.tx & ~row.dead & (row.out < 4)):
            m.d.sync += [row.out.eq(row.out + 1), self.tx.eq(1)]
        with self._at(m, "rest", row.open & self.news & ~free.valid & idle):
            m.d.sync += [free.valid.eq(1), free.rest.eq(1), free.release.eq(0)]
            m.d.sync += [free.position.eq(row.cons), self.news.eq(0)]
        with self._at(m, "release", row.dead & ~free.valid & (row.out == 0)):
            m.d.sync += [free.valid.eq(1), free.rest.eq(0), free.release.eq(1), row.dead.eq(0)]
            m.d.sync += row.open.eq(0)

    def _application(self, m):
        r, free, row, told = self.r, self.free, self.row, self.told
        with self._at(m, "enter", self.tx):
            m.d.comb += Assert(r.placed & (r.count < 4))
            m.d.sync += [self.tx.eq(0), r.count.eq(r.count + 1)]
        moved, ignored = _less(free.position, r.rcv_cons), Signal()
        with self._at(m, "free", free.valid):
            m.d.sync += free.valid.eq(0)
            m.d.comb += Assert(r.placed)
            with m.If(free.release):
                m.d.comb += Assert(self.over & self.rules.may_release(r) & ~told.valid)
                m.d.sync += [r.placed.eq(0), self.gone.eq(1)]
            with m.Else():
                m.d.comb += Assert(moved <= _less(r.rcv_pub, r.rcv_cons))
                m.d.sync += r.rcv_cons.eq(free.position)
                with m.If(free.rest):
                    m.d.comb += ignored.eq(1)
                    with m.If((free.position == r.rcv_pub) & self.rules.may_rest(r)):
                        m.d.comb += [Assert(~told.valid), Assert(~self.tx), ignored.eq(0)]
                        m.d.comb += [Assert(row.told == r.rcv_pub), Assert(row.out == 0)]
                        m.d.comb += Assert(~row.eof & ~row.dead & (row.cons == row.told))
                        m.d.sync += [r.placed.eq(0), row.open.eq(0), self.news.eq(0)]
        with m.If(ignored):
            due = r.ev_data | r.ev_eof | r.ev_closed | (r.count != 0)
            # The service that has taken EOF answers it, and CLOSED follows.
            m.d.comb += Assert(told.valid | due | self.news | row.eof)
        self.ignored = ignored

    def _covers(self, m):
        """It rested, came back and ended; a ``rest`` that crossed an event."""
        told, free = self.told, self.free
        opened = told.valid & (told.kind == EventKind.OPEN)
        again = Signal(2)
        rested = (self.op == OPS.index("free")) & free.valid & free.rest & ~self.ignored
        with m.If(rested & self.row.told[0]):
            m.d.sync += again.eq(1)
        with m.If((again == 1) & opened & (self.op == OPS.index("take"))):
            m.d.sync += again.eq(2)
        m.d.comb += [
            Cover(self.gone & (again == 2)),
            Cover(self.ignored & self.news),
            Cover(self.ignored & told.valid),
        ]

    def _invariants(self, m):
        r, row, told, free = self.r, self.row, self.told, self.free
        is_ = {kind: told.valid & (told.kind == kind) for kind in EventKind}
        newest = Mux(is_[EventKind.DATA], told.position, row.told)
        begun = row.open | is_[EventKind.OPEN]
        live = ~self.gone
        released = free.valid & free.release
        m.d.comb += [
            Assume(self.op < len(OPS)),
            Assert(~self.gone | (~r.placed & ~told.valid & ~free.valid & ~self.tx)),
            Assert(told.kind.as_value() <= 4),
            Assert((r.phase.as_value() >= 2) & (r.phase.as_value() <= 4)),
        ]
        with m.If(live):
            m.d.comb += [
                Assert(r.placed == (begun | released)),
                Assert(~(row.open & is_[EventKind.OPEN]) & ~(released & (row.open | told.valid))),
                Assert(row.out == r.count + self.tx + is_[EventKind.SENT]),
                Assert(row.out <= 4),
                Assert(row.open | (row.out == 0)),
                Assert(row.open | (~row.eof & ~row.dead) | released),
                Assert(~told.valid | row.open | is_[EventKind.OPEN]),
                # Positions: consumed by the engine's record, by the service, told, in memory.
                Assert(_less(r.rcv_pub, r.rcv_cons) <= MOST),
                Assert(_less(row.cons, r.rcv_cons) <= _less(r.rcv_pub, r.rcv_cons)),
                Assert(_less(row.told, r.rcv_cons) <= _less(r.rcv_pub, r.rcv_cons)),
                Assert(_less(row.cons, r.rcv_cons) <= _less(row.told, r.rcv_cons)),
                Assert(_less(newest, r.rcv_cons) <= _less(r.rcv_pub, r.rcv_cons)),
                Assert(_less(row.told, r.rcv_cons) <= _less(newest, r.rcv_cons)),
                Assert(r.ev_data == (newest != r.rcv_pub)),
                Assert(~is_[EventKind.DATA] | (newest != row.told)),
                Assert(~is_[EventKind.OPEN] | (told.position == row.cons)),
                Assert(row.cons == Mux(free.valid & ~free.release, free.position, r.rcv_cons)),
                Assert(r.placed | (row.told == row.cons)),
                Assert(~is_[EventKind.OPEN] | (row.told == row.cons)),
                Assert(~free.valid | free.release | row.open),
                # The ends, each told once.
                Assert(r.fin_told == (r.ev_eof | is_[EventKind.EOF] | row.eof)),
                Assert(r.ev_eof + is_[EventKind.EOF] + row.eof <= 1),
                Assert(self.over == (r.ev_closed | is_[EventKind.CLOSED] | row.dead | released)),
                Assert(r.ev_closed + is_[EventKind.CLOSED] + row.dead + released <= 1),
            ]
            # Without a place something is due if the service does not know all, and only then.
            known = (row.told == r.rcv_pub) & (r.fin_told == row.eof) & ~self.over
            m.d.comb += Assert(r.placed | (self.rules.due(r) == ~known))
            last = is_[EventKind.EOF] | is_[EventKind.CLOSED] | is_[EventKind.SENT]
            m.d.comb += Assert(~last | (told.position == row.told) & (told.position == newest))
            with m.If(row.eof | is_[EventKind.EOF]):
                m.d.comb += Assert(~r.ev_data & ~is_[EventKind.DATA])
            with m.If(row.dead | is_[EventKind.CLOSED] | released):
                m.d.comb += Assert(~r.ev_data & ~is_[EventKind.DATA])
                m.d.comb += Assert(~r.ev_eof & ~is_[EventKind.EOF])
            with m.If(free.valid & free.rest):
                m.d.comb += Assert(~free.release)
                with m.If(~self.news):
                    m.d.comb += Assert((row.cons == row.told) & (row.out == 0) & ~row.dead)
                with m.Else():  # what came after it makes the engine ignore it
                    m.d.comb += Assert((row.told != free.position) | row.eof | row.dead)


PROOFS = (
    Proof(
        name="tcp_rest",
        quick=True,
        core="cores.tcp.places: the rules by which a session gets and gives back a place",
        says="a place is given back only when nothing of it is on its way; OPEN goes on where the "
        "service left off; a rest that is ignored is followed by an event",
        module="trebuchet.cores.tcp.places",
        build=RestProof,
        depth=2,
        cover_depth=30,
        mutants=(
            Mutant(
                "rests_when_over",
                "(record.count == 0) & ~over & ~record.fin_told",
                "(record.count == 0) & ~record.fin_told",
                16,
            ),
            Mutant(
                "rests_after_fin",
                "(record.count == 0) & ~over & ~record.fin_told",
                "(record.count == 0) & ~over",
                16,
            ),
            Mutant("no_place_for_the_end", "record.ev_eof | record.ev_closed", "record.ev_eof", 16),
        ),
        assumes="engines decide by these rules, within a checkout; the service keeps the contract",
        not_proved="that what is on its way arrives",
    ),
)
