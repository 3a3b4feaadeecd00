"""`trebuchet build` and `trebuchet load`."""

import json
import subprocess
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..boards import NAMES, load_board
from ..models.errors import TrebuchetError
from .timing import critical_paths
from .toolchain import require_tool

__all__ = ["build", "load"]

_BOARDS = ", ".join(NAMES)


def _table(report):
    table = Table("what", "value", box=None)
    table.add_row("LUT4", f"{report['lut4']} of {report['lut4_available']}")
    for name, what in (("ff", "flip-flops"), ("bram", "block RAMs"), ("dsp", "multipliers")):
        table.add_row(what, str(report[name]))
    for name, clock in report["clocks"].items():
        table.add_row(name, f"{clock['mhz']:.1f} MHz, needed {clock['target']:.1f} MHz")
    return table


def _timing(bitstream):
    table = Table("from", "to", "ns", "in cells", "through (cells, ns)", box=None)
    for path in critical_paths(bitstream.with_name(f"{bitstream.stem}_pnr.json")):
        hops = " > ".join(f"{name} ({cells}, {ns:.1f})" for name, cells, ns in path.hops)
        table.add_row(path.start, path.end, f"{path.ns:.1f}", f"{path.logic_ns:.1f}", hops)
    return table


def build(
    board: Annotated[str, typer.Argument(help=f"One of: {_BOARDS}; or a board file.")],
    synth_only: Annotated[
        bool, typer.Option("--synth-only", help="Stop after synthesis: sizes, no frequencies.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(min=1, help="Seed of place and route; the board's own if left out."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=100, help="Try so many seeds, and keep the fastest clock.")
    ] = 1,
    timing: Annotated[
        bool, typer.Option("--timing", help="Show the longest path of every clock, by component.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Build even if nothing changed.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Folder to build in; build/BOARD by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Build the firmware and the bitstream of a board with open tools."""
    from .build import build_board, build_sim

    console = Console(stderr=True)
    found = load_board(board)
    first = seed or found.seed
    tried = range(first, first + seeds)
    with console.status(f"building {board} (some minutes; logs are in its folder)"):
        if found.flow == "sim":
            files = build_sim(output, name=board)
            report = {"board": board, "top": files.top, "folder": str(files.folder)}
        else:
            report = build_board(board, output, synth_only=synth_only, seeds=tried, fresh=fresh)
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    elif "lut4" in report:
        Console().print(_table(report))
        if timing and report["bitstream"]:
            Console().print(_timing(Path(report["bitstream"])))
        if report["bitstream"]:
            typer.echo(f"floorplan: {report['floorplan']}")
            typer.echo(f"bitstream: {report['bitstream']}\nload it with: trebuchet load {board}")
    else:
        typer.echo(f"Verilog: {report['folder']}; run it with: trebuchet sim")


def load(
    board: Annotated[str, typer.Argument(help=f"One of: {_BOARDS}; or a board file.")],
    flash: Annotated[
        bool, typer.Option("--flash", help="Write the SPI flash, to stay after power-off.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="Folder it was built in; build/BOARD by default.")
    ] = None,
) -> None:
    """Load the bitstream into a board that is connected to this machine."""
    from .build import ROOT

    found = load_board(board)
    if not found.loader:
        raise TrebuchetError(f"board {board!r} is simulated; run it with: trebuchet sim")
    report = Path(output or ROOT / "build" / found.name) / "report.json"
    bitstream = json.loads(report.read_text())["bitstream"] if report.exists() else None
    if bitstream is None or not Path(bitstream).exists():
        raise TrebuchetError(
            f"there is no bitstream for {board!r} yet; build it with: trebuchet build {board}"
        )
    command = [require_tool("openFPGALoader"), *found.loader]
    command += ["--write-flash"] if flash else []
    if subprocess.run([*command, bitstream], check=False).returncode:
        raise TrebuchetError(
            "openFPGALoader could not load the board; is it connected, powered, and may this user "
            "open its USB device?"
        )
