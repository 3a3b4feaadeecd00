"""Proofs of what the receive engine, ``cores/tcp/receive.py``, writes into a session's record.

The engine hands a record back in three ways; two are held against a specification of every field
it writes, of its counters, its demand for a pool segment and its verdict:

* a segment has come (RFC 9293, 3.10.7.4, with RFC 5961, 5681, 6582 and 6298);
* the session was freed before the engine got hold of it: nothing changes.

The specification sorts segments into kinds of which each is exactly one, and says of each field
which kinds change it and to what. It takes the segment's judgement (of which ``tcp_classifier``
says how its parts hang together), the new time-out, the new congestion window and the runs kept
beyond gaps (``tcp_reassembly``) from the engine's parts as they are, and holds their inputs against
the record. As it looks at one cycle of an engine in any state whatever, with any record, any
segment and any time, it is proved without bound.

Not proved here: the third, a new session (``tcp_receive_make``); that the parts have had the time
they need (``tcp_receive_flow``); what the fields mean together (``tcp_receive_rules``).
"""

from dataclasses import replace

from amaranth.hdl import Assert, Assume, C, Cover, Elaboratable, Fragment, Mux, Signal, Value
from trebuchet.cores.tcp.record import Phase, run_names

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .checkout import handed_back
from .classifier import ALL, SMALL, kinds

__all__ = [
    "ACTIVE",
    "PROOFS",
    "UPDATE",
    "Kinds",
    "first_of",
    "free_inputs",
    "free_partners",
    "opened",
    "update",
]


def opened(m, dut):
    """Add ``dut`` to ``m``; from here on what it makes in ``elaborate`` can be looked at."""
    m.submodules.dut = Fragment.get(dut, "formal")
    return dut


def free_inputs(m, dut):
    """Any values, in any cycle, on all inputs; what is to be handled is a segment."""
    free(m, dut.input.valid, dut.input.payload.body.segment, dut.port.grant, dut.port.record)
    free(m, dut.now, dut.settings, dut.pool.valid, dut.pool.payload)
    free_partners(m, dut)


def free_partners(m, dut):
    """Any answers of the admission, of the takers of verdicts and replies, of the session table."""
    lookup = dut.lookup
    free(m, dut.half_open, dut.admits, dut.below, dut.verdict.ready, dut.reply.ready)
    free(m, lookup.ready, lookup.done, lookup.found, lookup.session, lookup.hash_valid)
    free(m, lookup.hash, lookup.free_valid, lookup.free_session)


def first_of(*cases):
    """The value of the first case (condition, value) that holds; the last case has no condition."""
    *cases, value = cases
    for condition, chosen in reversed(cases):
        value = Mux(condition, chosen, value)
    return value


class Kinds:
    """The one kind that a segment is of, and what goes with it."""

    def __init__(self, m, dut):
        seg, r, j = dut.input.payload.body.segment, dut.port.record, dut.j
        f, phase = seg.flags, r.phase
        self.m = m

        def named(name, value):
            signal = Signal(name=f"is_{name}")
            m.d.comb += signal.eq(value)
            setattr(self, name, signal)
            return signal

        port = dut.port
        self.back = Signal(name="hands_back")  # with what has become of it
        m.d.comb += self.back.eq(port.commit & ~port.request & ~dut.peer_write)
        # What the judge says of it follows from the rest of what it says: `tcp_classifier`.
        for name, value in kinds(dut.config, seg, r, j, j.beyond).items():
            m.d.comb += Assume(~self.back | (j[name] == value))
        text = named("text", (seg.length != 0) | f.fin)
        half = phase == Phase.SYN_RCVD
        live = half | (phase == Phase.OPEN)
        opening = phase == Phase.SYN_SENT if dut.config.active else C(0)
        # SYN-SENT (RFC 9293, 3.10.7.3).
        bad = named("astray", opening & f.ack & ~j.ack_new)
        named("denied", opening & ~bad & f.rst & f.ack)
        named("opens", opening & ~bad & ~f.rst & f.syn & f.ack)
        named("meets", opening & ~f.rst & f.syn & ~f.ack)
        named("closed", phase == Phase.CLOSED)
        named("waiting", phase == Phase.TIME_WAIT)
        rst, syn = live & f.rst, live & ~f.rst & f.syn
        other = live & ~f.rst & ~f.syn
        named("reset", rst & j.exact)
        named("rst_near", rst & ~j.exact & j.in_window)
        named("resyn", syn & half & j.previous & ~f.ack)
        named("syn_late", syn & ~self.resyn)
        named("beyond", j.beyond)  # the window is closed
        off = other & ~j.valid
        named("outside", off & (text | ~self.beyond))
        judged = other & j.valid & f.ack
        named("refused", judged & half & ~j.ack_new)
        named("ack_wild", judged & ~self.refused & j.ack_bad)
        taken = named("taken", judged & ~self.refused & ~j.ack_bad)
        tells = text | j.previous
        wanted = self.rst_near | self.syn_late | (off & ~tells & ~self.beyond) | self.ack_wild
        named("challenged", wanted & ((r.challenge_time != dut.now[7:13]) | (r.challenges < 3)))
        named("answered", off & tells)
        # Its acknowledgement.
        heard = taken | self.beyond
        new = named("new", heard & j.ack_new)
        same = named("same", heard & j.ack_same & ~j.ack_new)
        named("establishes", taken & half)
        named("ends", new & r.fin_queued & j.ack_all & r.fin_told)
        duplicate = same & (seg.window == r.snd_wnd) & ~text & (j.out != 0)
        named("duplicate", duplicate & (r.dup_acks != 3))
        named("fast", duplicate & (r.dup_acks == 2) & ~r.recovering & j.ack_recovered)
        named("idle", same & j.ack_all & (phase == Phase.OPEN))
        named("grows", new & ~r.recovering)
        named("partial", new & r.recovering & ~j.ack_recovered)
        named("sampled", (new | (self.opens & j.ack_new)) & r.rtt_on & j.ack_timed)
        # Its text.
        keep = j.keep & ~dut.gaps.full
        named("gap", taken & j.ahead & ~keep)
        place = r.has_segment | dut.pool.valid | ((j.take == 0) & ~keep)
        named("dry", taken & ~self.gap & ~place)
        named("keeps", taken & j.ahead & keep & place)
        named("jumps", (r.kept != 0) & dut.gaps.jump)
        named("fin", f.fin & j.whole & ~r.fin_seen & ~j.ahead & ~self.jumps)
        here = taken & ~j.ahead & place
        named("accepts", here & ((j.take != 0) | self.fin))
        named("stale", here & ~self.accepts & (seg.length != 0))


def update(dut, k):
    """What a segment of kind ``k`` makes of each field that it may change."""
    seg, r, j, now = dut.input.payload.body.segment, dut.port.record, dut.j, dut.now
    slot, window, rtt, s = now[7:13], dut.window, dut.rtt, dut.settings
    acks = k.new | k.same
    fresh = r.challenge_time != slot
    last = Mux(r.passive, Phase.CLOSED, Phase.TIME_WAIT)
    syncs, over = k.opens | k.meets, k.reset | k.denied
    told = r.opened if dut.config.active else C(0)
    other = seg.window != r.snd_wnd
    if dut.config.scaling:
        other |= r.snd_plain  # of a SYN, whose digits mean other bytes
    mss, first = dut.handshake.mss, dut.handshake.seq  # of a SYN: tcp_receive_make
    joins = k.keeps | (k.accepts & (r.kept != 0))  # text and runs: tcp_reassembly
    rules = {
        "phase": [
            (over, Phase.CLOSED),
            (k.ends, last),
            (k.establishes | k.opens, Phase.OPEN),
            (k.meets, Phase.SYN_RCVD),
        ],
        "opened": [(k.establishes, 1)],
        "ev_open": [(k.establishes & ~told, 1)],
        "ev_closed": [(over, r.opened), (k.ends, 1)],
        "ok": [(over, 0), (k.ends, 1)],
        "released": [(over, ~r.opened)],
        # What is to be sent.
        "ack_due": [
            (over, 0),
            (k.opens, 1),
            (k.waiting & (k.text | seg.flags.syn), ~seg.flags.rst),
            (k.challenged | k.answered | k.keeps | k.stale | (k.gap & k.text), 1),
        ],
        "syn_due": [(over | k.establishes | k.opens, 0), (k.resyn | k.meets, 1)],
        "rst_due": [(over, 0)],
        "resend": [(k.partial | k.fast, 1), (over | k.new, 0)],
        "probe": [(over | k.new, 0)],
        "keepalive": [(over, 0)],
        "check": [(over | k.new | k.opens, 1)],
        "challenge_time": [(k.challenged, slot)],
        "challenges": [(k.challenged & fresh, 1), (k.challenged, r.challenges + 1)],
        # Receive.
        **{name: [(syncs, first)] for name in ("rcv_base", "rcv_pub", "rcv_cons")},
        "rcv_edge": [(syncs, dut.handshake.edge)],
        "mss": [(syncs, mss)],
        "rcv_nxt": [
            (syncs, first),
            (k.accepts & k.jumps, dut.gaps.edge),
            (k.accepts, j.next + k.fin),
        ],
        "fin_seen": [(k.accepts, k.fin)],
        "has_segment": [(k.keeps | (k.accepts & (j.take != 0)), 1)],
        "segment": [(k.keeps | (k.accepts & (j.take != 0)), held(dut))],
        "kept": [(k.accepts & k.fin, 0), (joins, dut.gaps.count)],
        **{
            name: [(joins, run[side])]
            for names, run in zip(run_names(dut.config), dut.gaps.runs, strict=True)
            for name, side in zip(names, ("begin", "end"), strict=True)
        },
        # Send.
        "snd_una": [(k.new | k.opens, seg.ack)],
        "snd_nxt": [(k.new & j.ack_past_nxt, seg.ack)],
        "snd_wnd": [(acks | syncs, seg.window)],
        "fin_acked": [(k.new, r.fin_queued & j.ack_all)],
        "blocked": [(k.new | (acks & other), 0)],
        "dup_acks": [(k.new, 0), (k.duplicate, r.dup_acks + 1)],
        "recovering": [(k.new & j.ack_recovered, 0), (k.fast, 1)],
        "recover": [(k.fast, r.snd_max)],
        "cwnd": [(syncs, dut.handshake.cwnd), (k.grows, window.grown), (k.fast, window.half)],
        "credit": [(k.grows, window.credit_new)],
        "ssthresh": [(k.fast, window.half)],
        # Time.
        "srtt8": [(k.sampled, rtt.srtt8_new)],
        "rttvar4": [(k.sampled, rtt.rttvar4_new)],
        "rtt_valid": [(k.sampled, 1)],
        "rtt_on": [(k.sampled | k.fast | k.meets, 0)],
        "rto": [(k.new | k.opens, rtt.rto)],
        "retries": [(k.new | k.idle | syncs | (acks & (seg.window == 0)), 0)],
        "progress": [(k.new | syncs | ((k.accepts | k.keeps) & j.ack_all), now)],
        "deadline": [
            (k.ends | (k.waiting & seg.flags.fin & ~seg.flags.rst), now + s.time_wait),
            (((k.new | k.opens) & j.ack_all) | k.idle, now + s.keepalive_idle),
            (k.new | syncs, now + rtt.rto),
        ],
    }
    if dut.config.scaling:
        rules["scaled"], rules["snd_shift"] = [(syncs, seg.scaled)], [(syncs, seg.scale)]
        rules["snd_plain"] = [(syncs, 1), (acks, 0)]
    if dut.config.ack_delay:  # RFC 5681, 4.2
        rules["ack_now"] = [(k.accepts & (r.kept != 0), 1)]
    if dut.config.sack:
        rules["sack"] = [(syncs, seg.permits)]
    return {name: first_of(*cases, r[name]) for name, cases in rules.items()}


def held(dut):
    """The pool segment that text goes to."""
    return Mux(dut.port.record.has_segment, dut.port.record.segment, dut.pool.payload)


COUNTED = {
    "unknown": "closed",
    "fast_retransmits": "fast",
    "challenge_acks": "challenged",
    "pool_dry": "dry",
    "kept": "keeps",
}


class UpdateProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = opened(m, self.dut)
        port, r = dut.port, dut.port.record
        free_inputs(m, dut)
        kinds = Kinds(m, dut)
        back = kinds.back
        with m.If(port.commit & port.request):
            m.d.comb += Assert(r.phase == Phase.FREE)
        expected, self.kept = update(dut, kinds), handed_back(m, port, dut.now)
        with m.If(port.commit & ~dut.peer_write):
            for name in port.signature.writes:
                value = Signal(len(Value.cast(r[name])), name=f"expected_{name}")
                m.d.comb += [
                    value.eq(Mux(port.request, r[name], expected.get(name, r[name]))),
                    Assert(Value.cast(self.kept[name]) == value),
                ]
        self._counts(m, kinds, back)
        self._verdict(m, kinds, back)
        self._parts(m)
        names = ("reset", "establishes", "ends", "fast", "partial", "keeps", "resyn", "idle")
        names += ("beyond",)
        if dut.config.active:
            names = ("astray", "denied", "opens", "meets", "establishes")
            told = kinds.opens | (kinds.establishes & r.opened)
            m.d.comb += [
                Assert(dut.opened == (back & told)),
                Assert(
                    ~(back & kinds.astray)
                    | (dut.answer_rst != dut.input.payload.body.segment.flags.rst)
                ),
            ]
        for name in names:
            m.d.comb += Cover(back & getattr(kinds, name))
        m.d.comb += Cover(back & kinds.accepts & kinds.fin & dut.j.take.any())
        return m

    def _counts(self, m, k, back):
        dut, j = self.dut, self.dut.j
        counts = {name: getattr(k, kind) for name, kind in COUNTED.items()}
        counts["rst_rx"] = k.reset | k.denied
        counts["established"] = k.establishes | k.opens
        counts["dup"] = k.outside & ~j.ahead
        counts["out_of_order"] = k.gap & k.text
        counts["out_of_window"] = (k.outside & j.ahead) | k.ack_wild | k.stale
        counts["accepted"] = 0
        for name, value in counts.items():
            with m.If(back):
                m.d.comb += Assert(dut.count[name] == value)
            if name not in ("unknown", "accepted"):
                m.d.comb += Assert(back | ~dut.count[name])

    def _verdict(self, m, k, back):
        """The order to the memory, and the pool segment."""
        dut, seg, r, j = (
            self.dut,
            self.dut.input.payload.body.segment,
            self.dut.port.record,
            self.dut.j,
        )
        v = dut.verdict.payload
        config = dut.config
        log2 = config.segment_log2
        writes = k.keeps | k.accepts
        place = Mux(j.ahead, seg.seq, r.rcv_nxt) - r.rcv_base
        want = {
            "session": dut.port.session,
            "addr": config.pool_base + (held(dut) << log2) + place[:log2],
            "arrived": seg.length,
            "skip": j.skip,
            "length": Mux(j.ahead, seg.length, j.take),
            "fin": k.fin,
            "end": self.kept.rcv_nxt,
            "commit": 1,
            "ahead": j.ahead,
        }
        ordered = Signal()
        m.d.sync += ordered.eq(back & writes)
        for name, value in want.items():
            past = Signal.like(v[name], name=f"want_{name}")
            m.d.sync += past.eq(value)
            with m.If(ordered & (~v.ahead if name == "end" else 1)):
                m.d.comb += Assert(v[name] == past)
        m.d.comb += [
            Assert(~ordered | dut.verdict.valid),
            Assert(dut.pool.ready == (back & writes & (k.keeps | (j.take != 0)) & ~r.has_segment)),
        ]

    def _parts(self, m):
        """What the parts are given."""
        dut, r, j, s = self.dut, self.dut.port.record, self.dut.j, self.dut.settings
        rtt, window, now = dut.rtt, dut.window, dut.now
        m.d.comb += [
            Assert(rtt.srtt8 == r.srtt8),
            Assert(rtt.rttvar4 == r.rttvar4),
            Assert(rtt.valid == r.rtt_valid),
            Assert(rtt.sample == (r.rtt_on & j.ack_new & j.ack_timed)),
            Assert(rtt.start == r.rtt_start),
            Assert(rtt.now == now[:16]),
            Assert(rtt.rto_min == s.rto_min),
            Assert(rtt.rto_initial == s.rto_initial),
            Assert(window.acked == j.acked),
            Assert(window.out == j.out),
            Assert(window.cwnd == r.cwnd),
            Assert(window.credit == r.credit),
            Assert(window.ssthresh == r.ssthresh),
            Assert(window.mss == r.mss),
        ]
        inner = dut.judge
        m.d.comb += Assert(inner.segment.as_value() == dut.input.payload.body.segment.as_value())
        m.d.comb += Assert(inner.record.as_value() == r.as_value())
        gaps, low = dut.gaps, len(dut.gaps.begin)
        m.d.comb += [
            Assert(gaps.record.as_value() == r.as_value()),
            Assert(gaps.ahead == j.ahead),
            Assert(gaps.begin == Mux(j.ahead, dut.input.payload.body.segment.seq, r.rcv_nxt)[:low]),
            Assert(gaps.end == Mux(j.ahead, j.end, j.next)[:low]),
        ]


_ASSUMES = "of the judgement what tcp_classifier proves; nothing of record, segment and time"

ACTIVE = replace(SMALL, active=True)


UPDATE = "trebuchet.cores.tcp.record_update"

PROOFS = (
    Proof(
        name="tcp_receive_all",
        core="cores.tcp.receive.ReceiveEngine (every option)",
        says="the same of an engine with every option",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: UpdateProof(cores.ReceiveEngine(ALL)),
        depth=1,
        cover_depth=17,
        mutants=(
            Mutant("counts_what_is_out", "window.acked.eq(j.acked)", "window.acked.eq(j.out)", 6),
        ),
        assumes=_ASSUMES,
        not_proved="a reset while running; see the module's docstring",
    ),
    Proof(
        name="tcp_receive_active",
        core="cores.tcp.receive.ReceiveEngine (that can open connections)",
        says="the same of an engine that opens connections: SYN-SENT, and what follows it",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: UpdateProof(cores.ReceiveEngine(ACTIVE)),
        depth=1,
        cover_depth=17,
        mutants=(
            Mutant(
                "any_syn_ack",
                "with m.If(flags.ack & ~j.ack_new):",
                "with m.If(0):",
                17,
                where=UPDATE,
            ),
            Mutant(
                "any_reset",
                "with m.If(flags.ack):\n"
                "    m.d.comb += [kill(self.update, 0), self.count.rst_rx.eq(1)]",
                "with m.If(1):\n    m.d.comb += [kill(self.update, 0), self.count.rst_rx.eq(1)]",
                17,
                where=UPDATE,
            ),
            Mutant(
                "tells_twice",
                "w.ev_open.eq(r.ev_open), self.opened.eq(1)",
                "self.opened.eq(1)",
                17,
                where=UPDATE,
            ),
            Mutant(
                "keeps_the_syn",
                "w.syn_due.eq(0), w.check.eq(1)",
                "w.check.eq(1)",
                17,
                where=UPDATE,
            ),
            Mutant(
                "no_ack_of_the_syn",
                "w.snd_una.eq(seg.ack), w.ack_due.eq(1)",
                "w.snd_una.eq(seg.ack)",
                17,
                where=UPDATE,
            ),
        ),
        assumes=_ASSUMES,
        not_proved="a reset while running; see the module's docstring",
    ),
    Proof(
        name="tcp_receive_update",
        core="cores.tcp.receive.ReceiveEngine",
        says="what a segment makes of every field of its record is what RFC 9293 and 5961 say",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: UpdateProof(cores.ReceiveEngine(SMALL)),
        depth=1,
        cover_depth=17,
        mutants=(
            Mutant(
                "no_limit",
                "(r.challenge_time != slot) | (r.challenges != 3)",
                "(r.challenge_time != slot) | (r.challenges == 3)",
                17,
                where=UPDATE,
            ),
            Mutant("deaf", "with m.If(j.takes | j.beyond):", "with m.If(j.takes):", 17, UPDATE),
        ),
        assumes=_ASSUMES,
        not_proved="a reset while running; see the module's docstring",
    ),
)
