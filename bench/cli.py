"""`trebuchet bench`: the figures of a group, or of all, beside their budgets."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .dated import known
from .registry import Group, load_budgets
from .resources import PAGE, number, page
from .runner import figures, load_ledger, lost, missed, select

__all__ = ["bench"]

#: Characters of a date, and of the space on both sides of it.
_DATE_WIDTH = 12


def _table(results: dict[str, dict[str, Any]], console: Console) -> Table:
    """Return the table of figures; a narrow console gets it without dates, and names are folded."""
    budgets = load_budgets()
    rows = [
        (
            name,
            "-" if result["value"] is None else number(result["value"]),
            f"{budgets[name].bound} {number(result['budget'])}",
            result["unit"],
            _verdict(result),
            _measured(result),
        )
        for name, result in results.items()
    ]
    headings = ("figure", "value", "budget", "unit", "", "measured")
    # The last column gives way first: a column of figures that is cut says something else.
    fixed = Table(*headings[:-1], box=None)
    for row in rows:
        fixed.add_row(*row[:-1])
    room = console.width - console.measure(fixed).maximum
    table = Table(box=None)
    for heading in headings if room >= _DATE_WIDTH else headings[:-1]:
        table.add_column(heading, no_wrap=heading in headings[1:-1], overflow="fold")
    for row in rows:
        table.add_row(*row[: len(table.columns)])
    return table


def _verdict(result: dict[str, Any]) -> str:
    if not result["kept"]:
        return "[red]missed[/]"
    if result.get("reached", True):
        return "[green]kept[/]"
    return "[yellow]kept*[/]"


def _requirements(results: dict[str, dict[str, Any]]) -> list[str]:
    """Return a line for each requirement beside a budget that is not reached."""
    budgets = load_budgets()
    return [
        f"* {name}: {budgets[name].bound} {number(row['required'])} is required; {row['missed']}"
        for name, row in results.items()
        if not row.get("reached", True)
    ]


def _measured(result: dict[str, Any]) -> str:
    """Date of a row; of a dated one seeds and age as well."""
    if result["kind"] == "gating":
        return result.get("date", "")
    if result["value"] is None:
        return "never"
    age = "" if result["age"] is None else f", {result['age']} commits ago"
    seeds = "1 seed" if len(result["seeds"]) == 1 else f"{len(result['seeds'])} seeds"
    return f"{result['date']}{age}, {seeds}"


def bench(
    group: Annotated[
        str | None, typer.Argument(help="ecg, roles, toe, board, area, fmax, …; all if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again.")] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Put good figures into the ledger and onto the page.")
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="As --record, and figures that are too bad as well.")
    ] = False,
) -> None:
    """Compare figures with the budgets in bench/budgets.json; measure gating ones that are stale.

    What is measured is kept on this machine, and with --record goes into bench/ledger and onto the
    page docs/resources.md. Dated figures (clocks, boards, long runs) are shown with date and age;
    `trebuchet nightly` measures them.
    Exit code 1 if a budget is missed, or if an area has grown by more than 3 % since its best; the
    ledger then keeps the old rows.
    """
    console = Console(stderr=True)

    def progress(measured: Group) -> None:
        console.print(f"measuring {measured.name}: {measured.description}")

    groups, ledger = select(group), load_ledger()
    gating = [g for g in groups if not g.dated]
    record = record or accept
    results = figures(gating, fresh, ledger, progress=progress, record=record, accept=accept)
    results |= known([g for g in groups if g.dated], ledger)
    if record and PAGE.read_text() != (text := page()):
        PAGE.write_text(text)
    if as_json:
        typer.echo(json.dumps(results, indent=2))
    else:
        out = Console()
        out.print(_table(results, out))
        for line in _requirements(results):
            out.print(line, highlight=False, soft_wrap=True)
    faults = [] if accept else _faults(results)
    for fault in faults:
        console.print(fault, highlight=False, soft_wrap=True)
    if faults:
        raise typer.Exit(1)


def _faults(results: dict[str, dict[str, Any]]) -> list[str]:
    budgets, advice = load_budgets(), "correct it, or `trebuchet bench … --accept`"
    found = []
    for name, loss in lost(results).items():
        row = results[name]
        found.append(
            f"{name} was {row['was']:,} and is {row['value']:,} {row['unit']}: {loss:.1%} worse; "
            f"not recorded: {advice}"
        )
    for name in missed(results):
        row = results[name]
        if row["value"] is None:
            found.append(f"{name} was never measured: run `make nightly`")
            continue
        ending = f"not recorded: {advice}" if row["kind"] == "gating" else "see CONTRIBUTING.md"
        found.append(
            f"{name} must be {budgets[name].bound} {row['budget']:,} {row['unit']}, "
            f"not {row['value']:,}; {ending}"
        )
    return found
