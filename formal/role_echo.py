"""Proof of ``Echo`` in ``cores/services/echo.py``: two sessions, segments of 256 bytes.

The service works on one session's record at a time, for an event or because the session is listed.
:class:`EchoStep` specifies one such piece of work: what the record becomes, what descriptor is
posted, what is freed. Proved is that each piece of work does that, once, for its session and no
other: descriptors follow each other without gap and none reaches past the ring's end or the newest
byte, so what goes out is what came in; a ``SENT`` frees up to the end of its own descriptor; FIN
goes with the last byte; a session is released once, when nothing of it is out; it is in the list
exactly if its record says so. With places OPEN restores what a session left as it rested, and
``rest`` is said with the ``SENT`` of the last byte that came, if the peer goes on.

The list is one of registers (:class:`~trebuchet.formal.inside.RegisterFifo`).

Not proved: more sessions, other sizes; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ..cores.tcp.service import EventKind, EventLayout
from .inside import Inside, RegisterFifo, patched
from .proof import Mutant, Proof
from .stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

LOG2 = 8
RING = 1 << LOG2
LOW = LOG2 + 1


def _moves(port):
    return port.valid & port.ready


def _more(record):
    """Whether there is something to do for a session."""
    waits = record.eof | (record.latest != record.posted[:LOW])
    return Mux(record.dead, record.out == 0, (record.out < 4) & ~record.closing & waits)


class EchoStep:
    """One piece of work on record ``old``: for ``event``, or, if ``listed``, what waits."""

    def __init__(self, m, listed, old, event, rest=False):
        self.after = after = Signal(old.shape(), name="after")
        self.new = new = Signal(old.shape(), name="new")
        unposted = (old.latest - old.posted[:LOW])[:LOW]
        to_end = (RING - old.posted[:LOG2])[:LOW]
        wraps = unposted > to_end
        self.tx = listed & ~old.dead & _more(old)
        self.release = listed & old.dead & _more(old)
        self.frees = ~listed & (event.kind == EventKind.SENT) & event.ok
        all_sent = (old.out == 1) & (old.latest == old.posted[:LOW]) & ~old.eof & ~old.dead
        self.rest = self.frees & all_sent
        self.length = Mux(wraps, to_end, unposted)
        self.close = old.eof & ~wraps
        self.push = ~wraps
        self.addr = Cat(old.posted[:LOG2], old.base)
        self.end = (old.posted + self.length)[:32]
        m.d.comb += Value.cast(after).eq(Value.cast(old))
        with m.If(listed):
            m.d.comb += after.listed.eq(0)
            with m.If(self.tx):
                m.d.comb += [
                    after.posted.eq(self.end),
                    after.next_tag.eq(old.next_tag + 1),
                    after.out.eq(old.out + 1),
                    after.closing.eq(self.close),
                ]
        with m.Else():
            with m.Switch(event.kind):
                with m.Case(EventKind.OPEN):
                    m.d.comb += Value.cast(after).eq(0)
                    if rest:
                        m.d.comb += [
                            after.posted.eq(event.position),
                            after.latest.eq(event.position),
                        ]
                with m.Case(EventKind.DATA):
                    m.d.comb += after.base.eq(event.base >> LOG2)
                    m.d.comb += after.latest.eq(event.position)
                with m.Case(EventKind.EOF):
                    m.d.comb += after.eof.eq(1)
                with m.Case(EventKind.SENT):
                    m.d.comb += after.out.eq(old.out - 1)
                with m.Case(EventKind.CLOSED):
                    m.d.comb += after.dead.eq(1)
        m.d.comb += Value.cast(new).eq(Value.cast(after))
        with m.If(_more(after) & ~self.release):
            m.d.comb += new.listed.eq(1)


class EchoProof(Elaboratable):
    def __init__(self, cores, rest=False):
        self.cores, self.dut, self.rest = cores, cores.Echo(2, LOG2, rest), rest

    def elaborate(self, platform):
        m = new_harness()
        svc = self.dut.service
        with patched(self.cores, BlockFifo=RegisterFifo):
            self.i = Inside(m, self.dut)
        self.list, self.state_record = self.i.parts["active"], self.i.signal("state")
        m.d.comb += self.list.shows.eq(1)
        free(m, svc.event.valid, svc.event.payload, svc.tx.ready, svc.free.ready)
        stream_rules(m, svc.event, Assume, "event")
        stream_rules(m, svc.tx, Assert, "tx")
        stream_rules(m, svc.free, Assert, "free")
        self._work(m)
        self._sessions(m)
        self._record(m)
        self._outputs(m)
        return m

    def _states(self, *names):
        return Cat(self.i.state(name) for name in names).any()

    def _work(self, m):
        dut, i, svc = self.dut, self.i, self.dut.service
        self.listed, self.who, self.begun = Signal(), Signal(), Signal()
        self.event, self.old = Signal(EventLayout), Signal(dut.state_layout)
        idle, event = i.state("IDLE"), svc.event
        with m.If(idle):
            m.d.sync += [
                self.listed.eq(~event.valid),
                self.begun.eq(event.valid | (self.list.level != 0)),
                self.event.eq(event.payload),
                self.who.eq(Mux(event.valid, event.payload.session, self.list.cells[0])),
            ]
        past_idle = Signal(init=1)
        m.d.sync += past_idle.eq(idle)
        m.d.comb += [
            Assert(i.fsm_bounded()),
            Assert(event.ready == idle),
            Assert(i.state("READ") == (past_idle & self.begun & ~idle)),
            Assert(~(past_idle & idle) | ~self.begun),
            Assert(idle | (i.session == self.who)),
            Assert(idle | (i.running == self.listed)),
            Assert(idle | (i.event == Value.cast(self.event))),
        ]
        peek = dut.read._memory.read_port(domain="comb")
        m.d.comb += peek.addr.eq(self.who)
        with m.If(i.state("READ")):
            m.d.sync += self.old.eq(peek.data)
            m.d.comb += Assert(Value.cast(dut.read.data) == Value.cast(peek.data))
        with m.Elif(~idle & ~i.state("WAIT")):
            m.d.comb += Assert(Value.cast(peek.data) == Value.cast(self.old))
        self.step = EchoStep(m, self.listed, self.old, self.event, self.rest)
        with m.If(i.state("WAIT")):
            m.d.comb += Assert(Value.cast(peek.data) == Value.cast(self.step.new))

    def _sessions(self, m):
        """The list, and which numbers are in use."""
        dut, i, svc = self.dut, self.i, self.dut.service
        alive, event = Signal(2), svc.event.payload
        opens = event.kind == EventKind.OPEN
        m.d.comb += [
            Assume(event.session < 2),
            Assume(Value.cast(event.kind) <= 4),
            Assume(~svc.event.valid | (alive.bit_select(event.session[0], 1) != opens)),
        ]
        with m.If(_moves(svc.event) & opens):
            m.d.sync += alive.bit_select(event.session[0], 1).eq(1)
        with m.If(_moves(svc.free) & svc.free.payload.release):
            m.d.sync += alive.bit_select(svc.free.payload.session[0], 1).eq(0)
        for s in range(2):
            record = dut.read._memory.read_port(domain="comb")
            working = (self.who == s) & ~i.state("IDLE") & ~i.state("WAIT")
            now = Signal(dut.state_layout, name=f"record{s}")
            listed = sum((self.list.level > k) & (self.list.cells[k] == s) for k in range(2))
            m.d.comb += [record.addr.eq(s), now.eq(record.data)]
            with m.If(working & ~i.state("READ")):
                m.d.comb += Value.cast(now).eq(self.state_record)
            popped = working & self.listed & self._states("READ", "MEASURE", "POST")
            opening = working & ~self.listed & (self.event.kind == EventKind.OPEN)
            early = self._states("READ", "EVENT")
            m.d.comb += [
                Assert(~(opening & early) | ~now.listed),
                Assert(listed == (now.listed & ~popped)),
                Assert(~popped | now.listed),
                Assert(alive[s] | ~now.listed),
                Assert(alive[s] | ~working | self.step.release),
            ]
        m.d.comb += Assert(self.list.level <= 2)

    def _record(self, m):
        dut, i, step = self.dut, self.i, self.step
        now = self.state_record
        for names, record in (
            (("EVENT", "MEASURE", "POST"), self.old),
            (("LIST",), step.after),
            (("WRITE", "WAIT"), step.new),
        ):
            with m.If(self._states(*names)):
                m.d.comb += Assert(now == Value.cast(record))
        with m.If(i.state("POST")):
            old = self.old
            m.d.comb += [
                Assert(dut.unposted == (old.latest - old.posted[:LOW])[:LOW]),
                Assert(dut.to_end == (RING - old.posted[:LOG2])[:LOW]),
            ]
        m.d.comb += [
            Assert(~self._states("MEASURE", "POST") | self.listed),
            Assert(~i.state("EVENT") | ~self.listed),
            Assert(dut.write.en == i.state("WRITE")),
            Assert(~self.list.w_en | self.list.w_rdy),
            Assert(self.list.w_en == (i.state("LIST") & step.new.listed & ~step.after.listed)),
        ]
        with m.If(i.state("WRITE")):
            m.d.comb += Assert(dut.write.addr == self.who)
            m.d.comb += Assert(Value.cast(dut.write.data) == Value.cast(step.new))

    def _outputs(self, m):
        step, svc = self.step, self.dut.service
        after = self._states("LIST", "WRITE", "WAIT")
        frees = step.frees | step.release
        for port, due in ((svc.tx, step.tx), (svc.free, frees)):
            gone = Signal()
            m.d.sync += gone.eq((gone | _moves(port)) & after)
            m.d.comb += Assert(port.valid == (after & due & ~gone))
            m.d.comb += Assert(~port.valid | (port.payload.session == self.who))
        tx, free_ = svc.tx.payload, svc.free.payload
        self._ends(m)
        with m.If(svc.tx.valid):
            m.d.comb += [
                Assert(tx.addr == step.addr),
                Assert(tx.length == step.length),
                Assert(tx.push == step.push),
                Assert(tx.close == step.close),
                Assert(tx.tag == self.old.next_tag),
            ]
        with m.If(svc.free.valid):
            m.d.comb += Assert(free_.release == step.release)
            if self.rest:
                m.d.comb += Assert(free_.rest == step.rest)
                # Nothing is left to be done for a session that rests.
                m.d.comb += Assert(~step.rest | (step.new.out == 0) & ~_more(step.new))
                m.d.comb += Cover(free_.rest)
        m.d.comb += [Assert(~tx.abort), Assert(tx.tag[2:] == 0), Assert(tx.length[LOW:] == 0)]
        seen = Signal(3)
        with m.If(_moves(svc.tx) & tx.push & ~tx.close & (tx.length == 3)):
            m.d.sync += seen[0].eq(1)
        with m.If(_moves(svc.free) & seen[0] & ~free_.release):
            m.d.sync += seen[1].eq(1)
        m.d.comb += [Cover(seen[1]), Cover(_moves(svc.free) & free_.release)]

    def _ends(self, m):
        """Where an arbitrary descriptor of an arbitrary session ends."""
        dut, i, step, svc = self.dut, self.i, self.step, self.dut.service
        chosen, end = Signal(3), Signal(32)
        place = Cat(self.old.next_tag, self.who)
        memory = dut.end_read._memory.read_port(domain="comb")
        m.d.comb += [chosen.eq(AnyConst(3)), memory.addr.eq(chosen), Assert(memory.data == end)]
        with m.If(i.state("POST") & step.tx & (place == chosen)):
            m.d.sync += end.eq(step.end)
        asked = Cat(self.event.tag[:2], self.who)
        with m.If(i.state("READ") & ~self.listed & (asked == chosen)):
            m.d.comb += Assert(dut.end_read.data == end)
        with m.If(
            ~self.listed & (asked == chosen) & self._states("EVENT", "LIST", "WRITE", "WAIT")
        ):
            m.d.comb += Assert(svc.free.payload.position == end)


PROOFS = (
    Proof(
        name="service_echo_rest",
        core="cores.services.echo.Echo(2 places, segments of 256 bytes)",
        says="the same, from where the session left off; rest with the last byte's SENT, no sooner",
        module="trebuchet.cores.services.echo",
        build=lambda cores: EchoProof(cores, rest=True),
        depth=1,
        cover_depth=30,
        mutants=(
            Mutant("rests_unanswered", "(state.out == 1) & same", "same"),
            Mutant("begins_at_nothing", "state.posted.eq(event.position)", "state.posted.eq(0)"),
        ),
        assumes="the stream rules; session numbers in range, opened anew only after their release",
        not_proved="OPEN of a place after rest; more sessions, other sizes; a reset while running",
    ),
    Proof(
        name="service_echo",
        core="cores.services.echo.Echo(2 sessions, segments of 256 bytes)",
        says="descriptors cover what came, without gap; each frees its bytes; FIN with the last",
        module="trebuchet.cores.services.echo",
        build=EchoProof,
        depth=1,
        cover_depth=30,
        mutants=(
            Mutant("crosses_the_end", "wraps.eq(self.unposted > self.to_end)", "wraps.eq(0)", 18),
            Mutant("frees_lost_bytes", "free.valid.eq(event.ok)", "free.valid.eq(1)"),
            Mutant(
                "narrow_position",
                "event.position[: self.segment_log2 + 1]",
                "event.position[: self.segment_log2]",
            ),
            Mutant("counts_up", "state.out.eq(state.out - 1)", "state.out.eq(state.out + 1)"),
        ),
        assumes="the stream rules; session numbers in range, opened anew only after their release",
        not_proved="more sessions, other sizes; a reset while running",
    ),
)
