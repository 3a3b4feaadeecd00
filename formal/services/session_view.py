"""Rules and invariants of ``SessionMachine``, for its own proof and those of its services.

:class:`SessionView` follows a machine from its ports. The machine's own proof (``session.py``)
drives it by any service that keeps :meth:`SessionView.service_rules`, with ``Assume``; the proof of
a service asserts them, and adds what each piece of work does to the record.
"""

from contextlib import contextmanager

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Mux, Signal, Value

from ...cores.tcp.service import EventKind
from ..kit.inside import RegisterFifo, opened, patched
from ..kit.parts import moves
from ..stream import free, stream_rules

__all__ = ["EVENT", "LIST", "LISTED", "REQUEST", "SWEPT", "IDLE", "READ", "MEASURE", "WORK"]
__all__ += ["SessionView", "open_machine"]

LISTED, EVENT, REQUEST, SWEPT = range(4)
STATES = ("IDLE", "READ", "MEASURE", "WORK", "SETTLE", "LIST", "WRITE", "WAIT")
IDLE, READ, MEASURE, WORK, SETTLE, LIST, WRITE, WAIT = range(8)


class _Names:
    """The global names of a class's module, also of a mutated copy, as attributes."""

    def __init__(self, cls):
        self.__dict__ = cls.elaborate.__globals__


@contextmanager
def open_machine(cores):
    """For the time in which a service of module ``cores`` is made: its machine is elaborated as it
    is made, with a list of registers."""
    machine = cores.SessionMachine
    with (
        patched(_Names(machine), BlockFifo=RegisterFifo),
        patched(cores, SessionMachine=opened(machine)),
    ):
        yield


class SessionView:
    """Follows ``machine``, made by :func:`open_machine`; ``service`` is its port of the engine.

    ``more_of`` says of a record whether there is something to do. Attributes, of the work: its
    ``stage``, ``kind``, session ``who``, ``row`` of the table when it began, ``start`` (the record
    that it begins with), ``now`` (the record), ``first`` (a cycle: the service's first). Of the
    sessions, a bit each: ``alive``, it is open; ``said``, it has offered its place and had no event
    since. ``rows``: their records as of now.
    """

    def __init__(self, m, machine, service, more_of):
        self.m, self.machine, self.service, self.more_of = m, machine, service, more_of
        self.n, self.inside = machine.sessions, machine.inside
        self._engine()
        self._stages()
        self._records()
        self._sessions()
        self._outputs()
        self._listing()

    def at(self, *stages):
        return sum(((self.stage == k) for k in stages), start=Value.cast(0)) != 0

    def bit(self, bits, number):
        return Value.cast(bits).bit_select(Value.cast(number)[: (self.n - 1).bit_length()], 1)

    def _engine(self):
        """Free inputs of the engine, which opens numbers that are free and closes them once."""
        m, svc, n = self.m, self.service, self.n
        free(m, svc.event.valid, svc.event.payload, svc.tx.ready, svc.free.ready)
        stream_rules(m, svc.event, Assume, "event")
        stream_rules(m, svc.tx, Assert, "tx")
        stream_rules(m, svc.free, Assert, "free")
        self.alive, self.said = Signal(n), Signal(n)
        event, freed = svc.event.payload, svc.free.payload
        self.opens = opens = event.kind == EventKind.OPEN
        m.d.comb += [
            Assume(event.session < n),
            Assume(Value.cast(event.kind) <= 4),
            Assume(~svc.event.valid | (self.bit(self.alive, event.session) != opens)),
        ]
        with m.If(moves(svc.event)):
            m.d.sync += self.bit(self.said, event.session).eq(0)
            with m.If(opens):
                m.d.sync += self.bit(self.alive, event.session).eq(1)
        with m.If(moves(svc.free) & freed.release):
            m.d.sync += self.bit(self.alive, freed.session).eq(0)
        self.given = Signal()  # the engine takes the place back
        if self.machine.rest:
            same = svc.event.valid & (event.session == freed.session)
            m.d.comb += self.given.eq(moves(svc.free) & freed.rest & AnySeq(1))
            m.d.comb += Assume(~self.given | ~same)
            with m.If(self.given):
                m.d.sync += self.bit(self.alive, freed.session).eq(0)

    def _stages(self):
        """One work after the other, in the order of the data sheet, without delay."""
        m, dut, event = self.m, self.machine, self.service.event
        turn, listed = dut.sweeper.turn, dut.active.r_rdy
        self.stage, self.kind = Signal(3), Signal(2)
        self.who = Signal.like(dut.session)
        pops = Signal(name="pops")
        unasked = ~dut.request & ~event.valid
        m.d.comb += [
            pops.eq((self.stage == IDLE) & unasked & ~turn & listed),
            Assert(dut.active.r_en == pops),
            Assert(dut.sweeper.idle == ((self.stage == IDLE) & unasked & (turn | listed))),
        ]
        later = Signal(name="later")  # the work is not in its first cycle
        m.d.sync += later.eq(dut.work & ~dut.done)
        m.d.comb += Assert(~later | dut.work)
        self.first = dut.work & ~later
        with m.Switch(self.stage):
            with m.Case(IDLE):
                for kind, ask, number in (
                    (LISTED, listed, dut.active.cells[0]),
                    (SWEPT, turn, dut.sweeper.session),
                    (EVENT, event.valid, event.payload.session),
                    (REQUEST, dut.request, dut.asked),
                ):  # the last of these goes first
                    with m.If(ask):
                        m.d.sync += [self.kind.eq(kind), self.who.eq(number), self.stage.eq(READ)]
            with m.Case(READ):
                m.d.sync += self.stage.eq(MEASURE if dut.lag else WORK)
            with m.Case(WORK):
                with m.If(dut.done):
                    m.d.sync += self.stage.eq(SETTLE if dut.lag else LIST)
            with m.Case(WAIT):
                with m.If(~self.service.tx.valid & ~self.service.free.valid & ~dut.rests):
                    m.d.sync += self.stage.eq(IDLE)
            with m.Default():
                m.d.sync += self.stage.eq(self.stage + 1)
        skipped = () if dut.lag else (MEASURE, SETTLE)
        m.d.comb += [Assert(self.stage != k) for k in skipped]
        m.d.comb += [
            Assert(self.inside.state(name) == (self.stage == k))
            for k, name in enumerate(STATES)
            if k not in skipped
        ]
        event_now = self.at(READ, MEASURE, WORK) & (self.kind == EVENT)
        m.d.comb += [
            Assert(self.inside.fsm_bounded()),
            Assert(dut.work == (self.stage == WORK)),
            Assert(self.at(IDLE) | (dut.session == self.who)),
            Assert(self.at(IDLE) | (Value.cast(dut.kind) == self.kind)),
            Assert(self.at(IDLE) | (self.who < self.n)),
            Assert(~event_now | event.valid & (event.payload.session == self.who)),
            # An event is taken by its work, once.
            Assert(event.ready == (dut.work & dut.done & (self.kind == EVENT))),
            Assert(dut.sweeper.session < self.n),
        ]

    def _records(self):
        """The work is on its session's record, and on no other."""
        m, dut = self.m, self.machine
        row = dut.table.read_port(domain="comb")
        self.row, self.opening = Signal.like(row.data, name="row"), Signal()
        self.now = Signal(dut.layout, name="now")
        self.start = Signal(dut.layout, name="start")
        self.listed = Signal(name="now_listed")
        m.d.comb += row.addr.eq(self.who)
        m.d.comb += Value.cast(self.start).eq(Mux(self.opening, 0, self.row.record.as_value()))
        opens = (self.kind == EVENT) & self.opens
        with m.If(self.stage == READ):
            m.d.sync += [self.row.eq(row.data), self.opening.eq(opens)]
            m.d.sync += Value.cast(self.now).eq(Mux(opens, 0, row.data.record.as_value()))
            m.d.sync += self.listed.eq(row.data.listed & (self.kind != LISTED))
            m.d.comb += Assert(Value.cast(dut.read.data) == Value.cast(row.data))
        with m.If(self.at(MEASURE, WORK)):
            m.d.comb += Assert(self.opening == opens)
            m.d.comb += Assert(dut.quiet == (self.opening | (self.kind == SWEPT)))
        with m.If(self.at(MEASURE, WORK, SETTLE, LIST, WRITE)):
            m.d.comb += Assert(Value.cast(row.data) == Value.cast(self.row))
        with m.If(self.at(MEASURE, WORK, SETTLE, LIST, WRITE, WAIT)):
            m.d.comb += Assert(Value.cast(dut.record) == Value.cast(self.now))
            m.d.comb += Assert(dut.listed == self.listed)
        with m.If(self.stage == WORK):
            m.d.sync += Value.cast(self.now).eq(Value.cast(dut.new))
        with m.If(self.stage == WAIT):
            m.d.comb += Assert(row.data.record.as_value() == Value.cast(self.now))
            m.d.comb += Assert(row.data.listed == self.listed)
        self.over = Signal(name="is_over")
        puts = (self.stage == LIST) & self.more_of(self.now) & ~self.listed & ~self.over
        with m.If(puts):
            m.d.sync += self.listed.eq(1)
        with m.If(self.stage == WORK):
            m.d.sync += self.over.eq(dut.release | dut.forget)
        m.d.comb += [
            Assert(~self.at(SETTLE, LIST, WRITE, WAIT) | (dut.over == self.over)),
            Assert(dut.active.w_en == puts),
            Assert(~puts | (dut.active.w_rdy & (dut.active.w_data == self.who))),
            Assert(dut.write.en == (self.stage == WRITE)),
        ]

    def _sessions(self):
        """Who is listed: each at most once, if it is open, and whenever there is work for it."""
        m, dut, active = self.m, self.machine, self.machine.active
        self.rows = []
        for k in range(self.n):
            peek = dut.table.read_port(domain="comb")
            mine = (self.who == k) & ~self.at(IDLE)
            held = mine & self.at(MEASURE, WORK, SETTLE, LIST, WRITE)
            working = mine & ~self.at(WAIT)
            leaves = mine & self.service.free.valid & self.service.free.payload.release
            listed, alive, said = Signal(name=f"listed{k}"), self.alive[k], self.said[k]
            record = Signal(dut.layout, name=f"record{k}")
            popped = mine & (self.kind == LISTED) & (self.stage == READ)
            m.d.comb += [
                peek.addr.eq(k),
                listed.eq(Mux(held, self.listed, peek.data.listed & ~popped)),
                Value.cast(record).eq(Mux(held, Value.cast(self.now), peek.data.record.as_value())),
            ]
            before = mine & self.at(READ, MEASURE, WORK)
            opening = before & (self.kind == EVENT) & self.opens
            swept = mine & (self.kind == SWEPT)
            inside = sum((active.level > j) & (active.cells[j] == k) for j in range(self.n))
            m.d.comb += [
                Assert(inside == listed),
                Assert(~popped | peek.data.listed),
                Assert(alive | ~listed),
                Assert(~said | ~listed),
                Assert(alive | ~working | opening | swept | self.over & ~before),
                Assert(~opening | ~alive),
                Assert(~said | ~working | swept | before & (self.kind == EVENT)),
                # No work is forgotten.
                Assert(~alive | working | leaves | ~self.more_of(record) | listed),
            ]
            self.rows.append(record)
        m.d.comb += Assert(active.level <= self.n)
        for j, cell in enumerate(active.cells):
            m.d.comb += Assert((active.level <= j) | (cell < self.n))

    def _outputs(self):
        """What the work posts, frees and releases; then, perhaps, its place."""
        m, dut, svc = self.m, self.machine, self.service
        ended = dut.work & dut.done
        after = self.at(SETTLE, LIST, WRITE, WAIT)
        self.frees, self.releases = Signal(name="frees"), Signal(name="releases")
        frees, releases = self.frees, self.releases
        posts, says = Signal(name="posts"), Signal(name="says")
        m.d.sync += [
            posts.eq(Mux(ended, dut.post, posts & ~moves(svc.tx))),
            frees.eq(Mux(ended, dut.consume | dut.release, frees & ~moves(svc.free))),
            releases.eq(Mux(ended, dut.release, releases)),
        ]
        m.d.comb += [
            Assert(svc.tx.valid == posts),
            Assert(svc.free.valid == (frees | says)),
            Assert(after | ~(posts | frees | says)),
            Assert(~(frees & says)),
            Assert(~frees | (self.over == releases)),
            Assert(~(frees & releases) | (self.kind == LISTED)),
        ]
        with m.If(svc.tx.valid):
            rest = Signal.like(svc.tx.payload)
            m.d.comb += [Value.cast(rest).eq(Value.cast(dut.descriptor)), rest.session.eq(self.who)]
            m.d.comb += Assert(Value.cast(svc.tx.payload) == Value.cast(rest))
        with m.If(svc.free.valid):
            m.d.comb += [
                Assert(svc.free.payload.session == self.who),
                Assert(svc.free.payload.position == dut.position),
                Assert(svc.free.payload.release == (frees & releases)),
            ]
        if dut.rest:
            self._rest(says, after)

    def _listing(self):
        """While a work goes on: what it was listed for, and will be."""
        dut, row, alive = self.machine, self.row, self.bit(self.alive, self.who)
        peek = dut.table.read_port(domain="comb")
        before, after = self.at(MEASURE, WORK), self.at(SETTLE, LIST, WRITE, WAIT)
        released = (self.kind == LISTED) & self.releases
        due = self.more_of(self.now)
        self.m.d.comb += [
            peek.addr.eq(self.who),
            Assert(~before | ~alive | ~self.more_of(row.record) | row.listed),
            Assert(
                (self.stage != READ) | ~alive | ~self.more_of(peek.data.record) | peek.data.listed
            ),
            Assert(
                ~self.at(MEASURE, WORK, SETTLE, LIST)
                | (self.listed == (row.listed & (self.kind != LISTED)))
            ),
            Assert(~after | ~self.over | released | (self.kind == SWEPT)),
            Assert(~(after & released) | self.over & ~self.listed & (self.frees | ~alive)),
            Assert(~(after & self.over & (self.kind == SWEPT) & alive & due) | self.listed),
            Assert(~self.at(WRITE, WAIT) | self.over | ~due | self.listed),
            Assert(
                ~after | (self.kind != SWEPT) | self.over | (alive & ~self.bit(self.said, self.who))
            ),
            Assert(~self.at(MEASURE) | (Value.cast(self.now) == Value.cast(self.start))),
        ]

    def _rest(self, says, after):
        """A place is offered once after an event, when nothing is left to be done."""
        m, dut, svc = self.m, self.machine, self.service
        said = self.bit(self.said, self.who)
        calm = (self.kind != SWEPT) & ~self.opening & ~self.over & ~self.listed
        offers = Signal(name="offers")
        m.d.comb += offers.eq((self.stage == WAIT) & dut.rests & ~svc.tx.valid & ~svc.free.valid)
        due, idle = Signal(), Signal()
        m.d.comb += idle.eq(dut.idle & calm & ~self.more_of(self.now))
        with m.If(self.stage == LIST):
            m.d.sync += due.eq(idle)
        with m.Elif(offers):
            m.d.sync += [due.eq(0), says.eq(1), said.eq(1)]
        with m.If(moves(svc.free)):
            m.d.sync += says.eq(0)
        open_ = self.bit(self.alive, self.who)
        m.d.comb += [
            Assert(dut.rests == due),
            Assert(~due | self.at(WRITE, WAIT) & calm & ~said & open_ & ~says),
            Assert(~says | (self.stage == WAIT) & ~svc.tx.valid & said & open_),
            Assert(~svc.free.valid | (svc.free.payload.rest == says)),
        ]
        with m.If(after):
            m.d.comb += Assert(dut.quiet == (self.opening | (self.kind == SWEPT)))

    def service_rules(self, check):
        """What the machine relies on, of the service that it is a part of."""
        m, dut = self.m, self.machine
        ended = dut.work & dut.done
        alive, said = self.bit(self.alive, self.who), self.bit(self.said, self.who)
        m.d.comb += [
            check(~ended | ~(dut.consume & dut.release)),
            check(~ended | ~dut.release | (self.kind == LISTED)),
            check(~ended | ~dut.forget | (self.kind == SWEPT)),
            check((self.stage != LIST) | (dut.more == self.more_of(dut.record))),
        ]
        with m.If(dut.request):
            m.d.comb += [
                check(dut.asked < self.n),
                check(self.bit(self.alive, dut.asked) & ~self.bit(self.said, dut.asked)),
            ]
        with m.If(ended & (self.kind == SWEPT)):
            same = ~self.more_of(dut.new) | self.more_of(self.start)
            m.d.comb += [
                check(dut.forget | (alive & ~said)),
                check(~dut.forget | same),
                check(~(dut.post | dut.consume)),
            ]
        asks, asked = Signal(name="asks"), Signal.like(dut.asked)
        begins = self.first & (self.kind == REQUEST)
        m.d.sync += [asks.eq(dut.request & ~begins), asked.eq(dut.asked)]
        m.d.comb += check(~asks | dut.request & (dut.asked == asked))
        held = Signal(name="held")
        kept = [Value.cast(dut.descriptor)[17:], dut.position]
        for k, value in enumerate(kept):
            past = Signal(len(value), name=f"kept{k}")
            m.d.sync += past.eq(value)
            m.d.comb += check(~held | (past == value))
        m.d.sync += held.eq(self.at(SETTLE, LIST, WRITE, WAIT))
        in_work = (self.at(READ, MEASURE) | self.first) & (self.kind == REQUEST)
        m.d.comb += Assert(~in_work | dut.request & (dut.asked == self.who))
