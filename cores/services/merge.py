"""Several TCP ports with one service behind them."""

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import StreamArbiter, StreamDemux
from ..tcp.service import EventLayout, ServiceSignature, TxLayout, free_layout

__all__ = ["ServiceMerge"]


class ServiceMerge(wiring.Component):
    """Service ports of the TCP engine as one, which says whose each session is.

    Parameters: ``n``, service ports, 1 or more; ``place_width``, if sessions are places, bits of
    one: the service's number of a session is the place, with the port's number above it.

    ============  =========  ======================================================================
    member        dir        meaning
    ============  =========  ======================================================================
    ``ports``     In, array  :class:`~trebuchet.cores.tcp.service.ServiceSignature`: ``n`` ports of
                             the engine
    ``service``   Out        the one that the service sees
    ``origin``    Out        which port the event on offer is of
    ``to``        In         port for what ``service.tx`` and ``service.free`` offer: where the
                             session's ``OPEN`` came from
    ============  =========  ======================================================================

    Events of a session are all of one port, and stay in their order. Latency: none for ``tx``,
    ``free``, and events while no other port's wait, else 1 cycle. Throughput: an event a cycle; one
    waits for at most ``n - 1`` of other ports. Back-pressure: the service's and the port's. Reset:
    whose turn it is. Bad input: what is for a port that is not there is swallowed.
    """

    def __init__(self, n, place_width=None):
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"Number of service ports must be an integer >= 1, not {n!r}")
        self.n, self.place_width = n, place_width
        rest = place_width is not None
        self.free_layout = free_layout(rest)
        super().__init__(
            {
                "ports": In(ServiceSignature(rest)).array(n),
                "service": Out(ServiceSignature(rest)),
                "origin": Out(range(n)),
                "to": In(range(n)),
            }
        )
        # No port: for proofs.
        self.events = StreamArbiter(EventLayout, n)

    def elaborate(self, platform):
        m = Module()
        service = self.service
        m.submodules.events = events = self.events
        m.submodules.tx = tx = StreamDemux(TxLayout, self.n)
        m.submodules.free = free = StreamDemux(self.free_layout, self.n)
        pairs = [(events.o, service.event), (service.tx, tx.i), (service.free, free.i)]
        for k in range(self.n):
            port = self.ports[k]
            pairs += [(port.event, events.i[k]), (tx.o[k], port.tx), (free.o[k], port.free)]
        for source, sink in pairs:
            m.d.comb += [
                sink.valid.eq(source.valid),
                sink.payload.eq(source.payload),
                source.ready.eq(sink.ready),
            ]
        if self.place_width is not None:
            bits = self.place_width
            own = Cat(events.o.payload.session[:bits], events.index)
            m.d.comb += service.event.payload.session.eq(own)
            for port in self.ports:
                m.d.comb += port.tx.payload.session.eq(service.tx.payload.session[:bits])
                m.d.comb += port.free.payload.session.eq(service.free.payload.session[:bits])
        m.d.comb += [self.origin.eq(events.index), tx.select.eq(self.to), free.select.eq(self.to)]
        return m
