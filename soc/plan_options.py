"""Options of commands that take a plan."""

from pathlib import Path
from typing import Annotated

import typer

from ..boards.presets import TCP_PRESETS

__all__ = ["EngineOption", "PlanOption", "RoleOption", "RolesOption", "ServiceOption", "TcpOption"]

_PANEL = "Roles and services"

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
        metavar="PORT=FRAMING[:ROLE]",
        rich_help_panel=_PANEL,
        help="A TCP port: echo, discard, http, page, or smp with a role. Left out: the usual ones.",
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
