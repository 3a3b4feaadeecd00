"""Size of the firmware with TCP preset tiny: the simulated board's, 64 sessions, all commands."""

import subprocess

from ..soc.build import build_sim

__all__ = ["measure"]


def measure() -> dict[str, float]:
    elf = build_sim().folder.parent / "software" / "bios" / "bios.elf"
    listed = subprocess.run(
        ["riscv64-unknown-elf-size", "-A", elf], capture_output=True, text=True, check=True
    ).stdout
    sizes = {
        fields[0]: int(fields[1])
        for fields in (line.split() for line in listed.splitlines())
        if len(fields) == 3 and fields[0].startswith(".")
    }
    rom = sum(sizes.get(name, 0) for name in (".text", ".rodata", ".data"))
    return {"firmware.code_bytes": sizes[".text"], "firmware.rom_bytes": rom}
