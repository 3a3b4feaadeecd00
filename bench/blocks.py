"""Blocks alone on an ECP5: cells after synthesis, and the clock after place and route.

The clock is the median of three seeds on an LFE5U-45F of speed grade 6, the slowest, with a
register at every port (:mod:`.fmax`). In a full device it is less: wires are longer.
"""

from collections.abc import Callable
from typing import Any

from ..cores.bridge.bridge import Bridge
from ..cores.cluster.node import ClusterNode
from ..cores.cluster.server import ServerMemory
from ..cores.ltl.config import LtlConfig
from ..cores.ltl.engine import Ltl
from ..cores.roles.ecg.role import EcgRole
from ..cores.router.contract import LinkConfig
from ..cores.router.router import Router
from ..models.ecg.model import FAITHFUL
from .area import area_job
from .fmax import Ecp5, clock_job
from .job import Job, Sampled

__all__ = ["BLOCKS", "cells", "clock"]

FPGA = Ecp5("LFE5U-45F")
#: The parameters are those of the UltraScale+ rows of the same block; of a cluster's node those of
#: the board ``ecpix5_cluster``.
BLOCKS: dict[str, Callable[[], Any]] = {
    "bridge": lambda: Bridge(64),
    "cluster": lambda: ClusterNode(ServerMemory(0, 3, operand_log2=15, result_log2=10)),
    "ecg": lambda: EcgRole(preset=FAITHFUL),
    "ltl": lambda: Ltl(LtlConfig(connections=64)),
    "router": lambda: Router(4, LinkConfig(vcs=2, flit_width=64, buffer_flits=16)),
}


def cells(name: str) -> Job:
    """Return the measurement of a block's cells."""
    figures = {f"{name}.ecp5_{r.lower()}": r for r in ("LUT4", "FF", "BRAM18", "DSP")}
    return area_job(BLOCKS[name], figures, "ecp5")


def clock(name: str) -> Sampled:
    """Return the measurement of a block's clock."""
    figure = f"{name}.ecp5_mhz"
    return clock_job(BLOCKS[name](), FPGA, lambda mhz, cells: {figure: round(mhz, 1)})
