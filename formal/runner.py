"""Runs proofs with SymbiYosys and remembers the results.

A proof becomes several tasks: the properties (``induction`` or ``bmc``), the cover statements that
show that they are not vacuous (``cover``), and one ``bmc`` per mutant, which must fail. A task
is a netlist and a script, and its result is cached below ``build/prove`` by the hash of both.
:mod:`~trebuchet.formal.engines` says which solvers work on it.
"""

import functools
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from amaranth.back import rtlil

from ..models.collector import no_collector
from ..models.errors import TrebuchetError
from ..models.ledger import ROOT, Ledger
from .engines import SOLVERS, Slots, race
from .proof import Mutant, Proof

__all__ = [
    "LEDGER",
    "Result",
    "Task",
    "input_hash",
    "record",
    "run_tasks",
    "select",
    "stale",
    "tasks_of",
]

LEDGER = ROOT / "formal" / "ledger.json"
BUILD = ROOT / "build" / "prove"
TIME_LIMIT = 900

#: SymbiYosys' mode for each method, and the flavour of check that the method is about.
MODES = {"induction": ("prove", "assert"), "bmc": ("bmc", "assert"), "cover": ("cover", "cover")}
#: Kinds of statements that are counted. None of a kind that its method needs: the task is refused.
FLAVOURS = ("assert", "assume", "cover")

SCRIPT = """\
[options]
mode {mode}
depth {depth}
multiclock off
timeout {limit}

[engines]
smtbmc {solver}

[script]
read_rtlil design.il
prep -top top

[files]
design.il
"""


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
        return "proved" if self.mutant is None else "failed"


@dataclass(frozen=True)
class Result:
    """What a run gave. ``status`` is ``proved``, ``failed`` or ``unknown``.

    ``counts`` are the statements of each of :data:`FLAVOURS`; ``folder`` holds the solver's log.
    """

    task: Task
    status: str
    seconds: float
    solver: str
    inputs: str
    counts: dict[str, int]
    folder: Path
    cached: bool = False

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
        }


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


def select(proofs: Iterable[Proof], names: Iterable[str], everything: bool) -> list[Proof]:
    """Proofs by name or prefix of a name; without names all, or the quick and the stale ones."""
    proofs, names = list(proofs), list(names)
    for name in names:
        if not any(p.name.startswith(name) for p in proofs):
            near = get_close_matches(name, [p.name for p in proofs], cutoff=0.5) or ["none"]
            raise TrebuchetError(
                f"there is no proof {name!r}; near it: {', '.join(near)}; all are in docs/proofs.md"
            )
    if names:
        return [p for p in proofs if any(p.name.startswith(name) for name in names)]
    ledger = Ledger(LEDGER)
    return [p for p in proofs if everything or p.quick or stale(p, ledger)]


def stale(proof: Proof, ledger: Ledger) -> bool:
    """Whether what is proved has changed since the ledger's row was made."""
    task = tasks_of(proof)[0]
    return ledger.current(task.name, input_hash(task)) is None


def _rtlil(proof: Proof, mutant: Mutant | None = None, source: bool = False) -> str:
    """RTLIL of the harness; ``source`` adds file and line of each statement, for traces."""
    with no_collector():
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


def _script(task: Task, solver: str) -> str:
    mode = MODES[task.method][0]
    return SCRIPT.format(mode=mode, depth=task.depth, limit=TIME_LIMIT, solver=solver)


def input_hash(task: Task) -> str:
    """Hash of everything that a task's result depends on, but for the tools and the solver.

    A mutant's is made of the core's netlist and the text that replaces another: to write the
    netlists of all mutants takes longer than most of them take to be caught.
    """
    mutant = task.mutant and (task.mutant.old, task.mutant.new, task.mutant.where)
    return _hash(f"{_script(task, SOLVERS[0])}\0{_digest(task.proof)}\0{mutant}")


@functools.cache
def _digest(proof: Proof) -> str:
    return _hash(_rtlil(proof))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _run(
    task: Task,
    inputs: str,
    netlist: str,
    cache: bool,
    slots: Slots,
    solvers: Sequence[str],
    favourite: str,
) -> Result:
    folder = BUILD / task.name / inputs
    saved, counts = folder / "result.json", _counts(netlist)
    if cache and saved.exists():
        found = json.loads(saved.read_text())
        run = folder / found["solver"]
        return Result(task, inputs=inputs, counts=counts, folder=run, cached=True, **found)
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()

    def files(solver):
        return {"task.sby": _script(task, solver), "design.il": netlist}

    verdict = race(folder, files, BUILD / "tools", slots, solvers, favourite=favourite)
    seconds = round(time.monotonic() - start, 1)
    if verdict.status != "unknown":
        found = {"status": verdict.status, "seconds": seconds, "solver": verdict.solver}
        saved.write_text(json.dumps(found))
    return Result(task, verdict.status, seconds, verdict.solver, inputs, counts, verdict.folder)


def run_tasks(
    tasks: Iterable[Task],
    *,
    jobs: int = 1,
    cache: bool = True,
    solvers: Sequence[str] = (),
    progress: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Run tasks, ``jobs`` at a time; results come in the order of the tasks.

    ``solvers``: those that work on each task, together; else as :func:`~.engines.race` sees fit.
    """
    slots, rows = Slots(jobs), Ledger(LEDGER).rows

    def one(task, inputs, netlist):
        last = rows.get(task.name, {}).get("solver", "")  # as good a guess as any
        result = _run(task, inputs, netlist, cache, slots, solvers, last)
        progress(result)
        return result

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        # Amaranth is not thread-safe, so all netlists are made here, while solvers are at work.
        futures = [pool.submit(one, task, input_hash(task), _netlist(task)) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def record(results: Iterable[Result], known: Iterable[Task], path: Path = LEDGER) -> None:
    """Put results into the ledger, keyed by the hash of their inputs; drop tasks not ``known``."""
    ledger = Ledger(path)
    for result in results:
        values = result.row()
        ledger.record(values.pop("name"), result.inputs, **values)
    ledger.keep(task.name for task in known)
