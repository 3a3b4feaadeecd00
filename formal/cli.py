"""`trebuchet prove`."""

import json
import warnings
from typing import Annotated

import typer
from amaranth.hdl import UnusedElaboratable
from rich.console import Console
from rich.table import Table

from ..models.errors import TrebuchetError
from . import page, registry, runner
from .engines import SOLVERS
from .trace import explain

__all__ = ["prove"]


def prove(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Proofs, by name or its beginning; default: quick ones and those whose core "
            "has changed since it was proved."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All proofs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects only.")] = False,
    depth: Annotated[int | None, typer.Option(min=1, help="Another depth for every task.")] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Solver, of {', '.join(SOLVERS)}; several race. Default: the first, and the "
            "others join it on a long task if a job is idle."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Tasks at the same time.")] = 2,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="The mutants instead: each must fail.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use cached results.")] = False,
) -> None:
    """Prove the properties of the cores with SymbiYosys.

    Exit code 1 if a property fails, is not decided, cannot be covered, or if a mutant passes; what
    failed is shown cycle by cycle. With --all, the results go into the ledger formal/ledger.json
    and onto the page docs/proofs.md.
    """
    # Harnesses take cores apart, and leave parts of them out.
    warnings.simplefilter("ignore", UnusedElaboratable)
    for name in set(engine or []) - set(SOLVERS):
        raise TrebuchetError(f"there is no engine {name!r}; there are: {', '.join(SOLVERS)}")
    console = Console(stderr=True)
    with console.status("looking for what has changed") as status:
        proofs = runner.select(registry.PROOFS, names or [], everything)
        tasks = [t for p in proofs for t in runner.tasks_of(p, mutants=mutants, depth=depth)]
        left = {task.name for task in tasks}

        def progress(result):
            left.discard(result.task.name)
            status.update(f"{len(left)} of {len(tasks)} left: {', '.join(sorted(left))[:60]}")

        results = runner.run_tasks(
            tasks, jobs=jobs, cache=not fresh, solvers=engine or (), progress=progress
        )
    if as_json:
        typer.echo(json.dumps([result.row() for result in results], indent=2))
    else:
        Console().print(_table(results))
    bad = [result for result in results if not result.good]
    if everything and not names and depth is None:
        runner.record(results, registry.tasks())
        page.write(registry.PROOFS)
    if bad:
        _show(bad, console)
        lines = (f"{r.task.name} is {r.status}, must be {r.task.expected}" for r in bad)
        raise TrebuchetError("; ".join(lines))


def _table(results):
    table = Table("proof", "method", "depth", "status", "s", "solver", box=None)
    # In a narrow place, such as a file, names are folded and nothing is cut.
    for column in table.columns:
        column.overflow, column.no_wrap = "fold", column.header != "proof"
    for r in results:
        colour = "green" if r.good else "red"
        status = f"[{colour}]{r.status}[/]{' (cached)' if r.cached else ''}"
        row = (r.task.name, r.task.method, str(r.task.depth), status, str(r.seconds), r.solver)
        table.add_row(*row)
    return table


def _show(bad, console):
    """Why each failed; the cycles of the first few, a file's name for the rest."""
    for k, result in enumerate(bad):
        text = explain(result.folder)
        console.rule(result.task.name)
        typer.echo(text if k < 3 else f"see {result.folder / 'trace.txt'}", err=True)
