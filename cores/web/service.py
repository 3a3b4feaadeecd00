"""The web service: answers HTTP/1.1 requests on a TCP port with objects that lie in memory."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...models.http.image import PLACES
from ...models.http.limits import LIMITS
from ...models.http.request import Verdict
from ..arbiter import StreamArbiter
from ..csr import CsrSignature
from ..memory import ADDR_WIDTH, MemorySignature
from ..memory_arbiter import MemoryArbiter
from ..services.discard import check_sessions
from ..services.echo import check_segment_log2
from ..services.session import SessionMachine, Work
from ..stream import check_data_width
from ..tcp.service import POSITION_WIDTH, TX_PER_SESSION, EventKind, ServiceSignature
from .answer import PIECE, Answer, Kind
from .finder import HeadFinder
from .lane import Lane, parsed_layout
from .registers import web_block
from .scan import ScanState
from .slots import Slots

__all__ = ["Web"]


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
    image : tuple of int
        Address of the image, of its index, and the number of buckets: what the registers say after
        reset.

    ===========  ====  ==========================================================================
    member       dir   meaning
    ===========  ====  ==========================================================================
    ``service``  In    :class:`~trebuchet.cores.tcp.service.ServiceSignature`
    ``mem``      Out   memory port that reads
    ``csr``      In    :func:`~.registers.web_block`
    ``sweep``    In    strobe: a head that was incomplete at the last one, too, is late
    ===========  ====  ==========================================================================

    **What is answered** is what :class:`trebuchet.models.http.server.Connection` answers, byte for
    byte, with two exceptions: a request that the model leaves to the firmware is answered with 503
    and a close; and a head of exactly the largest size, or one byte more, that has not come to its
    end is waited for.

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

    Races:

    1. ``CLOSED`` while a head is under way: the record stays until its job and its lane have
       reported; what they say is dropped, and then the session is released.
    2. FIN behind complete heads: they are answered first, and then FIN is. FIN within a head: it is
       not answered.
    3. The lane may report before the finder has read the end of its burst. Its slot takes no
       other job before both have reported. Those last beats may then be those of another session's
       bytes; nobody looks at them.
    4. A sweep finds a head late, and its rest comes before the 408 is posted: it is answered.
    5. ``base``, ``index`` and ``mask`` change while requests are under way: those are answered from
       a mixture. Write them while no object is replaced: before the port is open.

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
        image=(0, 0, 1),
    ):
        self.width, self.rest = check_data_width(width), rest
        self.sessions = check_sessions(sessions)
        self.segment_log2 = check_segment_log2(segment_log2)
        if not isinstance(lanes, int) or not 1 <= lanes <= 8:
            raise ValueError(f"Number of lanes must be 1 to 8, not {lanes!r}")
        self.limits = limits._replace(head=min(limits.head, (unread or 1 << segment_log2) - 2))
        self.block = web_block(*image)
        count = self.count = segment_log2 + 1  # bits of a number of bytes in a ring
        self.record_layout = data.StructLayout(
            {
                "base": ADDR_WIDTH - segment_log2,
                "head": POSITION_WIDTH,  # of the first byte that is not consumed
                "latest": count,  # low bits of the position after the newest byte
                "scanned": count,  # bytes from `head` on that were inspected
                "scan": ScanState,
                "complete": 1,  # they have the head's end
                "busy": 1,  # a head is under way
                "out": range(TX_PER_SESSION + 1),  # descriptors that are not answered
                "rest": 32,  # bytes of an object that are still to be posted ...
                "rest_addr": ADDR_WIDTH,  # ... from here on ...
                "rest_close": 1,  # ... and then FIN
                "eof": 1,
                "closing": 1,  # FIN was posted; what comes is ignored
                "dead": 1,  # CLOSED has come
                "old": 1,  # the last sweep found its head incomplete
                "late": 1,  # two sweeps in a row did
            }
        )
        self.machine = SessionMachine(self.record_layout, sessions, rest, lag=True)
        self.finder = HeadFinder(width, segment_log2, lanes + 1)
        self.lanes = [Lane(width, self.finder.burst, self.limits) for _ in range(lanes)]
        self.merge = StreamArbiter(parsed_layout(self.limits.head), lanes)
        self.answer = Answer(self.limits.head)
        self.memory = MemoryArbiter(lanes + 1, width, 0, prompt=range(lanes + 1))
        self.slots = Slots(self.finder, lanes, self.limits.head + 2)
        super().__init__(
            {
                "service": In(ServiceSignature(rest)),
                "mem": Out(MemorySignature(width, self.memory.mem_tag_width)),
                "csr": In(CsrSignature(self.block)),
                "sweep": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.machine = machine = self.machine
        m.submodules.slots, m.submodules.finder = self.slots, self.finder
        m.submodules.merge, m.submodules.answer = self.merge, self.answer
        m.submodules.memory = self.memory
        for k, lane in enumerate(self.lanes):
            m.submodules[f"lane{k}"] = lane
        self._connect(m)
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

    def _connect(self, m):
        machine, slots, csr = self.machine, self.slots, self.csr
        wiring.connect(m, machine.service, wiring.flipped(self.service))
        wiring.connect(m, slots.job, self.finder.job)
        wiring.connect(m, self.finder.result, slots.result)
        wiring.connect(m, self.merge.o, self.answer.i)
        wiring.connect(m, self.finder.mem, self.memory.ports[0])
        wiring.connect(m, self.memory.mem, wiring.flipped(self.mem))
        beat = self.finder.beat
        for k, lane in enumerate(self.lanes):
            wiring.connect(m, lane.o, self.merge.i[k])
            wiring.connect(m, lane.mem, self.memory.ports[1 + k])
            m.d.comb += [
                lane.session.eq(slots.sessions[k]),
                lane.index.eq(csr.index),
                lane.mask.eq(csr.mask),
                lane.beat_valid.eq(self.finder.beat_valid & (beat.slot == k)),
                *(lane.beat[name].eq(beat[name]) for name in lane.beat_layout.members),
                slots.parsed[k].eq(lane.o.valid & lane.o.ready),
            ]
        m.d.comb += [
            self.finder.room.eq(Cat(*(lane.room for lane in self.lanes), 1)),
            self.answer.base.eq(csr.base),
            slots.answered.eq(self.answer.o.valid),
            slots.answered_session.eq(self.answer.o.payload.session),
            machine.request.eq(slots.report),
            machine.asked.eq(slots.report_session),
            machine.sweep.eq(self.sweep),
            # The record stays as it is until both streams have been taken.
            machine.position.eq(machine.record.head),
        ]

    def _measure(self, m, state):
        """What there is to do for a session; what needs an adder is registered."""
        machine, largest = self.machine, self.limits.head + 2
        self.unread, self.seen = Signal(self.count), Signal(self.count)
        self.fresh, self.full = Signal(), Signal()
        self.starts, self.waiting = Signal(), Signal()
        unread, seen = Signal(self.count), Signal(self.count)
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
        may, bytes_left = Signal(), Signal()
        may_post = state.out != TX_PER_SESSION
        m.d.comb += [
            bytes_left.eq(state.complete | self.full | self.fresh),
            may.eq(~state.busy & ~state.closing & ~state.dead & ~state.rest.any()),
            self.starts.eq(may & bytes_left & may_post),
            self.waiting.eq(may & (self.unread != 0) & ~bytes_left & ~state.eof),
        ]
        with m.If(state.dead):
            m.d.comb += machine.more.eq(~state.busy & (state.out == 0))
        with m.Elif(state.closing):
            m.d.comb += machine.more.eq(self.unread != 0)
        with m.Elif(~state.busy & may_post):
            m.d.comb += machine.more.eq(state.rest.any() | bytes_left | state.eof | state.late)
        held = state.busy | (state.out != 0) | state.rest.any() | state.eof | state.dead
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
                m.d.comb += new.out.eq(state.out - 1)
            with m.Case(EventKind.CLOSED):
                m.d.comb += new.dead.eq(1)

    def _run(self, m, state, new):
        """Do the first that there is to do; with nothing, the session was listed in vain."""
        machine, slots = self.machine, self.slots
        last = Signal()
        m.d.comb += last.eq(state.rest <= PIECE)
        with m.If(~machine.more):
            pass
        with m.Elif(state.dead):
            m.d.comb += machine.release.eq(1)
        with m.Elif(state.closing):
            m.d.comb += [new.head.eq(state.head + self.unread), machine.consume.eq(1)]
        with m.Elif(state.rest.any()):
            left = Mux(last, 0, state.rest - PIECE)
            m.d.comb += [new.rest.eq(left), new.rest_addr.eq(state.rest_addr + PIECE)]
            length = Mux(last, state.rest[: PIECE.bit_length()], PIECE)
            self._post(m, state, new, state.rest_addr, length, last & state.rest_close)
        with m.Elif(self.starts):
            whole = self.full & (~self.fresh | (state.scanned == 0))
            m.d.comb += [
                slots.parse.eq((state.scanned == 0) | state.complete | ~self.fresh),
                slots.whole.eq(whole),
                slots.begin.eq(1),
                new.busy.eq(slots.free),  # else it goes back to the end of the list
            ]
        with m.Elif(state.late & ~state.eof):
            place = PLACES[Verdict.TIMEOUT, True]
            self._post(m, state, new, self.csr.base + place.offset, place.whole, 1)
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

    def _post(self, m, state, new, addr, length, close):
        tx = self.machine.descriptor
        m.d.comb += [
            new.out.eq(state.out + 1),
            new.closing.eq(close),
            self.machine.post.eq(1),
        ]
        m.d.sync += [
            tx.addr.eq(addr),
            tx.length.eq(length),
            tx.push.eq(length != 0),
            tx.close.eq(close),
        ]

    def _report(self, m, state, new):
        """The finder has looked at all bytes of a job, or an answer is there."""
        slots, answer = self.slots, self.answer.o.payload
        m.d.comb += [new.busy.eq(0), slots.reported.eq(1)]
        with m.If(slots.is_scan):
            m.d.comb += [
                new.scan.eq(slots.scan.state),
                new.scanned.eq(state.scanned + slots.scanned),
                new.complete.eq(slots.scan.found),
            ]
        with m.Else():
            m.d.comb += [
                self.answer.o.ready.eq(1),
                *(new[name].eq(0) for name in ("scanned", "scan", "complete", "old", "late")),
            ]
            with m.If(~state.dead):
                m.d.comb += [
                    new.head.eq(state.head + answer.bytes),
                    self.machine.consume.eq(1),
                    new.rest.eq(answer.rest),
                    new.rest_addr.eq(answer.rest_addr),
                    new.rest_close.eq(answer.close),
                ]
                close = answer.close & ~answer.rest.any()
                self._post(m, state, new, answer.addr, answer.length, close)
                self._count(m, "requests")
                counters = Array(getattr(self.csr, kind.name.lower()) for kind in Kind)
                m.d.sync += counters[answer.kind].eq(counters[answer.kind] + 1)

    def _count(self, m, name):
        register = getattr(self.csr, name)
        m.d.sync += register.eq(register + 1)
