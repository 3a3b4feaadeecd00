"""Proofs of a visit of ``cores/tcp/timer.py``: what time does to any session record.

For an arbitrary record, every field handed back and every counter is compared with a specification
written from RFC 6298, 5.4 to 5.7 (back-off, all from SND.UNA on again), RFC 5681, 3.1 (the window
after a loss), RFC 9293, 3.8.6.1 (probes of a closed window), 3.8.3 (give up) and 3.10.8 (TIME-WAIT
ends at its deadline). What the evictor looks at stays as it is, unless the evictor ends it
(``tcp_evict``). A session whose deadline has not come is handed back as it was; one whose
deadline has come, at the tick itself or up to 2**23 ticks ago, is served.

Not proved: a reset while running.
"""

from dataclasses import replace

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.config import TcpConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .checkout import CLOSED, FREE, OPEN, SYN_RCVD, TIME_WAIT, Checkout, Inside, steady

__all__ = ["PROOFS"]

CONFIG = TcpConfig(sessions=2, ports=(7,), wheel=4)


class VisitProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        self.inside = Inside(m, dut)
        self.lent = lent = Checkout(m, dut.port, longest=3, now=dut.now)
        r, s = lent.record, dut.settings
        free(m, dut.tick, dut.place, dut.place_session, dut.recycle_valid, dut.recycle_session)
        free(m, dut.free_valid, dut.settings, dut.press, dut.pressed, dut.above)
        steady(m, dut.settings, lent.lent)
        past = Signal.like(dut.now, name="now_past")
        m.d.sync += past.eq(dut.now)
        m.d.comb += Assert(~lent.lent | (dut.now == past))
        self.counted = Signal.like(dut.count)
        due, over, lost = Signal(), Signal(), Signal()
        m.d.comb += [
            due.eq((r.deadline - dut.now)[:24].as_signed() <= 0),
            over.eq((lent.phase != FREE) & (lent.phase != CLOSED)),
            Assume(lent.bounded),
        ]
        with m.If(dut.recycling):
            with m.If((lent.phase == TIME_WAIT) & r.released):
                m.d.comb += [lent.put(phase=CLOSED), self.counted.time_wait_reused.eq(1)]
        with m.Elif(dut.looks):  # the session is ended if the evictor says so: tcp_evict
            with m.If(dut.evictor.ends & (lent.phase == TIME_WAIT)):
                m.d.comb += [lent.put(phase=CLOSED), self.counted.time_wait_reused.eq(1)]
            with m.Elif(dut.evictor.ends):
                m.d.comb += [lent.killed(lent.phase == OPEN), self.counted.evicted.eq(1)]
        with m.Elif(lent.phase == FREE):
            m.d.comb += lent.put(on_wheel=0)
        with m.Elif(s.abort_all & (lent.phase == TIME_WAIT)):
            m.d.comb += lent.put(phase=CLOSED)
        with m.Elif(s.abort_all & over):
            m.d.comb += [lent.killed(1), self.counted.aborts.eq(1)]
        with m.Elif(due):
            with m.If((lent.phase == SYN_RCVD) | lent.opening):
                m.d.comb += lent.put(syn_due=1)
                self._again(m, r.retries >= s.syn_retries, 0)
            with m.Elif((lent.phase == OPEN) & (r.snd_una == r.snd_end)):
                m.d.comb += lent.put(keepalive=1)
                self._again(m, r.retries >= s.keepalive_retries, 1, idle=True)
            with m.Elif(lent.phase == OPEN):
                self._lost(m)
                waited = (dut.now - r.progress)[:24]
                self._again(m, (r.retries >= s.retries) | (waited >= s.user_timeout), 1)
            with m.Elif(lent.phase == TIME_WAIT):
                m.d.comb += lent.put(phase=CLOSED)
            with m.Else():
                m.d.comb += lent.put(deadline=dut.now + CONFIG.wheel)
        if dut.config.ack_delay:
            with m.If(~dut.recycling & ~dut.looks):
                waits = r.ack_wait & (lent.phase == OPEN) & ~self.counted.timeouts
                m.d.comb += lent.put(ack_wait=0, near=r.busy, busy=0)
                with m.If(waits & ~s.abort_all):
                    m.d.comb += lent.put(ack_due=1)
            m.d.comb += Cover(lent.done & r.ack_wait & lent.after.ack_due & lent.after.near)
        lent.compare()
        self._invariants(m, due)
        m.d.comb += Assert(dut.count.as_value() == Mux(lent.done, self.counted.as_value(), 0))
        m.d.comb += lost.eq(lent.done & self.counted.rto)
        m.d.comb += [
            Cover(lost & (r.deadline > dut.now) & (r.rto == 50_000)),
            Cover(lost & (r.snd_max < r.snd_una) & (r.retries == 0)),
            Cover(lent.done & self.counted.timeouts & (lent.phase == OPEN) & (r.retries == 0)),
            Cover(lent.done & ~dut.recycling & (lent.phase == TIME_WAIT) & ~due & ~s.abort_all),
            Cover(lent.done & self.counted.time_wait_reused),
            Cover(lent.done & self.counted.evicted),
        ]
        return m

    def _again(self, m, enough, reset, idle=False):
        """The next time-out, twice as long; or, if there have been enough of them, the end."""
        dut, lent, r = self.dut, self.lent, self.lent.record
        doubled = Mux((r.rto << 1) > CONFIG.rto_max, CONFIG.rto_max, r.rto << 1)
        m.d.comb += lent.put(retries=r.retries + 1)
        if idle:
            m.d.comb += lent.put(deadline=dut.now + dut.settings.keepalive_interval)
        else:
            m.d.comb += lent.put(rto=doubled, rtt_on=0, deadline=dut.now + doubled)
        with m.If(enough):
            m.d.comb += [lent.killed(reset), self.counted.timeouts.eq(1)]

    def _invariants(self, m, due):
        """What the pipelines hold in each cycle of a checkout."""
        dut, lent, inside, r = self.dut, self.lent, self.inside, self.lent.record
        settings, held = dut.settings, lent.held
        steps = (("CLAIM", 0), ("LATE", 1), ("RECYCLE", 1), ("JUDGE", 2), ("VISIT", 3), ("LOOK", 3))
        working = Signal()
        for name, cycle in steps:
            with m.If(inside.state(name)):
                m.d.comb += [working.eq(1), Assert(~lent.lent | (held == cycle))]
                m.d.comb += Assert(lent.lent | (cycle == 0))
        m.d.comb += [
            Assert(inside.known()),
            Assert(~(lent.lent | lent.fetch) | working),
            Assert(~lent.fetch | inside.state("CLAIM")),
            Assert(~inside.state("RECYCLE") | dut.recycling),
            Assert(~(inside.state("LATE") | inside.state("JUDGE")) | ~dut.recycling),
            Assert(~inside.state("VISIT") | ~(dut.recycling | dut.looks)),
            Assert(~inside.state("LOOK") | dut.looks),
            Assert(~(dut.recycling & dut.looks)),
        ]
        evictor = dut.evictor
        m.d.comb += [
            Assert(evictor.seen == inside.state("LOOK")),
            Assert(~evictor.ends | evictor.seen),
            Assert(evictor.least == settings.evict_idle),
            Assert((evictor.press == dut.press) & (evictor.service == dut.pressed)),
            Assert(evictor.above == dut.above),
        ]
        with m.If(evictor.seen):
            m.d.comb += [
                Assert((evictor.owner == r.service) & (evictor.released == r.released)),
                Assert(Value.cast(evictor.phase) == Value.cast(r.phase)),
                Assert(evictor.age == (dut.now - r.progress)[:24]),
            ]
        doubled = Mux((r.rto << 1) > CONFIG.rto_max, CONFIG.rto_max, r.rto << 1)
        out, least = (r.snd_max - r.snd_una)[:18], r.mss << 1
        with m.If(lent.lent & (held >= 1)):
            m.d.comb += [
                Assert(dut.answered == (r.snd_una == r.snd_end)),
                Assert(dut.age == (dut.now - r.progress)[:24]),
                Assert(dut.rto == doubled),
                Assert(dut.out == out),
            ]
        with m.If(lent.lent & (held >= 2)):
            m.d.comb += [
                Assert(dut.stalled == ((dut.now - r.progress)[:24] >= settings.user_timeout)),
                Assert(dut.half == Mux((out >> 1) > least, out >> 1, least)),
            ]
        with m.If(inside.state("JUDGE") | inside.state("VISIT")):
            m.d.comb += Assert(inside["distance"] == (r.deadline - dut.now)[:24])
        with m.If(inside.state("VISIT")):
            m.d.comb += Assert(dut.late == due)

    def _lost(self, m):
        """Nothing was answered: probe a closed window, or take all back from SND.UNA on."""
        lent, r = self.lent, self.lent.record
        m.d.comb += lent.put(blocked=0)
        with m.If(r.snd_wnd == 0):
            m.d.comb += lent.put(probe=1)
        with m.Else():
            m.d.comb += self.counted.rto.eq(1)
            m.d.comb += lent.put(snd_nxt=r.snd_una, ahead=0, resend=0, recover=r.snd_max)
            m.d.comb += lent.put(cwnd=r.mss, credit=0, recovering=0, dup_acks=0)
        with m.If((r.snd_wnd != 0) & (r.retries == 0)):
            flight, least = (r.snd_max - r.snd_una)[:18] >> 1, r.mss << 1
            m.d.comb += lent.put(ssthresh=Mux(flight > least, flight, least))


PROOFS = (
    Proof(
        name="tcp_timer_visit",
        core="cores.tcp.timer.TimerEngine(2 sessions, 4 slots)",
        says="a visit changes a record whose deadline has come as RFC 6298, 5681 and 9293 say, "
        "and leaves any other alone",
        module="trebuchet.cores.tcp.timer",
        build=lambda cores: VisitProof(cores.TimerEngine(CONFIG)),
        depth=2,
        cover_depth=30,
        mutants=(
            Mutant("served_a_tick_late", "distance[-1] | (distance == 0)", "distance[-1]", 20),
            Mutant("one_time_out_too_many", "(r.retries >= limit)", "(r.retries > limit)", 20),
            Mutant("probe_of_an_open_window", "r.snd_wnd == 0", "r.snd_wnd != 0", 20),
            Mutant(
                "reset_before_the_handshake",
                "kill(self.port, r.phase == Phase.OPEN), self.count.timeouts.eq(1)",
                "kill(self.port, 1), self.count.timeouts.eq(1)",
                20,
            ),
            Mutant(
                "ends_any", "with m.If(self.evictor.ends):", "with m.If(self.evictor.seen):", 20
            ),
        ),
        assumes="the store lends any record after any wait; settings stand still while it is lent; "
        "the phase is one that there is",
        not_proved="which sessions are visited when (tcp_timer_wheel)",
    ),
    Proof(
        name="tcp_timer_delay",
        core="cores.tcp.timer.TimerEngine(2 sessions, 4 slots, with delayed ACKs)",
        says="the same; at any visit an ACK that waits is due, and the next visit is to be near if "
        "data have come since the last one",
        module="trebuchet.cores.tcp.timer",
        build=lambda cores: VisitProof(cores.TimerEngine(replace(CONFIG, ack_delay=2))),
        depth=2,
        cover_depth=30,
        mutants=(
            Mutant("forgets_it", "r.ack_due | (r.ack_wait & live)", "r.ack_due", 20),
            Mutant("never_near", "w.near.eq(r.busy)", "w.near.eq(0)", 20),
        ),
        assumes="the store lends any record after any wait; settings stand still while it is lent; "
        "the phase is one that there is",
        not_proved="which sessions are visited when (tcp_timer_wheel)",
    ),
    Proof(
        name="tcp_timer_active",
        core="cores.tcp.timer.TimerEngine(2 sessions, 4 slots, that can open connections)",
        says="the same; in SYN-SENT a SYN is sent again, and given up without a RST",
        module="trebuchet.cores.tcp.timer",
        build=lambda cores: VisitProof(cores.TimerEngine(replace(CONFIG, active=True))),
        depth=2,
        cover_depth=30,
        mutants=(
            Mutant("one_syn", "*([Phase.SYN_SENT] if self.config.active else [])", "", 20),
            Mutant(
                "resets_a_stranger",
                "reset & (record.phase != Phase.SYN_SENT)",
                "reset",
                20,
                where="trebuchet.cores.tcp.record",
            ),
        ),
        assumes="the store lends any record after any wait; settings stand still while it is lent; "
        "the phase is one that there is",
        not_proved="which sessions are visited when (tcp_timer_wheel)",
    ),
)
