"""A node of a cluster (LTL, router, callers and server) alone on an ECP5: cells and clock.

Sizes are those of the board ``ecpix5_cluster``: four boards, a data path of 32 bits. The clock is
measured as that of the other blocks (:mod:`.blocks`).
"""

from ..cores.cluster.node import ClusterNode
from ..cores.cluster.server import ServerMemory
from .area import area
from .blocks import DEVICE
from .fmax import fmax

__all__ = ["measure_area", "measure_clock"]


def _node():
    return ClusterNode(ServerMemory(0, peers=3, operand_log2=15, result_log2=10), width=32)


def measure_area() -> dict[str, float]:
    used = area(_node(), "ecp5")
    return {f"cluster.ecp5_{cell}": used[cell.upper()] for cell in ("lut4", "ff", "bram18")}


def measure_clock() -> dict[str, float]:
    return {"cluster.ecp5_mhz": round(fmax(_node(), DEVICE).mhz, 1)}
