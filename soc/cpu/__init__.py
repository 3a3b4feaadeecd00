"""Processors of our own: VexRiscv, generated from its SpinalHDL sources (docs/cpu.md).

``scala/`` has what is ours of the sources, ``verilog/`` the result, which is checked in: a build
needs neither Java nor Scala. ``generated.json`` beside it says from what it was made; ``jars.lock``
names the libraries with their SHA-256. ``trebuchet cpu`` makes it anew (:mod:`.generate`).
"""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["CORES", "Core"]

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Core:
    """A generated processor.

    Attributes
    ----------
    base : str
        LiteX's variant of VexRiscv with the same instructions but ours, and the same ports: for it
        firmware is compiled.
    name : str
        What the console calls it; the name of its file.
    cached : bool
        It has an instruction cache.
    """

    base: str
    name: str
    cached: bool

    @property
    def verilog(self) -> Path:
        return FOLDER / "verilog" / f"{self.name}.v"


#: By their names as a board's ``cpu_variant``.
CORES = {
    "trebuchet": Core("minimal", "VexRiscv_Trebuchet", cached=False),
    "trebuchet_cached": Core("lite", "VexRiscv_TrebuchetCached", cached=True),
}
