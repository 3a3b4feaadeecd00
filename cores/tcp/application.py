"""The application engine: what services and the sender tell the TCP engine."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import StreamArbiter
from .places import may_release, may_rest
from .record import (
    KILL_WRITES,
    CheckoutSignature,
    Handback,
    Phase,
    descriptor_layout,
    kill,
    record_layout,
)
from .service import SESSION_WIDTH, TX_PER_SESSION, TxLayout, free_layout
from .window import WindowEdge

__all__ = ["COUNTS", "WRITES", "ApplicationEngine", "writes"]

WRITES = (*KILL_WRITES, "snd_end", "count", "fin_queued", "blocked", "progress", "flight")
WRITES += ("rcv_cons", "rcv_edge", "has_segment")
COUNTS = ("tx_overrun", "service_errors", "aborts")


def writes(config):
    """Fields of the record this engine writes."""
    return (*WRITES, "placed") if config.places else WRITES


class ApplicationEngine(wiring.Component):
    """Enters transmit descriptors, moves the window's edge, counts what the sender has read.

    ==================  ===  ====================================================================
    ``tx``              In   array: the ``tx`` stream of each service
    ``free``            In   array: the ``free`` stream of each service
    ``sent``            In   stream of session numbers, from the sender
    ``port``            Out  checkout port
    ``descriptor``      Out  write port of the descriptor RAM: ``write``, ``address``
                             (session, slot), ``descriptor``; a cycle after the record has been
                             handed back, long before anybody can be lent it again
    ``count``           Out  a strobe per entry of :data:`COUNTS`
    ``asked``           Out  with ``config.places``: a place (low bits) and its service
    ``holder``          In   the session that took it last, 1 cycle later
    ``give``            Out  strobe, in the cycle after a hand-back: place ``given``, as ``asked``,
                             is free again
    ==================  ===  ====================================================================

    With places ``tx`` and ``free`` name a place, and a record is a service's if it has that place
    of its. ``release`` and ``rest`` give it back, if nothing is left to tell or on its way: see
    the races in :mod:`~trebuchet.cores.tcp.service`.

    The three sources take turns. An entry takes about 8 cycles (9 with places), of which the record
    is held for up to 4. Waits for nothing but its checkout. A session that does not exist, or is
    not the asking service's, is left alone (counter ``service_errors``). Reset: idle.
    """

    def __init__(self, config):
        self.config = config
        n = len(config.ports)
        self.free_layout = free_layout(bool(config.places))
        more = {}
        if config.places:
            place = config.place_width + record_layout(config)["service"].width
            more = {
                "asked": Out(place),
                "holder": In(config.session_bits),
                "give": Out(1),
                "given": Out(place),
            }
        super().__init__(
            {
                "tx": In(stream.Signature(TxLayout)).array(n),
                "free": In(stream.Signature(self.free_layout)).array(n),
                "sent": In(stream.Signature(SESSION_WIDTH)),
                "port": Out(CheckoutSignature(config, writes(config))),
                "write": Out(1),
                "address": Out(config.session_bits + 2),
                "descriptor": Out(descriptor_layout()),
                "count": Out(data.StructLayout({name: 1 for name in COUNTS})),
            }
            | more
        )

    def elaborate(self, platform):
        m = Module()
        config, port = self.config, self.port
        n, s = len(config.ports), config.session_bits
        r, w = port.record, Handback(m, port)
        self.w = w
        m.submodules.txs = txs = StreamArbiter(TxLayout, n)
        m.submodules.frees = frees = StreamArbiter(self.free_layout, n)
        for k in range(n):
            wiring.connect(m, wiring.flipped(self.tx[k]), txs.i[k])
            wiring.connect(m, wiring.flipped(self.free[k]), frees.i[k])
        tx, free = txs.o.payload, frees.o.payload
        who = Signal(SESSION_WIDTH)
        service = Signal.like(r.service)
        self.mine = mine = Signal()  # it is the service's; right two cycles after the grant
        m.d.comb += port.session.eq(who)
        told = r.opened if config.active else C(0)  # a simultaneous open's is the service's already
        known = (r.phase != Phase.FREE) & ((r.phase != Phase.SYN_RCVD) | told)
        if config.places:
            self._placed(m, service)
        else:
            m.d.sync += mine.eq(known & (r.service == service) & (who >> s == 0))

        end, delta = Signal(32), Signal(32)
        position, gap, ahead, inside = (Signal(32, name=k) for k in ("pos", "gap", "fwd", "ins"))
        m.d.sync += [
            # One adder, which takes the FIN as its carry.
            end.eq((Cat(C(1, 1), r.snd_end) + Cat(tx.close, tx.length))[1:]),
            delta.eq(tx.addr - r.snd_end),
            position.eq(free.position + r.rcv_base),
            gap.eq(r.rcv_edge - position),  # window left if the edge stays
            ahead.eq(position - r.rcv_cons),
            inside.eq((Cat(C(1, 1), r.rcv_pub) + Cat(~r.fin_told, ~r.rcv_cons))[1:]),
        ]
        if config.sliding:  # right in FREE-COMMIT: `position` is in FREE-WORK
            m.submodules.edge = self.edge = WindowEdge(config)
            m.d.comb += [self.edge.cons.eq(position), self.edge.pub.eq(r.rcv_pub)]
            if config.scaling:
                m.d.comb += self.edge.scaled.eq(r.scaled)

        nobody = self.sent.payload >> s != 0
        if s == SESSION_WIDTH:  # that number is given to nobody
            nobody = self.sent.payload.all()
        m.d.sync += self.write.eq(0)
        with m.FSM():
            with m.State("SENT"):
                m.d.sync += who.eq(self.sent.payload)
                m.next = "FREE"
                with m.If(self.sent.valid):
                    m.d.comb += self.sent.ready.eq(1)
                    m.next = "SENT-CLAIM"
                    with m.If(nobody):  # a RST without a session
                        m.next = "FREE"
            with m.State("SENT-CLAIM"):
                m.d.comb += port.request.eq(1)
                with m.If(port.grant):
                    m.d.comb += [port.commit.eq(1), w.blocked.eq(0)]
                    m.d.comb += w.flight.eq(r.flight - (r.flight != 0))
                    m.next = "FREE"
            with m.State("FREE"):
                m.d.sync += [who.eq(free.session), service.eq(frees.index)]
                m.next = "TX"
                with m.If(frees.o.valid):
                    m.next = "FREE-CLAIM"
                    self._find(m, "FREE", free, frees.index)
            with m.State("FREE-CLAIM"):
                m.d.comb += port.request.eq(1)
                with m.If(port.grant):
                    m.next = "FREE-WORK"
            with m.State("FREE-WORK"):
                m.next = "FREE-CHECK"
            with m.State("FREE-CHECK"):
                m.next = "FREE-COMMIT"
            with m.State("FREE-COMMIT"):
                m.d.comb += [port.commit.eq(1), frees.o.ready.eq(1)]
                with m.If(~mine):
                    m.d.comb += self.count.service_errors.eq(1)
                with m.Elif(free.release):
                    over = (r.phase == Phase.CLOSED) | (r.phase == Phase.TIME_WAIT)
                    if config.places:
                        over = over & self.answered
                        self._give(m, over)
                    m.d.comb += w.released.eq(r.released | over)
                    m.d.comb += self.count.service_errors.eq(~over)
                with m.Elif(ahead <= inside):
                    self._consume(m, position, gap, ahead == inside)
                    if config.places:
                        self._give(m, free.rest & (ahead == inside) & self.quiet)
                with m.Else():
                    m.d.comb += self.count.service_errors.eq(1)
                m.next = "TX"
            with m.State("TX"):
                m.d.sync += [who.eq(tx.session), service.eq(txs.index)]
                m.next = "SENT"
                with m.If(txs.o.valid):
                    m.next = "TX-CLAIM"
                    self._find(m, "TX", tx, txs.index)
            with m.State("TX-CLAIM"):
                m.d.comb += port.request.eq(1)
                with m.If(port.grant):
                    m.next = "TX-WORK"
            with m.State("TX-WORK"):
                m.next = "TX-COMMIT"
            with m.State("TX-COMMIT"):
                m.d.comb += [port.commit.eq(1), txs.o.ready.eq(1)]
                with m.If(mine):
                    self._enter(m, tx, end, delta)
                with m.Else():
                    m.d.comb += self.count.service_errors.eq(1)
                m.next = "SENT"
            if config.places:
                for kind in ("FREE", "TX"):
                    with m.State(f"{kind}-FIND"):
                        m.d.sync += who.eq(self.holder)
                        m.next = f"{kind}-CLAIM"
        w.finish(m)
        return m

    def _placed(self, m, service):
        """Whether the record has the place that is asked for, and may be without; right two cycles
        after the grant."""
        r, bits = self.port.record, self.config.place_width
        self.place = place = Signal(SESSION_WIDTH)
        self.answered, self.quiet = Signal(), Signal()
        m.d.comb += self.given.eq(Cat(place[:bits], service))
        m.d.sync += [
            self.mine.eq(r.placed & (r.service == service) & (r.place == place)),
            self.answered.eq(may_release(r)),
            self.quiet.eq(may_rest(r)),
            self.give.eq(0),
        ]

    def _find(self, m, kind, request, index):
        """With places: look up whose place a request is for, in one more cycle."""
        if self.config.places:
            m.d.comb += self.asked.eq(Cat(request.session[: self.config.place_width], index))
            m.d.sync += self.place.eq(request.session)
            m.next = f"{kind}-FIND"

    def _give(self, m, gives):
        m.d.comb += self.w.placed.eq(self.port.record.placed & ~gives)
        m.d.sync += self.give.eq(gives)

    def _consume(self, m, position, gap, everything):
        """The service has consumed up to ``position``; all there is, if ``everything``."""
        r, w, config = self.port.record, self.w, self.config
        m.d.comb += w.rcv_cons.eq(position)
        if config.ack_delay:  # a peer that may send half a window can wait for its next ACK
            left = (r.rcv_edge - r.rcv_pub)[: config.window_bits].as_signed()
            tell = left < config.window // 2
        with m.If(everything & (r.rcv_nxt == r.rcv_pub) & (r.kept == 0)):  # nor is anything written
            m.d.comb += w.has_segment.eq(0)
        receiving = (r.phase == Phase.OPEN) & ~r.fin_seen
        if config.sliding:
            # A message that fills the ring must not lack a few bytes of window for ever, so the
            # edge always moves; what is too little for an ACK goes with the next one.
            grown = (self.edge.edge - r.rcv_edge)[: config.segment_log2 + 1]
            with m.If(receiving):
                m.d.comb += w.rcv_edge.eq(self.edge.edge)
                due = r.ack_due | (grown >= config.update)
                m.d.comb += w.ack_due.eq(Mux(tell, due, r.ack_due) if config.ack_delay else due)
            return
        with m.If(receiving & (gap.as_signed() <= config.window - config.update)):
            due = r.ack_due | tell if config.ack_delay else 1
            m.d.comb += [w.rcv_edge.eq(position + config.window), w.ack_due.eq(due)]

    def _enter(self, m, tx, end, delta):
        """One more transmit descriptor."""
        r, w = self.port.record, self.w
        full = r.count == TX_PER_SESSION
        over = (r.phase == Phase.CLOSED) | (r.phase == Phase.TIME_WAIT)
        broken = ~over & ~tx.abort & (full | r.fin_queued)
        m.d.sync += [
            self.address.eq((self.port.session << 2) | (r.first + r.count)[:2]),
            self.descriptor.delta.eq(delta),
            self.descriptor.end.eq(end),
            self.descriptor.push.eq(tx.push),
            self.descriptor.close.eq(tx.close),
            self.descriptor.tag.eq(tx.tag),
        ]
        with m.If(~full):
            m.d.sync += self.write.eq(1)
            m.d.comb += [w.count.eq(r.count + 1), w.snd_end.eq(end)]
        with m.If(over):
            m.d.comb += [w.check.eq(1), self.count.tx_overrun.eq(full)]
        with m.Elif(tx.abort | broken):
            m.d.comb += [kill(self.port, 1), self.count.tx_overrun.eq(broken | full)]
            m.d.comb += self.count.aborts.eq(1)
        with m.Else():
            m.d.comb += [w.fin_queued.eq(tx.close), w.blocked.eq(0)]
            m.d.comb += w.check.eq(r.check | ((tx.length == 0) & ~tx.close))
            with m.If(r.snd_una == r.snd_end):
                m.d.comb += w.touch()
