"""Where things lie in external memory.

Addresses are the CPU's: gateware and firmware use the same numbers, because the DRAM adapter wraps
addresses at the memory's size and the memory is aligned to its size in the CPU's map. The
gateware's part is the upper half of the memory; the lower half is the CPU's and the roles'.
"""

from dataclasses import dataclass

from ..models.errors import TrebuchetError

__all__ = ["MAIN_RAM", "MemoryMap"]

#: Where LiteX puts external memory for VexRiscv.
MAIN_RAM = 0x4000_0000


@dataclass(frozen=True)
class MemoryMap:
    """Base and size of the gateware's part of a memory of ``dram_bytes`` bytes."""

    dram_bytes: int

    def __post_init__(self):
        size = self.dram_bytes
        if size <= 0 or size & (size - 1) or size > MAIN_RAM:
            raise TrebuchetError(
                f"external memory must be a power of two of at most {MAIN_RAM} bytes, not {size!r}"
            )

    @property
    def base(self):
        """First address of the shell's memory (its receive pool)."""
        return MAIN_RAM + self.dram_bytes // 2

    @property
    def size(self):
        """Bytes that the shell may use from :attr:`base` on."""
        return self.dram_bytes // 2
