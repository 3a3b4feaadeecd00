"""The echo service (RFC 862, TCP port 7), zero copy: it sends from the receive ring."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from ..buffers import NO_COLLISIONS, BlockFifo
from ..memory import ADDR_WIDTH
from ..tcp.service import (
    LENGTH_WIDTH,
    POSITION_WIDTH,
    TX_PER_SESSION,
    EventKind,
    EventLayout,
    ServiceSignature,
)
from .discard import check_sessions

__all__ = ["Echo", "check_segment_log2"]


def check_segment_log2(segment_log2):
    """Return ``segment_log2``; raise ``ValueError`` if one descriptor cannot cover a segment."""
    if not isinstance(segment_log2, int) or not 8 <= segment_log2 < LENGTH_WIDTH:
        raise ValueError(
            f"Segment size must be 2**8 to 2**{LENGTH_WIDTH - 1} bytes, not 2**{segment_log2!r}"
        )
    return segment_log2


class Echo(wiring.Component):
    """Sends back every byte of a connection, straight from the receive ring.

    Parameters
    ----------
    sessions : int
        Session numbers 0 to ``sessions - 1`` may come.
    segment_log2 : int
        log2 of the bytes of a segment of the receive pool.
    rest : bool
        Sessions are places (:mod:`~trebuchet.cores.tcp.service`): with the last ``SENT`` of all
        that came it says ``rest``.

    ===========  ====  ==========================================================================
    member       dir   meaning
    ===========  ====  ==========================================================================
    ``service``  In    :class:`~trebuchet.cores.tcp.service.ServiceSignature`
    ===========  ====  ==========================================================================

    A descriptor covers what lies between the last one and the newest byte or the ring's end. Up
    to :data:`~trebuchet.cores.tcp.service.TX_PER_SESSION` are out; bytes that come meanwhile go
    out together when one is answered. Bytes are freed when they are acknowledged, so a peer that
    sends and never reads stops itself by its own window. After the peer's FIN the rest is sent,
    then FIN.

    Throughput: 6 cycles an event and 7 a descriptor. Back-pressure: while ``tx`` or ``free`` is
    not ready nothing is taken (the contract allows it). Reset: forgets every session. Bad input:
    a session number out of range is cut to the table's address width. Relies on ``SENT`` events
    of a session coming in the order of its descriptors, as cumulative acknowledgements do.
    """

    def __init__(self, sessions, segment_log2, rest=False):
        self.rest = rest
        self.sessions = check_sessions(sessions)
        self.segment_log2 = check_segment_log2(segment_log2)
        super().__init__({"service": In(ServiceSignature(rest))})
        self.state_layout = data.StructLayout(
            {
                "base": ADDR_WIDTH - segment_log2,
                "posted": POSITION_WIDTH,  # first position that no descriptor covers
                "latest": segment_log2 + 1,  # low bits of the position after the newest byte
                "next_tag": 2,
                "out": range(TX_PER_SESSION + 1),  # unanswered descriptors
                "eof": 1,
                "closing": 1,  # FIN was posted
                "dead": 1,  # CLOSED has come
                "listed": 1,  # the number is in the list of sessions with work
            }
        )

    # One state machine, two kinds of work on a session's record: an event that changes it, or, when
    # no event waits, the next session of the active list, for which one descriptor is posted. A
    # session is on the list at most once; while it has more to post it goes to its end.
    def elaborate(self, platform):
        m = Module()
        m.submodules.table = table = Memory(
            shape=self.state_layout, depth=self.sessions, init=[], attrs=NO_COLLISIONS
        )
        m.submodules.ends = ends = Memory(
            shape=POSITION_WIDTH, depth=self.sessions * TX_PER_SESSION, init=[], attrs=NO_COLLISIONS
        )
        self.read, self.write = table.read_port(), table.write_port()
        self.end_read, self.end_write = ends.read_port(), ends.write_port()
        bits = max(1, (self.sessions - 1).bit_length())
        m.submodules.active = active = BlockFifo(width=bits, depth=self.sessions)
        event = Signal(EventLayout)
        state = Signal(self.state_layout)
        session = Signal(bits)
        running = Signal()
        svc = self.service
        m.d.comb += [
            self.write.addr.eq(session),
            self.write.data.eq(state),
            active.w_data.eq(session),
            svc.tx.payload.session.eq(session),
            svc.free.payload.session.eq(session),
            self.read.addr.eq(Mux(svc.event.valid, svc.event.payload.session, active.r_data)),
            self.end_read.addr.eq(Cat(svc.event.payload.tag[:2], svc.event.payload.session)),
        ]
        for port in (svc.tx, svc.free):
            with m.If(port.ready):
                m.d.sync += port.valid.eq(0)

        self._measure(m, state)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += svc.event.ready.eq(1)
                m.d.sync += [
                    event.eq(svc.event.payload),
                    session.eq(Mux(svc.event.valid, svc.event.payload.session, active.r_data)),
                    running.eq(~svc.event.valid),
                ]
                with m.If(svc.event.valid | active.r_rdy):
                    m.d.comb += active.r_en.eq(~svc.event.valid)
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += [
                    state.eq(self.read.data),
                    svc.free.payload.position.eq(self.end_read.data),
                ]
                with m.If(running):
                    m.next = "MEASURE"
                with m.Else():
                    m.next = "EVENT"
            with m.State("EVENT"):
                self._event(m, event, state)
                m.next = "LIST"
            with m.State("MEASURE"):
                m.next = "POST"
            with m.State("POST"):
                self._post(m, state)
                m.next = "LIST"
            self._list(m, state, active)
        return m

    def _event(self, m, event, state):
        free = self.service.free
        m.d.sync += free.payload.release.eq(0)
        if self.rest:
            m.d.sync += free.payload.rest.eq(0)
        with m.Switch(event.kind):
            with m.Case(EventKind.OPEN):
                m.d.sync += state.as_value().eq(0)
                if self.rest:
                    m.d.sync += [
                        state.posted.eq(event.position),
                        state.latest.eq(event.position[0 : self.segment_log2 + 1]),
                    ]
            with m.Case(EventKind.DATA):
                m.d.sync += [
                    state.base.eq(event.base[self.segment_log2 :]),
                    state.latest.eq(event.position[: self.segment_log2 + 1]),
                ]
            with m.Case(EventKind.EOF):
                m.d.sync += state.eof.eq(1)
            with m.Case(EventKind.SENT):
                m.d.sync += state.out.eq(state.out - 1)
                # A given-up descriptor frees nothing: the session is about to end.
                m.d.sync += free.valid.eq(event.ok)
                if self.rest:  # it was the last one, and all that came was posted
                    same = state.latest == state.posted[: self.segment_log2 + 1]
                    rests = (state.out == 1) & same & ~state.eof & ~state.dead
                    m.d.sync += free.payload.rest.eq(rests)
            with m.Case(EventKind.CLOSED):
                m.d.sync += state.dead.eq(1)

    def _measure(self, m, state):
        """Registered: the bytes to post, those up to the ring's end, and the smaller of both."""
        log2 = self.segment_log2
        self.unposted = Signal(log2 + 1)
        self.to_end = Signal(log2 + 1)
        m.d.sync += [
            self.unposted.eq(state.latest - state.posted[: log2 + 1]),
            self.to_end.eq((1 << log2) - state.posted[:log2]),
        ]
        self.more = Signal()  # what the list is for
        m.d.comb += self.more.eq(
            Mux(
                state.dead,
                state.out == 0,
                (state.out < TX_PER_SESSION)
                & ~state.closing
                & (state.eof | (state.latest != state.posted[: log2 + 1])),
            )
        )

    def _post(self, m, state):
        svc, log2 = self.service, self.segment_log2
        length = Signal(log2 + 1)
        wraps = Signal()
        end = Signal(POSITION_WIDTH)
        close = Signal()
        m.d.comb += [
            wraps.eq(self.unposted > self.to_end),
            length.eq(Mux(wraps, self.to_end, self.unposted)),
            close.eq(state.eof & ~wraps),
            end.eq(state.posted + length),
            self.end_write.addr.eq(Cat(state.next_tag, self.write.addr)),
            self.end_write.data.eq(end),
        ]
        m.d.sync += [
            state.listed.eq(0),
            svc.tx.payload.addr.eq(Cat(state.posted[:log2], state.base)),
            svc.tx.payload.length.eq(length),
            svc.tx.payload.tag.eq(state.next_tag),
            svc.tx.payload.push.eq(~wraps),
            svc.tx.payload.close.eq(close),
            svc.free.payload.release.eq(1),
            *([svc.free.payload.rest.eq(0)] if self.rest else []),
        ]
        with m.If(state.dead):
            m.d.sync += svc.free.valid.eq(self.more)
        with m.Elif(self.more):
            m.d.comb += self.end_write.en.eq(1)
            m.d.sync += [
                svc.tx.valid.eq(1),
                state.posted.eq(end),
                state.next_tag.eq(state.next_tag + 1),
                state.out.eq(state.out + 1),
                state.closing.eq(close),
            ]

    def _list(self, m, state, active):
        svc = self.service
        released = svc.free.valid & svc.free.payload.release
        with m.State("LIST"):
            put = Signal()
            m.d.comb += [
                put.eq(self.more & ~state.listed & ~released),
                active.w_en.eq(put),
            ]
            with m.If(put):
                m.d.sync += state.listed.eq(1)
            m.next = "WRITE"
        with m.State("WRITE"):
            m.d.comb += self.write.en.eq(1)
            m.next = "WAIT"
        with m.State("WAIT"):
            with m.If(~svc.tx.valid & ~svc.free.valid):
                m.next = "IDLE"
