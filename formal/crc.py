"""Proof of ``crc_step`` in ``cores/crc.py``: it is the CRC-32 of IEEE 802.3, as zlib has it, and
CRC-32C, as ``models/crc32c.py`` has it.

A CRC is linear: what a bit of the input adds at the end is told by the model's CRC of the message
with only this bit set. The step must be the sum of what the model says for each bit, for any
register and any beat of as many bits, so for messages of any number of beats.

Not proved: that zlib is right; the model of CRC-32C (its tests have the RFC's values).
"""

import zlib

from amaranth.hdl import Assert, Cat, Cover, Elaboratable, Signal
from trebuchet.models.crc32c import crc32c

from .kit.proof import Mutant, Proof
from .stream import free, new_harness

__all__ = ["PROOFS"]


def _adds(bits, crc):
    """For each bit of a beat, what it adds to the CRC."""
    size = bits // 8
    zero = crc(bytes(size))
    return [crc((1 << i).to_bytes(size, "little")) ^ zero for i in range(bits)]


class CrcProof(Elaboratable):
    def __init__(self, cores, bits, crc, polynomial):
        self.cores, self.bits, self.crc = cores, bits, crc
        self.polynomial = getattr(cores, polynomial)

    def elaborate(self, platform):
        m = new_harness()
        beat, start, register = Signal(self.bits), Signal(), Signal(32)
        free(m, beat, start)
        after = self.cores.crc_step(m, register, beat, "crc", self.polynomial)
        adds, mixed = _adds(self.bits, self.crc), Signal(self.bits)
        shifted = Signal(32)  # what the step leaves of the register, if the beat is narrower
        m.d.comb += [mixed.eq(beat ^ register), shifted.eq(register >> self.bits)]
        for k in range(32):
            parts = Cat(mixed[i] for i in range(self.bits) if adds[i] >> k & 1)
            m.d.comb += Assert(after[k] == parts.xor() ^ shifted[k])
        # A message, from its start on; "1234..." has a known CRC.
        count = Signal(2)
        m.d.sync += [register.eq(after), count.eq(count + (count != 3))]
        with m.If(start):
            m.d.sync += [register.eq(self.cores.CRC_INIT), count.eq(0)]
        text = b"1234567890123456"[: self.bits // 8]
        known = (beat == int.from_bytes(text, "little")) & (register == 0xFFFFFFFF)
        m.d.comb += Cover(known & (~after == self.crc(text)))
        with m.If(known):
            m.d.comb += Assert(~after == self.crc(text))
        with m.If((register == self.cores.CRC_INIT) & (beat == 0)):
            m.d.comb += Assert(~after == self.crc(bytes(self.bits // 8)))
        return m


_MUTANTS = (
    Mutant(
        "other_way",
        "(state >> 1) ^ (polynomial if state & 1 else 0)",
        "(state >> 2) ^ (polynomial if state & 1 else 0)",
        2,
    ),
    Mutant("forgets_register", "mixed.eq(beat ^ register)", "mixed.eq(beat)", 2),
    Mutant("starts_at_zero", "CRC_INIT = 0xFFFFFFFF", "CRC_INIT = 0xFFFFFFFE", 3),
    Mutant("forgets_the_rest", "register[k + bits]", "register[k]", 2),  # of narrow beats
)


def _proof(name, says, bits, crc, polynomial, value, wrong):
    return Proof(
        name=f"{name}_{bits}",
        core=f"cores.crc.crc_step({bits} bits, {polynomial})",
        says=f"the step is {says} for every register and beat",
        module="trebuchet.cores.crc",
        build=lambda cores: CrcProof(cores, bits, crc, polynomial),
        depth=1,
        cover_depth=3,
        mutants=(
            Mutant("polynomial", value, wrong, 2),
            *_MUTANTS[: len(_MUTANTS) - (bits >= 32)],
        )
        if bits <= 32
        else (Mutant("polynomial", value, wrong, 2),),
        assumes="nothing",
        not_proved=f"that {crc.__module__}.{crc.__name__} is the CRC of the standard",
    )


PROOFS = (
    *(
        _proof(
            "crc32", "CRC-32 of IEEE 802.3", bits, zlib.crc32, "CRC32", "0xEDB88320", "0xEDB88330"
        )
        for bits in (32, 64)
    ),
    *(
        _proof("crc32c", "CRC-32C", bits, crc32c, "CRC32C", "0x82F63B78", "0x82F63B68")
        for bits in (8, 32, 64, 128)
    ),
)
