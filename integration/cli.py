"""`trebuchet core`: cores for other designs."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Generate cores for other designs.")

NameArgument = Annotated[str, typer.Argument(help="A core of `trebuchet core list`.")]


@app.command("list")
def list_cores(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """List the cores, and the document that explains each."""
    from .catalog import KINDS

    if as_json:
        kinds = KINDS.values()
        rows = [{"name": kind.name, "title": kind.title, "document": kind.page} for kind in kinds]
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table("core", "what it is", "document", box=None)
    for kind in KINDS.values():
        table.add_row(kind.name, kind.title, kind.page)
    Console().print(table)


@app.command()
def generate(
    name: NameArgument,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="TOML file; left out: defaults."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder; left out: one of its name."),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print a file of all defaults, and stop.")
    ] = False,
) -> None:
    """Write a core as Verilog, with register map, constraints, template and data sheet."""
    from .catalog import kind_of
    from .config import default_file, load_core

    if print_config:
        typer.echo(default_file(kind_of(name)), nl=False)
        return
    from .generator import generate as write

    file = load_core(name, config)
    for path in write(file, output or Path(file.name)):
        typer.echo(path)
