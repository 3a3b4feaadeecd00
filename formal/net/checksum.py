"""Proofs of the running one's complement sum in ``cores/net/checksum.py``.

Specification (RFC 1071, 2 (C), parallel summation): in each lane the words, without the half words
that do not count, are added with each carry added in again at once; the result is the sum of the
half words of all lanes and of ``extra``, carries added in again. Held against the core for any
number of beats: the folded sum, and that ``total`` is 0xFFFF exactly when it is.

Not proved: a reset while running; that sums of words and of half words are the same modulo 0xFFFF,
which is arithmetic (RFC 1071).
"""

from amaranth.hdl import Assert, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]


def around(m, value, width, name):
    """A number of at most ``2 * width`` bits, with what is beyond ``width`` bits added in again."""
    for k in range(2):
        part = Signal(width + 1, name=f"{name}{k}")
        m.d.comb += part.eq(value[:width] + value[width:])
        value = part
    return value[:width]


class ChecksumProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        free(m, dut.start, dut.en, dut.keep, dut.data, dut.extra)
        halves = dut.extra
        for lane, acc in enumerate(dut.accs):
            word, sums = Signal(32, name=f"word{lane}"), Signal(32, name=f"sum{lane}")
            for half in range(2):
                index = 2 * lane + half
                counts = dut.en & dut.keep[index]
                part = Mux(counts, dut.data.word_select(index, 16), 0)
                m.d.comb += word.word_select(half, 16).eq(part)
            before = Mux(dut.start, 0, sums)
            m.d.sync += sums.eq(around(m, before + word, 32, f"next{lane}"))
            # Invariant: but for a carry not yet added, the core's sum is that of the lane.
            m.d.comb += Assert(around(m, acc, 32, f"acc{lane}") == sums)
            halves = halves + acc[:16] + acc[16:32] + acc[32]

        # Stages of the result.
        full = [Signal(21, name=f"full{k}") for k in range(4)]
        m.d.comb += full[0].eq(halves)
        m.d.sync += [later.eq(now) for now, later in zip(full, full[1:], strict=False)]
        total, result = (around(m, value, 16, f"r{k}") for k, value in enumerate(full[2:]))
        seen = Signal(16)
        with m.If(dut.en & ~dut.start):
            m.d.sync += seen.eq(dut.data[:16])
        m.d.comb += [
            Assert((dut.total == 0xFFFF) == (total == 0xFFFF)),
            Assert(dut.sum == result),
            Assert(dut.wide == full[1]),
            Cover((dut.total == 0xFFFF) & (seen == 0x1234)),
            Cover(dut.total[16] & (dut.sum != 0)),
            *(Cover(acc[32] & dut.en & ~dut.start) for acc in dut.accs),
        ]
        return m


PROOFS = tuple(
    Proof(
        name=f"net_checksum_{width}",
        core=f"cores.net.checksum.Checksum({width})",
        says="the sum is that of RFC 1071 over the half words that count, for any number of beats",
        module="trebuchet.cores.net.checksum",
        build=lambda cores, w=width: ChecksumProof(cores.Checksum(w)),
        depth=2,
        cover_depth=8,
        mutants=(
            Mutant("loses_the_carry", "base[:32] + masked + base[32]", "base[:32] + masked", 8),
            Mutant(
                "keeps_the_first",
                "word[16:] & keep[1].replicate(16)",
                "word[16:] & keep[0].replicate(16)",
                8,
            ),
            Mutant("never_starts", "Mux(self.start, C(0, 33), acc)", "acc", 8),
            Mutant("folds_once", "self.total[:16] + self.total[16]", "self.total[:16]", 8),
        ),
        assumes="nothing",
    )
    for width in (32, 64)
)
