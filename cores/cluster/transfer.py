"""Operands and results between memory and messages, both ways: what a caller and a server share."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..memory import MemorySignature
from ..roles.fetch import MemoryJoin, OperandLayout, OperandReader, ResultLayout, ResultWriter
from ..stream import PacketSignature
from ..tcp.service import LENGTH_WIDTH
from .contract import CallLayout
from .messages import OpenedLayout, Reassembler, Segmenter

__all__ = ["SendLayout", "Transfer"]

#: What is to be sent, and where in memory it lies; ``length`` is in both.
SendLayout = data.StructLayout({"call": CallLayout, "operand": OperandLayout})


class Transfer(wiring.Component):
    """Sends bytes of memory as messages, and stores the bytes of messages that come.

    ============  ====  =========================================================================
    ``o``         Out   packet stream: messages (:mod:`~.contract`)
    ``i``         In    packet stream: messages
    ``mem``       Out   memory port
    ``send``      In    stream of :data:`SendLayout`
    ``sending``   Out   something is being sent
    ``head``      Out   stream of :data:`~.messages.OpenedLayout`: header of the next message; after
                        it was taken, either ``store`` or ``drop`` says what becomes of its bytes
    ``store``     In    stream of :data:`~trebuchet.cores.roles.fetch.ResultLayout`: where the whole
                        operand or result goes; the message's part at the offset in its header
    ``drop``      In    for a cycle, with no ``store`` on offer: they are dropped
    ``stored``    Out   for a cycle: they are in memory
    ``length``    Out   offset of the message's part and the bytes stored of it; ``overflow`` and
                        ``error`` as of :class:`~trebuchet.cores.roles.fetch.ResultWriter`; all
                        valid with ``stored``
    ============  ====  =========================================================================

    Parameters: ``width``, 32 or 64 bits, and ``tag_width`` of the memory port. Latency, throughput
    and back-pressure are the parts'. Reset: idle; what was being sent has no end
    (:class:`~.messages.AbortGuard`), what was coming is skipped to its end. Bad input: as the parts
    do.
    """

    def __init__(self, width=32, tag_width=2):
        self.width, self.tag_width = width, tag_width
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "mem": Out(MemorySignature(width, tag_width)),
                "send": In(stream.Signature(SendLayout)),
                "sending": Out(1),
                "head": Out(stream.Signature(OpenedLayout)),
                "store": In(stream.Signature(ResultLayout)),
                "drop": In(1),
                "stored": Out(1),
                "length": Out(LENGTH_WIDTH),
                "overflow": Out(1),
                "error": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.opener = opener = Reassembler(self.width)
        m.submodules.cutter = cutter = Segmenter(self.width)
        m.submodules.reader = reader = OperandReader(self.width, self.tag_width)
        m.submodules.writer = writer = ResultWriter(self.width, self.tag_width)
        m.submodules.join = join = MemoryJoin(self.width, self.tag_width)
        wiring.connect(m, wiring.flipped(self.i), opener.i)
        wiring.connect(m, cutter.o, wiring.flipped(self.o))
        wiring.connect(m, reader.packet, cutter.data)
        wiring.connect(m, reader.mem, join.reader)
        wiring.connect(m, writer.mem, join.writer)
        wiring.connect(m, join.mem, wiring.flipped(self.mem))
        self._send(m, cutter, reader)
        self._receive(m, opener, writer)
        return m

    def _send(self, m, cutter, reader):
        send, reads = self.send, Signal()
        self.reads = reads  # no port: for the proof's invariants
        m.d.comb += [
            cutter.call.valid.eq(send.valid & ~reads),
            cutter.call.payload.eq(send.payload.call),
            send.ready.eq(cutter.call.ready & ~reads),
            reader.request.valid.eq(reads),
            self.sending.eq(~cutter.idle | reads),
        ]
        with m.If(send.valid & send.ready):
            m.d.sync += [
                reader.request.payload.eq(send.payload.operand),
                reads.eq(send.payload.operand.length != 0),
            ]
        with m.Elif(reader.request.ready):
            m.d.sync += reads.eq(0)

    def _receive(self, m, opener, writer):
        head, given, bare = self.head, opener.data, Signal()
        at, place = Signal(LENGTH_WIDTH), self.store.payload
        self.bare, self.at = bare, at  # no ports: for the proof's invariants
        m.d.comb += [
            head.payload.eq(opener.head.payload),
            writer.request.payload.addr.eq(place.addr + at),
            writer.request.payload.room.eq(Mux(at < place.room, place.room - at, 0)),
            self.length.eq(at + writer.length),
            self.overflow.eq(writer.overflow),
            self.error.eq(writer.error),
        ]
        with m.FSM():
            with m.State("HEAD"):
                m.d.comb += [head.valid.eq(opener.head.valid), opener.head.ready.eq(head.ready)]
                m.d.sync += [
                    bare.eq(head.payload.bare),
                    at.eq(head.payload.header.offset << 4),
                ]
                with m.If(head.valid & head.ready):
                    m.next = "DECIDE"
            with m.State("DECIDE"):
                m.d.comb += [
                    writer.request.valid.eq(self.store.valid),
                    self.store.ready.eq(writer.request.ready),
                ]
                with m.If(self.store.valid & self.store.ready):
                    m.next = "WRITE"
                    with m.If(bare):
                        m.next = "FINISH"
                with m.Elif(self.drop):
                    m.next = "SKIP"
                    with m.If(bare):
                        m.next = "HEAD"
            with m.State("SKIP"):
                m.d.comb += given.ready.eq(1)
                with m.If(given.valid & given.payload.last):
                    m.next = "HEAD"
            with m.State("WRITE"):
                wiring.connect(m, given, writer.packet)
                with m.If(given.valid & given.ready & given.payload.last):
                    m.next = "STORED"
            with m.State("FINISH"):
                m.d.comb += writer.finish.eq(1)
                m.next = "STORED"
            with m.State("STORED"):
                m.d.comb += self.stored.eq(writer.done)
                with m.If(writer.done):
                    m.next = "HEAD"
