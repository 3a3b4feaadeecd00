"""Proofs of ``cores/tcp/application.py``: what a service or the sender says does to any record.

For an arbitrary record and an arbitrary request of each kind, every field handed back, the
descriptor written and every counter are compared with the service port's contract:

- ``tx`` appends to SND.END, one byte of sequence space for a FIN; the descriptor ties each sequence
  number to its address; a service that breaks the bound, or sends behind its own FIN, is aborted;
  a session that is over takes the descriptor only to answer it;
- ``free`` moves on what is consumed, never beyond what was told and never back, opens the window as
  RFC 9293, 3.8.6.2.2 says, and lets a segment go only when nothing is in it or on its way into it;
- ``sent`` takes one segment from those that are with the sender;
- a session that is not the service's own, or does not exist, is left alone.

With places a request is of the session that has that place of that service, found by one look-up;
``rest`` gives the place back if the session is not over, everything received is consumed, no FIN
has come and no descriptor is unanswered, and ``release`` if CLOSED was told and no descriptor is
unanswered; both in the cycle after the hand-back, which says that the record has no place any more.

Each request is carried out once, with the record of its own session.

Not proved: that all sources get their turn; a reset while running.
"""

from dataclasses import replace

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, C, Cat, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.config import TcpConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .checkout import CLOSED, FREE, OPEN, SYN_RCVD, TIME_WAIT, Checkout, Inside, signed

__all__ = ["PROOFS"]

PLAIN = TcpConfig(sessions=2, ports=(7, 9), segment_log2=12, mss=1000)
SLIDING = TcpConfig(sessions=2, ports=(7,), segment_log2=17)
DELAY = replace(PLAIN, ack_delay=40)
PLACES = replace(PLAIN, sessions=4, places=2)
SCALING = TcpConfig(sessions=2, ports=(7,), segment_log2=20, scaling=True)


class ApplicationProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut, config = self.dut, self.dut.config
        self.n = n = len(config.ports)
        self.inside = Inside(m, dut)
        self.lent = lent = Checkout(m, dut.port, longest=3)
        r = lent.record
        free(m, dut.sent.valid, dut.sent.payload)
        stream_rules(m, dut.sent, Assume, "sent")
        for k in range(n):
            for name, port in (("tx", dut.tx[k]), ("free", dut.free[k])):
                free(m, port.valid, port.payload)
                stream_rules(m, port, Assume, f"{name}{k}")
        m.d.comb += [Assume(lent.bounded), Assume(r.count <= 4)]
        self.gives = Signal()
        if config.places:
            self._holders(m)
        self._which(m)
        self.counted = Signal.like(dut.count)
        self.write = Signal()
        with m.If(self.is_free):
            self._free(m)
        with m.Elif(self.is_tx):
            self._tx(m)
        with m.Else():
            m.d.comb += lent.put(flight=Mux(r.flight == 0, 0, r.flight - 1), blocked=0)
        lent.compare()
        if config.places:
            self._given(m)
        m.d.comb += Assert(dut.count.as_value() == Mux(lent.done, self.counted.as_value(), 0))
        self._written(m)
        return m

    def _written(self, m):
        """The descriptor is in its place a cycle after the hand-back."""
        dut, lent, r, tx = self.dut, self.lent, self.lent.record, self.tx
        late, slot, before = Signal(), Signal(len(dut.address)), Signal(32, name="end_before")
        asked = Signal.like(tx)
        m.d.sync += [
            late.eq(lent.done & self.write),
            slot.eq(Cat((r.first + r.count)[:2], lent.session)),
            before.eq(r.snd_end),
            Value.cast(asked).eq(tx),
        ]
        m.d.comb += Assert(dut.write == late)
        with m.If(dut.write):
            written = dut.descriptor
            m.d.comb += [
                Assert(dut.address == slot),
                # The byte with sequence number SND.END is the one at `addr`.
                Assert((written.delta + before)[:32] == asked.addr),
                Assert(written.end == (before + asked.length + asked.close)[:32]),
                Assert(written.push == asked.push),
                Assert(written.close == asked.close),
                Assert(written.tag == asked.tag),
            ]

    def _which(self, m):
        """The request that a record is lent for: shown to be one, and taken with the hand-back."""
        dut, lent = self.dut, self.lent
        bits = dut.config.session_bits
        self.is_free, self.is_tx, self.own = Signal(), Signal(), Signal()
        self.tx = Signal(dut.tx[0].payload.shape())
        self.consumed = Signal(dut.free[0].payload.shape())
        for k in range(self.n):
            tx, consumed = dut.tx[k], dut.free[k]
            m.d.comb += [
                Assert(~tx.ready | ~tx.valid | lent.done),
                Assert(~consumed.ready | ~consumed.valid | lent.done),
            ]
            with m.If(consumed.valid & consumed.ready):
                m.d.comb += [Assert(~self.is_tx), self.is_free.eq(1)]
                m.d.comb += Value.cast(self.consumed).eq(consumed.payload)
                m.d.comb += self.own.eq(self._owns(k, consumed.payload.session))
                m.d.comb += Assert(lent.session == self._named(k, consumed.payload.session))
            with m.If(tx.valid & tx.ready):
                m.d.comb += [self.is_tx.eq(1), Value.cast(self.tx).eq(tx.payload)]
                m.d.comb += self.own.eq(self._owns(k, tx.payload.session))
                m.d.comb += Assert(lent.session == self._named(k, tx.payload.session))
        # What the sender said and has not been carried out yet. A number of no session is dropped.
        told, who = Signal(), Signal(bits)
        with m.If(lent.done):
            m.d.sync += told.eq(0)
            m.d.comb += Assert(self.is_tx + self.is_free + told == 1)
        with m.If(dut.sent.valid & dut.sent.ready & (dut.sent.payload >> bits == 0)):
            m.d.comb += Assert(~told)
            m.d.sync += [told.eq(1), who.eq(dut.sent.payload)]
        self._invariants(m, told, who)

    def _owns(self, k, asked):
        """The record is that of a session of service ``k``, which calls it ``asked``."""
        lent, r = self.lent, self.lent.record
        if self.dut.config.places:
            return r.placed & (r.place == asked) & (r.service == k)
        mine = (lent.phase != FREE) & self._told() & (r.service == k)
        return mine & (asked >> self.dut.config.session_bits == 0)

    def _named(self, k, asked):
        """The number of the session that service ``k`` calls ``asked``."""
        config = self.dut.config
        if config.places:
            return self._holder(Cat(asked[: config.place_width], C(k, 1)))
        return asked[: config.session_bits]

    def _holders(self, m):
        """Who has which place: any, but it does not change while a request is carried out."""
        dut = self.dut
        self.holders = Signal(len(dut.holder) << len(dut.asked), name="holders")
        asked = Signal.like(dut.asked, name="asked_before")
        m.d.comb += self.holders.eq(AnyConst(len(self.holders)))
        m.d.sync += asked.eq(dut.asked)
        m.d.comb += dut.holder.eq(self._holder(asked))

    def _holder(self, place):
        return self.holders.word_select(place, len(self.dut.holder))

    def _given(self, m):
        """The place that a record no longer has is free a cycle later."""
        dut, lent, r = self.dut, self.lent, self.lent.record
        late, place = Signal(name="gave"), Signal(len(dut.given), name="place_given")
        m.d.sync += [late.eq(lent.done & self.gives), place.eq(Cat(r.place, r.service))]
        m.d.comb += [
            Assert(dut.give == late),
            Assert(~late | (dut.given == place)),
            Cover(lent.done & self.gives & self.consumed.release),
            Cover(lent.done & self.gives & self.consumed.rest & (r.place == 1)),
        ]
        with m.If(lent.done):
            m.d.comb += Assert(self.gives == (r.placed & ~lent.kept.placed))

    def _told(self):
        """The service knows of the session; in SYN-RECEIVED if both ends have opened it."""
        both = self.lent.record.opened if self.dut.config.active else 0
        return (self.lent.phase != SYN_RCVD) | both

    def _invariants(self, m, told, who):
        dut, lent, inside = self.dut, self.lent, self.inside
        busy = {"FREE": Signal(name="frees"), "TX": Signal(name="texts")}
        for kind, ports in (("FREE", dut.free), ("TX", dut.tx)):
            checks = ("CHECK",) if kind == "FREE" else ()
            if dut.config.places:
                with m.If(inside.state(f"{kind}-FIND")):
                    m.d.comb += [busy[kind].eq(1), Assert(~lent.lent & ~dut.port.request)]
            for held, step in enumerate(("CLAIM", "WORK", *checks, "COMMIT")):
                here = inside.state(f"{kind}-{step}")
                with m.If(here):
                    m.d.comb += busy[kind].eq(1)
                    m.d.comb += Assert(~lent.lent | (lent.held == held))
                    if held:
                        m.d.comb += Assert(lent.lent)
            with m.If(busy[kind]):
                for k in range(self.n):
                    with m.If(inside["service"] == k):
                        m.d.comb += Assert(ports[k].valid)
                        self._who(m, kind, k, ports[k].payload.session)
                if self.n < 1 << len(inside["service"]):
                    m.d.comb += Assert(inside["service"] < self.n)
        with m.If(lent.lent | lent.fetch):
            m.d.comb += Assert(dut.port.request | (lent.held != 0))
        with m.If(lent.lent & (lent.held != 0)):
            m.d.comb += Assert(busy["FREE"] | busy["TX"])
        m.d.comb += [
            Assert(inside.known()),
            Assert(told == inside.state("SENT-CLAIM")),
            Assert(~told | (inside["who"] == who)),
            Assert(~lent.lent | (lent.session == inside["who"][: len(who)])),
        ]
        for kind, arbiter in (("FREE", "frees"), ("TX", "txs")):
            part = inside.part(arbiter)
            with m.If(busy[kind]):
                m.d.comb += Assert(part.index == inside["service"])

    def _who(self, m, kind, k, asked):
        dut, inside = self.dut, self.inside
        if not dut.config.places:
            m.d.comb += Assert(inside["who"] == asked)
            return
        m.d.comb += Assert(dut.place == asked)
        with m.If(inside.state(f"{kind}-FIND")):
            m.d.comb += Assert(dut.holder == self._named(k, asked))
        with m.Else():
            m.d.comb += Assert(inside["who"] == self._named(k, asked))

    def _free(self, m):
        """The service has read up to a position, or lets the session go."""
        lent, r, config = self.lent, self.lent.record, self.dut.config
        place, gain, told, left = (Signal(32, name=n) for n in ("place", "gain", "told", "left"))
        ended = (lent.phase == CLOSED) | (lent.phase == TIME_WAIT)
        receiving = (lent.phase == OPEN) & ~r.fin_seen
        m.d.comb += [
            place.eq(self.consumed.position + r.rcv_base),
            gain.eq(place - r.rcv_cons),
            told.eq(r.rcv_pub - r.rcv_cons - r.fin_told),  # bytes; a FIN is none
            left.eq(r.rcv_edge - place),
        ]
        with m.If(~self.own):
            m.d.comb += self.counted.service_errors.eq(1)
        with m.Elif(self.consumed.release):
            over = ended
            if config.places:
                over = ended & (r.count == 0) & ~r.ev_closed
            with m.If(over):
                m.d.comb += lent.put(released=1)
                if config.places:
                    m.d.comb += [lent.put(placed=0), self.gives.eq(1)]
            m.d.comb += self.counted.service_errors.eq(~over)
        with m.Elif(gain > told):
            m.d.comb += self.counted.service_errors.eq(1)
        with m.Else():
            m.d.comb += lent.put(rcv_cons=place)
            if config.places:
                rests = self.consumed.rest & (gain == told) & ~ended & ~r.fin_told & (r.count == 0)
                with m.If(rests):
                    m.d.comb += [lent.put(placed=0), self.gives.eq(1)]
            with m.If((gain == told) & (r.rcv_nxt == r.rcv_pub) & (r.kept == 0)):
                m.d.comb += lent.put(has_segment=0)
            if config.sliding:
                ring, most, edge = (Signal(32, name=n) for n in ("ring", "most", "edge"))
                near = signed(ring - most) < 0
                if config.scaling:  # a scaled window can say the whole ring
                    near |= r.scaled
                m.d.comb += [
                    Assume((r.rcv_pub - r.rcv_cons)[:32] <= config.segment_size),
                    Assume(told <= config.segment_size),
                    Assume((r.rcv_edge - r.rcv_cons)[:32] <= config.segment_size),
                    Assume(signed(r.rcv_edge - r.rcv_pub) >= -1),
                    Assume(signed(edge - r.rcv_edge) >= 0),
                    ring.eq(place + config.segment_size),
                    most.eq(r.rcv_pub + config.window),
                    edge.eq(Mux(near, ring, most)),
                ]
                with m.If(receiving):
                    grown = (edge - r.rcv_edge)[:32]
                    m.d.comb += lent.put(rcv_edge=edge)
                    m.d.comb += lent.put(ack_due=r.ack_due | (grown >= config.update))
            else:
                with m.If(receiving & (signed(left) <= config.window - config.update)):
                    m.d.comb += lent.put(rcv_edge=place + config.window, ack_due=1)
                    if config.ack_delay:  # not if half a window is open to the peer as it is
                        room = (r.rcv_edge - r.rcv_pub)[:17].as_signed()
                        tell = r.ack_due | (room < config.window // 2)
                        m.d.comb += lent.put(ack_due=tell)
                        m.d.comb += Cover(lent.done & ~tell)
        moved = lent.done & self.own & ~self.consumed.release
        m.d.comb += [
            Cover(moved & (gain == told) & (gain != 0) & r.has_segment & ~lent.after.has_segment),
            Cover(
                moved & (gain < told) & (place < r.rcv_cons) & (lent.after.rcv_edge != r.rcv_edge)
            ),
        ]

    def _tx(self, m):
        """A descriptor: bytes, a FIN or an abort."""
        lent, r, tx = self.lent, self.lent.record, self.tx
        end = Signal(32, name="end_of_text")
        full = r.count == 4
        ended = (lent.phase == CLOSED) | (lent.phase == TIME_WAIT)
        wrong = ~tx.abort & (full | r.fin_queued)
        m.d.comb += end.eq(r.snd_end + tx.length + tx.close)
        with m.If(~self.own):
            m.d.comb += self.counted.service_errors.eq(1)
        with m.Else():
            with m.If(~full):
                m.d.comb += [self.write.eq(1), lent.put(count=r.count + 1, snd_end=end)]
            with m.If(ended):
                m.d.comb += [lent.put(check=1), self.counted.tx_overrun.eq(full)]
            with m.Elif(tx.abort | wrong):
                m.d.comb += [lent.killed(1), self.counted.aborts.eq(1)]
                m.d.comb += self.counted.tx_overrun.eq(full | wrong)
            with m.Else():
                m.d.comb += lent.put(fin_queued=tx.close, blocked=0)
                with m.If((tx.length == 0) & ~tx.close):  # nothing to wait for
                    m.d.comb += lent.put(check=1)
                with m.If(r.snd_una == r.snd_end):
                    m.d.comb += lent.put(progress=lent.now)
        posted = lent.done & self.own & ~ended & ~tx.abort
        m.d.comb += [
            Cover(posted & ~wrong & tx.close & (end < r.snd_end) & (lent.session == 1)),
            Cover(posted & full),
        ]


MUTANTS = (
    Mutant(
        "anyone_may_post",
        "known & (r.service == service) & (who >> s == 0)",
        "known & (who >> s == 0)",
        14,
    ),
    Mutant("releases_what_lives", "r.released | over", "1", 14),
    Mutant(
        "frees_the_segment_early",
        "with m.If(everything & (r.rcv_nxt == r.rcv_pub) & (r.kept == 0)):",
        "with m.If(everything & (r.kept == 0)):",
        14,
    ),
    Mutant(
        "fin_is_a_byte_to_read", "Cat(~r.fin_told, ~r.rcv_cons)", "Cat(C(1, 1), ~r.rcv_cons)", 14
    ),
    Mutant("one_place_too_many", "r.count == TX_PER_SESSION", "r.count > TX_PER_SESSION", 14),
)
EDGE_MUTANTS = (
    Mutant(
        "edge_of_the_old_place",
        "self.edge.cons.eq(position)",
        "self.edge.cons.eq(r.rcv_cons)",
        14,
        context="r, w = port.record, Handback(m, port)",
    ),
    Mutant("silly_windows", "(grown >= config.update)", "(grown != 0)", 14),
    Mutant("flight_below_nothing", "r.flight - (r.flight != 0)", "r.flight - 1", 14),
)
SCALE_MUTANTS = (
    Mutant("never_scaled", "self.edge.scaled.eq(r.scaled)", "self.edge.scaled.eq(0)", 14),
)
PLACES_MUTANTS = (
    Mutant(
        "any_place_will_do",
        "(r.service == service) & (r.place == place)",
        "r.service == service",
        14,
    ),
    Mutant("rests_with_bytes_unread", "free.rest & (ahead == inside)", "free.rest", 14),
    Mutant(
        "rests_unanswered",
        "return (record.count == 0) & ~over & ~record.fin_told",
        "return ~over & ~record.fin_told",
        14,
        where="trebuchet.cores.tcp.places",
    ),
    Mutant("releases_unanswered", "self.answered.eq(may_release(r))", "self.answered.eq(1)", 14),
    Mutant("leaks_a_place", "self.give.eq(gives)", "self.give.eq(0)", 14),
)
DELAY_MUTANTS = (
    Mutant("opens_in_silence", "tell = left < config.window // 2", "tell = left < 0", 14),
    Mutant(
        "tells_always",
        "due = r.ack_due | tell if config.ack_delay else 1",
        "due = 1 if config.ack_delay else 1",
        14,
    ),
)
ACTIVE_MUTANTS = (
    Mutant("nobody_was_told", "told = r.opened if config.active else C(0)", "told = C(0)", 14),
    Mutant("everybody_was", "told = r.opened if config.active else C(0)", "told = C(1)", 14),
)

PROOFS = tuple(
    Proof(
        name=f"tcp_application_{name}",
        core=f"cores.tcp.application.ApplicationEngine(2**{config.segment_log2}-byte segments"
        + (", that can open connections)" if config.active else ")"),
        says="each tx, free and sent is carried out once, on its own session, as the service's "
        "contract says: descriptors, window edge, segment, FIN, abort and all counters",
        module="trebuchet.cores.tcp.application",
        build=lambda cores, c=config: ApplicationProof(cores.ApplicationEngine(c)),
        depth=5,
        cover_depth=14,
        mutants=mutants,
        assumes="the stream rules; the store lends any record after any wait; time stands still "
        "while it is lent; a session has at most 4 descriptors" + more,
        not_proved="that all sources get their turn; a reset while running",
    )
    for name, config, mutants, more in (
        ("plain", PLAIN, MUTANTS, ""),
        ("active", replace(PLAIN, active=True), ACTIVE_MUTANTS, ""),
        ("places", PLACES, PLACES_MUTANTS, "; a place has one holder while a request is at work"),
        (
            "sliding",
            SLIDING,
            EDGE_MUTANTS,
            "; what is unread fits the segment, and the edge does not go back",
        ),
        ("delay", DELAY, DELAY_MUTANTS, ""),
        (
            "scaling",
            SCALING,
            SCALE_MUTANTS,
            "; what is unread fits the segment, and the edge does not go back",
        ),
    )
)
