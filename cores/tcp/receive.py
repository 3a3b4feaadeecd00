"""The receive engine: what an arriving segment does to its session (RFC 9293, 3.10.7)."""

from amaranth.hdl import C, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .admission import latency
from .classifier import SegmentClassifier
from .cookie import COUNTS as COOKIE_COUNTS
from .cookie import SynCookie, syn_ack
from .estimator import CONGESTION, RttEstimator
from .handshake import Handshake
from .icmp_error import COUNTS as NOTICE_COUNTS
from .icmp_error import IcmpErrorUpdate
from .lookup import LookupSignature, session_tuple
from .reassembly import ReassemblyBlocks
from .receive_input import InputKind, input_layout
from .record import (
    KILL_WRITES,
    TIME_WIDTH,
    CheckoutSignature,
    Handback,
    Phase,
    peer_layout,
    record_layout,
    run_names,
)
from .record_update import COUNTS as UPDATE_COUNTS
from .record_update import RecordUpdate
from .registers import settings_layout
from .segment import drop, reset, tx_segment_layout, verdict_layout

__all__ = ["COUNTS", "WRITES", "ReceiveEngine", "counts", "writes"]


#: Fields of the record this engine writes.
WRITES = ("service", *KILL_WRITES)
WRITES += ("fin_seen", "fin_told", "fin_queued", "fin_acked", "passive", "opened")
WRITES += ("rcv_base", "rcv_nxt", "rcv_pub", "rcv_cons", "rcv_edge", "has_segment", "segment")
WRITES += ("kept",)
WRITES += ("snd_una", "snd_nxt", "snd_max", "snd_end", "snd_wnd", "mss", "cwnd", "credit")
WRITES += ("ssthresh", "recover", "recovering", "dup_acks", "first", "count", "ahead", "flight")
WRITES += ("srtt8", "rttvar4", "rtt_valid", "rtt_on", "rto", "retries", "deadline", "progress")
WRITES += ("challenge_time", "challenges", "blocked", "ev_open", "ev_data", "ev_eof", "on_wheel")

#: What the engine counts: one strobe each.
COUNTS = ("syn_rx", "accepted", "established", "refused_full", "refused_half_open", "unknown")
COUNTS += ("rst_rx", "rst_tx", "dup", "out_of_order", "out_of_window", "challenge_acks")
COUNTS += ("kept", "pool_dry", "fast_retransmits", "time_wait_reused")


def writes(config):
    """Fields of the record this engine writes."""
    more = tuple(name for names in run_names(config) for name in names)
    more += ("scaled", "snd_shift", "snd_plain") if config.scaling else ()
    more += ("sack",) if config.sack else ()
    more += ("ack_wait", "ack_now", "near", "busy") if config.ack_delay else ()
    return WRITES + more


def counts(config):
    """What the engine counts."""
    return COUNTS + COOKIE_COUNTS if config.cookies else COUNTS


def _strobes(names):
    return data.StructLayout({name: 1 for name in names})


class ReceiveEngine(wiring.Component):
    """Takes segments, notices and requests one by one, finds or makes their session, updates it.

    ==============  ===  ======================================================================
    ``input``       In   stream of :func:`~trebuchet.cores.tcp.receive_input.input_layout`
    ``accepted``    Out  as an item is taken: it has become session ``port.session``
    ``opened``      Out  strobe: ``port.session`` has gone from SYN-SENT to ESTABLISHED
    ``lookup``      Out  :class:`~trebuchet.cores.tcp.lookup.LookupSignature`, to the session table
    ``port``        Out  checkout port
    ``verdict``     Out  stream of verdict_layout, one for each payload
    ``reply``       Out  stream of TxSegmentLayout: RST for segments without a session
    ``pool``        In   stream of free pool segments
    ``now``         In   time in ticks
    ``settings``    In   the programmable registers
    ``half_open``   In   sessions in SYN-RCVD
    ``admits``      In   a bit per service: it may have one more session; right
                         :func:`~trebuchet.cores.tcp.admission.latency` cycles after the last began
    ``below``       In   a bit per service: it has fewer sessions than are reserved for it
    ``refused``     Out  strobe: service ``wanted`` was not admitted
    ``peer``        Out  who the session ``port.session`` is with, to be kept if ``peer_write``
    ``count``       Out  a strobe per entry of :func:`counts`
    ``noticed``     Out  with ``config.icmp``: a strobe per entry of
                         :data:`~trebuchet.cores.tcp.icmp_error.COUNTS`
    ==============  ===  ======================================================================

    About 24 cycles a segment (50 for a SYN), of which it holds the record for 7, and ``runs`` + 3
    more if something is kept beyond a gap, or is about to be. It waits for the sender (through
    ``reply``) and the memory (through ``verdict``), never while it holds a record.
    Reset: idle.

    Parts: ``judge`` classifies a segment, ``rtt``, ``window`` and ``gaps`` compute what follows
    from it, ``update`` (of a notice ``notice_update``) derives the record's new values, and
    ``handshake`` those of a new session. All of them are valid before the record is handed back.

    With ``config.cookies``: a segment's second lookup is that of ``cookie.block``, for its hash
    only; the table's cipher has nothing else to do meanwhile. A SYN takes one more lookup, an ACK
    that could be a cookie's two, and one of a session that it has made a third. One that could be,
    but is not, gets no answer: it may be a later segment of a peer whose first ACK was lost, which
    a RST would end. An ACK whose session is gone can make it once more if it comes again within the
    cookie's time, as with all SYN cookies: the peer then answers with a RST.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "input": In(stream.Signature(input_layout(config))),
                "accepted": Out(1),
                "opened": Out(1),
                "lookup": Out(LookupSignature(config.session_bits)),
                "port": Out(CheckoutSignature(config, writes(config))),
                "verdict": Out(stream.Signature(verdict_layout(config))),
                "reply": Out(stream.Signature(tx_segment_layout(config))),
                "pool": In(stream.Signature(unsigned(config.segment_bits))),
                "now": In(TIME_WIDTH),
                "settings": In(settings_layout(config)),
                "half_open": In(range(config.sessions + 1)),
                "admits": In(len(config.ports)),
                "below": In(len(config.ports)),
                "refused": Out(1),
                "wanted": Out(record_layout(config).members["service"]),
                "peer": Out(peer_layout(config)),
                "peer_write": Out(1),
                "count": Out(_strobes(counts(config))),
            }
            | ({"noticed": Out(_strobes(NOTICE_COUNTS))} if config.icmp else {})
        )
        kind, body = self.input.payload.kind, self.input.payload.body
        self.connects = kind == InputKind.CONNECT if config.active else C(0)
        self.notice = kind == InputKind.NOTICE if config.icmp else C(0)
        self.segment, self.service = body.segment, body.connect.service
        self.judge = SegmentClassifier(config)
        self.j = self.judge.judgement
        self.rtt = RttEstimator(config.rto_max)
        self.window = CONGESTION[config.congestion](config.window_bits)
        self.gaps = ReassemblyBlocks(config)
        self.handshake = Handshake(config)
        self.update = RecordUpdate(config)
        self.notice_update = IcmpErrorUpdate(config) if config.icmp else None
        self.cookie = SynCookie(config) if config.cookies else None
        # The segment is the ACK of a cookie of ours; the cookie's block is looked up, for its hash.
        self.good = Signal(name="good") if config.cookies else C(0)
        self.bakes = Signal(name="bakes") if config.cookies else C(0)

    # A segment's way: IDLE, LOOKUP (the table works), DECIDE, then CLAIM, WORK and COMMIT (there is
    # a session), CLAIM and MAKE (a new one) or REPLY (none), and TAIL, which frees the table and
    # drops the payload if it has got no verdict yet. With a cookie DECIDE leads to BAKE, LOOKUP (of
    # the hash), BAKED and TASTE; from there to REPLY or, with the ACK of one, to LOOKUP and MAKE,
    # after which the ACK comes to IDLE once more and finds its session.
    def elaborate(self, platform):
        m = Module()
        config, seg, port = self.config, self.segment, self.port
        connects, w = self.connects, Handback(m, port)
        m.submodules.judge = judge = self.judge
        m.d.comb += [judge.segment.eq(seg), judge.record.eq(port.record)]
        m.d.comb += [
            self.lookup.tuple.eq(session_tuple(seg)),
            self.lookup.want_hash.eq(seg.flags.syn | connects),
        ]
        m.d.comb += [self.peer[name].eq(seg[name]) for name in self.peer.shape().members]
        self._arithmetic(m)
        self._handshake(m)
        self._admission(m)
        self._gaps(m)
        self._updates(m)
        r = port.record
        syn_only = seg.flags.syn & ~seg.flags.ack & ~seg.flags.rst
        accept = (syn_only & self.handshake.local.any() | connects) & self.settings.enable
        fresh, made, gone, owed = (Signal(name=n) for n in ("fresh", "made", "gone", "owed"))
        self.fresh, self.made, self.gone, self.owed = fresh, made, gone, owed
        self.answer_rst = Signal()
        self.step = step = Signal(range(8))
        reusable = Signal()  # a newer SYN may replace this TIME-WAIT (RFC 9293, 3.10.7.4)
        m.d.sync += reusable.eq(
            (r.phase == Phase.TIME_WAIT)
            & (r.released & accept & self.j.ahead & (r.service == self.wanted))
            & ((r.count == 0) & (r.flight == 0) & (r.rcv_nxt == r.rcv_pub))
        )
        if config.cookies:
            self._cookie(m)
            accept = accept | self.good
        with m.If(self.verdict.valid & self.verdict.ready):
            m.d.sync += self.verdict.valid.eq(0)
        with m.If(self.reply.valid & self.reply.ready):
            m.d.sync += self.reply.valid.eq(0)

        with m.FSM() as self.fsm:
            with m.State("IDLE"):
                m.d.sync += [gone.eq(0), made.eq(0), owed.eq(seg.length != 0)]
                with m.If(self.settled <= 2):
                    m.d.sync += self.settled.eq(2)
                with m.If(self.input.valid & self.lookup.ready):
                    m.d.comb += [self.lookup.start.eq(1), self.count.syn_rx.eq(syn_only)]
                    m.next = "LOOKUP"
            with m.State("LOOKUP"):
                with m.If(self.lookup.done & (self.lookup.hash_valid | ~self.lookup.want_hash)):
                    m.next = "DECIDE"
                    if config.cookies:
                        with m.If(self.bakes):
                            m.next = "BAKED"
            with m.State("DECIDE"):
                with m.If(self.settled == 0):
                    self._decide(m, accept, fresh, gone)
            with m.State("ROOM"):  # the verdict is given under the lock: have room for it first
                with m.If(~self.verdict.valid):
                    m.next = "CLAIM"
            with m.State("CLAIM"):
                m.d.comb += port.request.eq(1)
                m.d.sync += step.eq(0)
                with m.If(port.grant):
                    m.next = "WORK"
                    with m.If(fresh):
                        m.next = "MAKE"
                    with m.Elif(r.phase == Phase.FREE):
                        # Freed since the table found it. The table unlinks it after `finish`.
                        m.d.comb += port.commit.eq(1)
                        m.d.sync += gone.eq(1)
                        m.next = "DECIDE"
            with m.State("WORK"):
                m.d.sync += step.eq(step + 1)
                with m.If(step == 5):
                    m.next = "COMMIT"
                    with m.If(reusable):
                        m.d.comb += self.count.time_wait_reused.eq(1)
                        m.next = "MAKE"
                    with m.Elif((r.kept != 0) | self.j.keep):
                        m.d.comb += self.gaps.start.eq(1)
                        m.next = "GAPS"
            with m.State("GAPS"):
                with m.If(self.gaps.done):
                    m.next = "COMMIT"
            with m.State("MAKE"):
                m.d.comb += [port.commit.eq(1), self.count.accepted.eq(1)]
                m.d.sync += [made.eq(fresh), self.settled.eq(self.settling)]
                self._make(m, w)
                m.next = "TAIL"
            with m.State("COMMIT"):
                m.d.comb += port.commit.eq(1)
                self._hand_back(m, w)
                m.next = "TAIL"
                with m.If(self.answer_rst):
                    m.next = "REPLY"
            with m.State("REPLY"):
                with m.If(~self.reply.valid):
                    m.d.comb += self.count.rst_tx.eq(1)
                    self._reply(m)
                    m.next = "TAIL"
            with m.State("TAIL"):
                ended = ~owed | ~self.verdict.valid
                if config.cookies:
                    with m.If(self.lookup.finish):
                        m.d.sync += [self.bakes.eq(0), self.good.eq(0)]
                    with m.If(made & self.good):  # the ACK now has a session: once more
                        m.d.comb += [self.lookup.finish.eq(1), self.lookup.insert.eq(1)]
                        m.next = "IDLE"
                    ended = ended & ~(made & self.good)
                with m.If(ended):
                    m.d.comb += [self.lookup.finish.eq(1), self.lookup.insert.eq(made)]
                    m.d.comb += [self.accepted.eq(made), self.input.ready.eq(1)]
                    with m.If(owed):
                        m.d.sync += self.verdict.valid.eq(1)
                        drop(m, self.verdict.payload, seg)
                    m.next = "IDLE"
            if config.cookies:
                self._cookie_states(m)
        w.finish(m)
        return m

    def _decide(self, m, accept, fresh, gone):
        seg, connects = self.segment, self.connects
        m.d.sync += [fresh.eq(0), self.port.session.eq(self.lookup.session)]
        known = self.lookup.found & ~gone
        ignored = self.notice & ~known
        if self.config.icmp:
            m.d.comb += self.noticed.icmp_ignored.eq(ignored)
        with m.If((connects & (known | ~accept)) | ignored):
            m.next = "TAIL"
        with m.Elif(known):
            m.next = "ROOM"
        with m.Elif(accept):
            m.d.sync += [self.port.session.eq(self.lookup.free_session), fresh.eq(1)]
            m.next = "TAIL"
            with m.If(~self.lookup.free_valid | ~self.admitted):
                m.d.comb += [self.count.refused_full.eq(1), self.refused.eq(~self.admitted)]
            with m.Elif(self.crowded & ~(connects | self.good)):
                m.d.comb += self.count.refused_half_open.eq(1)
                if self.config.cookies:
                    with m.If(self.cookie.able):
                        m.d.comb += self.count.refused_half_open.eq(0)
                        m.next = "BAKE"
            with m.Else():
                m.next = "ROOM"
        if self.config.cookies:
            with m.Elif(self._may_be_cookie()):
                m.next = "BAKE"
        with m.Else():
            m.d.comb += self.count.unknown.eq(1)
            m.next = "TAIL"
            with m.If(~seg.flags.rst):
                m.next = "REPLY"

    def _arithmetic(self, m):
        """The free-running pipelines beside the judge: time-out, congestion window."""
        r, j = self.port.record, self.j
        m.submodules.rtt = rtt = self.rtt
        m.submodules.window = window = self.window
        m.d.comb += [
            [rtt.srtt8.eq(r.srtt8), rtt.rttvar4.eq(r.rttvar4), rtt.valid.eq(r.rtt_valid)],
            [rtt.start.eq(r.rtt_start), rtt.now.eq(self.now)],
            rtt.sample.eq(r.rtt_on & j.ack_new & j.ack_timed),
            rtt.rto_min.eq(self.settings.rto_min),
            rtt.rto_initial.eq(self.settings.rto_initial),
            [window.acked.eq(j.acked), window.out.eq(j.out), window.mss.eq(r.mss)],
            [getattr(window, n).eq(r[n]) for n in ("cwnd", "credit", "ssthresh")],
        ]

    def _handshake(self, m):
        """What a new session needs, ready long before MAKE."""
        m.submodules.handshake = new = self.handshake
        m.d.comb += [
            new.segment.eq(self.segment),
            new.settings.eq(self.settings),
            new.take.eq(self.lookup.done & ~self.port.grant),
            new.hash.eq(self.lookup.hash),
        ]
        if self.config.active:
            m.d.comb += new.opens.eq(self.connects)

    def _admission(self, m):
        """May the service that is wanted have one more session? A limit on handshakes is not for
        one that has fewer than are reserved for it."""
        self.settling = latency(self.config) + 1
        # Cycles until what is here is that of the segment, with the last session counted.
        self.settled = Signal(range(self.settling + 1), init=self.settling)
        self.admitted, self.crowded = Signal(), Signal()
        crowded = self.half_open >= self.settings.half_open_limit
        m.d.comb += self.wanted.eq(Mux(self.connects, self.service, self.handshake.service))
        with m.If(self.settled != 0):
            m.d.sync += self.settled.eq(self.settled - 1)
        m.d.sync += self.admitted.eq(self.admits.bit_select(self.wanted, 1))
        m.d.sync += self.crowded.eq(crowded & ~self.below.bit_select(self.wanted, 1))

    def _gaps(self, m):
        """What is kept beyond gaps, and the text. Right in COMMIT if there was any, or will be."""
        r, j, bits = self.port.record, self.j, self.config.place_bits
        m.submodules.gaps = gaps = self.gaps
        m.d.comb += [
            gaps.record.eq(r),
            gaps.ahead.eq(j.ahead),
            gaps.begin.eq(Mux(j.ahead, self.segment.seq, r.rcv_nxt)),
            gaps.end.eq(Mux(j.ahead, j.end, j.next[:bits])),
        ]

    def _make(self, m, w):
        """SYN in LISTEN: a session in SYN-RCVD; or a request: one in SYN-SENT."""
        m.d.comb += [self.handshake.new(w), self.peer_write.eq(1)]
        if self.config.active:
            with m.If(self.connects):  # the service may queue what it wants to send
                m.d.comb += [w.service.eq(self.service), w.phase.eq(Phase.SYN_SENT)]
                m.d.comb += [w.opened.eq(1), w.ev_open.eq(0 if self.config.places else 1)]

    def _updates(self, m):
        """What segment and notice make of the record. Right in COMMIT."""
        r, j, body, update = self.port.record, self.j, self.input.payload.body, self.update
        m.submodules.update = update
        m.d.comb += [
            update.segment.eq(body.segment),
            update.judgement.eq(j),
            update.update.record.eq(r),
            update.settings.eq(self.settings),
            update.now.eq(self.now),
            update.sampled.eq(self.rtt.sample),
            update.srtt8.eq(self.rtt.srtt8_new),
            update.rttvar4.eq(self.rtt.rttvar4_new),
            update.rto.eq(self.rtt.rto),
            update.grown.eq(self.window.grown),
            update.credit.eq(self.window.credit_new),
            update.half.eq(self.window.half),
            [update.joined[n].eq(getattr(self.gaps, n)) for n in update.joined.shape().members],
            [update.pool.eq(self.pool.payload), update.pool_valid.eq(self.pool.valid)],
        ]
        if self.config.active:
            m.d.comb += update.syn.eq(self.handshake.syn)
        if self.config.icmp:
            m.submodules.notice_update = notice = self.notice_update
            m.d.comb += [notice.notice.eq(body.notice), notice.judgement.eq(j)]
            m.d.comb += notice.update.record.eq(r)

    def _hand_back(self, m, w):
        """In COMMIT: the record's new values, and what else a segment or notice does."""
        self._order(m)
        if self.config.icmp:
            with m.If(self.notice):
                m.d.comb += w.apply(self.notice_update.update)
                m.d.comb += self.noticed.eq(self.notice_update.count)
            with m.Else():
                self._apply(m, w)
        else:
            self._apply(m, w)

    def _apply(self, m, w):
        update = self.update
        m.d.comb += [
            w.apply(update.update),
            [self.count[name].eq(update.count[name]) for name in UPDATE_COUNTS],
            self.answer_rst.eq(update.answer_rst),
            self.opened.eq(update.opened),
            self.pool.ready.eq(update.pool_ready),
        ]
        with m.If(update.store):
            m.d.sync += [self.owed.eq(0), self.verdict.valid.eq(1)]

    def _order(self, m):
        """The verdict, should the text go to memory; its place there."""
        seg, j, r, update = self.segment, self.j, self.port.record, self.update
        offset = (Mux(j.ahead, seg.seq, r.rcv_nxt) - r.rcv_base)[: self.config.segment_log2]
        base = self.config.pool_base >> self.config.segment_log2
        verdict = self.verdict.payload
        m.d.sync += [
            verdict.session.eq(self.port.session),
            verdict.addr.eq(((base + update.place) << self.config.segment_log2) | offset),
            verdict.arrived.eq(seg.length),
            verdict.skip.eq(j.skip),
            verdict.length.eq(Mux(j.ahead, seg.length, j.take)),
            verdict.fin.eq(update.fin),
            verdict.end.eq(update.end),
            verdict.commit.eq(1),
            verdict.ahead.eq(j.ahead),
        ]

    def _reply(self, m):
        """Something to a segment that belongs to no session."""
        m.d.sync += self.reply.valid.eq(1)
        reset(m, self.reply.payload, self.segment)
        if self.config.cookies:
            # To a SYN: the SYN-ACK with the cookie.
            with m.If(self.bakes & self.segment.flags.syn):
                m.d.comb += [self.cookie.sent.eq(1), self.count.cookies_sent.eq(1)]
                m.d.comb += self.count.rst_tx.eq(0)
                syn_ack(m, self.reply.payload, self.config, self.cookie, self.handshake.seq)

    def _cookie(self, m):
        """The cookie of a SYN, or that an ACK may bring back."""
        m.submodules.cookie = cookie = self.cookie
        new, seg = self.handshake, self.segment
        m.d.comb += [
            cookie.segment.eq(seg),
            cookie.mss.eq(new.mss),
            cookie.first.eq(Mux(seg.flags.syn, new.seq, seg.seq)),
            cookie.service.eq(new.service),
            cookie.now.eq(self.now),
            cookie.hold.eq(self.bakes),
            cookie.hash.eq(self.lookup.hash),
            new.made.eq(self.good),
            new.told.eq(cookie.told),
        ]
        with m.If(self.bakes):
            m.d.comb += [self.lookup.tuple.eq(cookie.block), self.lookup.want_hash.eq(1)]

    def _may_be_cookie(self):
        """A segment without a session may be the ACK of a cookie."""
        flags = self.segment.flags
        listens = self.handshake.local.any() & self.settings.enable & ~self.connects
        return flags.ack & ~flags.syn & ~flags.rst & listens & self.cookie.plausible

    def _cookie_states(self, m):
        """One lookup ends, another begins."""
        syn = self.segment.flags.syn
        with m.State("BAKE"):
            m.d.comb += self.lookup.finish.eq(1)
            m.d.sync += self.bakes.eq(1)
            m.next = "ANEW"
        with m.State("ANEW"):
            with m.If(self.lookup.ready):
                m.d.comb += self.lookup.start.eq(1)
                m.next = "LOOKUP"
        with m.State("BAKED"):  # the hash is there, and what follows from it in a cycle
            m.next = "TASTE"
        with m.State("TASTE"):
            m.next = "REPLY"
            with m.If(~syn & self.cookie.good):
                m.d.comb += [self.lookup.finish.eq(1), self.count.cookies_taken.eq(1)]
                m.d.sync += [self.bakes.eq(0), self.good.eq(1)]
                m.next = "ANEW"
            with m.Elif(~syn):
                m.d.comb += self.count.unknown.eq(1)
                m.next = "TAIL"
