"""Size of the burn-in role."""

from ..cores.roles.burnin.role import BurninRole
from .area import area_job
from .job import Job

__all__ = ["area"]


def area() -> Job:
    """Return the measurement on an ECP5: the role with four lanes, a data path of 32 bits."""
    figures = {"burnin.lut4": "LUT4", "burnin.dsp": "DSP", "burnin.bram18": "BRAM18"}
    return area_job(lambda: BurninRole(32), figures, "ecp5")
