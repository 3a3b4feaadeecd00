"""The trace core: cells on an ECP5, by bits that are sampled and records that are kept.

The smallest samples what docs/tutorials/probe.md names, with that depth; the others are what a
board has room for beside a shell. The clock is not measured alone: a board has to meet its own.
"""

from ..cores.probe.trace import MAX_WIDTH, TraceCore
from .area import area_job
from .job import Job

__all__ = ["SIZES", "cells"]

#: Bits of the tutorial's signals.
_TUTORIAL = 114
#: Bits and records, by part of the figures' names.
SIZES = {
    "tutorial": (_TUTORIAL, 256),
    "deep": (_TUTORIAL, 1024),
    "wide": (MAX_WIDTH, 1024),
}


def cells(size: str) -> Job:
    """Return the measurement of a trace core of one of :data:`SIZES`."""
    width, depth = SIZES[size]
    figures = {f"probe.{size}_{r.lower()}": r for r in ("LUT4", "FF", "BRAM18")}
    return area_job(lambda: TraceCore((("probed", width),), depth), figures, "ecp5")
