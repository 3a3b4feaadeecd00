"""``trebuchet scale``: LTL round trips in a data centre of a quarter of a million machines."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..models.errors import TrebuchetError
from ..models.scale.parameters import Parameters, calibrate
from .pictures import check_picture

__all__ = ["parse_parameters", "scale"]


def parse_parameters(assignments: list[str]) -> Parameters:
    """The parameters with some of them set, each as ``NAME=VALUE`` or ``NAME=LOW:HIGH``."""
    known = {field.name: field for field in dataclasses.fields(Parameters)}
    values: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise TrebuchetError(
                f"a parameter must be NAME=VALUE with NAME one of {', '.join(known)}, not {text!r}"
            )
        default = getattr(Parameters(), name)
        try:
            if isinstance(default, tuple):
                low, _, high = value.partition(":")
                values[name] = (float(low), float(high or low))
            else:
                values[name] = type(default)(value)
        except ValueError:
            form = "LOW:HIGH" if isinstance(default, tuple) else type(default).__name__
            raise TrebuchetError(f"parameter {name} must be {form}, not {value!r}") from None
    try:
        return Parameters(**values)
    except ValueError as error:
        raise TrebuchetError(str(error)) from None


def _print(result: dict[str, Any]) -> None:
    console = Console()
    table = Table("tier", "machines", "average", "min", "median", "99 %", "99.9 %", "max", box=None)
    table.add_column("paper: average")
    table.add_column("99.9 %")
    for tier, t in result["tiers"].items():
        names = ("average", "min", "median", "p99", "p99_9", "max")
        cells = [f"{t[name]:.2f}" for name in names]
        paper = [f"{t['paper'][name]:.2f}" for name in ("average", "p99_9")]
        table.add_row(tier, f"{t['machines']:,}", *cells, *paper)
    console.print("LTL round trips in µs, an idle connection among other traffic")
    console.print(table)
    for name, row in result["calibration"].items():
        console.print(f"{name} = {row['value']:g} ({row['origin']})", highlight=False)
    console.print(f"measured: {result['measured']}\nmodelled: {result['modelled']}")


def scale(
    probes: Annotated[int, typer.Option(min=2, help="Round trips of each pair.")] = 500,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of machines in each tier.")] = 12,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 1,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another value of a parameter."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it (.png, .svg, .pdf).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Model LTL's round trips through three tiers of switches; compare with the paper's."""
    p, shell = parse_parameters(assignments or []), calibrate()
    if plot is not None:
        check_picture(plot)
    from ..models.scale.network import round_trips
    from ..models.scale.summary import summary

    with Console(stderr=True).status("Messages are under way …"):
        trips = round_trips(p, shell, probes=probes, pairs=pairs, seed=seed)
    result = summary(p, shell, trips)
    if plot is not None:
        from .scale_plot import draw

        draw(result, trips, plot)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        _print(result)
