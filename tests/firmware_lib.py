"""Parts of the firmware compiled for this machine, with a flash behind them."""

import ctypes
import subprocess

from firmware_host import generated
from nor_model import SECTOR, NorModel

__all__ = [
    "BITSTREAM_SLOT",
    "FIRMWARE_SLOT",
    "FLAGS",
    "PORT",
    "RAM",
    "SANITIZE",
    "FlashPort",
    "Piece",
    "build",
    "build_boot",
    "build_rom",
    "map_memory",
]

FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g"]
SANITIZE = ["-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-static-libubsan"]

#: The flash's pins are functions of the test.
PORT = """
#include "flash_port.h"
void (*test_select)(bool);
uint8_t (*test_byte)(uint8_t);
uint32_t test_ms;
uint32_t test_fed; /* how often the watchdog was */
void flash_select(bool selected) { test_select(selected); }
uint8_t flash_byte(uint8_t byte) { return test_byte(byte); }
void flash_pause(void) { test_ms += 100; }
void flash_working(void) { test_fed++; }
uint32_t flash_now_ms(void) { return test_ms; }
"""

#: Of the board's memory; its first bytes are the application's (:func:`map_memory`).
RAM = 0xA000_0000
#: Offset and bytes of the slots of :func:`build_boot`.
FIRMWARE_SLOT, BITSTREAM_SLOT = (0x80000, 4 * SECTOR), (0xC0000, 2 * SECTOR)
_BOOT_HEADERS = {
    "generated/csr.h": """
#include <stdint.h>
uint32_t watchdog_fired_read(void);
void watchdog_forget_write(uint32_t value);
void watchdog_period_write(uint32_t value);
void watchdog_ev_pending_write(uint32_t value);
void watchdog_ev_enable_write(uint32_t value);
void watchdog_feed_write(uint32_t value);
void ctrl_reset_write(uint32_t value);
uint32_t ctrl_scratch_read(void);
""",
    "generated/soc.h": f"""
#define WATCHDOG_INTERRUPT 3
#define TREBUCHET_BOARD "sim"
#define TREBUCHET_VERSION "1"
#define TREBUCHET_WATCHDOG_MS 5000
#define TREBUCHET_FLASH_FIRMWARE {FIRMWARE_SLOT[0]:#x}u
#define TREBUCHET_FLASH_FIRMWARE_BYTES {FIRMWARE_SLOT[1]:#x}u
""",
    "generated/mem.h": f"#define MAIN_RAM_BASE {RAM:#x}ul\n",
    "irq.h": """
void irq_setie(unsigned on);
unsigned irq_getmask(void);
void irq_setmask(unsigned mask);
int irq_attach(unsigned number, void (*handler)(void));
""",
    "system.h": "void flush_cpu_dcache(void);\nvoid flush_cpu_icache(void);\n",
}

_MULTIBOOT_REGISTERS = """
#include <stdint.h>
void trebuchet_multiboot_start_write(uint32_t value);
void trebuchet_multiboot_address_write(uint32_t value);
uint32_t trebuchet_multiboot_application_read(void);
"""

_SELECT = ctypes.CFUNCTYPE(None, ctypes.c_bool)
_BYTE = ctypes.CFUNCTYPE(ctypes.c_uint8, ctypes.c_uint8)


class Piece(ctypes.Structure):
    """`struct piece`."""

    _fields_ = [("at", ctypes.POINTER(ctypes.c_char)), ("length", ctypes.c_size_t)]

    @classmethod
    def of(cls, text):
        return cls(ctypes.cast(ctypes.c_char_p(text), cls._fields_[0][1]), len(text))

    def text(self):
        return ctypes.string_at(self.at, self.length)


def build(root, folder, *names, fakes=()):
    """A shared library of these files of firmware/, of ``fakes``, and the port above."""
    (folder / "port.c").write_text(PORT)
    sources = [root / "firmware" / name for name in names] + [folder / "port.c", *fakes]
    path = folder / "firmware.so"
    flags = [
        *FLAGS,
        *SANITIZE,
        "-fPIC",
        "-shared",
        f"-I{generated(folder)}",
        f"-I{root / 'firmware'}",
    ]
    subprocess.run(["gcc", *flags, "-o", path, *sources], check=True)
    return ctypes.CDLL(str(path))


def build_boot(root, folder, multiboot=False, size=1 << 20, golden=0, bitstream=BITSTREAM_SLOT):
    """The library of ``boot_host.c``: restart, boot and update, for a board with these slots.

    ``multiboot``: it has the slot ``bitstream``, and an FPGA that can load that; and ``main.c``
    (``main_host.c``), which has to do things in the right order for that. ``size`` of the flash,
    and where ``golden`` lies in it, are in bytes.
    """
    generated(folder)
    for name, text in _BOOT_HEADERS.items():
        (folder / name).write_text(text)
    constants = {"SIZE": size}
    if multiboot:
        constants |= {"GOLDEN": golden, "BITSTREAM": bitstream[0], "BITSTREAM_BYTES": bitstream[1]}
        (folder / "generated" / "trebuchet_regs.h").write_text(_MULTIBOOT_REGISTERS)
    with (folder / "generated" / "soc.h").open("a") as header:
        for name, value in constants.items():
            header.write(f"#define TREBUCHET_FLASH_{name} {value:#x}u\n")
        header.write("#define TREBUCHET_MULTIBOOT\n" if multiboot else "")
    names = ("boot.c", "update.c", "image.c", "crc32.c", "flash.c", "text.c", "multiboot.c")
    fake = "main_host.c" if multiboot else "boot_host.c"
    return build(root, folder, *names, fakes=[root / "tests" / fake])


def build_rom(root, folder, golden):
    """The library of ``rom_host.c``: the boot ROM's choice, and what the firmware makes of it.

    ``golden``: offset and bytes of the golden firmware's slot.
    """
    generated(folder)
    for name, text in _BOOT_HEADERS.items():
        (folder / name).write_text(text)
    names = ("SIZE", "GOLDEN_FIRMWARE", "GOLDEN_FIRMWARE_BYTES")
    with (folder / "generated" / "soc.h").open("a") as header:
        header.write("#define TREBUCHET_BOOT_ROM\n")
        for name, value in zip(names, (1 << 20, *golden), strict=True):
            header.write(f"#define TREBUCHET_FLASH_{name} {value:#x}u\n")
    parts = ("rom/choose.c", "boot.c", "update.c", "image.c", "crc32.c", "flash.c", "text.c")
    return build(root, folder, *parts, "multiboot.c", fakes=[root / "tests" / "rom_host.c"])


_mapped = []


def map_memory(size=1 << 20):
    """Memory where the tests' board has it, all zeros.

    What this process has there is not replaced, but by a second call: Debian's Python has its heap
    anywhere in the first gigabyte and, when that is full, behind it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    ours = min(size, max(_mapped, default=0))
    # Readable, writable; private, anonymous, at this place; not where there is something else.
    for begin, end, fixed in ((0, ours, 0x10), (ours, size, 0x10_0000)):
        if begin < end:
            at = RAM + begin
            assert libc.mmap(at, end - begin, 3, 0x22 | fixed, -1, 0) == at
    _mapped.append(size)


class FlashPort:
    """A :class:`NorModel` at the library's pins.

    The library has the functions until another port takes its place, also when nobody keeps this.
    """

    def __init__(self, library, flash=None):
        self.flash = flash or NorModel()
        library.pins = _SELECT(self.flash.select), _BYTE(self.flash.exchange)
        for name, function in zip(("test_select", "test_byte"), library.pins, strict=True):
            slot = ctypes.c_void_p.in_dll(library, name)
            slot.value = ctypes.cast(function, ctypes.c_void_p).value
