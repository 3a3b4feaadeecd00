"""`trebuchet sessions`: the TCP sessions of a running board, as its firmware tells them.

The figures come from the TCP engine's records, one after the other while it works, so each is of
its own moment (`cores/tcp/inspect.py`). Sequence numbers are those on the wire.
"""

import json
from typing import Annotated, Any

import typer

from ..client.management import MAX_SESSIONS
from .manage import TIMEOUT
from .options import Seconds, open_board
from .output import fitted, terminal_width

__all__ = ["fetch_sessions", "sessions"]

#: The board's names of the columns, as users of this command see them.
_TITLES = {
    "snd.una": "SND.UNA",
    "snd.nxt": "SND.NXT",
    "rcv.nxt": "RCV.NXT",
    "peer-window": "SND.WND",
    "window": "RCV.WND",
    "rto": "RTO ms",
    "rtt": "RTT ms",
}


def fetch_sessions(
    board: str, timeout: float = TIMEOUT, start: int = 0, limit: int | None = None
) -> list[dict[str, Any]]:
    """The sessions of ``board``, ``HOST`` or ``HOST:PORT``, by number; one row is our own.

    ``start``: those from this number on. ``limit``: so many at most, None: all.
    """
    with open_board(board, timeout) as opened:
        return opened.sessions(start, limit)


def _columns(found: list[dict[str, Any]]) -> list[str]:
    rows = [[_TITLES.get(column, column) for column in found[0]]]
    rows += [[str(value) for value in row.values()] for row in found]
    return fitted(rows, terminal_width())


def sessions(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects only.")] = False,
    timeout: Seconds = TIMEOUT,
    start: Annotated[
        int,
        typer.Option("--from", metavar="N", min=0, max=MAX_SESSIONS - 1, help="Begin with this."),
    ] = 0,
    limit: Annotated[
        int | None, typer.Option(metavar="M", min=1, help="Show so many at most.")
    ] = None,
) -> None:
    """Show the TCP sessions of a running board.

    State, peer, our port, bytes that the peer has not acknowledged and that our side has not read,
    SND.UNA, RCV.NXT, SND.NXT, both windows, time-out, round trip, congestion window, and transmit
    descriptors not answered. On a terminal that is too narrow the columns follow in several tables.
    """
    found = fetch_sessions(board, timeout, start, limit)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    if not found:
        typer.echo("no session")
        return
    typer.echo("\n".join(_columns(found)))
    if limit is not None and len(found) == limit and found[-1]["session"] + 1 < MAX_SESSIONS:
        typer.echo(f"go on with: trebuchet sessions {board} --from {found[-1]['session'] + 1}")
