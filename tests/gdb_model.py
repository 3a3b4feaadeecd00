"""A small RV32I computer with VexRiscv's debug plugin, in the place of the harness's socket.

As naive as can be: it knows the instructions that the debugger has executed, and enough others for
a program of some lines. Its ROM can be written only when the debugger has allowed it.
"""

import os
import struct

ROM, RAM, RESET = (0x0, 0x400), (0x1000_0000, 0x400), 0xF000_0800
EBREAK = 0x0010_0073


def signed(value, bits):
    return (value & ((1 << bits) - 1) ^ (1 << bits - 1)) - (1 << bits - 1)


class PluginModel:
    """What :class:`trebuchet.sim.gdb.port.DebugPort` offers."""

    def __init__(self, program):
        self.memory = {}
        for k, word in enumerate(program):
            self._put(ROM[0] + 4 * k, struct.pack("<I", word))
        self.x = [0xDEAD_0000 + n for n in range(32)]
        self.x[0] = 0
        self.pc, self.result, self.csrs = ROM[0], 0, {0x342: 7}
        self.halt = self.by_break = self.ebreak_halts = self.rom_writable = False
        self.comparators = [0, 0]
        self._event = os.eventfd(0, os.EFD_NONBLOCK)

    def close(self):
        os.close(self._event)

    def fileno(self):
        return self._event

    # --- the port --------------------------------------------------------------------------------

    def run(self, *commands):
        return [answer for command in commands if (answer := self._command(command)) is not None]

    def wait_halted(self):
        if self.halt:
            os.eventfd_write(self._event, 1)

    def halted(self):
        assert os.eventfd_read(self._event) == 1
        return self._flags()

    def give_up(self):
        if self.halt:
            os.eventfd_read(self._event)

    def _command(self, command):
        kind, address, _, data = struct.unpack("<BBHI", command)
        if kind == 1:
            self._write(address, data)
        elif kind == 2:
            return self.result if address & 4 else self._flags()
        elif kind == 5:
            self.rom_writable = bool(data)
        return None

    def _flags(self):
        return self.halt << 1 | self.by_break << 3

    def _write(self, address, data):
        if address == 4:
            assert self.halt, "an instruction was injected into a running CPU"
            self._execute(data, injected=True)
        elif address >= 0x40:
            self.comparators[(address - 0x40) // 4] = data
        else:
            self.halt |= bool(data & 1 << 17)
            self.ebreak_halts = not data & 1 << 18
            if data & 1 << 25:
                self.halt = self.by_break = False
                self._go(step=bool(data & 1 << 4))

    # --- the CPU ---------------------------------------------------------------------------------

    def _go(self, step):
        for _ in range(1 if step else 1000):
            word = struct.unpack("<I", self._get(self.pc, 4))[0]
            if (self.pc | 1) in self.comparators or (word == EBREAK and self.ebreak_halts):
                self.halt = self.by_break = True
                self.result = self.pc
                return
            self._execute(word, injected=False)
        self.halt = step

    def _execute(self, word, injected):
        following = self.pc if injected else self.pc + 4
        opcode, rd, funct3 = word & 0x7F, word >> 7 & 31, word >> 12 & 7
        a, b = self.x[word >> 15 & 31], self.x[word >> 20 & 31]
        immediate = signed(word >> 20, 12)
        value = None
        if opcode == 0x37:  # lui
            value = word & 0xFFFF_F000
        elif opcode == 0x17:  # auipc
            value = self.pc + (word & 0xFFFF_F000)
        elif opcode == 0x13:  # addi
            value = a + immediate
        elif opcode == 0x03:
            size = {0: 1, 4: 1, 5: 2, 2: 4}[funct3]
            value = int.from_bytes(self._get(a + immediate, size), "little")
        elif opcode == 0x23:
            offset = signed(word >> 25 << 5 | rd, 12)
            self._store(a + offset & 0xFFFF_FFFF, b.to_bytes(4, "little")[: 1 << funct3])
        elif opcode == 0x67:  # jalr
            following = a + immediate & 0xFFFF_FFFE
        elif opcode == 0x6F:  # jal, backwards or forwards by less than 2 KiB
            following = self.pc + signed(word >> 31 << 11 | (word >> 21 & 0x3FF) << 1, 12)
        elif opcode == 0x73:
            csr = word >> 20
            value = self.csrs.get(csr, 0)
            if funct3 == 1:
                self.csrs[csr] = a
        self.pc = following
        if value is not None:
            self.result = value & 0xFFFF_FFFF
            self.x[rd] = self.result if rd else 0

    def _store(self, address, data):
        if address == RESET:
            self.pc = ROM[0]
        elif address >= RAM[0] or self.rom_writable:
            self._put(address, data)

    def _put(self, address, data):
        for k, byte in enumerate(data):
            self.memory[address + k] = byte

    def _get(self, address, size):
        return bytes(self.memory.get(address + k, 0) for k in range(size))
