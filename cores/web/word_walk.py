"""Matches a token against the words of :mod:`.words`, a byte a cycle."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .words import BRANCHES, DEAD, METHODS, NAMES, NODES

__all__ = ["NODE_WIDTH", "WordWalk"]

#: Bits of a node's number.
NODE_WIDTH = (len(NODES) - 1).bit_length()


class WordWalk(wiring.Component):
    """Walks the table of words with the bytes of a token.

    ===========  ===  ==========================================================================
    ``byte``     In   a byte of a token
    ``start``    In   it is the first one, of a method if ``methods``, else of a field's name
    ``step``     In   it is a later one
    ``exact``    In   with ``step``: case matters; otherwise ``byte`` counts as in lower case
    ``set``      In   instead, go to node ``target``; wins over the others
    ``word``     Out  the :class:`~.words.Word` that all bytes so far are, 0 for none
    ===========  ===  ==========================================================================

    Constant while nothing is asked. ``word`` follows a cycle after the byte. Reset: no word. Bytes
    of a word are ASCII; any other byte matches nothing.
    """

    byte: In(8)
    start: In(1)
    methods: In(1)
    step: In(1)
    exact: In(1)
    set: In(1)
    target: In(NODE_WIDTH)
    word: Out(4)

    def __init__(self):
        super().__init__()
        self.node = Signal(NODE_WIDTH)  # no port: for proofs

    def elaborate(self, platform):
        m = Module()
        here, folded, byte = Signal(8), Signal(8), self.byte
        m.d.comb += [
            folded.eq(Cat(byte[:5], byte[5] | (byte[6] & ~self.exact), byte[6:])),
            self.word.eq(here[:4] & here[7].replicate(4)),
        ]
        with m.Switch(self.node):
            for number, entry in enumerate(NODES):
                with m.Case(number):
                    m.d.comb += here.eq(entry)
        with m.If(self.set):
            m.d.sync += self.node.eq(self.target)
        with m.Elif(self.start):
            m.d.sync += self.node.eq(DEAD)
            with m.If(self.methods):
                self._first(m, byte, METHODS)
            with m.Else():
                self._first(m, folded, NAMES)
        with m.Elif(self.step):
            m.d.sync += self.node.eq(DEAD)
            with m.If((folded == here) & (self.node != DEAD)):
                m.d.sync += self.node.eq(self.node + 1)
            for node, other, target in BRANCHES:
                with m.If((self.node == node) & (folded == other)):
                    m.d.sync += self.node.eq(target)
        return m

    def _first(self, m, byte, places):
        for first, node in places.items():
            with m.If(byte == first):
                m.d.sync += self.node.eq(node)
