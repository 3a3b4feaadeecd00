"""Area of the web service, as Verilog: with 1,024 places at work and four lanes, 64 bits wide; on
an ECP5 with 64 and one.
"""

from ..cores.web.service import Web
from .area import area_job
from .job import Job
from .tcp_tiny import AsVerilog

__all__ = ["area", "area_ecp5"]

#: Of the service whose area is measured: sessions at work, segments of 32 KiB.
SESSIONS, SEGMENT_LOG2 = 1024, 15


def _service(sessions: int, lanes: int) -> AsVerilog:
    """Return the service as boards are built from it."""
    return AsVerilog(Web(64, sessions, SEGMENT_LOG2, lanes=lanes, rest=True))


def area() -> Job:
    """Return the measurement of the area of the service with four lanes."""
    figures = {"web.lut6": "LUT6", "web.bram36": "BRAM36"}
    return area_job(lambda: _service(SESSIONS, 4), figures)


def area_ecp5() -> Job:
    """Return the measurement of the area of the service with one lane, 64 sessions, on an ECP5."""
    figures = {"web.lut4": "LUT4", "web.bram18": "BRAM18"}
    return area_job(lambda: _service(64, 1), figures, "ecp5")
