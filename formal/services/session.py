"""Proof of ``SessionMachine`` in ``cores/services/session.py``, three sessions.

The service is any that keeps the rules of the data sheet, the engine any that opens free numbers
and ends sessions by the contract of ``cores/tcp/service.py``; each may take any time.

Proved, over the ports: events are worked on in their order, each once, and taken by their work; a
work sees its session's record as the last work on that session left it, and a record of 0 with
OPEN, whatever the number's last session left; a session is in the active list at most once, only
while it is open; one with ``more`` is in the list or at work (no lost wake-up), and the list is
served in its order; one work at a time, which ends when what it posts and frees is taken, without
further delay; a place is offered once after an event, when the session is idle, has no more to do
and is not listed, never with a release.

A listed session may have nothing to do any more when its turn comes: CLOSED, for one, changes what
there is to do. It is then not listed again.

The list is one of registers (:class:`~trebuchet.formal.kit.inside.RegisterFifo`).

Not proved: more sessions, wider records; a reset while running; that a service keeps the rules,
which is part of its own proof.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import data

from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .session_view import EVENT, LISTED, WORK, SessionView, open_machine

__all__ = ["PROOFS"]

RECORD = data.StructLayout({"due": 1, "held": 1, "note": 2})


class SessionProof(Elaboratable):
    def __init__(self, cores, **options):
        with open_machine(cores):
            self.dut = cores.SessionMachine(RECORD, 3, **options)

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.submodules.dut = dut
        free(m, dut.new, dut.done, dut.post, dut.descriptor, dut.consume, dut.release)
        free(m, dut.position, dut.forget, dut.active.shows)
        if dut.lag:
            free(m, dut.request, dut.asked, dut.sweep)
        domain = m.d.sync if dut.lag else m.d.comb
        domain += [dut.more.eq(dut.record.due), dut.idle.eq(~dut.record.held)]
        self.view = view = SessionView(m, dut, dut.service, lambda record: record.due)
        view.service_rules(Assume)
        self._left(m)
        self._covers(m)
        return m

    def _left(self, m):
        """What the last work on an arbitrary session left."""
        dut, view = self.dut, self.view
        chosen, left, known = Signal(range(3)), Signal(RECORD), Signal()
        peek = dut.table.read_port(domain="comb")
        m.d.comb += [chosen.eq(AnyConst(2)), Assume(chosen < 3), peek.addr.eq(chosen)]
        mine = view.who == chosen
        with m.If(dut.work & mine):
            m.d.sync += [left.eq(dut.new), known.eq(1)]
        last = Mux(known, Value.cast(left), 0)
        fresh = (view.kind == EVENT) & view.opens
        with m.If(view.first & mine):
            m.d.comb += Assert(Value.cast(dut.record) == Mux(fresh, 0, last))
        newest = view.rows[0].as_value()
        for k in (1, 2):
            newest = Mux(chosen == k, view.rows[k].as_value(), newest)
        waits = view.first & mine
        early = mine & ((view.stage == WORK - 1) | waits)
        m.d.comb += Assert(early | (newest == last))
        with m.If(early):
            m.d.comb += Assert(peek.data.record.as_value() == last)

    def _covers(self, m):
        dut, view, svc = self.dut, self.view, self.dut.service
        m.d.comb += Cover(moves(svc.free) & svc.free.payload.release)
        m.d.comb += Cover(dut.work & (view.kind == LISTED) & ~dut.record.due)
        if dut.rest:
            again = Signal()
            with m.If(view.given & (view.now.note == 3)):
                m.d.sync += again.eq(1)
            m.d.comb += Cover(again & dut.work & view.opening)


ASSUMES = "a service that keeps the data sheet's rules; an engine that opens free numbers"
NOT_PROVED = "more sessions, wider records; a reset while running"
CORE = "cores.services.session.SessionMachine(4 bits, 3 sessions)"

PROOFS = (
    Proof(
        name="session_machine",
        core=CORE,
        says="events once and in order, each on its session's record as it was left; with more to "
        "do a session is listed, once",
        module="trebuchet.cores.services.session",
        build=SessionProof,
        depth=1,
        cover_depth=20,
        mutants=(
            Mutant(
                "lists_twice", "self.more & ~self.listed & ~self.over", "self.more & ~self.over"
            ),
            Mutant(
                "stale_record", "Mux(opens, 0, self.read.data.record)", "self.read.data.record", 24
            ),
            Mutant("event_before_done", "with m.If(self.done):", "with m.If(1):"),
        ),
        assumes=ASSUMES,
        not_proved=NOT_PROVED,
    ),
    Proof(
        name="session_machine_rest",
        core=CORE + " with places, requests and sweeps, a cycle behind",
        says="the same; a place is offered once after an event, with nothing left to be done",
        module="trebuchet.cores.services.session",
        build=lambda cores: SessionProof(cores, rest=True, lag=True),
        depth=1,
        cover_depth=24,
        mutants=(
            Mutant("rests_with_work", "self.more | self.listed | self.over", "self.over", 20),
            Mutant("rests_after_open", "opens | (self.kind == Work.SWEPT)", "0", 20),
            Mutant("lists_nobody", "self.release | self.forget", "self.release", 20),
            Mutant(
                "writes_the_next",
                "self.write.addr.eq(self.session)",
                "self.write.addr.eq(self.read.addr)",
                20,
            ),
        ),
        assumes=ASSUMES,
        not_proved=NOT_PROVED,
    ),
)
