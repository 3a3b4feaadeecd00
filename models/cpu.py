"""Golden model of our own instructions of the processor (docs/cpu.md), on 32-bit numbers."""

__all__ = ["cksum_add", "cksum_fold", "cksum_word"]


def cksum_add(a: int, b: int) -> int:
    """RFC 1071, 2 (C): the ones' complement sum, the carry added in again."""
    total = a + b
    return (total & 0xFFFF_FFFF) + (total >> 32)


def cksum_fold(a: int) -> int:
    """The ones' complement sum of both halves, 16 bits."""
    total = (a >> 16) + (a & 0xFFFF)
    return (total & 0xFFFF) + (total >> 16)


def cksum_word(low: int, high: int, offset: int) -> int:
    """The word at byte ``offset``, 0 to 3, of two words that lie one behind the other."""
    return (high << 32 | low) >> 8 * offset & 0xFFFF_FFFF
