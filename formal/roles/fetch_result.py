"""Proof of ``ResultWriter`` in ``cores/roles/fetch.py``, with bursts of 2 beats.

Contract, over public ports: the beats that fit ``room`` are written in order (an arbitrary one:
data, strobes and address), the others dropped; nothing is written outside ``addr .. addr + room``;
a burst is offered when all its beats are there, its data follow it as the FIFO shows them, ``last``
on the final one;
``length``, ``overflow`` and ``error`` are right when ``done`` comes and until the next request;
``done`` comes once, when the packet has ended and every burst was answered.

The FIFO is one of registers (:class:`~trebuchet.formal.kit.inside.RegisterFifo`).

Not proved: other widths; a reset while running; that the memory answers.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.inside import Inside, RegisterFifo, patched
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .fetch import moves

__all__ = ["PROOFS"]

BURST = 2


class ResultWriterProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        self.dut = dut = self.cores.ResultWriter(32, 1)
        with patched(self.cores, BURST_BEATS=BURST, BlockFifo=RegisterFifo):
            self.inside = Inside(m, dut)
        self.fifo = self.inside.parts["fifo"]
        m.d.comb += self.fifo.shows.eq(AnySeq(1))
        mem = dut.mem
        free(m, dut.request.valid, dut.request.payload, dut.packet.valid, dut.packet.payload)
        free(m, dut.finish, mem.cmd.ready, mem.wdata.ready, mem.wdone.valid)
        stream_rules(m, dut.request, Assume, "request")
        stream_rules(m, dut.packet, Assume, "packet")
        stream_rules(m, mem.cmd, Assert, "cmd")
        stream_rules(m, mem.wdata, Assert, "wdata")
        self._packet(m)
        self._memory(m, mem)
        self._done(m, mem)
        self._invariants(m, mem)
        return m

    def _packet(self, m):
        """What of the packet must be written, and how it ended."""
        dut, beat = self.dut, self.dut.packet.payload
        self.req = req = Signal(dut.request.payload.shape())
        self.busy, self.ended = Signal(), Signal()
        self.length, self.overflow, self.error = Signal(20), Signal(), Signal()
        self.stored = Signal(20)
        self.chosen, self.word = Signal(20), Signal(36)
        count = 4 - beat.empty
        strobes = Signal(4)
        self.fits = Signal()
        m.d.comb += [
            self.chosen.eq(AnyConst(20)),
            strobes.eq(Mux(beat.last, 0b1111 >> beat.empty, 0b1111)),
            self.fits.eq(~self.overflow & (self.length + count <= req.room)),
            Assert(dut.request.ready == ~self.busy),
            Assert(~dut.packet.ready | (self.busy & ~self.ended)),
            # The rules of `finish`.
            Assume(~dut.finish | (self.busy & ~self.ended & ~moves(dut.packet))),
        ]
        with m.If(moves(dut.request)):
            m.d.sync += [req.eq(dut.request.payload), self.busy.eq(1), self.ended.eq(0)]
            m.d.sync += [self.length.eq(0), self.overflow.eq(0), self.error.eq(0)]
        with m.If(dut.finish):
            m.d.sync += self.ended.eq(1)
        with m.If(moves(dut.packet)):
            m.d.sync += [self.ended.eq(beat.last), self.error.eq(beat.last & beat.error)]
            with m.If(self.fits):
                m.d.sync += [self.length.eq(self.length + count), self.stored.eq(self.stored + 1)]
                with m.If(self.stored == self.chosen):
                    m.d.sync += self.word.eq(Cat(beat.data, strobes))
            with m.Else():
                m.d.sync += self.overflow.eq(1)
        with m.If(dut.done):
            m.d.sync += [self.busy.eq(0), self.stored.eq(0)]

    def _memory(self, m, mem):
        """Bursts in order, from the address on; then their data; answers are counted."""
        cmd, wdata = mem.cmd.payload, mem.wdata.payload
        self.commanded, self.sent, self.bursts = Signal(20), Signal(20), Signal(20)
        self.unanswered = Signal(20)  # bursts, with or without their data
        m.d.comb += [
            Assume(~mem.wdone.valid | (self.unanswered > (self.sent != self.commanded))),
            Assert(mem.wdone.ready & mem.rdata.ready),
        ]
        with m.If(mem.cmd.valid):
            m.d.comb += [
                Assert(self.busy & cmd.write & (cmd.tag == 0)),
                Assert(cmd.addr == ((self.req.addr & ~15) + (self.commanded << 2))[:32]),
                Assert(cmd.beats < BURST),
                Assert(self.commanded + cmd.beats + 1 <= self.stored),
                Assert(self.sent == self.commanded),
                Assert((cmd.beats == BURST - 1) | self.ended),
            ]
        with m.If(mem.wdata.valid):
            m.d.comb += [
                Assert(self.sent < self.commanded),
                Assert(wdata.last == (self.sent + 1 == self.commanded)),
            ]
            with m.If(self.sent == self.chosen):
                m.d.comb += Assert(Cat(wdata.data, wdata.strb) == self.word)
                past = Signal(22)
                m.d.comb += [
                    past.eq((self.sent << 2) + sum(wdata.strb)),
                    Assert(past <= self.req.room),
                    Assert(wdata.strb != 0),
                    Assert((wdata.strb & (wdata.strb + 1)[:4]) == 0),
                ]
        # Prompt (`cores/memory_arbiter.py`): data that are due are stored, at once or soon shown.
        with m.If(self.sent != self.commanded):
            m.d.comb += Assert(mem.wdata.valid == self.fifo.r_rdy)
            m.d.comb += Assert(self.fifo.level >= self.commanded - self.sent)
        with m.If(moves(mem.cmd)):
            m.d.sync += self.commanded.eq(self.commanded + cmd.beats + 1)
        with m.If(moves(mem.wdata)):
            m.d.sync += self.sent.eq(self.sent + 1)
        m.d.sync += self.unanswered.eq(self.unanswered + moves(mem.cmd) - mem.wdone.valid)
        with m.If(self.dut.done):
            m.d.sync += [self.commanded.eq(0), self.sent.eq(0)]

    def _done(self, m, mem):
        dut = self.dut
        over = Signal()
        m.d.comb += over.eq(
            self.busy & self.ended & (self.sent == self.stored) & (self.unanswered == 0)
        )
        m.d.comb += [
            Assert(dut.done == over),
            Assert(dut.length == self.length),
            Assert(dut.overflow == self.overflow),
            Assert(dut.error == self.error),
        ]
        again = Signal()
        m.d.sync += again.eq(again | (dut.done & (self.stored == 3)))
        m.d.comb += [
            Cover(again & dut.done & dut.overflow & (self.stored == 1)),
            Cover(again & mem.wdata.valid & (mem.wdata.payload.strb == 1)),
            Cover(dut.done & (self.stored == 0)),
        ]

    def _invariants(self, m, mem):
        i, fifo, cmd = self.inside, self.fifo, mem.cmd
        offered, index = Signal(20), Signal(20)
        base = Signal(32)
        m.d.comb += [
            offered.eq(self.commanded + Mux(cmd.valid, cmd.payload.beats + 1, 0)),
            index.eq(self.chosen - self.sent),
            base.eq(self.req.addr & ~15),
            Assert(i.fsm_bounded()),
            Assert(self.busy == i.state("RUN")),
            Assert(self.sent <= self.commanded),
            Assert(offered <= self.stored),
            Assert(fifo.level == self.stored - self.sent),
            Assert(self.stored - self.sent <= fifo.depth),
            Assert(i.filled == self.stored - offered),
            Assert(i.owed == offered - self.sent),
            Assert(~cmd.valid | (self.commanded == self.sent)),
            Assert(offered - self.sent <= BURST),
            Assert(i.pending == self.unanswered + cmd.valid),
            Assert(self.unanswered <= self.commanded),
            # With what is offered, the bursts so far are whole, or the packet has ended.
            Assert(self.unanswered + (self.stored - self.commanded) <= self.stored),
            Assert((self.sent == self.commanded) | (self.unanswered != 0)),
        ]
        with m.If(self.busy):
            m.d.comb += [
                Assert(i.ended == self.ended),
                Assert(i.room == self.req.room - self.length),
                Assert(self.length <= self.req.room),
                Assert((self.length + 3) >> 2 == self.stored),
                Assert(self.ended | (self.length[:2] == 0)),
                Assert(
                    (cmd.payload.addr == (base + (self.commanded << 2))[:32])
                    | (self.ended & (offered == self.stored) & ~cmd.valid)
                ),
                Assert((offered[0] == 0) | (self.ended & (offered == self.stored))),
                Assert((self.commanded[0] == 0) | (self.ended & (offered == self.stored))),
            ]
        with m.Else():
            m.d.comb += [Assert((self.stored == 0) & (self.unanswered == 0)), Assert(~cmd.valid)]
        inside = index < fifo.level
        with m.If(inside):
            m.d.comb += Assert(Array(fifo.cells)[index[:2]] == self.word)
        with m.If(self.chosen < self.stored):
            strobes = self.word[32:]
            end = Signal(22)
            m.d.comb += [
                Assert((strobes & (strobes + 1)[:4]) == 0),
                Assert(strobes[0]),
                end.eq((self.chosen << 2) + sum(strobes)),
                Assert(end <= self.length),
            ]


PROOFS = (
    Proof(
        name="role_result_writer",
        core="cores.roles.fetch.ResultWriter(32, 1), bursts of 2",
        says="what fits the room is written, in place; length, overflow and done are right",
        module="trebuchet.cores.roles.fetch",
        build=ResultWriterProof,
        depth=2,
        cover_depth=26,
        mutants=(
            Mutant(
                "one_byte_more",
                "fits.eq((room >= count) & ~self.overflow)",
                "fits.eq((room + 1 >= count) & ~self.overflow)",
            ),
            Mutant("goes_on", "(room >= count) & ~self.overflow", "(room >= count)", 14),
            Mutant(
                "early_done",
                "(owed == 0) & ~cmd.valid & (pending == 0)",
                "(owed == 0) & ~cmd.valid",
                14,
            ),
            Mutant(
                "wrong_address",
                "cmd.payload.addr + BURST_BEATS * n",
                "cmd.payload.addr + BURST_BEATS",
                18,
            ),
            Mutant(
                "last_too_soon",
                "wdata.payload.last.eq(owed == 1)",
                "wdata.payload.last.eq(owed == 2)",
                14,
                within="_write",
            ),
            Mutant("half_bursts", "full = filled >= BURST_BEATS", "full = filled != 0", 14),
        ),
        assumes="the rules of the streams and of `finish`; each burst is answered once, at its end",
        not_proved="other widths; that the memory answers; a reset while running",
    ),
)
