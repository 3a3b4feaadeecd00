"""Options of commands that take a plan, or override fields of a board file."""

from pathlib import Path
from typing import Annotated

import typer

from ..boards.presets import TCP_PRESETS

__all__ = [
    "ClockOption",
    "EngineOption",
    "IpOption",
    "PlanOption",
    "ProbeDepthOption",
    "ProbeOption",
    "RoleOption",
    "RolesOption",
    "ServiceOption",
    "SetOption",
    "TcpOption",
]

_PANEL = "Roles and services"
_BOARD = "Instead of the board file's values"

RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND[:KEY=VALUE,…]",
        rich_help_panel=_PANEL,
        help="A role, such as matmul, ecg:instances=2,preset=second, or the folder of your own; "
        "again for further ones. none: no role.",
    ),
]
ServiceOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[+]PORT=FRAMING[:…]",
        rich_help_panel=_PANEL,
        help="A TCP port: echo, discard, http, page, smp with a role, or web, such as "
        "8000=web:memory=4194304. Left out: the usual ones; +PORT=…: beside those.",
    ),
]
EngineOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PLACE=KIND[:KEY=VALUE,…]",
        rich_help_panel=_PANEL,
        help="A stream engine in the bridge, inbound or outbound, such as outbound=crc32c; again "
        "for the other direction. none: no engine.",
    ),
]
TcpOption = Annotated[
    str | None,
    typer.Option(
        "--tcp",
        metavar="PRESET[:FIELD=VALUE,…]",
        rich_help_panel=_PANEL,
        help=f"Size of the TCP engine: {', '.join(TCP_PRESETS)}; with other values for fields of "
        "the board, such as medium:sessions=2048,cache=64. Left out: the board's own.",
    ),
]
PlanOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", rich_help_panel=_PANEL, help="A TOML file that says all of these."
    ),
]
RolesOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FOLDER",
        rich_help_panel=_PANEL,
        help="Where roles of your own are; again for more.",
    ),
]
ClockOption = Annotated[
    str | None,
    typer.Option(
        "--clock",
        metavar="FREQUENCY",
        rich_help_panel=_BOARD,
        help="Clock of CPU, shell and memory controller, such as 50MHz.",
    ),
]
IpOption = Annotated[
    str | None,
    typer.Option(
        "--ip", metavar="ADDRESS", rich_help_panel=_BOARD, help="The board's IPv4 address."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        rich_help_panel=_BOARD,
        help="Another field, such as uart_baud=9600 or dhcp=true; again for more. "
        "docs/porting.md says which.",
    ),
]
ProbeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SIGNAL",
        rich_help_panel=_PANEL,
        help="A signal, or a group of them, that `trebuchet probe` can look at, such as "
        "tcp.tx_segment.valid; again for further ones (docs/probe.md).",
    ),
]
ProbeDepthOption = Annotated[
    int | None,
    typer.Option(
        metavar="RECORDS",
        rich_help_panel=_PANEL,
        help="Records that the trace core keeps, a power of two; 1024 if left out.",
    ),
]
