"""Results of `trebuchet measure` as JSON, CSV and a table."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from ...models.errors import TrebuchetError
from ...models.files import make_folder, write_file
from ..pictures import check_picture

__all__ = [
    "BUSY",
    "STARVED",
    "cell",
    "check_outputs",
    "flatten",
    "notes",
    "save_csv",
    "show",
    "write",
]

#: Share of a processor from which on a blocking generator limits what it measures.
BUSY = 0.9
#: Share of the time without a processor from which on latencies are the machine's.
STARVED = 0.1
_WIDTH = 250
_COLUMNS = {
    "size": "bytes",
    "connections": "conns",
    "client": "client",
    "rate": "asked/s",
    "transfers_per_s": "done/s",
    "mbit_per_s": "Mb/s",
    "latency_us.p50": "p50 µs",
    "latency_us.p95": "p95 µs",
    "latency_us.p99": "p99 µs",
    "latency_us.p99_9": "p99.9 µs",
    "latency_cycles.p50": "p50 cycles",
    "wire_us": "wire µs",
    "queue_us": "queue µs",
    "role_us": "role µs",
    "role_cycles": "role cycles",
    "jain": "Jain",
    "unanswered": "unanswered",
    "generator_cpu": "own CPU",
    "generator_starved": "starved",
}


def check_outputs(table: Path | None, plot: Path | None) -> None:
    """Say before a long run what is wrong with a file to write."""
    if table is not None:
        if table.is_dir():
            raise TrebuchetError(
                f"cannot write the table {table}: it is a folder; name a file in it"
            )
        make_folder(table.parent)
    if plot is not None:
        check_picture(plot)
        import matplotlib  # noqa: F401, PLC0415 - missing: said now, with the extra to install


def flatten(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """``{"latency_us.p50": …}``; lists as their values with spaces between."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            flat[prefix + name] = " ".join(map(str, value))
        else:
            flat[prefix + name] = value
    return flat


def notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader must know of these figures."""
    found = []
    busy = [
        row
        for row in rows
        if row.get("client") != "polling" and row.get("generator_cpu", 0) >= BUSY
    ]
    if busy:
        found.append(
            f"in {len(busy)} of {len(rows)} runs the generator itself used {BUSY:.0%} of a "
            "processor or more: their rates are this client's, not the target's"
        )
    late = [row for row in rows if _late(row)]
    if late:
        found.append(
            f"in {len(late)} of {len(rows)} runs half of the transfers began later than intended "
            "by more than half of their latency: all connections were full, or the generator late"
        )
    starved = [row for row in rows if row.get("generator_starved", 0) >= STARVED]
    if starved:
        found.append(
            f"in {len(starved)} of {len(rows)} runs the generator waited for a processor for "
            f"{STARVED:.0%} of the time or more: the machine is busy, latencies are too long"
        )
    return found


def _late(row: Mapping[str, Any]) -> bool:
    lag = row.get("lag_us", {}).get("p50")
    latency = row.get("latency_us", {}).get("p50")
    return bool(lag and latency and lag > latency / 2)


def _table(flat: Sequence[Mapping[str, Any]]) -> Table:
    names = [name for name in _COLUMNS if any(name in row for row in flat)]
    table = Table(box=None, padding=(0, 1))
    for name in names:
        table.add_column(_COLUMNS[name], justify="right", no_wrap=True)
    if any(name.startswith("refused.") for row in flat for name in row):
        table.add_column("refused")
    for row in flat:
        cells = [cell(row.get(name)) for name in names]
        refused = [f"{n.removeprefix('refused.')} {v}" for n, v in row.items() if "refused." in n]
        table.add_row(*cells, *([", ".join(refused)] if refused else []))
    return table


def _csv(flat: Sequence[Mapping[str, Any]]) -> bytes:
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue().encode()


def show(table: Table) -> None:
    """Print a table, of which a file or a pipe gets the whole width."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    console.print(table)


def save_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write a line for each row; columns are all names that a row has."""
    write_file(path, _csv([flatten(row) for row in rows]))


def cell(value: Any) -> str:
    """A figure for readers: four digits, or all of a large number."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1000 else f"{value:,.0f}"


def write(result: Mapping[str, Any], as_json: bool, table: Path | None) -> None:
    """Print the result, and write its runs to the file ``table``."""
    flat = [flatten(row) for row in result["runs"]]
    if table is not None:
        save_csv(result["runs"], table)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        show(_table(flat))
    for note in result["notes"]:
        typer.echo(f"note: {note}", err=True)
