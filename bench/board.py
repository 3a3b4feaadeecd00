"""Clock and size of a real board with the seed of its file.

What the build itself took, time and memory, is told as well; the time is the machine's that day.
"""

from ..boards import load_board
from ..soc.measure import measure_board
from ..soc.measure import placement_key as design_digest
from .registry import BOARD_FIGURES

__all__ = ["design_digest", "measure"]


def measure(name: str) -> dict[str, float]:
    report = measure_board(name, load_board(name).seed)
    found = (
        report["sys_mhz"],
        round(report["lut4"] / report["lut4_available"], 4),
        report["ff"],
        report["bram"],
        report["dsp"],
        report["minutes"],
        round(report["peak_bytes"] / 2**30, 2),
    )
    return {f"board.{name}.{what}": value for what, value in zip(BOARD_FIGURES, found, strict=True)}
