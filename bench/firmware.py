"""Size of the firmware with TCP preset tiny: the simulated board's, 64 sessions, all commands.

What is measured is the linked program itself. Making it takes seconds when anything that a build
reads has changed, and nothing otherwise, so there is no shorter way to know whether it is the same.
"""

import subprocess

from ..soc.build import build_sim
from ..soc.toolchain import require_tool, version_of
from .job import Job, Values

__all__ = ["size"]

COMPILER = "riscv64-unknown-elf-gcc"


def size() -> Job:
    """Return the measurement of the firmware's code, and of code with constants."""
    elf = build_sim().folder.parent / "software" / "bios" / "bios.elf"
    listed = subprocess.run(
        ["riscv64-unknown-elf-size", "-A", elf], capture_output=True, text=True, check=True
    ).stdout
    sizes = {
        fields[0]: int(fields[1])
        for fields in (line.split() for line in listed.splitlines())
        if len(fields) == 3 and fields[0].startswith(".")
    }
    loaded = {name: sizes.get(name, 0) for name in (".text", ".rodata", ".data")}
    compiler = version_of(COMPILER, require_tool(COMPILER))
    return Job((loaded, compiler), lambda: _figures(loaded))


def _figures(loaded: dict[str, int]) -> Values:
    return {"firmware.code_bytes": loaded[".text"], "firmware.rom_bytes": sum(loaded.values())}
