"""SPI controller for a NOR flash: a byte at a time, by firmware (``firmware/flash.c``)."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .csr import CsrSignature, Field, Register, RegisterBlock, fields

__all__ = ["SPI_BLOCK", "SpiController"]

SPI_BLOCK = RegisterBlock(
    "flash",
    (
        Register("control", "rw", 1, "chip select", fields=(Field("select", 0, 1, "1: selected"),)),
        Register(
            "send",
            "stb",
            9,
            "a byte to send; ignored while busy",
            fields=(Field("byte", 0, 8), Field("go", 8, 1, "1: send it")),
        ),
        Register(
            "received",
            "ro",
            9,
            "the byte that came while the last one was sent",
            fields=(Field("byte", 0, 8), Field("busy", 8, 1, "1: the byte is under way")),
        ),
    ),
    "SPI flash",
)

#: A larger one would make a clock that no flash needs.
MAX_HALF_PERIOD = 256


class SpiController(wiring.Component):
    """Sends a byte and takes one, in SPI mode 0 (CPOL 0, CPHA 0), most significant bit first.

    ========  ====  ============  ==============================================================
    member    dir   width         meaning
    ========  ====  ============  ==============================================================
    ``csr``   In    CsrSignature  :data:`SPI_BLOCK`
    ``cs_n``  Out   1             chip select, low while ``control.select`` is 1
    ``sck``   Out   1             serial clock, low between bytes; a register's output
    ``mosi``  Out   1             to the flash; a register's output
    ``miso``  In    1             from the flash
    ========  ====  ============  ==============================================================

    A byte written to ``send`` with ``go`` goes out in eight clocks of two times ``half_period``
    cycles each. ``mosi`` changes when the clock falls; ``miso`` is taken at the last moment before
    the clock falls, so the flash has a whole period for its answer, and neither pins nor board
    delays of less than that matter. ``received.busy`` is 1 from the cycle after the write for
    ``16 * half_period`` cycles, and ``received.byte`` is whole when it is 0 again.

    ``cs_n`` follows its register at once, also during a byte: firmware waits for ``busy``.
    *Bad input*: a byte written while one is under way is ignored. *Reset* deselects the flash and
    gives up the byte under way. *Source*: data sheets of SPI NOR flashes, such as Winbond W25Q128JV
    (section 6.1, mode 0).

    Parameters
    ----------
    half_period : int
        Clock cycles of each half of the serial clock.
    """

    def __init__(self, half_period=1):
        if type(half_period) is not int or not 1 <= half_period <= MAX_HALF_PERIOD:
            raise ValueError(f"SPI half_period must be 1 to {MAX_HALF_PERIOD}, not {half_period!r}")
        self.half_period = half_period
        super().__init__(
            {
                "csr": In(CsrSignature(SPI_BLOCK)),
                "cs_n": Out(1),
                "sck": Out(1),
                "mosi": Out(1),
                "miso": In(1),
            }
        )

    def elaborate(self, platform):
        # `left` counts the halves of clocks that are to come: odd while the clock is high.
        m = Module()
        shift, left, wait = Signal(8), Signal(5), Signal(range(self.half_period))
        self.shift, self.left, self.wait = shift, left, wait  # for the invariants of the proof
        busy, last = Signal(), Signal()
        sent = fields(self.csr, "send")
        m.d.comb += [
            busy.eq(left != 0),
            last.eq(wait == 0),
            self.cs_n.eq(~self.csr.control),
            self.sck.eq(left[0]),
            self.mosi.eq(shift[7]),
            self.csr.received.eq(shift | (busy << 8)),
        ]
        with m.If(busy):
            m.d.sync += wait.eq(wait - 1)
            with m.If(last):
                m.d.sync += [wait.eq(self.half_period - 1), left.eq(left - 1)]
                with m.If(self.sck):
                    m.d.sync += shift.eq(shift << 1 | self.miso)
        with m.Elif(sent.go):
            m.d.sync += [shift.eq(sent.byte), left.eq(16), wait.eq(self.half_period - 1)]
        return m
