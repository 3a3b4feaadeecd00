"""Read words from a source of bytes ahead of the processor, and their CRC-32 (``firmware/rom``)."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .crc import CRC_INIT, crc_step
from .csr import CsrSignature, Register, RegisterBlock

__all__ = ["WordReader", "words_block"]


def words_block(count_width):
    """The registers of a reader whose count of bytes has ``count_width`` bits."""
    return RegisterBlock(
        "flash_words",
        (
            Register("count", "stb", count_width, "read so many bytes; 0: nothing happens"),
            Register("valid", "ro", 1, "1: there is a word"),
            Register("word", "ro", 32, "the next four bytes, the first one lowest"),
            Register("next", "stb", 1, "1: the word has been taken"),
            Register("crc", "ro", 32, "CRC-32 of the bytes; of all when the last word has come"),
        ),
        "words of the SPI flash",
    )


class WordReader(wiring.Component):
    """Reads a number of bytes, offers them as words, and computes their CRC-32.

    ==========  ====  ============  ============================================================
    member      dir   width         meaning
    ==========  ====  ============  ============================================================
    ``csr``     In    CsrSignature  :func:`words_block`
    ``start``   Out   1             fetch a byte; asserted only while ``busy`` is 0
    ``active``  Out   1             a read is under way: no one else may start a byte
    ``busy``    In    1             a byte is being fetched: 1 in the cycle after ``start``
    ``byte``    In    8             the last byte fetched, stable while ``busy`` is 0
    ==========  ====  ============  ============================================================

    A write of *n* to ``count`` starts a read of *n* bytes. They are offered in ``word`` four at a
    time, the first in bits 0 to 7, while ``valid`` is 1; the last word is filled up with zeros. A
    write of 1 to ``next`` while ``valid`` is 1 takes the word. When all words were offered,
    ``crc`` is the CRC-32 (IEEE 802.3, as ``zlib.crc32``) of the *n* bytes until the next read.

    *Latency*: ``valid`` rises two cycles after ``busy`` falls for the word's last byte.
    *Throughput*: a byte takes one cycle more than ``busy`` lasts. *Back-pressure*: while a word is
    not taken, four more bytes are collected behind it, and a fifth is left in the source; then no
    further byte is started. *Bad input*: a write to ``count`` during a read gives that one up, with
    the byte under way, and starts anew; ``next`` without ``valid`` is ignored. When a read begins,
    a byte under way that is not of this read is waited for and dropped. *Reset* ends a read.

    Parameters
    ----------
    count_width : int
        Bits of the number of bytes, 3 to 32.
    """

    def __init__(self, count_width=24):
        if type(count_width) is not int or not 3 <= count_width <= 32:
            raise ValueError(f"count_width must be 3 to 32, not {count_width!r}")
        self.count_width = count_width
        super().__init__(
            {
                "csr": In(CsrSignature(words_block(count_width))),
                "start": Out(1),
                "active": Out(1),
                "busy": In(1),
                "byte": In(8),
            }
        )

    def elaborate(self, platform):
        # `left` bytes are still to be started; one of ours is `waiting` from its start until it is
        # put behind the `lane` bytes in `behind`, which becomes the word when it is `whole`.
        m = Module()
        csr = self.csr
        left, waiting, lane = Signal(self.count_width), Signal(), Signal(2)
        behind, whole, crc = Signal(32), Signal(), Signal(32, init=CRC_INIT)
        word, valid = Signal(32), Signal()
        self.left, self.waiting, self.lane = left, waiting, lane  # for the proof's invariants
        self.behind, self.whole, self.crc = behind, whole, crc
        came, moves = Signal(), Signal()
        m.d.comb += [
            came.eq(waiting & ~self.busy & ~whole),
            moves.eq(whole & (~valid | csr.next)),
            self.start.eq((left != 0) & ~self.busy & (~waiting | came) & (csr.count == 0)),
            self.active.eq((left != 0) | waiting),
            csr.word.eq(word),
            csr.valid.eq(valid),
            csr.crc.eq(~crc),
        ]
        after = crc_step(m, crc, self.byte, "crc")
        with m.If(csr.next):
            m.d.sync += valid.eq(0)
        with m.If(moves):
            m.d.sync += [word.eq(behind), valid.eq(1), whole.eq(0)]
        with m.If(came):
            shifted = self.byte << (lane << 3)
            m.d.sync += [
                behind.eq(Mux(lane == 0, 0, behind) | shifted),
                lane.eq(lane + 1),
                whole.eq((lane == 3) | (left == 0)),
                crc.eq(after),
                waiting.eq(0),
            ]
        with m.If(self.start):
            m.d.sync += [waiting.eq(1), left.eq(left - 1)]
        with m.If(csr.count != 0):
            m.d.sync += [left.eq(csr.count), waiting.eq(0), lane.eq(0), whole.eq(0), valid.eq(0)]
            m.d.sync += crc.eq(CRC_INIT)
        return m
