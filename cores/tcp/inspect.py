"""A look at one session, for the console: what state it is in, with whom, and what waits in it."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ..csr import Field, Register
from .record import CheckoutSignature, Phase, peer_layout, send_window
from .service import SESSION_WIDTH

__all__ = ["Inspector", "SessionState", "inspect_registers"]


#: Bits of a word's number.
WORD_WIDTH = 4


class SessionState(enum.Enum, shape=4):
    """States by the numbers of the TCP MIB (RFC 4022, tcpConnectionState)."""

    FREE = 0  # no session
    CLOSED = 1  # over; its service has not released it
    SYN_SENT = 3
    SYN_RECEIVED = 4
    ESTABLISHED = 5
    FIN_WAIT_1 = 6
    FIN_WAIT_2 = 7
    CLOSE_WAIT = 8
    LAST_ACK = 9
    CLOSING = 10
    TIME_WAIT = 11


def inspect_registers(config):
    """Registers of :class:`Inspector`, in the block ``"tcp"``; none if it is not there."""
    if not config.inspect:
        return []
    return [
        Register(
            "inspect",
            "stb",
            SESSION_WIDTH + WORD_WIDTH + 1,
            "fetch a word of a session; ignored while busy",
            fields=(
                Field("session", 0, SESSION_WIDTH),
                Field(
                    "word",
                    SESSION_WIDTH,
                    WORD_WIDTH,
                    "0 state, as in RFC 4022; 1 peer's address; 2 its port, and ours above; "
                    "3 bytes and FIN not acknowledged; 4 bytes and FIN that the service has not "
                    "consumed; 5 SND.UNA; 6 RCV.NXT; 7 time-out in ticks; 8 SND.NXT; 9 the peer's "
                    "window in bytes; 10 ours; 11 smoothed round trip in ticks; 12 congestion "
                    "window; 13 transmit descriptors not answered",
                ),
                Field("go", SESSION_WIDTH + WORD_WIDTH, 1, "1: fetch it"),
            ),
        ),
        Register("inspect_busy", "ro", 1, "1: the word is on its way"),
        Register("inspect_value", "ro", 32, "the word; state 0, and 0s: no such session"),
    ]


class Inspector(wiring.Component):
    """Fetches one word of a session's record at a time.

    ============  ===  ======================================================================
    ``ask``       In   strobe: fetch word ``word`` of session ``session``; ignored while busy
    ``busy``      Out  1 from the cycle after ``ask`` until ``value`` is there
    ``value``     Out  32 bits; the words are those of :func:`inspect_registers`
    ``peer``      In   of session ``port.session`` a cycle before
    ``port``      Out  checkout port that writes nothing
    ============  ===  ======================================================================

    Each word is of one moment; two words of a session are of two moments. Latency: that of a
    checkout, and two cycles; it holds the record for 2. There is no stream. *Bad input*: of a
    session that there cannot be all words are 0. *Reset* gives up what is under way.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "ask": In(1),
                "session": In(SESSION_WIDTH),
                "word": In(WORD_WIDTH),
                "busy": Out(1),
                "value": Out(32),
                "peer": In(peer_layout(config)),
                "port": Out(CheckoutSignature(config, ())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        port, r, peer = self.port, self.port.record, self.peer
        word = Signal(WORD_WIDTH)
        state, unacknowledged, unread = Signal(SessionState), Signal(32), Signal(32)
        window, left = Signal(32), Signal(self.config.place_bits)
        self.taken = (word, state, unacknowledged, unread, window, left)  # for its proof
        m.d.sync += [
            state.eq(self._state(m, r)),
            unacknowledged.eq(r.snd_end - r.snd_una),
            unread.eq(r.rcv_pub - r.rcv_cons),
            window.eq(send_window(self.config, r)),
            left.eq(r.rcv_edge - r.rcv_pub),
        ]
        ours = Mux(left[-1], 0, left)  # a FIN may lie one past the edge
        words = (state, peer.ip, Cat(peer.remote_port, peer.local_port), unacknowledged)
        words += (unread, r.snd_una, r.rcv_nxt, r.rto, r.snd_nxt, window, ours, r.srtt8 >> 3)
        words += (r.cwnd, r.count)
        m.d.comb += self.busy.eq(1)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.busy.eq(0)
                with m.If(self.ask):
                    m.d.sync += [self.value.eq(0), word.eq(self.word)]
                    m.d.sync += port.session.eq(self.session)
                    with m.If(self.session < self.config.sessions):
                        m.next = "CLAIM"
            with m.State("CLAIM"):
                m.d.comb += port.request.eq(1)
                with m.If(port.grant):
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += port.commit.eq(1)
                with m.If(r.phase != Phase.FREE):
                    with m.Switch(word):
                        for k, value in enumerate(words):
                            with m.Case(k):
                                m.d.sync += self.value.eq(value)
                m.next = "IDLE"
        return m

    def _state(self, m, r):
        """See the table in ``record.py``."""
        open_, found, s = Signal(SessionState), Signal(SessionState), SessionState
        ours = Mux(r.fin_acked, s.FIN_WAIT_2, s.FIN_WAIT_1)
        both = Mux(r.passive, s.LAST_ACK, s.CLOSING)
        theirs = Mux(r.fin_queued, both, s.CLOSE_WAIT)
        alone = Mux(r.fin_queued, ours, s.ESTABLISHED)
        m.d.comb += open_.eq(Mux(r.fin_told, theirs, alone))
        with m.Switch(r.phase):
            for phase, value in (
                (Phase.SYN_SENT, s.SYN_SENT),
                (Phase.SYN_RCVD, s.SYN_RECEIVED),
                (Phase.OPEN, open_),
                (Phase.TIME_WAIT, s.TIME_WAIT),
                (Phase.CLOSED, s.CLOSED),
            ):
                with m.Case(phase):
                    m.d.comb += found.eq(value)
        return found
