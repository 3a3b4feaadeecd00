"""`trebuchet status`: ask a board for its state over HTTP (`GET /status`, served by firmware)."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..models.errors import TrebuchetError
from .options import MAX_SECONDS, Seconds, a_number, open_board
from .watch import watch

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


def _without_zeros(state: dict[str, Any]) -> dict[str, Any]:
    """A status without the counters that are 0, and without blocks that have no other."""
    engines = state.get("engines")
    if not isinstance(engines, dict):
        return state
    left = {
        block: {name: value for name, value in counters.items() if value != 0}
        for block, counters in engines.items()
        if isinstance(counters, dict)
    }
    return state | {"engines": {block: counters for block, counters in left.items() if counters}}


def _rows(state: dict[str, Any]) -> list[tuple[Text, Text, str]]:
    return [(_plain(name), _plain(value), name) for name, value in flatten(state)]


def status(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    nonzero: Annotated[
        bool, typer.Option("--nonzero", help="Leave out counters that are 0.")
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(
            "--watch",
            "-w",
            metavar="SECONDS",
            min=0.1,
            max=MAX_SECONDS,
            callback=a_number,
            help="Ask again so often, until Ctrl-C; show what counters grow by a second, and bars "
            "for the last 16 times.",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="With --watch: ask so often, then end.")
    ] = None,
    timeout: Seconds = TIMEOUT,
) -> None:
    """Show version, uptime, sessions and every counter of a running board.

    With --watch, a board that does not answer is asked again. On a terminal the table is renewed
    in its place; with --json each answer is a line, with an object `rates`.
    """

    def shown(state: dict[str, Any]) -> dict[str, Any]:
        return _without_zeros(state) if nonzero else state

    if every is not None:
        watch(lambda: fetch_status(board, timeout), shown, _rows, every, count, as_json)
        return
    if count is not None:
        raise TrebuchetError("--count is for --watch; give that too")
    state = shown(fetch_status(board, timeout))
    if as_json:
        typer.echo(json.dumps(state, indent=2))
        return
    table = Table("field", "value", box=None)
    for name, value, _ in _rows(state):
        table.add_row(name, value, style="dim" if str(value) == "0" else None)
    Console().print(table)
