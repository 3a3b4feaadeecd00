"""The transmit engine: one segment at a time for the session at the head of the active list."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .record import (
    FLIGHT_MAX,
    TIME_WIDTH,
    CheckoutSignature,
    Handback,
    Phase,
    descriptor_layout,
    opening,
    peer_layout,
    run_names,
    send_window,
)
from .segment import tx_segment_layout
from .service import SESSION_WIDTH

__all__ = ["COUNTS", "TransmitEngine", "writes"]

WRITES = ("snd_nxt", "snd_max", "ahead", "flight", "rtt_on", "rtt_seq", "rtt_start", "deadline")
WRITES += ("ack_due", "syn_due", "rst_due", "resend", "probe", "keepalive", "blocked")
COUNTS = ("rst_tx", "retransmits", "zero_window_probes", "keepalive_probes")


def writes(config):
    """Fields of the record this engine writes."""
    return (*WRITES, "ack_wait") if config.ack_delay else WRITES


class TransmitEngine(wiring.Component):
    """Decides what a session sends next, and sends it.

    =================  ===  ====================================================================
    ``active_valid``   In   there is a session with something to send: ``active_session``
    ``port``           Out  checkout port
    ``address``        Out  descriptor RAM, read port; ``descriptor`` comes 1 cycle later
    ``session``        Out  whose turn it is; ``peer``, who that is with, comes 1 cycle later
    ``reply``          In   stream of ready-made segments (RST) from the receive engine
    ``tx_segment``     Out  stream of TxSegmentLayout
    ``now``            In   time in ticks
    ``count``          Out  a strobe per entry of :data:`COUNTS`
    =================  ===  ====================================================================

    A checkout sends at most one segment, so sessions take turns; the store puts the session back
    on the list while there is more. Segments do not cross descriptors. The record is checked out
    only when ``tx_segment`` is free, and held for 3 cycles (no data) or 8, plus 4 for each
    descriptor skipped. Reset: idle.
    """

    def __init__(self, config):
        self.config = config
        #: Low bits that tell the numbers from SND.UNA to SND.MAX, and the window's end, apart.
        self.near = config.place_bits
        s = config.session_bits
        super().__init__(
            {
                "active_valid": In(1),
                "active_session": In(s),
                "port": Out(CheckoutSignature(config, writes(config))),
                "address": Out(s + 2),
                "descriptor": In(descriptor_layout()),
                "session": Out(s),
                "peer": In(peer_layout(config)),
                "reply": In(stream.Signature(tx_segment_layout(config))),
                "tx_segment": Out(stream.Signature(tx_segment_layout(config))),
                "now": In(TIME_WIDTH),
                "count": Out(data.StructLayout({name: 1 for name in COUNTS})),
            }
        )

    # KIND says what is sent and from which descriptor; for data, READ .. FIT find out how much;
    # TOTAL and EMIT send and hand back.
    def elaborate(self, platform):
        m = Module()
        port, o, near = self.port, self.tx_segment, self.near
        r = port.record
        self.w = Handback(m, port)
        self._signals()
        session = self.session
        m.d.comb += [
            port.session.eq(session),  # the head of the list, which stays until the grant
            self.address.eq(Cat((r.first + self.slot)[:2], session)),
        ]
        gap = (r.rcv_edge - r.rcv_pub)[: self.config.window_bits]
        offered, allowed = gap, send_window(self.config, r)
        if self.config.scaling:
            offered = Mux(r.scaled & ~r.syn_due, gap >> self.config.shift, gap)
            m.d.sync += self.allowed.eq(allowed)
            allowed = self.allowed
        m.d.sync += [
            self.unsent.eq((r.snd_nxt != r.snd_end) & ~r.blocked),  # in time for KIND
            self.limit.eq(r.snd_una[:near] + Mux(r.cwnd < allowed, r.cwnd, allowed)),
            self.quiet.eq(r.snd_una[:near] == r.snd_max[:near]),
            # A FIN may lie one past the edge.
            self.window.eq(Mux(gap[-1], 0, offered)),
        ]
        with m.If(o.ready):
            m.d.sync += o.valid.eq(0)

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += session.eq(self.active_session)
                with m.If(~o.valid & self.reply.valid):
                    m.d.comb += self.reply.ready.eq(1)
                    m.d.sync += [o.payload.eq(self.reply.payload), o.valid.eq(1)]
                with m.Elif(~o.valid & self.active_valid):
                    m.next = "CLAIM"
            with m.State("CLAIM"):
                m.d.comb += port.request.eq(1)
                with m.If(port.grant):
                    m.next = "KIND"
            with m.State("KIND"):
                self._kind(m)
            with m.State("READ"):
                m.next = "LEFT"
            with m.State("LEFT"):
                m.d.sync += [
                    self.left.eq(self.descriptor.end - self.seq),
                    self.room.eq(self.limit - self.seq[:near]),
                    self.addr.eq(self.descriptor.delta + self.seq),
                    self.close.eq(self.descriptor.close),
                    self.pushed.eq(self.descriptor.push),
                    self.alone.eq(r.snd_una[:near] == self.seq[:near]),
                    self.newest.eq(r.snd_max[:near] == self.seq[:near]),
                ]
                m.next = "SIZE"
            with m.State("SIZE"):
                self._size(m)
            with m.State("FIT"):
                self._fit(m)
                m.next = "TOTAL"
            with m.State("TOTAL"):
                m.d.sync += self.new_end.eq(self.seq + self.length + self.fin)
                m.next = "EMIT"
            with m.State("EMIT"):
                m.d.comb += port.commit.eq(1)
                self._emit(m, session)
                m.next = "IDLE"
        self.w.finish(m)
        return m

    def _signals(self):
        def one(name, shape=1):
            setattr(self, name, Signal(shape, name=name))

        one("text")  # data, or a FIN, of a descriptor
        one("stuck")  # it cannot be sent now
        one("again")  # from SND.UNA on, without moving SND.NXT
        one("newest")  # it begins where nothing was sent before
        one("alone")  # nothing before it is unacknowledged
        one("unsent")  # SND.NXT is not the end of what is queued, and nothing blocks it
        one("quiet")  # nothing at all is unacknowledged
        one("whole")  # it goes to the descriptor's end
        one("slot", 3)  # descriptor, counted from the oldest
        one("close")
        one("pushed")
        one("fin")
        one("psh")
        one("seq", 32)
        one("limit", self.near)  # end of what window and congestion window allow
        if self.config.scaling:
            one("allowed", self.config.window_bits)  # the peer's window, shifted
        one("left", signed(32))  # of the descriptor
        one("room", signed(self.near))
        one("want", 11)
        one("length", 11)
        one("addr", 32)
        one("new_end", 32)
        one("window", 16)

    def _kind(self, m):
        r = self.port.record
        again = r.resend | r.probe
        full = r.flight == FLIGHT_MAX
        text = Signal()
        m.d.comb += text.eq(
            (r.phase == Phase.OPEN) & (again | self.unsent) & ~r.rst_due & ~r.syn_due
        )
        m.d.sync += [
            self.text.eq(text & ~full),
            self.stuck.eq(text & full),
            self.again.eq(again),
            self.slot.eq(Mux(again, 0, r.ahead)),
            self.seq.eq(Mux((again | r.syn_due) & ~full, r.snd_una, r.snd_nxt)),
            [s.eq(0) for s in (self.length, self.fin, self.psh)],
        ]
        m.next = "TOTAL"
        with m.If(text & ~full):
            m.next = "READ"
        with m.Elif(r.keepalive & ~r.syn_due & ~r.rst_due):
            m.d.sync += self.seq.eq(r.snd_una - 1)
        with m.Elif(~r.syn_due):  # SND.NXT may have been set back: the peer would not look at it
            m.d.sync += self.seq.eq(r.snd_max)

    def _size(self, m):
        """How much the descriptor has left; on to the next one if there is nothing."""
        r = self.port.record
        rest = Signal(signed(33))
        m.d.comb += rest.eq(self.left - self.close)
        m.d.sync += [
            self.whole.eq(rest <= r.mss),
            self.want.eq(Mux(rest <= r.mss, rest, r.mss)),
        ]
        m.next = "FIT"
        with m.If(self.left <= 0):
            m.d.sync += self.slot.eq(self.slot + 1)
            m.next = "READ"
            with m.If(self.slot + 1 >= r.count):
                m.d.sync += [self.text.eq(0), self.stuck.eq(1), self.slot.eq(self.slot)]
                m.d.sync += self.seq.eq(r.snd_max)
                m.next = "TOTAL"

    def _fit(self, m):
        """How much of that the window takes."""
        r = self.port.record
        m.d.sync += [self.length.eq(self.want), self.fin.eq(0), self.psh.eq(0)]
        with m.If((self.room > self.want) | ((self.room == self.want) & (self.want != 0))):
            m.d.sync += self.fin.eq(self.close & self.whole & (self.room != self.want))
            m.d.sync += self.psh.eq(self.pushed & self.whole)
        with m.Elif(self.alone & (self.room > 0)):
            m.d.sync += self.length.eq(self.room)
        with m.Elif(r.probe):  # one byte, or the FIN, into a closed window
            m.d.sync += [self.length.eq(self.want != 0), self.fin.eq(self.want == 0)]
        with m.Else():
            m.d.sync += [self.text.eq(0), self.stuck.eq(1), self.length.eq(0)]
            m.d.sync += self.seq.eq(r.snd_max)

    def _emit(self, m, session):
        r, w, o = self.port.record, self.w, self.tx_segment
        send = r.rst_due | r.syn_due | r.ack_due | r.keepalive | self.text
        full = r.flight == FLIGHT_MAX
        m.d.comb += [w[name].eq(0) for name in ("ack_due", "syn_due", "rst_due", "keepalive")]
        with m.If(self.again & (self.text | (self.stuck & ~full))):
            m.d.comb += [w.resend.eq(0), w.probe.eq(0)]
        with m.If(self.stuck & ~self.again):
            m.d.comb += w.blocked.eq(1)
        with m.If((self.text | self.stuck) & self.quiet & ~full):
            m.d.comb += w.deadline.eq(r.rto)
        with m.If(r.syn_due):
            m.d.comb += [w.rtt_on.eq((r.retries == 0) & ~r.rtt_on), w.rtt_seq.eq(r.snd_nxt)]
            m.d.comb += w.rtt_start.eq(self.now)
        with m.If(self.text):
            m.d.comb += w.flight.eq(r.flight + (self.length != 0))
            longest = (self.new_end - r.snd_max)[: self.near].as_signed() > 0
            with m.If(longest):
                m.d.comb += w.snd_max.eq(self.new_end)
            with m.If(~self.again):
                m.d.comb += [w.snd_nxt.eq(self.new_end), w.ahead.eq(self.slot)]
            with m.If(~self.newest):  # Karn: never time what was sent twice
                m.d.comb += [w.rtt_on.eq(0), self.count.retransmits.eq(1)]
            with m.Elif(~r.rtt_on):
                m.d.comb += [w.rtt_on.eq(1), w.rtt_seq.eq(self.new_end)]
                m.d.comb += w.rtt_start.eq(self.now)
        m.d.comb += self.count.rst_tx.eq(r.rst_due)
        m.d.comb += self.count.zero_window_probes.eq(self.text & r.probe)
        m.d.comb += self.count.keepalive_probes.eq(r.keepalive)
        m.d.sync += o.valid.eq(send)
        if self.config.ack_delay:  # it goes with whatever is sent
            with m.If(send):
                m.d.comb += w.ack_wait.eq(0)
        self._fill(m, session)

    def _fill(self, m, session):
        """The segment, whether it is sent or not: that is found out last."""
        r, p = self.port.record, self.tx_segment.payload
        m.d.sync += [
            p.session.eq(Mux(self.length != 0, session, (1 << SESSION_WIDTH) - 1)),
            [p[name].eq(self.peer[name]) for name in self.peer.shape().members],
            p.seq.eq(self.seq),
            p.ack.eq(r.rcv_pub),
            p.flags.eq(0),
            p.flags.ack.eq(~opening(self.config, r)),
            p.flags.fin.eq(self.fin),
            p.flags.psh.eq(self.psh),
            p.flags.syn.eq(r.syn_due & ~r.rst_due),
            p.flags.rst.eq(r.rst_due),
            p.window.eq(self.window),
            p.mss.eq(Mux(r.syn_due, self.config.mss, 0)),
            p.addr.eq(self.addr),
            p.length.eq(self.length),
        ]
        if self.config.scaling:
            m.d.sync += p.scaled.eq(r.syn_due & r.scaled)
        if self.config.sack:
            tells = r.sack & ~r.syn_due & ~r.rst_due & (self.length == 0) & ~self.fin
            places = Cat(r[name] for names in run_names(self.config) for name in names)
            m.d.sync += [p.permits.eq(r.sack), p.blocks.eq(Mux(tells, r.kept, 0))]
            m.d.sync += p.places.eq(places)
