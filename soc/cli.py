"""`trebuchet build` and `trebuchet load`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..boards import NAMES, load_board
from ..models.errors import TrebuchetError
from ..models.paths import BUILD
from ..models.steps import Step
from .flash_cli import check_board
from .loader import explain_failure, run_loader
from .plan_options import (
    ClockOption,
    EngineOption,
    IpOption,
    PlanOption,
    ProbeDepthOption,
    ProbeOption,
    RoleOption,
    RolesOption,
    ServiceOption,
    SetOption,
    TcpOption,
)
from .plans import overrides_of, plan_of, tcp_of, with_choices
from .reports import bitstream_of
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
    if report["seed"] is not None:
        table.add_row("seed", _seeds(report["seed"], report["seeds"]))
    return table


def _seeds(kept, reached):
    """The seed that was kept, and what the system's clock reached with the others."""
    others = (
        f"{seed} failed" if mhz is None else f"{seed} {mhz:.1f} MHz"
        for seed, mhz in reached.items()
        if seed != str(kept)
    )
    return "; ".join([str(kept), *others])


def _project_table(report):
    table = Table("resource", "used", "available", "share", box=None)
    for name, available in report["available"].items():
        used = report["used"][name]
        shown = ("-", "-") if used is None else (f"{used:,g}", f"{used / available:.1%}")
        table.add_row(name.upper(), shown[0], f"{available:,}", shown[1])
    return table


def _load_command(board, report):
    """How the result of a build is loaded; elsewhere than in the usual folder, with that."""
    folder = Path(report["bitstream"]).parent.parent
    elsewhere = folder != (BUILD / report["board"]).resolve()
    return f"trebuchet load {board}" + (f" --output {folder}" if elsewhere else "")


def _show_project(report):
    Console().print(_project_table(report))
    typer.echo(f"project: {report['project']}")
    if report["bitstream"]:
        typer.echo(f"bitstream: {report['bitstream']}")
        _show_application(report)
        typer.echo(f"load it with: {_load_command(report['board'], report)}")
    else:
        typer.echo("checked with Yosys and Verilator; where Vivado is, run there: sh build.sh")


def _show_application(report):
    if report.get("firmware"):
        typer.echo(f"golden firmware (docs/firmware-boot.md): {report['firmware']}")
    if report.get("application"):
        typer.echo(f"application's bitstream (docs/multiboot.md): {report['application']}")


def _timing(report):
    """The longest paths, by nextpnr's report."""
    if not report.is_file():
        raise TrebuchetError(f"{report} is gone; build with --fresh to see the longest paths")
    table = Table("from", "to", "ns", "in cells", "through (cells, ns)", box=None)
    for path in critical_paths(report):
        hops = " > ".join(f"{name} ({cells}, {ns:.1f})" for name, cells, ns in path.hops)
        table.add_row(path.start, path.end, f"{path.ns:.1f}", f"{path.logic_ns:.1f}", hops)
    return table


def _build_board(board, output, timing, **options):
    """The report of a build; with ``timing`` the longest paths of one that misses its clocks."""
    from .build import build_board
    from .place import ClocksMissed

    try:
        return build_board(board, output, **options)
    except ClocksMissed as missed:
        if timing:
            Console().print(_timing(missed.report))
        raise


def _check_options(name, flow, given):
    """Raise if an option would do nothing."""
    routing = [option for option in given if option in ("--seed", "--seeds", "--timing")]
    if flow == "vivado" and routing:
        raise TrebuchetError(
            f"board {name!r} is built by Vivado, which has no seeds and reports timing in files; "
            "leave out --seed, --seeds and --timing"
        )
    useless = [option for option in given if option != "--json"]
    if flow == "sim" and useless:
        raise TrebuchetError(
            f"board {name!r} is simulated, so only its Verilog is made, and anew if something "
            f"changed; leave out {', '.join(useless)}"
        )
    if "--synth-only" in given and routing:
        raise TrebuchetError(f"--synth-only stops before routing; leave out {', '.join(routing)}")
    if {"--timing", "--json"} <= set(given):
        raise TrebuchetError(
            "--timing shows a table, which is no JSON; leave out --timing or --json"
        )


def build(
    board: Annotated[str, typer.Argument(help=f"One of: {_BOARDS}; or a board file.")],
    synth_only: Annotated[
        bool, typer.Option("--synth-only", help="Stop after synthesis: sizes, no frequencies.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=1, max=1_000_000, help="Seed of place and route; the board's own if left out."
        ),
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
    role: RoleOption = None,
    service: ServiceOption = None,
    engine: EngineOption = None,
    plan: PlanOption = None,
    roles: RolesOption = None,
    tcp: TcpOption = None,
    clock: ClockOption = None,
    ip: IpOption = None,
    set_: SetOption = None,
    probe: ProbeOption = None,
    probe_depth: ProbeDepthOption = None,
) -> None:
    """Build the firmware and the bitstream of a board with open tools, or its Vivado project."""
    from .build import build_sim

    chosen = plan_of(
        role or (), service or (), plan, roles or (), engine or (), board, probe or (), probe_depth
    )
    choices = {
        "plan": chosen,
        "tcp": tcp_of(tcp),
        "overrides": overrides_of(clock, ip, set_),
    }
    found = with_choices(load_board(board), overrides=choices["overrides"])
    given = {"--seed": seed, "--seeds": seeds > 1, "--timing": timing, "--synth-only": synth_only}
    given |= {"--fresh": fresh, "--json": as_json}
    _check_options(board, found.flow, [option for option, value in given.items() if value])
    if output is not None and output.exists() and not output.is_dir():
        raise TrebuchetError(f"{output} is a file; choose another folder to build in")
    first = seed or found.seed
    tried = range(first, first + seeds)
    with Step(f"building {board} (logs are in its folder)", 600, late=True):
        if found.flow == "sim":
            files = build_sim(output, name=board, **choices)
            report = {"board": board, "top": files.top, "folder": str(files.folder)}
        else:
            report = _build_board(
                board, output, timing, synth_only=synth_only, seeds=tried, fresh=fresh, **choices
            )
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    elif "project" in report:
        _show_project(report)
    elif "lut4" in report:
        Console().print(_table(report))
        if timing and report["bitstream"]:
            bitstream = Path(report["bitstream"])
            Console().print(_timing(bitstream.with_name(f"{bitstream.stem}_pnr.json")))
        if report.get("placement_kept"):
            typer.echo("the gateware is as an earlier build placed it")
        if report["bitstream"]:
            typer.echo(f"floorplan: {report['floorplan']}")
            typer.echo(f"bitstream: {report['bitstream']}")
            _show_application(report)
            typer.echo(f"load it with: {_load_command(board, report)}")
    else:
        typer.echo(f"Verilog: {report['folder']}; run it with: trebuchet sim")


def _check_flash(name, board):
    """``load --flash`` writes at 0, which is right only where the flash has no layout."""
    if board.flow != "vivado":
        if board.flash is None and "--dfu" not in board.loader:
            return
        check_board(name, board)
    raise TrebuchetError(f"the flash of board {name!r} is written by: trebuchet flash {name}")


def _load_with_vivado(name, board, output):
    vivado = require_tool("vivado")
    folder = Path(output or BUILD / board.name)
    project = Path(bitstream_of(name, board, folder)).parent
    command = [vivado, "-mode", "batch", "-source", "program.tcl"]
    done, said = run_loader(command, project)
    if not done:
        reason = explain_failure(said, "is it connected and powered?")
        raise TrebuchetError(f"Vivado could not load the board; {reason}")


def load(
    board: Annotated[str, typer.Argument(help=f"One of: {_BOARDS}; or a board file.")],
    flash: Annotated[
        bool,
        typer.Option(
            "--flash",
            help="Write it to the flash, at 0; if that has a layout: trebuchet flash.",
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="Folder it was built in; build/BOARD by default.")
    ] = None,
) -> None:
    """Load the bitstream into a board that is connected to this machine."""
    found = load_board(board)
    if found.flow == "sim":
        raise TrebuchetError(f"board {board!r} is simulated; run it with: trebuchet sim")
    if flash:
        _check_flash(board, found)
    if found.flow == "vivado":
        _load_with_vivado(board, found, output)
        return
    if not found.loader:
        raise TrebuchetError(
            f"board {board!r} has no loader; put openFPGALoader's options for it into its file"
        )
    bitstream = bitstream_of(board, found, Path(output or BUILD / found.name))
    command = [require_tool("openFPGALoader"), *found.loader]
    command += ["--write-flash"] if flash else []
    done, said = run_loader([*command, bitstream])
    if not done:
        otherwise = "is it connected, powered, and may this user open its USB device?"
        reason = explain_failure(said, otherwise)
        raise TrebuchetError(f"openFPGALoader could not load the board; {reason}")
    if found.boot_rom and not flash:
        typer.echo(f"its firmware is that in the flash; this build's: trebuchet flash {board}")
