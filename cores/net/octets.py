"""The order of bytes: on the wire and in values."""

from amaranth.hdl import Cat, Value

__all__ = ["byteswap"]


def byteswap(value):
    """A value of whole bytes from network to host order, or back; a wire's worth of logic."""
    bits = Value.cast(value)
    return Cat(bits.word_select(i, 8) for i in reversed(range(len(bits) // 8)))
