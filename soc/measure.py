"""Clock, size and cost of a real board with one seed of the placer, and the key of its design.

A clock is a random sample: it varies by 7 to 14 % from seed to seed. So a figure takes several
seeds, which share one generated SoC and one netlist; both are kept below ``build/`` for as long as
nothing changes that they are made from. A clock that is missed is a measurement as well.
"""

import dataclasses
import json
import shutil
import sys
import time
from pathlib import Path

from ..boards import load_board
from ..models.ending import catch_termination
from ..models.errors import TrebuchetError
from .build import ROOT, environment, generate_locked, locked
from .inputs import files_of, input_hash
from .netlist import design_key, kept_netlist, placed_from, synthesise
from .pins import check_pins
from .place import ClocksMissed, Placement, check_room, place_once, usage, usage_of
from .processes import run_group
from .reports import read_report, write_report
from .toolchain import own_tools, provide_tools, require_tool, version_of

__all__ = ["measure_board", "placement_key"]

#: Tools whose versions are part of what is measured, where they are not the Python packages'.
_TOOLS = ("yosys", "nextpnr-ecp5")
_COMPILER = "riscv64-unknown-elf-gcc"


def placement_key(name):
    """Key of a board's design: of all that its clock and size depend on but the seed.

    That is the generated Verilog, scripts, constraints, options, our own steps on the netlist, and
    the versions of tools. Comments, line numbers and paths change none of it. The firmware is no
    part, and of the netlist only how many rows of block RAMs it takes (:mod:`~.rom`). Nothing is
    synthesised: 15 seconds, and one if nothing has changed in the sources.

    Raises :class:`TrebuchetError` if the board is not one that open tools place, or cannot be
    generated.
    """
    board = _load(name)
    directory = ROOT / "build" / f"{board.name}.check"
    with locked(directory):
        return _generated(name, board, directory, software=False)["key"]


def measure_board(name, seed):
    """Synthesise a board, unless that is kept, and place and route it with one seed.

    Parameters
    ----------
    name : str
        A board that is built by open tools, or the path of a board file.
    seed : int
        Seed of the placer.

    Returns
    -------
    dict
        ``board``, ``seed``; ``sys_mhz``, the system's clock; ``clocks``, of each ``mhz`` and
        ``target``; ``met``: each clock is above its target; ``lut4``, ``lut4_available``, ``ff``,
        ``bram`` (DP16KD), ``dsp``; ``minutes`` and ``peak_bytes`` of synthesis, place and route
        together, also where the netlist was kept; ``key`` (:func:`placement_key`) and ``netlist``,
        the hash of what nextpnr was given but for the seed.

    Raises
    ------
    TrebuchetError
        If it does not fit, or place and route does not come to an end.
    """
    board = _load(name)
    key = placement_key(name)
    directory = ROOT / "build" / f"{board.name}.measured"
    folder = directory / f"seed{seed}"
    with locked(folder):  # seeds of a board may be placed side by side
        with locked(directory):
            found = _generated(name, board, directory, software=board.has_cpu)
            design = Placement(directory / "gateware", found["top"], board.sys_clk_hz, board.router)
            with environment(directory):
                kept = _synthesised(board, design)
                netlist = placed_from(design)
            placement = dataclasses.replace(design, folder=folder, peaks=[])
            for path in _placed_from(design):
                shutil.copy(path, folder)
        with environment(directory):
            return {
                "board": board.name,
                "seed": seed,
                **_placed(placement, seed, kept),
                "lut4_available": board.lut4_budget,
                "key": key,
                "netlist": netlist,
            }


def _synthesised(board, design):
    """What :func:`~.netlist.synthesise` returns, of a netlist that is kept if it can be."""
    kept = kept_netlist(design)
    if kept is None:
        check_pins(design)
        kept = synthesise(design)
    check_room(board, usage(design, routed=False))
    return kept


def _placed_from(design):
    """Files that nextpnr reads, or that its output is translated by."""
    paths = [design.path(suffix) for suffix in (".json", ".lpf", "_names.json")]
    return [*paths, design.folder / f"build_{design.top}.sh"]


def _placed(placement, seed, kept):
    """What place and route of a netlist that was ``kept`` reached and took; its report is left."""
    began, met, report = time.monotonic(), True, placement.path(f"_seed{seed}_pnr.json")
    try:
        place_once(placement, seed)
    except ClocksMissed:
        met = False
    seconds = kept["seconds"] + time.monotonic() - began
    for suffix in (f"_seed{seed}.config", f"_seed{seed}_placed.json", ".json", "_names.json"):
        placement.path(suffix).unlink(missing_ok=True)
    found = usage_of(report, placement.sys_clk_hz)
    if found["sys_mhz"] is None:
        raise TrebuchetError(f"none of the clocks in {report} is {placement.sys_clk_hz} Hz")
    peak = max(kept["peak_bytes"], placement.peaks[-1])
    return {**found, "met": met, "minutes": round(seconds / 60, 2), "peak_bytes": peak}


def _load(name):
    board = load_board(name)
    if board.flow != "trellis":
        raise TrebuchetError(f"board {name!r} is not placed by open tools: flow {board.flow!r}")
    return board


def _generated(name, board, directory, software):
    """``top`` and ``key`` of a board's SoC in a folder, generated unless it is there.

    In a process of its own: the order of statements that LiteX writes depends on the boards
    generated before.
    """
    stamp = directory / "generated.json"
    with environment(directory):
        versions = own_tools(_TOOLS)
        if software:
            versions[_COMPILER] = version_of(_COMPILER, require_tool(_COMPILER))
    inputs = input_hash(board.describe(), files_of(board), software, *versions.items())
    found = read_report(stamp)
    if found.get("inputs") == inputs and (directory / "gateware" / f"{found['top']}.v").exists():
        return found
    stamp.unlink(missing_ok=True)
    log = directory / "generate.log"
    code = f"from {__name__} import _generate; _generate({str(name)!r}, {software})"
    with log.open("w") as out:
        done = run_group([sys.executable, "-c", code, str(directory)], stdout=out, stderr=out)
    if done.returncode:
        lines = log.read_text().strip().splitlines() or ["no reason given"]
        raise TrebuchetError(f"board {name!r} could not be generated: {lines[-1]}")
    made = json.loads((directory / "made.json").read_text())
    write_report(stamp, {"inputs": inputs, **made})
    return read_report(stamp)


def _generate(name, software):
    """For :func:`_generated`, which holds the lock of the folder, the program's argument."""
    directory = Path(sys.argv[1])
    with catch_termination():
        placement = generate_locked(load_board(name), directory, software)
        provide_tools(directory / "bin")
        write_report(directory / "made.json", {"top": placement.top, "key": design_key(placement)})
