"""Proof of ``cores/tcp/events.py``: no event is lost, doubled, invented or told out of turn.

For an arbitrary record the one event told, if any, and every field handed back are compared with
the service port's contract: OPEN, then DATA before EOF, SENT in the order of posting and only when
no segment is with the sender, CLOSED last, when every descriptor is answered. A note in the record
is cleared exactly when its event is told, so none is lost or doubled; a descriptor slot is given
back exactly with its SENT, so its memory stays the engine's until the bytes are acknowledged or the
session is over. The event goes to the service whose list is served, stands still there until it is
taken, and is never overwritten.

With places a session without one is told nothing but OPEN, of a place that is free, and only if
there is more to tell; if none is free its record stays as it is.

Not proved: that every service gets its turn; a reset while running.
"""

from dataclasses import replace

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.config import TcpConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .checkout import OPEN, SYN_RCVD, Checkout, Inside, descriptor_ram, signed

__all__ = ["PROOFS"]

CONFIG = TcpConfig(sessions=4, ports=(7, 9), segment_log2=12, pool_base=0x70000)
TOLD_OPEN, TOLD_DATA, TOLD_EOF, TOLD_SENT, TOLD_CLOSED = range(5)


class EventProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        inside = Inside(m, dut)
        self.lent = lent = Checkout(m, dut.port, longest=2)
        r = lent.record
        slots, _ = descriptor_ram(m, dut, lent)
        free(m, dut.event_valid, dut.heads)
        self._lists(m, inside)
        told, kind, ok, answered = Signal(), Signal(3), Signal(), Signal()
        settled, over = Signal(), Signal()
        oldest = Signal(slots[0].shape(), name="oldest")
        with m.Switch(r.first):
            for k, slot in enumerate(slots):
                with m.Case(k):
                    m.d.comb += oldest.eq(slot)
        m.d.comb += [
            settled.eq(signed(r.snd_una - oldest.end) >= 0),
            over.eq((lent.phase != OPEN) & (lent.phase != SYN_RCVD) & ~lent.opening),
            told.eq(1),
            ok.eq(1),
        ]
        opens, takes, short = r.ev_open, Signal(name="takes"), Signal(name="short")
        if dut.config.places:
            opens = ~r.placed
        with m.If(opens):
            m.d.comb += kind.eq(TOLD_OPEN)
            if dut.config.places:
                free(m, dut.place, dut.place_valid)
                due = r.ev_data | r.ev_eof | r.ev_closed
                m.d.comb += [ok.eq(~r.fin_queued), takes.eq(due & dut.place_valid)]
                m.d.comb += [told.eq(takes), short.eq(due & ~dut.place_valid)]
                m.d.comb += lent.put(placed=takes)
                with m.If(takes):
                    m.d.comb += lent.put(place=dut.place)
            else:
                m.d.comb += lent.put(ev_open=0)
        with m.Elif(r.ev_data):
            m.d.comb += [kind.eq(TOLD_DATA), lent.put(ev_data=0)]
        with m.Elif(r.ev_eof):
            m.d.comb += [kind.eq(TOLD_EOF), lent.put(ev_eof=0)]
        with m.Elif(r.check & (r.count != 0) & (r.flight == 0) & (settled | over)):
            m.d.comb += [kind.eq(TOLD_SENT), ok.eq(settled), answered.eq(1)]
            m.d.comb += lent.put(first=r.first + 1, count=r.count - 1)
            with m.If(r.ahead != 0):
                m.d.comb += lent.put(ahead=r.ahead - 1)
        with m.Elif(r.check & (r.count != 0) & (r.flight == 0)):
            m.d.comb += [told.eq(0), lent.put(check=0)]  # look again when something changes
        with m.Elif(r.ev_closed & (r.count == 0)):
            m.d.comb += [kind.eq(TOLD_CLOSED), ok.eq(r.ok), lent.put(ev_closed=0)]
        with m.Else():
            m.d.comb += told.eq(0)
        # Of a session without a place nothing is written but the place, and that only with one.
        lent.compare()
        m.d.comb += Assert(dut.answered == (lent.done & answered))
        self._outputs(m, inside, told, kind, ok, oldest.tag)
        if dut.config.places:
            m.d.comb += Assert(dut.take == (lent.done & takes))
            m.d.comb += Assert(dut.count.places_short == (lent.done & short))
            m.d.comb += Cover(lent.done & takes & ~ok & (r.place != dut.place))
            m.d.comb += Cover(lent.done & short)
        closing = lent.done & told & (kind == TOLD_CLOSED)
        m.d.comb += [
            Cover(lent.done & answered & ok & (r.first == 3) & (oldest.end > r.snd_una)),
            Cover(lent.done & answered & ~ok),
            Cover(lent.done & ~told & r.check & (r.count == 2)),
            Cover(closing & (dut.pick == 1) & r.ok),
        ]
        return m

    def _lists(self, m, inside):
        """The store's lists: heads stay until their session is fetched."""
        dut, lent = self.dut, self.lent
        for k in range(2):
            head = dut.heads.word_select(k, CONFIG.session_bits)
            past, stays = Signal.like(head, name=f"head_{k}"), Signal(name=f"stays_{k}")
            popped = lent.fetch & (dut.pick == k)
            m.d.sync += [past.eq(head), stays.eq(dut.event_valid[k] & ~popped)]
            with m.If(stays):
                m.d.comb += Assume(dut.event_valid[k] & (head == past))
            with m.If(dut.pick == k):
                # What is asked for is the head of the list that is said to be served.
                with m.If(dut.port.request & ~lent.lent):
                    m.d.comb += [Assert(dut.event_valid[k]), Assert(dut.port.session == head)]
                with m.If(inside.state("HEAD")):
                    m.d.comb += Assert(dut.event_valid[k])
                with m.If(dut.port.request | lent.lent | inside.state("HEAD")):
                    m.d.comb += Assert(~dut.event[k].valid)
        m.d.comb += Assert(inside.known())
        m.d.comb += Assert(
            lent.lent
            == (
                (lent.held == 0) & lent.lent & inside.state("CLAIM")
                | (lent.held == 1) & inside.state("READ")
                | (lent.held == 2) & inside.state("TELL")
            )
        )

    def _outputs(self, m, inside, told, kind, ok, tag):
        """An event stands at its port two cycles after the commit it belongs to."""
        dut, lent, r = self.dut, self.lent, self.lent.record
        shape = dut.event[0].payload.shape()
        event, event_2 = Signal(shape, name="expected"), Signal(shape, name="expected_2")
        due, due_2, committed = Signal(2), Signal(2), Signal()
        base = CONFIG.pool_base + (r.segment << CONFIG.segment_log2)
        who, position = lent.session, r.rcv_pub - r.rcv_base - r.fin_told
        if dut.config.places:
            position = Mux(r.placed, position, r.rcv_cons - r.rcv_base)
            who = Mux(r.placed, r.place, dut.place)
            named, named_2 = Signal.like(lent.session), Signal.like(lent.session)
            m.d.sync += [named.eq(lent.session), named_2.eq(named)]
        m.d.sync += [
            [due.eq(0), due_2.eq(due), event_2.eq(event), committed.eq(lent.done)],
            Value.cast(event.kind).eq(kind),
            event.ok.eq(ok),
            event.session.eq(who),
            event.tag.eq(tag),
            event.base.eq(base),
            event.position.eq(position),
        ]
        with m.If(lent.done & told):
            m.d.sync += due.eq(1 << dut.pick)
        m.d.comb += [
            Assert(committed == inside.state("TOLD")),
            Assert(inside.signal("telling") == (due != 0)),
            Assert((due == 0) | (due == 1 << dut.pick)),
            Assert((due == 0) | committed),
        ]
        with m.If(due != 0):
            m.d.comb += Assert(Value.cast(inside.signal("told")) == event.as_value())
        for k in range(2):
            out = dut.event[k]
            free(m, out.ready)
            stalled, past = Signal(name=f"stalled_{k}"), Signal(len(event.as_value()))
            value = Value.cast(out.payload)
            m.d.sync += [stalled.eq(out.valid & ~out.ready), past.eq(value)]
            m.d.comb += Assert(out.valid == (stalled | due_2[k]))
            m.d.comb += Assert(~(out.valid & due[k]))  # nothing is overwritten
            with m.If(due_2[k]):
                m.d.comb += [Assert(~stalled), Assert(value == event_2.as_value())]
                if dut.config.places:
                    m.d.comb += Assert(dut.names[k] == named_2)
            with m.Elif(stalled):
                m.d.comb += Assert(value == past)


PROOFS = (
    Proof(
        name="tcp_events",
        quick=True,
        core="cores.tcp.events.EventEngine(4 sessions, 2 services)",
        says="each note of a record is told once, in the contract's order, to the service served; "
        "a descriptor is answered only when acknowledged or given up, and no segment needs it",
        module="trebuchet.cores.tcp.events",
        build=lambda cores: EventProof(cores.EventEngine(CONFIG)),
        depth=5,
        cover_depth=10,
        mutants=(
            Mutant(
                "answers_under_the_sender", "(r.count != 0) & (r.flight == 0)", "r.count != 0", 14
            ),
            Mutant(
                "answers_a_byte_early",
                "r.snd_una - self.descriptor.end",
                "r.snd_una - self.descriptor.end + 1",
                14,
            ),
            Mutant("closed_before_sent", "r.ev_closed & (r.count == 0)", "r.ev_closed", 14),
            Mutant(
                "overwrites_an_event", "self.event_valid[k] & ~out.valid", "self.event_valid[k]", 14
            ),
            Mutant("picks_before_it_has_told", 'm.next = "TOLD"', 'm.next = "PICK"', 14),
        ),
        assumes="the store lends any record after any wait; heads of lists stay until fetched",
        not_proved="that every service gets its turn; a reset while running",
    ),
    Proof(
        name="tcp_events_active",
        core="cores.tcp.events.EventEngine(4 sessions, 2 services, that can open connections)",
        says="the same; in SYN-SENT no descriptor is given up",
        module="trebuchet.cores.tcp.events",
        build=lambda cores: EventProof(cores.EventEngine(replace(CONFIG, active=True))),
        depth=5,
        cover_depth=10,
        mutants=(
            Mutant(
                "gives_up_early",
                "(r.phase != Phase.SYN_RCVD) & ~opening(config, r)",
                "r.phase != Phase.SYN_RCVD",
                14,
            ),
            Mutant("gives_up_late", "~opening(config, r)", "opening(config, r)", 14),
        ),
        assumes="the store lends any record after any wait; heads of lists stay until fetched",
        not_proved="that every service gets its turn; a reset while running",
    ),
    Proof(
        name="tcp_events_places",
        core="cores.tcp.events.EventEngine(4 sessions, 2 services with 2 places each)",
        says="the same of sessions with a place; one without takes a free one, once, when there is "
        "something to tell, and is told OPEN with it",
        module="trebuchet.cores.tcp.events",
        build=lambda cores: EventProof(cores.EventEngine(replace(CONFIG, places=2))),
        depth=5,
        cover_depth=10,
        mutants=(
            Mutant("opens_for_nothing", "due(r) & self.place_valid", "self.place_valid", 14),
            Mutant("opens_without_a_place", "due(r) & self.place_valid", "due(r)", 14),
            Mutant("tells_the_newest_at_once", "Mux(r.placed, newest, r.rcv_cons)", "newest", 14),
            Mutant("forgets_our_fin", "event.ok.eq(~r.fin_queued)", "event.ok.eq(1)", 14),
            Mutant(
                "takes_it_unsaid",
                "[w.placed.eq(1), w.place.eq(self.place)]",
                "[w.placed.eq(0), w.place.eq(self.place)]",
                14,
            ),
        ),
        assumes="the store lends any record after any wait; heads of lists stay until fetched",
        not_proved="that every service gets its turn; a reset while running",
    ),
)
