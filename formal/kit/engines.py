"""SymbiYosys and the SMT solvers under it: which there are, and a race between several.

SymbiYosys and Yosys are the native ones if they are on PATH, else those of the YoWASP package. The
same goes for solvers: what is not on PATH under its usual name comes from its Python package, by
way of :mod:`~trebuchet.formal.kit.solvers`.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...models.ending import GRACE
from ...models.errors import TrebuchetError
from .solvers import PACKAGED

__all__ = ["HEAD_START", "SOLVERS", "Slots", "Stopped", "Verdict", "race"]

#: In the order in which they are tried.
SOLVERS = ("yices", "bitwuzla", "boolector", "z3")
#: Seconds until the next solver may join a race; most tasks are decided before.
HEAD_START = 20

VERDICTS = {"PASS": "proved", "FAIL": "failed"}


@dataclass(frozen=True)
class Verdict:
    """``status`` is ``proved``, ``failed`` or ``unknown``; ``folder`` that of the deciding run."""

    status: str
    solver: str
    folder: Path


class Stopped(Exception):
    """Raised in a race, or while waiting for a slot, when the slots have been closed."""


class Slots:
    """How many solvers may run at a time. One that joins a race must not hold up a waiting task."""

    def __init__(self, slots: int) -> None:
        self._changed = threading.Condition()
        self._free = slots
        self._waiting = 0
        self.closed = False

    def take(self) -> None:
        """Wait for a slot."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: self._free > 0 or self.closed)
            self._waiting -= 1
            self.check()
            self._free -= 1

    def check(self) -> None:
        """Raise :class:`Stopped` if the slots are closed."""
        if self.closed:
            raise Stopped

    def close(self) -> None:
        """Stop all races that use these slots; solvers that run are terminated."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def take_idle(self) -> bool:
        """Take a slot that nobody waits for; whether there was one."""
        with self._changed:
            idle = self._free > self._waiting
            self._free -= idle
            return idle

    def give(self) -> None:
        with self._changed:
            self._free += 1
            self._changed.notify()


class _Run:
    """One solver at work on a task."""

    def __init__(self, solver: str, folder: Path, files: dict[str, str], tools: Path) -> None:
        self.solver, self.folder = solver, folder
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        environment = _environment(tools)
        with (folder / "log.txt").open("w") as log:
            self.process = subprocess.Popen(
                [_sby(environment), "-f", "-d", "out", "task.sby"],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us: we stop it, and know what is left
            )

    @property
    def over(self) -> bool:
        return self.process.poll() is not None

    def status(self) -> str:
        path = self.folder / "out" / "status"
        if not path.exists():
            tail = "; ".join((self.folder / "log.txt").read_text().splitlines()[-3:])
            raise TrebuchetError(f"SymbiYosys failed, see {self.folder}/log.txt: {tail}")
        return VERDICTS.get(path.read_text().split()[0], "unknown")

    def stop(self) -> None:
        """Terminate it, with all that it has started, each in a process group of its own."""
        if self.over:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
        # It may have started one that it had not noted yet.
        for process in _members(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()


def _members(session: int) -> list[int]:
    """Processes of a session but for its leader, where the system lists them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The command's name, in parentheses, may hold anything; session is the fourth after it.
            fields = path.read_text().rpartition(")")[2].split()
            if fields[3] == str(session) and int(path.parent.name) != session:
                found.append(int(path.parent.name))
    return found


def race(
    folder: Path,
    files: Callable[[str], dict[str, str]],
    tools: Path,
    slots: Slots,
    solvers: Sequence[str] = (),
    head_start: float = HEAD_START,
    favourite: str = "",
) -> Verdict:
    """Run a task with several solvers; the first that decides it ends the race.

    ``files`` gives contents by name for a solver, SymbiYosys' script as ``task.sby``; it runs in
    ``folder/<solver>``, and what is in ``tools`` is on its PATH last. Without
    ``solvers`` all of :data:`SOLVERS` take part: the first at once, each further one ``head_start``
    seconds after the one before it, if there is an idle slot; ``favourite`` is first if it is one
    of them. Named ones begin together, in the slot of one. Raise :class:`Stopped` if the slots are
    closed; no solver runs afterwards, however the race ends.
    """
    order = sorted(SOLVERS, key=lambda solver: solver != favourite)
    waiting, runs, taken, begun = list(solvers or order), [], 0, 0.0
    try:
        slots.take()
        taken += 1
        while True:
            late = bool(runs) and time.monotonic() - begun > head_start
            if joins := late and bool(waiting) and not solvers and slots.take_idle():
                taken += 1
            while waiting and (solvers or not runs or joins):
                solver, joins = waiting.pop(0), False
                runs.append(_Run(solver, folder / solver, files(solver), tools))
                begun = time.monotonic()
            over = [run for run in runs if run.over]  # asked once: it may change at any moment
            for run in over:
                if (status := run.status()) != "unknown":
                    return Verdict(status, run.solver, run.folder)
            # What one gave up on by itself is not for the next: the induction does not close.
            if len(over) == len(runs):
                return Verdict("unknown", runs[0].solver, runs[0].folder)
            slots.check()
            time.sleep(0.05)
    finally:
        for run in runs:
            run.stop()
        for _ in range(taken):
            slots.give()


def _environment(tools: Path) -> dict[str, str]:
    env = dict(os.environ)
    tools.mkdir(parents=True, exist_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"
    for solver in PACKAGED:
        if shutil.which(solver, path=path) is None:
            _write_tool(tools / solver, solver)
    env["PATH"] = f"{path}{os.pathsep}{tools}"
    for variable, native in (
        ("YOSYS", "yosys"),
        ("SMTBMC", "yosys-smtbmc"),
        ("WITNESS", "yosys-witness"),
    ):
        if shutil.which(native, path=path) is None:
            env[variable] = f"yowasp-{native}"
    return env


def _write_tool(path: Path, solver: str) -> None:
    text = f'#!/bin/sh\nexec "{sys.executable}" -m {PACKAGED[solver]} {solver} "$@"\n'
    if path.exists() and path.read_text() == text:
        return
    temporary = path.with_name(f"{solver}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(text)
    temporary.chmod(0o755)
    temporary.replace(path)


def _sby(env: dict[str, str]) -> str:
    for name in ("sby", "yowasp-sby"):
        if found := shutil.which(name, path=env["PATH"]):
            return found
    raise TrebuchetError("SymbiYosys is missing; run `make venv`, or put `sby` on PATH")
