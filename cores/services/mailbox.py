"""The mailbox: a service by which the CPU answers requests on a TCP port (HTTP status, port 80)."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature, fields
from ..memory import ADDR_WIDTH, MemorySignature
from ..stream import check_data_width
from ..tcp.service import POSITION_WIDTH, EventKind, ServiceSignature
from .discard import check_sessions
from .echo import check_segment_log2
from .mailbox_copy import REQUEST_BYTES, RESPONSE_BYTES, RequestCopier, ResponseCopier
from .mailbox_registers import MAILBOX_BLOCK
from .session import SessionMachine, Work

__all__ = ["MAILBOX_BLOCK", "REQUEST_BYTES", "RESPONSE_BYTES", "Mailbox"]


class Mailbox(wiring.Component):
    """Shows the CPU one request at a time and sends what it answers.

    Parameters
    ----------
    width : int
        Data path of the memory port, in bits.
    sessions : int
        Session numbers 0 to ``sessions - 1`` may come.
    segment_log2 : int
        log2 of the bytes of a segment of the receive pool.
    slots_base : int
        Address of the transmit slots, a multiple of 4,096: one of 4,096 bytes a session.
    unread : int or None
        Bytes certain to come while none is consumed (``TcpConfig.unread``); None: a segment.
    rest : bool
        Sessions are places (:mod:`~trebuchet.cores.tcp.service`). A connection gives its place, and
        with it its transmit slot, back when nothing of it is unread, shown or unanswered, and
        ``expect`` and ``tag`` are 0: as long as the CPU awaits more of it, it keeps the number by
        which the CPU knows it.

    ===========  ====  ==========================================================================
    member       dir   meaning
    ===========  ====  ==========================================================================
    ``service``  In    :class:`~trebuchet.cores.tcp.service.ServiceSignature`
    ``mem``      Out   memory port
    ``csr``      In    :data:`MAILBOX_BLOCK`
    ``irq``      Out   ``status.pending`` and ``irq_enable``
    ``sweep``    In    strobe: a request that was incomplete at the last one, too, is late
    ===========  ====  ==========================================================================

    What a request is, its first byte or the answer to the one before says:

    ==================  ==================  =====================================================
    ``expect.length``   first byte          the request
    ==================  ==================  =====================================================
    0                   9 or more           text: up to and with the first empty line (CR LF CR LF)
    0                   less than 9         binary: the 8 bytes of an SMP header
    n                   any                 the next n bytes
    ==================  ==================  =====================================================

    No request is longer than 1,024 bytes, or ``unread`` if that is less. ``partial`` says that it
    ended by that size, by the peer's FIN, or by time (``late``) before its end came. It is copied
    to an on-chip memory and freed in the ring. What follows it is the next request, looked at when
    the response to this one was acknowledged. Connections whose requests are not complete wait
    without disturbing others; complete ones wait in a list.

    ``expect`` is kept for the session when its response is posted: written before ``send``, it must
    stay until ``busy`` has fallen. Of a new connection it is 0, ``tag`` as well. So the CPU need
    not remember what it awaits from whom, if every request that it asks for has a tag. Races:

    1. FIN while n bytes are awaited: what came of them is shown as a ``partial`` request, even
       nothing (``request_length`` 0). Without n awaited, FIN after a request shows nothing.
    2. Reset (or time-out) while n bytes are awaited: the CPU is not told. The session's number
       comes back with a new connection, whose first request has tag 0.
    3. n is more than the size above: so many are shown, ``partial``, and the rest is what is
       looked at next.
    4. A request that is shown while its connection ends: ``gone``; ``expect`` is forgotten.

    5. The rest of a late request comes while it is shown: it is what is looked at next. If it came
       before the request was copied, the request is whole, and not late.

    A request is *late* if its session waits for the rest of it at two sweeps in a row. So a peer
    that sends a byte now and then holds up nothing, and one that sends nothing at all, and is
    asked for nothing, is left alone.

    The firmware's loop, and every access it needs::

        if (!(status & PENDING)) return;             // or the interrupt
        n = request_length;
        for (i = 0; i < (n + 3) / 4; i++) {
            rx_index = i;                            // rx_data follows two cycles later
            word[i] = rx_data;
        }
        for (i = 0; i < (len + 3) / 4; i++) {        // only while PENDING; starts at word 0
            tx_data = response[i];
            tx_write = 1;                            // appends, and moves on by itself
        }
        expect = 0;                                  // or what comes next from this session
        send = GO | CLOSE | len;                     // or drop = 1; PENDING falls

    ``CLOSE`` belongs to every answer to a ``partial`` request. A length of 0 without ``CLOSE``
    sends nothing and goes to the next request. ``gone`` changes nothing in the loop. A write to
    ``tx_write``, ``send`` or ``drop`` while nothing is pending does nothing.

    A CPU that never answers holds up this service's other connections and nothing else: events are
    taken, and connections that end are released, also the one whose request is shown.

    Timing: 9 cycles an event; a memory latency and 7 cycles for a beat of request, 5 cycles for 4
    bytes of response. Back-pressure: while ``tx`` or ``free`` is not ready nothing is taken (the
    contract allows it). Reset: forgets every session; the engine must be reset with it. Bad
    input: see above.
    """

    def __init__(self, width, sessions, segment_log2, slots_base, unread=None, rest=False):
        self.rest = rest
        self.width = check_data_width(width)
        self.sessions = check_sessions(sessions)
        self.segment_log2 = check_segment_log2(segment_log2)
        segment = 1 << segment_log2
        if unread is not None and (not isinstance(unread, int) or not 8 <= unread <= segment):
            raise ValueError(f"Bytes unread must be 8 to {segment}, not {unread!r}")
        self.largest = min(REQUEST_BYTES, unread or segment)
        if not isinstance(slots_base, int) or slots_base % RESPONSE_BYTES or slots_base < 0:
            raise ValueError(
                f"Base of the slots must be a multiple of {RESPONSE_BYTES}, not {slots_base!r}"
            )
        self.slots_base = slots_base
        super().__init__(
            {
                "service": In(ServiceSignature(rest)),
                "mem": Out(MemorySignature(width)),
                "csr": In(CsrSignature(MAILBOX_BLOCK)),
                "irq": Out(1),
                "sweep": In(1),
            }
        )
        self.state_layout = data.StructLayout(
            {
                "base": ADDR_WIDTH - segment_log2,
                "consumed": POSITION_WIDTH,
                "latest": segment_log2 + 1,  # low bits of the position after the newest byte
                "fresh": 1,  # there may be unread bytes that were not looked at
                "held": 1,  # its request is being copied, shown or answered
                "out": 1,  # its descriptor is unanswered
                "eof": 1,
                "closing": 1,  # FIN or RST was posted; what comes is ignored
                "dead": 1,  # CLOSED has come
                "expect": 11,
                "tag": 2,
                "old": 1,  # the last sweep found its request incomplete
                "late": 1,  # two sweeps in a row did
            }
        )
        self.machine = SessionMachine(self.state_layout, sessions, rest, lag=True)

    # Two state machines. The desk (`_desk`) has the one request that is copied, shown or
    # answered; the session machine has a record worked on for an event, for what the desk
    # reports, or because its session is listed or swept. All decisions about a session fall in
    # that one place, so the end of a connection may come at any moment of its request's life.
    def elaborate(self, platform):
        m = Module()
        m.submodules.machine = machine = self.machine
        m.submodules.request = self.request = RequestCopier(
            self.width, self.segment_log2, self.largest
        )
        m.submodules.response = self.response = ResponseCopier(self.width)
        self.guest = Signal.like(machine.session)  # the session whose request is on the desk
        self.report = Signal()  # the desk waits for a decision on the guest
        self.copied = Signal()  # it is about the request, not about the response
        self.desk_free = Signal()
        self.shown = Signal()
        self.gone = Signal()
        self.drop = Signal()
        self.close = Signal()
        self.length = Signal(13)
        self.written = Signal()  # the desk's report: the response is in memory
        self.final = Signal()  # the peer had closed when copying began
        self.tag = Signal(2)  # of the request on the desk
        self.late = Signal()  # it had been late when copying began
        # Decisions, for one cycle:
        self.invite = Signal()  # copy the request of the session at work
        self.show = Signal()
        self.answer = Signal()  # write the response to memory
        self.dismiss = Signal()
        self._measure(m, machine.record)
        self._connect(m)
        with m.FSM(name="desk"):
            self._desk(m)
        m.d.comb += [machine.new.eq(machine.record), machine.done.eq(1)]
        with m.If(machine.work):
            with m.Switch(machine.kind):
                with m.Case(Work.LISTED):
                    self._run(m, machine.record, machine.new)
                with m.Case(Work.EVENT):
                    self._event(m, machine.record, machine.new)
                with m.Case(Work.REQUEST):
                    self._decide(m, machine.record, machine.new)
                with m.Default():
                    self._sweep(m, machine.record, machine.new)
        return m

    def _connect(self, m):
        machine, mem, csr = self.machine, self.mem, self.csr
        request, response = self.request, self.response
        partial = ~request.matched
        late = self.late & partial
        wiring.connect(m, machine.service, wiring.flipped(self.service))
        m.d.comb += [
            machine.request.eq(self.report),
            machine.asked.eq(self.guest),
            machine.sweep.eq(self.sweep),
            # The record stays as it is until both streams have been taken.
            machine.position.eq(machine.record.consumed),
            machine.descriptor.addr.eq(self._slot_address(machine.session)),
            # The copiers never work at the same time.
            mem.cmd.valid.eq(request.mem_cmd.valid | response.mem_cmd.valid),
            mem.cmd.payload.eq(
                Mux(response.mem_cmd.valid, response.mem_cmd.payload, request.mem_cmd.payload)
            ),
            request.mem_cmd.ready.eq(mem.cmd.ready),
            response.mem_cmd.ready.eq(mem.cmd.ready),
            request.mem_rdata.valid.eq(mem.rdata.valid),
            request.mem_rdata.payload.eq(mem.rdata.payload),
            mem.rdata.ready.eq(request.mem_rdata.ready),
            mem.wdata.valid.eq(response.mem_wdata.valid),
            mem.wdata.payload.eq(response.mem_wdata.payload),
            response.mem_wdata.ready.eq(mem.wdata.ready),
            response.written.eq(mem.wdone.valid),
            mem.wdone.ready.eq(1),
            request.base.eq(machine.record.base),
            request.offset.eq(machine.record.consumed[: self.segment_log2]),
            request.available.eq(self.unread),
            request.expect.eq(machine.record.expect),
            request.counted.eq(self.awaits),
            request.start.eq(self.invite),
            request.index.eq(csr.rx_index),
            csr.rx_data.eq(request.word),
            csr.request_length.eq(request.length),
            csr.session.eq(self.guest),
            csr.status.eq(Cat(self.shown, partial, self.gone, ~self.desk_free, self.tag, late)),
            self.irq.eq(self.shown & csr.irq_enable),
            response.clear.eq(self.show),
            response.append.eq(csr.tx_write & self.shown),
            response.word.eq(csr.tx_data),
            response.addr.eq(self._slot_address(self.guest)),
            response.length.eq(self.length),
            response.start.eq(self.answer),
        ]

    def _slot_address(self, session):
        offset = session << (RESPONSE_BYTES.bit_length() - 1)
        # An adder only where the slots' base is not aligned to their total size.
        aligned = self.slots_base & ((1 << len(offset)) - 1) == 0
        return self.slots_base | offset if aligned else self.slots_base + offset

    def _count(self, m, name):
        register = getattr(self.csr, name)
        m.d.sync += register.eq(register + 1)

    def _measure(self, m, state):
        """How much is unread (registered), and whether there is something to do."""
        low = self.segment_log2 + 1
        self.unread = Signal(low)
        self.awaits = Signal()  # a number of bytes
        self.waiting = Signal()  # for the rest of a request
        m.d.comb += self.awaits.eq(state.expect.any())
        idle = ~state.held & ~state.out & ~state.dead & ~state.closing & ~state.eof
        m.d.comb += self.waiting.eq(idle & ((self.unread != 0) | self.awaits))
        m.d.sync += self.unread.eq(state.latest - state.consumed[:low])
        with m.If(state.dead):
            m.d.comb += self.machine.more.eq(~state.held & ~state.out)
        with m.Elif(state.closing):
            m.d.comb += self.machine.more.eq(self.unread != 0)
        with m.Elif(~state.held & ~state.out):
            look = (state.fresh & (self.unread != 0)) | state.eof | state.late
            m.d.comb += self.machine.more.eq(look)
        busy = state.held | state.out | state.expect.any() | state.tag.any()
        ends = state.dead | state.eof | (self.unread != 0)
        m.d.comb += self.machine.idle.eq(~busy & ~ends)

    def _desk(self, m):
        csr = self.csr
        with m.State("FREE"):
            m.d.comb += self.desk_free.eq(1)
            m.d.sync += [self.guest.eq(self.machine.session), self.gone.eq(0)]
            with m.If(self.invite):
                m.next = "COPY"
        with m.State("COPY"):
            with m.If(self.request.done):
                m.next = "COPIED"
        with m.State("COPIED"):
            m.d.comb += [self.report.eq(1), self.copied.eq(1)]
            with m.If(self.show):
                self._count(m, "requests")
                m.next = "SHOWN"
            with m.Elif(self.dismiss):
                m.next = "FREE"
        with m.State("SHOWN"):
            sent = fields(csr, "send")
            m.d.comb += self.shown.eq(1)
            m.d.sync += [
                self.drop.eq(csr.drop),
                self.close.eq(sent.close),
                self.length.eq(Mux(sent.length > RESPONSE_BYTES, RESPONSE_BYTES, sent.length)),
            ]
            with m.If(csr.drop | sent.go):
                m.next = "ANSWERED"
        with m.State("ANSWERED"):
            # Once it is gone, the guest's number may belong to another connection already.
            m.d.comb += self.report.eq(~self.gone)
            with m.If(self.gone):
                self._count(m, "dropped")
                m.next = "FREE"
            with m.Elif(self.dismiss):
                m.next = "FREE"
            with m.Elif(self.answer):
                m.next = "WRITE"
        with m.State("WRITE"):
            with m.If(self.response.done):
                m.next = "WRITTEN"
        with m.State("WRITTEN"):
            m.d.comb += [self.report.eq(1), self.written.eq(1)]
            with m.If(self.dismiss):
                m.next = "FREE"

    def _sweep(self, m, state, new):
        # The number may be nobody's; and what else there is to do is listed already.
        m.d.comb += [new.old.eq(self.waiting), self.machine.forget.eq(~self.waiting)]
        with m.If(self.waiting & state.old):
            m.d.comb += new.late.eq(1)

    def _event(self, m, state, new):
        event = self.service.event.payload
        with m.Switch(event.kind):
            with m.Case(EventKind.OPEN):  # of a record that is 0
                if self.rest:
                    m.d.comb += [
                        new.consumed.eq(event.position),
                        new.latest.eq(event.position[: self.segment_log2 + 1]),
                        new.closing.eq(~event.ok),
                    ]
            with m.Case(EventKind.DATA):
                m.d.comb += [
                    new.base.eq(event.base[self.segment_log2 :]),
                    new.latest.eq(event.position[: self.segment_log2 + 1]),
                    new.fresh.eq(1),
                ]
            with m.Case(EventKind.EOF):
                m.d.comb += new.eof.eq(1)
            with m.Case(EventKind.SENT):
                m.d.comb += new.out.eq(0)
            with m.Case(EventKind.CLOSED):
                m.d.comb += new.dead.eq(1)
                with m.If(state.held & self.shown):  # nothing of it is in use any more
                    m.d.comb += new.held.eq(0)
                    m.d.sync += self.gone.eq(1)

    def _consume(self, m, state, new, count):
        m.d.comb += [
            new.consumed.eq(state.consumed + count),
            new.fresh.eq(1),
            self.machine.consume.eq(1),
        ]

    def _post(self, m, new, length, close, abort):
        tx = self.machine.descriptor
        m.d.comb += [new.out.eq(1), new.closing.eq(close | abort), self.machine.post.eq(1)]
        m.d.sync += [
            tx.length.eq(length),
            tx.push.eq(length != 0),
            tx.close.eq(close),
            tx.abort.eq(abort),
        ]

    def _decide(self, m, state, new):
        request = self.request
        with m.If(~self.copied):
            m.d.comb += Cat(new.expect, new.tag).eq(self.csr.expect)
        with m.If(state.dead):
            m.d.comb += [self.dismiss.eq(1), new.held.eq(0)]
            with m.If(~self.copied):
                self._count(m, "dropped")
        with m.Elif(self.copied):
            with m.If(request.matched | request.full | self.final | self.late):
                m.d.comb += [self.show.eq(1), new.old.eq(0), new.late.eq(0)]
                self._consume(m, state, new, request.length)
            with m.Else():
                m.d.comb += [self.dismiss.eq(1), new.held.eq(0)]
        with m.Elif(~self.written & ~self.drop & (self.length != 0)):
            m.d.comb += self.answer.eq(1)
        with m.Else():
            m.d.comb += [self.dismiss.eq(1), new.held.eq(0)]
            with m.If(self.drop):
                self._count(m, "dropped")
                self._post(m, new, 0, 0, 1)
            with m.Elif(self.written | self.close):
                self._count(m, "responses")
                self._post(m, new, self.length, self.close, 0)

    def _run(self, m, state, new):
        machine = self.machine
        with m.If(~machine.more):
            pass
        with m.Elif(state.dead):
            m.d.comb += machine.release.eq(1)
        with m.Elif(state.closing):
            self._consume(m, state, new, self.unread)
        with m.Elif((self.unread == 0) & ~self.awaits):  # the peer has closed, and asks nothing
            self._post(m, new, 0, 1, 0)
        with m.Elif(self.desk_free):  # else it goes back to the end of the list
            m.d.comb += [self.invite.eq(1), new.held.eq(1), new.fresh.eq(0)]
            m.d.sync += [
                self.final.eq(state.eof),
                self.late.eq(state.late),
                self.tag.eq(state.tag),
            ]
