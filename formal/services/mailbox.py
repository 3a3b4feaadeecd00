"""Proof of ``Mailbox`` in ``cores/services/mailbox.py``: two sessions, segments of 256 bytes.

One session's record is in work at a time: for an event, for what the desk reports, or because the
session is listed. :class:`~trebuchet.formal.services.mailbox_step.MailboxStep` specifies one such
piece of work. Proved is that each does that, once, for its session and no other; that the desk,
where one request is copied, shown, answered and written, goes from one to the next only for the
reasons that the data sheet gives; that exactly the session whose request is on the desk is held,
until its connection ends; that what the CPU sends is sent as it was written, cut to 4,096 bytes, or
dropped; that status, interrupt and counters say what happened; that a session is listed exactly if
its record says so.

The copiers (``mailbox_request``, ``mailbox_response``) do what they like as far as their data
sheets allow; the list is one of registers.

Not proved: more sessions, other sizes; a reset while running.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Cat, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...cores.memory import MemorySignature
from ...cores.tcp.service import EventKind
from ..kit.inside import Inside, patched
from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .mailbox_step import LOG2, MailboxStep, idle, more, unread_of
from .session_view import EVENT, LIST, LISTED, REQUEST, SWEPT, SessionView, open_machine

__all__ = ["PROOFS"]

BASE = 0x5000  # of the slots; no multiple of both
FREE, COPY, COPIED, SHOWN, ANSWERED, WRITE, WRITTEN = range(7)


class _Copier(wiring.Component):
    """A copier that takes its time; ``busy`` from ``start`` to ``done``."""

    def __init__(self, width, members, outputs):
        mem = MemorySignature(width)
        streams = {"mem_cmd": Out(stream.Signature(mem.cmd_layout))}
        self.outputs = outputs
        super().__init__({"start": In(1), "done": Out(1), **members, **streams})
        self.busy = Signal()

    def elaborate(self, platform):
        m = Module()
        ends = Signal()
        m.d.comb += [ends.eq(AnySeq(1)), self.done.eq(self.busy & ends)]
        m.d.comb += self.mem_cmd.valid.eq(self.busy & AnySeq(1))
        m.d.comb += self.mem_cmd.payload.addr.eq(AnySeq(32))
        with m.If(self.start):
            m.d.sync += self.busy.eq(1)
            for name in self.outputs:
                m.d.sync += getattr(self, name).eq(AnySeq(len(getattr(self, name))))
        with m.Elif(self.done):
            m.d.sync += self.busy.eq(0)
        return m


class AnyRequest(_Copier):
    def __init__(self, width, segment_log2, largest):
        members = {
            "base": In(32 - segment_log2),
            "offset": In(segment_log2),
            "available": In(segment_log2 + 1),
            "expect": In(11),
            "counted": In(1),
            "length": Out(11),
            "matched": Out(1),
            "full": Out(1),
            "index": In(8),
            "word": Out(32),
            "mem_rdata": In(stream.Signature(MemorySignature(width).rdata_layout)),
        }
        super().__init__(width, members, ("length", "matched", "full", "word"))


class AnyResponse(_Copier):
    def __init__(self, width):
        members = {
            "clear": In(1),
            "append": In(1),
            "word": In(32),
            "addr": In(32),
            "length": In(13),
            "mem_wdata": Out(stream.Signature(MemorySignature(width).wdata_layout)),
            "written": In(1),
        }
        super().__init__(width, members, ())


class Desk:
    """What is on the desk, told from decisions and from what the CPU writes."""

    def __init__(self, m, dut):
        self.place = place = Signal(3, name="desk")
        self.gone, self.drop, self.close = Signal(name="gone"), Signal(name="drop"), Signal()
        self.length, self.final, self.guest = Signal(13, name="length"), Signal(), Signal()
        self.tag, self.late = Signal(2, name="tag"), Signal(name="late")
        self.free, self.shown = place == FREE, place == SHOWN
        self.copied, self.written = place == COPIED, place == WRITTEN
        self.reports = self.copied | self.written | ((place == ANSWERED) & ~self.gone)
        request = dut.request
        self.matched, self.full, self.count = request.matched, request.full, request.length
        self.expect = dut.csr.expect


class MailboxProof(Elaboratable):
    def __init__(self, cores, rest=False):
        self.cores, self.rest = cores, rest
        with open_machine(cores):
            self.dut = cores.Mailbox(32, 2, LOG2, BASE, rest=rest)

    def elaborate(self, platform):
        m = new_harness()
        dut, mem, csr = self.dut, self.dut.mem, self.dut.csr
        with patched(self.cores, RequestCopier=AnyRequest, ResponseCopier=AnyResponse):
            self.i = Inside(m, dut)
        m.d.comb += dut.machine.active.shows.eq(1)
        free(m, mem.cmd.ready, mem.wdata.ready, mem.wdone.valid, mem.rdata.valid, mem.rdata.payload)
        free(m, csr.send, csr.drop, csr.tx_write, csr.tx_data, csr.irq_enable, csr.rx_index)
        free(m, csr.expect, dut.sweep)
        self.desk = Desk(m, dut)
        self._work(m)
        self._sessions(m)
        self._outputs(m)
        self._desk(m)
        self._ports(m)
        return m

    def _during(self, *kinds):
        """A work of one of these kinds is under way; it takes one cycle."""
        return (
            self.dut.machine.work & sum((self.view.kind == k for k in kinds), Value.cast(0)).any()
        )

    def _work(self, m):
        """Each work does to its session's record what the specification says."""
        dut, machine, desk = self.dut, self.dut.machine, self.desk
        self.view = view = SessionView(m, machine, dut.service, more)
        view.service_rules(Assert)
        self.old, event = view.start, dut.service.event.payload
        self.step = step = MailboxStep(m, view.kind, view.start, event, desk, self.rest)
        m.d.comb += [
            Assert(self.i.fsm_bounded("desk")),
            Assert(machine.request == desk.reports),
            Assert(machine.sweep == dut.sweep),
        ]
        with m.If(machine.work):
            m.d.comb += [
                Assert(machine.done),
                Assert(Value.cast(machine.record) == Value.cast(view.start)),
                Assert(dut.unread == unread_of(view.start)),
                Assert(Value.cast(machine.new) == Value.cast(step.after)),
                Assert(machine.post == step.tx),
                Assert((machine.consume | machine.release) == step.free),
                Assert(machine.release == step.release),
                Assert(machine.forget == step.over),
            ]
        with m.If(view.stage == LIST):
            m.d.comb += Assert(dut.unread == unread_of(view.now))
            if self.rest:
                m.d.comb += Assert(machine.idle == idle(view.now))

    def _sessions(self, m):
        """Whose request is on the desk, and what is left in the table by those that are over."""
        desk, view = self.desk, self.view
        for s, now in enumerate(view.rows):
            at_rest = ~view.alive[s] | view.said[s]
            m.d.comb += [
                Assert(now.held == (~desk.free & ~desk.gone & (desk.guest == s))),
                Assert(~at_rest | ~now.held & (now.dead | idle(now))),
            ]
        released = view.frees & view.releases
        m.d.comb += Assert(~released | view.now.dead & ~view.now.held)
        if self.rest:
            m.d.comb += Assert(~self.dut.machine.rests | idle(view.now))

    def _outputs(self, m):
        step, svc, machine = self.step, self.dut.service, self.dut.machine
        length, close, abort = Signal(13), Signal(), Signal(name="aborts")
        with m.If(machine.work):
            m.d.sync += [
                length.eq(step.tx_length),
                close.eq(step.tx_close),
                abort.eq(step.tx_abort),
            ]
        tx = svc.tx.payload
        with m.If(svc.tx.valid):
            m.d.comb += [
                Assert(tx.length == length),
                Assert((tx.length == 0) | (tx.addr == BASE + (self.view.who << 12))),
                Assert(tx.push == (length != 0)),
                Assert(tx.close == close),
                Assert(tx.abort == abort),
            ]
        m.d.comb += [
            Assert(machine.position == machine.record.consumed),
            Assert(tx.tag == 0),
            Assert(tx.length[13:] == 0),
            Cover(moves(svc.tx) & tx.close),
            Cover(self._during(SWEPT)),
        ]
        if self.rest:  # a place is given back when what came after FIN is consumed, and taken again
            again = Signal()
            with m.If(self.view.given & (self.view.kind == LISTED)):
                m.d.sync += again.eq(1)
            m.d.comb += Cover(again & machine.work & self.view.opening)

    def _desk(self, m):
        dut, desk, step, csr, i = self.dut, self.desk, self.step, self.dut.csr, self.i
        place = desk.place
        decide, run = self._during(REQUEST), self._during(LISTED)
        gone = self._during(EVENT) & (self.dut.service.event.payload.kind == EventKind.CLOSED)
        gone = gone & self.old.held & desk.shown
        length = csr.send[:13]
        with m.Switch(place):
            with m.Case(FREE):
                with m.If(run & step.invites):
                    m.d.sync += [place.eq(COPY), desk.guest.eq(self.view.who), desk.gone.eq(0)]
                    m.d.sync += [desk.final.eq(self.old.eof), desk.tag.eq(self.old.tag)]
                    m.d.sync += desk.late.eq(self.old.late)
            with m.Case(COPY):
                with m.If(dut.request.done):
                    m.d.sync += place.eq(COPIED)
            with m.Case(COPIED):
                with m.If(decide):
                    m.d.sync += place.eq(Mux(step.shows, SHOWN, FREE))
            with m.Case(SHOWN):
                m.d.sync += desk.gone.eq(gone | desk.gone)
                with m.If(csr.drop | csr.send[31]):
                    m.d.sync += [place.eq(ANSWERED), desk.drop.eq(csr.drop)]
                    m.d.sync += desk.close.eq(csr.send[16])
                    m.d.sync += desk.length.eq(Mux(length > 4096, 4096, length))
            with m.Case(ANSWERED):
                with m.If(desk.gone):
                    m.d.sync += place.eq(FREE)
                with m.Elif(decide):
                    m.d.sync += place.eq(Mux(step.answers, WRITE, FREE))
            with m.Case(WRITE):
                with m.If(dut.response.done):
                    m.d.sync += place.eq(WRITTEN)
            with m.Case(WRITTEN):
                with m.If(decide):
                    m.d.sync += place.eq(FREE)
        names = ("FREE", "COPY", "COPIED", "SHOWN", "ANSWERED", "WRITE", "WRITTEN")
        for number, name in enumerate(names):
            m.d.comb += Assert(i.state(name, "desk") == (place == number))
        late = (place == ANSWERED) | (place == WRITE) | (place == WRITTEN)
        m.d.comb += [
            Assert(desk.free | (dut.guest == desk.guest)),
            Assert(desk.free | (dut.gone == desk.gone)),
            Assert(desk.free | desk.shown | (place == ANSWERED) | ~desk.gone),
            Assert(desk.free | (dut.final == desk.final)),
            Assert(desk.free | (dut.tag == desk.tag)),
            Assert(desk.free | (dut.late == desk.late)),
            Assert(~late | (dut.drop == desk.drop)),
            Assert(~late | (dut.close == desk.close)),
            Assert(~late | (dut.length == desk.length)),
            Assert(dut.request.busy == (place == COPY)),
            Assert(dut.response.busy == (place == WRITE)),
        ]
        requests, responses, dropped = (Signal(32, name=f"n{k}") for k in range(3))
        lost = (decide & (step.drops | (step.lost & ~desk.copied))) | (
            (place == ANSWERED) & desk.gone
        )
        m.d.sync += [
            requests.eq(requests + (decide & step.shows)),
            responses.eq(responses + (decide & step.sends)),
            dropped.eq(dropped + lost),
        ]
        m.d.comb += [
            Assert(csr.requests == requests),
            Assert(csr.responses == responses),
            Assert(csr.dropped == dropped),
            Cover(desk.shown & dut.response.append),
            # The last request of a connection that the client has ended.
            Cover(desk.shown & desk.final & (dut.request.length != 0)),
        ]

    def _ports(self, m):
        """What copiers, memory and CPU see."""
        dut, desk, step, csr, mem = self.dut, self.desk, self.step, self.dut.csr, self.dut.mem
        request, response = dut.request, dut.response
        run, decide = self._during(LISTED), self._during(REQUEST)
        m.d.comb += [
            Assert(request.start == (run & step.invites)),
            Assert(response.start == (decide & step.answers)),
            Assert(response.clear == (decide & step.shows)),
            Assert(response.append == (csr.tx_write & desk.shown)),
            Assert(response.word == csr.tx_data),
            Assert(csr.status[:4] == Cat(desk.shown, ~request.matched, dut.gone, ~desk.free)),
            Assert(desk.free | (csr.status[4:6] == desk.tag)),
            Assert(desk.free | (csr.status[6] == (desk.late & ~desk.matched))),
            Assert(dut.irq == (desk.shown & csr.irq_enable)),
            Assert(desk.free | (csr.session == desk.guest)),
            Assert(csr.request_length == request.length),
            Assert(csr.rx_data == request.word),
            Assert(request.index == csr.rx_index),
            Assert(mem.cmd.valid == (request.mem_cmd.valid | response.mem_cmd.valid)),
            Assert(mem.wdata.valid == response.mem_wdata.valid),
            Assert(request.mem_rdata.valid == mem.rdata.valid),
            Assert(response.written == mem.wdone.valid),
            Assert(mem.wdone.ready),
        ]
        with m.If(request.start):
            old = self.old
            m.d.comb += [
                Assert(request.base == old.base),
                Assert(request.offset == old.consumed[:LOG2]),
                Assert(request.available == unread_of(old)),
                Assert(request.expect == old.expect),
                Assert(request.counted == (old.expect != 0)),
            ]
        with m.If(response.start | response.busy):
            m.d.comb += Assert(response.addr == BASE + (desk.guest << 12))
            m.d.comb += Assert((response.length == desk.length) & (desk.length != 0))
        for copier in (request, response):
            with m.If(copier.mem_cmd.valid):
                m.d.comb += Assert(copier.mem_cmd.ready == mem.cmd.ready)
                same = Value.cast(mem.cmd.payload) == Value.cast(copier.mem_cmd.payload)
                m.d.comb += Assert(same)


PROOFS = (
    Proof(
        name="mailbox",
        core="cores.services.mailbox.Mailbox(32, 2 sessions, segments of 256 bytes)",
        says="one request at a time is shown, then answered, dropped or lost, once; records, list "
        "and descriptors are those of its session",
        module="trebuchet.cores.services.mailbox",
        build=MailboxProof,
        depth=1,
        cover_depth=40,
        mutants=(
            Mutant("appends_always", "csr.tx_write & self.shown", "csr.tx_write"),
            Mutant(
                "lists_the_empty",
                "(state.fresh & (self.unread != 0)) | state.eof",
                "state.fresh | state.eof",
                16,
            ),
            Mutant(
                "never_releases",
                "self.machine.more.eq(~state.held & ~state.out)",
                "self.machine.more.eq(~state.held & state.out)",
                16,
            ),
            Mutant(
                "silent_end",
                "with m.Elif((self.unread == 0) & ~self.awaits):",
                "with m.Elif(~self.awaits):",
                26,
            ),
            Mutant(
                "irq_too_soon",
                "self.irq.eq(self.shown & csr.irq_enable)",
                "self.irq.eq(~self.desk_free & csr.irq_enable)",
                22,
            ),
        ),
        assumes="copiers as in their proofs; an engine that opens a number after its release",
        not_proved="more sessions, other sizes; a reset while running",
    ),
    Proof(
        name="mailbox_rest",
        core="cores.services.mailbox.Mailbox(32, 2 places, segments of 256 bytes)",
        says="the same; a place is offered when nothing is unread, shown, awaited or unanswered, "
        "and OPEN restores what its session left",
        module="trebuchet.cores.services.mailbox",
        build=lambda cores: MailboxProof(cores, rest=True),
        depth=1,
        cover_depth=40,
        mutants=(
            Mutant("rests_unread", "state.eof | (self.unread != 0)", "state.eof", 16),
            Mutant(
                "begins_at_nothing", "new.consumed.eq(event.position)", "new.consumed.eq(0)", 16
            ),
            Mutant("closes_again", "new.closing.eq(~event.ok)", "new.closing.eq(0)", 16),
        ),
        assumes="copiers as in their proofs; an engine that opens a number after its release or "
        "rest",
        not_proved="more sessions, other sizes; a reset while running",
    ),
)
