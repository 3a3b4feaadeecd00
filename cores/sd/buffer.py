"""Blocks that a card has sent: kept until they are verified, then put out as words."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from ..drive.port import SECTOR

__all__ = ["BLOCKS", "SdBuffer"]

#: Blocks that the buffer holds; a power of two.
BLOCKS = 4


class SdBuffer(wiring.Component):
    """Block RAM for four blocks of 512 bytes, written at any place, read in order.

    ===========  ====  ======  ===============================================================
    member       dir   shape   meaning
    ===========  ====  ======  ===============================================================
    ``w_en``     In    1       write ``w_data``
    ``w_left``   In            words of the block that follow the written one
    ``w_data``   In    width   the word
    ``keep``     In    1       pulse: all words of the block were written, it may be read; without
                               it the next block takes its place
    ``room``     Out   1       a block may be written; so may not while this is 0
    ``empty``    Out   1       every kept block has left
    ``output``   Out   stream  the words of the kept blocks, in order
    ``final``    Out   1       the word at ``output`` is the last one of its block
    ``only``     Out   1       of all blocks that were kept, the one at ``output`` is the last
    ===========  ====  ======  ===============================================================

    A word appears three cycles after ``keep``; from then on one word a cycle. Do not raise ``keep``
    while ``room`` is 0, nor in the same cycle as ``w_en``. Reset empties it.

    Parameters
    ----------
    width : int
        Bits of a word.
    sector : int
        Bytes of a block, a power of two; other than 512 in proofs.
    """

    def __init__(self, width, sector=SECTOR):
        if sector & (sector - 1) or sector * 8 < 2 * width:
            raise ValueError(f"Blocks must be a power of two of at least 2 words, not {sector!r}")
        self.width, self.words = width, sector * 8 // width
        self.bits = self.words.bit_length() - 1
        super().__init__(
            {
                "w_en": In(1),
                "w_left": In(self.bits),
                "w_data": In(width),
                "keep": In(1),
                "room": Out(1),
                "empty": Out(1),
                "output": Out(stream.Signature(unsigned(width))),
                "final": Out(1),
                "only": Out(1),
            }
        )

    # Words are stored by how many of the block follow them, blocks in descending order, so that one
    # counter reads them. `kept` blocks have not been fetched to the end, `stored` have not left.
    # RAM output and output register are two places that advance independently.
    def elaborate(self, platform):
        m = Module()
        self.ram = m.submodules.ram = ram = Memory(
            shape=unsigned(self.width), depth=BLOCKS * self.words, init=[], attrs=NO_COLLISIONS
        )
        wp, rp = ram.write_port(), ram.read_port()
        self.reader = rp
        block_bits = BLOCKS.bit_length() - 1
        self.block = block = Signal(block_bits, init=BLOCKS - 1)
        self.read = read = Signal(block_bits + self.bits, init=BLOCKS * self.words - 1)
        self.kept, self.stored = Signal(range(BLOCKS + 1)), Signal(range(BLOCKS + 1))
        self.fetched, self.fetched_final = Signal(), Signal()
        load, fetch, last, leaves = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            wp.addr.eq(Cat(self.w_left, block)),
            wp.data.eq(self.w_data),
            wp.en.eq(self.w_en),
            self.room.eq(~self.stored[block_bits]),
            self.empty.eq(self.stored == 0),
            self.only.eq(self.stored == 1),
            load.eq(~self.output.valid | self.output.ready),
            fetch.eq((~self.fetched | load) & (self.kept != 0)),
            last.eq(read[: self.bits] == 0),
            rp.addr.eq(read),
            rp.en.eq(fetch),
            leaves.eq(self.output.valid & self.output.ready & self.final),
        ]
        for count, down in ((self.kept, fetch & last), (self.stored, leaves)):
            with m.If(self.keep ^ down):
                m.d.sync += count.eq(Mux(down, count - 1, count + 1))
        with m.If(self.keep):
            m.d.sync += block.eq(block - 1)
        with m.If(fetch):
            m.d.sync += [read.eq(read - 1), self.fetched.eq(1), self.fetched_final.eq(last)]
        with m.Elif(load):
            m.d.sync += self.fetched.eq(0)
        with m.If(load):
            m.d.sync += [self.output.valid.eq(self.fetched), self.output.payload.eq(rp.data)]
            m.d.sync += self.final.eq(self.fetched_final)
        return m
