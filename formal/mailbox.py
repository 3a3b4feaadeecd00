"""Proof of ``Mailbox`` in ``cores/services/mailbox.py``: two sessions, segments of 256 bytes.

One session's record is in work at a time: for an event, for what the desk reports, or because the
session is listed. :class:`~trebuchet.formal.mailbox_step.MailboxStep` specifies one such piece of
work. Proved is that each does that, once, for its session and no other; that the desk, where one
request is copied, shown, answered and written, goes from one to the next only for the reasons that
the data sheet gives; that exactly the session whose request is on the desk is held, until its
connection ends; that what the CPU sends is sent as it was written, cut to 4,096 bytes, or dropped;
that status, interrupt and counters say what happened; that a session is listed exactly if its
record says so.

The copiers (``mailbox_request``, ``mailbox_response``) do what they like as far as their data
sheets allow; the list is one of registers.

Not proved: more sessions, other sizes; a reset while running.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..cores.memory import MemorySignature
from ..cores.tcp.service import EventKind, EventLayout
from .inside import Inside, RegisterFifo, patched
from .mailbox_step import LOG2, MailboxStep, unread_of
from .proof import Mutant, Proof
from .stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

BASE = 0x5000  # of the slots; no multiple of both
FREE, COPY, COPIED, SHOWN, ANSWERED, WRITE, WRITTEN = range(7)


def _moves(port):
    return port.valid & port.ready


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


class MailboxProof(Elaboratable):
    def __init__(self, cores):
        self.cores, self.dut = cores, cores.Mailbox(32, 2, LOG2, BASE)

    def elaborate(self, platform):
        m = new_harness()
        dut, svc, mem, csr = self.dut, self.dut.service, self.dut.mem, self.dut.csr
        parts = {"RequestCopier": AnyRequest, "ResponseCopier": AnyResponse}
        with patched(self.cores, BlockFifo=RegisterFifo, **parts):
            self.i = Inside(m, dut)
        m.d.comb += dut.active.shows.eq(1)
        free(m, svc.event.valid, svc.event.payload, svc.tx.ready, svc.free.ready)
        free(m, mem.cmd.ready, mem.wdata.ready, mem.wdone.valid, mem.rdata.valid, mem.rdata.payload)
        free(m, csr.send, csr.drop, csr.tx_write, csr.tx_data, csr.irq_enable, csr.rx_index)
        free(m, csr.expect, dut.sweep)
        stream_rules(m, svc.event, Assume, "event")
        stream_rules(m, svc.tx, Assert, "tx")
        stream_rules(m, svc.free, Assert, "free")
        self.desk = Desk(m, dut)
        self._work(m)
        self._sessions(m)
        self._record(m)
        self._outputs(m)
        self._desk(m)
        self._ports(m)
        return m

    def _states(self, *names):
        return Cat(self.i.state(name, "records") for name in names).any()

    def _work(self, m):
        dut, desk, event = self.dut, self.desk, self.dut.service.event
        self.kind, self.who, self.begun = Signal(2), Signal(), Signal()
        self.old, self.event = Signal(dut.state_layout), Signal(EventLayout)
        idle, turn = self._states("IDLE"), dut.sweeper.turn
        swept = idle & ~desk.reports & ~event.valid & (turn | (dut.active.level != 0))
        m.d.comb += Assert(dut.sweeper.idle == swept)
        peek = dut.read._memory.read_port(domain="comb")
        m.d.comb += [peek.addr.eq(self.who), Assume(event.payload.session < 2)]
        with m.If(idle):
            m.d.sync += [
                self.kind.eq(Mux(desk.reports, 2, event.valid)),
                self.begun.eq(desk.reports | event.valid | (dut.active.level != 0) | turn),
            ]
            with m.If(~desk.reports & ~event.valid & turn):
                m.d.sync += self.kind.eq(3)
            with m.If(desk.reports):
                m.d.sync += self.who.eq(desk.guest)
            with m.Elif(event.valid):
                m.d.sync += self.who.eq(event.payload.session)
            with m.Else():
                m.d.sync += self.who.eq(Mux(turn, dut.sweeper.session, dut.active.cells[0]))
        past_idle = Signal(init=1)
        m.d.sync += past_idle.eq(idle)
        m.d.comb += [
            Assert(self.i.fsm_bounded("records") & self.i.fsm_bounded("desk")),
            Assert(event.ready == self._states("EVENT")),
            Assert(self._states("READ") == (past_idle & self.begun & ~idle)),
            Assert(~(past_idle & idle) | ~self.begun),
            Assert(idle | ((dut.session == self.who) & (self.i.kind == self.kind))),
        ]
        with m.If(self._states("READ")):
            m.d.sync += self.old.eq(peek.data)
            m.d.comb += Assert(Value.cast(dut.read.data) == Value.cast(peek.data))
        with m.Elif(~idle & ~self._states("WAIT")):
            m.d.comb += Assert(Value.cast(peek.data) == Value.cast(self.old))
        early = self._states("READ", "MEASURE", "EVENT", "DECIDE", "RUN", "SWEEP")
        with m.If(early):
            m.d.sync += self.event.eq(event.payload)
            same = event.payload.session == self.who
            m.d.comb += [
                Assert((self.kind != 1) | (event.valid & same)),
                Assert((self.kind != 2) | (desk.reports & (desk.guest == self.who))),
            ]
        # What the desk had when it was decided on.
        self.then = Signal(47)
        now = Cat(
            desk.free, desk.shown, desk.copied, desk.written, desk.drop, desk.close, desk.final,
            desk.matched, desk.full, desk.length, desk.count, self.dut.csr.expect,
            desk.late,
        )  # fmt: skip
        decided = self._states("EVENT", "DECIDE", "RUN", "SWEEP")
        with m.If(decided):
            m.d.sync += self.then.eq(now)
        seen = Mux(decided, now, self.then)
        taken = Mux(self._states("EVENT"), Value.cast(event.payload), Value.cast(self.event))
        ev = Signal(EventLayout, name="event_now")
        m.d.comb += Value.cast(ev).eq(taken)
        self.step = MailboxStep(m, self.kind, self.old, ev, _Seen(seen))
        with m.If(self._states("WAIT")):
            m.d.comb += Assert(Value.cast(peek.data) == Value.cast(self.step.new))

    def _sessions(self, m):
        """List, desk and numbers in use."""
        dut, desk, svc = self.dut, self.desk, self.dut.service
        alive, event = Signal(2), svc.event
        here, opens = event.payload.session[0], event.payload.kind == EventKind.OPEN
        m.d.comb += [
            Assume(Value.cast(event.payload.kind) <= 4),
            Assume(~event.valid | (alive.bit_select(here, 1) != opens)),
        ]
        with m.If(_moves(event) & opens):
            m.d.sync += alive.bit_select(here, 1).eq(1)
        with m.If(_moves(svc.free) & svc.free.payload.release):
            m.d.sync += alive.bit_select(svc.free.payload.session[0], 1).eq(0)
        for s in range(2):
            record = dut.read._memory.read_port(domain="comb")
            working = (self.who == s) & ~self._states("IDLE", "WAIT")
            now = Signal(dut.state_layout, name=f"record{s}")
            listed = sum((dut.active.level > k) & (dut.active.cells[k] == s) for k in range(2))
            m.d.comb += [record.addr.eq(s), now.eq(record.data)]
            with m.If(working & ~self._states("READ")):
                m.d.comb += now.eq(dut.state)
            popped = working & (self.kind == 0) & self._states("READ", "MEASURE")
            new = (self.kind == 1) & self._states("READ", "MEASURE", "EVENT")
            m.d.comb += [
                Assert(listed == (now.listed & ~popped)),
                Assert(~popped | now.listed),
                Assert(alive[s] | ~(now.listed | now.held)),
                Assert(alive[s] | now.dead | (Value.cast(now) == 0)),
                Assert(alive[s] | ~working | self.step.release | new | (self.kind == 3)),
                Assert(now.held == (~desk.free & ~desk.gone & (desk.guest == s))),
            ]
        m.d.comb += Assert(dut.active.level <= 2)

    def _record(self, m):
        dut, step = self.dut, self.step
        for names, record in (
            (("MEASURE", "EVENT", "DECIDE", "SWEEP"), self.old),
            (("RUN",), step.unlisted),
            (("SETTLE", "LIST"), step.after),
            (("WRITE", "WAIT"), step.new),
        ):
            with m.If(self._states(*names)):
                m.d.comb += Assert(Value.cast(dut.state) == Value.cast(record))
        with m.If(self._states("EVENT", "DECIDE", "RUN", "SWEEP")):
            m.d.comb += Assert(dut.unread == unread_of(self.old))
        with m.If(self._states("LIST")):
            m.d.comb += Assert(dut.unread == unread_of(step.after))
        puts = self._states("LIST") & step.new.listed & ~step.after.listed
        after = self._states("SETTLE", "LIST", "WRITE")
        m.d.comb += [
            Assert(dut.active.w_en == puts),
            Assert(~dut.active.w_en | dut.active.w_rdy),
            Assert(dut.write.en == self._states("WRITE")),
            Assert(self._states("EVENT") <= (self.kind == 1)),
            Assert(self._states("RUN") <= (self.kind == 0)),
            Assert(self._states("DECIDE") <= (self.kind == 2)),
            Assert(self._states("SWEEP") <= (self.kind == 3)),
            Assert(~after | (dut.released == (step.release | step.over))),
            Assert(after | self._states("IDLE", "WAIT") | ~dut.released),
        ]
        with m.If(self._states("WRITE")):
            m.d.comb += Assert(dut.write.addr == self.who)
            m.d.comb += Assert(Value.cast(dut.write.data) == Value.cast(step.new))

    def _outputs(self, m):
        step, svc = self.step, self.dut.service
        after = self._states("SETTLE", "LIST", "WRITE", "WAIT")
        for port, due in ((svc.tx, step.tx), (svc.free, step.free)):
            gone = Signal()
            m.d.sync += gone.eq((gone | _moves(port)) & after)
            m.d.comb += Assert(port.valid == (after & due & ~gone))
            m.d.comb += Assert(~port.valid | (port.payload.session == self.who))
        tx, free_ = svc.tx.payload, svc.free.payload
        with m.If(svc.tx.valid):
            m.d.comb += [
                Assert(tx.length == step.tx_length),
                Assert((tx.length == 0) | (tx.addr == BASE + (self.who << 12))),
                Assert(tx.push == (step.tx_length != 0)),
                Assert(tx.close == step.tx_close),
                Assert(tx.abort == step.tx_abort),
                Assert(tx.tag == 0),
            ]
        with m.If(svc.free.valid):
            m.d.comb += Assert(free_.release == step.release)
            m.d.comb += Assert(free_.release | (free_.position == step.new.consumed))
        m.d.comb += [Assert(tx.tag == 0), Assert(tx.length[13:] == 0)]
        m.d.comb += Cover(_moves(svc.tx) & tx.close)
        m.d.comb += Cover(self._states("SWEEP"))

    def _desk(self, m):
        dut, desk, step, csr, i = self.dut, self.desk, self.step, self.dut.csr, self.i
        place = desk.place
        decide, run = self._states("DECIDE"), self._states("RUN")
        gone = self._states("EVENT") & (self.event_kind == EventKind.CLOSED)
        gone = gone & self.old.held & desk.shown
        length = csr.send[:13]
        with m.Switch(place):
            with m.Case(FREE):
                with m.If(run & step.invites):
                    m.d.sync += [place.eq(COPY), desk.guest.eq(self.who), desk.gone.eq(0)]
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

    @property
    def event_kind(self):
        return self.dut.service.event.payload.kind

    def _ports(self, m):
        """What copiers, memory and CPU see."""
        dut, desk, step, csr, mem = self.dut, self.desk, self.step, self.dut.csr, self.dut.mem
        request, response = dut.request, dut.response
        run, decide = self._states("RUN"), self._states("DECIDE")
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


class _Seen:
    """The desk at the moment of a decision."""

    def __init__(self, bits):
        flags = ("free", "shown", "copied", "written", "drop", "close", "final", "matched", "full")
        for k, name in enumerate(flags):
            setattr(self, name, bits[k])
        self.length, self.count, self.expect = bits[9:22], bits[22:33], bits[33:46]
        self.late = bits[46]


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
                "more.eq(~state.held & ~state.out)",
                "more.eq(~state.held & state.out)",
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
)
