"""Proof of ``Sender`` in ``cores/ltl/send.py``: windows, acknowledgements, time-outs, slots.

The peer and the network are the adversary: any ACK, right, late, doubled or of things never sent,
may come at any time. A ghost keeps what docs/network.md says of one connection that the solver
chooses, and where one of its messages, also chosen, was stored. In every state the table holds the
ghost, whatever event was just worked off; so what an event does is exactly what is documented:

- a frame is sent only inside of the window and of the peer's credit, with the slot and the length
  of the message that was committed as its number, the first time and each time again;
- a slot is released once, after the message was acknowledged or the connection was closed, failed,
  or never open; an ACK of what was never sent changes nothing;
- a NACK or a time-out goes back to the oldest unacknowledged frame; after so many time-outs in a
  row the connection fails, and frames under way are called back before slots are released;
- a connection that has something to send is listed, once. The next source is always the next one
  in turn that asks, one of them the scan of deadlines, and an event takes at most 2 ``window`` + 5
  cycles besides the pacer's answer: so a time-out comes within a bounded time, as all else does.

The proof begins in any state that the invariants allow; clearing the table is looked at apart.

Not proved: a reset while running; larger tables, windows and sequence numbers; the FIFOs inside,
which have proofs of their own.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.ltl.config import TIME_BITS, Kind, LtlConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .parts import AnyFifo, AnyMemory, Chosen, Law, opened

__all__ = ["PROOFS"]

SMALL = LtlConfig(
    width=32, connections=2, slots=4, window=2, max_message=64, buffer_beats=16, seq_bits=3
)
RESPONSE, SEND, COMMAND, SCAN, COMMIT = range(5)
RECORD = ("una", "sent", "peak", "queued", "limit", "retries", "deadline", "rto", "incarnation")


class SenderProof(Elaboratable):
    def __init__(self, cores):
        self.cores, self.dut = cores, cores.Sender(SMALL)

    def elaborate(self, platform):
        m = new_harness()
        dut, config = self.dut, SMALL
        m.submodules.dut = opened(dut, platform, self.cores, StreamFifo=AnyFifo, Memory=AnyMemory)
        self.law, self.on, self.m = Law(m), dut.fsm.ongoing, m
        m.d.comb += [dut.table.frozen.eq(self.on("CLEAR")), dut.ring.frozen.eq(self.on("CLEAR"))]
        self._inputs()
        self.chosen, self.number = Signal(1, name="chosen"), Signal(config.seq_bits, name="number")
        m.d.comb += [self.chosen.eq(AnyConst(1)), self.number.eq(AnyConst(config.seq_bits))]
        self.here = dut.connection == self.chosen
        self.acts = Signal(name="acts")
        m.d.comb += self.acts.eq(self.on("APPLY") & self.here)
        ghost = Chosen(m, dut.record, "ghost")
        self.g, self.after = ghost.now, ghost.next
        self.stored = Chosen(m, config.stored_layout, "stored")
        # Messages whose slots are to be released, from number `owed_from` on.
        self.owed, self.owed_from = Signal(3, name="owed"), Signal(config.seq_bits)
        self.frame, self.issues = Signal.like(dut.frame.payload, name="spec_frame"), Signal()
        self.event = {name: Signal(name=f"spec_{name}") for name in dut.events.shape().members}
        self.fails, self.closes = Signal(name="fails"), Signal(name="closes")
        self._response()
        self._send()
        self._command()
        self._scan()
        self._commit()
        self._events()
        self._table()
        self._lists()
        self._slots()
        self._frame()
        self._turns()
        return m

    def _inputs(self):
        m, dut = self.m, self.dut
        ports = {"rsp": dut.response, "cmd": dut.command, "c0": dut.commit[0], "c1": dut.commit[1]}
        for name, port in ports.items():
            free(m, port.valid, port.payload)
            stream_rules(m, port, Assume, name)
        free(m, dut.frame.ready, dut.failure.ready, dut.now, dut.retries, dut.hold)
        free(m, dut.pace_done, dut.pace_allow, dut.drop)
        # The pacer answers each question once, 3 cycles later or more.
        asked, since = Signal(name="asked"), Signal(2, name="since")
        m.d.sync += since.eq(since + (since != 3))
        with m.If(dut.pace_start):
            m.d.sync += [asked.eq(1), since.eq(1)]
        with m.Elif(dut.pace_done):
            m.d.sync += asked.eq(0)
        m.d.comb += Assume(~dut.pace_done | (asked & (since == 3)))
        sends = dut.source == 1 << SEND
        self.law(asked == (sends & (self.on("PREPARE") | self.on("APPLY"))))
        self.law(~asked | ~self.on("PREPARE") | (since == 1))
        self.law(~asked | ~self.on("APPLY") | (since >= 2))
        m.d.comb += Assert(dut.pace_start == (sends & self.on("LOAD")))
        self.since = since
        self.now, self.hold = Signal(TIME_BITS, name="past_now"), Signal(name="past_hold")
        m.d.sync += [self.now.eq(dut.now), self.hold.eq(dut.hold)]

    def _by(self, source):
        return self.acts & self.dut.source[source]

    def _set(self, **fields):
        self.m.d.sync += [self.after[name].eq(value) for name, value in fields.items()]

    def _owe(self, count):
        self.m.d.sync += [self.owed.eq(count), self.owed_from.eq(self.g.una)]

    def _response(self):
        m, dut, g, said = self.m, self.dut, self.g, self.dut.response.payload
        acked, ok = Signal(SMALL.seq_bits, name="acked"), Signal(name="answered")
        left, credit = Signal(3), Signal(8)
        m.d.comb += [
            acked.eq(said.seq - g.una),
            ok.eq(g.open & (said.incarnation == g.incarnation) & (acked <= g.peak)),
            left.eq(Mux(g.limit > acked, g.limit - acked, 0)),
            credit.eq(Mux(said.credit > SMALL.window, SMALL.window, said.credit)),
            Assert(~self.acts | (dut.cnp == (dut.source[RESPONSE] & ok & said.cnp))),
            Assert(dut.response.ready == (self.on("APPLY") & dut.source[RESPONSE])),
        ]
        back = said.nack & (g.sent > acked)
        with m.If(self._by(RESPONSE)):
            m.d.comb += self.event["stale"].eq(~ok)
            with m.If(ok):
                self._owe(acked)
                self._set(
                    una=said.seq,
                    peak=g.peak - acked,
                    queued=g.queued - acked,
                    sent=Mux(back | (g.sent < acked), 0, g.sent - acked),
                    limit=Mux(left > credit, left, credit),
                )
                m.d.comb += self.event["nacks"].eq(back)
                with m.If((acked != 0) | (g.peak == 0)):
                    self._set(retries=0, deadline=dut.now + g.rto)
        m.d.comb += [
            Cover(self._by(RESPONSE) & ok & (acked == 2) & (said.seq == 1)),
            Cover(self.event["nacks"] & (acked == 1)),
            Cover(self.event["stale"] & g.open & (said.incarnation == g.incarnation)),
        ]

    def _send(self):
        m, dut, g = self.m, self.dut, self.g
        may = g.open & (g.sent < g.queued) & (g.sent < g.limit)
        done = self._by(SEND) & dut.pace_done
        goes = Signal(name="goes")
        m.d.comb += goes.eq(done & may & dut.pace_allow)
        m.d.comb += Assert(~self.acts | (dut.spend == goes))
        with m.If(goes):
            self._set(sent=g.sent + 1)
            m.d.comb += [
                self.event["sent"].eq(~dut.drop),
                self.event["limited"].eq(dut.drop),
                self.event["resent"].eq(g.sent != g.peak),
                Assert(~dut.frame.valid | dut.frame.ready | dut.drop),
            ]
            with m.If(g.sent == g.peak):
                self._set(peak=g.peak + 1)
            with m.If(g.peak == 0):
                self._set(deadline=dut.now + g.rto)
            # Header and trailer of 64 bytes, and the message padded to 8 bytes.
            size = 64 + 8 * ((dut.next.length + 7) // 8)
            m.d.comb += Assert(dut.spend_beats == (size // SMALL.bytes)[:9])
        with m.If(goes & ~dut.drop):
            m.d.comb += [
                self.issues.eq(1),
                self.frame.kind.eq(Kind.DATA),
                self.frame.connection.eq(self.chosen),
                self.frame.seq.eq(g.una + g.sent),
                self.frame.slot.eq(dut.next.slot),
                self.frame.length.eq(dut.next.length),
            ]
            # What was committed under this number goes out, however often.
            with m.If(self.frame.seq == self.number):
                m.d.comb += [
                    Assert(dut.next.slot == self.stored.now.slot),
                    Assert(dut.next.length == self.stored.now.length),
                ]
        r = dut.r
        with m.If(self.on("APPLY") & dut.source[SEND]):
            self.law(dut.can == (r.open & (r.sent < r.queued) & (r.sent < r.limit)))
        takes = self.on("APPLY") & dut.source[SEND] & dut.pace_done
        m.d.comb += Assert(dut.active.o.ready == takes)
        m.d.comb += Cover(goes & (g.sent == 1) & (g.peak == 2))

    def _command(self):
        m, dut, g, command = self.m, self.dut, self.g, self.dut.command.payload
        takes = self.on("APPLY") & dut.source[COMMAND]
        m.d.comb += Assert(dut.command.ready == takes)
        m.d.comb += Assert(~self.acts | (dut.opened == (dut.source[COMMAND] & command.open)))
        with m.If(self._by(COMMAND)):
            self._owe(g.queued)
            m.d.comb += self.closes.eq(1)
            m.d.sync += Value.cast(self.after).eq(0)
            self._set(
                open=command.open,
                incarnation=command.incarnation,
                rto=command.rto,
                limit=Mux(command.credit > SMALL.window, SMALL.window, command.credit),
            )

    def _scan(self):
        m, dut, g = self.m, self.dut, self.g
        expired, last = Signal(name="expired_"), Signal()
        age = Signal(TIME_BITS, name="late")
        free_frame = ~dut.frame.valid
        m.d.comb += [
            age.eq(self.now - g.deadline),
            expired.eq(g.open & (g.queued != 0) & ~age[-1] & ~self.hold & self._by(SCAN)),
            last.eq(g.retries == dut.retries),
        ]
        blamed = expired & ((g.peak != 0) | (g.limit == 0))
        m.d.comb += self.fails.eq(blamed & last)
        probes = blamed & ~last & (g.peak == 0) & free_frame
        again = blamed & ~last & (g.peak != 0)
        with m.If(expired & ~blamed):
            self._set(deadline=dut.now + g.rto)
        with m.If(self.fails):
            self._owe(g.queued)
            m.d.comb += [self.event["failures"].eq(1), self.event["timeouts"].eq(1)]
            self._set(open=0, queued=0)
        with m.If(probes | again):
            m.d.comb += [self.event["timeouts"].eq(1), self.event["probes"].eq(probes)]
            self._set(retries=g.retries + 1, deadline=dut.now + g.rto, sent=0)
        with m.If(probes):
            m.d.comb += [
                self.issues.eq(1),
                self.frame.kind.eq(Kind.PROBE),
                self.frame.connection.eq(self.chosen),
                self.frame.seq.eq(g.una),
            ]
        with m.If(self.here | ~self.on("APPLY")):
            m.d.comb += Assert(dut.failed.i.valid == self.fails)
        m.d.comb += [
            Assert(~self.fails | (dut.failed.i.payload == self.chosen)),
            Assert(dut.failure.valid == dut.failed.o.valid),
            Assert(dut.failure.payload == dut.failed.o.payload),
            Assert(dut.failed.o.ready == dut.failure.ready),
            Cover(self.fails & (g.queued == 2)),
            Cover(probes),
            Cover(again & (g.sent == 2)),
        ]

    def _commit(self):
        m, dut, g = self.m, self.dut, self.g
        self.refused = Signal.like(self.stored.now, name="refused")
        self.refuses, full = Signal(name="refuses"), Signal(name="was_full")
        m.d.comb += full.eq(g.queued == SMALL.window)
        for v, port in enumerate(dut.commit):
            stored = port.payload.stored
            with m.If(self._by(COMMIT + v)):
                m.d.comb += Assert(port.ready == (~g.open | ~full))
                with m.If(~g.open):
                    m.d.comb += self.event["unopened"].eq(1)
                    m.d.sync += [self.refuses.eq(1), self.refused.eq(stored)]
                with m.Elif(~full):
                    self._set(queued=g.queued + 1)
                    with m.If(g.queued == 0):
                        self._set(retries=0, deadline=dut.now + g.rto)
                    with m.If((g.una + g.queued)[: SMALL.seq_bits] == self.number):
                        m.d.sync += self.stored.next.eq(stored)
            m.d.comb += Assert(~port.ready | (self.on("APPLY") & dut.source[COMMIT + v]))
        with m.If(self.refuses):
            m.d.sync += self.refuses.eq(0)
            m.d.comb += [Assert(dut.release_valid), Assert(dut.release == self.refused)]

    def _events(self):
        """Each is told in the cycle after; none but in the cycle after an event."""
        m, dut = self.m, self.dut
        acted, mine = Signal(), Signal()
        m.d.sync += [acted.eq(self.on("APPLY")), mine.eq(self.here)]
        for name, spec in self.event.items():
            was = Signal(name=f"was_{name}")
            m.d.sync += was.eq(spec)
            with m.If(self.law.begun & (mine | ~acted)):
                m.d.comb += Assert(dut.events[name] == (was & acted))

    def _same(self, record):
        """The record is the ghost; of a closed one only that it is closed and empty counts."""
        g = self.g
        equal = Cat(record[name] == g[name] for name in RECORD).all()
        return Mux(g.open, record.open & equal, ~record.open & (record.queued == 0))

    def _table(self):
        m, dut, g, on, law = self.m, self.dut, self.g, self.on, self.law
        tables = Array(Value.cast(word) for word in dut.table.words)
        mine = Signal(dut.record, name="record")
        m.d.comb += Value.cast(mine).eq(tables[self.chosen])
        law((self.here & on("STORE")) | self._same(mine))
        law(~(self.here & (on("PREPARE") | on("APPLY") | on("STORE"))) | self._same(dut.r))
        read = Value.cast(dut.table_read.data)
        law(~on("LOAD") | (read == tables[dut.connection]))
        law(g.open | (g.queued == 0))
        for record in (dut.r, *dut.table.words):
            law(~record.open | (record.queued <= SMALL.window))
            law(~record.open | (record.peak <= record.queued))
            law(~record.open | (record.sent <= record.peak))
            law(~record.open | (record.limit <= SMALL.window))
            law(record.open | (record.queued == 0) | ~(on("PREPARE") | on("APPLY") | on("STORE")))
        for word in dut.table.words:
            law(word.open | (word.queued == 0))
        # What the table says at first.
        cleared = Signal(2, name="cleared")
        with m.If(on("CLEAR")):
            m.d.comb += [
                Assert(dut.table_write.en & (dut.table_write.addr == dut.connection)),
                Assert(Value.cast(dut.table_write.data) == 0),
                Assert(cleared == dut.connection),
            ]
            m.d.sync += cleared.eq(cleared + 1)
        with m.Else():
            m.d.comb += Assert(cleared == SMALL.connections)

    def _lists(self):
        """A connection is in the list once if its record says so, and if it can send."""
        m, dut, on, law = self.m, self.dut, self.on, self.law
        g, fifo = self.g, dut.active
        head = Value.cast(fifo.o.payload)
        for k, record in enumerate(dut.table.words):
            times = sum((fifo.level > j) & (word == k) for j, word in enumerate(fifo.words))
            count = Signal(3, name=f"listed{k}")
            m.d.comb += count.eq(times)
            at = dut.connection == k
            law(count <= 1, (count == record.listed) | (at & on("STORE")))
            law(~(at & (on("PREPARE") | on("APPLY") | on("STORE"))) | (count == dut.r.listed))
        waits = g.open & (g.sent < g.queued) & (g.sent < g.limit)
        listed = Array(word.listed for word in dut.table.words)[self.chosen]
        law(~waits | listed | (self.here & on("STORE")))
        asks = (dut.source == 1 << SEND) & (on("LOAD") | on("PREPARE") | on("APPLY"))
        law(~asks | ((head == dut.connection) & (fifo.level != 0)))
        law(~asks | ~dut.frame.valid)

    def _slots(self):
        """Slots of acknowledged messages come back, each once, the oldest first."""
        m, dut, on, law, g = self.m, self.dut, self.on, self.law, self.g
        n, words = self.number, Array(Value.cast(word) for word in dut.ring.words)
        place = Signal(2)
        m.d.comb += place.eq(Cat(n[:1], self.chosen))
        kept = words[place] == Value.cast(self.stored.now)
        ahead, due = Signal(SMALL.seq_bits, name="ahead"), Signal(SMALL.seq_bits, name="due")
        m.d.comb += [ahead.eq(n - g.una), due.eq(n - self.owed_from)]
        law(~(g.open & (ahead < g.queued)) | kept, (due >= self.owed) | kept)
        releases = dut.release_valid & (self.owed != 0)
        with m.If(releases):
            m.d.sync += [self.owed.eq(self.owed - 1), self.owed_from.eq(self.owed_from + 1)]
            with m.If(due == 0):
                m.d.comb += Assert(dut.release == self.stored.now)
        frees = on("STORE") | on("RELEASE") | on("RELEASED")
        left, next_to_free = dut.free_count, Signal(SMALL.seq_bits)
        m.d.comb += next_to_free.eq(self.owed_from + releases + on("RELEASED"))
        with m.If(self.here & frees):
            law(self.owed == left + releases + on("RELEASED"))
            law((self.owed == 0) | (dut.free_at == next_to_free))
        with m.Else():
            law(self.owed == releases)
        law((self.owed == 0) | (self.here & (frees | on("IDLE"))))
        law(~(self.here & ~frees) | ~dut.release_valid | self.refuses | (self.owed == 1))
        law(~on("APPLY") | (left == 0))
        law(~on("RELEASE") | (left != 0), ~on("STORE") | (left <= SMALL.window))
        law(~dut.release_valid | on("IDLE") | on("RELEASE"))
        law(~self.refuses | on("IDLE"))

    def _frame(self):
        """Frames wait unchanged, but those of a connection that is closed with messages."""
        m, dut, on = self.m, self.dut, self.on
        port, past, stays, issued = dut.frame, Signal.like(self.frame), Signal(), Signal()
        ends, calls = Signal(name="ends"), Signal(name="calls_back")
        m.d.comb += calls.eq(on("STORE") & self.here & ends & (self.owed != 0))
        m.d.sync += [issued.eq(self.issues), ends.eq(self.fails | self.closes)]
        m.d.comb += Assert(~(on("STORE") & self.here) | (dut.kill == calls))
        m.d.comb += Assert(on("STORE") | ~dut.kill)
        m.d.comb += Assert(dut.pace_connection == dut.connection)
        killed = dut.kill & (port.payload.connection == dut.connection)
        m.d.sync += stays.eq(port.valid & ~port.ready & ~killed)
        m.d.sync += past.eq(Mux(self.issues, Value.cast(self.frame), Value.cast(port.payload)))
        was_acting, mine = Signal(), Signal()
        m.d.sync += [was_acting.eq(on("APPLY")), mine.eq(self.here)]
        with m.If(self.law.begun & (mine | ~was_acting)):
            m.d.comb += Assert(port.valid == (stays | issued))
        with m.If(stays | issued):
            m.d.comb += [Assert(port.valid), Assert(Value.cast(port.payload) == Value.cast(past))]

    def _turns(self):
        """Who is next: the first after the last one that asks; and how long an event may take."""
        m, dut, on, law = self.m, self.dut, self.on, self.law
        asks = Cat(
            dut.response.valid,
            dut.active.o.valid & ~dut.frame.valid & ~dut.hold,
            dut.command.valid,
            1,
            dut.commit[0].valid,
            dut.commit[1].valid,
        )
        n = len(asks)
        who, wants = Signal(n, name="who"), Signal(n, name="wants")
        m.d.comb += wants.eq(asks)
        numbers = Array(
            [dut.response.payload.connection, dut.active.o.payload]
            + [dut.command.payload.connection, dut.scan]
            + [port.payload.connection for port in dut.commit]
        )
        was_idle, about = Signal(), Signal(1)
        law((dut.source & (dut.source - 1)) == 0, (dut.source != 0) | on("CLEAR") | on("IDLE"))
        m.d.sync += was_idle.eq(on("IDLE"))
        for last in range(n):
            with m.If(dut.source[last]):
                for step in reversed(range(1, n + 1)):
                    k = (last + step) % n
                    with m.If(wants[k]):
                        m.d.sync += [who.eq(1 << k), about.eq(numbers[k])]
        with m.If(dut.source == 0):
            for k in reversed(range(n)):
                with m.If(wants[k]):
                    m.d.sync += [who.eq(1 << k), about.eq(numbers[k])]
        with m.If(was_idle & self.law.begun):
            m.d.comb += [Assert(on("LOAD")), Assert(dut.source == who)]
            m.d.comb += Assert(dut.connection == about)
        # The scan goes round.
        with m.If(on("LOAD") & dut.source[SCAN]):
            m.d.comb += Assert(dut.scan != dut.connection)
        left, waited = dut.free_count, Signal(5, name="waited")
        m.d.sync += waited.eq(waited + 1)
        with m.If(on("IDLE") | on("CLEAR") | (on("APPLY") & dut.source[SEND])):
            m.d.sync += waited.eq(1)
        law(~on("LOAD") | (waited == 1), ~on("PREPARE") | (waited == 2))
        law(~on("APPLY") | (waited <= 3), ~on("STORE") | (waited <= 4))
        law(~on("RELEASE") | (waited + 2 * left <= 5 + 2 * SMALL.window))
        law(~on("RELEASED") | (waited + 2 * left <= 4 + 2 * SMALL.window))
        law(~on("IDLE") | (waited <= 5 + 2 * SMALL.window))


PROOFS = (
    Proof(
        name="ltl_send",
        core="cores.ltl.send.Sender(2 connections, window 2, 3-bit sequence numbers)",
        says="window and credit kept, slots freed once after the ACK, same frames again, go-back-N",
        module="trebuchet.cores.ltl.send",
        build=SenderProof,
        depth=4,
        cover_depth=12,
        mutants=(
            Mutant("acks_the_unsent", "self.delta > r.peak", "self.delta > r.queued", 10),
            Mutant(
                "any_incarnation", "r.open & (response.incarnation == r.incarnation)", "r.open", 10
            ),
            Mutant(
                "ignores_nack",
                "response.nack & (r.sent > delta)",
                "response.nack & (r.sent < delta)",
                10,
            ),
            Mutant("over_the_window", "r.queued == self.config.window", "r.queued == 3", 10),
            Mutant(
                "stays_after_timeout", "                    r.sent.eq(0),\n", "", 10, within="_scan"
            ),
        ),
        assumes="the stream rules; the pacer answers once, after 3 cycles or more",
        not_proved="larger windows and tables; a reset while running",
    ),
)
