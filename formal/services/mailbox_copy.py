"""Proofs of the mailbox's copiers, ``cores/services/mailbox_copy.py``.

Request: it reads beat by beat from where the request begins, around the ring's end; the bytes in
the on-chip memory are the ring's (an arbitrary one); it stops at the end of the request, or of
what is there, or at the size of the memory; ``length``, ``matched`` and ``full`` say which. The
request's end is told by an independent recognizer of CR LF CR LF, or it is the number expected, or
8 if it begins with a byte less than 9.

Response: words leave in the order in which they were appended, each to its own place and under its
own strobes, as many as ``length`` needs; ``done`` once, when all are in memory.

The request's memory has 16 bytes. Not proved: other sizes; that the memory answers; a reset while
running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.inside import Inside, patched
from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

LOG2, SIZE = 5, 16


class RequestCopierProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        with patched(self.cores, REQUEST_BYTES=SIZE):
            self.dut = dut = self.cores.RequestCopier(32, LOG2)
            self.i = Inside(m, dut)
        cmd, rdata = dut.mem_cmd, dut.mem_rdata
        free(m, dut.start, dut.base, dut.offset, dut.available, dut.index)
        free(m, dut.expect, dut.counted)
        free(m, cmd.ready, rdata.valid, rdata.payload)
        stream_rules(m, cmd, Assert, "cmd")
        self.busy, self.known, self.waits = Signal(), Signal(), Signal()
        self.base, self.offset, self.limit = Signal(32 - LOG2), Signal(LOG2), Signal(5)
        self.asked = Signal()
        self.goal = Signal(11)  # bytes of the request; 0: it is text, or nothing of it was seen
        busy = self.busy
        m.d.comb += [
            Assume(~dut.start | ~busy),
            Assume(dut.available <= 1 << LOG2),
            Assume(dut.counted == (dut.expect != 0)),
            Assume(~rdata.valid | self.waits),
            Assert(~dut.done | busy),
            Assert(rdata.ready),
        ]
        with m.If(dut.start):
            m.d.sync += [busy.eq(1), self.base.eq(dut.base), self.offset.eq(dut.offset)]
            m.d.sync += self.limit.eq(Mux(dut.available > SIZE, SIZE, dut.available))
            m.d.sync += [self.goal.eq(dut.expect), self.asked.eq(dut.expect != 0)]
        with m.If(dut.done):
            m.d.sync += [busy.eq(0), self.known.eq(1)]
        with m.If(moves(cmd)):
            m.d.sync += self.waits.eq(1)
        with m.If(rdata.valid):
            m.d.sync += self.waits.eq(0)
        self._reads(m, cmd)
        self._line(m)
        self._bytes(m, rdata)
        self._invariants(m)
        return m

    def _reads(self, m, cmd):
        """Beats in order from the first byte on; the next one when the last one is used up."""
        dut = self.dut
        self.place = Signal(LOG2)  # of the next byte to look at
        m.d.comb += self.place.eq(self.offset + dut.length)
        with m.If(cmd.valid):
            m.d.comb += [
                Assert(self.busy & ~self.waits & (self.limit != 0)),
                Assert(cmd.payload.addr == Cat(self.place & 0x1C, self.base)),
                Assert((cmd.payload.beats == 0) & ~cmd.payload.write),
            ]

    def _line(self, m):
        """The last bytes looked at, and whether they end with an empty line."""
        dut, i = self.dut, self.i
        self.last = Signal(32)  # newest in the upper byte
        looked = Signal()
        byte = i.beat[:8]
        m.d.comb += looked.eq(
            i.state("LOOK") & (i.skip == 0) & (dut.length < self.limit) & ~dut.matched
        )
        with m.If(dut.start):
            m.d.sync += self.last.eq(0)
        with m.Elif(looked):
            m.d.sync += self.last.eq(Cat(self.last[8:], byte))
            with m.If((dut.length == 0) & (self.goal == 0) & (byte <= 8)):
                m.d.sync += self.goal.eq(8)
        self.looked = looked
        m.d.comb += Assert(dut.length == self._count(m))
        with m.If(self.busy):
            empty = self.last == 0x0A0D0A0D
            whole = Mux(self.goal == 0, empty, dut.length == self.goal)
            m.d.comb += Assert(dut.matched == whole)
        with m.If(dut.done):
            m.d.comb += Assert(dut.matched | (dut.length == self.limit))
        m.d.comb += Assert(dut.full == (dut.length == SIZE))

    def _count(self, m):
        """The bytes looked at since the start."""
        self.copied = Signal(5)
        with m.If(self.dut.start):
            m.d.sync += self.copied.eq(0)
        with m.Elif(self.looked):
            m.d.sync += self.copied.eq(self.copied + 1)
        return self.copied

    def _bytes(self, m, rdata):
        """The chosen byte of the request comes with its beat, and lies in its word."""
        dut, i = self.dut, self.i
        chosen, value, at = Signal(4), Signal(8), Signal(LOG2)
        copy = i.parts["copy"].read_port(domain="comb")
        here = Signal()
        m.d.comb += [
            chosen.eq(AnyConst(4)),
            value.eq(AnyConst(8)),
            at.eq(self.offset + chosen),
            copy.addr.eq(chosen >> 2),
            # The beat that holds it is the one that was asked for.
            here.eq((chosen >= self.copied) & (((at - self.place)[:LOG2] + self.place[:2]) < 4)),
        ]
        with m.If(rdata.valid & here):
            m.d.comb += Assume(rdata.payload.data.word_select(at[:2], 8) == value)
        with m.If(i.state("LOOK") & here):
            down = at[:2] - (self.place[:2] - i.skip)
            m.d.comb += Assert(i.beat.word_select(down[:2], 8) == value)
        with m.If(chosen < self.copied):
            m.d.comb += Assert(copy.data.word_select(chosen[:2], 8) == value)
        shown = Signal()
        m.d.sync += shown.eq(~self.busy & (dut.index == chosen >> 2))
        with m.If(shown & ~self.busy & (chosen < self.copied)):
            m.d.comb += Assert(dut.word.word_select(chosen[:2], 8) == value)
        m.d.comb += [
            Cover(dut.done & dut.matched & (self.copied == 5) & (self.offset == 30)),
            Cover(dut.done & ~dut.matched & (self.copied == 2)),
            Cover(dut.done & dut.matched & (self.copied == 8) & (i.goal == 8) & ~self.asked),
            Cover(dut.done & dut.matched & (self.copied == 3) & (i.goal == 3)),
            Cover(dut.done & ~dut.matched & (i.goal == 3) & (self.copied == 0)),
        ]

    def _invariants(self, m):
        dut, i = self.dut, self.i
        line = i.line
        ends = [self.last[24:] == 13, self.last[16:] == 0x0A0D, self.last[8:] == 0x0D0A0D]
        m.d.comb += [
            Assert(i.fsm_bounded()),
            Assert(self.busy == ~i.state("IDLE")),
            Assert(self.waits == i.state("TAKE")),
            Assert(self.limit <= SIZE),
            Assert(self.copied <= SIZE),
        ]
        with m.If(self.busy):
            m.d.comb += [
                Assert(self.copied <= self.limit),
                Assert(i.left == self.limit - self.copied),
                Assert(i.place == self.place),
                Assert(i.base == self.base),
                Assert(i.goal == self.goal),
                Assert(i.counted == (self.goal != 0)),
                Assert(i.ended == ((self.goal == 0) & (self.last == 0x0A0D0A0D))),
                Assert(~self.asked | (self.goal != 0)),
                Assert(dut.matched | (line == Mux(ends[2], 3, Mux(ends[1], 2, ends[0])))),
                Assert(~dut.matched | (i.state("LOOK") | i.state("NEXT"))),
            ]
            with m.If(i.state("TAKE")):
                m.d.comb += Assert(i.skip == self.place[:2])
            with m.If(i.state("LOOK")):
                m.d.comb += Assert(i.skip <= self.place[:2])
                m.d.comb += Assert((i.skip == 0) | ~dut.matched)
            with m.If(i.state("NEXT") & (self.copied != 0)):
                m.d.comb += Assert(self.place[:2] == 0)
            with m.If(i.state("ASK") & (self.copied != 0)):
                m.d.comb += Assert(self.place[:2] == 0)


class ResponseCopierProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        dut = self.cores.ResponseCopier(64)
        i = Inside(m, dut)
        cmd, wdata = dut.mem_cmd, dut.mem_wdata
        free(m, dut.clear, dut.append, dut.word, dut.start, dut.addr, dut.length)
        free(m, cmd.ready, wdata.ready, dut.written)
        stream_rules(m, cmd, Assert, "cmd")
        stream_rules(m, wdata, Assert, "wdata")
        busy, end, at = Signal(), Signal(10), Signal(11)
        base, length, owed, pending = Signal(20), Signal(13), Signal(), Signal(11)
        chosen, word = Signal(10), Signal(32)
        words = (length + 3) >> 2
        m.d.comb += [
            chosen.eq(AnyConst(10)),
            Assume(~dut.start | (~busy & (dut.length != 0) & (dut.length <= 4096))),
            Assume(~busy | ~(dut.append | dut.clear)),
            Assume(~dut.start | ~(dut.append | dut.clear)),
            Assume(~dut.written | (pending > owed)),
        ]
        with m.If(busy):
            m.d.comb += [Assume(dut.addr[12:] == base), Assume(dut.length == length)]
        with m.If(dut.clear):
            m.d.sync += end.eq(0)
        with m.Elif(dut.append):
            m.d.sync += end.eq(end + 1)
        with m.If(dut.append & (end == chosen)):
            m.d.sync += word.eq(dut.word)
        with m.If(dut.start):
            m.d.sync += [busy.eq(1), base.eq(dut.addr[12:]), length.eq(dut.length), at.eq(0)]
        with m.If(dut.done):
            m.d.sync += busy.eq(0)
        m.d.sync += pending.eq(pending + moves(cmd) - dut.written)
        with m.If(cmd.valid):
            m.d.comb += [
                Assert(busy & ~owed & (at < words)),
                Assert(cmd.payload.addr[12:] == base),
                Assert(cmd.payload.addr[:12] == (at << 2) & 0xFF8),
                Assert((cmd.payload.beats == 0) & cmd.payload.write & (cmd.payload.tag == 0)),
            ]
        with m.If(wdata.valid):
            m.d.comb += [
                Assert(owed & wdata.payload.last),
                Assert(wdata.payload.strb == Mux(at[0], 0xF0, 0x0F)),
            ]
            with m.If(at == chosen):
                m.d.comb += Assert(wdata.payload.data.word_select(at[0], 32) == word)
        with m.If(moves(cmd)):
            m.d.sync += owed.eq(1)
        with m.If(moves(wdata)):
            m.d.sync += [owed.eq(0), at.eq(at + 1)]
        over = busy & (at == words) & (pending == 0)
        m.d.comb += [Assert(~dut.done | over), Assert(dut.done | ~over)]
        m.d.comb += Cover(dut.done & (length == 9) & (word == 5))
        # Invariants.
        copy = i.parts["copy"].read_port(domain="comb")
        latch = i.parts["copy"].read_ports[0]
        m.d.comb += [
            copy.addr.eq(chosen),
            Assert(copy.data == word),
            Assert(i.fsm_bounded()),
            Assert(busy == ~i.state("IDLE")),
            Assert(i.end == end),
            Assert(owed == i.state("DATA")),
            Assert(i.pending == pending),
            Assert(pending <= at + owed),
            Assert(pending >= owed),
            Assert(~busy | (length <= 4096)),
            Assert(busy | (pending == 0)),
        ]
        with m.If(busy):
            m.d.comb += [Assert(i.at == at), Assert((at < words) | i.state("DRAIN"))]
            m.d.comb += [Assert(at <= words), Assert(~i.state("DRAIN") | (at == words))]
            with m.If(at == chosen):
                m.d.comb += Assert(~i.state("LATCH") | (latch.data == word))
                mid = i.state("COMMAND") | i.state("DATA")
                m.d.comb += Assert(~mid | (i.data == word))
        return m


PROOFS = (
    Proof(
        name="mailbox_request",
        core="cores.services.mailbox_copy.RequestCopier(32, 5), 16 bytes",
        says="copies the ring's bytes up to the end of the request, and says where it stopped",
        module="trebuchet.cores.services.mailbox_copy",
        build=RequestCopierProof,
        depth=2,
        cover_depth=28,
        mutants=(
            Mutant(
                "any_line",
                "ended.eq((line == 3) & ~counted)",
                "ended.eq((line != 0) & ~counted)",
                20,
            ),
            Mutant("text_in_binary", "(line == 3) & ~counted", "line == 3", 26),
            Mutant("tab_is_binary", "byte < BINARY", "byte <= BINARY", 20),
            Mutant(
                "any_byte_decides",
                "~counted & there & (byte < BINARY)",
                "~counted & (byte < BINARY)",
                20,
            ),
            Mutant(
                "reads_nothing",
                'm.next = "NEXT"',
                'm.next = "ASK"',
                14,
                within='with m.State("IDLE"):',
            ),
            Mutant("cr_resets", "Mux(line == 2, 3, 1)", "1", 26),
            Mutant(
                "too_long",
                "Mux(self.available > self.largest, self.largest, self.available)",
                "self.available",
                14,
            ),
            Mutant("no_alignment", "Cat(place, base) & ~(self.width // 8 - 1)", "Cat(place, base)"),
            Mutant("keeps_skip", "skip.eq(place[:log2n])", "skip.eq(0)", 14),
            Mutant(
                "wrong_byte",
                "write.en.eq(1 << self.length[:2])",
                "write.en.eq(1 << place[:2])",
                14,
                context="place = Signal(self.segment_log2)",
            ),
        ),
        assumes="a start only after `done`; one beat comes for each command",
        not_proved="other sizes; that the memory answers; a reset while running",
    ),
    Proof(
        name="mailbox_response",
        core="cores.services.mailbox_copy.ResponseCopier(64)",
        says="the words appended go to memory in order, as many as the length needs, then `done`",
        module="trebuchet.cores.services.mailbox_copy",
        build=ResponseCopierProof,
        depth=2,
        cover_depth=26,
        mutants=(
            Mutant(
                "one_word_less",
                "stop.eq((self.length + 3) >> 2)",
                "stop.eq((self.length + 2) >> 2)",
                14,
            ),
            Mutant("early_done", "with m.If(pending == 0):", "with m.If(pending <= 1):", 14),
            Mutant(
                "one_strobe",
                "Array(0xF << 4 * i for i in range(lanes))",
                "Array(0xF for i in range(lanes))",
                14,
            ),
            Mutant(
                "keeps_the_end",
                "m.d.sync += end.eq(0)",
                "m.d.sync += end.eq(1)",
                14,
                within="with m.If(self.clear):",
            ),
        ),
        assumes="nothing is appended while it writes; address, length stay; one answer a burst",
        not_proved="other sizes; that the memory answers; a reset while running",
    ),
)
