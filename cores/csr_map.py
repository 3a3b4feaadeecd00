"""Where the registers of a block lie on a bus with words of 32 bits.

A register takes one word, or two when it is wider: ``NAME`` with the low bits, and after it
``NAME_high``. Every bus of ours lays them out like this: LiteX's (``soc/bridge.py``), and
:class:`~trebuchet.cores.axi_lite.AxiLiteRegisters`.
"""

__all__ = ["WORD_BITS", "WORD_BYTES", "block_size", "register_offsets", "register_words"]

WORD_BITS = 32
WORD_BYTES = WORD_BITS // 8


def register_words(register):
    """``(name, lowest bit, width)`` of each word of a register, the lowest first."""
    if register.width <= WORD_BITS:
        return [(register.name, 0, register.width)]
    return [
        (register.name, 0, WORD_BITS),
        (f"{register.name}_high", WORD_BITS, register.width - WORD_BITS),
    ]


def register_offsets(block):
    """Byte offset of every register of a block, by name."""
    offsets, at = {}, 0
    for register in block.registers:
        offsets[register.name] = at
        at += WORD_BYTES * len(register_words(register))
    return offsets


def block_size(block):
    """Bytes that a block's registers take."""
    return WORD_BYTES * sum(len(register_words(r)) for r in block.registers)
