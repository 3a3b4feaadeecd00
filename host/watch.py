"""`trebuchet status --watch`: a board's counters again and again, and their growth a second."""

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from ..client.errors import ConnectionLost
from ..models.progress import Deadline, current_simulation

__all__ = ["History", "rates", "sleep", "watch"]

#: Bits of counters, the narrow ones first.
_WIDTHS = (16, 32, 64)
#: Rates of the past that are shown, and bars for them, by height.
_PAST = 16
_BARS = " ▁▂▃▄▅▆▇█"


def sleep(seconds: float) -> None:
    """Let time pass: of a simulation that started this process, simulated time."""
    end = Deadline(seconds, current_simulation())
    while left := end.left():
        time.sleep(min(left, 0.1))


def _numbers(state: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int]]:
    for key, value in state.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{key}.")
        elif isinstance(value, int) and not isinstance(value, bool):
            yield prefix + key, value


def _growth(before: int, now: int) -> int:
    """By how much a number has grown; one that has fallen by more than half its range wrapped."""
    for bits in _WIDTHS:
        if before < 1 << bits:
            if before - now > 1 << (bits - 1):
                return now - before + (1 << bits)
            break
    return now - before


def rates(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, float]:
    """Growth a second of each counter below ``engines``, by the board's own time.

    Empty if the board was started in between, or has no time.
    """
    start, end = before.get("uptime_ms"), now.get("uptime_ms")
    if not (isinstance(start, int) and isinstance(end, int) and start < end):
        return {}
    engines, earlier = now.get("engines"), before.get("engines")
    if not (isinstance(engines, dict) and isinstance(earlier, dict)):
        return {}
    then = dict(_numbers(earlier, "engines."))
    seconds = (end - start) / 1000
    return {
        name: _growth(then[name], value) / seconds
        for name, value in _numbers(engines, "engines.")
        if name in then
    }


class History:
    """The last rates of each counter, the oldest first, drawn as bars."""

    def __init__(self) -> None:
        self._past: deque[Mapping[str, float]] = deque(maxlen=_PAST)

    def add(self, grown: Mapping[str, float]) -> None:
        """Note what :func:`rates` found at a time; nothing of a time without an answer."""
        self._past.append(grown)

    def bars(self, key: str) -> str:
        """Return a bar a time; the highest is the largest rate, and any growth has one."""
        values = [max(grown.get(key, 0.0), 0.0) for grown in self._past]
        most, steps = max(values, default=0.0), len(_BARS) - 1
        if not most:
            return ""
        return "".join(_BARS[ceil(steps * value / most)] for value in values)


def _table(rows: list[tuple[Text, Text, str]], grown: Mapping[str, float], past: History) -> Table:
    table = Table("field", "value", "a second", Column("history", no_wrap=True), box=None)
    for name, value, key in rows:
        rate = grown.get(key, 0.0)
        table.add_row(name, value, Text(f"{rate:,.1f}" if rate else ""), Text(past.bars(key)))
    return table


def watch(
    ask: Callable[[], dict[str, Any]],
    shown: Callable[[dict[str, Any]], dict[str, Any]],
    rows: Callable[[dict[str, Any]], list[tuple[Text, Text, str]]],
    seconds: float,
    count: int | None,
    as_json: bool,
) -> None:
    """Show a status every ``seconds`` until Ctrl-C, or ``count`` times.

    A board that does not answer is asked again; why is said on stderr. ``shown``: the part of a
    status to show; ``rows``: that as name, value and key of :func:`rates`. As JSON, a line each:
    the part with an object ``rates``.
    """
    console, past = Console(), History()
    before: dict[str, Any] = {}
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        try:
            for number in range(sys.maxsize if count is None else count):
                if number:
                    sleep(seconds)
                try:
                    state = ask()
                except ConnectionLost as error:
                    typer.echo(f"trebuchet: {error}", err=True)
                    continue
                grown, part = rates(before, state), shown(state)
                if before:
                    past.add(grown)
                if as_json:
                    typer.echo(json.dumps(part | {"rates": grown}))
                elif console.is_terminal:
                    live.update(_table(rows(part), grown, past), refresh=True)
                else:
                    console.print(_table(rows(part), grown, past))
                before = state
        except KeyboardInterrupt:
            return
