"""`trebuchet board`: which boards there are or could be, and what is wrong with a board file."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from ..boards import NAMES, load_board
from ..models.errors import TrebuchetError
from ..models.ledger import ROOT, Ledger
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
from .plans import overrides_of, plan_of, tcp_of

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help=__doc__)


def _rows():
    """What is known of every board: its file's values, and what its last build measured."""
    measured = Ledger(ROOT / "bench" / "ledger").rows
    for name in NAMES:
        board = load_board(name)
        row = {"name": name, "title": board.title, "device": board.device}
        row |= {"clock_mhz": board.sys_clk_hz / 1e6, "tcp": board.tcp}
        row |= {"sessions": board.sessions, "roles": [role.name for role in board.plan.roles]}
        for key, figure in (("lut_share", "lut_share"), ("fmax_mhz", "sys_mhz")):
            row[key] = measured.get(f"board.{name}.{figure}", {}).get("median")
        yield row


@app.command("list")
def list_boards(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Show every board: its FPGA, and how it fits at which clock."""
    rows = list(_rows())
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    board = Column("board", no_wrap=True)  # a name is typed whole: other columns give way
    fpga = Column("FPGA", no_wrap=True)  # what one looks for
    table = Table(board, fpga, "MHz (reached)", "LUTs", "sessions", "roles", box=None)
    for row in rows:
        built = row["lut_share"] is not None
        table.add_row(
            row["name"],
            row["device"],
            f"{row['clock_mhz']:g}" + (f" ({row['fmax_mhz']:.0f})" if built else ""),
            f"{row['lut_share']:.0%}" if built else "-",
            f"{row['sessions']}, {row['tcp']}",
            ", ".join(row["roles"]) or "none",
        )
    Console().print(table)


@app.command()
def check(
    board: Annotated[str, typer.Argument(metavar="FILE", help="A board file, or a board's name.")],
    fit: Annotated[
        bool, typer.Option("--fit", help="Synthesise as well, to say what it takes: some minutes.")
    ] = False,
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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON on stdout when all is right.")
    ] = False,
) -> None:
    """Say what is wrong with a board file, or missing in it, before anything is built."""
    from .check import check as steps

    chosen = plan_of(
        role or (), service or (), plan, roles or (), engine or (), board, probe or (), probe_depth
    )
    overrides = overrides_of(clock, ip, set_)
    found = steps(board, fit=fit, plan=chosen, tcp=tcp_of(tcp), overrides=overrides)
    if as_json:
        typer.echo(json.dumps(dict(found), indent=2))
        return
    for what, finding in found:
        typer.echo(f"{what}: {finding}")
    typer.echo(f"build it with: trebuchet build {board}")


@app.command()
def candidates(
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that lack something, and what.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Show which platforms of litex-boards could be ported to: those with an ECP5."""
    from .candidates import candidates as found

    rows = [entry for entry in found() if everything or not entry.lacks]
    if as_json:
        typer.echo(json.dumps([asdict(row) | {"lacks": row.lacks} for row in rows], indent=2))
        return
    columns = ("FPGA", "memory", "Ethernet", "lacks" if everything else "ported")
    whole = [Column(name, no_wrap=True) for name in ("platform", *columns[:3])]
    table = Table(*whole, columns[3], box=None)  # an FPGA's name is copied: it is never cut
    for row in rows:
        memory = f"{row.memory_kind} x{row.memory_bits}" if row.memory else "-"
        ported = "yes" if row.boards else "-"
        last = ", ".join(row.lacks) or "-" if everything else ported
        table.add_row(row.platform, "\n".join(row.devices), memory, row.ethernet or "-", last)
    Console().print(table)
    typer.echo("begin with: trebuchet board new NAME --from PLATFORM")


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the board; NAME.py is written.")],
    platform: Annotated[
        str,
        typer.Option("--from", metavar="PLATFORM", help="One of `trebuchet board candidates`."),
    ],
    device: Annotated[
        str | None,
        typer.Option(help="The platform's argument of that name, such as 45F, if it takes one."),
    ] = None,
) -> None:
    """Write a board file to begin with, in the current folder."""
    from .candidates import board_file, candidate

    if not re.fullmatch(r"[a-z][a-z0-9_]{0,23}", name) or name in NAMES:
        raise TrebuchetError(
            f"a board's name must be up to 24 lower-case letters, digits and _, and no other "
            f"board's; not {name!r}"
        )
    path = Path(f"{name}.py")
    text = board_file(name, platform, device)
    try:
        with path.open("x") as file:
            file.write(text)
    except FileExistsError:
        raise TrebuchetError(f"{path} exists already; choose another name") from None
    for board in candidate(platform).boards:
        typer.echo(f"board {board} has that platform, too: compare with boards/{board}.py")
    typer.echo(f"{path}: now check it with: trebuchet board check ./{path}")
