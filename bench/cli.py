"""`trebuchet bench`: the figures of a group, or of all, beside their budgets."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .registry import Group, load_budgets
from .resources import PAGE, page
from .runner import figures, lost, select

__all__ = ["bench"]


def _table(results: dict[str, dict[str, Any]]) -> Table:
    budgets = load_budgets()
    table = Table("figure", "value", "budget", "unit", "", box=None)
    for name, result in results.items():
        kept = budgets[name].kept_by(result["value"])
        bound = "at most" if budgets[name].better == "lower" else "at least"
        table.add_row(
            name,
            f"{result['value']:,}",
            f"{bound} {result['budget']:,}",
            result["unit"],
            "[green]kept[/]" if kept else "[red]missed[/]",
        )
    return table


def bench(
    group: Annotated[
        str | None, typer.Argument(help="ecg, roles, toe, board, area, fmax, …; all if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Put figures that have lost into the ledger.")
    ] = False,
) -> None:
    """Measure, and compare with the budgets in bench/budgets.json.

    Figures whose inputs have not changed come from bench/ledger.json, the others are measured now
    and put there, and onto the page docs/resources.md. Exit code 1 if an area has grown by more
    than 3 % or a clock has fallen by more than 8 %; the ledger then keeps the old rows.
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
    losses = {} if accept else lost(results)
    for name, loss in losses.items():
        row = results[name]
        console.print(
            f"{name} was {row['was']:,} and is {row['value']:,} {row['unit']}: {loss:.1%} worse; "
            f"not recorded: mend it, or `trebuchet bench … --accept`",
            highlight=False,
            soft_wrap=True,
        )
    if losses:
        raise typer.Exit(1)
