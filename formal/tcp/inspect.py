"""Proof of ``Inspector`` in ``cores/tcp/inspect.py``.

For any record and any peer, ``value`` is the word that was asked for, of the session that was asked
for, as the record was at one moment; 0 of a free one and of numbers beyond the last; and the record
is handed back. The state is held against the table of RFC 9293's states in ``cores/tcp/record.py``.
A request while busy changes nothing.

Not proved: how long the store takes to lend a record; behaviour under a reset while running.
"""

from dataclasses import replace

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .checkout import CLOSED, FREE, OPEN, SYN_RCVD, SYN_SENT, TIME_WAIT, Checkout, Inside
from .receive import ACTIVE

__all__ = ["PROOFS"]


CONFIG = replace(ACTIVE, inspect=True, scaling=True)


class InspectProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        inside = Inside(m, dut)
        lent = Checkout(m, dut.port, longest=1)
        kept, state, unacknowledged, unread, window, left = map(Value.cast, dut.taken)
        r = lent.record
        free(m, dut.ask, dut.session, dut.word, dut.peer)
        m.d.comb += Assume(lent.bounded)
        # Who the session is with does not change while somebody looks at it.
        peer, past_peer = Value.cast(dut.peer), Signal(len(Value.cast(dut.peer)))
        m.d.sync += past_peer.eq(peer)
        with m.If(lent.lent):
            m.d.comb += Assume(peer == past_peer)
        asked, word, session = Signal(), Signal(4), Signal.like(dut.session)
        wrong, told, value = Signal(), Signal(), Signal(32)
        begins = dut.ask & ~dut.busy
        m.d.sync += [wrong.eq(0), told.eq(lent.done), value.eq(self._word(r, lent.phase, word))]
        with m.If(begins):
            m.d.sync += [word.eq(dut.word), session.eq(dut.session)]
            m.d.sync += asked.eq(dut.session < dut.config.sessions)
            m.d.sync += wrong.eq(dut.session >= dut.config.sessions)
        with m.If(lent.done):
            m.d.sync += asked.eq(0)
        m.d.comb += [
            Assert(inside.known()),
            Assert(dut.busy == asked),
            Assert(~dut.port.request | asked),
            Assert(~asked | (dut.port.session == session)),
            Assert(~lent.lent | (lent.session == session)),
            Assert(~asked | (kept == word)),
            Assert(~told | (dut.value == value)),
            Assert(~wrong | ((dut.value == 0) & ~dut.busy)),
            Assert(~(lent.lent | lent.fetch) | asked),
            Assert(~asked | (dut.value == 0)),
            Assert(~inside.state("TAKE") | (lent.lent & (lent.held == 1))),
            Assert(~(lent.lent & (lent.held == 1)) | inside.state("TAKE")),
            Cover(told & (value == 10) & (word == 0)),
            Cover(told & (value == 0x1234_5678) & (word == 3)),
            Cover(told & (value == 0x1234) & (word == 10)),
            Cover(wrong & (word == 7)),
        ]
        with m.If(inside.state("TAKE")):
            m.d.comb += [
                Assert(state == self._state(r, lent.phase)),
                Assert(unacknowledged == (r.snd_end - r.snd_una)[:32]),
                Assert(unread == (r.rcv_pub - r.rcv_cons)[:32]),
                Assert(window == self._theirs(r)),
                Assert(left == (r.rcv_edge - r.rcv_pub)[: len(left)]),
            ]
        return m

    @staticmethod
    def _state(r, phase):
        """The first row of the table that fits, by its number in RFC 4022."""
        rows = (
            (phase == FREE, 0),
            (phase == SYN_SENT, 3),
            (phase == SYN_RCVD, 4),
            ((phase == OPEN) & ~r.fin_told & r.fin_queued & r.fin_acked, 7),
            ((phase == OPEN) & ~r.fin_told & r.fin_queued, 6),
            ((phase == OPEN) & ~r.fin_told, 5),
            ((phase == OPEN) & ~r.fin_queued, 8),
            ((phase == OPEN) & r.passive, 9),
            (phase == OPEN, 10),
            (phase == TIME_WAIT, 11),
            (phase == CLOSED, 1),
        )
        result = 0
        for holds, number in reversed(rows):
            result = Mux(holds, number, result)
        return result

    def _theirs(self, r):
        """The peer's window, of which no more is used than can be under way at all."""
        if not self.dut.config.scaling:
            return r.snd_wnd
        most = (1 << self.dut.config.window_bits - 1) - 1
        told = Mux(r.scaled & ~r.snd_plain, r.snd_wnd << r.snd_shift, r.snd_wnd)
        return Mux(told < most, told, most)

    def _word(self, r, phase, word):
        peer, bits = self.dut.peer, self.dut.config.place_bits
        ours = (r.rcv_edge - r.rcv_pub)[:bits]
        words = Array(
            [
                self._state(r, phase),
                peer.ip,
                Cat(peer.remote_port, peer.local_port),
                (r.snd_end - r.snd_una)[:32],
                (r.rcv_pub - r.rcv_cons)[:32],
                r.snd_una,
                r.rcv_nxt,
                r.rto,
                r.snd_nxt,
                self._theirs(r),
                Mux(ours[bits - 1], 0, ours),
                r.srtt8 >> 3,
                r.cwnd,
                r.count,
                *[0] * 2,  # there are no more
            ]
        )
        return Mux(phase == FREE, 0, words[word])


PROOFS = (
    Proof(
        name="tcp_inspect",
        core="cores.tcp.inspect.Inspector",
        says="the word asked for, of the session asked for, of one moment; nothing is changed",
        module="trebuchet.cores.tcp.inspect",
        build=lambda cores: InspectProof(cores.Inspector(CONFIG)),
        depth=2,
        cover_depth=10,
        mutants=(
            Mutant("other_session", "port.session.eq(self.session)", "port.session.eq(0)"),
            Mutant("any_session", "self.session < self.config.sessions", "1"),
            Mutant(
                "heeds_all",
                'with m.State("CLAIM"):\n    ...',
                'with m.State("CLAIM"):\n    m.d.sync += word.eq(self.word)\n    ...',
                context="word = Signal(WORD_WIDTH)",
            ),
            Mutant("no_last_ack", "Mux(r.passive, s.LAST_ACK, s.CLOSING)", "s.CLOSING"),
            Mutant("unread_by_wire", "r.rcv_pub - r.rcv_cons", "r.rcv_nxt - r.rcv_cons"),
            Mutant("window_below_nothing", "Mux(left[-1], 0, left)", "left"),
            Mutant("shows_old_peers", "r.phase != Phase.FREE", "1"),
        ),
        assumes="the store lends any record after any wait; the phase is one that there is",
        not_proved="how long the store takes; a reset while running",
    ),
)
