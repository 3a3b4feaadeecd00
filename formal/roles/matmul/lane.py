"""Proof of ``MacLane`` in ``cores/roles/matmul/lane.py`` with narrow numbers.

Contract, over public ports: the sum of the products since the last ``first``, modulo 2**32, each of
the word that the bank had at the address given two cycles before the other factor; the bank keeps
the word written last at each address (an arbitrary one). The latencies are those of the data sheet.

Numbers have five bits of their 32, low and high ones of both halves, the others are 0: enough for
each of the partial products to matter, few enough for a multiplier to be compared with another.

Not proved: other bits (the simulations compare the role with its model); a word read in the cycle
in which it is written; a reset, which the numbers do not have.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal

from ...kit.inside import Inside
from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness

__all__ = ["PROOFS"]

BITS = (0, 15, 16, 17, 31)
MASK = sum(1 << k for k in BITS)


class MacLaneProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        i = Inside(m, dut)
        free(m, dut.w_en, dut.w_addr, dut.w_data, dut.r_addr, dut.a, dut.first)
        m.d.comb += [
            Assume((dut.a & ~MASK) == 0),
            Assume((dut.w_data & ~MASK) == 0),
            Assume(~dut.w_en | (dut.w_addr != dut.r_addr)),
        ]
        words = [Signal(32, name=f"word{k}") for k in range(2)]
        one, two = Signal(32), Signal(32)  # the word read, one and two cycles later
        products = [Signal(32, name=f"product{k}") for k in range(3)]
        total = Signal(32)
        with m.If(dut.w_en):
            for k, word in enumerate(words):
                with m.If(dut.w_addr == k):
                    m.d.sync += word.eq(dut.w_data)
        m.d.sync += [
            one.eq(Mux(dut.r_addr, words[1], words[0])),
            two.eq(one),
            products[0].eq(self._product(dut.a, two)),
            products[1].eq(products[0]),
            products[2].eq(products[1]),
            total.eq(Mux(dut.first, 0, total) + products[2]),
        ]
        m.d.comb += Assert(dut.acc == total)
        # Invariants; `low` and `middle` have no names of their own.
        bank = i.parts["bank"]
        for k, word in enumerate(words):
            peek = bank.read_port(domain="comb")
            m.d.comb += [peek.addr.eq(k), Assert(peek.data == word), Assert((word & ~MASK) == 0)]
        cross = (i.cross_ab + i.cross_ba)[:16]
        latch, ran = bank.read_ports[0].data, Signal()
        m.d.sync += ran.eq(1)
        m.d.comb += [
            Assume(ran | (latch == 0)),  # what it holds before the first read is anything
            Assert(latch == one),
            Assert(((one | two) & ~MASK) == 0),
            Assert(i.b == two),
            Assert(products[0] == (i.unnamed(0) + (cross << 16))[:32]),
            Assert(products[1] == (i.low_later + (i.unnamed(1) << 16))[:32]),
            Assert(i.signal("product") == products[2]),
        ]
        m.d.comb += Cover((total == (1 << 17) + 2) & (products[2] == 1))
        return m

    @staticmethod
    def _product(a, b):
        """Modulo 2**32, a shifted summand for each bit that a number may have."""
        return sum(Mux(a[k], (b << k)[:32], 0) for k in BITS)[:32]


PROOFS = (
    Proof(
        name="matmul_lane",
        core="cores.roles.matmul.lane.MacLane(2)",
        says="the sum of products since `first`, modulo 2**32, as late as the data sheet says",
        module="trebuchet.cores.roles.matmul.lane",
        build=lambda cores: MacLaneProof(cores.MacLane(2)),
        depth=1,
        cover_depth=16,
        mutants=(
            Mutant("one_cross_product", "middle.eq(cross[0] + cross[1])", "middle.eq(cross[0])"),
            Mutant("high_by_high", "a[16:] * b[:16]", "a[16:] * b[16:]"),
            Mutant("keeps_the_sum", "Mux(self.first, C(0, 32), acc)", "acc"),
            Mutant(
                "a_cycle_early",
                "low.eq(a[:16] * b[:16])",
                "low.eq(a[:16] * read.data[:16])",
                context="write, read = bank.write_port(), bank.read_port()",
            ),
        ),
        assumes="numbers of five bits; no word is read in the cycle in which it is written",
        not_proved="other bits; a reset",
    ),
)
