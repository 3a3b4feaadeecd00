"""What a segment changes in its session's record (RFC 9293, 3.10.7.3 and 3.10.7.4)."""

from amaranth import unsigned
from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .classifier import judgement_layout
from .handshake import syn_fields, syn_layout
from .reassembly import joined_layout
from .record import (
    KILL_WRITES,
    TIME_WIDTH,
    Handback,
    Phase,
    UpdateSignature,
    kill,
    run_names,
)
from .registers import settings_layout
from .segment import rx_segment_layout

__all__ = ["COUNTS", "RecordUpdate"]

#: Strobes for counters.
COUNTS = ("established", "unknown", "rst_rx", "dup", "out_of_order", "out_of_window")
COUNTS += ("challenge_acks", "kept", "pool_dry", "fast_retransmits")

_WRITES = (*KILL_WRITES, "opened", "ev_open", "blocked", "deadline", "progress", "retries")
_WRITES += ("challenge_time", "challenges", "fin_seen", "fin_acked", "rcv_nxt", "kept")
_WRITES += ("has_segment", "segment", "snd_una", "snd_nxt", "snd_wnd", "cwnd", "credit", "ssthresh")
_WRITES += ("recover", "recovering", "dup_acks", "srtt8", "rttvar4", "rtt_valid", "rtt_on", "rto")


def _writes(config):
    """Return the fields of a record that a segment changes."""
    names = _WRITES + tuple(name for names in run_names(config) for name in names)
    names += ("snd_plain",) if config.scaling else ()
    names += ("ack_now",) if config.ack_delay else ()
    if config.active:
        names += ("rcv_base", "rcv_pub", "rcv_cons", "rcv_edge", "mss")
        names += ("scaled", "snd_shift") if config.scaling else ()
        names += ("sack",) if config.sack else ()
    return names


class RecordUpdate(wiring.Component):
    """Derives a record's new values, and what else is to be done, from a classified segment.

    ===============  ===  =====================================================================
    ``segment``      In   rx_segment_layout
    ``judgement``    In   judgement_layout: its classification
    ``update``       Out  :class:`~trebuchet.cores.tcp.record.UpdateSignature`: the record and
                          its new values
    ``settings``     In   settings_layout
    ``now``          In   time in ticks
    ``syn``          In   with ``config.active``: syn_layout, in case the segment is a SYN
    ``sampled``      In   the segment ends a measurement of the round-trip time
    ``srtt8``        In   and ``rttvar4``, ``rto``: new estimates
    ``grown``        In   and ``credit``: congestion window after this ACK; ``half``: ssthresh
                          after a loss
    ``joined``       In   joined_layout: the segment's text joined with the runs beyond gaps;
                          used only if there are any, or the text is to be kept
    ``pool``         In   number of a free pool segment; ``pool_valid``: there is one
    ``pool_ready``   Out  it is used
    ``store``        Out  the text (or FIN) goes to memory
    ``place``        Out  with ``store``: into this pool segment
    ``fin``          Out  with ``store``: the FIN is taken
    ``end``          Out  with ``store``, in order: RCV.NXT afterwards
    ``answer_rst``   Out  the segment is to be answered by a RST
    ``opened``       Out  with ``config.active``: the session goes from SYN-SENT to ESTABLISHED
    ``count``        Out  a strobe per entry of :data:`COUNTS`
    ===============  ===  =====================================================================

    Combinational: all outputs are valid in the cycle in which all inputs are, which the receive
    engine's state COMMIT is. It has no state, so no reset and no back-pressure. *Bad input*: every
    segment is one; those that RFC 9293 drops change nothing.
    """

    def __init__(self, config):
        self.config = config
        bits = config.window_bits
        super().__init__(
            {
                "segment": In(rx_segment_layout(config)),
                "judgement": In(judgement_layout(config)),
                "update": Out(UpdateSignature(config, _writes(config))),
                "settings": In(settings_layout(config)),
                "now": In(TIME_WIDTH),
                "sampled": In(1),
                "srtt8": In(19),
                "rttvar4": In(18),
                "rto": In(17),
                "grown": In(bits),
                "credit": In(bits),
                "half": In(bits),
                "joined": In(joined_layout(config)),
                "pool": In(unsigned(config.segment_bits)),
                "pool_valid": In(1),
                "pool_ready": Out(1),
                "store": Out(1),
                "place": Out(config.segment_bits),
                "fin": Out(1),
                "end": Out(32),
                "answer_rst": Out(1),
                "opened": Out(1),
                "count": Out(data.StructLayout({name: 1 for name in COUNTS})),
            }
            | ({"syn": In(syn_layout(config))} if config.active else {})
        )

    def elaborate(self, platform):
        m = Module()
        seg, j, r = self.segment, self.judgement, self.update.record
        w = Handback(m, self.update)
        jump = (r.kept != 0) & self.joined.jump
        m.d.comb += [
            self.fin.eq(seg.flags.fin & j.whole & ~r.fin_seen & ~j.ahead & ~jump),
            self.end.eq(Mux(jump, self.joined.edge, j.next + self.fin)),
            self.place.eq(Mux(r.has_segment, r.segment, self.pool)),
        ]
        self._classes(m, w)
        w.finish(m)
        return m

    def _classes(self, m, w):
        """By the classes of the judgement, of which each segment is in one or none."""
        seg, j, count = self.segment, self.judgement, self.count
        rst = seg.flags.rst
        # The record of a session that is over is free in a moment: the SYN of the next one between
        # the same ports gets no RST, and finds it free when it comes again (RFC 9293, 3.8.1).
        syn = seg.flags.syn & ~seg.flags.ack
        m.d.comb += [
            count.unknown.eq(j.closed),
            count.rst_rx.eq(j.reset),
            count.dup.eq(j.outside & ~j.ahead),
            count.out_of_window.eq((j.outside & j.ahead) | j.wild),
            self.answer_rst.eq((j.closed & ~rst & ~syn) | j.refused),
        ]
        if self.config.active:
            with m.If(j.opens):
                self._syn_sent(m, w)
        with m.If(j.lingers & (j.text | seg.flags.syn)):
            m.d.comb += w.ack_due.eq(~rst)  # a RST does not end TIME-WAIT (RFC 1337)
        with m.If(j.lingers & seg.flags.fin & ~rst):
            m.d.comb += w.deadline.eq(self.settings.time_wait)
        with m.If(j.reset):
            m.d.comb += kill(self.update, 0)
        with m.If(j.resyn):
            m.d.comb += w.syn_due.eq(1)
        with m.If(j.answered):
            m.d.comb += w.ack_due.eq(1)
        with m.If(j.challenged):
            self._challenge(m, w)
        with m.If(j.takes | j.beyond):
            self._acknowledged(m, w)
        with m.If(j.takes):
            self._text(m, w)

    def _challenge(self, m, w):
        """A challenge ACK (RFC 5961), at most three in 128 ticks, to end loops of ACKs."""
        r = self.update.record
        slot = self.now[7:13]
        with m.If((r.challenge_time != slot) | (r.challenges != 3)):
            m.d.comb += [w.ack_due.eq(1), w.challenge_time.eq(slot)]
            m.d.comb += w.challenges.eq(Mux(r.challenge_time != slot, 1, r.challenges + 1))
            m.d.comb += self.count.challenge_acks.eq(1)

    def _syn_sent(self, m, w):
        """SYN-SENT (RFC 9293, 3.10.7.3). Text and FIN that come with a SYN come once more."""
        seg, j = self.segment, self.judgement
        flags, idle = seg.flags, self.settings.keepalive_idle
        with m.If(flags.ack & ~j.ack_new):
            m.d.comb += self.answer_rst.eq(~flags.rst)
        with m.Elif(flags.rst):
            with m.If(flags.ack):
                m.d.comb += [kill(self.update, 0), self.count.rst_rx.eq(1)]
        with m.Elif(flags.syn):
            m.d.comb += [syn_fields(self.config, w, self.syn), w.deadline.eq(self.rto)]
            with m.If(flags.ack):
                m.d.comb += [w.phase.eq(Phase.OPEN), w.snd_una.eq(seg.ack), w.ack_due.eq(1)]
                m.d.comb += [w.syn_due.eq(0), w.check.eq(1), w.rto.eq(self.rto)]
                m.d.comb += w.deadline.eq(Mux(j.ack_all, idle, self.rto))
                m.d.comb += [self.count.established.eq(1), self.opened.eq(1)]
                self._sample(m, w)
            with m.Else():  # both ends open at once
                m.d.comb += [w.phase.eq(Phase.SYN_RCVD), w.syn_due.eq(1), w.rtt_on.eq(0)]

    def _sample(self, m, w):
        """A round trip has been measured."""
        with m.If(self.sampled):
            m.d.comb += [w.srtt8.eq(self.srtt8), w.rttvar4.eq(self.rttvar4)]
            m.d.comb += [w.rtt_valid.eq(1), w.rtt_on.eq(0)]

    def _acknowledged(self, m, w):
        """The segment's ACK and window."""
        seg, j, r = self.segment, self.judgement, self.update.record
        with m.If(r.phase == Phase.SYN_RCVD):
            # With places a service learns of the session when there is more to tell.
            tell = 0 if self.config.places else 1
            m.d.comb += [w.phase.eq(Phase.OPEN), w.opened.eq(1), w.ev_open.eq(tell)]
            m.d.comb += [w.syn_due.eq(0), self.count.established.eq(1)]
            if self.config.active:
                with m.If(r.opened):  # both ends opened: the service was told at once
                    m.d.comb += [w.ev_open.eq(r.ev_open), self.opened.eq(1)]
        with m.If(j.ack_new):
            m.d.comb += [w.snd_una.eq(seg.ack), w.check.eq(1), w.retries.eq(0), w.dup_acks.eq(0)]
            m.d.comb += [w.touch(), w.blocked.eq(0), w.rto.eq(self.rto)]
            m.d.comb += [w.resend.eq(0), w.probe.eq(0)]
            m.d.comb += w.deadline.eq(Mux(j.ack_all, self.settings.keepalive_idle, self.rto))
            m.d.comb += w.fin_acked.eq(r.fin_queued & j.ack_all)
            with m.If(j.ack_past_nxt):
                m.d.comb += w.snd_nxt.eq(seg.ack)
            self._sample(m, w)
            with m.If(~r.recovering):
                m.d.comb += [w.cwnd.eq(self.grown), w.credit.eq(self.credit)]
            with m.Elif(j.ack_recovered):
                m.d.comb += w.recovering.eq(0)
            with m.Else():  # partial ACK (RFC 6582): the next hole begins here
                m.d.comb += w.resend.eq(1)
            self._closing(m, w)
        with m.Elif(j.ack_same):
            with m.If(j.ack_all & (r.phase == Phase.OPEN)):
                m.d.comb += [w.deadline.eq(self.settings.keepalive_idle), w.retries.eq(0)]
            with m.If(j.duplicate):
                m.d.comb += w.dup_acks.eq(r.dup_acks + 1)
            with m.If(j.third):
                m.d.comb += [w.resend.eq(1), w.recovering.eq(1), w.recover.eq(r.snd_max)]
                m.d.comb += [w.ssthresh.eq(self.half), w.cwnd.eq(self.half)]
                m.d.comb += [w.rtt_on.eq(0), self.count.fast_retransmits.eq(1)]
        with m.If(j.ack_new | j.ack_same):
            m.d.comb += w.snd_wnd.eq(seg.window)
            other = seg.window != r.snd_wnd
            if self.config.scaling:
                other |= r.snd_plain
                m.d.comb += w.snd_plain.eq(0)
            with m.If(other):
                m.d.comb += w.blocked.eq(0)
            with m.If(seg.window == 0):  # it answers: a closed window is no reason to give up
                m.d.comb += w.retries.eq(0)

    def _closing(self, m, w):
        """Our FIN is acknowledged, and the peer's is taken already: the end."""
        j, r = self.judgement, self.update.record
        with m.If(r.fin_queued & j.ack_all & r.fin_told):
            m.d.comb += [w.ev_closed.eq(1), w.ok.eq(1), w.deadline.eq(self.settings.time_wait)]
            m.d.comb += w.phase.eq(Mux(r.passive, Phase.CLOSED, Phase.TIME_WAIT))

    def _text(self, m, w):
        """The segment's data and FIN."""
        seg, j, r = self.segment, self.judgement, self.update.record
        keep = j.keep & ~self.joined.full
        fits = r.has_segment | (j.take == 0) & ~keep | self.pool_valid
        with m.If(j.ahead & ~keep):
            m.d.comb += [w.ack_due.eq(r.ack_due | j.text), self.count.out_of_order.eq(j.text)]
        with m.Elif(~fits):
            m.d.comb += self.count.pool_dry.eq(1)
        with m.Elif(j.ahead):
            m.d.comb += [self.store.eq(1), w.ack_due.eq(1), self.count.kept.eq(1), self._keep(w)]
        with m.Elif((j.take != 0) | self.fin):
            m.d.comb += [self.store.eq(1), w.fin_seen.eq(self.fin), w.rcv_nxt.eq(self.end)]
            with m.If(r.kept != 0):
                m.d.comb += self._keep(w)
            with m.If(self.fin):  # nothing comes behind it
                m.d.comb += w.kept.eq(0)
            if self.config.ack_delay:
                m.d.comb += w.ack_now.eq(r.ack_now | (r.kept != 0))
        with m.Elif(seg.length != 0):  # a closed window, or text after the FIN
            m.d.comb += [w.ack_due.eq(1), self.count.out_of_window.eq(1)]
        with m.If(self.store):
            # Not idle. While data of ours wait for an ACK, `progress` is what ACKs say of them.
            with m.If(j.ack_all):
                m.d.comb += w.touch()
            with m.If(j.ahead | (j.take != 0)):
                m.d.comb += [w.has_segment.eq(1), w.segment.eq(self.place)]
                m.d.comb += self.pool_ready.eq(~r.has_segment)

    def _keep(self, w):
        """The record's runs are those with the text, or without what it has reached."""
        places = zip(run_names(self.config), self.joined.runs, strict=True)
        return [
            w.kept.eq(self.joined.count),
            [[w[begin].eq(run.begin), w[end].eq(run.end)] for (begin, end), run in places],
        ]
