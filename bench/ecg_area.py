"""Area of the ECG role with one pipeline: everything but the slot that any role has.

Reader of operands, front end with two sample buffers, network with as many lanes as keep up with
one front end, writer of results; data path of 32 bits, no records in parts, fixed weights. The
reference (sopc-cloud-platform, table 1) needs 72,972 LUTs, 450 DSPs and 162 BRAMs for ten
pipelines with one network.
"""

from ..cores.roles.ecg.role import EcgRole
from ..models.ecg.model import FAITHFUL
from ..models.ecg.second import SECOND
from .area import area

__all__ = ["measure"]

FIGURES = {"lut6": "LUT6", "dsp": "DSP", "bram36": "BRAM36"}


def measure() -> dict[str, float]:
    values: dict[str, float] = {}
    for preset, suffix in ((FAITHFUL, ""), (SECOND, "_second")):
        used = area(EcgRole(preset=preset), "xcup")
        values |= {f"ecg.{name}{suffix}": used[key] for name, key in FIGURES.items()}
    return values
