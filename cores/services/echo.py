"""The echo service (RFC 862, TCP port 7), zero copy: it sends from the receive ring."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from ..buffers import NO_COLLISIONS
from ..memory import ADDR_WIDTH
from ..tcp.service import (
    LENGTH_WIDTH,
    POSITION_WIDTH,
    TX_PER_SESSION,
    EventKind,
    ServiceSignature,
)
from .discard import check_sessions
from .session import SessionMachine, Work

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
            }
        )
        self.machine = SessionMachine(self.state_layout, sessions, rest)
        # No ports: for proofs.
        self.ends = Memory(
            shape=POSITION_WIDTH, depth=sessions * TX_PER_SESSION, init=[], attrs=NO_COLLISIONS
        )
        self.rests = Signal()  # the last descriptor was answered, and all that came was posted

    # An event changes a session's record; each time that the session is listed one descriptor is
    # posted. While it has more to post it goes to the list's end.
    def elaborate(self, platform):
        m = Module()
        m.submodules.machine = machine = self.machine
        m.submodules.ends = self.ends
        self.end_read, self.end_write = self.ends.read_port(), self.ends.write_port()
        wiring.connect(m, machine.service, wiring.flipped(self.service))
        self.visit = Signal()  # second cycle of the work on a listed session
        m.d.comb += [
            machine.new.eq(machine.record),
            machine.done.eq((machine.kind == Work.EVENT) | self.visit),
            self.end_read.addr.eq(
                Cat(self.service.event.payload.tag[:2], self.service.event.payload.session)
            ),
            machine.idle.eq(self.rests),
        ]
        m.d.sync += self.visit.eq(machine.work & ~machine.done)
        self._measure(m, machine.record)
        with m.If(machine.work):
            m.d.sync += self.rests.eq(0)
            with m.If(machine.kind == Work.EVENT):
                self._event(m, machine.record, machine.new)
            with m.Elif(self.visit):
                self._post(m, machine.record, machine.new)
        return m

    def _event(self, m, state, new):
        machine, event = self.machine, self.service.event.payload
        m.d.sync += machine.position.eq(self.end_read.data)
        with m.Switch(event.kind):
            with m.Case(EventKind.OPEN):  # of a record that is 0
                if self.rest:
                    m.d.comb += [
                        new.posted.eq(event.position),
                        new.latest.eq(event.position[0 : self.segment_log2 + 1]),
                    ]
            with m.Case(EventKind.DATA):
                m.d.comb += [
                    new.base.eq(event.base[self.segment_log2 :]),
                    new.latest.eq(event.position[: self.segment_log2 + 1]),
                ]
            with m.Case(EventKind.EOF):
                m.d.comb += new.eof.eq(1)
            with m.Case(EventKind.SENT):
                m.d.comb += new.out.eq(state.out - 1)
                rests = Signal()
                if self.rest:  # it was the last one, and all that came was posted
                    same = state.latest == state.posted[: self.segment_log2 + 1]
                    last = (state.out == 1) & same & ~state.eof & ~state.dead
                    m.d.comb += rests.eq(event.ok & last)
                    m.d.sync += self.rests.eq(rests)
                # A given-up descriptor frees nothing: the session is about to end. The last one's
                # bytes are freed with `rest`.
                m.d.comb += machine.consume.eq(event.ok & ~rests)
            with m.Case(EventKind.CLOSED):
                m.d.comb += new.dead.eq(1)

    def _measure(self, m, state):
        """Registered: the bytes to post, those up to the ring's end, and the smaller of both."""
        log2 = self.segment_log2
        self.unposted = Signal(log2 + 1)
        self.to_end = Signal(log2 + 1)
        m.d.sync += [
            self.unposted.eq(state.latest - state.posted[: log2 + 1]),
            self.to_end.eq((1 << log2) - state.posted[:log2]),
        ]
        m.d.comb += self.machine.more.eq(
            Mux(
                state.dead,
                state.out == 0,
                (state.out < TX_PER_SESSION)
                & ~state.closing
                & (state.eof | (state.latest != state.posted[: log2 + 1])),
            )
        )

    def _post(self, m, state, new):
        machine, log2 = self.machine, self.segment_log2
        length = Signal(log2 + 1)
        wraps = Signal()
        end = Signal(POSITION_WIDTH)
        close = Signal()
        m.d.comb += [
            wraps.eq(self.unposted > self.to_end),
            length.eq(Mux(wraps, self.to_end, self.unposted)),
            close.eq(state.eof & ~wraps),
            end.eq(state.posted + length),
            self.end_write.addr.eq(Cat(state.next_tag, machine.session)),
            self.end_write.data.eq(end),
        ]
        m.d.sync += [
            machine.descriptor.addr.eq(Cat(state.posted[:log2], state.base)),
            machine.descriptor.length.eq(length),
            machine.descriptor.tag.eq(state.next_tag),
            machine.descriptor.push.eq(~wraps),
            machine.descriptor.close.eq(close),
        ]
        with m.If(state.dead):
            m.d.comb += machine.release.eq(machine.more)
        with m.Elif(machine.more):
            m.d.comb += [
                self.end_write.en.eq(1),
                machine.post.eq(1),
                new.posted.eq(end),
                new.next_tag.eq(state.next_tag + 1),
                new.out.eq(state.out + 1),
                new.closing.eq(close),
            ]
