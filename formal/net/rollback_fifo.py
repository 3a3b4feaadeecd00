"""Proof of the FIFO with commit and rollback in ``cores/net/rollback_fifo.py``.

Contract, over public ports: the stream rules at the output; what comes out are the committed items,
all of them, in order, soon; an item that was rolled back never appears; ``full`` tells exactly
that the memory has no place left, so nothing is overwritten and no place is lost.

The invariants say what the three pointers mean and where the chosen item lies.

Not proved: behaviour under a reset while running; other depths and shapes than those named.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Cover, Elaboratable, Signal

from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated
from ..stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]


class RollbackFifoProof(Elaboratable):
    """``base`` items were committed so far and ``received`` have left; ``current`` more are written
    but not committed. Items are numbered modulo more than twice of what fits; a number is used
    again after a rollback, and what counts is the item that has it last."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        out = dut.output
        free(m, dut.w_data, dut.w_en, dut.commit, dut.rollback, out.ready)
        stream_rules(m, out, Assert, "o")
        bits = (4 * dut.depth).bit_length()
        index, base, current, received, level, place = (
            Signal(bits, name=n) for n in ("index", "base", "current", "received", "level", "place")
        )
        word = Signal(dut.shape, name="word")
        puts, gets = dut.w_en & ~dut.full, out.valid & out.ready
        coming = Signal(bits)
        m.d.comb += [
            index.eq(AnyConst(bits)),
            level.eq(base - received),
            place.eq(index - received),
            coming.eq(current + puts),
        ]
        with m.If(puts & ((base + current - index)[:bits] == 0)):
            m.d.sync += word.eq(dut.w_data)
        m.d.sync += received.eq(received + gets)
        with m.If(dut.rollback):
            m.d.sync += current.eq(0)
        with m.Elif(dut.commit):
            m.d.sync += [base.eq(base + coming), current.eq(0)]
        with m.Else():
            m.d.sync += current.eq(coming)

        in_memory = Signal(bits)
        before = Signal(2)  # items that have left the memory but not the FIFO
        m.d.comb += [
            before.eq(dut.fetched + out.valid),
            in_memory.eq(level + current - before),
            Assert(dut.full == (in_memory == dut.depth)),
            Assert(in_memory <= dut.depth),
        ]
        with m.If(out.valid):
            m.d.comb += Assert(level != 0)
            with m.If(place == 0):
                m.d.comb += Assert(out.payload == word)
        waited = within(m, (level == 0) | out.valid, 2, "o")
        self._covers(m, level, place, gets, word)
        self._invariants(m, level, current, place, word, before, waited)
        return m

    def _covers(self, m, level, place, gets, word):
        dut = self.dut
        was_full, undone = Signal(), Signal()
        with m.If(dut.full):
            m.d.sync += was_full.eq(1)
        with m.If(was_full & dut.rollback & dut.w_en & (level != 0)):
            m.d.sync += undone.eq(1)
        m.d.comb += [
            Cover(undone & gets & (place == 0) & (level == 1) & (word != 0)),
            Cover(undone & dut.full & (level >= dut.depth)),
        ]

    def _invariants(self, m, level, current, place, word, before, waited):
        dut, bits = self.dut, len(self.dut.read)
        peek = dut.ram.read_port(domain="comb")
        held, coming = Signal(bits), Signal(bits)
        m.d.comb += [
            held.eq(dut.kept - dut.read),
            coming.eq(dut.write - dut.kept),
            Assert(held + coming <= dut.depth),
            Assert(level == held + before),
            Assert(current == coming),
            Assert((waited == 0) | dut.output.valid | (dut.fetched & (waited == 1))),
            peek.addr.eq((dut.read + place - before)[: bits - 1]),
        ]
        with m.If(place < level + current):
            with m.If(place >= before):
                m.d.comb += Assert(peek.data == word)
            with m.Elif((place == before - 1) & dut.fetched):
                m.d.comb += Assert(dut.reader.data == word)


PROOFS = tuple(
    Proof(
        name=f"rollback_fifo_{depth}",
        core=f"cores.net.rollback_fifo.RollbackFifo(2, {depth})",
        says="committed items come out in order, soon; others never; full is exact",
        module="trebuchet.cores.net.rollback_fifo",
        build=lambda cores, d=depth: RollbackFifoProof(cores.RollbackFifo(2, d)),
        depth=3,
        cover_depth=16,
        mutants=(
            Mutant(
                "shows_early",
                "(read != kept)",
                "(read != write)",
                context="write, kept, read = Signal(bits + 1), Signal(bits + 1), Signal(bits + 1)",
            ),
            Mutant("full_is_empty", "Cat(write[:bits], ~write[bits]) == read", "write == read"),
            Mutant("writes_when_full", "self.w_en & ~self.full", "self.w_en"),
            Mutant(
                "commits_without_this",
                "kept.eq(after)",
                "kept.eq(write)",
                context="write, kept, read = Signal(bits + 1), Signal(bits + 1), Signal(bits + 1)",
            ),
            Mutant(
                "commit_wins",
                "with m.If(self.rollback):",
                "with m.If(self.rollback & ~self.commit):",
            ),
        ),
        assumes="nothing",
    )
    for depth in (2, 4)
)
