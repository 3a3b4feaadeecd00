"""C functions of the firmware on the Verilated CPU: compiled, loaded and called by the debugger."""

import json
import re
import struct
import subprocess

from trebuchet.models.errors import TrebuchetError

__all__ = ["CpuProgram"]

#: In the CPU's half of the SDRAM: code and data, and at its end the stack.
BASE, SIZE = 0x4040_0000, 0x20_0000
_TOOL = "riscv64-unknown-elf-"
_FLAGS = "-std=gnu11 -Os -Wall -Wextra -Werror -ffreestanding -mno-relax -msmall-data-limit=0"
_ARCH = "-march=rv32i2p0 -mabi=ilp32"
RA, SP, A0, PC, MSTATUS = 1, 2, 10, 32, 65 + 0x300
_MIE = 1 << 3


class CpuProgram:
    """A program in the board's SDRAM whose functions can be called; a context manager.

    The firmware stands still meanwhile, and goes on afterwards as if nothing had been; the
    watchdog, which nobody feeds, is off.

    Parameters
    ----------
    gdb : GdbClient
        Connected to the board's GDB server.
    software : path
        The firmware's build folder, for its C library.
    sources, include : paths
        What to compile.
    folder : path
        For the results.
    """

    def __init__(self, gdb, software, sources, include, folder):
        self._gdb = gdb
        registers = json.loads((software.parent / "csr.json").read_text())["csr_registers"]
        self._watchdog = registers["watchdog_period"]["addr"]
        elf, image = folder / "program.elf", folder / "program.bin"
        libc = software / "libc"
        settings = (software / "include" / "generated" / "variables.mak").read_text()
        picolibc = re.search(r"^PICOLIBC_DIRECTORY=(.*)$", settings, re.M)[1]
        command = [_TOOL + "gcc", *_FLAGS.split(), *_ARCH.split(), "-nostdlib", f"-I{include}"]
        command += ["-isystem", f"{picolibc}/newlib/libc/include", "-isystem", libc]
        command += [*sources, f"-L{libc}", f"-L{software / 'libcompiler_rt'}"]
        command += ["-lc", "-lcompiler_rt", "-o", elf]
        # The firmware's C library has been compiled for link-time optimization.
        command += ["-flto", f"-Wl,-Ttext={BASE:#x}", "-Wl,-e,run_cases", "-Wl,-u,run_cases"]
        self._run(command)
        self._run([_TOOL + "objcopy", "-O", "binary", elf, image])
        self._symbols = dict(self._rows(elf))
        self._image = image.read_bytes()

    def _run(self, command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TrebuchetError(f"{command[0]} failed: {done.stderr}")
        return done.stdout

    def _rows(self, elf):
        for line in self._run([_TOOL + "nm", elf]).splitlines():
            address, _, name = line.split()
            yield name, int(address, 16)

    def __enter__(self):
        self._gdb.ask("?")
        self._saved = self._gdb.ask("g")
        self._mstatus = self._gdb.ask(f"p{MSTATUS:x}")
        masked = struct.unpack("<I", bytes.fromhex(self._mstatus))[0] & ~_MIE
        self._gdb.ok(f"P{MSTATUS:x}={struct.pack('<I', masked).hex()}")
        self._period = self._gdb.read(self._watchdog, 4)
        self._gdb.write(self._watchdog, bytes(4))
        self.write(BASE, self._image)
        end = self._symbols["_end"]
        self.write(BASE + len(self._image), bytes(end - BASE - len(self._image)))
        self._free = (end + 15) & ~15
        self._stop = self.allocate(16)
        self._gdb.ok(f"Z0,{self._stop:x},4")
        return self

    def __exit__(self, *_):
        self._gdb.ok(f"z0,{self._stop:x},4")
        self._gdb.write(self._watchdog, self._period)
        self._gdb.ok(f"P{MSTATUS:x}={self._mstatus}")
        self._gdb.ok(f"G{self._saved}")

    def allocate(self, size):
        """Room in the board's memory."""
        address, self._free = self._free, (self._free + size + 15) & ~15
        assert self._free < BASE + SIZE - 0x8000
        return address

    def write(self, address, data):
        for k in range(0, len(data), 2048):
            self._gdb.write(address + k, data[k : k + 2048])

    def read(self, address, length):
        pieces = [(k, min(2048, length - k)) for k in range(0, length, 2048)]
        return b"".join(self._gdb.read(address + k, size) for k, size in pieces)

    def call(self, name, *arguments):
        """Call a function with numbers and addresses; its result."""
        values = {RA: self._stop, SP: BASE + SIZE - 64, PC: self._symbols[name]}
        values |= {A0 + k: value for k, value in enumerate(arguments)}
        for register, value in values.items():
            self._gdb.ok(f"P{register:x}={struct.pack('<I', value).hex()}")
        assert self._gdb.ask("c") == "T05swbreak:;"
        registers = self._gdb.registers()
        assert registers[PC] == self._stop
        return registers[A0]
