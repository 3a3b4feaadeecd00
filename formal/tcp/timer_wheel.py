"""Proof of the timer wheel of ``cores/tcp/timer.py``: each session is visited at its tick.

Two sessions, four slots. Each session that was placed is in exactly one place: among the arrivals,
in one slot's chain, in the chain that is being visited, or in hand. A visit puts it ahead by the
ticks left to its deadline, by 1 if that has come, by one less than a revolution if it is further
off; time moves on only when nobody of the present tick is left to visit, and a visit of a chain is
never of another tick's session. So none is visited late, early, twice, or never again. No tick is
lost.

The FIFO of arrivals is any bag here: order among arrivals does not matter.

Not proved: that the engine gets records, so that time moves on at all; a reset while running.
"""

from dataclasses import replace

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal
from amaranth.lib import data
from trebuchet.cores.tcp.config import TcpConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .checkout import FREE, Checkout, Inside, steady

__all__ = ["PROOFS"]

CONFIG = TcpConfig(sessions=2, ports=(7,), wheel=4)
NOWHERE, ARRIVED, WAITS, TAKEN, IN_HAND = range(5)


class AnyBag(Elaboratable):
    """In the place of the list of arrivals: gives back what was put in, once, in any order."""

    def __init__(self, *, width, depth, lut_ram=256):
        assert (width, depth) == (1, 2)
        self.w_data, self.w_en = Signal(), Signal()
        self.r_data, self.r_rdy, self.r_en = Signal(), Signal(), Signal()
        self.has = Signal(2)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.r_data.eq(AnySeq(1)),
            self.r_rdy.eq(AnySeq(1) & self.has.bit_select(self.r_data, 1)),
        ]
        with m.If(self.r_en):
            m.d.sync += self.has.bit_select(self.r_data, 1).eq(0)
        with m.If(self.w_en):
            m.d.sync += self.has.bit_select(self.w_data, 1).eq(1)
        return m


class WheelProof(Elaboratable):
    def __init__(self, cores, config=CONFIG):
        self.cores, self.config = cores, config

    def elaborate(self, platform):
        m = new_harness()
        cores = self.cores
        self.dut = dut = cores.TimerEngine(self.config)
        kept, cores.NumberList = cores.NumberList, AnyBag
        try:
            self.inside = inside = Inside(m, dut)
        finally:
            cores.NumberList = kept
        self.lent = lent = Checkout(m, dut.port, longest=3)
        free(m, dut.tick, dut.place, dut.place_session, dut.recycle_valid, dut.recycle_session)
        free(m, dut.free_valid, dut.settings, dut.press, dut.pressed, dut.above)
        steady(m, dut.settings, lent.lent)
        names = ("CLEAR", "IDLE", "SLOT", "EMPTY", "CLAIM", "RECYCLE", "LATE", "JUDGE", "VISIT")
        names += ("LOOK",)
        self.state = {name: inside.state(name) for name in (*names, "AIM", "HEAD", "LINK")}
        self.aside = dut.recycling | dut.looks  # a visit that is not the wheel's
        self.walk = inside.view("walk", data.StructLayout({"valid": 1, "session": 1}))
        self.place = [Signal(3, name=f"place_{s}") for s in range(2)]
        self.until = [Signal(2, name=f"until_{s}") for s in range(2)]  # ticks until it is due
        heads, nexts = inside.part("heads"), inside.part("nexts")
        self.heads = [heads.read_port(domain="comb") for _ in range(4)]
        self.nexts = [nexts.read_port(domain="comb") for _ in range(2)]
        for ports in (self.heads, self.nexts):
            m.d.comb += [port.addr.eq(k) for k, port in enumerate(ports)]
        self._ticks(m)
        self._moves(m)
        self._checkout(m)
        self._chains(m)
        self._taken(m)
        both = (self.place[0] == WAITS) & (self.place[1] == WAITS)
        m.d.comb += [
            Cover(both & (self.until[0] == self.until[1])),
            Cover(self.state["IDLE"] & (self.place[0] == TAKEN)),
        ]
        return m

    def _ticks(self, m):
        dut, ticks = self.dut, self.inside["ticks"]
        total, before = Signal(24), Signal(24)
        m.d.comb += [Assume(~(dut.tick & (ticks == 255))), Assert(total == (dut.now + ticks)[:24])]
        m.d.sync += [total.eq(total + dut.tick), before.eq(dut.now)]
        m.d.comb += Assert((dut.now == before) | (dut.now == (before + 1)[:24]))

    def _moves(self, m):
        """Where each session is, told from what the engine does."""
        dut, lent, state, walk = self.dut, self.lent, self.state, self.walk
        bag, cur = self.inside.part("arrivals"), dut.port.session
        moves = self.inside["taken"]
        left = (lent.record.deadline - dut.now)[:24].as_signed()
        for s, (place, until) in enumerate(zip(self.place, self.until, strict=True)):
            with m.If(dut.place & (dut.place_session == s)):
                m.d.comb += Assume(place == NOWHERE)
                m.d.sync += place.eq(ARRIVED)
            with m.If(state["IDLE"] & walk.valid & (walk.session == s)):
                m.d.comb += Assert((place == TAKEN) & (until == 0))
                m.d.sync += place.eq(IN_HAND)
            with m.Elif(bag.r_en & (bag.r_data == s)):
                m.d.comb += Assert(state["IDLE"] & (place == ARRIVED))
                m.d.sync += place.eq(IN_HAND)
            with m.If(moves):
                # The past tick is done with.
                m.d.comb += Assert((place != TAKEN) & (place != IN_HAND))
                m.d.comb += Assert((place != WAITS) | (until != 0))
                m.d.sync += until.eq(until - 1)
            with m.If(state["EMPTY"] & (place == WAITS) & (until == 0)):
                m.d.sync += place.eq(TAKEN)
            with m.If(lent.done & ~self.aside & (cur == s)):
                m.d.comb += Assert(place == IN_HAND)
                m.d.sync += until.eq(Mux(left <= 0, 1, Mux(left >= 4, 3, left[:2])))
                if self.config.ack_delay:  # `near` is the promise of a near visit
                    near = (left > self.config.ack_delay) & dut.port.result.near
                    with m.If(near):
                        m.d.sync += until.eq(self.config.ack_delay)
                with m.If(lent.phase == FREE):
                    m.d.sync += place.eq(NOWHERE)
            with m.If(state["LINK"] & (cur == s)):
                m.d.sync += place.eq(WAITS)

    def _checkout(self, m):
        """What a visit has found out, and whose it is."""
        dut, lent, state, inside = self.dut, self.lent, self.state, self.inside
        cur, slot, bits = dut.port.session, inside["slot"], 2
        left = (lent.record.deadline - dut.now)[:24]
        visit, link = self._visit_states()
        m.d.comb += Assert(inside.known())
        steps = (("CLAIM", 0), ("LATE", 1), ("RECYCLE", 1), ("JUDGE", 2))
        steps += (("VISIT", 3), ("LOOK", 3))
        for name, cycle in steps:
            with m.If(state[name]):
                m.d.comb += Assert(~lent.lent | (lent.held == cycle))
                m.d.comb += Assert(lent.lent | (cycle == 0))
        m.d.comb += [
            Assert(~(lent.lent | lent.fetch) | visit | state["RECYCLE"] | state["LOOK"]),
            Assert(~lent.fetch | state["CLAIM"]),
            Assert(~lent.lent | (lent.session == cur)),
            Assert(~state["RECYCLE"] | dut.recycling),
            Assert(~((visit & ~state["CLAIM"]) | link) | ~dut.recycling),
            Assert(~state["LOOK"] | dut.looks),
            Assert(~(state["VISIT"] | link | state["RECYCLE"]) | ~dut.looks),
            Assert(~(dut.recycling & dut.looks)),
        ]
        ahead = Mux(dut.late, 1, Mux(inside["distance"] >= 4, 3, inside["distance"]))
        until = Mux(cur, self.until[1], self.until[0])
        if self.config.ack_delay:
            delay = self.config.ack_delay
            ahead = Mux(dut.soon & (ahead > delay), delay, ahead)
        with m.If(state["JUDGE"] | state["VISIT"]):
            m.d.comb += Assert(inside["distance"] == left)
        with m.If(state["VISIT"]):
            m.d.comb += Assert(dut.late == (left.as_signed() <= 0))
        with m.If(state["AIM"]):
            m.d.comb += Assert(ahead == until)
        with m.If(link):
            m.d.comb += Assert(until != 0)
        with m.If(state["HEAD"] | state["LINK"]):
            m.d.comb += Assert(slot == (dut.now + until)[:bits])
        with m.If(state["SLOT"] | state["EMPTY"]):
            m.d.comb += Assert(slot == dut.now[:bits])
        for s, place in enumerate(self.place):
            in_hand = ((visit & ~self.aside) | link) & (cur == s)
            m.d.comb += [
                Assert(place <= IN_HAND),
                Assert((place == IN_HAND) == in_hand),
                Assert((place == ARRIVED) == inside.part("arrivals").has[s]),
                Assert(~state["CLEAR"] | (place == NOWHERE) | (place == ARRIVED)),
            ]

    def _visit_states(self):
        state = self.state
        visit = state["CLAIM"] | state["LATE"] | state["JUDGE"] | state["VISIT"]
        return visit, state["AIM"] | state["HEAD"] | state["LINK"]

    def _chains(self, m):
        """What waits is in its slot's chain, which ends; nothing else is in any chain."""
        dut, state = self.dut, self.state
        now_due = state["SLOT"] | state["EMPTY"]
        waits = [place == WAITS for place in self.place]
        for j, head in enumerate(self.heads):
            here = [w & ((dut.now + u)[:2] == j) for w, u in zip(waits, self.until, strict=True)]
            with m.If(state["CLEAR"]):
                m.d.comb += Assert(~head.data.valid)
            with m.Else():
                m.d.comb += Assert(head.data.valid == (here[0] | here[1]))
            for s in range(2):
                with m.If(here[s] & ~here[1 - s]):
                    m.d.comb += [Assert(head.data.session == s), Assert(~self.nexts[s].data.valid)]
                with m.If(here[s] & here[1 - s] & (head.data.session == s)):
                    m.d.comb += [
                        Assert(self.nexts[s].data.valid),
                        Assert(self.nexts[s].data.session == 1 - s),
                        Assert(~self.nexts[1 - s].data.valid),
                    ]
        for w, until in zip(waits, self.until, strict=True):
            m.d.comb += Assert(~w | (until != 0) | now_due)

    def _taken(self, m):
        """The chain that is being visited: its rest, behind the session in hand."""
        state, walk, cur = self.state, self.walk, self.dut.port.session
        visit, _ = self._visit_states()
        taken = [place == TAKEN for place in self.place]
        m.d.comb += Assert(walk.valid | ~(taken[0] | taken[1]))
        m.d.comb += Assert(~walk.valid | ~(state["SLOT"] | state["EMPTY"] | state["CLEAR"]))
        m.d.comb += Assert(~walk.valid | ~(state["RECYCLE"] | state["LOOK"]))
        for s in range(2):
            after, other = self.nexts[s].data, 1 - s
            m.d.comb += Assert(~taken[s] | (self.until[s] == 0))
            with m.If(walk.valid & (walk.session == s)):
                with m.If(visit):
                    m.d.comb += [Assert(cur == s), Assert(~self.aside)]
                with m.Else():
                    m.d.comb += Assert(taken[s])
                m.d.comb += [
                    Assert(after.valid == taken[other]),
                    Assert(~after.valid | (after.session == other)),
                    Assert(~after.valid | ~self.nexts[other].data.valid),
                ]


PROOFS = (
    Proof(
        name="tcp_timer_wheel",
        core="cores.tcp.timer.TimerEngine(2 sessions, 4 slots)",
        says="each session on the wheel is in one place, and is visited at the tick of its "
        "deadline, or before a revolution is over: none late, early, twice or never",
        module="trebuchet.cores.tcp.timer",
        build=WheelProof,
        depth=3,
        cover_depth=27,
        mutants=(
            Mutant(
                "links_in_the_past", "slot.eq(self.now + ahead)", "slot.eq(self.now - ahead)", 20
            ),
            Mutant(
                "a_revolution_ahead",
                "Mux(distance >= slots, slots - 1, distance)",
                "Mux(distance > slots, slots - 1, distance)",
                30,
            ),
            Mutant(
                "loses_a_tick",
                "ticks.eq(ticks + (self.tick & (ticks != 0xFF)) - taken)",
                "ticks.eq(Mux(taken, ticks - 1, ticks + (self.tick & (ticks != 0xFF))))",
                16,
            ),
            Mutant(
                "keeps_the_old_chain",
                "[head_w.en.eq(1), head_w.data.valid.eq(0)]",
                "[head_w.en.eq(0), head_w.data.valid.eq(0)]",
                34,
            ),
        ),
        assumes="a session is placed only while it is not on the wheel; 255 ticks never wait; "
        "settings stand still while a record is lent",
        not_proved="that time moves on; what a visit does (tcp_timer_visit)",
    ),
    Proof(
        name="tcp_timer_near",
        core="cores.tcp.timer.TimerEngine(2 sessions, 4 slots, with delayed ACKs)",
        says="the same; a session whose record says that its next visit is near is visited within "
        "the delay of an ACK",
        module="trebuchet.cores.tcp.timer",
        build=lambda cores: WheelProof(cores, replace(CONFIG, ack_delay=2)),
        depth=3,
        cover_depth=27,
        mutants=(
            Mutant("as_far_as_ever", "self.soon & (ahead > soon)", "self.soon & (ahead < 0)", 20),
        ),
        assumes="a session is placed only while it is not on the wheel; 255 ticks never wait; "
        "settings stand still while a record is lent",
        not_proved="that time moves on; what a visit does (tcp_timer_delay)",
    ),
)
