"""A role whose work another board does."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...models.status import Status
from ..csr import Register, RegisterBlock, counter
from ..roles.contract import JobKind, JobLayout, RoleSignature
from ..roles.fetch import MemoryJoin, OperandReader, ResultWriter
from ..stream import PacketSignature
from ..tcp.service import LENGTH_WIDTH
from .contract import CHUNK, MAX_PEERS, HeaderLayout
from .messages import Cutter, Opener

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
    the memory; while a call is being sent, or its answer waits, replies wait too. Reset: the call
    is forgotten, its reply will be a stray. Bad input: a message with another number or out of its
    place is dropped, so is what follows of that reply; a call's time then runs out.
    """

    # Race: the reply to a call that was given up may come when the next call waits for its own.
    # `number` tells them apart; it comes round after 255 others.
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
        m.submodules.opener = opener = Opener(self.width)
        m.submodules.cutter = cutter = Cutter(self.width)
        m.submodules.reader = reader = OperandReader(self.width, self.tag_width)
        m.submodules.writer = writer = ResultWriter(self.width, self.tag_width)
        m.submodules.join = join = MemoryJoin(self.width, self.tag_width)
        wiring.connect(m, wiring.flipped(self.i), opener.i)
        wiring.connect(m, cutter.o, wiring.flipped(self.o))
        wiring.connect(m, reader.packet, cutter.data)
        wiring.connect(m, reader.mem, join.reader)
        wiring.connect(m, writer.mem, join.writer)
        wiring.connect(m, join.mem, wiring.flipped(self.mem))
        job, answer = Signal(JobLayout), self.answer.payload
        number, waits = Signal(8), Signal()
        self._measure(m, waits)
        self._describe(m, job, number, cutter, reader, writer)
        m.d.comb += [answer[name].eq(job[name]) for name in ("source", "session", "id")]
        with m.FSM(name="call"):
            with m.State("IDLE"):
                m.d.comb += self.job.ready.eq(1)
                m.d.sync += [job.eq(self.job.payload), answer.length.eq(0)]
                m.d.sync += [self.place.eq(0), self.status.eq(Status.OK)]
                with m.If(self.job.valid):
                    m.next = "CHECK"
                with m.Elif(opener.head.valid):
                    m.next = "STRAY"
            with m.State("STRAY"):  # nobody waits for it
                m.next = "TAKE"
                m.d.sync += self.calling.eq(0)
            with m.State("CHECK"):
                m.d.sync += [number.eq(number + 1), self.calling.eq(1)]
                m.next = "CALL"
                with m.If(job.kind != JobKind.DATA):
                    m.d.sync += self.status.eq(Status.BAD_TYPE)
                    m.next = "ANSWER"
            with m.State("CALL"):
                m.d.comb += [waits.eq(1), cutter.call.valid.eq(1)]
                with m.If(cutter.call.ready):
                    m.d.sync += self.reads.eq(job.length != 0)
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += waits.eq(1)
                with m.If(cutter.idle & ~self.reads):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += waits.eq(1)
                with m.If(self.expired):
                    m.d.sync += self.status.eq(Status.NO_ANSWER)
                    m.d.sync += self.csr.timeouts.eq(self.csr.timeouts + 1)
                    m.next = "ANSWER"
                with m.Elif(opener.head.valid):
                    m.next = "TAKE"
            self._take_reply(m, opener, writer, number, waits)
            with m.State("ANSWER"):
                m.d.comb += self.answer.valid.eq(1)
                with m.If(self.answer.ready):
                    m.next = "IDLE"
        return m

    def _measure(self, m, waits):
        """The call's time; once it is over, it stays over until nobody waits."""
        time = Signal(16)
        patience = self.csr.patience
        with m.If(~waits):
            m.d.sync += [time.eq(0), self.expired.eq(0)]
        with m.Elif(self.tick & (patience != 0)):
            m.d.sync += time.eq(time + 1)
            with m.If(time >= patience):
                m.d.sync += self.expired.eq(1)

    def _describe(self, m, job, number, cutter, reader, writer):
        """What is asked of cutter, reader and writer."""
        self.header = Signal(HeaderLayout)
        self.place = Signal(16)  # offset of the reply's next message
        self.status = Signal(8)
        self.calling = Signal()  # a reply is awaited
        self.reads = Signal()
        at = Signal(LENGTH_WIDTH)
        m.d.comb += [
            at.eq(self.header.offset << 4),
            writer.request.payload.addr.eq(job.result + at),
            writer.request.payload.room.eq(Mux(at < job.room, job.room - at, 0)),
            cutter.call.payload.peer.eq(self.peer),
            cutter.call.payload.kind.eq(job.kind),
            cutter.call.payload.number.eq(number),
            cutter.call.payload.length.eq(job.length),
            reader.request.valid.eq(self.reads),
            self.answer.payload.status.eq(self.status),
        ]
        m.d.comb += [
            reader.request.payload[n].eq(job[n]) for n, _ in reader.request.payload.shape()
        ]
        with m.If(reader.request.ready):
            m.d.sync += self.reads.eq(0)

    def _take_reply(self, m, opener, writer, number, waits):
        header, bare = self.header, Signal()
        status, answer = self.status, self.answer.payload
        with m.State("TAKE"):
            m.d.comb += [opener.head.ready.eq(1), waits.eq(self.calling)]
            m.d.sync += [header.eq(opener.head.payload.header), bare.eq(opener.head.payload.bare)]
            m.next = "LOOK"
        with m.State("LOOK"):
            m.d.comb += waits.eq(self.calling)
            with m.If(self.calling & (header.number == number) & (header.offset == self.place)):
                m.next = "REQUEST"
            with m.Else():
                m.d.sync += self.csr.strays.eq(self.csr.strays + 1)
                m.next = "SKIP"
                with m.If(bare):
                    m.next = "BACK"
        with m.State("SKIP"):
            m.d.comb += [opener.data.ready.eq(1), waits.eq(self.calling)]
            with m.If(opener.data.valid & opener.data.payload.last):
                m.next = "BACK"
        with m.State("BACK"):
            m.d.comb += waits.eq(self.calling)
            m.next = "IDLE"
            with m.If(self.calling):
                m.next = "WAIT"
        with m.State("REQUEST"):
            m.d.comb += [writer.request.valid.eq(1), waits.eq(1)]
            with m.If(writer.request.ready):
                m.next = "WRITE"
                with m.If(bare):
                    m.next = "FINISH"
        with m.State("WRITE"):
            m.d.comb += waits.eq(1)
            wiring.connect(m, opener.data, writer.packet)
            with m.If(opener.data.valid & opener.data.ready & opener.data.payload.last):
                m.next = "STORED"
        with m.State("FINISH"):
            m.d.comb += [writer.finish.eq(1), waits.eq(1)]
            m.next = "STORED"
        with m.State("STORED"):
            m.d.comb += waits.eq(1)
            with m.If(writer.done):
                m.next = "WAIT"
                with m.If(writer.error):
                    # Its rest will be out of place, and the time runs out.
                    m.d.sync += self.csr.strays.eq(self.csr.strays + 1)
                with m.Else():
                    m.d.sync += self.place.eq(self.place + CHUNK // 16)
                    with m.If(writer.overflow):
                        m.d.sync += status.eq(Status.NO_ROOM)
                    with m.If(header.last):
                        m.next = "ANSWER"
                        with m.If(~writer.overflow & (status == Status.OK)):
                            m.d.sync += status.eq(header.status)
                            with m.If(header.status == Status.OK):
                                m.d.sync += answer.length.eq((header.offset << 4) + writer.length)
