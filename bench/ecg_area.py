"""Area of the ECG role with one pipeline: everything but the slot that any role has.

Reader of operands, front end with two sample buffers, network with as many lanes as keep up with
one front end, writer of results; data path of 32 bits, no records in parts, fixed weights. The
reference (sopc-cloud-platform, table 1) needs 72,972 LUTs, 450 DSPs and 162 BRAMs for ten
pipelines with one network.
"""

from ..cores.roles.ecg.role import EcgRole
from ..models.ecg.model import FAITHFUL
from ..models.ecg.second import SECOND
from .area import area_job
from .job import Job

__all__ = ["faithful", "second"]

RESOURCES = {"lut6": "LUT6", "dsp": "DSP", "bram36": "BRAM36"}


def faithful() -> Job:
    """Return the measurement with the preset of the reference."""
    return _area(FAITHFUL, "")


def second() -> Job:
    """Return the measurement with the second preset."""
    return _area(SECOND, "_second")


def _area(preset, suffix: str) -> Job:
    figures = {f"ecg.{name}{suffix}": resource for name, resource in RESOURCES.items()}
    return area_job(lambda: EcgRole(preset=preset), figures)
