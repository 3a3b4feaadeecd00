"""Proof of ``crc_step`` in ``cores/ltl/crc.py``: it is the CRC-32 of IEEE 802.3, as zlib has it.

A CRC is linear: what a bit of the input adds at the end is told by ``zlib.crc32`` of the message
with only this bit set. The step must be the sum of what zlib says for each bit, for any register
and any beat of 32 and of 64 bits, so for messages of any number of beats.

Not proved: that zlib is right.
"""

import zlib

from amaranth.hdl import Assert, Cat, Cover, Elaboratable, Signal

from .proof import Mutant, Proof
from .stream import free, new_harness

__all__ = ["PROOFS"]


def _adds(bits):
    """For each bit of a beat, what it adds to the CRC."""
    size = bits // 8
    zero = zlib.crc32(bytes(size))
    return [zlib.crc32((1 << i).to_bytes(size, "little")) ^ zero for i in range(bits)]


class CrcProof(Elaboratable):
    def __init__(self, cores, bits):
        self.cores, self.bits = cores, bits

    def elaborate(self, platform):
        m = new_harness()
        beat, start, register = Signal(self.bits), Signal(), Signal(32)
        free(m, beat, start)
        after = self.cores.crc_step(m, register, beat, "crc")
        adds, mixed = _adds(self.bits), Signal(self.bits)
        m.d.comb += mixed.eq(beat ^ register)
        for k in range(32):
            parts = Cat(mixed[i] for i in range(self.bits) if adds[i] >> k & 1)
            m.d.comb += Assert(after[k] == parts.xor())
        # A message, from its start on; 64 bits of "1234..." have a known CRC.
        count = Signal(2)
        m.d.sync += [register.eq(after), count.eq(count + (count != 3))]
        with m.If(start):
            m.d.sync += [register.eq(self.cores.CRC_INIT), count.eq(0)]
        text = b"12345678"[: self.bits // 8]
        known = (beat == int.from_bytes(text, "little")) & (register == 0xFFFFFFFF)
        m.d.comb += Cover(known & (~after == zlib.crc32(text)))
        with m.If(known):
            m.d.comb += Assert(~after == zlib.crc32(text))
        with m.If((register == self.cores.CRC_INIT) & (beat == 0)):
            m.d.comb += Assert(~after == zlib.crc32(bytes(self.bits // 8)))
        return m


PROOFS = tuple(
    Proof(
        name=f"ltl_crc_{bits}",
        core=f"cores.ltl.crc.crc_step({bits} bits)",
        says="the step is CRC-32 of IEEE 802.3 for every register and beat",
        module="trebuchet.cores.ltl.crc",
        build=lambda cores, b=bits: CrcProof(cores, b),
        depth=1,
        cover_depth=3,
        mutants=(
            Mutant("polynomial", "0xEDB88320", "0xEDB88330", 2),
            Mutant("other_way", "state >> 1) ^", "state >> 2) ^", 2),
            Mutant("forgets_register", "mixed.eq(beat ^ register)", "mixed.eq(beat)", 2),
            Mutant("starts_at_zero", "CRC_INIT = 0xFFFFFFFF", "CRC_INIT = 0xFFFFFFFE", 3),
        ),
        assumes="nothing",
        not_proved="that zlib.crc32 is the CRC of the standard",
    )
    for bits in (32, 64)
)
