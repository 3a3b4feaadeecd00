"""Area of one component, from synthesis alone: what the budgets of roles are written in.

``synth_xilinx -family xcup`` (UltraScale+) counts as the sources' tables do
(:mod:`trebuchet.soc.xilinx_cells`). ``synth_ecp5`` counts LUT4s, carry chains as the two LUTs
of each CCU2C, LUT RAM as the four of each DPR16X4: the way ``trebuchet build --synth-only`` does.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..cores.roles.verilog_source import LANGUAGE
from ..models.errors import TrebuchetError
from ..models.paths import build_folder
from ..soc.toolchain import own_tools, provide_tools, require_tool, tool_names
from ..soc.xilinx_cells import COSTS, FREE
from .job import Job, Netlist, Values

__all__ = ["FAMILIES", "area", "area_job"]

#: What to run, and cost of a cell by resource; cells that are not named cost nothing.
FAMILIES: dict[str, tuple[str, dict[str, dict[str, float]]]] = {
    "xcup": (
        "synth_xilinx -family xcup -top top -flatten -noiopad -noclkbuf",
        COSTS,
    ),
    "ecp5": (
        "synth_ecp5 -top top -nowidelut",
        {
            "LUT4": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4},
            "FF": {"TRELLIS_FF": 1},
            "BRAM18": {"DP16KD": 1},
            "DSP": {"MULT18X18D": 1},
        },
    ),
}


def area(component, family: str = "xcup") -> Values:
    """Resources of an Amaranth component, flattened, by name: LUT6, FF, BRAM36, DSP for ``xcup``.

    For ``ecp5`` they are LUT4, FF, BRAM18 and DSP. A cell that no rule knows is an error.
    """
    return _area(Netlist(lambda: component), family)


def area_job(make: Callable[[], Any], figures: Mapping[str, str], family: str = "xcup") -> Job:
    """A measurement of the component that ``make`` returns.

    ``figures``: resource of each figure, as :func:`area` names it.
    """
    provide_tools(_tools_folder())
    netlist = Netlist(make)

    def measure() -> Values:
        used = _area(netlist, family)
        return {figure: used[resource] for figure, resource in figures.items()}

    return Job((netlist, *_rules(family), tool_names(("yosys",), own_tools(("yosys",)))), measure)


def _rules(family: str) -> tuple[str, dict[str, dict[str, float]], list[str]]:
    """Command of Yosys, cost of cells, cells that are free."""
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, not {family!r}")
    return (*FAMILIES[family], sorted(FREE))


def _area(netlist: Netlist, family: str) -> Values:
    command, rules, free = _rules(family)
    cells = _cells(netlist, command)
    known = {name for costs in rules.values() for name in costs} | set(free)
    if unknown := sorted(set(cells) - known):
        raise TrebuchetError(f"cells of unknown cost for {family}: {', '.join(unknown)}")
    return {
        resource: sum(cost * cells.get(name, 0) for name, cost in costs.items())
        for resource, costs in rules.items()
    }


def _tools_folder() -> Path:
    return build_folder("tools")


def _cells(netlist: Netlist, command: str) -> dict[str, int]:
    """Number of cells by type after ``command``."""
    provide_tools(_tools_folder())
    # Not the system's folder for temporary files, which the WebAssembly build of Yosys cannot see.
    with tempfile.TemporaryDirectory(dir=_tools_folder().parent) as name:
        folder = Path(name)
        text, *verilog = netlist.texts
        (folder / "top.il").write_text(text)
        # Parts in Verilog; copied, because the WebAssembly build sees this folder in any case.
        script = ["read_rtlil top.il"]
        for i, part in enumerate(verilog):
            (folder / f"{i}.v").write_text(part)
            script.append(f"read_verilog -sv {i}.v")
        if verilog:
            # A module that is kept would be a cell of unknown cost.
            script += ["setattr -mod -unset keep_hierarchy", "setattr -unset keep_hierarchy"]
        script += [command, "tee -q -o stat.json stat -json -top top"]
        (folder / "top.ys").write_text("\n".join(script) + "\n")
        run = subprocess.run(
            [require_tool("yosys"), "-q", "top.ys"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            said = (run.stdout + run.stderr).strip()[-500:]
            level = f" (Verilog of roles must be {LANGUAGE})" if verilog else ""
            raise TrebuchetError(f"yosys failed: {said}{level}")
        stat = json.loads((folder / "stat.json").read_text())
    return stat["design"]["num_cells_by_type"]
