"""`trebuchet prove`."""

from typing import Annotated

import typer

from ..models.errors import TrebuchetError
from .kit import page, registry, runner
from .kit.engines import SOLVERS
from .kit.report import Report
from .kit.solve import TIME_LIMIT

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
        bool, typer.Option("--mutants", help="The mutants instead: each must be caught.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use cached results.")] = False,
    timeout: Annotated[
        int,
        typer.Option(min=1, metavar="SECONDS", help="Time for each task; then it is unknown."),
    ] = TIME_LIMIT,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first result that is not as expected.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Put good results into the ledger, as --all does.")
    ] = False,
) -> None:
    """Prove the properties of the cores with SymbiYosys.

    Each result is printed when it is there; failures come first in the table at the end, and are
    shown cycle by cycle. A mutant is caught or missed. After a failing induction step, a bounded
    check looks for a trace from reset. Exit code 1 if a property fails, is not decided, cannot be
    covered, or if a mutant is missed. With --all or --record, good results go into the ledger of
    formal/ and onto the page docs/proofs.md.
    """
    for name in set(engine or []) - set(SOLVERS):
        raise TrebuchetError(f"there is no engine {name!r}; there are: {', '.join(SOLVERS)}")
    with Report(as_json) as report:
        proofs = runner.select(registry.PROOFS, names or [], everything, mutants=mutants)
        tasks = [t for p in proofs for t in runner.tasks_of(p, mutants=mutants, depth=depth)]
        report.expect([task.name for task in tasks])
        results = runner.run_tasks(
            tasks, jobs=jobs, cache=not fresh, solvers=engine or (), limit=timeout,
            fail_fast=fail_fast, progress=report.result,
        )  # fmt: skip
    report.end(results)
    if (everything and not names or record) and depth is None and timeout >= TIME_LIMIT:
        runner.record(results, registry.tasks())
        page.write(registry.PROOFS)
    if bad := [str(result) for result in results if not result.good]:
        left = len(tasks) - len(results)
        raise TrebuchetError("; ".join(bad) + (f"; {left} tasks were not run" if left else ""))
