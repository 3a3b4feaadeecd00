"""Proof of the cipher in ``cores/tcp/speck.py``.

The harness has the round function and the key schedule of the paper (ePrint 2013/404, section 4.3:
rotations by 8 and 3, 27 rounds, four key words) written once more, with whole words shifted
instead of rotated, and both are the same after any number of rounds. A second, bounded check runs
the paper's test vector (appendix C).

Not proved: that the function is a good one.
"""

from amaranth.hdl import Assert, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated
from ..stream import free, new_harness

__all__ = ["PROOFS"]

ROUNDS = 27
#: Speck64/128 of the paper: key, plain text, cipher text.
VECTOR = (0x1B1A1918_13121110_0B0A0908_03020100, 0x3B726574_7475432D, 0x8C6FA548_454E028B)


def _ror(word, by):
    return (word >> by) | (word << (32 - by))[:32]


def _rol(word, by):
    return _ror(word, 32 - by)


class SpeckProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        free(m, dut.start, dut.block, dut.key)
        x, y, k, done = Signal(32), Signal(32), Signal(32), Signal(5, init=ROUNDS)
        keys = [Signal(32, name=f"l{i}") for i in range(3)]
        x_next, l_next = Signal(32), Signal(32)
        m.d.comb += [
            x_next.eq((_ror(x, 8) + y)[:32] ^ k),
            l_next.eq((_ror(keys[0], 8) + k)[:32] ^ done),
        ]
        with m.If(dut.start):
            m.d.sync += [Cat(y, x).eq(dut.block), Cat(k, *keys).eq(dut.key), done.eq(0)]
        with m.Elif(done < ROUNDS):
            m.d.sync += [
                x.eq(x_next),
                y.eq(_rol(y, 3) ^ x_next),
                k.eq(_rol(k, 3) ^ l_next),
                Cat(keys).eq(Cat(keys[1], keys[2], l_next)),
                done.eq(done + 1),
            ]
        m.d.comb += [Assert(dut.rounds == done), Assert(dut.result == Cat(y, x))]
        m.d.comb += Assert(Cat(dut.schedule) == Cat(k, *keys))  # invariant
        m.d.comb += Assert(done <= ROUNDS)
        again = Signal()
        with m.If(dut.start & (done == 2)):
            m.d.sync += again.eq(1)
        m.d.comb += Cover(again & (done == 3) & (dut.result != 0))
        return m


class VectorProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        key, plain, cipher = VECTOR
        first = Signal(init=1)
        m.d.sync += first.eq(0)
        m.d.comb += [dut.start.eq(first), dut.block.eq(plain), dut.key.eq(key)]
        done = Signal()
        with m.If(~first & (dut.rounds == ROUNDS)):
            m.d.comb += [done.eq(1), Assert(dut.result == cipher)]
        m.d.comb += Cover(done)
        cycles = Signal(5)
        m.d.sync += cycles.eq(Mux(cycles.all(), cycles, cycles + 1))
        with m.If(cycles == ROUNDS + 1):
            m.d.comb += Assert(done)
        return m


PROOFS = (
    Proof(
        name="speck",
        core="cores.tcp.speck.Speck",
        says="after r rounds the result is that of r rounds of Speck64/128, whatever key and block",
        module="trebuchet.cores.tcp.speck",
        build=lambda cores: SpeckProof(cores.Speck()),
        depth=1,
        cover_depth=10,
        mutants=(
            Mutant("rotates_by_7", "(x.rotate_right(8) + y) ^ k", "(x.rotate_right(7) + y) ^ k"),
            Mutant(
                "no_round_number",
                "(l0.rotate_right(8) + k) ^ self.rounds",
                "(l0.rotate_right(8) + k) ^ 0",
            ),
            Mutant("wrong_key_word", "l2.eq(self.key[96:])", "l2.eq(self.key[64:96])"),
            Mutant(
                "shift_order",
                "l0.eq(l1), l1.eq(l2), l2.eq(new_l)",
                "l0.eq(l1), l1.eq(new_l), l2.eq(l1)",
            ),
        ),
        assumes="nothing",
    ),
    Proof(
        name="speck_vector",
        core="cores.tcp.speck.Speck",
        says="the test vector of the paper, 27 cycles after the start",
        module="trebuchet.cores.tcp.speck",
        build=lambda cores: VectorProof(cores.Speck()),
        depth=30,
        cover_depth=30,
        mutants=(Mutant("a_round_less", "ROUNDS = 27", "ROUNDS = 26", 30),),
        method="bmc",
        bounded="one computation of fixed length, of constants; nothing is left out",
        assumes="nothing",
    ),
)
