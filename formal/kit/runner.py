"""Proofs as tasks of SymbiYosys, and their results.

A proof becomes several tasks: the properties (``induction`` or ``bmc``), the cover statements that
show that they are not vacuous (``cover``), and one ``bmc`` per mutant, which must be caught. A task
is a netlist and a script, and its result is cached below ``build/prove`` by the hash of both.
:mod:`~trebuchet.formal.kit.solve` runs a task, :mod:`~trebuchet.formal.kit.memo` keeps what
elaboration tells of it.
"""

import contextlib
import functools
import hashlib
import json
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import astuple, dataclass
from difflib import get_close_matches
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import UnusedElaboratable

from ...models.collector import no_collector
from ...models.errors import TrebuchetError
from ...models.files import write_whole
from ...models.ledger import ROOT, Ledger, origin
from ...models.lock import FileLock
from . import memo
from .engines import SOLVERS, Slots, Stopped
from .proof import Mutant, Proof
from .solve import FLAVOURS, MODES, TIME_LIMIT, script, solve
from .stated import Statement, recorded
from .statements import named_statements

__all__ = [
    "LEDGER",
    "Result",
    "Task",
    "check_current",
    "expected_seconds",
    "group_of",
    "input_hash",
    "record",
    "run_tasks",
    "select",
    "stale",
    "statements_of",
    "tasks_of",
]

LEDGER = ROOT / "formal" / "ledger"
#: What makes rows anew.
REMEDY = "trebuchet prove --all"
BUILD = ROOT / "build" / "prove"

#: What a solver's verdict on a mutant is called.
MUTANT_WORDS = {"failed": "caught", "proved": "missed"}


@dataclass(frozen=True)
class Task:
    """One run of SymbiYosys."""

    name: str
    core: str
    method: str
    depth: int
    proof: Proof
    mutant: Mutant | None = None

    @property
    def expected(self) -> str:
        return "proved" if self.mutant is None else "caught"

    def word(self, verdict: str) -> str:
        """The status that a solver's verdict means for this task."""
        return verdict if self.mutant is None else MUTANT_WORDS.get(verdict, verdict)


@dataclass(frozen=True)
class Result:
    """The result of a task.

    ``status`` is ``proved``, ``failed`` or ``unknown``; of a mutant ``caught``, ``missed`` or
    ``unknown``; ``deferred`` if the task was left to `make nightly`. ``counts`` are the statements
    of each of :data:`~.solve.FLAVOURS`; ``folder`` holds the solver's log. ``searched``: see
    :class:`~.solve.Solved`.
    """

    task: Task
    status: str
    seconds: float
    solver: str
    inputs: str
    counts: dict[str, int]
    folder: Path
    cached: bool = False
    searched: int | None = None

    @property
    def good(self) -> bool:
        return self.status == self.task.expected

    def row(self) -> dict:
        task = self.task
        return {
            "name": task.name,
            "core": task.core,
            "method": task.method,
            "depth": task.depth,
            "status": self.status,
            "seconds": self.seconds,
            "solver": self.solver,
            **{f"{flavour}s": count for flavour, count in self.counts.items()},
            **({} if self.searched is None else {"searched": self.searched}),
        }

    def __str__(self) -> str:
        text = f"{self.task.name} is {self.status}, must be {self.task.expected}"
        if self.searched is not None:
            text += (
                " (the induction step fails, but there is no counterexample within "
                f"{self.searched} cycles after reset)"
            )
        elif self.status == "unknown":
            text += f" (no verdict after {self.seconds} s)"
        return text


def tasks_of(proof: Proof, *, mutants: bool = False, depth: int | None = None) -> list[Task]:
    """The tasks of a proof: properties and cover, or its mutants. ``depth`` overrides depths."""
    if mutants:
        return [
            Task(f"{proof.name}.mutant.{m.name}", proof.core, "bmc", depth or m.depth, proof, m)
            for m in proof.mutants
        ]
    return [
        Task(proof.name, proof.core, proof.method, depth or proof.depth, proof),
        Task(f"{proof.name}.cover", proof.core, "cover", depth or proof.cover_depth, proof),
    ]


def select(
    proofs: Iterable[Proof], names: Iterable[str], everything: bool, *, mutants: bool = False
) -> list[Proof]:
    """Proofs by name or prefix of a name; without names all, or the quick and the stale ones.

    Stale are those whose properties or cover, or with ``mutants`` whose mutants, have changed.
    """
    proofs, names = list(proofs), list(names)
    for name in names:
        if not name or not any(p.name.startswith(name) for p in proofs):
            near = get_close_matches(name, [p.name for p in proofs], cutoff=0.5) or ["none"]
            raise TrebuchetError(
                f"there is no proof {name!r}; near it: {', '.join(near)}; all are in docs/proofs.md"
            )
    if names:
        return [p for p in proofs if any(p.name.startswith(name) for name in names)]
    ledger = Ledger(LEDGER, REMEDY)
    return [p for p in proofs if everything or p.quick or stale(p, ledger, mutants)]


def stale(proof: Proof, ledger: Ledger, mutants: bool = False) -> bool:
    """Whether a task of the proof has changed since the ledger's row was made, or has no row."""
    tasks = tasks_of(proof, mutants=mutants)
    return any(ledger.current(task.name, input_hash(task)) is None for task in tasks)


def expected_seconds(task: Task, ledger: Ledger | None = None) -> float | None:
    """How long the task took when the ledger's row was made; ``None`` if there is no row."""
    row = (ledger or Ledger(LEDGER, REMEDY)).rows.get(task.name, {})
    return row.get("seconds")


def _rtlil(proof: Proof, mutant: Mutant | None = None, source: bool = False) -> str:
    """RTLIL of the harness; ``source`` adds the place of each statement, for explanations."""
    # Harnesses take cores apart, and leave parts of them out. That is said when a part is freed,
    # which may be at any time from here on.
    warnings.simplefilter("ignore", UnusedElaboratable)
    with no_collector(), named_statements() if source else contextlib.nullcontext():
        return rtlil.convert(
            proof.harness(mutant), name="top", platform="formal", ports=[], emit_src=source
        )


def _netlist(task: Task) -> str:
    """What a solver gets; refuses a harness with nothing to check or with a clock of its own."""
    text = _rtlil(task.proof, task.mutant, source=True)
    if not re.search(r"wire width 1 input \d+ \s*\\clk", text):
        raise TrebuchetError(f"proof {task.name!r} must leave its clock to the runner")
    needed, counts = MODES[task.method][1], _counts(text)
    for flavour in (needed, "assume"):
        if not counts[flavour]:
            raise TrebuchetError(
                f"proof {task.name!r} must have {flavour} statements, but has none"
            )
    return text


def _counts(netlist: str) -> dict[str, int]:
    return {flavour: netlist.count(f'parameter \\FLAVOR "{flavour}"') for flavour in FLAVOURS}


def input_hash(task: Task) -> str:
    """Hash of everything that a task's result depends on, but for the tools and the solver.

    A mutant's is made of the core's netlist and the mutant's patterns: to write the netlists of
    all mutants takes longer than most of them take to be caught.
    """
    mutant = task.mutant and task.mutant.key
    text = script(task.method, task.depth, SOLVERS[0])
    return _hash(f"{text}\0{_elaborated(task.proof)['digest']}\0{mutant}")


def statements_of(proof: Proof) -> list[Statement]:
    """What the proof assumes and asserts."""
    return [Statement(*values) for values in _elaborated(proof)["statements"]]


@functools.cache
def _elaborated(proof: Proof) -> dict:
    """The digest of the proof's netlist, and its statements."""
    return memo.kept(proof, BUILD / "netlists", lambda: _elaborate(proof))


def _elaborate(proof: Proof) -> dict:
    with recorded() as statements:
        digest = _hash(_rtlil(proof))
    return {"digest": digest, "statements": [list(astuple(made)) for made in statements]}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _folder(task: Task, inputs: str) -> Path:
    return BUILD / task.name / inputs


def _cached(task: Task, inputs: str) -> Result | None:
    """The result of an earlier run with the same inputs; what is not whole is ignored."""
    folder = _folder(task, inputs)
    try:
        found = json.loads((folder / "result.json").read_bytes())
        status, solver = task.word(found["status"]), str(found["solver"])
        seconds, counts = float(found["seconds"]), {f: int(found["counts"][f]) for f in FLAVOURS}
        if found["status"] not in ("proved", "failed"):
            return None
        run = folder / found["folder"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Result(task, status, seconds, solver, inputs, counts, run, cached=True)


@contextlib.contextmanager
def _alone(folder: Path, slots: Slots) -> Iterator[None]:
    """No other process, and no other thread, works in ``folder``; wait until it has ended."""
    lock = FileLock(folder / "lock")
    while not lock.try_enter():
        slots.check()
        time.sleep(0.1)
    try:
        yield
    finally:
        lock.release()


def _run(
    task: Task,
    inputs: str,
    netlist: str,
    cache: bool,
    slots: Slots,
    solvers: Sequence[str],
    favourite: str,
    limit: int,
) -> Result:
    folder, counts = _folder(task, inputs), _counts(netlist)
    with _alone(folder, slots):
        if cache and (found := _cached(task, inputs)):
            return found
        start = time.monotonic()
        solved = solve(
            folder, netlist, task.method, task.depth, tools=BUILD / "tools", slots=slots,
            solvers=solvers, favourite=favourite, limit=limit,
        )  # fmt: skip
        seconds = round(time.monotonic() - start, 1)
        if solved.status != "unknown":
            found = {
                "status": solved.status,
                "seconds": seconds,
                "solver": solved.solver,
                "counts": counts,
                "folder": solved.folder.relative_to(folder).as_posix(),
            }
            write_whole(folder / "result.json", json.dumps(found).encode())
    status = task.word(solved.status)
    return Result(
        task, status, seconds, solved.solver, inputs, counts, solved.folder,
        searched=solved.searched,
    )  # fmt: skip


def run_tasks(
    tasks: Iterable[Task],
    *,
    jobs: int = 1,
    cache: bool = True,
    solvers: Sequence[str] = (),
    limit: int = TIME_LIMIT,
    fail_fast: bool = False,
    progress: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Run tasks, ``jobs`` at a time; results come in the order of the tasks.

    ``solvers``: those that work on each task, together; else as :func:`~.engines.race` sees fit.
    ``limit``: seconds for each task, after which it is ``unknown``. With ``fail_fast``, the first
    result that is not good ends the others; they have no result. ``progress`` is called with each
    result as soon as it is there, by one thread at a time. A task that another process is running
    is waited for. However this ends, no solver runs afterwards.
    """
    slots, rows = Slots(jobs), Ledger(LEDGER, REMEDY).rows
    results: dict[int, Result] = {}
    lock = threading.Lock()

    def finish(number: int, result: Result) -> None:
        with lock:
            results[number] = result
            progress(result)
        if fail_fast and not result.good:
            slots.close()

    def one(number: int, task: Task, inputs: str, netlist: str) -> None:
        last = rows.get(task.name, {}).get("solver", "")  # as good a guess as any
        finish(number, _run(task, inputs, netlist, cache, slots, solvers, last, limit))

    futures: list[Future] = []
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            # Amaranth is not thread-safe: netlists are made here, while solvers are at work.
            for number, task in enumerate(tasks):
                inputs = input_hash(task)
                if cache and (found := _cached(task, inputs)):
                    finish(number, found)
                else:
                    futures.append(pool.submit(one, number, task, inputs, _netlist(task)))
                if slots.closed:
                    break
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                with contextlib.suppress(Stopped):  # by a failure, if at all
                    future.result()
        finally:
            slots.close()
            pool.shutdown(cancel_futures=True)
    return [results[number] for number in sorted(results)]


def check_current(
    proof: Proof,
    *,
    mutants: bool = False,
    longest: float | None = None,
    jobs: int = 1,
    ledger: Ledger | None = None,
) -> list[Result]:
    """The results of a proof's properties and cover, or of its mutants; run what is not current.

    A result is current if the ledger, or the cache of this machine, has it for the task's inputs.
    A task that is expected to take longer than ``longest`` seconds is not run: its result is
    ``deferred``, with that time. Several processes may call this at once.
    """
    ledger = ledger or Ledger(LEDGER, REMEDY)
    results, left = {}, []
    for task in tasks_of(proof, mutants=mutants):
        inputs = input_hash(task)
        row = ledger.current(task.name, inputs)
        folder, seconds = _folder(task, inputs), expected_seconds(task, ledger) or 0.0
        if row is not None and row.get("status") == task.expected:
            counts = {flavour: row.get(f"{flavour}s", 0) for flavour in FLAVOURS}
            solver = row.get("solver", "")
            found = Result(
                task, row["status"], seconds, solver, inputs, counts, folder, cached=True
            )
        elif not (found := _cached(task, inputs)):
            if longest is None or seconds <= longest:
                left.append(task)
                continue
            found = Result(task, "deferred", seconds, "", inputs, {}, folder)
        results[task] = found
    results.update((result.task, result) for result in run_tasks(left, jobs=jobs))
    return [results[task] for task in tasks_of(proof, mutants=mutants)]


def record(results: Iterable[Result], known: Iterable[Task], path: Path | None = None) -> None:
    """Put good results into the ledger, keyed by the hash of their inputs.

    Rows of tasks that are not ``known`` are dropped.
    """
    ledger, made = Ledger(path or LEDGER, REMEDY), origin()
    rows: dict[str, dict[str, dict]] = {}
    for result in (result for result in results if result.good):
        values, before = result.row(), ledger.current(result.task.name, result.inputs) or {}
        if result.cached and before.get("status") == result.status:
            continue  # this very result
        name = values.pop("name")
        rows.setdefault(group_of(result.task.proof), {})[name] = {
            **values,
            **made,
            "inputs": result.inputs,
        }
    for group, new in rows.items():
        ledger.record_all(group, new)
    ledger.keep(task.name for task in known)


def group_of(proof: Proof) -> str:
    """Name of the ledger's file that has the rows of a proof: the package of its core."""
    return (
        proof.module.removeprefix("trebuchet.").removeprefix("cores.").rpartition(".")[0] or "cores"
    )
