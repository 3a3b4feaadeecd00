"""One multiply-accumulate lane of the matrix multiplier, with the columns of B it works on."""

from amaranth import C, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ...buffers import NO_COLLISIONS

__all__ = ["ACC_DELAY", "A_DELAY", "BLOCK_RAM", "LANE_DELAY", "MacLane"]

#: Attributes of the operand stores: no word is read in the cycle in which it is written.
BLOCK_RAM = {**NO_COLLISIONS, "ram_style": "block"}
#: ``a`` belongs to the address given this many cycles before.
A_DELAY = 2
#: ``first`` belongs to the address given this many cycles before.
ACC_DELAY = 5
#: ``acc`` holds the sum up to and with the address given this many cycles before.
LANE_DELAY = 6


class MacLane(wiring.Component):
    """A bank of 32-bit words, a multiplier and an accumulator, all modulo 2**32.

    Parameters
    ----------
    depth : int
        Words of the bank.

    ==========  ====  ============================================================================
    member      dir   meaning
    ==========  ====  ============================================================================
    ``w_en``    In    store ``w_data`` at ``w_addr``
    ``r_addr``  In    cycle 0: the word b of the bank
    ``a``       In    cycle 2: the other factor
    ``first``   In    cycle 5: this product begins a sum
    ``acc``     Out   cycle 6: the sum of a * b since the last ``first``
    ==========  ====  ============================================================================

    Throughput: one product a cycle. There is nothing to wait for. Reset: the bank keeps its words.
    Bad input: a word read in the cycle in which it is written is undefined.
    """

    def __init__(self, depth):
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"Depth of a bank must be an integer >= 2, not {depth!r}")
        self.depth = depth
        super().__init__(
            {
                "w_en": In(1),
                "w_addr": In(range(depth)),
                "w_data": In(32),
                "r_addr": In(range(depth)),
                "a": In(32),
                "first": In(1),
                "acc": Out(32),
            }
        )

    # The low half of a 32-bit product needs three 16-bit products: low by low, and the two cross
    # products, of which only the low halves count. Signs do not matter modulo 2**32. A register
    # follows every RAM, multiplier and adder, so that none shares a cycle with another.
    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Memory(
            shape=unsigned(32), depth=self.depth, init=[], attrs=BLOCK_RAM
        )
        write, read = bank.write_port(), bank.read_port()
        # Numbers need no reset: what they are taken for is told by `first`.
        a, b = self.a, Signal(32, reset_less=True)
        low, low_later = Signal(32, reset_less=True), Signal(32, reset_less=True)
        cross = [Signal(16, name=f"cross_{name}", reset_less=True) for name in ("ab", "ba")]
        middle, product = Signal(16, reset_less=True), Signal(32, reset_less=True)
        acc = Signal(32, reset_less=True)
        m.d.comb += [
            write.en.eq(self.w_en),
            write.addr.eq(self.w_addr),
            write.data.eq(self.w_data),
            read.addr.eq(self.r_addr),
        ]
        m.d.sync += [
            b.eq(read.data),
            low.eq(a[:16] * b[:16]),
            cross[0].eq(a[:16] * b[16:]),
            cross[1].eq(a[16:] * b[:16]),
            low_later.eq(low),
            middle.eq(cross[0] + cross[1]),
            product.eq(Cat(low_later[:16], (low_later[16:] + middle)[:16])),
            acc.eq(Mux(self.first, C(0, 32), acc) + product),
        ]
        m.d.comb += self.acc.eq(acc)
        return m
