"""Runs proofs with SymbiYosys and remembers the results.

A proof becomes several tasks: the properties (``induction`` or ``bmc``), the cover statements that
show that they are not vacuous (``cover``), and one ``bmc`` per mutant, which must fail. A task
is a netlist and a script, and its result is cached below ``build/prove`` by the hash of both.

SymbiYosys and Yosys are the native ones if they are on PATH, else those of the YoWASP package;
the solver is Yices.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil

from ..models.errors import TrebuchetError
from ..models.ledger import ROOT, Ledger
from .proof import Mutant, Proof

__all__ = ["LEDGER", "Result", "Task", "input_hash", "record", "run_tasks", "select", "tasks_of"]

LEDGER = ROOT / "formal" / "ledger.json"
BUILD = ROOT / "build" / "prove"
TIME_LIMIT = 900

#: SymbiYosys' mode for each method, and the flavour of check that the method is about.
MODES = {"induction": ("prove", "assert"), "bmc": ("bmc", "assert"), "cover": ("cover", "cover")}
VERDICTS = {"PASS": "proved", "FAIL": "failed"}

SCRIPT = """\
[options]
mode {mode}
depth {depth}
multiclock off
timeout {limit}

[engines]
smtbmc yices

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
    """What a run gave. ``status`` is ``proved``, ``failed`` or ``unknown``."""

    task: Task
    status: str
    seconds: float
    inputs: str
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
    """Proofs by name or prefix of a name; without names the quick ones, or all."""
    proofs, names = list(proofs), list(names)
    for name in names:
        if not any(p.name.startswith(name) for p in proofs):
            known = ", ".join(sorted(p.name for p in proofs))
            raise TrebuchetError(f"there is no proof {name!r}; there are: {known}")
    if names:
        return [p for p in proofs if any(p.name.startswith(name) for name in names)]
    return [p for p in proofs if everything or p.quick]


def _netlist(task: Task, source: bool = False) -> str:
    """RTLIL of the harness; refuses one without anything to check or without a clock.

    ``source`` adds file and line of each statement, for people who read a trace.
    """
    text = rtlil.convert(
        task.proof.harness(task.mutant), name="top", platform="formal", ports=[], emit_src=source
    )
    if not re.search(r"wire width 1 input \d+ \s*\\clk", text):
        raise TrebuchetError(f"proof {task.name!r} must leave its clock to the runner")
    flavour = MODES[task.method][1]
    if f'parameter \\FLAVOR "{flavour}"' not in text:
        raise TrebuchetError(f"proof {task.name!r} must have {flavour} statements, but has none")
    return text


def _script(task: Task) -> str:
    return SCRIPT.format(mode=MODES[task.method][0], depth=task.depth, limit=TIME_LIMIT)


def input_hash(task: Task) -> str:
    """Hash of everything that a task's result depends on, but for the tools."""
    content = f"{_script(task)}\0{_netlist(task)}"
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _environment() -> dict[str, str]:
    env = dict(os.environ)
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"
    for variable, native in (
        ("YOSYS", "yosys"),
        ("SMTBMC", "yosys-smtbmc"),
        ("WITNESS", "yosys-witness"),
    ):
        if shutil.which(native, path=env["PATH"]) is None:
            env[variable] = f"yowasp-{native}"
    return env


def _sby(env: dict[str, str]) -> str:
    for name in ("sby", "yowasp-sby"):
        if found := shutil.which(name, path=env["PATH"]):
            return found
    raise TrebuchetError("SymbiYosys is missing; run `make venv`, or put `sby` on PATH")


def _run(task: Task, inputs: str, netlist: str, cache: bool) -> Result:
    folder = BUILD / task.name / inputs
    saved = folder / "result.json"
    if cache and saved.exists():
        return Result(
            task, inputs=inputs, folder=folder, cached=True, **json.loads(saved.read_text())
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "design.il").write_text(netlist)
    (folder / "task.sby").write_text(_script(task))
    env = _environment()
    start = time.monotonic()
    with (folder / "log.txt").open("w") as log:
        subprocess.run(
            [_sby(env), "-f", "-d", "out", "task.sby"],
            cwd=folder,
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    seconds = round(time.monotonic() - start, 1)
    status = folder / "out" / "status"
    if not status.exists():
        tail = "; ".join((folder / "log.txt").read_text().splitlines()[-3:])
        raise TrebuchetError(f"SymbiYosys failed on {task.name!r}, see {folder}/log.txt: {tail}")
    verdict = VERDICTS.get(status.read_text().split()[0], "unknown")
    if verdict != "unknown":
        saved.write_text(json.dumps({"status": verdict, "seconds": seconds}))
    return Result(task, verdict, seconds, inputs, folder)


def run_tasks(
    tasks: Iterable[Task],
    *,
    jobs: int = 1,
    cache: bool = True,
    progress: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Run tasks, ``jobs`` at a time; results come in the order of the tasks."""
    tasks = list(tasks)
    # Amaranth is not thread-safe, so all netlists are made here.
    jobs_to_do = [(task, input_hash(task), _netlist(task, source=True)) for task in tasks]

    def one(job):
        result = _run(*job, cache)
        progress(result)
        return result

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(pool.map(one, jobs_to_do))


def record(results: Iterable[Result], path: Path = LEDGER) -> None:
    """Replace the ledger's rows by these results, keyed by the hash of their inputs."""
    results, ledger = list(results), Ledger(path)
    for name in set(ledger.rows) - {result.task.name for result in results}:
        del ledger.rows[name]
    for result in results:
        values = result.row()
        ledger.record(values.pop("name"), result.inputs, **values)
