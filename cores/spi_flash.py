"""SPI controller for a NOR flash that firmware is started from: by bytes, and read by words."""

from amaranth import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .csr import CsrSignature, fields
from .spi_controller import SPI_BLOCK, SpiController
from .word_reader import WordReader, words_block

__all__ = ["SpiFlash"]

#: Of the bytes of a read.
COUNT_WIDTH = 24


class SpiFlash(wiring.Component):
    """A :class:`~.spi_controller.SpiController`, and a :class:`~.word_reader.WordReader` on it.

    ==========  ====  ============  ==============================================================
    member      dir   width         meaning
    ==========  ====  ============  ==============================================================
    ``csr``     In    CsrSignature  ``SPI_BLOCK``, of the controller
    ``words``   In    CsrSignature  ``words_block(COUNT_WIDTH)``, of the reader
    ``cs_n``    Out   1             as of the controller, like ``sck``, ``mosi`` and ``miso``
    ==========  ====  ============  ==============================================================

    Firmware selects the flash, sends a read command with its address by bytes, and writes to
    ``words.count`` how many bytes are to be read. A byte takes ``16 * half_period + 1`` cycles, in
    which zeros are sent. The flash stays selected until firmware deselects it. *Bad input*: a byte
    that firmware sends during a read is ignored. Latency, back-pressure and reset: those of the
    parts.

    Parameters
    ----------
    half_period : int
        Clock cycles of each half of the serial clock, as of the controller.
    """

    def __init__(self, half_period=1):
        self.controller = SpiController(half_period)
        super().__init__(
            {
                "csr": In(CsrSignature(SPI_BLOCK)),
                "words": In(CsrSignature(words_block(COUNT_WIDTH))),
                "cs_n": Out(1),
                "sck": Out(1),
                "mosi": Out(1),
                "miso": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.controller = spi = self.controller
        m.submodules.reader = reader = WordReader(COUNT_WIDTH)
        connect(m, flipped(self.words), reader.csr)
        received = fields(spi.csr, "received")
        m.d.comb += [
            spi.csr.control.eq(self.csr.control),
            spi.csr.send.eq(Mux(reader.active, reader.start << 8, self.csr.send)),
            self.csr.received.eq(spi.csr.received),
            reader.busy.eq(received.busy),
            reader.byte.eq(received.byte),
            self.cs_n.eq(spi.cs_n),
            self.sck.eq(spi.sck),
            self.mosi.eq(spi.mosi),
            spi.miso.eq(self.miso),
        ]
        return m
