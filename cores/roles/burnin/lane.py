"""A lane of the burn-in role: LUTs, a multiplier and a block RAM that check themselves.

Source of the generator: Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003. Of
the residue check: Avizienis, Arithmetic Error Codes, IEEE Transactions on Computers C-20, 1971.
``models/burnin.py`` is the naive model.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["DRAIN", "LANE_PORTS", "BurninLane", "xorshift"]

#: Cycles from the last step until the last mismatch has been reported.
DRAIN = 8
#: Operands of the multiplier are bits 0 to 17 and 14 to 31 of the state.
_FACTOR = 18


#: Members of a lane's signature.
LANE_PORTS = {
    "init": In(32),
    "start": In(1),
    "step": In(1),
    "inject": In(3),
    "lut_bad": Out(1),
    "dsp_bad": Out(1),
    "ram_bad": Out(1),
    "digest": Out(32),
}


def xorshift(x):
    """Return the 32-bit word after ``x``, one step of xorshift32."""
    x = x ^ (x << 13)[:32]
    x = x ^ (x >> 17)
    return x ^ (x << 5)[:32]


def _digits(value):
    """Sum of the hexadecimal digits: congruent to ``value`` modulo 15."""
    return sum(value[k : k + 4] for k in range(0, len(value), 4))


def _folded(value):
    """A number of 0 to 15 that is congruent modulo 15; ``value`` has at most 8 bits."""
    once = value[:4] + value[4:]
    return (once[:4] + once[4:])[:4]


def _product(a, b):
    """``a`` times ``b``, 4 bits each, in LUTs: tools make a multiplier of the operator."""
    return sum(Mux(b[k], a << k, 0) for k in range(4))[:8]


class BurninLane(wiring.Component):
    """Makes a pseudo-random word a step; computes, multiplies, stores it, and compares.

    ==============  ===  ==========================================================================
    ``init``        In   32 bits, not 0: first word; taken with ``start``
    ``start``       In   1: begin with ``init``, accumulator 0; ``step`` is then ignored
    ``step``        In   1: the next word
    ``inject``      In   3 bits, with ``step``: a fault in logic, multiplier, block RAM
    ``lut_bad``     Out  pulse: the two copies of the generator differ; 2 cycles after the step
    ``dsp_bad``     Out  pulse: a product is wrong modulo 15; 4 cycles after its step
    ``ram_bad``     Out  pulse: a word read back differs from what was written; 2 cycles after the
                         step that reads it, ``depth`` - 1 steps after that which wrote it
    ``digest``      Out  32 bits: word XOR accumulator; stable 2 cycles after the last step
    ==============  ===  ==========================================================================

    Parameters: ``depth``, words of block RAM, a power of two; 512 fill one of an ECP5.

    The generator has a second copy whose register holds the complement, so that tools cannot merge
    them. A product of 18 by 18 bits is compared modulo 15: each wrong bit alone is found, of random
    faults 14 of 15; the accumulator has them all in ``digest``. A word lies in the RAM for
    ``depth`` steps; a third generator, as many steps behind, makes it again for comparison.
    Throughput: a step a cycle. Reset: stopped; nothing is reported before ``start`` and steps.
    A multiplier and a RAM are not reset: their outputs are used after steps only.
    """

    def __init__(self, depth=512):
        if depth < 4 or depth & (depth - 1):
            raise ValueError(f"Depth must be a power of two >= 4, not {depth!r}")
        self.depth = depth
        super().__init__(LANE_PORTS)
        #: State of the generator, and of its copy, which is the complement.
        self.word = Signal(32)
        self.complement = Signal(32, init=0xFFFFFFFF)

    def elaborate(self, platform):
        m = Module()
        word, complement = self.word, self.complement
        stepped = Signal()
        m.d.sync += stepped.eq(self.step & ~self.start)
        with m.If(self.start):
            m.d.sync += [word.eq(self.init), complement.eq(~self.init)]
        with m.Elif(self.step):
            m.d.sync += word.eq(xorshift(word))
            m.d.sync += complement.eq(~xorshift(~complement) ^ self.inject[0])
        m.d.sync += self.lut_bad.eq(stepped & (word != ~complement))
        self._multiply(m, word, stepped)
        self._store(m, word, stepped)
        return m

    def _multiply(self, m, word, stepped):
        a, b = word[:_FACTOR], word[32 - _FACTOR :]
        product, accumulator = Signal(2 * _FACTOR), Signal(32)
        sum_a, sum_b = Signal(6), Signal(6)
        with m.If(self.step):
            m.d.sync += product.eq((a * b) ^ self.inject[1])
            m.d.sync += [sum_a.eq(_digits(a)), sum_b.eq(_digits(b))]
        # Each line is a stage; `stepped` says that the first holds a product of a step.
        found, expected = Signal(8), Signal(8)
        m.d.sync += [
            found.eq(_digits(product)),
            expected.eq(_product(_folded(sum_a), _folded(sum_b))),
        ]
        left, right = Signal(4), Signal(4)
        m.d.sync += [left.eq(_folded(found)), right.eq(_folded(expected))]
        valid = Signal(2)
        m.d.sync += valid.eq(Cat(stepped, valid[0]))
        same = (left == right) | ((left == 0) & (right == 15)) | ((left == 15) & (right == 0))
        m.d.sync += self.dsp_bad.eq(valid[1] & ~same)
        with m.If(self.start):
            m.d.sync += accumulator.eq(0)
        with m.Elif(stepped):
            folded = product[:32] ^ product[32:]
            m.d.sync += accumulator.eq(accumulator.rotate_left(1) ^ folded)
        m.d.comb += self.digest.eq(word ^ accumulator)

    def _store(self, m, word, stepped):
        # A word is written while the next address is read, so that no address is both at once.
        m.submodules.ram = ram = memory.Memory(shape=32, depth=self.depth, init=[])
        write, read = ram.write_port(), ram.read_port()
        place, full, behind = Signal(range(self.depth)), Signal(), Signal(32)
        m.d.comb += [
            write.addr.eq(place),
            write.data.eq(word ^ self.inject[2]),
            write.en.eq(self.step),
            read.addr.eq(place + 1),
            read.en.eq(self.step),
        ]
        with m.If(self.start):
            m.d.sync += [place.eq(0), full.eq(0), behind.eq(self.init)]
        with m.Else():
            with m.If(self.step):
                m.d.sync += place.eq(place + 1)
                with m.If(place == Const(self.depth - 1)):
                    m.d.sync += full.eq(1)
            with m.If(stepped & full):
                m.d.sync += behind.eq(xorshift(behind))
        m.d.sync += self.ram_bad.eq(stepped & full & (read.data != behind))
