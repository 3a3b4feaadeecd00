"""Proof of ``SdBuffer`` in ``cores/sd/buffer.py``, with blocks of four words.

Contract, over public ports: the stream rules at the output; the words of the kept blocks leave in
the order of their places, all of them, soon, whatever the order in which they were written; no word
of a block that was not kept appears; ``room``, ``empty``, ``final`` and ``only`` are exact.

The solver picks the word that is followed, by its number among those of all kept blocks.

Assumed: nothing is written or kept without ``room``, nor at once; a kept block was written whole.

Not proved: behaviour under a reset while running; other sizes.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Signal

from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated
from ..stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]


class SdBufferProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    # Numbers of blocks count modulo 16, those of words modulo 16 blocks: four are inside at most.
    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        out, shift = dut.output, dut.bits
        free(m, dut.w_en, dut.w_left, dut.w_data, dut.keep, out.ready)
        stream_rules(m, out, Assert, "o")
        bits = shift + 4
        index, received, level, place = (
            Signal(bits, name=n) for n in ("index", "received", "level", "place")
        )
        base, word, written = Signal(4), Signal(dut.width, name="word"), Signal()
        inside = Signal(4)  # blocks that were kept and have not left
        m.d.comb += [
            index.eq(AnyConst(bits)),
            level.eq((base << shift) - received),
            place.eq(index - received),
            inside.eq(base - (received >> shift)),
            Assume(dut.room | ~(dut.w_en | dut.keep)),
            Assume(~(dut.w_en & dut.keep)),
            Assume(~dut.keep | (index[shift:] != base) | written),
            Assert(dut.room == (inside < 4)),
            Assert(inside <= 4),
            Assert(dut.empty == (inside == 0)),
            Assert(dut.only == (inside == 1)),
        ]
        here = (index[shift:] == base) & (dut.w_left == ~index[:shift])
        with m.If(dut.w_en & here):
            m.d.sync += [word.eq(dut.w_data), written.eq(1)]
        with m.If(dut.keep):
            m.d.sync += [base.eq(base + 1), written.eq(0)]
        m.d.sync += received.eq(received + moves(out))
        with m.If(out.valid):
            m.d.comb += Assert(level != 0)
            m.d.comb += Assert(dut.final == received[:shift].all())
            with m.If(place == 0):
                m.d.comb += Assert(out.payload == word)
        waited = within(m, (level == 0) | out.valid, 2, "o")
        self._covers(m, inside, place)
        self._invariants(m, base, received, place, level, index, word, written, waited)
        return m

    def _covers(self, m, inside, place):
        dut, again = self.dut, Signal(2)
        with m.If(dut.w_en & (dut.w_left == 0) & ~again.all()):
            m.d.sync += again.eq(again + 1)
        with m.If(dut.keep):
            m.d.sync += again.eq(0)
        m.d.comb += [
            Cover(dut.keep & (again == 2) & (inside == 1)),
            Cover(moves(dut.output) & dut.final & (inside == 2) & (place == 0)),
            Cover(inside == 4),
        ]

    def _invariants(self, m, base, received, place, level, index, word, written, waited):
        dut, shift, out = self.dut, self.dut.bits, self.dut.output
        before, gone = Signal(2), Signal(len(received))  # words that have left the memory
        peek = dut.ram.read_port(domain="comb")
        m.d.comb += [
            before.eq(dut.fetched + out.valid),
            gone.eq(received + before),
            Assert(dut.stored == (base - (received >> shift))[:4]),
            Assert(dut.kept == (base - (gone >> shift))[:4]),
            Assert((before <= level) & (level <= 4 << shift)),
            Assert(dut.block == ~base[:2]),
            Assert(dut.read == ~gone[: shift + 2]),
            Assert(~dut.fetched | (dut.fetched_final == (received + out.valid)[:shift].all())),
            Assert((waited == 0) | out.valid | (dut.fetched & (waited == 1))),
            peek.addr.eq(~index[: shift + 2]),
        ]
        with m.If((index[shift:] == base) & written):
            m.d.comb += Assert(peek.data == word)
        with m.If(place < level):
            with m.If(place >= before):
                m.d.comb += Assert(peek.data == word)
            with m.Elif((place == before - 1) & dut.fetched):
                m.d.comb += Assert(dut.reader.data == word)


PROOFS = (
    Proof(
        name="sd_buffer",
        core="cores.sd.buffer.SdBuffer(32, 16)",
        says="the words of kept blocks leave in order, soon, each once; no others do",
        module="trebuchet.cores.sd.buffer",
        build=lambda cores: SdBufferProof(cores.SdBuffer(32, 16)),
        depth=3,
        cover_depth=24,
        mutants=(
            Mutant("shows_unkept", "(self.kept != 0)", "1"),
            Mutant("fifth_block", "~self.stored[block_bits]", "1", depth=12),
            Mutant("same_place", "with m.If(self.keep):", "with m.If(0):", depth=12),
            Mutant("loses_a_word", "(~self.fetched | load)", "1", depth=12),
            Mutant("never_leaves", "self.output.ready & self.final", "0", depth=12),
            Mutant(
                "final_early", "last.eq(read[: self.bits] == 0)", "last.eq(read[: self.bits] == 1)"
            ),
        ),
        assumes="no write and no `keep` without `room`, nor both at once; a kept block is whole",
        not_proved="a reset while running; other sizes",
    ),
)
