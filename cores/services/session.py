"""The session state machine of services: records, active list, order of work."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS, BlockFifo
from ..tcp.service import POSITION_WIDTH, EventKind, ServiceSignature, TxLayout
from .discard import check_sessions
from .sweep import Sweeper

__all__ = ["SessionMachine", "Work"]


class Work(enum.Enum, shape=2):
    """Why a session's record is worked on."""

    LISTED = 0  # it was next in the active list
    EVENT = 1  # of the engine, on ``service.event``
    REQUEST = 2  # of the service itself, on ``request``
    SWEPT = 3  # its turn in a sweep


class SessionMachine(wiring.Component):
    """Owns a service's table of session records, and has the service work on one at a time.

    Parameters
    ----------
    layout : data.StructLayout
        A record: what the service must know of a session.
    sessions : int
        Session numbers 0 to ``sessions - 1`` may come.
    rest : bool
        Sessions are places (:mod:`~trebuchet.cores.tcp.service`).
    lag : bool
        ``more``, ``idle`` and what the service decides by follow ``record`` a cycle late. Costs a
        cycle before the work and one after it.

    ==============  ===  =====================================================================
    ``service``     In   :class:`~trebuchet.cores.tcp.service.ServiceSignature`
    ``request``     In   the service asks to work on session ``asked``; both held until the first
                         cycle of that work
    ``asked``       In   a session
    ``sweep``       In   strobe: go through all sessions once, between other work
    ``work``        Out  a piece of work is under way
    ``kind``        Out  :class:`Work`: why
    ``session``     Out  on which session, until all that it posts and frees is taken
    ``record``      Out  the session's record; with ``OPEN`` it is 0
    ``new``         In   with ``work``: the record of the next cycle
    ``done``        In   with ``work``: it ends with this cycle
    ``post``        In   with ``done``: offer ``descriptor`` on ``service.tx``
    ``descriptor``  In   :data:`~trebuchet.cores.tcp.service.TxLayout`; ``session`` is left out
    ``consume``     In   with ``done``: all bytes before ``position`` are consumed
    ``release``     In   with ``done``: answer ``CLOSED``
    ``position``    In   number of bytes consumed
    ``forget``      In   with ``done`` of a sweep's work: do not list the session
    ``more``        In   there is something to do for a session with this ``record``
    ``idle``        In   with ``rest``: nothing is held for it, it may give its place back
    ==============  ===  =====================================================================

    Inputs that a service does not need are left unconnected. ``descriptor`` and ``position`` are
    constant from the cycle after ``done`` until the next work.

    Order: a request, else an event, else sweep and list in turn. An event is taken with ``done`` of
    its work. No work begins before what the last one has posted and freed is taken: all decisions
    about a session fall in one place, one after the other.

    A session is in the active list at most once. It goes to the list's end after a work that leaves
    it with ``more``, unless it is listed already; it leaves the list when its work of kind
    ``LISTED`` begins, and what it was listed for may be over by then. So no work is found by a scan
    of the table, and none is forgotten.

    With ``rest`` a place is offered after a work that leaves its session ``idle`` and not listed,
    except after ``OPEN``, which another event follows, and after a sweep's work. ``position`` goes
    with it.

    Rules for a service, which its own proof has to show:

    1. ``consume`` and ``release`` exclude each other; ``release`` only in work of kind ``LISTED``.
    2. ``request`` only for a session that is open and has not offered its place since its last
       event.
    3. In a sweep's work ``forget`` if the session is not open or has offered its place; ``forget``
       with a record that has ``more`` only if it had ``more`` before.

    Latency: an event takes 5 cycles and those of the work, 2 more with ``lag``. Back-pressure:
    while ``tx`` or ``free`` waits no work begins (the contract allows it). Reset: forgets every
    session; the engine must be reset with it. Bad input: a session number out of range is cut to
    the table's address width.
    """

    def __init__(self, layout, sessions, rest=False, lag=False):
        self.layout, self.sessions = layout, check_sessions(sessions)
        self.rest, self.lag = rest, lag
        super().__init__(
            {
                "service": In(ServiceSignature(rest)),
                "request": In(1),
                "asked": In(range(max(2, sessions))),
                "sweep": In(1),
                "work": Out(1),
                "kind": Out(Work),
                "session": Out(range(max(2, sessions))),
                "record": Out(layout),
                "new": In(layout),
                "done": In(1),
                "post": In(1),
                "descriptor": In(TxLayout),
                "consume": In(1),
                "release": In(1),
                "position": In(POSITION_WIDTH),
                "forget": In(1),
                "more": In(1),
                "idle": In(1),
            }
        )
        # No ports: for proofs.
        row = data.StructLayout({"record": layout, "listed": 1})
        self.table = Memory(shape=row, depth=sessions, init=[], attrs=NO_COLLISIONS)
        self.active = BlockFifo(width=len(self.session), depth=sessions)
        self.sweeper = Sweeper(sessions)
        self.listed = Signal()  # the session at work is in the list
        self.over = Signal()  # it is released, or to be forgotten
        self.quiet = Signal()  # it does not rest after this work
        self.rests = Signal()  # it rests after this work

    def elaborate(self, platform):
        m = Module()
        m.submodules.table, m.submodules.active = self.table, self.active
        m.submodules.sweeper = self.sweeper
        self.read, self.write = self.table.read_port(), self.table.write_port()
        svc, descriptor = self.service, self.descriptor
        m.d.comb += [
            self.write.addr.eq(self.session),
            self.write.data.record.eq(self.record),
            self.write.data.listed.eq(self.listed),
            self.active.w_data.eq(self.session),
            self.sweeper.sweep.eq(self.sweep),
            self.sweeper.other.eq(self.active.r_rdy),
            svc.free.payload.session.eq(self.session),
            svc.free.payload.position.eq(self.position),
            svc.tx.payload.eq(descriptor),
        ]
        m.d.comb += svc.tx.payload.session.eq(self.session)
        for port in (svc.tx, svc.free):
            with m.If(port.ready):
                m.d.sync += port.valid.eq(0)
        with m.FSM():
            self._choose(m)
            self._work(m)
            self._finish(m)
        return m

    def _choose(self, m):
        event, read, turn = self.service.event, self.read, self.sweeper.turn
        with m.State("IDLE"):
            with m.If(self.request):
                m.d.sync += self.kind.eq(Work.REQUEST)
                m.d.comb += read.addr.eq(self.asked)
            with m.Elif(event.valid):
                m.d.sync += self.kind.eq(Work.EVENT)
                m.d.comb += read.addr.eq(event.payload.session)
            with m.Else():
                m.d.sync += self.kind.eq(Mux(turn, Work.SWEPT, Work.LISTED))
                m.d.comb += [
                    read.addr.eq(Mux(turn, self.sweeper.session, self.active.r_data)),
                    self.sweeper.idle.eq(turn | self.active.r_rdy),
                    self.active.r_en.eq(self.active.r_rdy & ~turn),
                ]
            m.d.sync += self.session.eq(read.addr)
            with m.If(self.request | event.valid | self.active.r_rdy | turn):
                m.next = "READ"

    def _work(self, m):
        svc, event = self.service, self.service.event
        opens = Signal()
        m.d.comb += opens.eq((self.kind == Work.EVENT) & (event.payload.kind == EventKind.OPEN))
        with m.State("READ"):
            m.d.sync += [
                self.record.eq(Mux(opens, 0, self.read.data.record)),
                self.listed.eq(self.read.data.listed & (self.kind != Work.LISTED)),
                self.quiet.eq(opens | (self.kind == Work.SWEPT)),
            ]
            m.next = "MEASURE" if self.lag else "WORK"
        if self.lag:
            with m.State("MEASURE"):
                m.next = "WORK"
        with m.State("WORK"):
            m.d.comb += self.work.eq(1)
            m.d.sync += [self.record.eq(self.new), self.over.eq(self.release | self.forget)]
            m.d.sync += svc.free.payload.release.eq(self.release)
            if self.rest:
                m.d.sync += svc.free.payload.rest.eq(0)
            with m.If(self.done):
                m.d.comb += event.ready.eq(self.kind == Work.EVENT)
                m.d.sync += [
                    svc.tx.valid.eq(self.post),
                    svc.free.valid.eq(self.consume | self.release),
                ]
                m.next = "SETTLE" if self.lag else "LIST"

    def _finish(self, m):
        """List the session, write its record, let tx and free be taken, offer the place."""
        svc, free = self.service, self.service.free
        if self.lag:
            with m.State("SETTLE"):
                m.next = "LIST"
        with m.State("LIST"):
            with m.If(self.more & ~self.listed & ~self.over):
                m.d.comb += self.active.w_en.eq(1)
                m.d.sync += self.listed.eq(1)
            if self.rest:
                busy = self.more | self.listed | self.over | self.quiet
                m.d.sync += self.rests.eq(self.idle & ~busy)
            m.next = "WRITE"
        with m.State("WRITE"):
            m.d.comb += self.write.en.eq(1)
            m.next = "WAIT"
        with m.State("WAIT"):
            with m.If(~svc.tx.valid & ~free.valid):
                m.next = "IDLE"
                if self.rest:
                    with m.If(self.rests):
                        m.d.sync += [self.rests.eq(0), free.valid.eq(1)]
                        m.d.sync += [free.payload.rest.eq(1), free.payload.release.eq(0)]
                        m.next = "WAIT"
