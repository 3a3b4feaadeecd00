"""Active open (RFC 9293, 3.10.1): what software asks for becomes a segment that nobody has sent."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..csr import Register
from ..net.vlan import VLAN_WIDTH
from .segment import rx_segment_layout

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
    """Puts a request between the segments that arrive, and follows its session.

    One session at a time is followed. The receive engine takes the request as a SYN for a service
    that listens, but with a session in SYN-SENT as the result: so lookup, free numbers and
    insertion are those of every other session, one after the other, and there is no race.

    =============  ===  ======================================================================
    ``ask``        In   strobe: ``mac``, ``ip``, ``port``, ``local`` (and ``vlan``, if there are
                        tags) say with whom; ignored unless
                        the state is IDLE, REFUSED or CLOSED. They stay as they are while ASKED
    ``state``      Out  :class:`ConnectState`, and ``session``, its number
    ``segment``    In   stream from the parser
    ``o``          Out  the same with requests in between, for which ``connect`` is 1
    ``accepted``   In   when a request is taken from ``o``: it has become session ``made``
    ``opened``     In   strobe: session ``made`` has gone from SYN-SENT to ESTABLISHED
    ``closed``     In   strobe: session ``over``, of any service, has been told CLOSED
    =============  ===  ======================================================================

    Latency: none for segments. Back-pressure: a request waits for the engine, and segments for
    the request, about 50 cycles. Reset: IDLE.
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
                **({"vlan": In(VLAN_WIDTH)} if config.vlan else {}),
                "state": Out(ConnectState),
                "session": Out(s),
                "segment": In(stream.Signature(rx_segment_layout(config))),
                "o": Out(stream.Signature(rx_segment_layout(config))),
                "connect": Out(1),
                "accepted": In(1),
                "made": In(s),
                "opened": In(1),
                "closed": In(1),
                "over": In(s),
            }
        )

    def elaborate(self, platform):
        m = Module()
        state, o = self.state, self.o
        self.own = own = Signal()  # it is the request that is on offer
        request = Signal(rx_segment_layout(self.config))
        m.d.comb += [
            request.mac.eq(self.mac),
            request.ip.eq(self.ip),
            request.remote_port.eq(self.port),
            request.local_port.eq(self.local),
            request.flags.syn.eq(1),
            request.seq.eq(0xFFFF_FFFF),  # so the acknowledgement field of our SYN is 0
            self.connect.eq(own),
            o.valid.eq(own | self.segment.valid),
            o.payload.eq(Mux(own, request, self.segment.payload)),
            self.segment.ready.eq(o.ready & ~own),
        ]
        if self.config.scaling:
            m.d.comb += request.scaled.eq(1)  # what our SYN offers
        if self.config.sack:
            m.d.comb += request.permits.eq(1)
        if self.config.vlan:
            m.d.comb += request.vlan.eq(self.vlan)
        # A segment that has been offered stays until it is taken.
        between = ~self.segment.valid | self.segment.ready
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
