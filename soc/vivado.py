"""A Vivado project of a board: written whole, and built, or checked with open tools.

The project's folder has everything that Vivado needs, by plain names, so it can be copied to
another machine: Verilog, contents of memories, constraints, LiteX's script (``NAME.tcl``), and
``build.sh``, ``program.sh`` and ``program.tcl`` to run it, for a board with a flash ``flash.sh``
and ``flash.tcl`` too. It appears complete or not at all; until then an older one stays.

Where Vivado is installed it is run. Elsewhere Yosys maps the same Verilog to the FPGA's cells,
which knows ports and parameters of the vendor's primitives and says how much is used, and
Verilator lints it. What only Vivado can say: clocks reached, pins and I/O standards, and whether
the transceivers' many parameters suit each other.
"""

import json
import re
import subprocess

from ..models.errors import TrebuchetError
from .own_folder import check_own, make_own, remove_own
from .place import LEAVE_OUT, Placement
from .toolchain import verilator
from .vendor_cells import DUMP, stubs
from .xilinx_cells import resources

__all__ = ["WAIVED", "check_fit", "map_design", "run_vivado", "write_project"]

#: What generated Verilog is full of by its nature, and Verilator need not say. All else is fatal.
WAIVED = {
    "ASCRANGE": "Amaranth writes vectors of no bits as [-1:0]",
    "CASEINCOMPLETE": "a default value stands before each case of Migen",
    "CMPCONST": "comparisons with limits that sizes keep anyway",
    "COMBDLY": "Migen writes combinational blocks with <=",
    "PINMISSING": "primitives' inputs that are left at their defaults",
    "UNOPTFLAT": "loops between signals; Yosys looks for those between bits, which count",
    "UNSIGNED": "comparisons with 0 that sizes keep anyway",
    "WIDTHEXPAND": "Migen and Amaranth have their own rules for widths",
    "WIDTHTRUNC": "likewise",
}

#: Rows of Vivado's table of what is used.
_ROWS = {
    "lut6": "CLB LUTs",
    "ff": "CLB Registers",
    "bram36": "Block RAM Tile",
    "dsp": "DSPs",
}

_BUILD = """\
#!/bin/sh
# Makes {top}.bit. Vivado must be on PATH (source its settings64.sh first).
cd "$(dirname "$0")" && exec vivado -mode batch -source {top}.tcl
"""

_PROGRAM = """\
#!/bin/sh
# Loads {top}.bit into the board that is connected to this machine.
cd "$(dirname "$0")" && exec vivado -mode batch -source program.tcl
"""

_PROGRAM_TCL = """\
# Loads {top}.bit over JTAG: the first {part} of the first cable.
open_hw_manager
connect_hw_server
open_hw_target
set device [lindex [get_hw_devices {part}*] 0]
if {{$device eq ""}} {{
    error "no {part} on the JTAG cable, which has: [get_hw_devices -quiet]"
}}
current_hw_device $device
set here [file dirname [file normalize [info script]]]
set_property PROGRAM.FILE [file join $here {top}.bit] $device
program_hw_devices $device
close_hw_manager
"""

_FLASH = """\
#!/bin/sh
# Writes {top}.mcs, the golden bitstream, to the flash of the board on this machine's cable.
cd "$(dirname "$0")" && exec vivado -mode batch -source flash.tcl
"""

_FLASH_TCL = """\
# Writes {top}.mcs to the flash {flash} of the first {part} of the first cable: only what the
# file has, so that images in other parts of the flash stay.
open_hw_manager
connect_hw_server
open_hw_target
set device [lindex [get_hw_devices {part}*] 0]
if {{$device eq ""}} {{
    error "no {part} on the JTAG cable, which has: [get_hw_devices -quiet]"
}}
set chip [lindex [get_cfgmem_parts {flash}] 0]
if {{$chip eq ""}} {{
    error "this Vivado knows no flash {flash}; see get_cfgmem_parts"
}}
current_hw_device $device
set here [file dirname [file normalize [info script]]]
set memory [create_hw_cfgmem -hw_device $device $chip]
set_property PROGRAM.FILES [list [file join $here {top}.mcs]] $memory
set_property PROGRAM.ADDRESS_RANGE {{use_file}} $memory
set_property PROGRAM.UNUSED_PIN_TERMINATION {{pull-none}} $memory
foreach {{step wanted}} {{BLANK_CHECK 0 ERASE 1 CFG_PROGRAM 1 VERIFY 1}} {{
    set_property PROGRAM.$step $wanted $memory
}}
create_hw_bitstream -hw_device $device [get_property PROGRAM.HW_CFGMEM_BITFILE $device]
program_hw_devices $device
program_hw_cfgmem -hw_cfgmem $memory
boot_hw_device $device
close_hw_manager
"""


def _sources(placement):
    """Files that LiteX's script names, in its order, and the script with plain names."""
    script = placement.path(".tcl").read_text()
    found = {}

    def plain(match):
        path = placement.folder / match[1]
        if found.setdefault(path.name, path) != path:
            raise TrebuchetError(f"two files of the design are called {path.name!r}; rename one")
        return f"{{{path.name}}}"

    script = re.sub(r"\{(/[^{}]+)\}", plain, script)
    return list(found.values()), script


def _without_places(verilog):
    """``verilog`` without what differs between builds and machines.

    LiteX's picture of the hierarchy has its lines in another order each time.
    """
    without = re.sub(r"^/\*$.*?^\*/$", "", verilog, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r'\(\* src = "[^"]*" \*\)', "", without)


def _copy(paths, folder):
    for path in paths:
        (folder / path.name).write_text(_without_places(path.read_text()))


def write_project(placement, device, target, flash=""):
    """Write the project ``target`` of the SoC that LiteX generated in ``placement``.

    ``flash`` is what Vivado calls the board's, if it has one. Returns the :class:`Placement`.
    """
    sources, script = _sources(placement)
    sources += [*placement.folder.glob("*.init"), placement.path(".xdc")]
    partial = target.with_name(f"{target.name}.partial")
    check_own(target)
    make_own(partial)
    try:
        _fill(partial, sources, script, placement.top, device, flash)
    except OSError as error:
        remove_own(partial)
        raise TrebuchetError(f"the project {target} cannot be written: {error}") from error
    remove_own(target)
    partial.rename(target)
    return Placement(target, placement.top, placement.sys_clk_hz)


def _fill(folder, sources, script, top, device, flash):
    _copy(sources, folder)
    names = {"top": top, "part": device.partition("-")[0], "flash": flash}
    texts = {
        f"{top}.tcl": script,
        "build.sh": _BUILD.format(**names),
        "program.sh": _PROGRAM.format(**names),
        "program.tcl": _PROGRAM_TCL.format(**names),
    }
    if flash:
        texts |= {"flash.sh": _FLASH.format(**names), "flash.tcl": _FLASH_TCL.format(**names)}
    for name, text in texts.items():
        (folder / name).write_text(text)
    for path in folder.glob("*.sh"):
        path.chmod(0o755)


def map_design(placement, capacity, folder):
    """Elaborate, map and lint the design with open tools; returns what it uses by resource.

    ``folder`` is where that is done, and where its logs stay.
    """
    make_own(folder)
    sources, tcl = _sources(placement)
    _copy([*sources, *placement.folder.glob("*.init")], folder)
    work = Placement(folder, placement.top, placement.sys_clk_hz)
    names = [path.name for path in sources]
    _lint(work, names)
    command = f"synth_xilinx -family {capacity.family} -top {work.top} -flatten"
    # Yosys offers LUT RAM of 64 Ki words for the price of one LUT's, and then cannot map it.
    script = f"""{_reads(names, tcl)}
{command} -run begin:map_memory
setattr -set ram_style "block" t:$mem_v2 r:SIZE>512 %i
{command} -run map_memory:
tee -q -o stat.json stat -json -top {work.top}
"""
    work.path(".ys").write_text(script)
    work.run(["yosys", "-q", "-l", "yosys_all.log", work.path(".ys").name], "yosys.log")
    loops = re.findall(r"found logic loop in.*", (folder / "yosys_all.log").read_text())
    if loops:
        raise TrebuchetError(f"{loops[0].rstrip(':')}, see {folder / 'yosys_all.log'}")
    cells = json.loads((folder / "stat.json").read_text())["design"]["num_cells_by_type"]
    return {name.lower(): count for name, count in resources(cells).items()}


def _reads(names, tcl):
    """Yosys's commands to read the sources; what LiteX's script says is SystemVerilog as such."""
    system = set(re.findall(r"file_type SystemVerilog \[get_files \{([^}]+)\}\]", tcl))
    kinds = {
        "read_verilog": [name for name in names if name not in system],
        "read_verilog -sv": [name for name in names if name in system],
    }
    return "\n".join(" ".join([command, *files]) for command, files in kinds.items() if files)


def _lint(work, names):
    (work.folder / "cells.ys").write_text(DUMP)
    work.run(["yosys", "-q", "cells.ys"], "cells.log")
    cells = work.folder / "cells.json"
    verilog = "\n".join((work.folder / name).read_text() for name in names)
    (work.folder / "stubs.v").write_text(stubs(cells.read_text(), verilog))
    cells.unlink()
    command, environment = verilator()
    waived = [f"-Wno-{name}" for name in WAIVED]
    log = work.folder / "lint.log"
    # LiteX's file has a time scale, the others none.
    options = ["--lint-only", *waived, "--timescale", "1ns/1ps", "--top-module", work.top]
    with log.open("w") as out:
        code = subprocess.run(
            [command, *options, *names, "stubs.v"],
            cwd=work.folder,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    if code:
        lines = [line for line in log.read_text().splitlines() if line.startswith("%")]
        first = lines[0] if lines else f"exit code {code}"
        raise TrebuchetError(f"verilator found a fault, see {log}: {first}")


def check_fit(board, used):
    """Raise, naming the scarcest resource, if the design is larger than the FPGA."""
    shares = {name: used[name] / getattr(board.capacity, name) for name in _ROWS}
    name = max(shares, key=shares.get)
    if shares[name] > 1:
        raise TrebuchetError(
            f"board {board.name!r} needs {used[name]:g} {name.upper()} of "
            f"{getattr(board.capacity, name)}; {LEAVE_OUT}"
        )


def run_vivado(project):
    """Run Vivado to the bitstream; returns what is used, as far as Vivado's reports say."""
    project.run(["vivado", "-mode", "batch", "-source", f"{project.top}.tcl"], "vivado_run.log")
    bitstream = project.path(".bit")
    if not bitstream.exists():
        raise TrebuchetError(f"vivado wrote no {bitstream.name}; see {project.folder}")
    timing = project.path("_timing.rpt")
    if timing.exists() and "Timing constraints are not met" in timing.read_text():
        raise TrebuchetError(
            f"the design misses its clocks, see {timing}; lower sys_clk_hz of the board"
        )
    table = project.path("_utilization_place.rpt")
    text = table.read_text() if table.exists() else ""
    rows = {
        name: re.search(rf"^\| {row}\*? +\| +([\d.]+) ", text, re.M) for name, row in _ROWS.items()
    }
    return {name: float(row[1]) if row else None for name, row in rows.items()}
