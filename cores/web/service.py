"""The web service: answers HTTP/1.1 requests on a TCP port with objects that lie in memory."""

from amaranth import Array, C, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...models.http.image import PLACES
from ...models.http.limits import LIMITS
from ...models.http.request import Verdict
from ..arbiter import StreamArbiter
from ..buffers import StreamFifo
from ..csr import CsrSignature
from ..memory import ADDR_WIDTH, MemorySignature
from ..memory_arbiter import MemoryArbiter
from ..services.discard import check_sessions
from ..services.echo import check_segment_log2
from ..services.session import SessionMachine, Work
from ..stream import check_data_width
from ..tcp.service import POSITION_WIDTH, TX_PER_SESSION, EventKind, ServiceSignature
from .answer import OFFSET_BITS, Answer, Kind
from .desk import DESK_REGISTERS, Desk
from .finder import HeadFinder
from .images import Images
from .lane import Lane, parsed_layout
from .record import PIECE_LOG2, SCANNED, record_layout, rest_address
from .registers import web_block
from .scan import ScanState
from .slots import Slots

__all__ = ["Web"]

#: Registers that :class:`~.images.Images` takes.
_SWITCHED = ("base", "index", "mask", "switch")


class Web(wiring.Component):
    """Serves the objects of an image (:mod:`trebuchet.models.http.image`) over HTTP/1.1.

    Parameters
    ----------
    width : int
        Data path of the memory port in bits, 32 or 64.
    sessions : int
        Session numbers 0 to ``sessions - 1`` may come.
    segment_log2 : int
        log2 of the bytes of a segment of the receive pool.
    lanes : int
        Heads that are parsed at a time, 1 to 8.
    unread : int or None
        Bytes certain to come while none is consumed (``TcpConfig.unread``); None: a segment. A head
        may have as many, less two for an empty line before it, and at most those of ``limits``.
    rest : bool
        Sessions are places (:mod:`~trebuchet.cores.tcp.service`). A connection gives its place back
        when nothing of it is unread or unanswered: idle connections cost nothing.
    limits : Limits
        Of heads, targets and paths (:mod:`trebuchet.models.http.limits`).
    image : tuple of int or None
        Address of an image that is served from reset on, of its index, and the number of buckets.
        None: nothing is served before the registers say so.
    desk : bool
        Firmware may answer what gateware does not (:class:`~.desk.Desk`).

    ===========  ====  ==========================================================================
    member       dir   meaning
    ===========  ====  ==========================================================================
    ``service``  In    :class:`~trebuchet.cores.tcp.service.ServiceSignature`
    ``mem``      Out   memory port that reads
    ``csr``      In    :func:`~.registers.web_block`
    ``sweep``    In    strobe: a head that was incomplete at the last one, too, is late
    ``irq``      Out   with ``desk``: a request waits for firmware
    ===========  ====  ==========================================================================

    **What is answered** is what :class:`trebuchet.models.http.server.Connection` answers, byte for
    byte, with two exceptions: a request that the model leaves to the firmware is answered with 503
    and a close, unless firmware takes it; and a head of exactly the largest size, or one byte more,
    that has not come to its end is waited for.

    **Firmware** (``desk``, register ``slow``) is shown such a request: session, place and length.
    Its answer is sent as gateware's are: a part at any address, then one in the image. Or it asks
    for ``more``: further bytes of the session are shown to it as they come, at most those of a head
    and two at a time, until it answers; so the content of a request is its own. With ``more`` and
    ``part`` what it answers is sent, and is a part of the response: while the session has unread
    bytes they are shown again, as soon as it may post a descriptor, and the next answer follows
    behind. The last part is an answer without ``more``. While 16 requests wait for firmware, others
    are answered with 503. A request is one of an image: ``switch`` waits
    until firmware has answered, or asked for more.

    **Each byte of a head is inspected once** by the finder while it comes in, however it is cut;
    one that comes in one piece, as most do, goes to a parser on the way. A head that came in pieces
    is read a second time when it is complete, and only then parsed: a byte at a time from a slow
    peer costs a byte's work each. An incomplete head costs its session's record.

    **Order.** Of a session one head is under way at a time, from its job to its answer. The answer
    is posted, and then the next head may be looked at, while the answer is still being sent: up to
    4 descriptors of a session are unanswered. An object in several pieces is posted piece by piece;
    no further head is looked at before the last one. Behind an answer that closes nothing of the
    session is parsed, and all that comes is consumed.

    **Late heads** are answered with 408 and a close, at the second sweep at the earliest.

    **Images.** ``switch`` takes the image that ``base``, ``index`` and ``mask`` say between two
    requests: each is answered from one image (:class:`~.images.Images`). The memory of the image
    before may be written when ``switching`` and ``held`` are 0: it is not looked up in, and no
    response that lies there is unacknowledged. ``enable`` = 0: a connection that sends anything is
    closed without an answer; responses that were begun are sent to their end.

    Races:

    1. ``CLOSED`` while a head is under way: the record stays until its job and its lane have
       reported; what they say is dropped, and then the session is released.
    2. FIN behind complete heads: they are answered first, and then FIN is. FIN within a head: it is
       not answered.
    3. The lane may report before the finder has read the end of its burst. Its slot takes no
       other job before both have reported. Those last beats may then be those of another session's
       bytes; nobody looks at them.
    4. A sweep finds a head late, and its rest comes before the 408 is posted: it is answered.
    5. ``switch`` while requests are under way: no other begins before they are answered, from the
       image before. The rest of an object in pieces comes from the image of its first one.
    6. ``enable`` falls while a request is under way: it is answered.
    7. ``CLOSED`` or FIN while firmware has a request: as 1 and 2. Firmware learns of neither; it
       may read the session's ring until it has answered. A session that ends before all of its
       content has come is shown no more: what firmware keeps of it gives way when a head of the
       same session number comes.

    Timing: 8 cycles a work (:class:`~trebuchet.cores.services.session.SessionMachine`), of which a
    request costs four. A lane is taken for a memory latency, a cycle a byte, and about 15 more.
    Back-pressure: while ``tx`` or ``free`` is not ready nothing is taken (the contract allows it).
    Reset: forgets every session; the engine must be reset with it. Bad input: see the model.
    """

    def __init__(
        self,
        width,
        sessions,
        segment_log2,
        *,
        lanes=1,
        unread=None,
        rest=False,
        limits=LIMITS,
        image=None,
        desk=False,
    ):
        self.width, self.rest = check_data_width(width), rest
        self.sessions = check_sessions(sessions)
        self.segment_log2 = check_segment_log2(segment_log2)
        if not isinstance(lanes, int) or not 1 <= lanes <= 8:
            raise ValueError(f"Number of lanes must be 1 to 8, not {lanes!r}")
        self.limits = limits._replace(head=min(limits.head, (unread or 1 << segment_log2) - 2))
        self.block = web_block(image, DESK_REGISTERS if desk else ())
        count = self.count = segment_log2 + 1  # bits of a number of bytes in a ring
        self.record_layout = record_layout(segment_log2, self.limits.head, desk)
        self.desk = Desk(count, self.limits.head) if desk else None
        self.machine = SessionMachine(self.record_layout, sessions, rest, lag=True)
        self.finder = HeadFinder(width, segment_log2, lanes + 1)
        self.lanes = [Lane(width, self.finder.burst, self.limits) for _ in range(lanes)]
        self.merge = StreamArbiter(parsed_layout(self.limits.head), lanes)
        self.answer = Answer(self.limits.head)
        self.memory = MemoryArbiter(lanes + 1, width, 0, prompt=range(lanes + 1))
        self.slots = Slots(self.finder, lanes, self.limits.head + 2)
        # One for each job there may be, so that the finder never holds memory's data back: a report
        # waits for the engine, and the engine for memory.
        self.results = StreamFifo(self.finder.result_layout, lanes + 1, registered=False)
        self.images = Images(sessions, image)
        self.said = Signal(self.answer.layout)  # the answer that is reported ...
        self.takes, self.by_desk = Signal(), Signal()  # ... is taken; it is firmware's
        super().__init__(
            {
                "service": In(ServiceSignature(rest)),
                "mem": Out(MemorySignature(width, self.memory.mem_tag_width)),
                "csr": In(CsrSignature(self.block)),
                "sweep": In(1),
                **({"irq": Out(1)} if desk else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.machine = machine = self.machine
        m.submodules.slots, m.submodules.finder = self.slots, self.finder
        m.submodules.results = self.results
        m.submodules.merge, m.submodules.answer = self.merge, self.answer
        m.submodules.memory, m.submodules.images = self.memory, self.images
        for k, lane in enumerate(self.lanes):
            m.submodules[f"lane{k}"] = lane
        self._connect(m)
        self._connect_desk(m)
        self._measure(m, machine.record)
        m.d.comb += [machine.new.eq(machine.record), machine.done.eq(1)]
        with m.If(machine.work):
            with m.Switch(machine.kind):
                with m.Case(Work.LISTED):
                    self._run(m, machine.record, machine.new)
                with m.Case(Work.EVENT):
                    self._event(m, machine.record, machine.new)
                with m.Case(Work.REQUEST):
                    self._report(m, machine.record, machine.new)
                with m.Default():
                    m.d.comb += machine.new.old.eq(self.waiting)
                    m.d.comb += machine.forget.eq(~self.waiting)
                    with m.If(self.waiting & machine.record.old):
                        m.d.comb += machine.new.late.eq(1)
        return m

    def _connect_desk(self, m):
        """Connect the CPU's part, if there is one."""
        desk, slots, answer = self.desk, self.slots, self.answer
        if desk is None:
            m.d.comb += [self.said.eq(answer.o.payload), slots.answered.eq(answer.o.valid)]
            m.d.comb += answer.o.ready.eq(self.takes)
            return
        m.submodules.desk = desk
        for register in DESK_REGISTERS:
            ours, theirs = (getattr(csr, register.name) for csr in (self.csr, desk.csr))
            m.d.comb += ours.eq(theirs) if register.access == "ro" else theirs.eq(ours)
        # Whose answer is reported is chosen when the report begins; firmware's is first.
        chosen, kept = Signal(), Signal()
        m.d.comb += chosen.eq(Mux(slots.report, kept, desk.o.valid))
        m.d.sync += kept.eq(chosen)
        m.d.comb += [
            self.irq.eq(desk.irq),
            self.by_desk.eq(chosen),
            slots.answered.eq(answer.o.valid | desk.o.valid),
            self.said.eq(Mux(chosen, desk.o.payload.answer, answer.o.payload)),
            answer.o.ready.eq(self.takes & ~chosen),
            desk.o.ready.eq(self.takes & chosen),
        ]
        asked = desk.i.payload
        m.d.comb += [
            asked.session.eq(self.machine.session),
            asked.addr.eq(
                Cat(self.machine.record.head[: self.segment_log2], self.machine.record.base)
            ),
        ]

    def _connect(self, m):
        machine, slots, csr, images = self.machine, self.slots, self.csr, self.images
        wiring.connect(m, machine.service, wiring.flipped(self.service))
        wiring.connect(m, slots.job, self.finder.job)
        wiring.connect(m, self.finder.result, self.results.i)
        wiring.connect(m, self.results.o, slots.result)
        wiring.connect(m, self.merge.o, self.answer.i)
        wiring.connect(m, self.finder.mem, self.memory.ports[0])
        wiring.connect(m, self.memory.mem, wiring.flipped(self.mem))
        beat = self.finder.beat
        for k, lane in enumerate(self.lanes):
            wiring.connect(m, lane.o, self.merge.i[k])
            wiring.connect(m, lane.mem, self.memory.ports[1 + k])
            m.d.comb += [
                lane.session.eq(slots.sessions[k]),
                lane.index.eq(images.now_index),
                lane.mask.eq(images.now_mask),
                lane.beat_valid.eq(self.finder.beat_valid & (beat.slot == k)),
                *(lane.beat[name].eq(beat[name]) for name in lane.beat_layout.members),
                slots.parsed[k].eq(lane.o.valid & lane.o.ready),
            ]
        m.d.comb += [
            self.finder.room.eq(Cat(*(lane.room for lane in self.lanes), 1)),
            self.answer.base.eq(images.now_base),
            images.of.eq(images.epoch),
            csr.switching.eq(images.switching),
            csr.held.eq(images.held),
            *(getattr(images, name).eq(getattr(csr, name)) for name in _SWITCHED),
            slots.answered_session.eq(self.said.session),
            machine.request.eq(slots.report),
            machine.asked.eq(slots.report_session),
            machine.sweep.eq(self.sweep),
            # The record stays as it is until both streams have been taken.
            machine.position.eq(machine.record.head),
        ]

    def _measure(self, m, state):
        """What there is to do for a session; what needs an adder is registered."""
        machine, largest = self.machine, self.limits.head + 2
        self.unread, self.seen = Signal(self.count), Signal(range(largest + 1))
        self.fresh, self.full = Signal(), Signal()
        self.starts, self.waiting = Signal(), Signal()
        self.has_rest, self.last = Signal(), Signal()
        self.behind = Signal(POSITION_WIDTH)  # the position behind what the work consumes
        unread, seen = Signal(self.count), Signal(range(largest + 1))
        m.d.comb += [
            unread.eq(state.latest - state.head[: self.count]),
            seen.eq(Mux(unread >= largest, largest, unread)),
        ]
        m.d.sync += [
            self.unread.eq(unread),
            self.seen.eq(seen),
            self.full.eq(unread >= largest),
            self.fresh.eq(seen != state.scanned),  # bytes that were not inspected
        ]
        pieces, partial = state.rest[PIECE_LOG2:], state.rest[:PIECE_LOG2].any()
        reports = machine.kind == Work.REQUEST
        m.d.comb += [
            self.has_rest.eq(pieces.any() | partial),
            self.last.eq(~pieces[1:].any() & ~(pieces[0] & partial)),
            self.behind.eq(state.head + Mux(reports, self.said.bytes, self.unread)),
        ]
        may, bytes_left = Signal(), Signal()
        may_post = state.out != TX_PER_SESSION
        slow = self.slow = Const(0) if self.desk is None else state.slow
        inspects = state.complete | self.full | self.fresh
        m.d.comb += [
            bytes_left.eq(Mux(slow, self.unread != 0, inspects)),
            may.eq(~state.busy & ~state.closing & ~state.dead & ~self.has_rest),
            self.starts.eq(may & bytes_left & may_post),
            self.waiting.eq(may & (slow | (self.unread != 0)) & ~bytes_left & ~state.eof),
        ]
        with m.If(state.dead):
            m.d.comb += machine.more.eq(~state.busy & (state.out == 0))
        with m.Elif(state.closing):
            m.d.comb += machine.more.eq(self.unread != 0)
        with m.Elif(~state.busy & may_post):
            m.d.comb += machine.more.eq(self.has_rest | bytes_left | state.eof | state.late)
        held = state.busy | (state.out != 0) | self.has_rest | state.eof | state.dead | slow
        m.d.comb += machine.idle.eq(~held & (self.unread == 0))

    def _event(self, m, state, new):
        event = self.service.event.payload
        with m.Switch(event.kind):
            with m.Case(EventKind.OPEN):  # of a record that is 0
                if self.rest:
                    m.d.comb += [
                        new.head.eq(event.position),
                        new.latest.eq(event.position[: self.count]),
                        new.closing.eq(~event.ok),
                    ]
            with m.Case(EventKind.DATA):
                m.d.comb += [
                    new.base.eq(event.base[self.segment_log2 :]),
                    new.latest.eq(event.position[: self.count]),
                ]
            with m.Case(EventKind.EOF):
                m.d.comb += new.eof.eq(1)
            with m.Case(EventKind.SENT):
                m.d.comb += [
                    new.out.eq(state.out - 1),
                    self.images.drop.eq(1),
                    self.images.of.eq(event.tag[0]),
                ]
                if self.desk is not None:
                    m.d.comb += [self.desk.drop.eq(1), self.desk.number.eq(event.tag[1:5])]
            with m.Case(EventKind.CLOSED):
                m.d.comb += new.dead.eq(1)

    def _run(self, m, state, new):
        """Do the first that there is to do; with nothing, the session was listed in vain."""
        machine, slots, last = self.machine, self.slots, self.last
        with m.If(~machine.more):
            pass
        with m.Elif(state.dead):
            m.d.comb += [
                machine.release.eq(1),
                self.images.drop.eq(self.has_rest),
                self.images.of.eq(state.rest_epoch),
            ]
        with m.Elif(state.closing):
            m.d.comb += [new.head.eq(self.behind), machine.consume.eq(1)]
        with m.Elif(self.has_rest):
            partial, pieces = state.rest[:PIECE_LOG2], state.rest[PIECE_LOG2:]
            addr = rest_address(state)
            after = Cat(addr[:PIECE_LOG2], (addr[PIECE_LOG2:] + 1)[: ADDR_WIDTH - PIECE_LOG2])
            m.d.comb += [
                new.rest.eq(Mux(last, 0, Cat(partial, (pieces - 1)[: len(pieces)]))),
                rest_address(new).eq(after),
            ]
            with m.If(last):
                m.d.comb += [new[name].eq(0) for name in SCANNED]
            length = Cat(partial & last.replicate(PIECE_LOG2), ~last | pieces[0])
            # The last piece is held by what held the rest.
            self._post(m, state, new, addr, length, last & state.rest_close, ~last)
            m.d.comb += self.images.of.eq(state.rest_epoch)
        with m.Elif((self.starts | (state.late & ~state.eof)) & ~self.csr.enable):
            self._post(m, state, new, 0, 0, 1)
            self._count(m, "refused")
        with m.Elif(self.starts & self.slow):
            self._hand_over(m, new, self.seen, 0)
        with m.Elif(self.starts):
            whole = self.full & (~self.fresh | (state.scanned == 0))
            m.d.comb += [
                slots.parse.eq((state.scanned == 0) | state.complete | ~self.fresh),
                slots.whole.eq(whole),
                slots.begin.eq(~self.images.switching),
                # Else it goes back to the end of the list.
                new.busy.eq(slots.free & ~self.images.switching),
                self.images.began.eq(new.busy),
            ]
        with m.Elif(state.late & ~state.eof):
            place = PLACES[Verdict.TIMEOUT, True]
            addr = Cat(C(place.offset, OFFSET_BITS), self.images.now_base[OFFSET_BITS:])
            self._post(m, state, new, addr, place.whole, 1)
            self._count(m, "timeouts")
        with m.Else():  # the peer has closed, and asks nothing
            self._post(m, state, new, 0, 0, 1)
        job = slots.new_job
        already = Mux(slots.parse, 0, state.scanned)
        m.d.comb += [
            slots.session.eq(machine.session),
            job.base.eq(state.base),
            job.position.eq((state.head + already)[: self.segment_log2]),
            job.length.eq(self.seen - already),
            job.state.eq(Mux(slots.parse, ScanState.START, state.scan)),
        ]

    def _post(self, m, state, new, addr, length, close, hold=1, buffer=0):
        """Post a descriptor, which holds the image of epoch ``images.of`` so many times more.

        ``buffer``: number of firmware's buffer that it lies in.
        """
        tx = self.machine.descriptor
        m.d.comb += [
            new.out.eq(state.out + 1),
            new.closing.eq(close),
            self.machine.post.eq(1),
            self.images.hold.eq(hold),
        ]
        m.d.sync += [
            tx.addr.eq(addr),
            tx.length.eq(length),
            tx.push.eq(length != 0),
            tx.close.eq(close),
            tx.tag.eq(Cat(self.images.of, buffer)),
        ]

    def _report(self, m, state, new):
        """The finder has looked at all bytes of a job, or an answer is there."""
        slots, answer = self.slots, self.said
        m.d.comb += [new.busy.eq(0), slots.reported.eq(1), self.images.ended.eq(1)]
        taken, more, part = Const(0), Const(0), Const(0)
        if self.desk is not None:
            # The request stays under way until firmware answers.
            taken = (answer.kind == Kind.UNUSUAL) & self.csr.slow & ~state.dead & self.desk.i.ready
            more = self.by_desk & self.desk.o.payload.more
            part = self.desk.o.payload.part
        with m.If(slots.is_scan):
            m.d.comb += [
                new.scan.eq(slots.scan.state),
                new.scanned.eq(state.scanned + slots.scanned),
                new.complete.eq(slots.scan.found),
            ]
        with m.Else():
            m.d.comb += [
                self.takes.eq(1),
                *(new[name].eq(0) for name in (*SCANNED, "old", "late")),
            ]
            with m.If(taken):
                m.d.comb += self.images.ended.eq(0)
                self._hand_over(m, new, answer.bytes, 1)
            with m.Elif(~state.dead):
                m.d.comb += [new.head.eq(self.behind), self.machine.consume.eq(1)]
                if self.desk is not None:
                    m.d.comb += new.slow.eq(more)
                with m.If(~more | part):
                    self._respond(m, state, new, more)

    def _respond(self, m, state, new, more):
        answer = self.said
        has_rest = answer.rest.any()
        m.d.comb += [
            new.rest.eq(answer.rest),
            rest_address(new).eq(Mux(has_rest, answer.rest_addr, 0)),
            new.rest_close.eq(answer.close),
            new.rest_epoch.eq(self.images.epoch),
        ]
        close = answer.close & ~has_rest
        buffer = Const(0)
        if self.desk is not None:
            buffer = Mux(self.by_desk, self.desk.o.payload.buffer, 0)
            m.d.comb += [self.desk.hold.eq(1), self.desk.number.eq(buffer)]
        self._post(m, state, new, answer.addr, answer.length, close, 1 + has_rest, buffer)
        kinds = [kind for kind in Kind if self.desk is not None or kind != Kind.BY_FIRMWARE]
        counters = Array(getattr(self.csr, kind.name.lower()) for kind in kinds)
        with m.If(~more):
            self._count(m, "requests")
            m.d.sync += counters[answer.kind].eq(counters[answer.kind] + 1)

    def _hand_over(self, m, new, length, first):
        """Show firmware bytes of the session, from the first that is not consumed on."""
        if self.desk is None:
            return
        i, may = self.desk.i, Signal()
        m.d.comb += [
            may.eq(first | ~self.images.switching),
            i.valid.eq(may),
            i.payload.length.eq(length),
            i.payload.first.eq(first),
            # Else it goes back to the end of the list.
            new.busy.eq(may & i.ready),
            self.images.began.eq(~first & may & i.ready),
        ]

    def _count(self, m, name):
        register = getattr(self.csr, name)
        m.d.sync += register.eq(register + 1)
