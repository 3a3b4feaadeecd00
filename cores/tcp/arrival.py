"""What an arriving segment does to its session's record (RFC 9293, 3.10.7.3 and 3.10.7.4)."""

from amaranth.hdl import Mux, Signal

from .record import Phase, kill, run_names

__all__ = ["Arrival"]


class Arrival:
    """Methods of :class:`~trebuchet.cores.tcp.receive.ReceiveEngine`: what it hands back.

    All statements are of one cycle, COMMIT. ``j`` is the judgement, ``w`` what is handed back.
    """

    def _challenge(self, m):
        """An ACK that says where we are; three in 128 ticks, or two ends could go on for ever."""
        r, w = self.port.record, self.w
        slot = self.now[7:13]
        with m.If((r.challenge_time != slot) | (r.challenges != 3)):
            m.d.comb += [w.ack_due.eq(1), w.challenge_time.eq(slot)]
            m.d.comb += w.challenges.eq(Mux(r.challenge_time != slot, 1, r.challenges + 1))
            m.d.comb += self.count.challenge_acks.eq(1)

    def _update(self, m):
        """What becomes of it, by the kinds that the judge says it is of."""
        seg, j, w = self.input.payload.body.segment, self.j, self.w
        rst = seg.flags.rst
        # The record of a session that is over is free in a moment: the SYN of the next one between
        # the same ports gets no RST, and finds it free when it comes again (RFC 9293, 3.8.1).
        syn = seg.flags.syn & ~seg.flags.ack
        m.d.comb += [
            self.count.unknown.eq(j.closed),
            self.count.rst_rx.eq(j.reset),
            self.count.dup.eq(j.outside & ~j.ahead),
            self.count.out_of_window.eq((j.outside & j.ahead) | j.wild),
            self.answer_rst.eq((j.closed & ~rst & ~syn) | j.refused),
        ]
        if self.config.active:
            with m.If(j.opens):
                self._opening(m)
        with m.If(j.lingers & (j.text | seg.flags.syn)):
            m.d.comb += w.ack_due.eq(~rst)  # a RST does not end TIME-WAIT (RFC 1337)
        with m.If(j.lingers & seg.flags.fin & ~rst):
            m.d.comb += w.deadline.eq(self.settings.time_wait)
        with m.If(j.reset):
            m.d.comb += kill(self.port, 0)
        with m.If(j.resyn):
            m.d.comb += w.syn_due.eq(1)
        with m.If(j.answered):
            m.d.comb += w.ack_due.eq(1)
        with m.If(j.challenged):
            self._challenge(m)
        with m.If(j.takes | j.beyond):
            self._acknowledged(m)
        with m.If(j.takes):
            self._text(m)

    def _opening(self, m):
        """SYN-SENT (RFC 9293, 3.10.7.3). Text and FIN that come with a SYN come once more."""
        seg, j, w = self.input.payload.body.segment, self.j, self.w
        flags, idle = seg.flags, self.settings.keepalive_idle
        with m.If(flags.ack & ~j.ack_new):
            m.d.comb += self.answer_rst.eq(~flags.rst)
        with m.Elif(flags.rst):
            with m.If(flags.ack):
                m.d.comb += [kill(self.port, 0), self.count.rst_rx.eq(1)]
        with m.Elif(flags.syn):
            m.d.comb += [self.handshake.peer(w), w.deadline.eq(self.rtt.rto)]
            with m.If(flags.ack):
                m.d.comb += [w.phase.eq(Phase.OPEN), w.snd_una.eq(seg.ack), w.ack_due.eq(1)]
                m.d.comb += [w.syn_due.eq(0), w.check.eq(1), w.rto.eq(self.rtt.rto)]
                m.d.comb += w.deadline.eq(Mux(j.ack_all, idle, self.rtt.rto))
                m.d.comb += [self.count.established.eq(1), self.opened.eq(1)]
                self._sample(m)
            with m.Else():  # both ends open at once
                m.d.comb += [w.phase.eq(Phase.SYN_RCVD), w.syn_due.eq(1), w.rtt_on.eq(0)]

    def _sample(self, m):
        """A round trip has been measured."""
        w = self.w
        with m.If(self.sampled):
            m.d.comb += [w.srtt8.eq(self.rtt.srtt8_new), w.rttvar4.eq(self.rtt.rttvar4_new)]
            m.d.comb += [w.rtt_valid.eq(1), w.rtt_on.eq(0)]

    def _acknowledged(self, m):
        """The segment's ACK and window."""
        seg, j, r, w = self.input.payload.body.segment, self.j, self.port.record, self.w
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
            m.d.comb += [w.touch(), w.blocked.eq(0), w.rto.eq(self.rtt.rto)]
            m.d.comb += [w.resend.eq(0), w.probe.eq(0)]
            m.d.comb += w.deadline.eq(Mux(j.ack_all, self.settings.keepalive_idle, self.rtt.rto))
            m.d.comb += w.fin_acked.eq(r.fin_queued & j.ack_all)
            with m.If(j.ack_past_nxt):
                m.d.comb += w.snd_nxt.eq(seg.ack)
            self._sample(m)
            with m.If(~r.recovering):
                m.d.comb += [w.cwnd.eq(self.window.grown), w.credit.eq(self.window.credit_new)]
            with m.Elif(j.ack_recovered):
                m.d.comb += w.recovering.eq(0)
            with m.Else():  # partial ACK (RFC 6582): the next hole begins here
                m.d.comb += w.resend.eq(1)
            self._closing(m)
        with m.Elif(j.ack_same):
            with m.If(j.ack_all & (r.phase == Phase.OPEN)):
                m.d.comb += [w.deadline.eq(self.settings.keepalive_idle), w.retries.eq(0)]
            with m.If(j.duplicate):
                m.d.comb += w.dup_acks.eq(r.dup_acks + 1)
            with m.If(j.third):
                m.d.comb += [w.resend.eq(1), w.recovering.eq(1), w.recover.eq(r.snd_max)]
                m.d.comb += [w.ssthresh.eq(self.window.half), w.cwnd.eq(self.window.half)]
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

    def _closing(self, m):
        """Our FIN is acknowledged, and the peer's is taken already: the end."""
        j, r, w = self.j, self.port.record, self.w
        with m.If(r.fin_queued & j.ack_all & r.fin_told):
            m.d.comb += [w.ev_closed.eq(1), w.ok.eq(1), w.deadline.eq(self.settings.time_wait)]
            m.d.comb += w.phase.eq(Mux(r.passive, Phase.CLOSED, Phase.TIME_WAIT))

    def _text(self, m):
        """The segment's data and FIN."""
        seg, j, r, w = self.input.payload.body.segment, self.j, self.port.record, self.w
        fin, write, keep = self.fin, Signal(), j.keep & ~self.gaps.full
        fits = r.has_segment | (j.take == 0) & ~keep | self.pool.valid
        with m.If(j.ahead & ~keep):
            m.d.comb += [w.ack_due.eq(r.ack_due | j.text), self.count.out_of_order.eq(j.text)]
        with m.Elif(~fits):
            m.d.comb += self.count.pool_dry.eq(1)
        with m.Elif(j.ahead):
            m.d.comb += [write.eq(1), w.ack_due.eq(1), self.count.kept.eq(1), self._keep()]
        with m.Elif((j.take != 0) | fin):
            m.d.comb += [write.eq(1), w.fin_seen.eq(fin), w.rcv_nxt.eq(self.end)]
            with m.If(r.kept != 0):
                m.d.comb += self._keep()
            with m.If(fin):  # nothing comes behind it
                m.d.comb += w.kept.eq(0)
            if self.config.ack_delay:
                m.d.comb += w.ack_now.eq(r.ack_now | (r.kept != 0))
        with m.Elif(seg.length != 0):  # a closed window, or text after the FIN
            m.d.comb += [w.ack_due.eq(1), self.count.out_of_window.eq(1)]
        with m.If(write):
            m.d.sync += [self.owed.eq(0), self.verdict.valid.eq(1)]
            # Not idle. While data of ours wait for an ACK, `progress` is what ACKs say of them.
            with m.If(j.ack_all):
                m.d.comb += w.touch()
            with m.If(j.ahead | (j.take != 0)):
                m.d.comb += [w.has_segment.eq(1), w.segment.eq(self.place)]
                m.d.comb += self.pool.ready.eq(~r.has_segment)

    def _keep(self):
        """The record's runs are those with the text, or without what it has reached."""
        w, gaps = self.w, self.gaps
        places = zip(run_names(self.config), gaps.runs, strict=True)
        return [
            w.kept.eq(gaps.count),
            [[w[begin].eq(run.begin), w[end].eq(run.end)] for (begin, end), run in places],
        ]
