"""Proof of ``Echo`` in ``cores/services/echo.py``: two sessions, segments of 256 bytes.

The service works on one session's record at a time, for an event or because the session is listed.
:class:`EchoStep` specifies one such piece of work: what the record becomes, what descriptor is
posted, what is freed. Proved is that each piece of work does that: descriptors follow each other
without gap and none reaches past the ring's end or the newest byte, so what goes out is what came
in; a ``SENT`` frees up to the end of its own descriptor; FIN goes with the last byte; a session is
released once, when nothing of it is out. That each is done once, for its session and no other, and
when a session is listed, are matters of the session machine, whose rules the proof asserts
(:mod:`~trebuchet.formal.services.session_view`).

With places OPEN goes on where the session left off, also after ``rest``, which comes with the
``SENT`` of the last byte that came, if the peer goes on, and frees that descriptor's bytes.

The list is one of registers (:class:`~trebuchet.formal.kit.inside.RegisterFifo`).

Not proved: more sessions, other sizes; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Cat, Cover, Elaboratable, Mux, Signal, Value

from ...cores.tcp.service import EventKind
from ..kit.inside import Inside
from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import new_harness
from .session_view import EVENT, IDLE, LISTED, MEASURE, READ, WORK, SessionView, open_machine

__all__ = ["PROOFS"]

LOG2 = 8
RING = 1 << LOG2
LOW = LOG2 + 1


def _more(record):
    """Whether there is something to do for a session."""
    waits = record.eof | (record.latest != record.posted[:LOW])
    return Mux(record.dead, record.out == 0, (record.out < 4) & ~record.closing & waits)


class EchoStep:
    """One piece of work on record ``old``: for ``event``, or, if ``listed``, what waits."""

    def __init__(self, m, listed, old, event, rest=False):
        self.after = after = Signal(old.shape(), name="after")
        unposted = (old.latest - old.posted[:LOW])[:LOW]
        to_end = (RING - old.posted[:LOG2])[:LOW]
        wraps = unposted > to_end
        self.tx = listed & ~old.dead & _more(old)
        self.release = listed & old.dead & _more(old)
        sent = ~listed & (event.kind == EventKind.SENT) & event.ok
        all_sent = (old.out == 1) & (old.latest == old.posted[:LOW]) & ~old.eof & ~old.dead
        self.rest = sent & all_sent & int(rest)
        self.frees = sent & ~self.rest
        self.length = Mux(wraps, to_end, unposted)
        self.close = old.eof & ~wraps
        self.push = ~wraps
        self.addr = Cat(old.posted[:LOG2], old.base)
        self.end = (old.posted + self.length)[:32]
        m.d.comb += Value.cast(after).eq(Value.cast(old))
        with m.If(self.tx):
            m.d.comb += [
                after.posted.eq(self.end),
                after.next_tag.eq(old.next_tag + 1),
                after.out.eq(old.out + 1),
                after.closing.eq(self.close),
            ]
        with m.Elif(~listed):
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


class EchoProof(Elaboratable):
    def __init__(self, cores, rest=False):
        self.rest = rest
        with open_machine(cores):
            self.dut = cores.Echo(2, LOG2, rest)

    def elaborate(self, platform):
        m = new_harness()
        dut, machine, svc = self.dut, self.dut.machine, self.dut.service
        Inside(m, dut)
        m.d.comb += machine.active.shows.eq(1)
        self.view = view = SessionView(m, machine, svc, _more)
        view.service_rules(Assert)
        self.listed = view.kind == LISTED
        self.step = EchoStep(m, self.listed, view.start, svc.event.payload, self.rest)
        self._work(m)
        self._outputs(m)
        self._ends(m)
        return m

    def _work(self, m):
        """A visit to a listed session takes two cycles, another work one."""
        dut, machine, view, step = self.dut, self.dut.machine, self.view, self.step
        old = view.start
        with m.If(machine.work):
            m.d.comb += [
                Assert(Value.cast(machine.record) == Value.cast(old)),
                Assert(machine.done == (~self.listed | dut.visit)),
                Assert(Value.cast(machine.new) == Mux(machine.done, step.after, old)),
                Assert(~machine.forget),
            ]
        with m.If(machine.work & machine.done):
            m.d.comb += [
                Assert(machine.post == step.tx),
                Assert(machine.consume == step.frees),
                Assert(machine.release == step.release),
            ]
        with m.If(dut.visit):
            m.d.comb += [
                Assert(machine.work & self.listed),
                Assert(dut.unposted == (old.latest - old.posted[:LOW])[:LOW]),
                Assert(dut.to_end == (RING - old.posted[:LOG2])[:LOW]),
            ]
        m.d.comb += [
            Assert(~machine.request & ~machine.sweep & ~machine.sweeper.runs),
            Assert(view.at(IDLE) | (view.kind == EVENT) | self.listed),
        ]

    def _outputs(self, m):
        view, step, svc = self.view, self.step, self.dut.service
        old, tx = view.start, svc.tx.payload
        with m.If(svc.tx.valid):
            # The record before the work is still that which the view holds.
            m.d.comb += [
                Assert(self.listed),
                Assert(tx.addr == step.addr),
                Assert(tx.length == step.length),
                Assert(tx.push == step.push),
                Assert(tx.close == step.close),
                Assert(tx.tag == old.next_tag),
            ]
        m.d.comb += [Assert(~tx.abort), Assert(tx.tag[2:] == 0), Assert(tx.length[LOW:] == 0)]
        if self.rest:
            self._rests(m)
        seen = Signal(3)
        with m.If(moves(svc.tx) & tx.push & ~tx.close & (tx.length == 3)):
            m.d.sync += seen[0].eq(1)
        with m.If(moves(svc.free) & seen[0] & ~svc.free.payload.release):
            m.d.sync += seen[1].eq(1)
        m.d.comb += [Cover(seen[1]), Cover(moves(svc.free) & svc.free.payload.release)]

    def _rests(self, m):
        """The place is offered after the last SENT, when nothing of the session is left."""
        machine, view, step, svc = self.dut.machine, self.view, self.step, self.dut.service
        rests = Signal(name="is_last")
        with m.If(machine.work):
            m.d.sync += rests.eq(step.rest)
        after = ~view.at(IDLE, READ, MEASURE, WORK)
        m.d.comb += Assert(~after | (machine.idle == rests))
        now = view.now
        nothing = (now.out == 0) & (now.latest == now.posted[:LOW]) & ~now.eof & ~now.dead
        m.d.comb += Assert(~(after & rests) | nothing & (view.kind == EVENT))
        offered = svc.free.valid & svc.free.payload.rest
        m.d.comb += Assert(~(machine.rests | offered) | rests)
        again = Signal()
        with m.If(view.given):
            m.d.sync += again.eq(1)
        m.d.comb += Cover(again & machine.work & view.opening)

    def _ends(self, m):
        """Where an arbitrary descriptor of an arbitrary session ends."""
        dut, view, step, event = self.dut, self.view, self.step, self.dut.service.event.payload
        machine, old = dut.machine, view.start
        chosen, end = Signal(3), Signal(32)
        memory = dut.ends.read_port(domain="comb")
        m.d.comb += [chosen.eq(AnyConst(3)), memory.addr.eq(chosen), Assert(memory.data == end)]
        with m.If(machine.work & machine.post & (Cat(old.next_tag, view.who) == chosen)):
            m.d.sync += end.eq(step.end)
        asked = Cat(event.tag[:2], view.who) == chosen
        with m.If(machine.work & ~self.listed & asked):
            m.d.comb += Assert(dut.end_read.data == end)
        mine = Signal()  # the event's descriptor is the chosen one
        with m.If(machine.work):
            m.d.sync += mine.eq(asked & ~self.listed)
        with m.If(mine & ~view.at(IDLE, READ, MEASURE, WORK)):
            m.d.comb += Assert(machine.position == end)


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
            Mutant("rests_unanswered", "(state.out == 1) & same", "same", 20),
            Mutant("begins_at_nothing", "new.posted.eq(event.position)", "new.posted.eq(0)"),
        ),
        assumes="the stream rules; session numbers in range, opened anew after release or rest",
        not_proved="more sessions, other sizes; a reset while running",
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
            Mutant(
                "frees_lost_bytes",
                "machine.consume.eq(event.ok & ~rests)",
                "machine.consume.eq(~rests)",
            ),
            Mutant(
                "narrow_position",
                "event.position[: self.segment_log2 + 1]",
                "event.position[: self.segment_log2]",
            ),
            Mutant("counts_up", "new.out.eq(state.out - 1)", "new.out.eq(state.out + 1)"),
        ),
        assumes="the stream rules; session numbers in range, opened anew only after their release",
        not_proved="more sessions, other sizes; a reset while running",
    ),
)
