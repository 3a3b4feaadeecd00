"""Proof of ``cores/tcp/transmit.py``: what is sent next for any session record.

For an arbitrary record and arbitrary descriptors, the segment sent, every field handed back and
every counter are compared with a specification: which descriptor the next byte belongs to, how much
of it the MSS, its end and the window allow (a part of a segment only if nothing is unacknowledged:
RFC 9293, 3.8.6.2.1), FIN and PSH, what a probe, a keep-alive, a SYN-ACK and a RST look like, which
round trip is timed (RFC 6298, 3: Karn's rule) and when the time-out begins (5.1).

Not proved: which session comes when (the store's lists); a reset while running.
"""

from dataclasses import replace

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from amaranth.hdl import signed as signed_shape
from trebuchet.cores.tcp.config import TcpConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .checkout import OPEN, Checkout, Inside, descriptor_ram, signed

__all__ = ["PROOFS"]

CONFIG = TcpConfig(sessions=2, ports=(7,))
NOBODY = (1 << 17) - 1
FULL = 15


class TransmitProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        self.inside = Inside(m, dut)
        self.lent = lent = Checkout(m, dut.port, longest=16, constant=True, now=dut.now)
        r = self.lent.record
        slots, self.shown = descriptor_ram(m, dut, lent, constant=True)
        m.d.comb += dut.now.eq(AnyConst(len(dut.now)))
        free(m, dut.reply.valid, dut.reply.payload, dut.tx_segment.ready)
        stream_rules(m, dut.reply, Assume, "reply")
        self._active(m)
        # The descriptors, oldest first.
        self.queue = [Signal(slots[0].shape(), name=f"queued_{k}") for k in range(4)]
        with m.Switch(r.first):
            for first in range(4):
                with m.Case(first):
                    for k in range(4):
                        m.d.comb += self.queue[k].eq(slots[(first + k) % 4])
        self._choose(m)
        self._fit(m)
        self._record(m)
        lent.compare()
        self._segment(m)
        self._invariants(m)
        return m

    def _active(self, m):
        """The active list's head stays until it is fetched; the peer is the session's."""
        dut, lent = self.dut, self.lent
        free(m, dut.active_valid, dut.active_session)
        past, stays = Signal.like(dut.active_session), Signal(name="head_stays")
        m.d.sync += [past.eq(dut.active_session), stays.eq(dut.active_valid & ~lent.fetch)]
        with m.If(stays):
            m.d.comb += Assume(dut.active_valid & (dut.active_session == past))
        self.peer, junk = Signal(dut.peer.shape(), name="peer_of"), Signal.like(dut.peer)
        free(m, junk)
        m.d.comb += Value.cast(self.peer).eq(AnyConst(len(Value.cast(self.peer))))
        self.right = right = Signal(name="right_peer")
        m.d.sync += right.eq(dut.session == lent.session)
        m.d.comb += Value.cast(dut.peer).eq(Mux(right, Value.cast(self.peer), Value.cast(junk)))

    def _choose(self, m):
        """Text is to be sent from ``seq`` on, and from descriptor ``found``."""
        lent, r = self.lent, self.lent.record

        def one(name, shape=1):
            signal = Signal(shape, name=f"spec_{name}")
            setattr(self, name, signal)
            return signal

        again, due, full = one("again"), one("due"), one("full")
        start, begin, found, found_any = (
            one("start", 3),
            one("begin", 32),
            one("found", 3),
            one("any"),
        )
        self.chosen = Signal(self.queue[0].shape(), name="spec_chosen")
        self.gone = [signed((q.end - begin)[:32]) <= 0 for q in self.queue]
        m.d.comb += [
            again.eq(r.resend | r.probe),
            full.eq(r.flight == FULL),
            due.eq((lent.phase == OPEN) & ~r.rst_due & ~r.syn_due),
            start.eq(Mux(again, 0, r.ahead)),
            begin.eq(Mux(again, r.snd_una, r.snd_nxt)),
            Assume(lent.bounded),
            Assume(r.count <= 4),
            Assume(~(r.syn_due & r.rst_due)),
            # What is unacknowledged fits a window of 16 bits and its FIN.
            Assume((r.snd_max - r.snd_una)[:32] < 1 << 17),
            Assume((r.snd_nxt - r.snd_una)[:32] <= (r.snd_max - r.snd_una)[:32]),
            Assume(~(r.syn_due & full)),  # nothing is sent before the handshake's end
        ]
        with m.If(~again & ((r.snd_nxt == r.snd_end) | r.blocked)):
            m.d.comb += due.eq(0)
        with m.If(due):
            m.d.comb += Assume(start < r.count)
        for k in reversed(range(4)):
            with m.If((k >= start) & (k < r.count) & ~self.gone[k]):
                m.d.comb += [found.eq(k), found_any.eq(1), self.chosen.eq(self.queue[k])]

    def _fit(self, m):
        """How much of it is sent."""
        r = self.lent.record
        size, room, rest = (Signal(signed_shape(33), name=n) for n in ("size", "room", "rest"))
        self.text, self.length, self.fin, self.psh = (
            Signal(name="text"),
            Signal(16, name="length"),
            Signal(name="fin"),
            Signal(name="psh"),
        )
        self.room, self.size, self.rest = room, size, rest
        last = rest <= r.mss
        window = Mux(r.snd_wnd < r.cwnd, r.snd_wnd, r.cwnd)
        m.d.comb += [
            rest.eq(signed(self.chosen.end - self.begin) - self.chosen.close),  # bytes
            size.eq(Mux(last, rest, r.mss)),
            room.eq(signed(r.snd_una + window - self.begin)),
        ]
        with m.If(self.due & ~self.full & self.any):
            m.d.comb += self.text.eq(1)
            with m.If((room >= size) & ~((room == 0) & (size == 0))):
                m.d.comb += [self.length.eq(size), self.psh.eq(self.chosen.push & last)]
                m.d.comb += self.fin.eq(self.chosen.close & last & (room > size))
            with m.Elif((r.snd_una == self.begin) & (room > 0)):
                m.d.comb += self.length.eq(room)
            with m.Elif(r.probe):
                m.d.comb += [self.length.eq(size != 0), self.fin.eq(size == 0)]
            with m.Else():
                m.d.comb += self.text.eq(0)

    def _record(self, m):
        """What the record becomes, and what is counted."""
        dut, lent, r = self.dut, self.lent, self.lent.record
        self.end, self.first_time = Signal(32, name="end"), Signal(name="first_time")
        counted = Signal.like(dut.count)
        idle = r.snd_una == r.snd_max
        m.d.comb += [
            self.end.eq(self.begin + self.length + self.fin),
            self.first_time.eq(self.begin == r.snd_max),
            lent.put(ack_due=0, syn_due=0, rst_due=0, keepalive=0),
            counted.rst_tx.eq(r.rst_due),
            counted.keepalive_probes.eq(r.keepalive),
            counted.zero_window_probes.eq(self.text & r.probe),
            counted.retransmits.eq(self.text & ~self.first_time),
            Assert(dut.count.as_value() == Mux(lent.done, counted.as_value(), 0)),
        ]
        with m.If(self.due & ~self.full & self.again):
            m.d.comb += lent.put(resend=0, probe=0)
        with m.If(self.due & ~self.again & ~self.text):
            m.d.comb += lent.put(blocked=1)
        with m.If(self.due & ~self.full & idle):
            m.d.comb += lent.put(deadline=dut.now + r.rto)
        with m.If(r.syn_due):  # timed if it is the first one
            m.d.comb += lent.put(rtt_on=(r.retries == 0) & ~r.rtt_on, rtt_seq=r.snd_nxt)
            m.d.comb += lent.put(rtt_start=dut.now)
        with m.If(self.text):
            m.d.comb += lent.put(flight=r.flight + (self.length != 0))
            with m.If(signed(self.end - r.snd_max) > 0):
                m.d.comb += lent.put(snd_max=self.end)
            with m.If(~self.again):
                m.d.comb += lent.put(snd_nxt=self.end, ahead=self.found)
            with m.If(~self.first_time):
                m.d.comb += lent.put(rtt_on=0)
            with m.Elif(~r.rtt_on):
                m.d.comb += lent.put(rtt_on=1, rtt_seq=self.end, rtt_start=dut.now)

    def _segment(self, m):
        dut, lent, r = self.dut, self.lent, self.lent.record
        expected = Signal(dut.tx_segment.payload.shape(), name="expected")
        due = Signal(name="segment_due")
        self.seq, free_window = Signal(32, name="spec_seq"), Signal(signed_shape(18))
        control = r.rst_due | r.syn_due
        m.d.comb += [
            self.seq.eq(r.snd_max),
            # Bytes the peer may still send; its FIN may lie one past the edge.
            free_window.eq((r.rcv_edge - r.rcv_pub)[:17].as_signed()),
        ]
        with m.If(self.text):
            m.d.comb += self.seq.eq(self.begin)
        with m.Elif(r.syn_due):
            m.d.comb += self.seq.eq(r.snd_una)
        with m.Elif(r.keepalive & ~control & ~(self.due & ~self.full)):
            m.d.comb += self.seq.eq(r.snd_una - 1)  # RFC 9293, 3.8.4
        p = expected
        m.d.sync += [
            due.eq(lent.done & (control | r.ack_due | r.keepalive | self.text)),
            Value.cast(p).eq(0),
            p.session.eq(Mux(self.length == 0, NOBODY, lent.session)),
            [p[name].eq(self.peer[name]) for name in self.peer.shape().members],
            p.seq.eq(self.seq),
            p.ack.eq(r.rcv_pub),
            p.flags.ack.eq(~lent.opening),
            p.flags.fin.eq(self.fin),
            p.flags.psh.eq(self.psh),
            p.flags.syn.eq(r.syn_due),
            p.flags.rst.eq(r.rst_due),
            p.window.eq(Mux(free_window < 0, 0, free_window)),
            p.mss.eq(Mux(r.syn_due, CONFIG.mss, 0)),
            p.length.eq(self.length),
            p.addr.eq(Mux(self.length == 0, 0, self.chosen.delta + self.begin)),
        ]
        with m.If(dut.reply.valid & dut.reply.ready):
            m.d.sync += [due.eq(1), expected.eq(dut.reply.payload)]
        passed = Signal(name="reply_passed")
        m.d.sync += passed.eq(dut.reply.valid & dut.reply.ready)
        o, shown, past = dut.tx_segment, Signal.like(p), Signal.like(p.as_value())
        stalled = Signal(name="stalled")
        m.d.comb += Value.cast(shown).eq(Value.cast(o.payload))
        with m.If((expected.length == 0) & ~passed):
            m.d.comb += shown.addr.eq(0)  # means nothing
        m.d.sync += [past.eq(Value.cast(o.payload)), stalled.eq(o.valid & ~o.ready)]
        m.d.comb += [
            Assert(o.valid == (stalled | due)),
            Assert(~(dut.reply.ready & ~dut.reply.valid)),
            Assert(~(lent.lent & o.valid)),
            Assert(~(lent.done & dut.reply.ready)),
        ]
        with m.If(due):
            m.d.comb += [Assert(~stalled), Assert(shown.as_value() == expected.as_value())]
        with m.Elif(stalled):
            m.d.comb += Assert(Value.cast(o.payload) == past)
        m.d.comb += [
            Cover(lent.done & self.text & self.fin & (self.length == 5) & (self.found == 1)),
            Cover(lent.done & self.text & r.probe & (r.snd_wnd == 0) & (self.length == 1)),
            Cover(lent.done & self.text & (self.length == self.room) & (self.length < r.mss)),
            Cover(lent.done & r.rst_due),
            Cover(passed & ~stalled),
        ]

    def _invariants(self, m):
        dut, lent, r, inside = self.dut, self.lent, self.lent.record, self.inside
        state = {n: inside.state(n) for n in ("IDLE", "CLAIM", "KIND", "READ", "LEFT", "SIZE")}
        state |= {n: inside.state(n) for n in ("FIT", "TOTAL", "EMIT")}
        held = lent.held
        m.d.comb += [
            Assert(inside.known()),
            Assert(lent.lent | state["IDLE"] | state["CLAIM"]),
            Assert(~lent.lent | ~state["IDLE"]),
            Assert(~lent.fetch | state["CLAIM"]),
            Assert(state["IDLE"] | ~dut.tx_segment.valid),
            Assert(~state["CLAIM"] | ~lent.lent | (held == 0)),
            Assert(~state["CLAIM"] | lent.lent | dut.active_valid),
            Assert(~state["CLAIM"] | lent.lent | (dut.session == dut.active_session)),
            Assert(~lent.lent | (dut.session == lent.session)),
            Assert(~state["KIND"] | (held == 1)),
            Assert(~state["TOTAL"] | (held <= 15)),
            Assert(~state["EMIT"] | (held <= 16)),
            Assert(~(state["TOTAL"] | state["EMIT"]) | (held >= 2)),
        ]
        window = Mux(r.cwnd < r.snd_wnd, r.cwnd, r.snd_wnd)
        with m.If(lent.lent & (held != 0)):
            m.d.comb += [
                Assert(dut.limit == (r.snd_una + window)[:18]),
                Assert(dut.quiet == (r.snd_una == r.snd_max)),
                Assert(dut.unsent == ((r.snd_nxt != r.snd_end) & ~r.blocked)),
                Assert(
                    dut.window
                    == Mux((r.rcv_edge - r.rcv_pub)[16], 0, (r.rcv_edge - r.rcv_pub)[:16])
                ),
            ]
        with m.If(lent.lent & (held > 1)):
            m.d.comb += [Assert(dut.again == self.again), Assert(self.right)]
        with m.If(state["LEFT"]):
            m.d.comb += Assert(self.shown == (r.first + dut.slot)[:2])
        for n, name in enumerate(("READ", "LEFT", "SIZE", "FIT")):
            with m.If(state[name]):
                m.d.comb += Assert(held == 2 + n + 3 * (dut.slot - self.start)[:3])
        with m.If(state["READ"] | state["LEFT"] | state["SIZE"] | state["FIT"]):
            m.d.comb += [Assert(dut.text & ~dut.stuck & self.due & ~self.full)]
            m.d.comb += [Assert(dut.seq == self.begin), Assert(dut.slot >= self.start)]
            m.d.comb += [Assert(dut.slot < r.count), Assert(dut.length == 0)]
            m.d.comb += [Assert(~dut.fin), Assert(~dut.psh)]
            for k in range(4):
                with m.If((k >= self.start) & (k < dut.slot)):
                    m.d.comb += Assert(self.gone[k])
        with m.If(state["SIZE"] | state["FIT"]):
            for k, q in enumerate(self.queue):
                with m.If(dut.slot == k):
                    m.d.comb += [
                        Assert(dut.left == signed(q.end - self.begin)),
                        Assert(dut.addr == (q.delta + self.begin)[:32]),
                        Assert(dut.close == q.close),
                        Assert(dut.pushed == q.push),
                    ]
            m.d.comb += [
                Assert(dut.room == signed(r.snd_una + window - self.begin)),
                Assert(dut.alone == (r.snd_una == self.begin)),
                Assert(dut.newest == (r.snd_max == self.begin)),
            ]
        with m.If(state["FIT"]):
            m.d.comb += [
                Assert(self.any & (dut.slot == self.found)),
                Assert(dut.whole == (self.rest <= r.mss)),
                Assert(dut.want == self.size),
            ]
        with m.If(state["TOTAL"] | state["EMIT"]):
            m.d.comb += [
                Assert(dut.text == self.text),
                Assert(dut.stuck == (self.due & ~self.text)),
                Assert(dut.seq == self.seq),
                Assert(dut.length == self.length),
                Assert(dut.fin == self.fin),
                Assert(dut.psh == self.psh),
            ]
            with m.If(self.text):
                m.d.comb += [
                    Assert(dut.slot == self.found),
                    Assert(dut.addr == (self.chosen.delta + self.begin)[:32]),
                    Assert(dut.newest == self.first_time),
                ]
        with m.If(state["EMIT"] & self.text):
            m.d.comb += Assert(dut.new_end == self.end)


ASSUMED = (
    "the store lends any record after any wait, the same each time, as are its descriptors and "
    "the time; the list's head stays until then; text that is due lies in a descriptor; SYN-ACK, "
    "RST and text exclude each other; SND.UNA <= SND.NXT <= SND.MAX < SND.UNA + 2**17"
)

PROOFS = (
    Proof(
        name="tcp_transmit_next",
        core="cores.tcp.transmit.TransmitEngine(2 sessions)",
        says="the segment sent and the record after it are those of RFC 9293 and 6298: inside "
        "window, MSS and descriptor, from the byte's own address, FIN last",
        module="trebuchet.cores.tcp.transmit",
        build=lambda cores: TransmitProof(cores.TransmitEngine(CONFIG)),
        depth=1,
        cover_depth=14,
        mutants=(
            Mutant(
                "a_byte_beyond_the_window", "self.room > self.want", "self.room >= self.want", 14
            ),
            Mutant(
                "fin_before_the_end",
                "self.close & self.whole & (self.room != self.want)",
                "self.close & (self.room != self.want)",
                14,
            ),
        ),
        assumes=ASSUMED,
        not_proved="which session comes when; a reset while running",
    ),
    Proof(
        name="tcp_transmit_active",
        core="cores.tcp.transmit.TransmitEngine(2 sessions, that can open connections)",
        says="the same; the SYN of a session in SYN-SENT acknowledges nothing, all others do",
        module="trebuchet.cores.tcp.transmit",
        build=lambda cores: TransmitProof(cores.TransmitEngine(replace(CONFIG, active=True))),
        depth=1,
        cover_depth=14,
        mutants=(
            Mutant(
                "acknowledges", "p.flags.ack.eq(~opening(self.config, r))", "p.flags.ack.eq(1)", 14
            ),
        ),
        assumes=ASSUMED,
        not_proved="which session comes when; a reset while running",
    ),
)
