"""`trebuchet sessions`: the TCP sessions of a running board, as its firmware tells them.

The figures come from the TCP engine's records, one after the other while it works, so each is of
its own moment (`cores/tcp/inspect.py`). Sequence numbers are those on the wire.
"""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from .manage import TIMEOUT
from .options import Seconds, open_board

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


def fetch_sessions(board: str, timeout: float = TIMEOUT) -> list[dict[str, Any]]:
    """The sessions of ``board``, ``HOST`` or ``HOST:PORT``, by number; one row is our own."""
    with open_board(board, timeout) as opened:
        return opened.sessions()


def _columns(found: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of a table as wide as it must be: a terminal breaks lines where it likes."""
    rows = [[_TITLES.get(column, column) for column in found[0]]]
    rows += [[str(value) for value in row.values()] for row in found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


def sessions(
    board: Annotated[str, typer.Option(help="Address of the board, HOST or HOST:PORT.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects only.")] = False,
    timeout: Seconds = TIMEOUT,
) -> None:
    """Show the TCP sessions of a running board.

    State, peer, our port, bytes that the peer has not acknowledged and that our side has not read,
    SND.UNA, RCV.NXT, SND.NXT, both windows, time-out, round trip, congestion window, and transmit
    descriptors not answered.
    """
    found = fetch_sessions(board, timeout)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    if not found:
        typer.echo("no session")
        return
    typer.echo("\n".join(_columns(found)))
