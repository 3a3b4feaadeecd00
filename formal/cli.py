"""`trebuchet prove`."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..models.errors import TrebuchetError
from . import registry, runner

__all__ = ["prove"]


def prove(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Proofs, by name or its beginning; default: quick ones."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All proofs and all mutants.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects only.")] = False,
    depth: Annotated[int | None, typer.Option(min=1, help="Another depth for every task.")] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Tasks at the same time.")] = 2,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Run the mutants: each must fail.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use cached results.")] = False,
) -> None:
    """Prove the properties of the cores with SymbiYosys.

    Exit code 1 if a property fails, is not decided, cannot be covered, or if a mutant passes.
    With --all, the results go into the ledger formal/ledger.json.
    """
    proofs = runner.select(registry.PROOFS, names or [], everything)
    tasks = []
    for proof in proofs:
        if everything or not mutants:
            tasks += runner.tasks_of(proof, depth=depth)
        if everything or mutants:
            tasks += runner.tasks_of(proof, mutants=True, depth=depth)
    console = Console(stderr=True)
    with console.status("") as status:
        left = {task.name for task in tasks}

        def progress(result):
            left.discard(result.task.name)
            status.update(f"{len(left)} of {len(tasks)} left: {', '.join(sorted(left))[:60]}")

        results = runner.run_tasks(tasks, jobs=jobs, cache=not fresh, progress=progress)
    if as_json:
        typer.echo(json.dumps([result.row() for result in results], indent=2))
    else:
        Console().print(_table(results))
    if everything and not names and depth is None:
        runner.record(results)
    bad = [result for result in results if not result.good]
    if bad:
        lines = (
            f"{r.task.name} is {r.status}, must be {r.task.expected}: {r.folder}/log.txt"
            for r in bad
        )
        raise TrebuchetError("; ".join(lines))


def _table(results):
    table = Table("proof", "method", "depth", "status", "s")
    table.columns[0].no_wrap = True
    for r in results:
        colour = "green" if r.good else "red"
        status = f"[{colour}]{r.status}[/]{' (cached)' if r.cached else ''}"
        table.add_row(r.task.name, r.task.method, str(r.task.depth), status, str(r.seconds))
    return table
