"""Kinds of options that several commands have."""

import math
from typing import Annotated, Any

import typer

from ..client import Board
from ..client.owner import MANAGEMENT_PORT, split_address

__all__ = ["MAX_SECONDS", "AsJson", "RoleName", "Seconds", "a_number", "open_board", "seconds"]

#: A day: nobody waits longer, and a socket's time-out overflows somewhere above.
MAX_SECONDS = 86400


def a_number(value: float | None) -> float | None:
    """Callback of an option with bounds: `nan` passes them, since it compares with nothing."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value


def seconds(show_default: bool | str = True) -> Any:
    """The option of how long to wait for a board; ``show_default`` is what help says of it."""
    return typer.Option(
        min=0.1,
        max=MAX_SECONDS,
        callback=a_number,
        help="Seconds to wait.",
        show_default=show_default,
    )


#: One of several roles of a board.
RoleName = Annotated[
    str | None,
    typer.Option("--role", help="Name of the role on the board; default: that of the port."),
]

#: For programs: what the command says as JSON.
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]

#: How long to wait for a board.
Seconds = Annotated[float, seconds()]


def open_board(address: str, timeout: float) -> Board:
    """The board of a command that talks to its processor: ``HOST`` or ``HOST:PORT`` of that."""
    host, port = split_address(address, MANAGEMENT_PORT)
    return Board(host, management=port, timeout=timeout)
