"""`trebuchet measure paper`: the paper's figures with our server, beside the paper's values."""

import dataclasses
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from . import options as o
from .output import cell, check_outputs, save_csv, show
from .paper import FIGURES, Figure, Name, Scope

__all__ = ["paper"]


def _show(figure: Figure) -> None:
    """Print what was measured, and the paper's value where there is one at that place."""
    names = list(dict.fromkeys(name for row in figure.rows for name in row))
    table = Table(*names, box=None, title=figure.title)
    for row in figure.rows:
        table.add_row(*(cell(row.get(name)) for name in names))
    show(table)
    for label, (_, theirs) in figure.panels.items():
        for series, points in theirs.items():
            listed = ", ".join(f"{cell(y)} at {cell(x)}" for x, y in points)
            typer.echo(f"paper, {label}, {series}: {listed}")


def paper(
    figure: Annotated[Name, typer.Argument(help="Figure 4.3 is with 4.4, table 4.3 with 4.4.")],
    seconds: o.SecondsOption = 2.0,
    quick: Annotated[bool, typer.Option("--quick", help="Only the first points.")] = False,
    as_json: o.JsonOption = False,
    csv: o.CsvOption = None,
    plot: o.PlotOption = None,
) -> None:
    """Measure a figure of the paper with our job server and model nodes on this machine."""
    check_outputs(csv, plot)
    with Console(stderr=True).status(f"{figure.value} …") as status:

        def tell(line: str) -> None:
            status.update(f"{figure.value}: {line} …")

        found = FIGURES[figure](Scope(seconds, quick, tell))
    if plot is not None:
        from .paper_plot import draw  # noqa: PLC0415 - needs an extra

        draw(found, plot)
    if csv is not None:
        save_csv(found.rows, csv)
    if as_json:
        result = {"figure": figure.value, "seconds": seconds, "quick": quick}
        typer.echo(json.dumps(result | dataclasses.asdict(found), indent=2))
    else:
        _show(found)
