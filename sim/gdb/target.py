"""VexRiscv through its debug plugin: halt, step, registers, memory, breakpoints.

The plugin executes instructions in a halted CPU and shows the result of the last one; everything
else is made of that (VexRiscv's ``DebugPlugin.scala``). When the CPU halts, its registers are read
at once and kept here until it goes on; meanwhile x1 and x2 serve for whatever is to be done.

Breakpoints in memory are ``ebreak`` instructions; reading memory shows what was there before.
Stores of the debugger change the ROM as well, so these work in firmware that runs from there.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...models.errors import TrebuchetError
from . import instructions as op
from .port import FLAGS, INSTRUCTION, DebugPort, idle, read, rom, write

__all__ = [
    "CSRS",
    "HARDWARE_BREAKPOINTS",
    "PC",
    "MemoryMap",
    "OutOfMemoryMap",
    "Stop",
    "Target",
    "TargetError",
]

#: Number of the program counter behind x0 to x31.
PC = 32
HARDWARE_BREAKPOINTS = 2
#: Control and status registers that this CPU lets be read; the last two are LiteX's interrupts.
CSRS = {
    "mstatus": 0x300,
    "mie": 0x304,
    "mepc": 0x341,
    "mcause": 0x342,
    "mtval": 0x343,
    "mip": 0x344,
    "irq_mask": 0xBC0,
    "irq_pending": 0xFC0,
}

# Flags of the plugin, read and written.
_HALTED, _BY_BREAKPOINT = 1 << 1, 1 << 3
_STEP = 1 << 4
_SET_HALT, _SET_NO_EBREAK = 1 << 17, 1 << 18
_CLEAR_HALT, _CLEAR_NO_EBREAK = 1 << 25, 1 << 26
_COMPARATORS = 0x40
#: After a halt the pipeline may look empty while an instruction is still being fetched.
_SETTLE = 64
_EBREAK = struct.pack("<I", op.EBREAK)
_A, _B = 1, 2  # registers that are free while the CPU is halted
_CHUNK = 1024  # bytes that one base register reaches


class TargetError(TrebuchetError):
    """What was asked for cannot be done; the CPU is as it was."""


class OutOfMemoryMap(TargetError):
    """There is nothing at these addresses."""


@dataclass(frozen=True)
class Stop:
    """Why the CPU halted: by a breakpoint (or an ``ebreak`` of the program's own), or not."""

    breakpoint: bool


@dataclass(frozen=True)
class MemoryMap:
    """What answers on the CPU's bus."""

    #: ``(first address, bytes)`` of each memory and of the registers.
    regions: tuple[tuple[int, int], ...]
    #: Address of LiteX's reset register.
    reset: int

    @classmethod
    def load(cls, csr_json: Path) -> "MemoryMap":
        """From a build's ``csr.json``."""
        found = json.loads(csr_json.read_text())
        regions = tuple((region["base"], region["size"]) for region in found["memories"].values())
        return cls(regions, found["csr_registers"]["ctrl_reset"]["addr"])

    def check(self, address: int, length: int) -> None:
        """Raise unless the whole range is there. Elsewhere an access takes a million cycles."""
        for base, size in self.regions:
            if base <= address and address + length <= base + size:
                return
        raise OutOfMemoryMap(f"there is no memory at {address:#x}, {length} bytes")


class Target:
    """The CPU. All methods but :meth:`halt` and :meth:`detach` want it halted."""

    def __init__(self, port: DebugPort, memory_map: MemoryMap) -> None:
        self.port = port
        self.memory_map = memory_map
        self.running = True
        self._registers = [0] * 33
        self._dirty: set[int] = set()
        self._software: dict[int, bytes] = {}
        self._hardware: list[int | None] = [None] * HARDWARE_BREAKPOINTS

    # --- running and halting ---------------------------------------------------------------------

    def halt(self) -> Stop:
        """Stop the CPU wherever it is."""
        self.port.run(write(FLAGS, _SET_HALT | _CLEAR_NO_EBREAK), *[read(FLAGS)] * _SETTLE)
        self.port.wait_halted()
        return self._capture(self.port.halted())

    def resume(self, step: bool = False) -> None:
        """Let the CPU go on, or execute one instruction. Then :meth:`stopped` must be called."""
        self._need_halted()
        self._restore()
        self.port.run(write(FLAGS, _CLEAR_HALT | (_STEP if step else 0)))
        self.running = True
        self.port.wait_halted()

    def stopped(self) -> Stop:
        """Wait for the end of what :meth:`resume` began."""
        return self._capture(self.port.halted())

    def interrupt(self) -> Stop:
        """Instead of :meth:`stopped`: stop the CPU now."""
        self.port.give_up()
        return self.halt()

    def detach(self) -> None:
        """Remove all breakpoints and let the CPU go on as if there were no debugger."""
        if self.running:
            self.halt()
        for address in list(self._software):
            self.remove_software_breakpoint(address)
        for address in [a for a in self._hardware if a is not None]:
            self.remove_hardware_breakpoint(address)
        self._restore()
        self.port.run(write(FLAGS, _CLEAR_HALT | _SET_NO_EBREAK))
        self.running = True

    def reset(self) -> None:
        """Reset the board as the firmware does it, and stop before the first instruction."""
        self._need_halted()
        self._execute(*op.load_immediate(_A, self.memory_map.reset), *op.load_immediate(_B, 1))
        self._execute(op.store(_B, _A, 0, 4))
        self.port.run(*[read(FLAGS)] * _SETTLE)
        self._capture(_HALTED)

    def _capture(self, flags: int) -> Stop:
        """Read all registers of a CPU that has just been halted."""
        by_breakpoint = bool(flags & _BY_BREAKPOINT)
        # An ebreak leaves its address as the result.
        first = [] if by_breakpoint else [write(INSTRUCTION, op.READ_PC), idle()]
        commands = [*first, read(INSTRUCTION)]
        for register in range(1, 32):
            commands += [write(INSTRUCTION, op.move(register)), idle(), read(INSTRUCTION)]
        pc, *others = self.port.run(*commands)
        self._registers = [0, *others, pc]
        self._dirty = {_A, _B}
        self.running = False
        return Stop(by_breakpoint)

    def _restore(self) -> None:
        """Give the CPU its registers back."""
        self._execute(*op.load_immediate(_A, self._registers[PC]), op.jump(_A))
        for register in sorted(self._dirty):
            self._execute(*op.load_immediate(register, self._registers[register]))

    def _execute(self, *instructions: int) -> None:
        self.port.run(*(write(INSTRUCTION, word) for word in instructions), idle())

    def _need_halted(self) -> None:
        if self.running:
            raise TargetError("the CPU is running")

    # --- registers -------------------------------------------------------------------------------

    def read_register(self, number: int) -> int:
        """x0 to x31, or :data:`PC`."""
        self._need_halted()
        return self._registers[number]

    def write_register(self, number: int, value: int) -> None:
        """x0 to x31 (x0 stays 0), or :data:`PC`; the CPU gets it when it goes on."""
        self._need_halted()
        if number == PC and value & 3:
            raise TargetError("the program counter must be a multiple of 4")
        if number:
            self._registers[number] = value & 0xFFFF_FFFF
        if 0 < number < PC:
            self._dirty.add(number)

    def read_csr(self, csr: int) -> int:
        """One of :data:`CSRS`, by its address."""
        self._need_halted()
        return self.port.run(write(INSTRUCTION, op.csrr(_A, csr)), idle(), read(INSTRUCTION))[0]

    def write_csr(self, csr: int, value: int) -> None:
        """One of :data:`CSRS`, by its address."""
        self._need_halted()
        self._execute(*op.load_immediate(_A, value), op.csrw(csr, _A))

    # --- memory ----------------------------------------------------------------------------------

    def read_memory(self, address: int, length: int) -> bytes:
        """Bytes as they are without our breakpoints. Aligned words are read as words."""
        self._need_halted()
        self.memory_map.check(address, length)
        data = bytearray()
        for base, pieces in _chunks(address, length):
            commands = [write(INSTRUCTION, word) for word in op.load_immediate(_A, base)]
            for offset, size in pieces:
                commands.append(write(INSTRUCTION, op.load(_B, _A, offset, size)))
                commands += [idle(), read(INSTRUCTION)]
            for (_, size), word in zip(pieces, self.port.run(*commands), strict=True):
                data += struct.pack("<I", word)[:size]
        for at, original in self._software.items():
            _overlay(data, address, original, at)
        return bytes(data)

    def write_memory(self, address: int, data: bytes) -> None:
        """Change memory, the ROM too; our breakpoints stay."""
        self._need_halted()
        self.memory_map.check(address, len(data))
        stored = bytearray(data)
        for at, original in self._software.items():
            below = bytearray(original)
            _overlay(below, at, data, address)
            self._software[at] = bytes(below)
            _overlay(stored, address, _EBREAK, at)
        self._store(address, bytes(stored))

    def _store(self, address: int, data: bytes) -> None:
        for base, pieces in _chunks(address, len(data)):
            words = list(op.load_immediate(_A, base))
            for offset, size in pieces:
                at = base + offset - address
                value = int.from_bytes(data[at : at + size], "little")
                words += [*op.load_immediate(_B, value), op.store(_B, _A, offset, size)]
            stores = [write(INSTRUCTION, word) for word in words]
            self.port.run(rom(True), *stores, idle(), rom(False))

    # --- breakpoints -----------------------------------------------------------------------------

    def breakpoint_at(self, address: int) -> str | None:
        """``"swbreak"``, ``"hwbreak"``, or None if there is no breakpoint of ours."""
        if address in self._software:
            return "swbreak"
        return "hwbreak" if address in self._hardware else None

    def has_hardware_breakpoint(self, address: int) -> bool:
        """Is there one, or is one free?"""
        return address in self._hardware or None in self._hardware

    def describe(self) -> str:
        """For people: state and breakpoints."""
        lines = ["running" if self.running else f"halted at {self._registers[PC]:#010x}"]
        lines += [f"breakpoint at {address:#010x}" for address in sorted(self._software)]
        hardware = [address for address in self._hardware if address is not None]
        lines += [f"hardware breakpoint at {address:#010x}" for address in hardware]
        return "\n".join(lines)

    def insert_software_breakpoint(self, address: int) -> None:
        """Put an ebreak there; again is no error."""
        self._need_halted()
        _check_aligned(address)
        if address in self._software:
            return
        original = self.read_memory(address, 4)
        self._store(address, _EBREAK)
        self._software[address] = original
        if self._raw(address) != _EBREAK:
            self._store(address, self._software.pop(address))
            raise TargetError(f"{address:#x} does not hold an ebreak")

    def _raw(self, address: int) -> bytes:
        original = self._software.pop(address)
        try:
            return self.read_memory(address, 4)
        finally:
            self._software[address] = original

    def remove_software_breakpoint(self, address: int) -> None:
        """Put back what was there; again is no error."""
        self._need_halted()
        if address in self._software:
            self._store(address, self._software.pop(address))

    def insert_hardware_breakpoint(self, address: int) -> None:
        """Take one of the CPU's comparators; again is no error."""
        _check_aligned(address)
        if address in self._hardware:
            return
        if None not in self._hardware:
            raise TargetError(f"the CPU has {HARDWARE_BREAKPOINTS} hardware breakpoints")
        self._set_comparator(self._hardware.index(None), address)

    def remove_hardware_breakpoint(self, address: int) -> None:
        """Give the comparator back; again is no error."""
        if address in self._hardware:
            self._set_comparator(self._hardware.index(address), None)

    def _set_comparator(self, index: int, address: int | None) -> None:
        word = 0 if address is None else address | 1
        self.port.run(write(_COMPARATORS + 4 * index, word))
        self._hardware[index] = address


def _check_aligned(address: int) -> None:
    if address & 3:
        raise TargetError("a breakpoint's address must be a multiple of 4")


def _overlay(data: bytearray, address: int, other: bytes, at: int) -> None:
    """Where ``other``, which lies at ``at``, meets ``data`` at ``address``: ``data`` becomes it."""
    first, last = max(address, at), min(address + len(data), at + len(other))
    if first < last:
        data[first - address : last - address] = other[first - at : last - at]


def _chunks(address: int, length: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """``(base, [(offset, size), …])``: accesses that make up the range, words where aligned."""
    end = address + length
    while address < end:
        base, pieces = address, []
        while address < end and address - base <= _CHUNK - 4:
            size = 4 if address % 4 == 0 and end - address >= 4 else 1
            pieces.append((address - base, size))
            address += size
        yield base, pieces
