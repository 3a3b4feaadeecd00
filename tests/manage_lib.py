"""The management service (``firmware/manage.c``) for this machine, on ``manage_host.c``."""

import ctypes
import subprocess

from firmware_host import generated
from firmware_lib import BITSTREAM_SLOT, FIRMWARE_SLOT, FLAGS, PORT, RAM, SANITIZE, map_memory
from trebuchet.cores.roles.contract import role_block
from trebuchet.cores.services.mailbox import MAILBOX_BLOCK
from trebuchet.cores.services.smp_board import BOARD_BLOCK
from trebuchet.cores.services.smp_registers import SMP_BLOCK
from trebuchet.soc.csr_export import c_header
from trebuchet.soc.firmware import roles_header, status_table_header

__all__ = [
    "BOARD_BASE",
    "IMAGE_AT",
    "MAILBOX_BASE",
    "RING_AT",
    "ROLE",
    "ROLE_BASE",
    "SMP_BASE",
    "build_manage",
    "bus_functions",
    "write_headers",
]

RAM_BYTES = 1 << 20
#: Where manage.c has an image that is on its way.
IMAGE_AT = RAM + 0x82000
#: Where the ring of the session is whose part the SMP framer shows.
RING_AT = RAM + 0xF0000
MAILBOX_BASE, SMP_BASE, BOARD_BASE = 0xF000_3000, 0xF000_4000, 0xF000_5000
ROLE_BASE = 0xF000_6000
ROLE = role_block("ecg")
REGIONS = [(MAILBOX_BLOCK, MAILBOX_BASE), (ROLE, ROLE_BASE)]
SOURCES = (
    "mailbox",
    "manage",
    "node",
    "update",
    "web",
    "web_image",
    "smp",
    "lease",
    "http",
    "status",
    "counters",
    "text",
    "buffer",
)
FLASH_SOURCES = ("boot", "image", "flash", "crc32")

_SOC = f"""
#define TREBUCHET_VERSION "0.1.0"
#define TREBUCHET_BOARD "sim"
#define TREBUCHET_MAILBOX_REQUEST 1024
#define TREBUCHET_MEMORY_BASE {RAM + RAM_BYTES:#x}ul
"""
_FLASH = f"""
#define TREBUCHET_FLASH_SIZE {1 << 20:#x}
#define TREBUCHET_FLASH_FIRMWARE {FIRMWARE_SLOT[0]:#x}u
#define TREBUCHET_FLASH_FIRMWARE_BYTES {FIRMWARE_SLOT[1]:#x}u
#define TREBUCHET_FLASH_BITSTREAM {BITSTREAM_SLOT[0]:#x}u
#define TREBUCHET_FLASH_BITSTREAM_BYTES {BITSTREAM_SLOT[1]:#x}u
"""
_SYSTEM = (
    "static inline void flush_cpu_dcache(void) {}\nstatic inline void flush_cpu_icache(void) {}"
)
_READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)
_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)


def write_headers(folder, soc, regions):
    """The generated headers; registers are reached by the test's functions."""
    bus = "extern uint32_t (*bus_read)(uint32_t);\nextern void (*bus_write)(uint32_t, uint32_t);\n"
    regs = c_header(regions)
    for old, new in (
        ("return *(volatile uint32_t *)(uintptr_t)address;", "return bus_read(address);"),
        ("*(volatile uint32_t *)(uintptr_t)address = value;", "bus_write(address, value);"),
        ("#include <stdint.h>\n", "#include <stdint.h>\n" + bus),
    ):
        assert regs.count(old) == 1
        regs = regs.replace(old, new)
    for name, text in {
        "trebuchet_regs.h": regs,
        "trebuchet_roles.h": roles_header(regions),
        "trebuchet_status_table.h": status_table_header(regions),
        "soc.h": soc,
        "mem.h": f"#define MAIN_RAM_BASE {RAM:#x}ul\n",
    }.items():
        (generated(folder) / "generated" / name).write_text(text)
    (folder / "system.h").write_text(_SYSTEM)
    (folder / "port.c").write_text(PORT)


def build_manage(root, folder, flash=False, ring=None):
    """The library.

    ``flash``: the board has one, with the slots of ``firmware_lib``. ``ring``: it has a TCP port
    with SMP, and a session's receive ring so many bytes.
    """
    soc, regions = _SOC + _FLASH if flash else _SOC, REGIONS
    if ring is not None:
        soc = soc.replace("REQUEST 1024", f"REQUEST {ring // 2}")  # less than a ring
        soc += f"#define TREBUCHET_SMP_RING {ring}u\n"
        regions = [REGIONS[0], (SMP_BLOCK, SMP_BASE), (BOARD_BLOCK, BOARD_BASE), *REGIONS[1:]]
    write_headers(folder, soc, regions)
    sources = [root / "tests" / "manage_host.c"]
    sources += [root / "firmware" / f"{name}.c" for name in SOURCES]
    if flash:
        sources += [root / "firmware" / f"{name}.c" for name in FLASH_SOURCES]
        sources.append(folder / "port.c")
    path = folder / "manage.so"
    include = ["-I", folder, "-I", root / "firmware"]
    command = ["gcc", *FLAGS, *SANITIZE, "-fPIC", "-shared", *include, "-o", path, *sources]
    subprocess.run(command, check=True)
    map_memory(RAM_BYTES)
    return ctypes.CDLL(str(path))


def bus_functions(lib, read, write):
    """Have ``read(address)`` and ``write(address, value)`` carry out accesses to registers."""
    lib.bus = functions = _READ(read), _WRITE(write)
    for name, function in zip(("bus_read", "bus_write"), functions, strict=True):
        pointer = ctypes.c_void_p.in_dll(lib, name)
        pointer.value = ctypes.cast(function, ctypes.c_void_p).value
    ctypes.memset(lib.host_log, 0, 1 << 16)
