"""Clock and size of every real board, from builds that reach a bitstream and meet their clock."""

from ..boards import NAMES, load_board
from ..soc.build import build_board

__all__ = ["BUILT", "measure"]

#: Boards with open tools from Python to bitstream; the others are simulated.
BUILT = tuple(name for name in NAMES if load_board(name).flow == "trellis")


def measure() -> dict[str, float]:
    values = {}
    for name in BUILT:
        report = build_board(name, fresh=True)
        values[f"board.{name}.sys_mhz"] = report["sys_mhz"]
        values[f"board.{name}.lut4"] = report["lut4"]
    return values
