"""Active open (RFC 9293, 3.10.1): requests of software become items of the receive engine."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..csr import Register
from ..net.vlan import VLAN_WIDTH
from .receive_input import InputKind, input_layout
from .record import record_layout

__all__ = ["ConnectPort", "ConnectState", "connect_registers"]


class ConnectState(enum.Enum, shape=3):
    """What has become of the last request."""

    IDLE = 0  # there was none
    ASKED = 1  # the engine has not seen it yet
    REFUSED = 2  # no session is free, the addresses have one already, or ``enable`` is 0
    OPENING = 3  # SYN sent
    OPEN = 4
    CLOSED = 5  # the session is over; it may never have been open


def connect_registers(config):
    """Registers of :class:`ConnectPort`, in the block ``"tcp"``; none if nothing can be opened."""
    if not config.active:
        return []
    tag = [Register("connect_vlan", "rw", 17, "its frames' TCI; and 2**16, or they have no tag")]
    return [
        *(tag if config.vlan else []),
        Register("connect_mac", "rw", 48, "peer's, or the gateway's; first byte in bits 7..0"),
        Register("connect_ip", "rw", 32, "peer's IPv4 address"),
        Register("connect_port", "rw", 16, "peer's port"),
        Register("connect_local", "rw", 16, "our port"),
        Register("connect_service", "rw", 3, "service whose the session will be"),
        Register("connect", "stb", 1, "write 1: open; not before the last one is over"),
        Register("connect_state", "ro", 3, "0 idle, 1 asked, 2 refused, 3 opening, 4 open, 5 over"),
        Register("connect_session", "ro", 17, "number of the session, from state 3 on"),
    ]


class ConnectPort(wiring.Component):
    """Inserts connect requests into the receive engine's input, and follows their session.

    One session at a time is followed. The receive engine treats a request like a SYN for a service
    that listens, but with a session in SYN-SENT as the result: so lookup, free numbers and
    insertion are those of every other session, one after the other, and there is no race.

    =============  ===  ======================================================================
    ``ask``        In   strobe: ``mac``, ``ip``, ``port``, ``local`` (and ``vlan``, if there are
                        tags) name the peer, ``service`` the service; ignored unless
                        the state is IDLE, REFUSED or CLOSED. They are stable while ASKED
    ``state``      Out  :class:`ConnectState`, and ``session``, its number
    ``i``          In   stream of :func:`~trebuchet.cores.tcp.receive_input.input_layout`
    ``o``          Out  the items of ``i``, unaltered, with items of kind ``CONNECT`` in between
    ``accepted``   In   when a request is taken from ``o``: it has become session ``made``
    ``opened``     In   strobe: session ``made`` has gone from SYN-SENT to ESTABLISHED
    ``closed``     In   strobe: session ``over``, of any service, has been told CLOSED
    =============  ===  ======================================================================

    Latency: none for items of ``i``. Back-pressure: a request waits for the engine, and items of
    ``i`` for the request, about 50 cycles. Reset: IDLE.
    """

    def __init__(self, config):
        s = config.session_bits
        self.config = config
        super().__init__(
            {
                "ask": In(1),
                "mac": In(48),
                "ip": In(32),
                "port": In(16),
                "local": In(16),
                "service": In(record_layout(config).members["service"]),
                **({"vlan": In(VLAN_WIDTH)} if config.vlan else {}),
                "state": Out(ConnectState),
                "session": Out(s),
                "i": In(stream.Signature(input_layout(config))),
                "o": Out(stream.Signature(input_layout(config))),
                "accepted": In(1),
                "made": In(s),
                "opened": In(1),
                "closed": In(1),
                "over": In(s),
            }
        )
        self.own = Signal()  # a request is on offer

    def elaborate(self, platform):
        m = Module()
        state, o = self.state, self.o
        own, item = self.own, Signal(o.payload.shape())
        request = item.body.connect
        m.d.comb += [
            item.kind.eq(InputKind.CONNECT),
            request.mac.eq(self.mac),
            request.ip.eq(self.ip),
            request.remote_port.eq(self.port),
            request.local_port.eq(self.local),
            request.service.eq(self.service),
            o.valid.eq(own | self.i.valid),
            o.payload.eq(Mux(own, item, self.i.payload)),
            self.i.ready.eq(o.ready & ~own),
        ]
        if self.config.vlan:
            m.d.comb += request.vlan.eq(self.vlan)
        # An item that has been offered stays until it is taken.
        between = ~self.i.valid | self.i.ready
        mine = self.closed & (self.over == self.session)
        with m.Switch(state):
            with m.Case(ConnectState.IDLE, ConnectState.REFUSED, ConnectState.CLOSED):
                with m.If(self.ask):
                    m.d.sync += state.eq(ConnectState.ASKED)
            with m.Case(ConnectState.ASKED):
                with m.If(~own & between):
                    m.d.sync += own.eq(1)
                with m.If(own & o.ready):
                    m.d.sync += [own.eq(0), self.session.eq(self.made)]
                    m.d.sync += state.eq(ConnectState.REFUSED)
                    with m.If(self.accepted):
                        m.d.sync += state.eq(ConnectState.OPENING)
            with m.Case(ConnectState.OPENING):
                with m.If(self.opened & (self.made == self.session)):
                    m.d.sync += state.eq(ConnectState.OPEN)
                with m.If(mine):
                    m.d.sync += state.eq(ConnectState.CLOSED)
            with m.Case(ConnectState.OPEN):
                with m.If(mine):
                    m.d.sync += state.eq(ConnectState.CLOSED)
        return m
