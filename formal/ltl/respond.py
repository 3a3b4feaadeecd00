"""Proof of ``Responder`` in ``cores/ltl/respond.py``: every ACK, NACK and credit that is owed.

Of a connection that the solver chooses: a request that is not ``lost`` waits in the queue, with its
flags, until it is served; requests are lost only when the queue is full; a NACK or a notification
leaves only if it was asked for. An ACK says what the table says in the cycle in which it is
made, and the credit that remains: what the connection was given, less the messages that were
delivered, also before it was opened anew, and have not left. The peer hears of its own accord when
its credit has grown by half. Each message that leaves counts once.

The proof begins in any state that the invariants allow.

Not proved: that the queue holds 64 (here 3; ``stream_fifo_*`` are about any); 8-bit credits.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import data
from trebuchet.cores.ltl.config import Kind, LtlConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .parts import AnyMemory, Chosen, LateFifo, Law, opened

__all__ = ["PROOFS"]

SMALL = LtlConfig(connections=2, slots=4, window=2, max_message=64, buffer_beats=8, seq_bits=4)
BITS = 4


class ResponderProof(Elaboratable):
    def __init__(self, cores):
        self.cores, self.dut = cores, cores.Responder(SMALL)

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.submodules.dut = opened(
            dut,
            platform,
            self.cores,
            StreamFifo=lambda layout, depth: LateFifo(layout, 3),
            Memory=AnyMemory,
        )
        free(m, dut.request.valid, dut.request.payload, dut.done.valid, dut.done.payload)
        free(m, dut.opened.valid, dut.opened.payload, dut.entry, dut.total, dut.frame.ready)
        stream_rules(m, dut.done, Assume, "done")
        stream_rules(m, dut.opened, Assume, "opened")
        stream_rules(m, dut.frame, Assert, "frame")
        self.m, self.law, self.on = m, Law(m), dut.fsm.ongoing
        self.chosen = Signal(1, name="chosen")
        m.d.comb += self.chosen.eq(AnyConst(1))
        self._choice()
        self._owed()
        self._merges()
        self._credits()
        return m

    def _choice(self):
        """Who is next: what was opened, what has left, what was asked; the frame must be gone."""
        m, dut = self.m, self.dut
        idle, busy = self.on("IDLE"), dut.frame.valid
        opens = idle & dut.opened.valid & ~busy
        leaves = idle & dut.done.valid & ~busy & ~dut.opened.valid
        serves = idle & dut.serve.valid & ~busy & ~dut.opened.valid & ~dut.done.valid
        m.d.comb += [
            Assert(dut.opened.ready == opens),
            Assert(dut.done.ready == leaves),
            Assert(dut.serve.ready == serves),
            Assert(dut.request.ready),
        ]
        self.opens, self.leaves, self.serves = opens, leaves, serves

    def _entries(self):
        """Requests of the chosen connection that wait: condition and flags of each place."""
        dut = self.dut
        fields = [(dut.have, dut.newest)]
        layout = SMALL.request_layout
        for k, word in enumerate(dut.older.words):
            fields.append((dut.older.level > k, data.View(layout, word)))
        return [(there & (v.connection == self.chosen), v) for there, v in fields]

    def _owed(self):
        """What is asked for is in the queue until it is served, and nothing else is."""
        m, dut, law = self.m, self.dut, self.law
        request, served = dut.request.payload, dut.serve.payload
        asks = dut.request.valid & (request.connection == self.chosen)
        takes = self.serves & (served.connection == self.chosen)
        entries = self._entries()
        m.d.comb += Assume(~dut.lost)
        for name in ("connection", "nack", "cnp"):
            of = {"connection": lambda v: 1, "nack": lambda v: v.nack, "cnp": lambda v: v.cnp}[name]
            wanted, ever = Chosen(m, 1, f"wants_{name}"), Chosen(m, 1, f"ever_{name}")
            with m.If(asks & of(request)):
                m.d.sync += [wanted.next.eq(1), ever.next.eq(1)]
            with m.Elif(takes & of(served)):
                m.d.sync += wanted.next.eq(0)
            waits = Cat(there & of(v) for there, v in entries).any()
            law(~wanted.now | waits, ever.now | ~waits)
        # Order: the oldest first.
        oldest = dut.older.o
        with m.If(dut.serve.valid):
            m.d.comb += Assert(oldest.valid | ((dut.older.level == 0) & dut.have))
        with m.If(oldest.valid):
            m.d.comb += Assert(Value.cast(served) == Value.cast(oldest.payload))
        m.d.comb += Assert(~oldest.valid | (oldest.ready == dut.serve.ready))
        m.d.comb += Assert(dut.serve.valid | ~dut.have | (dut.older.level != 0))
        m.d.comb += Cover(takes & served.nack & served.cnp & (dut.older.level == 2))

    def _merges(self):
        """A request of the connection of the newest one adds to it; else it is the newest."""
        m, dut = self.m, self.dut
        was, request = Signal(), Signal.like(Value.cast(dut.request.payload))
        same, flags = Signal(), Signal(2)
        newest, asked = dut.newest, dut.request.payload
        served = dut.serve.ready & ~dut.older.o.valid
        joins = dut.have & (newest.connection == asked.connection) & ~served
        m.d.sync += [was.eq(dut.request.valid), request.eq(asked), same.eq(joins)]
        m.d.sync += flags.eq(Cat(newest.nack, newest.cnp))
        with m.If(was):
            either = Cat(newest.nack, newest.cnp) == (Cat(self._flag(request)) | flags)
            m.d.comb += [Assert(dut.have), Assert((Value.cast(newest) == request) | same)]
            m.d.comb += Assert(~same | ((newest.connection == request[0]) & either))
        appends = dut.request.valid & dut.have & ~served & ~joins
        m.d.comb += [
            Assert(dut.older.i.valid == appends),
            Assert(~appends | (Value.cast(dut.older.i.payload) == Value.cast(newest))),
            Assert(dut.lost == (appends & (dut.older.level == 3))),
        ]

    def _flag(self, request):
        return request[1], request[2]

    def _credits(self):
        m, dut, law, on = self.m, self.dut, self.law, self.on
        booted = Signal(2, name="booted")
        consumed, told = Chosen(m, BITS, "consumed"), Chosen(m, BITS, "advertised")
        # An event of the chosen connection, by how many cycles ago it was taken.
        age, kind = Signal(2, name="age"), Signal(3, name="event")
        entry, flags = Signal.like(dut.entry, name="entry_then"), Signal(2, name="flags")
        total = Signal.like(dut.total, name="total_then")
        here = Signal(name="here")
        for port, taken in ((dut.opened, self.opens), (dut.done, self.leaves)):
            with m.If(taken):
                m.d.comb += here.eq(port.payload == self.chosen)
                m.d.comb += Assert(dut.entry_addr == port.payload)
        with m.If(self.serves):
            m.d.comb += here.eq(dut.serve.payload.connection == self.chosen)
            m.d.comb += Assert(dut.entry_addr == dut.serve.payload.connection)
        taken = self.opens | self.leaves | self.serves
        other = Signal(name="other")
        idle = on("IDLE") | on("CLEAR")
        law((age == 0) == (idle | other), ~other | ~idle)
        law((age != 1) | on("LOAD"), (age != 2) | on("ADD"), (age != 3) | on("DECIDE"))
        with m.If(taken):
            m.d.sync += other.eq(~here)
        with m.Elif(on("DECIDE")):
            m.d.sync += other.eq(0)
        with m.If(taken & here):
            m.d.sync += [age.eq(1), kind.eq(Cat(self.opens, self.leaves, self.serves))]
            m.d.sync += flags.eq(0)
            with m.If(self.serves):
                m.d.sync += flags.eq(Cat(dut.serve.payload.nack, dut.serve.payload.cnp))
        with m.Elif(age != 0):
            m.d.sync += age.eq(age + 1)
        with m.If(age == 1):
            m.d.sync += [entry.eq(dut.entry), total.eq(dut.total)]
        begins, leaves, asked = kind[0], kind[1], kind[2]
        after, limit, grown = (Signal(BITS, name=n) for n in ("after_", "limit_", "grown_"))
        tells, told_before = Signal(name="tells"), Signal()
        m.d.comb += [
            after.eq(consumed.now + leaves),
            limit.eq(after + entry.credit),
            grown.eq(limit - told.now),
            # Half of the credit, rounded up.
            tells.eq(asked | (leaves & entry.open & (grown >= (entry.credit + 1) // 2))),
        ]
        ack = Signal.like(dut.frame.payload, name="spec_ack")
        m.d.sync += told_before.eq(0)
        with m.If(age == 3):
            m.d.sync += told_before.eq(tells)
            with m.If(begins):
                m.d.sync += told.next.eq(limit)
            with m.Else():
                m.d.sync += consumed.next.eq(after)
                with m.If(tells):
                    m.d.sync += told.next.eq(limit)
            waiting = Signal(BITS, name="in_the_buffer")
            m.d.comb += waiting.eq(total - after)
            m.d.sync += [
                Value.cast(ack).eq(0),
                ack.kind.eq(Kind.ACK),
                ack.connection.eq(self.chosen),
                ack.seq.eq(entry.expected),
                ack.credit.eq(Mux(entry.credit > waiting, entry.credit - waiting, 0)),
                ack.nack.eq(flags[0]),
                ack.cnp.eq(flags[1]),
            ]
        # After the reset nothing has been delivered, and nothing has left.
        law(on("CLEAR") == (booted != 2))
        with m.If(booted != 2):
            m.d.sync += booted.eq(booted + 1)
            with m.If(booted == self.chosen):
                m.d.sync += [consumed.next.eq(0), told.next.eq(0)]
        with m.If(told_before):
            m.d.comb += [Assert(dut.frame.valid), Assert(dut.frame.payload == ack)]
        past_waits, made = Signal(), Signal()
        m.d.sync += [past_waits.eq(dut.frame.valid & ~dut.frame.ready), made.eq(on("DECIDE"))]
        mine = Signal()
        m.d.sync += mine.eq(age == 3)
        with m.If(self.law.begun & (mine | ~made)):
            m.d.comb += Assert(dut.frame.valid == (told_before | past_waits))
        law(on("IDLE") | ~dut.frame.valid)
        law((booted == 2) | (dut.credits.writes[0].addr == booted))
        word = dut.credits.words
        for k in range(2):
            with m.If(self.chosen == k):
                law(word[k].consumed == consumed.now, word[k].advertised == told.now)
        m.d.comb += [
            Cover(told_before & (ack.credit == 1) & leaves),
            Cover(told_before & (ack.nack == 1)),
            Cover(mine & leaves & ~told_before & entry.open),
        ]


PROOFS = (
    Proof(
        name="ltl_respond",
        core="cores.ltl.respond.Responder(2 connections, 4-bit credits, queue of 3)",
        says="what is owed is told, once asked or the credit has grown; the credit is what remains",
        module="trebuchet.cores.ltl.respond",
        build=ResponderProof,
        depth=5,
        cover_depth=10,
        mutants=(
            Mutant("forgets_nack", "newest.nack | request.payload.nack", "newest.nack", 6),
            Mutant("tells_late", "(entry.credit + 1) >> 1", "entry.credit", 8),
            Mutant("credit_of_all", "waiting.eq(total - consumed)", "waiting.eq(0)", 8),
            Mutant("old_after_reset", "m.d.comb += write.en.eq(1)\n", "pass\n", 5),
            Mutant("credit_below_none", "Mux(room[8], 0, room)", "room", 8),
            Mutant(
                "counts_twice",
                "consumed.eq(state.consumed + left)",
                "consumed.eq(state.consumed + left + left)",
                8,
            ),
            Mutant("overtakes", "empty = older.level == 0", "empty = ~older.o.valid", 8),
            Mutant(
                "overwrites_frame", "self.opened.valid & ~self.frame.valid", "self.opened.valid", 8
            ),
        ),
        assumes="the stream rules; no request is lost",
        not_proved="queue of 64; 8-bit credits; a reset while running",
    ),
)
