"""`trebuchet nightly`: measure everything dated, prove what is stale, run the long tests.

The work is a list of jobs, the oldest result first and what was never done before that:

* ``GROUP:SEED``: a seed of a dated group (:mod:`.dated`) whose row is not of today's design;
* ``prove:PROOF``, ``mutants:PROOF``: a proof, or its mutants, with a result that is neither in the
  ledger nor kept on this machine for today's netlist;
* ``tests``: the tests marked ``nightly`` whose inputs have changed (``tests/reuse.py``), the last.

As many jobs run at once as there are cores, each a process of its own with a log of its own below
``build/nightly``. What a job gave is kept as soon as it ends, so a run that was stopped goes on
where it was; rows and pages are written when all that belongs to them is there.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..formal.kit import page as proofs_page
from ..formal.kit import registry as proofs
from ..formal.kit.proof import Proof
from ..formal.kit.runner import LEDGER as PROOFS
from ..formal.kit.runner import check_current, expected_seconds, record, stale, tasks_of
from ..models.ending import catch_termination, stop_group
from ..models.errors import TrebuchetError
from ..models.ledger import ROOT, Ledger
from .dated import due_seeds, measure_seed, record_rows
from .registry import GROUPS
from .resources import PAGE, page
from .runner import load_ledger

__all__ = ["Work", "due", "nightly", "perform"]

LOGS = ROOT / "build" / "nightly"
#: Seconds of a job of which nothing is known, by what its name begins with.
GUESSES = {"board_": 900.0, "tests": 1800.0, "": 300.0}
#: Date of what was never done: before all others.
NEVER = ""


@dataclass(frozen=True)
class Work:
    """A job of the list."""

    name: str
    #: ISO date of the result that it renews.
    last: str
    #: Expected seconds of a core.
    seconds: float


def due(only: Sequence[str] = ()) -> list[Work]:
    """Return what is to be done, the oldest first; ``only``: jobs whose names begin so."""
    known = [*(g.name for g in GROUPS.values() if g.dated), *_proof_names(), "tests"]
    for start in only:
        if not start or not any(name.startswith(start) for name in known):
            raise TrebuchetError(
                f"there is no nightly work whose name begins with {start!r}; there are dated "
                "groups (trebuchet bench), prove:NAME, mutants:NAME and tests"
            )
    chosen = [name for name in known if not only or any(name.startswith(o) for o in only)]
    found = [*_figures(chosen), *_proofs(chosen)]
    found.sort(key=lambda work: work.last)
    return found + [Work("tests", NEVER, _guess("tests"))] * ("tests" in chosen)


def _proof_names() -> list[str]:
    return [f"{kind}:{proof.name}" for kind in ("prove", "mutants") for proof in proofs.PROOFS]


def _guess(name: str) -> float:
    return next(seconds for start, seconds in GUESSES.items() if name.startswith(start))


def _figures(chosen: Sequence[str]) -> Iterator[Work]:
    ledger = load_ledger()
    for name in set(chosen) & set(GROUPS):
        group = GROUPS[name]
        row = ledger.rows.get(group.figures[0], {})
        for seed in due_seeds(group, ledger):
            seconds = row.get("seconds") or _guess(name)
            yield Work(f"{name}:{seed}", row.get("date", NEVER), seconds)


def _proofs(chosen: Sequence[str]) -> Iterator[Work]:
    ledger = Ledger(PROOFS)
    for name in set(chosen) & set(_proof_names()):
        mutants, proof = _proof(name)
        if not stale(proof, ledger, mutants):
            continue
        tasks = tasks_of(proof, mutants=mutants)
        dates = [ledger.rows.get(task.name, {}).get("date", NEVER) for task in tasks]
        seconds = sum(expected_seconds(task, ledger) or _guess("") for task in tasks)
        yield Work(name, min(dates), seconds)


def _proof(name: str) -> tuple[bool, Proof]:
    kind, _, which = name.partition(":")
    return kind == "mutants", next(proof for proof in proofs.PROOFS if proof.name == which)


def perform(name: str) -> None:
    """Do one job, in this process; raise :class:`TrebuchetError` if its result is not good."""
    group, _, seed = name.partition(":")
    if name == "tests":
        _run_tests()
    elif group in GROUPS:
        measure_seed(GROUPS[group], int(seed))
        record_rows(GROUPS[group], load_ledger())
    else:
        mutants, proof = _proof(name)
        results = check_current(proof, mutants=mutants)
        record(results, proofs.tasks())
        if bad := [f"{r.task.name} is {r.status}" for r in results if not r.good]:
            raise TrebuchetError("; ".join(bad))


def _run_tests() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--reuse", "-m", "nightly"]
    # Twice as many workers as cores: simulated boards often wait for time to pass.
    command += ["-n", str(2 * _cores()), "--dist", "loadfile", "--no-loadscope-reorder", "tests"]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code not in (0, 5):  # 5: no test has the mark
        raise TrebuchetError(f"pytest ended with code {code}")


def _cores() -> int:
    return len(os.sched_getaffinity(0))


class _Pool:
    """Runs jobs as processes, and ends them when this one is ended."""

    def __init__(self) -> None:
        self.running: set[subprocess.Popen] = set()
        self.stopped = False

    def run(self, work: Work) -> tuple[Work, int, float]:
        """Do a job; return its exit code and the seconds it took."""
        if self.stopped:
            return work, 130, 0.0
        began = time.monotonic()
        command = [sys.executable, "-m", "trebuchet.host.cli", "nightly", "--job", work.name]
        with log_of(work.name).open("w") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self.running.add(process)
            code = process.wait()
            self.running.discard(process)
        return work, code, time.monotonic() - began

    def stop(self) -> None:
        """End all that runs, and start nothing more."""
        self.stopped = True
        for process in tuple(self.running):
            stop_group(process)


def log_of(name: str) -> Path:
    """Return where the output of a job goes."""
    LOGS.mkdir(parents=True, exist_ok=True)
    return LOGS / f"{name.replace(':', '-')}.log"


def _hours(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def nightly(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Only work whose name begins so: board_versa_ecp5, prove:tcp, tests."),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Show what is due, and do nothing.")] = False,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Jobs at a time; default: all cores.")
    ] = None,
    job: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Measure dated figures, prove what is stale, run the long tests; the oldest result first.

    An estimate is printed first. What is done is kept: stopped, and started again, it goes on.
    Exit code 1 if a measurement fails, a proof does not hold, or a test fails.
    """
    if job is not None:
        with catch_termination():
            perform(job)
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    cores = jobs or _cores()
    work = due(names or ())
    left = sum(each.seconds for each in work)
    console.print(f"{len(work)} jobs, about {_hours(left / cores)} with {cores} at a time")
    if show:
        for each in work:
            typer.echo(f"{each.name}  {each.last or 'never'}  {_hours(each.seconds)}")
        return
    failed = _run_all(work, cores, console)
    _write_pages()
    if failed:
        raise TrebuchetError(
            f"{len(failed)} of {len(work)} jobs failed: {', '.join(failed)}; see {LOGS}"
        )


def _run_all(work: Sequence[Work], cores: int, console: Console) -> list[str]:
    """Do all jobs; return the names of those that failed."""
    failed: list[str] = []
    left = sum(each.seconds for each in work)
    parallel = [each for each in work if each.name != "tests"]
    alone = [each for each in work if each.name == "tests"]  # pytest takes all cores itself
    pool, done = _Pool(), 0
    with catch_termination(), ThreadPoolExecutor(cores) as threads:
        try:
            for batch in (parallel, alone):
                for future in as_completed([threads.submit(pool.run, each) for each in batch]):
                    each, code, seconds = future.result()
                    done, left = done + 1, left - each.seconds
                    if code:
                        failed.append(each.name)
                    console.print(
                        f"[{done}/{len(work)}] {each.name}: {'FAILED' if code else 'done'} in "
                        f"{_hours(seconds)}; about {_hours(left / cores)} left",
                        markup=False,
                    )
        finally:
            pool.stop()
    return failed


def _write_pages() -> None:
    if PAGE.read_text() != (text := page()):
        PAGE.write_text(text)
    proofs_page.write(proofs.PROOFS)
