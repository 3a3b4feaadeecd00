"""The RISC-V instructions (RV32I, Zicsr) that the debugger has the CPU execute."""

__all__ = ["EBREAK", "READ_PC", "csrr", "csrw", "jump", "load", "load_immediate", "move", "store"]

EBREAK = 0x0010_0073
READ_PC = 0x0000_0017  # auipc zero, 0

_LOAD_FUNCT3 = {1: 4, 2: 5, 4: 2}  # lbu, lhu, lw
_STORE_FUNCT3 = {1: 0, 2: 1, 4: 2}  # sb, sh, sw


def load_immediate(register: int, value: int) -> list[int]:
    """Put a number into a register: lui and addi."""
    low = value & 0xFFF
    high = (value + 0x800) & 0xFFFF_F000
    return [
        high | register << 7 | 0x37,
        low << 20 | register << 15 | register << 7 | 0x13,
    ]


def move(source: int) -> int:
    """Make a register's value the result: addi zero, source, 0."""
    return source << 15 | 0x13


def jump(register: int) -> int:
    """jalr zero, 0(register)"""
    return register << 15 | 0x67


def load(register: int, base: int, offset: int, size: int) -> int:
    """Load 1, 2 or 4 bytes without sign from ``offset(base)``."""
    return (offset & 0xFFF) << 20 | base << 15 | _LOAD_FUNCT3[size] << 12 | register << 7 | 0x03


def store(register: int, base: int, offset: int, size: int) -> int:
    """Store 1, 2 or 4 bytes to ``offset(base)``."""
    high, low = offset >> 5 & 0x7F, offset & 0x1F
    return high << 25 | register << 20 | base << 15 | _STORE_FUNCT3[size] << 12 | low << 7 | 0x23


def csrr(register: int, csr: int) -> int:
    """csrrs register, csr, zero"""
    return csr << 20 | 2 << 12 | register << 7 | 0x73


def csrw(csr: int, register: int) -> int:
    """csrrw zero, csr, register"""
    return csr << 20 | register << 15 | 1 << 12 | 0x73
