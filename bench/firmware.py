"""Size of the firmware: the simulated board's, with TCP preset tiny, 64 sessions and all commands,
and that of a board with DDR3 whose firmware is in external memory: its boot ROM, and its image.

What is measured is the linked program itself. Making it takes seconds when anything that a build
reads has changed, and nothing otherwise, so there is no shorter way to know whether it is the same.
"""

import subprocess
from pathlib import Path

from ..soc.build import build_sim, build_software
from ..soc.toolchain import require_tool, version_of
from .job import Job, Values

__all__ = ["size"]

COMPILER = "riscv64-unknown-elf-gcc"


def size() -> Job:
    """Return the measurement of the firmware's code, and of code with constants."""
    board = _sections(build_sim().folder.parent)
    folder = build_software("versa_ecp5")
    versa = _sections(folder), _sections(folder, "application")
    compiler = version_of(COMPILER, require_tool(COMPILER))
    return Job((board, versa, compiler), lambda: _figures(board, *versa))


def _sections(folder: Path, program: str = "bios") -> dict[str, int]:
    """Bytes of the sections that are loaded, of a program of the SoC in ``folder``."""
    elf = folder / "software" / "bios" / f"{program}.elf"
    listed = subprocess.run(
        ["riscv64-unknown-elf-size", "-A", elf], capture_output=True, text=True, check=True
    ).stdout
    sizes = {
        fields[0]: int(fields[1])
        for fields in (line.split() for line in listed.splitlines())
        if len(fields) == 3 and fields[0].startswith(".")
    }
    return {name: sizes.get(name, 0) for name in (".text", ".rodata", ".data")}


def _figures(board: dict[str, int], rom: dict[str, int], image: dict[str, int]) -> Values:
    return {
        "firmware.code_bytes": board[".text"],
        "firmware.rom_bytes": sum(board.values()),
        "firmware.versa_ecp5_boot_rom_bytes": sum(rom.values()),
        "firmware.versa_ecp5_image_bytes": sum(image.values()),
    }
