"""Starting another bitstream of the flash: a pin of an ECP5, the configuration port elsewhere."""

from amaranth import Array, Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature, Register, RegisterBlock

__all__ = ["KEY", "MULTIBOOT_BLOCK", "ConfigPort", "ProgramPin", "swapped", "warm_boot"]

#: What must be written to ``start``: no slip of firmware is likely to write it.
KEY = 0xB007_C0DE

MULTIBOOT_BLOCK = RegisterBlock(
    "multiboot",
    (
        Register("start", "stb", 32, f"start another bitstream: write 0x{KEY:08x}"),
        Register("address", "rw", 32, "where it begins in flash (configuration port only)"),
        Register("application", "ro", 32, "1: this is the application's bitstream, 0: golden"),
    ),
    "other bitstreams in flash",
)


class ProgramPin(wiring.Component):
    """Has an ECP5 load the next bitstream: for boards where a pin of it pulls its own PROGRAMN.

    ===============  ====  ============  ========================================================
    member           dir   width         meaning
    ===============  ====  ============  ========================================================
    ``csr``          In    CsrSignature  :data:`MULTIBOOT_BLOCK`
    ``application``  In    1             the register of that name
    ``pull``         Out   1             1: pull PROGRAMN down; a register's output
    ===============  ====  ============  ========================================================

    :data:`KEY` written to ``start`` sets ``pull`` in the next cycle, and for good: the design ends
    there. Which bitstream follows is written in the one that runs (its BOOTADDR), so ``address``
    has no effect. *Bad input*: other values are ignored. *Reset* lets the pin go. *Source*: Lattice
    FPGA-TN-02039, ECP5 sysCONFIG usage guide, "Multi-boot".
    """

    def __init__(self):
        super().__init__(
            {"csr": In(CsrSignature(MULTIBOOT_BLOCK)), "application": In(1), "pull": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.csr.application.eq(self.application)
        with m.If(self.csr.start == KEY):
            m.d.sync += self.pull.eq(1)
        return m


#: Dummy word, sync word, NOOP; headers that write one word to WBSTAR and to CMD; IPROG (UG570).
_DUMMY, _SYNC, _NOOP = 0xFFFF_FFFF, 0xAA99_5566, 0x2000_0000
_WRITE_WBSTAR, _WRITE_CMD, _IPROG = 0x3002_0001, 0x3000_8001, 0x0000_000F


def warm_boot(address):
    """The words that have an UltraScale FPGA start the bitstream at ``address`` of its flash."""
    return [_DUMMY, _SYNC, _NOOP, _WRITE_WBSTAR, address, _WRITE_CMD, _IPROG, _NOOP]


def swapped(word):
    """An Amaranth value of 32 bits as the port takes it: the bits of each byte in reverse."""
    return Cat(*(word[byte + 7 - bit] for byte in range(0, 32, 8) for bit in range(8)))


class ConfigPort(wiring.Component):
    """Has an UltraScale FPGA load the bitstream at an address, through its primitive ICAPE3.

    ===============  ====  ============  ========================================================
    member           dir   width         meaning
    ===============  ====  ============  ========================================================
    ``csr``          In    CsrSignature  :data:`MULTIBOOT_BLOCK`
    ``application``  In    1             the register of that name
    ``csib``         Out   1             select of the port, low for the eight words
    ``rdwrb``        Out   1             0: write; changes only while ``csib`` is high
    ``data``         Out   32            a word, the bits of each byte swapped
    ===============  ====  ============  ========================================================

    :data:`KEY` written to ``start`` sends :func:`warm_boot` of ``address``, a word a cycle, from
    the second cycle after the write on. Then the FPGA configures itself anew: the design ends.
    ``address`` goes to WBSTAR as it is; a flash with addresses of four bytes takes the upper three
    there, so firmware writes the address divided by 256.

    *Bad input*: other values than the key are ignored, and everything while the words go out.
    *Reset* stops. *Source*: AMD UG570, "IPROG Using ICAP"; the order of bits, "Parallel bus bit
    order".
    """

    def __init__(self):
        super().__init__(
            {
                "csr": In(CsrSignature(MULTIBOOT_BLOCK)),
                "application": In(1),
                "csib": Out(1, init=1),
                "rdwrb": Out(1, init=1),
                "data": Out(32, init=_DUMMY),
            }
        )

    def elaborate(self, platform):
        m = Module()
        address = Signal(32)
        words = warm_boot(address)
        left = Signal(range(len(words) + 1))
        self.left, self.address = left, address  # for the invariants of the proof
        next_word = Array(reversed([Const(w, 32) if isinstance(w, int) else w for w in words]))
        m.d.comb += self.csr.application.eq(self.application)
        m.d.sync += self.csib.eq(1)
        with m.If(left != 0):
            m.d.sync += [
                left.eq(left - 1),
                self.csib.eq(0),
                self.data.eq(swapped(next_word[(left - 1)[:3]])),
            ]
        with m.Elif(self.csr.start == KEY):
            m.d.sync += [left.eq(len(words)), address.eq(self.csr.address), self.rdwrb.eq(0)]
        return m
