"""What a SYN puts into a session's record (RFC 9293, 3.10.7.2 and 3.10.7.3)."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .record import Phase, record_layout
from .registers import settings_layout
from .segment import rx_segment_layout

__all__ = ["Handshake", "syn_fields", "syn_layout"]


def syn_layout(config):
    """Return the layout of what a peer's SYN, or a request to send one, means for a record."""
    fields = {"seq": 32, "edge": 32, "window": 16, "mss": 11, "cwnd": config.window_bits}
    fields |= {"scaled": 1, "scale": 4} if config.scaling else {}
    return data.StructLayout(fields | ({"permits": 1} if config.sack else {}))


def syn_fields(config, w, syn):
    """Return statements: the fields of record ``w`` that follow from ``syn``, of syn_layout."""
    options = []
    if config.scaling:
        options = [w.scaled.eq(syn.scaled), w.snd_shift.eq(syn.scale), w.snd_plain.eq(1)]
    if config.sack:
        options.append(w.sack.eq(syn.permits))
    return [
        options,
        [w[name].eq(syn.seq) for name in ("rcv_base", "rcv_nxt", "rcv_pub", "rcv_cons")],
        w.rcv_edge.eq(syn.edge),
        w.snd_wnd.eq(syn.window),
        w.mss.eq(syn.mss),
        w.cwnd.eq(syn.cwnd),
        w.retries.eq(0),
        w.touch(),
    ]


class Handshake(wiring.Component):
    """Makes a SYN and the time into values for the record, long before they are written.

    ============  ===  ======================================================================
    ``segment``   In   the SYN; it stands still for six cycles before the values are used
    ``settings``  In   :func:`~trebuchet.cores.tcp.registers.settings_layout`
    ``take``      In   strobe: ``hash`` is that of the SYN's addresses
    ``hash``      In   32 bits (RFC 6528)
    ``local``     Out  a bit for each service that listens at the SYN's port
    ``service``   Out  the highest of them, if there is one
    ``mss``       Out  the peer's, 536 if it names none, between 64 and ``config.mss``
    ``cwnd``      Out  the initial window, ten segments (RFC 6928)
    ``iss``       Out  of the last ``take``: hash and clock (RFC 9293, 3.4.1)
    ``seq``       Out  the peer's sequence number behind its SYN
    ``edge``      Out  the end of the window that we then offer
    ``syn``       Out  syn_layout: these, window and options
    ``opens``     In   with ``config.active``: there is no SYN, but a request to send one; ``seq``
                       is 0, and the options are those that our SYN offers
    ``made``      In   with ``config.cookies``: ``segment`` is the ACK of a cookie of ours, with
                       which ``told``, an MSS, went; ``iss`` is the cookie, ``seq`` the ACK's own
    ============  ===  ======================================================================

    Latency: one cycle, two for ``service``, ``cwnd``, ``edge`` and what follows from ``iss``. There
    is no stream, so no back-pressure. *Bad input*: every segment is one; without ``take`` the
    number is that of another connection. *Reset* sets the clock to ``config.isn_start``.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "segment": In(rx_segment_layout(config)),
                "settings": In(settings_layout(config)),
                "take": In(1),
                "hash": In(32),
                "local": Out(len(config.ports)),
                "service": Out(record_layout(config).members["service"]),
                "mss": Out(11),
                "cwnd": Out(config.window_bits),
                "iss": Out(32),
                "seq": Out(32),
                "edge": Out(32),
                "syn": Out(syn_layout(config)),
            }
            | ({"opens": In(1)} if config.active else {})
            | ({"made": In(1), "told": In(11)} if config.cookies else {})
        )
        self.clock = Signal(40, init=config.isn_start << 8)
        self.iss_1 = Signal(32)
        self.most = (1 << config.window_bits - 1) - 1  # bytes that a window may have

    def elaborate(self, platform):
        m = Module()
        seg, config = self.segment, self.config
        clock = self.clock
        m.d.sync += clock.eq(clock + 1)
        m.d.comb += self.iss_1.eq(self.iss | 1)
        with m.If(self.take):
            # An even number, so that the one behind the SYN needs no adder.
            m.d.sync += self.iss.eq((self.hash + clock[8:]) & 0xFFFF_FFFE)
        for k in range(len(config.ports)):
            heard = self.settings.listen[k] & (seg.local_port == self.settings[f"port_{k}"])
            m.d.sync += self.local[k].eq(heard)
            with m.If(self.local[k]):
                m.d.sync += self.service.eq(k)
        m.d.sync += [
            self.mss.eq(Mux(seg.mss > config.mss, config.mss, seg.mss)),
            self.cwnd.eq((self.mss << 3) + (self.mss << 1)),
            self.seq.eq(seg.seq + (~self.opens if config.active else 1)),
            self.edge.eq(self.seq + config.window),
        ]
        names = ("seq", "edge", "mss", "cwnd")
        m.d.comb += [self.syn[name].eq(getattr(self, name)) for name in names]
        m.d.comb += self.syn.window.eq(seg.window)
        if config.scaling:
            m.d.comb += self.syn.scaled.eq(self._offered(seg.scaled))
            m.d.comb += self.syn.scale.eq(seg.scale)
        if config.sack:
            m.d.comb += self.syn.permits.eq(self._offered(seg.permits))
        with m.If(seg.mss == 0):
            m.d.sync += self.mss.eq(536)
        with m.Elif(seg.mss < 64):
            m.d.sync += self.mss.eq(64)
        if config.cookies:
            with m.If(self.made):
                m.d.sync += [self.mss.eq(self.told), self.seq.eq(seg.seq)]
                m.d.sync += self.iss.eq(seg.ack & 0xFFFF_FFFE)  # odd, since the cookie is even
        return m

    def _offered(self, option):
        """Whether the SYN, or the one that will be sent, has an option."""
        if self.config.active:
            option = option | self.opens
        return option & ~self.made if self.config.cookies else option

    def new(self, w):
        """Statements: record ``w`` is a session in SYN-RCVD, whose SYN-ACK is due, or was sent."""
        zero = ("ack_due", "rst_due", "resend", "probe", "keepalive", "check", "ev_closed", "ok")
        zero += ("released", "fin_seen", "fin_told", "fin_queued", "fin_acked", "passive", "opened")
        zero += ("has_segment", "credit", "recovering", "dup_acks", "first", "count", "ahead")
        zero += ("flight", "rtt_valid", "rtt_on", "challenges", "ev_open", "ev_data", "ev_eof")
        zero += ("srtt8", "rttvar4", "blocked", "kept")
        if self.config.ack_delay:
            zero += ("ack_wait", "ack_now", "near", "busy")
        return [
            [w[name].eq(0) for name in zero],
            syn_fields(self.config, w, self.syn),
            [w[name].eq(self.iss_1) for name in ("snd_nxt", "snd_max", "snd_end")],
            [w[name].eq(self.iss) for name in ("snd_una", "recover")],
            w.service.eq(self.service),
            w.phase.eq(Phase.SYN_RCVD),
            w.syn_due.eq(~self.made if self.config.cookies else 1),
            w.ssthresh.eq(self.most),
            w.rto.eq(self.settings.rto_initial),
            w.deadline.eq(self.settings.rto_initial),
            # In external memory, the wheels know whether the number is still there.
            *([] if self.config.cache else [w.on_wheel.eq(1)]),
        ]
