"""The TCP engine with preset tiny on another vendor's FPGA, by open tools: Yosys, nextpnr, Apicula.

The FPGA is a Gowin GW2A-18, 20,736 LUT4 and 46 block RAMs, as on boards of the price of an ECP5's.
The whole SoC does not fit there; the engine does, with the clock of a gigabit, and is placed and
routed to the end. There is no bitstream: a bare engine has no use on a board.
"""

import json
import os
import statistics

from amaranth.back import rtlil

from ..cores.tcp.engine import TcpEngine
from ..models.errors import TrebuchetError
from . import fmax
from .tcp_tiny import TINY, AsVerilog

__all__ = ["measure"]

DEVICE, FAMILY = "GW2A-LV18PG256C8/I7", "GW2A-18"
#: Pins of the harness: any, the clock's on the left of the die, where clocks come in.
PINS = {"clk": "H11", "rst": "T3", "i": "T2", "o": "C13"}
#: Clock that place and route aims at, in MHz.
TARGET = 50
#: Of the placer; the clock is the median.
SEEDS = (1, 2, 3)


def measure() -> dict[str, float]:
    component = AsVerilog(TcpEngine(TINY))  # first: it finds the tools
    folder = fmax.BUILD / f"gowin-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    harness = rtlil.convert(fmax.Harness(component), name="top", emit_src=False)
    (folder / "top.il").write_text(harness)
    reads = [f"read_rtlil {folder}/top.il"]
    reads += [f"read_verilog {path}" for path in component.verilog_files]
    netlist, log = folder / "netlist.json", folder / "log"
    script = "; ".join([*reads, f"synth_gowin -family gw2a -top top -json {netlist}"])
    fmax._run(["yosys", "-q", "-p", script], log)
    pins = folder / "pins.cst"
    pins.write_text("".join(f'IO_LOC "{port}" {pin};\n' for port, pin in PINS.items()))
    command = ["nextpnr-himbaechel-gowin", "--json", netlist, "--device", DEVICE]
    command += ["--vopt", f"family={FAMILY}", "--vopt", f"cst={pins}"]
    command += ["--freq", TARGET, "--router", "router2"]
    reports = []
    for seed in SEEDS:
        report = folder / f"seed{seed}.json"
        fmax._run([*command, "--seed", seed, "--report", report], folder / f"seed{seed}.log")
        reports.append(json.loads(report.read_text()))
    return _figures(reports)


def _clock(report):
    clocks = [clock["achieved"] for clock in report["fmax"].values()]
    if len(clocks) != 1:
        raise TrebuchetError(f"the report must tell of one clock, not {sorted(report['fmax'])}")
    return clocks[0]


def _figures(reports):
    """Median of the clocks, and cells, which no seed changes, by reports of nextpnr."""
    used = {name: cell["used"] for name, cell in reports[0]["utilization"].items()}
    return {
        "gowin.tcp_tiny_mhz": round(statistics.median(map(_clock, reports)), 1),
        "gowin.tcp_tiny_lut4": used["LUT4"],
        "gowin.tcp_tiny_bram18": used["BSRAM"],
    }
