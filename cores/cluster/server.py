"""Runs the calls of other boards on this board's role."""

from amaranth import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...models.status import Status
from ..memory import ADDR_WIDTH, MemorySignature
from ..roles.contract import STATUS_WIDTH, AnswerLayout, JobKind, JobLayout
from ..stream import PacketSignature
from ..tcp.service import LENGTH_WIDTH
from .contract import CHUNK, CallLayout, HeaderLayout, check_peers
from .transfer import Transfer

__all__ = ["Server", "ServerMemory"]

_COUNTS = ("calls", "refused", "dropped")


class ServerMemory:
    """Where a server's buffers lie: an operand and a result for each peer, both powers of two.

    ``base`` is a multiple of the larger of the two; ``size`` bytes from there on are used.
    """

    def __init__(self, base, peers, operand_log2, result_log2):
        self.peers = check_peers(peers)
        for what, value in (("operand", operand_log2), ("result", result_log2)):
            if not isinstance(value, int) or not 8 <= value < LENGTH_WIDTH:
                raise ValueError(f"log2 of a peer's {what} must be 8 to 19, not {value!r}")
        align = 1 << max(operand_log2, result_log2)
        if not isinstance(base, int) or base % align:
            raise ValueError(f"Base of the server's memory must be a multiple of {align}")
        self.base, self.operand_log2, self.result_log2 = base, operand_log2, result_log2
        slot = 1 << result_log2
        self.results = -(-(base + (peers << operand_log2)) // slot) * slot
        self.size = self.results + (peers << result_log2) - base


class Server(wiring.Component):
    """Takes operands from peers, has the role work on them, sends the results back.

    ============  ====  =========================================================================
    ``i``         In    packet stream: messages of calls (:mod:`~.contract`), ``peer`` the caller
    ``o``         Out   packet stream: messages of replies
    ``job``       Out   stream of :data:`~trebuchet.cores.roles.contract.JobLayout`
    ``answer``    In    stream of :data:`~trebuchet.cores.roles.contract.AnswerLayout`
    ``mem``       Out   memory port
    ``calls``     Out   for a cycle: a call became a job
    ``refused``   Out   for a cycle: a call was answered without the role
    ``dropped``   Out   for a cycle: a message was dropped, see below
    ============  ====  =========================================================================

    Parameters: ``memory``, a :class:`ServerMemory`; ``source``, which the jobs carry; ``width``, 32
    or 64 bits, and ``tag_width`` of the memory port.

    A peer has one call under way: its caller waits for the reply. Calls of different peers are
    taken while others are in the role; their messages may alternate. A call that is larger than
    the operand's room is answered ``TOO_LARGE``, one of another kind than ``DATA`` ``BAD_TYPE``
    (the other kinds belong to a connection, which is another board's).

    Latency: memory latency + 12 cycles from the last beat to the job; from the answer to the first
    beat memory latency + 10. Back-pressure: ``i`` waits for the memory and, with a message of a
    peer whose last call is not replied to yet, for that reply: a caller that gave up waits so. A
    reply that is not taken holds the others. Reset: all calls forgotten. Bad input: a message of a
    peer that does not exist, out of its place or with an error mark, is dropped; the caller times
    out.
    """

    # Race: a caller that has given up may call again while its old job reads the operand or its
    # old result is read. `busy` closes it: from job to the end of the reply nothing is written.
    def __init__(self, memory, source, width=32, tag_width=2):
        self.memory, self.source, self.width, self.tag_width = memory, source, width, tag_width
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "job": Out(stream.Signature(JobLayout)),
                "answer": In(stream.Signature(AnswerLayout)),
                "mem": Out(MemorySignature(width, tag_width)),
                **{name: Out(1) for name in _COUNTS},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.transfer = transfer = Transfer(self.width, self.tag_width)
        for name in ("i", "o", "mem"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(transfer, name))
        self.busy = self._for_each_peer("busy", 1)
        refusal = stream.Signature(
            data.StructLayout({"peer": 8, "number": 8, "status": STATUS_WIDTH})
        ).create()
        self._receive(m, transfer, refusal)
        self._reply(m, transfer, refusal)
        return m

    def _for_each_peer(self, name, shape):
        """Registers, by a peer's number; the first is nobody's."""
        return Array(Signal(shape, name=f"{name}{p}") for p in range(self.memory.peers + 1))

    def _known(self, peer):
        """The number of a peer that exists, in as many bits as that takes."""
        return peer[: self.memory.peers.bit_length()]

    def _address(self, base, log2, peer):
        return base + ((peer - 1) << log2)

    def _receive(self, m, transfer, refusal):
        memory, job, head = self.memory, self.job.payload, transfer.head
        header = Signal(HeaderLayout)
        expected, large = self._for_each_peer("expected", 16), self._for_each_peer("large", 1)
        peer = self._known(header.peer)
        known = (header.peer != 0) & (header.peer <= memory.peers)
        numbers = self._for_each_peer("number", 8)  # of the call that the operand is of
        goes_on = (header.offset == expected[peer]) & (header.number == numbers[peer])
        in_place = (header.offset == 0) | goes_on
        length = Signal(LENGTH_WIDTH)
        operand = Signal(ADDR_WIDTH)
        other_kind = header.kind != JobKind.DATA
        # No ports: for the proof's invariants.
        self.inside = {"header": header, "length": length}
        self.inside |= {"expected": expected, "numbers": numbers, "large": large}
        m.d.comb += [
            operand.eq(self._address(memory.base, memory.operand_log2, peer)),
            transfer.store.payload.addr.eq(operand),
            transfer.store.payload.room.eq(1 << memory.operand_log2),
            job.kind.eq(JobKind.DATA),
            job.first.eq(1),
            job.role.eq(header.role),
            job.source.eq(self.source),
            job.id.eq(header.number | header.peer << 8),
            job.base.eq(operand),
            job.ring_log2.eq(memory.operand_log2),
            job.length.eq(length),
            job.result.eq(self._address(memory.results, memory.result_log2, peer)),
            job.room.eq(1 << memory.result_log2),
            refusal.payload.peer.eq(header.peer),
            refusal.payload.number.eq(header.number),
            refusal.payload.status.eq(Mux(other_kind, Status.BAD_TYPE, Status.TOO_LARGE)),
        ]
        with m.FSM(name="receive"):
            with m.State("IDLE"):
                m.d.comb += head.ready.eq(1)
                m.d.sync += header.eq(head.payload.header)
                with m.If(head.valid):
                    m.next = "LOOK"
            with m.State("LOOK"):
                with m.If(~known | ~in_place):
                    m.d.comb += [self.dropped.eq(1), transfer.drop.eq(1)]
                    m.next = "IDLE"
                with m.Elif(~self.busy[peer]):
                    with m.If(header.offset == 0):
                        m.d.sync += [large[peer].eq(0), numbers[peer].eq(header.number)]
                    m.next = "STORE"
            with m.State("STORE"):
                m.d.comb += transfer.store.valid.eq(1)
                with m.If(transfer.store.ready):
                    m.next = "STORED"
            with m.State("STORED"):
                m.d.sync += length.eq(transfer.length)
                with m.If(transfer.stored):
                    m.d.sync += [
                        expected[peer].eq(Mux(header.last, 0, header.offset + CHUNK // 16)),
                        large[peer].eq(large[peer] | transfer.overflow),
                    ]
                    m.next = "IDLE"
                    with m.If(transfer.error):
                        m.d.comb += self.dropped.eq(1)
                        m.d.sync += expected[peer].eq(0)
                    with m.Elif(header.last):
                        m.next = "JUDGE"
            with m.State("JUDGE"):
                refuse = other_kind | large[peer]
                m.d.comb += [self.job.valid.eq(~refuse), refusal.valid.eq(refuse)]
                m.d.comb += [
                    self.calls.eq(self.job.valid & self.job.ready),
                    self.refused.eq(refusal.valid & refusal.ready),
                ]
                with m.If(self.calls | self.refused):
                    m.d.sync += self.busy[peer].eq(1)
                    m.next = "IDLE"

    def _reply(self, m, transfer, refusal):
        memory, answer = self.memory, self.answer
        call = Signal(CallLayout)
        operand = transfer.send.payload.operand
        peer = self._known(call.peer)
        self.call = call  # no port: for the proof's invariants
        m.d.comb += [
            transfer.send.payload.call.eq(call),
            operand.base.eq(self._address(memory.results, memory.result_log2, peer)),
            operand.ring_log2.eq(memory.result_log2),
            operand.length.eq(call.length),
        ]
        with m.FSM(name="reply"):
            with m.State("IDLE"):
                m.d.comb += [refusal.ready.eq(1), answer.ready.eq(~refusal.valid)]
                m.d.sync += [
                    call.number.eq(answer.payload.id[:8]),
                    call.peer.eq(answer.payload.id[8:16]),
                    call.status.eq(answer.payload.status),
                    call.length.eq(answer.payload.length),
                ]
                with m.If(refusal.valid):
                    names = ("peer", "number", "status")
                    m.d.sync += [call[name].eq(refusal.payload[name]) for name in names]
                    m.d.sync += call.length.eq(0)
                with m.If(refusal.valid | answer.valid):
                    m.next = "CALL"
            with m.State("CALL"):
                m.d.comb += transfer.send.valid.eq(1)
                with m.If(transfer.send.ready):
                    m.next = "SEND"
            with m.State("SEND"):
                with m.If(~transfer.sending):
                    m.d.sync += self.busy[peer].eq(0)
                    m.next = "IDLE"
