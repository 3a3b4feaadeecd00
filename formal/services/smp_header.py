"""Proof of ``SmpHeaderReader`` in ``cores/services/smp_header.py``: a ring of 32 bytes.

Contract, over public ports: it asks for exactly the four beats that can hold the header, in order,
each at its place in the ring; from ``done`` until the next start ``header`` has the message's first
12 bytes, whatever the alignment (an arbitrary one of them); ``done`` comes once, at most 4 cycles
after the last beat.

Not proved: other widths; that the memory answers; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.inside import Inside
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]

LOG2, BEATS = 5, 4


class SmpHeaderProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        i = Inside(m, dut)
        cmd, rdata = dut.mem_cmd, dut.mem_rdata
        free(m, dut.start, dut.base, dut.offset, cmd.ready, rdata.valid, rdata.payload)
        stream_rules(m, cmd, Assert, "cmd")
        busy, known = Signal(), Signal()  # `known`: the header is that of the last start
        base, offset = Signal(32 - LOG2), Signal(LOG2)
        asked, taken = Signal(3), Signal(3)
        chosen, value = Signal(4), Signal(8)
        place = Signal(5)
        m.d.comb += [
            chosen.eq(AnyConst(4)),
            value.eq(AnyConst(8)),
            Assume(chosen < 12),
            Assume(~dut.start | ~busy),
            Assume(~rdata.valid | (busy & (taken < asked))),
            place.eq(offset[:2] + chosen),
            Assert(~dut.done | busy),
            Assert(~known | ~busy),
            Assert(rdata.ready),
        ]
        with m.If(busy):
            m.d.comb += [Assume(dut.base == base), Assume(dut.offset == offset)]
        with m.If(dut.start):
            m.d.sync += [busy.eq(1), known.eq(0), base.eq(dut.base), offset.eq(dut.offset)]
            m.d.sync += [asked.eq(0), taken.eq(0)]
        with m.If(dut.done):
            m.d.sync += [busy.eq(0), known.eq(1)]
            m.d.comb += Assert((asked == BEATS) & (taken == BEATS))
        with m.If(cmd.valid):
            at = Signal(LOG2)
            m.d.comb += [
                at.eq((offset & 0x1C) + (asked << 2)),
                Assert(busy & (asked < BEATS)),
                Assert(cmd.payload.addr == Cat(at, base)),
                Assert((cmd.payload.beats == 0) & ~cmd.payload.write & (cmd.payload.tag == 0)),
            ]
        with m.If(cmd.valid & cmd.ready):
            m.d.sync += asked.eq(asked + 1)
        with m.If(rdata.valid):
            m.d.sync += taken.eq(taken + 1)
            with m.If(taken == place[2:]):
                m.d.comb += Assume(rdata.payload.data.word_select(place[:2], 8) == value)
        with m.If(known | dut.done):
            m.d.comb += Assert(dut.header.word_select(chosen, 8) == value)
        waited = within(m, dut.done | (taken != BEATS) | ~busy, 3, "done")
        self._invariants(m, i, busy, asked, taken, offset, place, value, waited)
        rotated = Signal()
        m.d.sync += rotated.eq(rotated | (dut.done & (offset == LOG2 * 6 + 1)))
        m.d.comb += [Cover(rotated & dut.done & (offset == 0) & (value == 3))]
        return m

    def _invariants(self, m, i, busy, asked, taken, offset, place, value, waited):
        take, shift = i.state("TAKE"), i.state("SHIFT")
        m.d.comb += [
            Assert(i.fsm_bounded()),
            Assert(busy == ~i.state("IDLE")),
            Assert(taken <= asked),
            Assert(asked <= BEATS),
            Assert(i.to_issue == Mux(busy, BEATS - asked, 0)),
            Assert(~take | (i.to_take == BEATS - taken)),
            Assert(~take | (taken < BEATS)),
            Assert(~shift | (taken == BEATS)),
            Assert(~busy | (i.place == (offset[2:] + asked)[:3])),
            Assert(~take | (i.skip == offset[:2])),
            Assert(~shift | (i.skip <= offset[:2])),
            Assert(~shift | (waited == offset[:2] - i.skip)),
        ]
        # Where the byte is: beats come in from the top, then everything moves down.
        at = Signal(5)
        byte = i.held.word_select(at, 8)
        with m.If(take):
            m.d.comb += at.eq(place + ((BEATS - taken) << 2))
            with m.If(place[2:] < taken):
                m.d.comb += Assert(byte == value)
        with m.If(shift):
            m.d.comb += [at.eq(place - (offset[:2] - i.skip)), Assert(byte == value)]


PROOFS = (
    Proof(
        name="smp_header",
        core="cores.services.smp_header.SmpHeaderReader(32, 5)",
        says="header and ID are read byte by byte, whatever their place in the ring",
        module="trebuchet.cores.services.smp_header",
        build=lambda cores: SmpHeaderProof(cores.SmpHeaderReader(32, LOG2)),
        depth=2,
        cover_depth=26,
        mutants=(
            Mutant("one_beat_less", "(n - 1 + 12 + n - 1) // n", "(n - 1 + 12) // n"),
            Mutant(
                "forgets_the_beat", "place.eq(self.offset[log2n:])", "place.eq(self.offset[:log2n])"
            ),
            Mutant("shifts_once_less", "skip == 0", "skip <= 1", 20),
            Mutant(
                "wrong_order",
                "Cat(held, self.mem_rdata.payload.data)[self.width :]",
                "Cat(self.mem_rdata.payload.data, held)[: len(held)]",
                20,
            ),
        ),
        assumes="base and offset stay until `done`; only beats that were asked for come",
        not_proved="other widths; that the memory answers; a reset while running",
    ),
)
