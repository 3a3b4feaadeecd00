"""Proof of ``WordReader`` in ``cores/word_reader.py``: what a boot image is verified by.

Contract, over public ports, for a source of bytes that keeps :func:`byte_source_rules`: the words
offered are the bytes of the source in their order, four to a word, each once; the last word is
filled up with zeros; of *n* bytes no more are asked for, and none are while one is under way; when
all words have been offered, ``crc`` is the CRC-32 of the *n* bytes. The reader stops when two words
wait, and only then; a word is offered within two cycles. A new ``count`` at any time begins anew.

The solver picks a word and the stream of bytes, when they come and when words are taken. The CRC
of the reference is ``crc_step``, which a proof of its own compares with zlib.

Not proved: behaviour under a reset while running; that the source comes to an end with a byte.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ..cores.crc import crc_step
from .kit.proof import Mutant, Proof
from .kit.standins import elaborated
from .stream import free, new_harness, within

__all__ = ["PROOFS", "byte_source_rules"]


def byte_source_rules(m, starts, busy, byte, check):
    """State what a source of bytes does, with ``check``: ``Assert`` or ``Assume``.

    ``busy`` is 1 in the cycle after a byte ``starts``, and rises at no other time. While it is 0,
    ``byte`` stays as it is. Returns the register that says that nothing was under way or started in
    the cycle before.
    """
    started, rested, past = (
        Signal(name="source_started"),
        Signal(name="source_rested"),
        Signal(8, name="source_past"),
    )
    m.d.sync += [started.eq(starts), rested.eq(~busy & ~starts), past.eq(byte)]
    with m.If(started):
        m.d.comb += check(busy)
    with m.If(rested):
        m.d.comb += [check(~busy), check(byte == past)]
    return rested


class WordReaderProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        csr, width = dut.csr, dut.count_width + 2
        other = Signal()
        free(m, csr.count, csr.next, dut.busy, dut.byte, other)
        starts = dut.start | (other & ~dut.active & ~dut.busy)
        self.rested = byte_source_rules(m, starts, dut.busy, dut.byte, Assume)

        # The read: its bytes, those that have come, words taken, the chosen word.
        total, came, taken = Signal(width), Signal(width), Signal(width)
        chosen, ref = Signal(width), Signal(32)
        mine, arrives = Signal(), Signal()
        crc, crc_before = Signal(32, init=0xFFFFFFFF), Signal(32)
        m.d.comb += [chosen.eq(AnyConst(dut.count_width)), arrives.eq(mine & ~dut.busy)]
        with m.If(arrives):
            m.d.sync += [mine.eq(0), came.eq(came + 1)]
            after = crc_step(m, crc, dut.byte, "reference")
            m.d.sync += [crc_before.eq(crc), crc.eq(after)]
            with m.If(came[2:] == chosen):
                m.d.sync += ref.word_select(came[:2], 8).eq(dut.byte)
        with m.If(dut.start):
            m.d.sync += mine.eq(1)
        with m.If(csr.valid & csr.next):
            m.d.sync += taken.eq(taken + 1)
        with m.If(csr.count != 0):
            m.d.sync += [total.eq(csr.count), came.eq(0), taken.eq(0), mine.eq(0)]
            m.d.sync += [crc.eq(0xFFFFFFFF), ref.eq(0)]

        ahead, past_ahead = Signal(width), Signal(width)
        m.d.comb += ahead.eq(came - (taken << 2))
        m.d.sync += past_ahead.eq(ahead)
        with m.If(dut.start):
            m.d.comb += [Assert(~dut.busy), Assert(came + arrives + (mine & ~arrives) < total)]
        # It stops only when two words wait, or did a cycle ago.
        wants = (came + mine < total) & ~dut.busy & (csr.count == 0)
        m.d.comb += Assert(~wants | dut.start | (ahead >= 8) | (past_ahead >= 8))
        offered = (taken + csr.valid) << 2
        with m.If(csr.valid):
            m.d.comb += Assert((offered <= came) | (came == total))
            m.d.comb += Assert((taken << 2) < total)
            with m.If(taken == chosen):
                m.d.comb += Assert(csr.word == ref)
        with m.If(offered >= total):
            m.d.comb += [Assert(came == total), Assert(csr.crc == ~crc), Assert(~dut.active)]
        m.d.comb += Assert(offered < total + 4)
        there = (ahead.as_signed() >= 4) | ((came == total) & ((taken << 2) < total))
        within(m, csr.valid | ~there | (csr.count != 0), 2, "offered")
        self._covers(m, total, taken, ref, chosen, came)
        self._invariants(m, total, came, taken, chosen, ref, mine, arrives, crc, crc_before)
        return m

    def _covers(self, m, total, taken, ref, chosen, came):
        csr, again = self.dut.csr, Signal()
        m.d.sync += again.eq(again | ((csr.count != 0) & (came == 3)))
        done = csr.valid & csr.next & (taken == 1)
        m.d.comb += [
            Cover(done & (total == 6) & (csr.word == 0x2211) & (chosen == 1)),
            Cover(done & (total == 5) & again),
            Cover((came - (taken << 2) == 9) & (csr.count == 0)),
        ]

    def _invariants(self, m, total, came, taken, chosen, ref, mine, arrives, crc, crc_before):
        dut, csr = self.dut, self.dut.csr
        # A byte that has come and is still in the source, because the words before it wait.
        kept = Signal()
        m.d.sync += kept.eq((arrives | kept) & dut.whole & (csr.count == 0))
        consumed, formed = came - kept, taken + csr.valid + dut.whole
        ended = consumed == total
        rest = ended & (total[:2] != 0)
        place = Signal(len(chosen))
        m.d.comb += place.eq(taken + csr.valid)
        m.d.comb += [
            Assert(dut.waiting == (mine | kept)),
            Assert(~(mine & kept)),
            Assert(~kept | dut.whole | (csr.valid & (dut.lane == 0))),
            Assert(came + mine + dut.left == total),
            Assert(came + mine <= total),
            Assert(total < 1 << dut.count_width),
            Assert(consumed <= came),
            Assert(formed == consumed[2:] + rest),
            Assert(taken <= formed),
            Assert(~dut.whole | (dut.lane == 0) | rest),
            Assert(dut.lane == consumed[:2]),
            Assert(dut.crc == Mux(kept, crc_before, crc)),
            Assert(~(dut.whole & (place == chosen)) | (dut.behind == ref)),
            Assert((dut.lane == 0) | dut.whole | rest | (place != chosen) | (dut.behind == ref)),
        ]
        again = crc_step(m, crc_before, dut.byte, "again")
        with m.If(kept):
            m.d.comb += [Assert(self.rested), Assert(crc == again)]
            with m.If(consumed[2:] == chosen):
                m.d.comb += Assert(ref.word_select(consumed[:2], 8) == dut.byte)
        for lane in range(4):
            there = came > Cat(lane & 1, lane >> 1, chosen)
            m.d.comb += Assert(there | (ref.word_select(lane, 8) == 0))
            held = (dut.lane > lane) | (dut.lane == 0) | (rest & ~dut.whole)
            m.d.comb += Assert(held | (dut.behind.word_select(lane, 8) == 0))


_MUTANTS = (
    Mutant("first_byte_highest", "self.byte << (lane << 3)", "self.byte << (~lane << 3)"),
    Mutant("keeps_old_bytes", "Mux(lane == 0, 0, behind)", "behind", depth=30),
    Mutant("loses_the_rest", "whole.eq((lane == 3) | (left == 0))", "whole.eq(lane == 3)"),
    Mutant("overwrites_a_word", "whole & (~valid | csr.next)", "whole", depth=24),
    Mutant(
        "takes_over_a_whole",
        "came.eq(waiting & ~self.busy & ~whole)",
        "came.eq(waiting & ~self.busy)",
        depth=30,
    ),
    Mutant(
        "starts_while_busy",
        "(left != 0) & ~self.busy & (~waiting | came)",
        "(left != 0) & (~waiting | came)",
    ),
    Mutant(
        "one_byte_more",
        "left.eq(csr.count), waiting.eq(0)",
        "left.eq(csr.count + 1), waiting.eq(0)",
    ),
    Mutant("crc_goes_on", "m.d.sync += crc.eq(CRC_INIT)", "pass"),
    Mutant("crc_of_started", "crc.eq(after),\n                waiting.eq(0),", "waiting.eq(0),"),
    Mutant(
        "takes_a_byte_of_before",
        "left.eq(csr.count), waiting.eq(0), lane.eq(0)",
        "left.eq(csr.count), lane.eq(0)",
    ),
)


def _proof(name, width, mutants, **options):
    return Proof(
        name=name,
        core=f"cores.word_reader.WordReader({width})",
        says="words are the bytes of the source in order; crc is their CRC-32 when all have come",
        module="trebuchet.cores.word_reader",
        build=lambda cores: WordReaderProof(cores.WordReader(width)),
        depth=3,
        cover_depth=34,
        mutants=mutants,
        assumes="the source keeps the rules that the SPI controller's proof asserts",
        not_proved="a reset while running; that the source comes to an end with a byte",
        **options,
    )


PROOFS = (
    _proof("word_reader", 24, _MUTANTS[:2]),
    _proof("word_reader_small", 4, _MUTANTS),
)
