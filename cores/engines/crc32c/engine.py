"""CRC-32C over whole packets: appended, or checked.

Source: RFC 3720, appendix B.4 (the polynomial, and the order of bits and bytes).
"""

from dataclasses import dataclass

from amaranth import C, Cat, Module, Signal
from amaranth.lib import wiring

from ...crc import CRC32C, CRC_INIT, crc_step
from ...csr import Register, RegisterBlock, counter
from ..contract import EngineLimits, StreamEngineSignature

__all__ = ["Crc32cEngine", "crc32c_block"]

#: Bytes of the CRC.
SIZE = 4
#: The register after a message and its CRC.
RESIDUE = 0xB798B438


def crc32c_block(check=False):
    """Registers of the engine; ``check``: the mode after reset."""
    mode = Register("check", "rw", 1, "0: append the CRC-32C; 1: check it", reset=int(check))
    return RegisterBlock(
        "crc32c",
        (mode, counter("wrong", "packets whose CRC was wrong")),
        "CRC-32C of each packet, appended or checked",
    )


class Crc32cEngine(wiring.Component):
    """Appends the CRC-32C of each packet to it, or checks the one at its end.

    Ports: :class:`~trebuchet.cores.engines.contract.StreamEngineSignature` with the registers of
    :func:`crc32c_block`.

    *Append*: the packet's bytes, then the CRC, 4 bytes, the low one first, as in iSCSI. *Check*:
    the packet as it came, with ``error`` if its last 4 bytes are not the CRC of those before. The
    CRC stays: a reader of an IP packet in an Ethernet frame, or of a block of known length, does
    not look at what follows it. ``check`` is looked at when the packet has ended.

    *Latency*: 1 cycle for a packet's beats but the last, which with what follows is offered a cycle
    for each of its bytes and 2 more later; ``limits`` says so. *Throughput*: a beat a cycle, and as
    long a pause after each packet. *Back-pressure*: ``i`` waits while ``o`` has a beat that is not
    taken. *Reset*: empty, ``wrong`` 0. *Bad input*: a damaged packet stays so, and does not
    count as ``wrong``; a packet of fewer than 4 bytes has no CRC, so it is.

    Parameters
    ----------
    width : int
        Data path in bits.
    check : bool
        The mode after reset, for boards without a processor.
    """

    @dataclass(frozen=True)
    class Config:
        """Options in a plan."""

        check: bool = False

    def __init__(self, width=32, check=False):
        self.width, self.n = width, width // 8
        self.limits = EngineLimits(growth=SIZE, latency=self.n + 1)
        super().__init__(StreamEngineSignature(width, crc32c_block(check)))
        # No ports: for the proof's invariants. `left`: bytes of the last beat still to be added.
        self.held, self.left = Signal.like(self.i.payload), Signal(range(self.n + 1))

    # A full beat of the packet's middle goes through the wide step, the bytes of its last beat one
    # by one through the narrow one: a step for each number of bytes would be as large as all
    # of the rest. The last beat is held until the CRC is known.
    def elaborate(self, platform):
        m = Module()
        n, i, o, held, left = self.n, self.i, self.o, self.held, self.left
        register, rest, room = Signal(32, init=CRC_INIT), Signal(self.width), Signal()
        m.d.comb += room.eq(~o.valid | o.ready)
        wide = crc_step(m, register, i.p.data, "wide", CRC32C)
        narrow = crc_step(m, register, rest[:8], "narrow", CRC32C)
        with m.If(room):
            m.d.sync += o.valid.eq(0)
        with m.FSM(name="engine"):
            with m.State("PASS"):
                m.d.comb += i.ready.eq(room)
                with m.If(i.valid & room & ~i.p.last):
                    m.d.sync += [o.valid.eq(1), o.p.eq(i.p), register.eq(wide)]
                with m.If(i.valid & room & i.p.last):
                    m.d.sync += [held.eq(i.p), rest.eq(i.p.data), left.eq(n - i.p.empty)]
                    m.next = "SUM"
            with m.State("SUM"):
                m.d.sync += [register.eq(narrow), rest.eq(rest >> 8), left.eq(left - 1)]
                with m.If(left == 1):
                    m.next = "LAST"
            with m.State("LAST"):  # nothing is in `o`: what was has left as `held` was filled
                m.d.sync += [o.valid.eq(1), o.p.eq(held)]
                with m.If(self.csr.check):
                    self._check(m, register, held)
                with m.Else():
                    self._append(m, register, held)
            with m.State("CRC"):
                with m.If(room):
                    m.d.sync += [o.valid.eq(1), o.p.eq(held), o.p.first.eq(0)]
                    m.d.sync += [o.p.empty.eq(held.empty + n - SIZE), register.eq(CRC_INIT)]
                    m.d.sync += o.p.data.eq(~register >> Cat(C(0, 3), held.empty[:2]))
                    m.next = "PASS"
        return m

    def _check(self, m, register, held):
        wrong = register != RESIDUE
        m.d.sync += [self.o.p.error.eq(held.error | wrong), register.eq(CRC_INIT)]
        with m.If(wrong & ~held.error):
            m.d.sync += self.csr.wrong.eq(self.csr.wrong + 1)
        m.next = "PASS"

    def _append(self, m, register, held):
        """The packet's last bytes, and as much of the CRC as the beat has room for."""
        o, crc = self.o.p, ~register
        with m.Switch(held.empty):
            for empty in range(self.n):
                with m.Case(empty):
                    m.d.sync += o.data.eq(Cat(held.data[: self.width - 8 * empty], crc))
        with m.If(held.empty >= SIZE):
            m.d.sync += [o.empty.eq(held.empty - SIZE), register.eq(CRC_INIT)]
            m.next = "PASS"
        with m.Else():
            m.d.sync += [o.empty.eq(0), o.last.eq(0), o.error.eq(0)]
            m.next = "CRC"
