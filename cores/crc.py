"""Reflected CRCs of 32 bits, one step a call.

The register is the reflected one, all ones at first; the CRC is its complement. With
:data:`CRC32` this is the CRC of IEEE 802.3 (clause 3.2.9) and of ``zlib.crc32``, with
:data:`CRC32C` that of iSCSI (RFC 7143, 13.1) and of NVMe.
"""

from amaranth import Cat, Signal

__all__ = ["CRC32", "CRC32C", "CRC_INIT", "crc_step"]

CRC_INIT = 0xFFFFFFFF
#: Polynomials, reflected.
CRC32 = 0xEDB88320
CRC32C = 0x82F63B78


def _columns(bits, polynomial):
    """For each input bit (data, XOR the register in the first 32): what it adds at the end."""
    columns = []
    for i in range(bits):
        state = 1 << i
        for _ in range(bits):
            state = (state >> 1) ^ (polynomial if state & 1 else 0)
        columns.append(state)
    return columns


def crc_step(m, register, beat, name, polynomial=CRC32):
    """A signal: the register after ``beat``, of 8 bits or more, all of them counted."""
    bits = len(beat)
    if bits < 8:
        raise ValueError(f"A CRC step must take at least 8 bits, not {bits}")
    mixed = Signal(bits, name=f"{name}_mixed")
    m.d.comb += mixed.eq(beat ^ register)
    after = Signal(32, name=f"{name}_after")
    columns = _columns(bits, polynomial)
    terms = [[mixed[i] for i in range(bits) if columns[i] >> k & 1] for k in range(32)]
    for k in range(32 - bits):  # what is not shifted out yet
        terms[k].append(register[k + bits])
    m.d.comb += after.eq(Cat(Cat(bit).xor() for bit in terms))
    return after
