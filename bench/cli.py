"""`trebuchet bench`: the figures of a group, or of all, beside their budgets."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .registry import Group, load_budgets
from .resources import PAGE, page
from .runner import figures, lost, missed, select

__all__ = ["bench"]


def _table(results: dict[str, dict[str, Any]]) -> Table:
    budgets = load_budgets()
    table = Table("figure", "value", "budget", "unit", "", box=None)
    for name, result in results.items():
        table.add_row(
            name,
            f"{result['value']:,}",
            f"{budgets[name].bound} {result['budget']:,}",
            result["unit"],
            "[green]kept[/]" if result["kept"] else "[red]missed[/]",
        )
    return table


def bench(
    group: Annotated[
        str | None, typer.Argument(help="ecg, roles, toe, board, area, fmax, …; all if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Put figures that are too bad into the ledger, too.")
    ] = False,
) -> None:
    """Measure, and compare with the budgets in bench/budgets.json.

    Figures whose inputs have not changed come from bench/ledger.json, the others are measured now
    and put there, and onto the page docs/resources.md. Exit code 1 if a budget is missed, or if an
    area has grown by more than 3 % or a clock has fallen by more than 8 % since its best; the
    ledger then keeps the old rows.
    """
    console = Console(stderr=True)

    def progress(measured: Group) -> None:
        console.print(f"measuring {measured.name}: {measured.description}")

    results = figures(select(group), fresh, progress=progress, accept=accept)
    if PAGE.read_text() != (text := page()):
        PAGE.write_text(text)
    if as_json:
        typer.echo(json.dumps(results, indent=2))
    else:
        Console().print(_table(results))
    faults = [] if accept else _faults(results)
    for fault in faults:
        console.print(
            f"{fault}; not recorded: mend it, or `trebuchet bench … --accept`",
            highlight=False,
            soft_wrap=True,
        )
    if faults:
        raise typer.Exit(1)


def _faults(results: dict[str, dict[str, Any]]) -> list[str]:
    budgets = load_budgets()
    found = []
    for name, loss in lost(results).items():
        row = results[name]
        found.append(
            f"{name} was {row['was']:,} and is {row['value']:,} {row['unit']}: {loss:.1%} worse"
        )
    for name in missed(results):
        row = results[name]
        found.append(
            f"{name} must be {budgets[name].bound} {row['budget']:,} {row['unit']}, "
            f"not {row['value']:,}"
        )
    return found
