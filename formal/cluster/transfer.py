"""Proof of ``Transfer`` in ``cores/cluster/transfer.py``: what lies between its parts.

The five parts are hollow (:mod:`~trebuchet.formal.kit.parts`): they answer as they like, within the
stream rules. For any such parts, by induction: each ``send`` becomes one call of the cutter, and
one request of the reader unless it is empty; each message that comes is offered, then stored or
dropped as it was said, whole, before the next is offered; what is stored of it goes to the place
of the whole plus the offset in its header, and the room is what is left of the whole room from
there, so nothing is written outside; ``length`` counts from the beginning of the whole.

With ``cluster_segmenter_*``, ``cluster_reassembler_*`` and the proofs of the reader and the writer
this says what the data sheet does. Not proved: the parts; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value

from ..kit.parts import Opened, moves, same, same_memory
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

PARTS = ("Reassembler", "Segmenter", "OperandReader", "ResultWriter", "MemoryJoin")
PHASES = ("HEAD", "DECIDE", "SKIP", "WRITE", "FINISH", "STORED")


class TransferProof(Elaboratable):
    def __init__(self, cores, dut):
        self.cores, self.dut = cores, dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        core = Opened(self.cores, dut, platform, hollowed=PARTS)
        m.submodules.dut = core.fragment
        opener, cutter, reader, writer, join = (core.part(name) for name in PARTS)
        free(m, dut.i.valid, dut.i.payload, dut.o.ready, dut.send.valid, dut.send.payload)
        free(m, dut.head.ready, dut.store.valid, dut.store.payload, dut.drop)
        free(m, dut.mem.cmd.ready, dut.mem.wdata.ready, dut.mem.rdata.valid, dut.mem.wdone.valid)
        free(m, dut.mem.rdata.payload, dut.mem.wdone.payload)
        for name, port in (
            ("send", dut.send),
            ("store", dut.store),
            ("i", dut.i),
            ("opened", opener.data),
            ("opened_head", opener.head),
            ("read", reader.packet),
        ):
            stream_rules(m, port, Assume, name)
        for name, port in (
            ("head", dut.head),
            ("called", cutter.call),
            ("asked", reader.request),
            ("written", writer.request),
        ):
            stream_rules(m, port, Assert, name)
        m.d.comb += Assume(~(dut.drop & dut.store.valid))
        same(m, dut.i, opener.i)
        same(m, cutter.o, dut.o)
        same(m, reader.packet, cutter.data)
        same_memory(m, reader.mem, join.reader)
        same_memory(m, writer.mem, join.writer)
        same_memory(m, join.mem, dut.mem)
        self._sends(m, cutter, reader)
        self._receives(m, core, opener, writer)
        return m

    def _sends(self, m, cutter, reader):
        dut, send = self.dut, self.dut.send
        owes = Signal()  # a read for the call that the cutter has
        operand = Signal(send.payload.operand.shape())
        with m.If(moves(send)):
            m.d.sync += [owes.eq(send.payload.operand.length != 0)]
            m.d.sync += operand.eq(send.payload.operand)
        with m.Elif(moves(reader.request)):
            m.d.sync += owes.eq(0)
        m.d.comb += [
            Assert(cutter.call.valid == (send.valid & ~owes)),
            Assert(send.ready == (cutter.call.ready & ~owes)),
            Assert(moves(send) == moves(cutter.call)),
            Assert(reader.request.valid == owes),
            Assert(dut.sending == (owes | ~cutter.idle)),
            Assert(dut.reads == owes),  # an invariant
        ]
        with m.If(cutter.call.valid):
            theirs, ours = Value.cast(cutter.call.payload), Value.cast(send.payload.call)
            m.d.comb += Assert(theirs == ours)
        with m.If(owes):
            m.d.comb += Assert(Value.cast(reader.request.payload) == Value.cast(operand))
        m.d.comb += Cover(moves(reader.request) & (operand.length != 0))
        m.d.comb += Cover(moves(send) & (send.payload.operand.length == 0))

    def _receives(self, m, core, opener, writer):
        dut, head, store, given = self.dut, self.dut.head, self.dut.store, opener.data
        on = {name: Signal(name=f"in_{name}", init=name == "HEAD") for name in PHASES}
        bare, offset = Signal(), Signal(16)
        ends = moves(given) & given.payload.last

        def go(old, new):
            m.d.sync += [on[old].eq(0), on[new].eq(1)]

        with m.If(on["HEAD"] & moves(head)):
            go("HEAD", "DECIDE")
            m.d.sync += [bare.eq(head.payload.bare), offset.eq(head.payload.header.offset)]
        with m.If(on["DECIDE"] & moves(store)):
            with m.If(bare):
                go("DECIDE", "FINISH")
            with m.Else():
                go("DECIDE", "WRITE")
        with m.Elif(on["DECIDE"] & dut.drop):
            with m.If(bare):
                go("DECIDE", "HEAD")
            with m.Else():
                go("DECIDE", "SKIP")
        with m.If(on["SKIP"] & ends):
            go("SKIP", "HEAD")
        with m.If(on["WRITE"] & ends):
            go("WRITE", "STORED")
        with m.If(on["FINISH"]):
            go("FINISH", "STORED")
        with m.If(on["STORED"] & writer.done):
            go("STORED", "HEAD")
        m.d.comb += [
            Assert(head.valid == (on["HEAD"] & opener.head.valid)),
            Assert(opener.head.ready == (on["HEAD"] & head.ready)),
            Assert(store.ready == (on["DECIDE"] & writer.request.ready)),
            Assert(writer.request.valid == (on["DECIDE"] & store.valid)),
            Assert(writer.packet.valid == (on["WRITE"] & given.valid)),
            Assert(given.ready == Mux(on["WRITE"], writer.packet.ready, on["SKIP"])),
            Assert(writer.finish == on["FINISH"]),
            Assert(dut.stored == (on["STORED"] & writer.done)),
        ]
        with m.If(head.valid):
            theirs = Value.cast(opener.head.payload)
            m.d.comb += Assert(Value.cast(head.payload) == theirs)
        with m.If(writer.packet.valid):
            theirs = Value.cast(given.payload)
            m.d.comb += Assert(Value.cast(writer.packet.payload) == theirs)
        with m.If(dut.stored):
            m.d.comb += [
                Assert(dut.length == (16 * offset + writer.length)[:20]),
                Assert(dut.overflow == writer.overflow),
                Assert(dut.error == writer.error),
            ]
        place, part = store.payload, writer.request.payload
        with m.If(writer.request.valid):
            m.d.comb += [
                Assert(part.addr == (place.addr + 16 * offset)[:32]),
                Assert((part.room == 0) | (16 * offset + part.room == place.room)),
                Assert((part.room != 0) | (16 * offset >= place.room)),
            ]
        # Invariants.
        m.d.comb += [Assert(core.state(name) == on[name]) for name in PHASES]
        m.d.comb += Assert(on["HEAD"] | (dut.bare == bare))
        m.d.comb += Assert(on["HEAD"] | (dut.at == 16 * offset))
        m.d.comb += [
            Cover(dut.stored & ~bare & (offset == 3) & (dut.length == 50)),
            Cover(moves(writer.request) & (part.room == 0) & (place.room != 0)),
            Cover(on["FINISH"] & (offset != 0)),
            Cover(on["SKIP"] & ends),
        ]


MUTANTS = (
    Mutant("half_the_offset", "head.payload.header.offset << 4", "head.payload.header.offset << 3"),
    Mutant("whole_room_again", "Mux(at < place.room, place.room - at, 0)", "place.room"),
    Mutant(
        "length_of_the_part", "self.length.eq(at + writer.length)", "self.length.eq(writer.length)"
    ),
    Mutant("sends_over_a_read", "cutter.call.ready & ~reads", "cutter.call.ready"),
    Mutant("waits_for_no_write", "with m.If(writer.done):", "with m.If(1):"),
)

PROOFS = (
    Proof(
        name="cluster_transfer",
        core="cores.cluster.transfer.Transfer(32), its parts hollow",
        says="what is sent is read once; what comes is stored in place, within room, or dropped",
        module="trebuchet.cores.cluster.transfer",
        build=lambda cores: TransferProof(cores, cores.Transfer(32)),
        depth=3,
        cover_depth=10,
        mutants=MUTANTS,
        assumes="the stream rules on inputs and parts; no drop while a store is on offer",
        not_proved="the parts, which have proofs of their own; a reset while running",
    ),
)
