"""Proofs of ``OperandReader`` in ``cores/roles/fetch.py``.

Contract, over public ports, for requests as the data sheet allows them: the bursts ask for exactly
the beats that the operand touches, in order, each at its place in the ring, none across the ring's
end; read data always find room; the packet's bytes are the operand's (an arbitrary byte of an
arbitrary request), as many as ``length``, marked as the stream's rules say; ``done`` once a
request, with the last beat or without any.

Lengths and places have 8 bits, bursts 2 beats and the FIFO 8 places, made of registers
(:class:`~trebuchet.formal.kit.inside.RegisterFifo`) in the place of Amaranth's.

Not proved: other widths; a reset while running; that the memory answers.
"""

from amaranth import unsigned
from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Const, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import data

from ..kit.inside import Inside, RegisterFifo, patched
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules, within
from .fetch import moves

__all__ = ["PROOFS"]

BURST, PLACES = 2, 8
#: Operands of fewer than 256 bytes in rings of at most as many, below 64 KiB.
BITS = 8
SMALL = data.StructLayout(
    {
        "base": unsigned(16),
        "offset": unsigned(BITS),
        "ring_log2": unsigned(5),
        "length": unsigned(BITS),
    }
)


class OperandReaderProof(Elaboratable):
    """``follows``: follow a byte, in a ring of 256 bytes at 0; or else look at the addresses."""

    def __init__(self, cores, follows):
        self.cores, self.follows = cores, follows

    def elaborate(self, platform):
        m = new_harness()
        sizes = {"BURST_BEATS": BURST, "READ_AHEAD": PLACES, "LENGTH_WIDTH": BITS}
        with patched(self.cores, **sizes, OperandLayout=SMALL, BlockFifo=RegisterFifo):
            self.dut = dut = self.cores.OperandReader(32, 1)
            self.inside = Inside(m, dut)
        self.fifo = self.inside.parts["fifo"]
        m.d.comb += self.fifo.shows.eq(AnySeq(1))
        mem = dut.mem
        free(m, dut.request.valid, dut.request.payload, dut.packet.ready)
        free(m, mem.cmd.ready, mem.rdata.valid, mem.rdata.payload)
        stream_rules(m, mem.cmd, Assert, "cmd")
        self.begins = stream_rules(m, dut.packet, Assert, "packet")
        self._request(m)
        self._commands(m, mem)
        self._packet(m)
        self._invariants(m)
        return m

    def _request(self, m):
        """The request in work, and how many beats it has."""
        dut = self.dut
        asked = dut.request.payload
        self.req = req = Signal(asked.shape())
        self.busy, self.fresh = Signal(), Signal()
        self.total, self.out_total = Signal(BITS), Signal(BITS)
        m.d.comb += [
            self._ring(asked, Assume),
            self.total.eq((req.offset[:2] + req.length + 3) >> 2),
            self.out_total.eq((req.length + 3) >> 2),
            Assert(dut.request.ready == ~self.busy),
            Assert(~dut.done | self.busy),
        ]
        m.d.sync += self.fresh.eq(moves(dut.request))
        with m.If(moves(dut.request)):
            m.d.sync += [req.eq(asked), self.busy.eq(1)]
        with m.If(dut.done):
            m.d.sync += self.busy.eq(0)
        ended = moves(dut.packet) & dut.packet.payload.last
        m.d.comb += [
            Assert(dut.done == (ended | (self.fresh & (req.length == 0)))),
            Assert(~dut.packet.valid | (self.busy & (req.length != 0))),
        ]

    def _ring(self, operand, check):
        """A ring that is not smaller than a burst, at a multiple of its size."""
        log2, base = operand.ring_log2, operand.base
        if self.follows:
            return check((log2 == BITS) & (base == 0))
        aligned = (base & ((Const(1, 32) << log2) - 1)[:32]) == 0
        return check((log2 >= 3) & (log2 <= BITS) & aligned)

    def _commands(self, m, mem):
        """Every beat is asked for once, in order, where it lies; and answered as it was asked."""
        req, cmd = self.req, mem.cmd.payload
        self.asked, self.received = Signal(BITS), Signal(BITS)
        place = Signal(32)
        m.d.comb += [
            place.eq(((req.offset[2:] + self.asked) << 2) & ((Const(1, 32) << req.ring_log2) - 1)),
            Assume(~mem.rdata.valid | (self.received < self.asked)),
            Assert(mem.rdata.ready & mem.wdone.ready & ~mem.wdata.valid),
        ]
        with m.If(mem.cmd.valid):
            m.d.comb += [
                Assert(self.busy),
                *([] if self.follows else [Assert(cmd.addr == (req.base & ~3) | place)]),
                Assert(self.asked + cmd.beats + 1 <= self.total),
                Assert(cmd.addr[2:3] + cmd.beats < BURST),
                Assert(~cmd.write & (cmd.tag == 0)),
            ]
        with m.If(moves(mem.cmd)):
            m.d.sync += self.asked.eq(self.asked + cmd.beats + 1)
        with m.If(mem.rdata.valid):
            m.d.sync += self.received.eq(self.received + 1)
            m.d.comb += Assert(self.fifo.w_rdy)
        with m.If(self.dut.done):
            m.d.sync += [self.asked.eq(0), self.received.eq(0)]
            m.d.comb += Assert((self.received == self.asked) & (~mem.cmd.valid))
            m.d.comb += Assert((req.length == 0) | (self.asked == self.total))

    def _packet(self, m):
        """The chosen byte, number ``chosen`` of the operand, comes with beat ``source``."""
        dut, req = self.dut, self.req
        chosen, value = Signal(BITS), Signal(8)
        at = Signal(BITS + 1)
        self.source, self.lane = Signal(BITS), Signal(2)
        self.value, self.exists = value, Signal()
        self.emitted = Signal(BITS)
        beat = dut.packet.payload
        m.d.comb += [
            chosen.eq(AnyConst(BITS)),
            value.eq(AnyConst(8)),
            at.eq(req.offset[:2] + chosen),
            self.source.eq(at[2:]),
            self.lane.eq(at[:2]),
            self.exists.eq(chosen < req.length),
        ]
        data = dut.mem.rdata.payload.data
        with m.If(dut.mem.rdata.valid & (self.received == self.source)):
            m.d.comb += Assume(self._byte(data, self.lane) == value)
        with m.If(dut.packet.valid):
            m.d.comb += [
                Assert(beat.first == (self.emitted == 0)),
                Assert(beat.last == (self.emitted == self.out_total - 1)),
                Assert(beat.empty == Mux(beat.last, (4 - req.length[:2])[:2], 0)),
                Assert(~beat.error),
            ]
            with m.If(self.exists & (self.emitted == chosen >> 2) & self.follows):
                m.d.comb += Assert(self._byte(beat.data, chosen[:2]) == value)
        with m.If(moves(dut.packet)):
            m.d.sync += self.emitted.eq(self.emitted + 1)
        with m.If(dut.done):
            m.d.sync += self.emitted.eq(0)
        again = Signal(2)
        with m.If(dut.done & (again != 3)):
            m.d.sync += again.eq(again + 1)
        wrapped = (req.offset[3:] != 0) & (dut.mem.cmd.payload.addr == req.base)
        crossed = Signal()
        m.d.sync += crossed.eq((crossed | (dut.mem.cmd.valid & wrapped)) & self.busy)
        m.d.comb += [
            Cover((again == 1) & dut.done & (self.emitted == 2) & (req.offset[:2] == 3)),
            Cover(crossed & dut.done & (req.length == 9)),
        ]

    @staticmethod
    def _byte(word, lane):
        return word.word_select(lane, 8)

    def _invariants(self, m):
        i, fifo, req, cmd = self.inside, self.fifo, self.req, self.dut.mem.cmd
        issued, taken, given = Signal(BITS), Signal(BITS), Signal(BITS)
        run, out = i.state("RUN"), self.dut.packet
        left = Signal(BITS)
        m.d.comb += [
            issued.eq(self.asked + Mux(cmd.valid, cmd.payload.beats + 1, 0)),
            taken.eq(self.received - fifo.level),
            given.eq(self.emitted + out.valid),
            left.eq(self.total - issued),
            Assert(i.fsm_bounded()),
            Assert(~out.payload.error),
            Assert(~cmd.payload.write & (cmd.payload.tag == 0)),
            Assert(self.begins == (self.emitted == 0)),
            Assert(self.busy == ~i.state("IDLE")),
            Assert(self.fresh == i.state("SETUP")),
            Assert(fifo.level <= self.received),
            Assert(fifo.level <= PLACES),
            Assert(self.received <= self.asked),
            Assert(i.reserved == issued - taken),
            Assert(issued - taken <= PLACES),
        ]
        with m.If(~run):
            m.d.comb += [
                Assert((self.asked == 0) & (self.received == 0) & (self.emitted == 0)),
                Assert(~cmd.valid & ~out.valid & (fifo.level == 0)),
            ]
        with m.If(~i.state("IDLE")):
            m.d.comb += Assert(i.operand == Value.cast(req))
            m.d.comb += self._ring(req, Assert)
        with m.If(run):
            boundary = Signal(2)
            m.d.comb += [
                Assert(req.length != 0),
                Assert(i.mask == ((Const(1, 32) << req.ring_log2) - 1)[:BITS]),
                Assert(i.shift == req.offset[:2]),
                Assert(issued <= self.total),
                Assert(given <= self.out_total),
                Assert(i.place == (req.offset[2:] + issued)[: BITS - 1]),
                Assert(i.to_issue == left),
                Assert(i.to_take == self.total - taken),
                Assert(i.to_emit == self.out_total - given),
                boundary.eq(BURST - i.place[:1]),
                Assert(taken == Mux(i.primed, Mux(given == self.total, given, given + 1), 0)),
                Assert(i.primed | (given == 0)),
                Assert(i.first == (given == 0)),
                Assert(self.emitted < self.out_total),
            ]
            with m.If(i.known & ~cmd.valid):
                m.d.comb += Assert(i.beats == Mux(left < boundary, left, boundary))
            if self.follows:
                self._bytes(m, taken)
        with m.Else():
            m.d.comb += Assert(~i.known | i.state("IDLE"))
        ready = run & i.known & ~cmd.valid & (left != 0) & (i.reserved + BURST <= PLACES)
        within(m, ~ready | cmd.valid, 1, "issue")

    def _bytes(self, m, taken):
        """Where the chosen byte is while it is inside."""
        i, fifo = self.inside, self.fifo
        index = Signal(BITS)
        m.d.comb += index.eq(self.source - taken)
        with m.If(self.exists & (index < fifo.level)):
            word = Array(fifo.cells)[index[:3]]
            m.d.comb += Assert(self._byte(word, self.lane) == self.value)
        with m.If(self.exists & i.primed & (self.source == taken - 1)):
            # `previous` keeps its beat after the last one was taken, too.
            m.d.comb += Assert(self._byte(i.previous, self.lane) == self.value)


READER_MUTANTS = (
    Mutant(
        "one_beat_less",
        "to_issue.eq((operand.offset[:log2n] + operand.length + (n - 1)) >> log2n), "
        "to_emit.eq((operand.length + (n - 1)) >> log2n)",
        "to_issue.eq((operand.offset[:log2n] + operand.length) >> log2n), "
        "to_emit.eq((operand.length + (n - 1)) >> log2n)",
    ),
    Mutant("no_wrap", "((place << log2n) & mask)", "(place << log2n)", 16),
    Mutant("small_ring", "(operand.ring_log2 > i)", "(operand.ring_log2 > i + 1)"),
    Mutant("overruns_fifo", "READ_AHEAD - BURST_BEATS\n", "READ_AHEAD\n", 22),
    Mutant("wrong_empty", "(-operand.length)[:log2n]", "operand.length[:log2n]", 14),
    Mutant(
        "done_early", "self.packet.ready & self.packet.payload.last", "self.packet.payload.last", 14
    ),
)

PROOFS = (
    Proof(
        name="role_operand_addresses",
        core="cores.roles.fetch.OperandReader(32, 1), 8 bits of length, bursts of 2",
        says="asks for the operand's beats and no others, each where it lies in the ring, in order",
        module="trebuchet.cores.roles.fetch",
        build=lambda cores: OperandReaderProof(cores, False),
        depth=1,
        cover_depth=22,
        mutants=READER_MUTANTS[:4],
        assumes="a ring of at least a burst, at a multiple of its size; what is asked for comes",
        not_proved="other widths; that the memory answers; a reset while running",
    ),
    Proof(
        name="role_operand_bytes",
        core="cores.roles.fetch.OperandReader(32, 1), 8 bits of length, bursts of 2",
        says="the packet is the operand, byte by byte, whatever its alignment; done at its end",
        module="trebuchet.cores.roles.fetch",
        build=lambda cores: OperandReaderProof(cores, True),
        depth=1,
        cover_depth=22,
        mutants=READER_MUTANTS[4:],
        assumes="a ring of 256 bytes at address 0; only beats that were asked for come",
        not_proved="other widths; that the memory answers; a reset while running",
    ),
)
