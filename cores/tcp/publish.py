"""The publish engine: data that have reached memory are acknowledged and told to the service."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .dma import written_layout
from .record import CheckoutSignature, Handback, Phase
from .registers import settings_layout
from .window import WindowEdge

__all__ = ["PublishEngine", "writes"]

WRITES = ("rcv_pub", "ack_due", "ev_data", "ev_eof", "fin_told", "passive", "phase", "ev_closed")
WRITES += ("ok", "deadline")


def writes(config):
    """Fields of the record this engine writes."""
    more = ("rcv_edge",) if config.sliding else ()
    return (*WRITES, *more, "ack_wait", "ack_now", "busy") if config.ack_delay else WRITES + more


class PublishEngine(wiring.Component):
    """Moves RCV.PUB on when a payload, or a FIN behind it, has been written; with segments larger
    than a window, the window's edge as well.

    =============  ===  ==========================================================
    ``written``    In   stream from :class:`~trebuchet.cores.tcp.dma.ReceiveDma`
    ``port``       Out  checkout port
    ``settings``   In   the programmable registers
    =============  ===  ==========================================================

    Holds the record for 1 cycle, 3 when it moves the edge. Reset: idle.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "written": In(stream.Signature(written_layout(config))),
                "port": Out(CheckoutSignature(config, writes(config))),
                "settings": In(settings_layout(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        port, note = self.port, self.written.payload
        r = port.record
        self.w = w = Handback(m, port)
        commit = self._move_edge(m) if self.config.sliding else port.grant
        m.d.comb += [
            port.request.eq(self.written.valid),
            port.session.eq(note.session),
            port.commit.eq(commit),
            self.written.ready.eq(commit),
            w.rcv_pub.eq(note.end),
        ]
        with m.If(r.phase == Phase.OPEN):  # else it was reset or aborted meanwhile
            m.d.comb += [w.ack_due.eq(1), w.ev_data.eq(r.ev_data | note.text)]
            if self.config.ack_delay:
                self._delay(m)
            with m.If(note.fin):
                m.d.comb += [w.fin_told.eq(1), w.ev_eof.eq(1), w.passive.eq(~r.fin_queued)]
                with m.If(r.fin_acked):
                    m.d.comb += [
                        w.phase.eq(Phase.TIME_WAIT),
                        w.deadline.eq(self.settings.time_wait),
                    ]
                    m.d.comb += [w.ev_closed.eq(1), w.ok.eq(1)]
        w.finish(m)
        return m

    def _delay(self, m):
        """RFC 9293, 3.8.6.3, RFC 5681, 4.2: not the second ACK in a row waits, nor that of a FIN or
        of what belongs to a gap; nor any if the timer's next visit is too far off."""
        r, w, note = self.port.record, self.port.result, self.written.payload
        wait = r.near & ~r.ack_wait & ~r.ack_now & (r.kept == 0) & ~note.fin
        m.d.comb += [w.ack_due.eq(r.ack_due | ~wait), w.ack_wait.eq(wait), w.busy.eq(1)]
        m.d.comb += w.ack_now.eq(r.ack_now & (note.end != r.rcv_nxt))

    def _move_edge(self, m):
        """The edge follows what arrives; return when the record can be handed back."""
        port, note = self.port, self.written.payload
        r = port.record
        m.submodules.edge = edge = WindowEdge(self.config)
        held, ripe = Signal(range(WindowEdge.LATENCY + 1)), Signal()
        m.d.comb += [
            edge.cons.eq(r.rcv_cons),
            edge.pub.eq(note.end),
            ripe.eq(port.grant & (held == WindowEdge.LATENCY)),
        ]
        if self.config.scaling:
            m.d.comb += edge.scaled.eq(r.scaled)
        m.d.sync += held.eq(Mux(port.grant & ~ripe, held + 1, 0))
        with m.If((r.phase == Phase.OPEN) & ~r.fin_seen):
            m.d.comb += self.w.rcv_edge.eq(edge.edge)
        return ripe
