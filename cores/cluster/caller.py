"""A role whose work another board does."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...models.status import Status
from ..csr import Register, RegisterBlock, counter
from ..roles.contract import STATUS_WIDTH, JobKind, JobLayout, RoleSignature
from ..roles.fetch import OperandLayout
from ..stream import PacketSignature
from .contract import CHUNK, MAX_PEERS, HeaderLayout
from .transfer import Transfer

__all__ = ["CALLER_BLOCK", "Caller"]

CALLER_BLOCK = RegisterBlock(
    "caller",
    (
        Register("patience", "rw", 16, "milliseconds that a call may take; 0: any time", 20_000),
        counter("timeouts", "calls that were not replied to in time"),
        counter("strays", "messages of replies that nobody waited for, dropped"),
    ),
    "calls of a peer's role",
)


class Caller(wiring.Component):
    """Sends a job's operand to a peer and answers with the result that comes back.

    A role: :class:`~trebuchet.cores.roles.contract.RoleSignature` with :data:`CALLER_BLOCK`, and

    ===========  ====  ===========================================================================
    ``o``        Out   packet stream: messages of calls (:mod:`~.contract`)
    ``i``        In    packet stream: messages of replies of this peer
    ``tick``     In    1 for one cycle every millisecond
    ``expired``  Out   the call is given up: what ``o`` still offers is to be swallowed
    ===========  ====  ===========================================================================

    Parameters: ``peer``, its number on this board; ``width``, 32 or 64 bits, and ``tag_width`` of
    the memory port.

    The status is the peer's, ``NO_ROOM`` for a result that does not fit, ``BAD_TYPE`` for jobs of
    another kind than ``DATA`` (these belong to this board's role), or ``NO_ANSWER`` when
    ``patience`` milliseconds have passed. One job at a time. Latency: the peer's, and on this board
    two memory latencies and 30 cycles. Back-pressure: a call waits for ``o``, the peer's reply for
    the memory; while an answer waits, replies wait too. Reset: the call
    is forgotten, its reply will be a stray. Bad input: a message with another number or out of its
    place is dropped, so is what follows of that reply; a call's time then runs out.
    """

    # Race: the reply to a call that was given up may come when the next call waits for its own.
    # `number` tells them apart; it comes round after 255 others. The slot's reset leaves it alone,
    # or the first call before a reset and the first one after it had the same. The peer's server
    # takes nothing of a call before the last one is replied to; so what comes while a call is being
    # sent, which can only be of an older one, is dropped at once, or both would wait for ever.
    def __init__(self, peer, width=32, tag_width=2):
        if not isinstance(peer, int) or not 1 <= peer <= MAX_PEERS:
            raise ValueError(f"Number of a peer must be 1 to {MAX_PEERS}, not {peer!r}")
        self.peer, self.width, self.tag_width = peer, width, tag_width
        role = RoleSignature(CALLER_BLOCK, width, tag_width)
        super().__init__(
            {
                **role.members,
                "o": Out(PacketSignature(width)),
                "i": In(PacketSignature(width)),
                "tick": In(1),
                "expired": Out(1),
            }
        )

    #: The slot gives it one job, and the next when that is answered.
    outstanding = 1

    def elaborate(self, platform):
        m = Module()
        m.submodules.transfer = transfer = Transfer(self.width, self.tag_width)
        for name in ("i", "o", "mem"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(transfer, name))
        job, answer, status = Signal(JobLayout), self.answer.payload, Signal(STATUS_WIDTH)
        number, waits = Signal(8, reset_less=True), Signal()
        # No ports: for the proof's invariants.
        self.inside = {"job": job, "status": status, "number": number}
        self.place = Signal(16)  # offset of the reply's next message
        m.d.comb += [answer[name].eq(job[name]) for name in ("source", "session", "id")]
        m.d.comb += answer.status.eq(status)
        self._measure(m, waits)
        self._describe(m, job, number, transfer.send.payload)
        with m.FSM(name="call"):
            with m.State("IDLE"):
                m.d.comb += self.job.ready.eq(1)
                m.d.sync += [job.eq(self.job.payload), answer.length.eq(0), status.eq(Status.OK)]
                with m.If(self.job.valid):
                    m.next = "CHECK"
                with m.Elif(transfer.head.valid):  # nobody waits for it
                    m.d.comb += transfer.head.ready.eq(1)
                    m.next = "STRAY"
            with m.State("STRAY"):
                m.d.comb += transfer.drop.eq(1)
                m.d.sync += self.csr.strays.eq(self.csr.strays + 1)
                m.next = "IDLE"
            with m.State("CHECK"):
                m.d.sync += [number.eq(number + 1), self.place.eq(0)]
                m.next = "CALL"
                with m.If(job.kind != JobKind.DATA):
                    m.d.sync += status.eq(Status.BAD_TYPE)
                    m.next = "ANSWER"
            with m.State("CALL"):
                m.d.comb += [waits.eq(1), transfer.send.valid.eq(1)]
                with m.If(transfer.send.ready):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [waits.eq(1), transfer.head.ready.eq(transfer.sending)]
                with m.If(~transfer.sending):
                    m.next = "WAIT"
                with m.Elif(transfer.head.valid):
                    m.next = "OLD"
            with m.State("OLD"):
                m.d.comb += [waits.eq(1), transfer.drop.eq(1)]
                m.d.sync += self.csr.strays.eq(self.csr.strays + 1)
                m.next = "SEND"
            self._receive(m, transfer, job, number, status, waits)
            with m.State("ANSWER"):
                m.d.comb += self.answer.valid.eq(1)
                with m.If(self.answer.ready):
                    m.next = "IDLE"
        return m

    def _measure(self, m, waits):
        """The call's time; once it is over, it stays over until nobody waits."""
        self.time = time = Signal(16)  # no port: for the proof's invariants
        patience = self.csr.patience
        with m.If(~waits):
            m.d.sync += [time.eq(0), self.expired.eq(0)]
        with m.Elif(self.tick & (patience != 0)):
            m.d.sync += time.eq(time + 1)
            with m.If(time >= patience):
                m.d.sync += self.expired.eq(1)

    def _describe(self, m, job, number, send):
        call = send.call
        m.d.comb += [send.operand[name].eq(job[name]) for name, _ in OperandLayout]
        m.d.comb += [
            call.peer.eq(self.peer),
            call.kind.eq(job.kind),
            call.role.eq(job.role),
            call.number.eq(number),
            call.length.eq(job.length),
        ]

    def _receive(self, m, transfer, job, number, status, waits):
        """The reply, message by message."""
        header, head, place = Signal(HeaderLayout), transfer.head, self.place
        self.inside["header"] = header
        m.d.comb += [
            transfer.store.payload.addr.eq(job.result),
            transfer.store.payload.room.eq(job.room),
        ]
        with m.State("WAIT"):
            m.d.comb += waits.eq(1)
            with m.If(self.expired):
                m.d.sync += status.eq(Status.NO_ANSWER)
                m.d.sync += self.csr.timeouts.eq(self.csr.timeouts + 1)
                m.next = "ANSWER"
            with m.Else():
                m.d.comb += head.ready.eq(1)
                m.d.sync += header.eq(head.payload.header)
                with m.If(head.valid):
                    m.next = "LOOK"
        with m.State("LOOK"):
            m.d.comb += waits.eq(1)
            m.next = "STORE"
            with m.If((header.number != number) | (header.offset != place)):
                m.d.comb += transfer.drop.eq(1)
                m.d.sync += self.csr.strays.eq(self.csr.strays + 1)
                m.next = "WAIT"
        with m.State("STORE"):
            m.d.comb += [waits.eq(1), transfer.store.valid.eq(1)]
            with m.If(transfer.store.ready):
                m.next = "STORED"
        with m.State("STORED"):
            m.d.comb += waits.eq(1)
            with m.If(transfer.stored):
                m.next = "WAIT"
                with m.If(transfer.error):
                    # Its rest will be out of place, and the time runs out.
                    m.d.sync += self.csr.strays.eq(self.csr.strays + 1)
                with m.Else():
                    m.d.sync += place.eq(place + CHUNK // 16)
                    with m.If(transfer.overflow):
                        m.d.sync += status.eq(Status.NO_ROOM)
                    with m.Elif(header.last & (status == Status.OK)):
                        m.d.sync += status.eq(header.status)
                        with m.If(header.status == Status.OK):
                            m.d.sync += self.answer.payload.length.eq(transfer.length)
                    with m.If(header.last):
                        m.next = "ANSWER"
