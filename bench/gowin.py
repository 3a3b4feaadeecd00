"""The TCP engine with preset tiny on another vendor's FPGA, by open tools: Yosys, nextpnr, Apicula.

The FPGA is a Gowin GW2A-18, 20,736 LUT4 and 46 block RAMs, as on boards of the price of an ECP5's.
The whole SoC does not fit there; the engine does, with the clock of a gigabit, and is placed and
routed to the end. There is no bitstream: a bare engine has no use on a board.
"""

from ..cores.tcp.engine import TcpEngine
from .fmax import Gowin, clock_job
from .job import Sampled, Values
from .tcp_tiny import TINY, AsVerilog

__all__ = ["FPGA", "clock"]

#: Pins: any, the clock's on the left of the die, where clocks come in.
FPGA = Gowin(
    "GW2A-LV18PG256C8/I7",
    ("gw2a", "GW2A-18"),
    pins={"clk": "H11", "rst": "T3", "i": "T2", "o": "C13"},
    target=50,
)


def clock() -> Sampled:
    """Return the measurement of the clock, and of cells, which no seed changes."""
    return clock_job(AsVerilog(TcpEngine(TINY)), FPGA, _figures)


def _figures(mhz: float, cells: dict[str, int]) -> Values:
    return {
        "gowin.tcp_tiny_mhz": round(mhz, 1),
        "gowin.tcp_tiny_lut4": cells["LUT4"],
        "gowin.tcp_tiny_bram18": cells["BSRAM"],
    }
