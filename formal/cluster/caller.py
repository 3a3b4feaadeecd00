"""Proof of ``Caller`` in ``cores/cluster/caller.py``, whatever the peer, the link and memory do.

The transfer is hollow (:mod:`~trebuchet.formal.kit.parts`; ``cluster_transfer`` proves it): it
offers any headers at any time, and takes and finishes what it is asked for whenever it likes. A
model written from the data sheet runs in lockstep, by induction. It says: one job at a time, each
answered exactly once, to its asker; one call for each ``DATA`` job, none for others; each job has a
number of its own, one more than the last; a message is stored only if it has this number and the
offset that follows what was stored, any other is dropped and counted, so the late reply of an older
call or a message twice is never taken for the answer; the result goes to the job's place; the
answer's status and length are those of the data sheet; ``expired`` rises with the tick after
``patience`` ticks, stays until nobody waits, and is answered ``NO_ANSWER``.

Not proved: a bound in cycles on what the transfer is asked for, which it depends on; that 256 calls
later a number comes again; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.models.status import Status

from ..kit.parts import Opened, moves, same, same_memory
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

PEER = 5
STEP = 63  # a message has 1008 bytes, in units of 16
DATA = 0  # a job's kind
PHASES = (
    *("IDLE", "STRAY", "CHECK", "CALL", "SEND", "WAIT"),
    *("OLD", "LOOK", "STORE", "STORED", "ANSWER"),
)
OPERAND = ("base", "offset", "ring_log2", "length")


class CallerProof(Elaboratable):
    def __init__(self, cores, dut):
        self.cores, self.dut = cores, dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        core = Opened(self.cores, dut, platform, hollowed=("Transfer",))
        m.submodules.dut = core.fragment
        transfer = core.part("Transfer")
        free(m, dut.job.valid, dut.job.payload, dut.answer.ready, dut.tick, dut.csr.patience)
        free(m, dut.i.valid, dut.i.payload, dut.o.ready)
        free(m, dut.mem.cmd.ready, dut.mem.wdata.ready, dut.mem.rdata.valid, dut.mem.wdone.valid)
        free(m, dut.mem.rdata.payload, dut.mem.wdone.payload)
        stream_rules(m, dut.job, Assume, "job")
        stream_rules(m, transfer.head, Assume, "head")
        stream_rules(m, dut.answer, Assert, "answer")
        stream_rules(m, transfer.send, Assert, "send")
        stream_rules(m, transfer.store, Assert, "store")
        same(m, dut.i, transfer.i)
        same(m, transfer.o, dut.o)
        same_memory(m, transfer.mem, dut.mem)
        self._model(m, core, transfer)
        self._once(m, transfer)
        return m

    def _model(self, m, core, transfer):
        dut, head = self.dut, transfer.head
        self.on = on = {n: Signal(name=f"in_{n}", init=n == "IDLE") for n in PHASES}
        job, header = Signal(dut.job.payload.shape()), Signal(head.payload.header.shape())
        status, length, place = Signal(8), Signal(20), Signal(16)
        number, strays, timeouts = Signal(8), Signal(32), Signal(32)
        fits = (header.number == number) & (header.offset == place)

        def go(old, new):
            m.d.sync += [on[old].eq(0), on[new].eq(1)]

        with m.If(on["IDLE"]):
            with m.If(dut.job.valid):
                go("IDLE", "CHECK")
                m.d.sync += [job.eq(dut.job.payload), status.eq(Status.OK), length.eq(0)]
            with m.Elif(head.valid):
                go("IDLE", "STRAY")
        with m.If(on["STRAY"]):
            go("STRAY", "IDLE")
            m.d.sync += strays.eq(strays + 1)
        with m.If(on["CHECK"]):
            m.d.sync += [number.eq(number + 1), place.eq(0)]
            with m.If(Value.cast(job.kind) == DATA):
                go("CHECK", "CALL")
            with m.Else():
                go("CHECK", "ANSWER")
                m.d.sync += status.eq(Status.BAD_TYPE)
        with m.If(on["CALL"] & transfer.send.ready):
            go("CALL", "SEND")
        with m.If(on["SEND"] & ~transfer.sending):
            go("SEND", "WAIT")
        with m.Elif(on["SEND"] & head.valid):
            go("SEND", "OLD")
        with m.If(on["OLD"]):
            go("OLD", "SEND")
            m.d.sync += strays.eq(strays + 1)
        with m.If(on["WAIT"]):
            with m.If(dut.expired):
                go("WAIT", "ANSWER")
                m.d.sync += [status.eq(Status.NO_ANSWER), timeouts.eq(timeouts + 1)]
            with m.Elif(head.valid):
                go("WAIT", "LOOK")
                m.d.sync += header.eq(head.payload.header)
        with m.If(on["LOOK"]):
            with m.If(fits):
                go("LOOK", "STORE")
            with m.Else():
                go("LOOK", "WAIT")
                m.d.sync += strays.eq(strays + 1)
        with m.If(on["STORE"] & transfer.store.ready):
            go("STORE", "STORED")
        with m.If(on["STORED"] & transfer.stored):
            with m.If(transfer.error):
                go("STORED", "WAIT")
                m.d.sync += strays.eq(strays + 1)
            with m.Else():
                self._stored(m, go, transfer, header, status, length, place)
        with m.If(on["ANSWER"] & dut.answer.ready):
            go("ANSWER", "IDLE")
        self._outputs(m, transfer, on, job, fits, number)
        self._time(m, on)
        answer = dut.answer.payload
        with m.If(on["ANSWER"]):
            m.d.comb += [Assert(answer.status == status), Assert(answer.length == length)]
            m.d.comb += [Assert(answer[n] == job[n]) for n in ("source", "session", "id")]
        # Invariants.
        inside = dut.inside
        m.d.comb += [Assert(core.state(name, "call") == on[name]) for name in PHASES]
        m.d.comb += [
            Assert(inside["number"] == number),
            Assert(dut.csr.strays == strays),
            Assert(dut.csr.timeouts == timeouts),
            Assert(on["IDLE"] | on["STRAY"] | (Value.cast(inside["job"]) == Value.cast(job))),
            Assert(on["IDLE"] | on["STRAY"] | (inside["status"] == status)),
            Assert(on["IDLE"] | on["STRAY"] | (answer.length == length)),
            Assert(on["IDLE"] | on["STRAY"] | on["ANSWER"] | (length == 0)),
        ]
        with m.If(on["CALL"] | on["SEND"] | on["OLD"] | on["WAIT"]):
            m.d.comb += Assert(dut.place == place)
        with m.If(on["LOOK"] | on["STORE"] | on["STORED"]):
            m.d.comb += Assert(dut.place == place)
            m.d.comb += Assert(Value.cast(inside["header"]) == Value.cast(header))
        m.d.comb += [
            Cover(on["ANSWER"] & (status == Status.OK) & (length != 0) & (place > STEP)),
            Cover(on["ANSWER"] & (status == Status.NO_ROOM)),
            Cover(on["ANSWER"] & (status == Status.NO_ANSWER) & (strays == 1)),
            Cover(on["ANSWER"] & (number == 2) & (header.number == 1)),
        ]

    def _stored(self, m, go, transfer, header, status, length, place):
        """A good message of the reply is in memory."""
        m.d.sync += place.eq(place + STEP)
        with m.If(header.last):
            go("STORED", "ANSWER")
        with m.Else():
            go("STORED", "WAIT")
        with m.If(transfer.overflow):
            m.d.sync += status.eq(Status.NO_ROOM)
        with m.Elif(header.last & (status == Status.OK)):
            m.d.sync += status.eq(header.status)
            m.d.sync += length.eq(Mux(header.status == Status.OK, transfer.length, 0))

    def _outputs(self, m, transfer, on, job, fits, number):
        dut, send, store = self.dut, transfer.send, transfer.store
        ready = Mux(on["IDLE"], ~dut.job.valid & transfer.head.valid, on["WAIT"] & ~dut.expired)
        # While a call is being sent no head waits: the peer may wait until its reply was taken.
        ready |= on["SEND"] & transfer.sending
        m.d.comb += [
            Assert(dut.job.ready == on["IDLE"]),
            Assert(dut.answer.valid == on["ANSWER"]),
            Assert(send.valid == on["CALL"]),
            Assert(store.valid == on["STORE"]),
            Assert(transfer.head.ready == ready),
            Assert(transfer.drop == (on["STRAY"] | on["OLD"] | (on["LOOK"] & ~fits))),
        ]
        with m.If(send.valid):
            call = send.payload.call
            m.d.comb += [Assert(send.payload.operand[name] == job[name]) for name in OPERAND]
            m.d.comb += [
                Assert(call.peer == PEER),
                Assert(Value.cast(call.kind) == DATA),
                Assert(call.role == job.role),
                Assert(call.status == 0),
                Assert(call.number == number),
                Assert(call.length == job.length),
            ]
        with m.If(store.valid):
            m.d.comb += [Assert(fits), Assert(store.payload.addr == job.result)]
            m.d.comb += Assert(store.payload.room == job.room)

    def _time(self, m, on):
        """Ticks since the call began; it is given up with the tick after `patience` of them."""
        dut, ticks, expired = self.dut, Signal(16), Signal()
        waits = on["CALL"] | on["SEND"] | on["OLD"] | on["WAIT"]
        waits |= on["LOOK"] | on["STORE"] | on["STORED"]
        with m.If(~waits):
            m.d.sync += [ticks.eq(0), expired.eq(0)]
        with m.Elif(dut.tick & (dut.csr.patience != 0)):
            m.d.sync += [ticks.eq(ticks + 1), expired.eq(expired | (ticks >= dut.csr.patience))]
        m.d.comb += [Assert(dut.expired == expired), Assert(dut.time == ticks)]

    def _once(self, m, transfer):
        """From the ports alone: no job without its one answer, no second call before it."""
        dut, has, called = self.dut, Signal(), Signal()
        with m.If(moves(dut.job)):
            m.d.sync += [has.eq(1), called.eq(0)]
        with m.If(moves(dut.answer)):
            m.d.sync += has.eq(0)
        with m.If(moves(transfer.send)):
            m.d.sync += called.eq(1)
        m.d.comb += [
            Assert(~(dut.job.ready & has)),
            Assert(~dut.answer.valid | has),
            Assert(~transfer.send.valid | (has & ~called)),
            Assert(~transfer.store.valid | (has & called)),
            # Invariants.
            Assert(has == ~(self.on["IDLE"] | self.on["STRAY"])),
            Assert(~(self.on["CHECK"] | self.on["CALL"]) | ~called),
            *(Assert(~self.on[n] | called) for n in PHASES[PHASES.index("SEND") : -1]),
        ]


MUTANTS = (
    Mutant(
        "any_number",
        "(header.number != number) | (header.offset != place)",
        "(header.offset != place)",
    ),
    Mutant("lets_old_replies_wait", "transfer.head.ready.eq(transfer.sending)", "", 14),
    Mutant("place_too_far", "place.eq(place + CHUNK // 16)", "place.eq(place + CHUNK // 8)"),
    Mutant("answers_early", "with m.If(header.last):", "with m.If(1):"),
    Mutant(
        "loses_no_room",
        "with m.Elif(header.last & (status == Status.OK)):",
        "with m.Elif(header.last):",
        14,
    ),
    Mutant("a_tick_too_soon", "time >= patience", "time + 1 >= patience"),
    Mutant("calls_other_kinds", "job.kind != JobKind.DATA", "job.kind == JobKind.STREAM"),
)

PROOFS = (
    Proof(
        name="cluster_caller",
        core="cores.cluster.caller.Caller(5), its transfer hollow",
        says="each job is answered once, from the reply with its number, or when patience ends",
        module="trebuchet.cores.cluster.caller",
        build=lambda cores: CallerProof(cores, cores.Caller(PEER)),
        depth=2,
        cover_depth=18,
        mutants=MUTANTS,
        assumes="the stream rules on the inputs and on the headers that the transfer offers",
        not_proved="a bound in cycles, which depends on the transfer; a reset while running",
    ),
)
