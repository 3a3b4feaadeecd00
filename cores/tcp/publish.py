"""The publish engine: data that have reached memory are acknowledged and told to the service."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .dma import written_layout
from .record import TIME_WIDTH, CheckoutSignature, Phase, keep
from .registers import settings_layout

__all__ = ["WRITES", "PublishEngine"]

WRITES = ("rcv_pub", "ack_due", "ev_data", "ev_eof", "fin_told", "passive", "phase", "ev_closed")
WRITES += ("ok", "deadline")


class PublishEngine(wiring.Component):
    """Moves RCV.PUB on when a payload, or a FIN behind it, has been written.

    =============  ===  ==========================================================
    ``written``    In   stream from :class:`~trebuchet.cores.tcp.dma.ReceiveDma`
    ``port``       Out  checkout port
    ``now``        In   time in ticks
    ``settings``   In   the programmable registers
    =============  ===  ==========================================================

    Holds the record for 1 cycle. Reset: idle.
    """

    def __init__(self, config):
        super().__init__(
            {
                "written": In(stream.Signature(written_layout(config))),
                "port": Out(CheckoutSignature(config, WRITES)),
                "now": In(TIME_WIDTH),
                "settings": In(settings_layout(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        port, note = self.port, self.written.payload
        r, w = port.record, port.result
        expiry = Signal(TIME_WIDTH)
        m.d.sync += expiry.eq(self.now + self.settings.time_wait)
        m.d.comb += [
            keep(port),
            port.request.eq(self.written.valid),
            port.session.eq(note.session),
            port.commit.eq(port.grant),
            self.written.ready.eq(port.grant),
            w.rcv_pub.eq(note.end),
        ]
        with m.If(r.phase == Phase.OPEN):  # else it was reset or aborted meanwhile
            m.d.comb += [w.ack_due.eq(1), w.ev_data.eq(r.ev_data | note.text)]
            with m.If(note.fin):
                m.d.comb += [w.fin_told.eq(1), w.ev_eof.eq(1), w.passive.eq(~r.fin_queued)]
                with m.If(r.fin_acked):
                    m.d.comb += [w.phase.eq(Phase.TIME_WAIT), w.deadline.eq(expiry)]
                    m.d.comb += [w.ev_closed.eq(1), w.ok.eq(1)]
        return m
