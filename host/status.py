"""`trebuchet status`: ask a board for its state over HTTP (`GET /status`, served by firmware)."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .options import Seconds, open_board

__all__ = ["fetch_status", "status"]

#: Seconds; the slowest board is a simulated one on a busy machine.
TIMEOUT = 15.0


def fetch_status(board: str, timeout: float = TIMEOUT) -> dict[str, Any]:
    """The board's state as it reports it. ``board`` is ``host`` or ``host:port``.

    Proxies of the environment are not asked: they have no way to a board, a direct neighbour.
    """
    with open_board(board, timeout) as opened:
        return opened.status()


def flatten(state: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Rows ``("tcp.segments", "12")`` of a nested object, in its order."""
    rows: list[tuple[str, str]] = []
    for key, value in state.items():
        if isinstance(value, dict):
            rows += flatten(value, f"{prefix}{key}.")
        else:
            rows.append((prefix + key, value if isinstance(value, str) else json.dumps(value)))
    return rows


def _plain(text: str) -> Text:
    """What a board wrote, which a terminal must not take for markup or for control codes."""
    return Text("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def status(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    timeout: Seconds = TIMEOUT,
) -> None:
    """Show version, uptime, sessions and every counter of a running board."""
    state = fetch_status(board, timeout)
    if as_json:
        typer.echo(json.dumps(state, indent=2))
        return
    table = Table("field", "value", box=None)
    for name, value in flatten(state):
        table.add_row(_plain(name), _plain(value), style="dim" if value == "0" else None)
    Console().print(table)
