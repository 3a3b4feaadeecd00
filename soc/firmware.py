"""Building the firmware with LiteX's software flow, in the place of LiteX's BIOS.

The generated headers are, beside LiteX's own: ``trebuchet_regs.h`` (registers of the shell's
blocks, :mod:`trebuchet.soc.csr_export`), ``trebuchet_build.h`` (the hash of all of them, and the
names of the roles), ``trebuchet_status_table.h`` (every counter, for the status page),
``trebuchet_front_page.h`` (the page at ``/``, firmware/front.html), ``trebuchet_roles.h`` (the
blocks of role slots), ``trebuchet_status_codes.h`` (:mod:`trebuchet.models.status`),
``trebuchet_web.h`` (places in an image of the web service), ``trebuchet_store.h`` (what
:mod:`trebuchet.models.http.c_header` has for files of a drive) and ``trebuchet_peers.h``
(:mod:`trebuchet.soc.peers`; a board alone has none).
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from litex.build.tools import write_to_file
from litex.soc.integration.builder import Builder

from .. import __version__
from ..cores.roles.contract import role_block
from ..models.files import write_whole
from ..models.http.c_header import store_header
from ..models.http.image import PLACES
from ..models.http.request import Verdict
from ..models.image import MAIN_RAM, Image, Kind, slot_bytes
from ..models.kept import kept
from ..models.paths import BUILD
from ..models.register_map import FILE_NAME, leave_map
from ..models.role_folders import role_of_instance
from ..models.status import DESCRIPTIONS, Status
from .csr_export import c_header, json_map, register_offsets, register_words, svd
from .inputs import input_hash
from .peers import peers_header
from .processes import run_group
from .reports import IMAGE
from .toolchain import require_tool, version_of

#: Read-only registers that say nothing about the board.
_NO_GAUGES = {("mailbox", "rx_data"), ("nic", "rx_data")}
_NO_GAUGES |= {("flash_words", "word"), ("flash_words", "crc"), ("smp_board", "address")}
#: Registers that are written, and say how the board is.
_GAUGES = {("smp", "lease"), ("smp", "guard"), ("web", "enable")}
#: Bytes of the names of roles in an answer to discovery (firmware/discover.c).
_ROLE_NAMES = 256
#: Registers that a benchmark role has behind those of every slot.
_OF_BENCHMARK = ("delay", "output_length")

__all__ = [
    "FIRMWARE_DIR",
    "FirmwareBuilder",
    "build_header",
    "front_page_header",
    "roles_header",
    "status_codes_header",
    "status_table_header",
    "web_header",
]

#: LiteX's software packages that the firmware is linked with.
PACKAGES = ("libc", "libcompiler_rt", "libbase", "liblitedram")

#: Those of them that know nothing of the SoC, and what the rest of their makefiles goes on from.
#: LiteX compiles them anew for each SoC, which takes longer than the firmware itself.
SHARED = {"libc": ("cross.txt", "picolibc.h", "__libc.a"), "libcompiler_rt": ("*.o", "*.a")}

#: What the simulated board's flash holds instead of nothing, in the gateware's folder.
FLASH = "flash.bin"

FIRMWARE_DIR = Path(__file__).resolve().parent.parent / "firmware"


def status_codes_header():
    """C header with one macro for each status code, and its meaning as a comment."""
    lines = ["/* Generated from models/status.py; do not edit. */", "#pragma once", ""]
    lines += [
        f"#define TREBUCHET_STATUS_{code.name} {int(code)} /* {DESCRIPTIONS[code]} */"
        for code in Status
    ]
    assert [int(code) for code in Status] == list(range(len(Status)))
    names = ", ".join(f'"{code.name}"' for code in Status)
    lines += ["", f"#define TREBUCHET_STATUS_NAMES {{ {names} }}"]
    return "\n".join(lines) + "\n"


def web_header():
    """C header with the places of prepared responses, in the order of ``firmware/web_answer.h``."""
    places = [
        PLACES[verdict, close]
        for verdict, close in (
            (Verdict.BAD_REQUEST, True),
            (Verdict.NOT_FOUND, True),
            (Verdict.NOT_FOUND, False),
            (Verdict.METHOD_NOT_ALLOWED, True),
            (Verdict.CONTENT_TOO_LARGE, True),
            (Verdict.UNAVAILABLE, True),
        )
    ]
    rows = ", ".join(f"{{ {', '.join(f'{n}u' for n in place)} }}" for place in places)
    return (
        "/* Generated from models/http/image.py; do not edit. */\n#pragma once\n\n"
        f"#define TREBUCHET_WEB_PLACES {{ {rows} }}\n"
    )


def status_table_header(regions):
    """C header with ``status_table``: the counters and gauges of a register map.

    These are the read-only registers of 16, 32 or 64 bits with at most one field, and the lease.
    """
    rows = []
    for block, base in regions:
        offsets = register_offsets(block)
        for r in block.registers:
            shown = r.access == "ro" and r.width in (16, 32, 64) and len(r.fields) < 2
            name = (block.name, r.name)
            if (shown and name not in _NO_GAUGES) or name in _GAUGES:
                words = len(register_words(r))
                address = base + offsets[r.name]
                rows.append(f'\t{{ "{block.name}", "{r.name}", 0x{address:08x}u, {words} }},')
    return "\n".join(
        [
            "/* Generated from the register declarations; do not edit. */",
            "#pragma once",
            "",
            '#include "status.h"',
            "",
            f"#define STATUS_TABLE_COUNT {len(rows)}u",
            "/* Ends with an entry without words. */",
            "static const struct status_entry status_table[STATUS_TABLE_COUNT + 1] = {",
            *rows,
            '\t{ "", "", 0, 0 },',
            "};",
            "",
        ]
    )


def front_page_header():
    """C header with the page at ``/``, in words: the mailbox takes no others."""
    page = (FIRMWARE_DIR / "front.html").read_bytes()
    words = (page[at : at + 4] for at in range(0, len(page), 4))
    rows = (f"\t0x{int.from_bytes(word, 'little'):08x}," for word in words)
    return "\n".join(
        [
            "/* Generated from firmware/front.html; do not edit. */",
            "#pragma once",
            "",
            "#include <stdint.h>",
            "",
            f"#define TREBUCHET_FRONT_PAGE_BYTES {len(page)}u",
            "static const uint32_t trebuchet_front_page[] = {",
            *rows,
            "};",
            "",
        ]
    )


def _is_role(block):
    """Has a block the registers of a role slot, at their offsets?"""
    return register_offsets(block).items() >= register_offsets(role_block("any")).items()


def _is_peer(block):
    """Return whether a role slot stands for a peer, which has no role of its own."""
    return any(register.name == "strays" for register in block.registers)


def _role_row(block, base, number):
    """Row of the table of role slots: name, base, number, registers of a benchmark role or 0."""
    offsets = register_offsets(block)
    own = [register.name for register in block.registers[len(role_block("any").registers) :]]
    set_by = [base + offsets[name] for name in own] if tuple(own) == _OF_BENCHMARK else [0, 0]
    numbers = ", ".join(f"0x{address:08x}u" for address in set_by)
    return f'\t{{ "{block.name}", 0x{base:08x}u, {number}, {numbers} }},'


def roles_header(regions):
    """C header with ``roles``: every role slot, with its name, the base address of its registers
    and the number of its role in the plan.

    And with the offsets of the registers that all of them have. Slots of one role follow each
    other; they are called ``NAME``, or ``NAME_0``, ``NAME_1`` …
    """
    roles = [(block, base) for block, base in regions if _is_role(block)]
    owners = [role_of_instance(block.name) for block, _ in roles]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(owners))}
    rows = [
        _role_row(block, base, numbers[owner])
        for (block, base), owner in zip(roles, owners, strict=True)
    ]
    offsets = register_offsets(role_block("any")).items()
    return "\n".join(
        [
            "/* Generated from the register declarations; do not edit. */",
            "#pragma once",
            "",
            '#include "role.h"',
            "",
            *(f"#define ROLE_{name.upper()} 0x{offset:02x}u" for name, offset in offsets),
            "",
            "/* Ends with an entry without address. */",
            "static const struct role roles[] = {",
            *rows,
            '\t{ "", 0, 0, 0, 0 },',
            "};",
            "",
        ]
    )


def build_header(regions):
    """C header with what a build is called by: the hash of its register map, and its roles.

    The roles are a JSON list of names in the order of the plan, as text of at most
    :data:`_ROLE_NAMES` bytes; what has no room is left out.
    """
    slots = [block for block, _ in regions if _is_role(block) and not _is_peer(block)]
    names = list(dict.fromkeys(role_of_instance(block.name) for block in slots))
    while len(listed := json.dumps(names, separators=(",", ":"))) > _ROLE_NAMES:
        names.pop()
    named = json.loads(json_map(regions))["map"]
    return "\n".join(
        [
            "/* Generated from the register declarations; do not edit. */",
            "#pragma once",
            "",
            f'#define TREBUCHET_REGISTER_MAP "{named}"',
            f"#define TREBUCHET_ROLE_NAMES {json.dumps(listed)}",
            "",
        ]
    )


def _run_make(folder, makefile):
    """Run make, which ends with all that it started when this is ended."""
    command = ["make", f"-j{os.cpu_count()}", "-C", str(folder), "-f", str(makefile)]
    run_group(command).check_returncode()


class FirmwareBuilder(Builder):
    """LiteX's builder with our firmware where LiteX puts its BIOS, and our headers beside its own.

    Also writes ``registers.json`` and ``registers.svd`` of the shell's blocks beside ``csr.json``.
    """

    def add_software_package(self, name, src_dir=None):
        """As LiteX's, but only what we link; the package ``bios`` is ours."""
        if name == "bios":
            super().add_software_package(name, str(FIRMWARE_DIR))
        elif name in PACKAGES:
            super().add_software_package(name, src_dir)

    def add_software_library(self, name):
        """As LiteX's, but only what we link."""
        if name in PACKAGES:
            super().add_software_library(name)

    def _get_variables_contents(self):
        """As LiteX's, and the linker can leave out functions of LiteX's libraries, too."""
        separate = "CPUFLAGS += -ffunction-sections -fdata-sections"
        boot_rom = f"BOOT_ROM={int(self.soc.board.boot_rom)}"
        return f"{super()._get_variables_contents()}\n{separate}\n{boot_rom}\n"

    def _generate_rom_software(self, compile_bios=True):
        """As LiteX's, but :data:`SHARED` packages are compiled once for each kind of CPU.

        And make is in a process group of its own.
        """
        if self.compile_software:
            for name, patterns in SHARED.items():
                self._share(name, patterns)
            for name, source in self.software_packages:
                if compile_bios or name != "bios":
                    _run_make(Path(self.software_dir) / name, Path(source) / "Makefile")
            if compile_bios and self.soc.board.boot_rom:
                self._pack_firmware()

    def _pack_firmware(self):
        """Write :data:`IMAGE`, and for the simulator a flash with it."""
        board, output = self.soc.board, Path(self.output_dir)
        code = (Path(self.software_dir) / "bios" / "application.bin").read_bytes()
        image = Image(Kind.firmware, board.name, __version__, code, MAIN_RAM).pack()
        write_whole(output / IMAGE, image)
        if board.flow == "sim":
            offset, length = board.flash.golden_firmware
            flash = bytearray(b"\xff" * board.flash.size)
            flash[offset : offset + length] = slot_bytes(image, length)
            write_whole(Path(self.gateware_dir) / FLASH, bytes(flash))

    def _share(self, name, patterns):
        """Leave in the build what is compiled of a package for CPUs like this one."""
        own = Path(self.software_dir) / name
        variables = self._get_variables_contents().splitlines()
        variables = [line for line in variables if str(self.include_dir) not in line]
        compiler, strip = "riscv64-unknown-elf-gcc", require_tool("riscv64-unknown-elf-strip")
        variables.append("without debugging information")
        key = input_hash(variables, version_of(compiler, require_tool(compiler)), folders=())
        stamp = own / "shared.txt"
        if stamp.exists() and stamp.read_text() == key:
            return

        def make(folder):
            shutil.rmtree(own)  # of another kind of CPU, or broken off
            own.mkdir()
            makefile = Path(dict(self.software_packages)[name]) / "Makefile"
            _run_make(own, makefile)
            for pattern in patterns:
                for path in own.glob(pattern):
                    shutil.copy2(path, folder)
            # With it the C library has 84 MB, three times in each build.
            for path in folder.glob("*.a"):
                subprocess.run([strip, "--strip-debug", "--preserve-dates", path], check=True)

        folder = kept(BUILD / "libraries" / f"{name}-{key[:20]}", make)
        shutil.rmtree(own)
        shutil.copytree(folder, own)  # with times, by which make goes
        stamp.write_text(key)

    def _generate_includes(self, with_bios=True):
        super()._generate_includes(with_bios)
        regions = self.soc.register_map()
        for name, text in {
            "trebuchet_regs.h": c_header(regions),
            "trebuchet_build.h": build_header(regions),
            "trebuchet_status_table.h": status_table_header(regions),
            "trebuchet_roles.h": roles_header(regions),
            "trebuchet_front_page.h": front_page_header(),
            "trebuchet_status_codes.h": status_codes_header(),
            "trebuchet_web.h": web_header(),
            "trebuchet_store.h": store_header(),
            "trebuchet_peers.h": peers_header((), self.soc.sys_clk_freq / 1e6),
        }.items():
            write_to_file(str(Path(self.generated_dir) / name), text)
        output = Path(self.output_dir)
        text = json_map(regions)
        write_to_file(str(output / FILE_NAME), text)
        leave_map(text)
        write_to_file(str(output / "registers.svd"), svd(regions))
