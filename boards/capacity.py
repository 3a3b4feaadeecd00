"""What an FPGA of UltraScale or UltraScale+ has, for boards of flow ``vivado``."""

from dataclasses import dataclass

__all__ = ["Capacity"]

#: UltraScale and UltraScale+, by Yosys' names.
FAMILIES = ("xcu", "xcup")


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """What an UltraScale or UltraScale+ FPGA has of each resource, as its maker counts.

    Attributes
    ----------
    family : str
        What Yosys calls the architecture: ``xcu`` (UltraScale) or ``xcup`` (UltraScale+).
    lut6, ff, bram36, dsp : int
        LUTs of six inputs, flip-flops, block RAMs of 36 Kb, multipliers.
    """

    family: str
    lut6: int
    ff: int
    bram36: int
    dsp: int

    def faults(self):
        """``(field, what it must be, its value)`` of everything that is wrong."""
        if self.family not in FAMILIES:
            yield "family", f"one of {FAMILIES}", self.family
        for name in ("lut6", "ff", "bram36", "dsp"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                yield name, "a positive integer", value
