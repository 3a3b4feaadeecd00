"""The event engine: tells services what has happened to their sessions."""

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .places import due
from .record import CheckoutSignature, Handback, Phase, descriptor_layout, opening
from .service import EventKind, EventLayout

__all__ = ["COUNTS", "WRITES", "EventEngine", "writes"]

#: What the engine counts, with places.
COUNTS = ("places_short",)
WRITES = ("ev_open", "ev_data", "ev_eof", "ev_closed", "check", "first", "count", "ahead")


def writes(config):
    """Fields of the record this engine writes."""
    return (*WRITES, "placed", "place") if config.places else WRITES


class EventEngine(wiring.Component):
    """Turns what is noted in a record into one event at a time.

    What there is to tell is kept as bits in the record, not as events in a queue: a service that
    takes no events costs no memory, delays no other service, and several arrivals of data merge.
    The order for one session is OPEN, then DATA before EOF, SENT in the order of posting, then
    CLOSED. A descriptor is answered only when no segment of its session is with the sender.

    With ``config.places`` a session that has something to tell and no place first takes one, in the
    checkout in which OPEN is told: so no other engine sees it in between. If its service's pool is
    empty the record goes back as it was, to the end of the list: events of sessions that have
    places, which may then give them back, have their turn.

    ====================  ===  ================================================================
    ``event_valid``       In   a bit per service: its event list is not empty
    ``heads``             In   the lists' heads, side by side
    ``pick``              Out  the list that is being served
    ``port``              Out  checkout port
    ``address``           Out  descriptor RAM, read port; ``descriptor`` comes 1 cycle later
    ``event``             Out  array: the ``event`` stream of each service
    ``answered``          Out  strobe: a descriptor slot has become free
    ``place``             In   with places: ``place_valid``, it is free in pool ``pick``
    ``take``              Out  strobe: session ``port.session`` takes it
    ``names``             Out  array: the session numbers of the events on offer
    ``count``             Out  a strobe per entry of :data:`COUNTS`
    ====================  ===  ================================================================

    About 8 cycles an event, of which it holds the record for 3. It serves only services whose
    ``event`` register is free, in turn. Reset: idle.
    """

    def __init__(self, config):
        self.config = config
        n, s = len(config.ports), config.session_bits
        more = {}
        if config.places:
            more = {
                "place": In(config.place_width),
                "place_valid": In(1),
                "take": Out(1),
                "names": Out(s).array(n),
                "count": Out(data.StructLayout({name: 1 for name in COUNTS})),
            }
        super().__init__(
            {
                "event_valid": In(n),
                "heads": In(n * s),
                "pick": Out(range(max(2, n))),
                "port": Out(CheckoutSignature(config, writes(config))),
                "address": Out(s + 2),
                "descriptor": In(descriptor_layout()),
                "event": Out(stream.Signature(EventLayout)).array(n),
                "answered": Out(1),
            }
            | more
        )

    def elaborate(self, platform):
        m = Module()
        config, port = self.config, self.port
        n, s = len(config.ports), config.session_bits
        r, w = port.record, Handback(m, port)
        event, told = Signal(EventLayout), Signal(EventLayout)
        strobe, telling, ready = Signal(), Signal(name="telling"), Signal(n)
        settled = Signal(32)
        for k in range(n):
            out = self.event[k]
            m.d.comb += ready[k].eq(self.event_valid[k] & ~out.valid)
            with m.If(out.ready):
                m.d.sync += out.valid.eq(0)
            with m.If(telling & (self.pick == k)):
                m.d.sync += [out.valid.eq(1), out.payload.eq(told)]
        heads = Array(self.heads.word_select(k, s) for k in range(n))
        m.d.comb += self.address.eq(Cat(r.first, port.session))
        # A cycle late, when the record is gone: `strobe` is found out from all of it.
        m.d.sync += [told.eq(event), telling.eq(strobe)]
        position = Signal(32)
        newest, fin, who = r.rcv_pub, r.fin_told, port.session
        if config.places:  # OPEN tells what is consumed
            newest, fin = Mux(r.placed, newest, r.rcv_cons), fin & r.placed
            who = Mux(r.placed, r.place, self.place)
        m.d.sync += [
            settled.eq(r.snd_una - self.descriptor.end),
            # One adder, which takes the FIN as its carry.
            position.eq((Cat(C(1, 1), newest) + Cat(~fin, ~r.rcv_base))[1:]),
        ]
        ring = config.segment_log2
        base = config.pool_base >> ring

        with m.FSM():
            with m.State("PICK"):
                with m.Switch(self.pick):
                    for k in range(n):
                        with m.Case(k):
                            for j in reversed(range(1, n + 1)):
                                with m.If(ready[(k + j) % n]):
                                    m.d.sync += self.pick.eq((k + j) % n)
                with m.If(ready.any()):
                    m.next = "HEAD"
            with m.State("HEAD"):
                m.d.sync += port.session.eq(heads[self.pick])
                m.next = "CLAIM"
            with m.State("CLAIM"):
                m.d.comb += port.request.eq(1)
                with m.If(port.grant):
                    m.next = "READ"
            with m.State("READ"):
                m.next = "TELL"
            with m.State("TELL"):
                m.d.comb += port.commit.eq(1)
                m.d.comb += [
                    event.session.eq(who),
                    event.base.eq(Cat(C(0, ring), (base + r.segment)[: 32 - ring])),
                    event.position.eq(position),
                    event.tag.eq(self.descriptor.tag),
                ]
                over = (r.phase != Phase.OPEN) & (r.phase != Phase.SYN_RCVD) & ~opening(config, r)
                sure = ~settled[31]
                opens = ~r.placed if config.places else r.ev_open
                with m.If(opens):
                    self._open(m, w, event, strobe)
                with m.Elif(r.ev_data):
                    m.d.comb += [event.kind.eq(EventKind.DATA), w.ev_data.eq(0), strobe.eq(1)]
                    m.d.comb += event.ok.eq(1)
                with m.Elif(r.ev_eof):
                    m.d.comb += [event.kind.eq(EventKind.EOF), w.ev_eof.eq(0), strobe.eq(1)]
                    m.d.comb += event.ok.eq(1)
                with m.Elif(r.check & (r.count != 0) & (r.flight == 0)):
                    with m.If(sure | over):
                        m.d.comb += [event.kind.eq(EventKind.SENT), event.ok.eq(sure)]
                        m.d.comb += [strobe.eq(1), self.answered.eq(1)]
                        m.d.comb += [w.first.eq(r.first + 1), w.count.eq(r.count - 1)]
                        m.d.comb += w.ahead.eq(r.ahead - (r.ahead != 0))
                    with m.Else():
                        m.d.comb += w.check.eq(0)
                with m.Elif(r.ev_closed & (r.count == 0)):
                    m.d.comb += [event.kind.eq(EventKind.CLOSED), event.ok.eq(r.ok)]
                    m.d.comb += [w.ev_closed.eq(0), strobe.eq(1)]
                m.next = "TOLD"
            with m.State("TOLD"):
                m.next = "PICK"
        w.finish(m)
        if config.places:
            with m.If(telling):
                m.d.sync += Array(self.names)[self.pick].eq(port.session)
        return m

    def _open(self, m, w, event, strobe):
        """OPEN: at once, or with the first thing that there is to tell."""
        r = self.port.record
        m.d.comb += event.kind.eq(EventKind.OPEN)
        if not self.config.places:
            m.d.comb += [w.ev_open.eq(0), strobe.eq(1), event.ok.eq(1)]
            return
        m.d.comb += [
            event.ok.eq(~r.fin_queued),
            self.take.eq(due(r) & self.place_valid),
            self.count.places_short.eq(due(r) & ~self.place_valid),
            strobe.eq(self.take),
        ]
        with m.If(self.take):
            m.d.comb += [w.placed.eq(1), w.place.eq(self.place)]
