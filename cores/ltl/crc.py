"""CRC-32 of IEEE 802.3 (clause 3.2.9) over whole beats, one step a call.

The register is the reflected one, all ones at first; the CRC is its complement. This is the CRC
of ``zlib.crc32``.
"""

from amaranth import Cat, Signal

__all__ = ["CRC_INIT", "crc_step"]

CRC_INIT = 0xFFFFFFFF
_POLYNOMIAL = 0xEDB88320


def _columns(bits):
    """For each input bit (data, XOR the register in the first 32): what it adds at the end."""
    columns = []
    for i in range(bits):
        state = 1 << i
        for _ in range(bits):
            state = (state >> 1) ^ (_POLYNOMIAL if state & 1 else 0)
        columns.append(state)
    return columns


def crc_step(m, register, beat, name):
    """A signal: the register after ``beat`` (32 or more bits, all of them counted)."""
    bits = len(beat)
    if bits < 32:
        raise ValueError(f"A CRC step must take at least 32 bits, not {bits}")
    mixed = Signal(bits, name=f"{name}_mixed")
    m.d.comb += mixed.eq(beat ^ register)
    after = Signal(32, name=f"{name}_after")
    columns = _columns(bits)
    m.d.comb += after.eq(
        Cat(Cat(mixed[i] for i in range(bits) if columns[i] >> k & 1).xor() for k in range(32))
    )
    return after
