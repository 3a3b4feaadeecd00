"""One check by SymbiYosys: the script, the race of solvers, the search for a trace after induction.

A failing induction step says nothing about a core: its trace may begin in a state that no reset
leads to. So a bounded check from reset follows, step by step, until it finds a trace or reaches its
bound: :data:`SEARCH_DEPTH` cycles, :data:`SEARCH_SECONDS`, or what is left of the task's time.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .engines import Slots, Verdict, race

__all__ = ["FLAVOURS", "MODES", "SEARCH_DEPTH", "SEARCH_SECONDS", "TIME_LIMIT", "Solved", "script",
           "solve"]  # fmt: skip

#: Seconds after which SymbiYosys gives up, unless a limit is given.
TIME_LIMIT = 900
#: Bounds of the check that follows a failing induction step.
SEARCH_DEPTH, SEARCH_SECONDS = 100, 300

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

_STEP = re.compile(r"Checking assertions in step (\d+)\.\.")


@dataclass(frozen=True)
class Solved:
    """``status`` is ``proved``, ``failed`` or ``unknown``; ``folder`` that of the deciding run.

    ``searched``: cycles after reset in which the check that follows a failing induction step found
    no counterexample; ``None`` if there was no such check, or it found one.
    """

    status: str
    solver: str
    folder: Path
    searched: int | None = None


def script(method: str, depth: int, solver: str, limit: int = TIME_LIMIT) -> str:
    """SymbiYosys' script for one solver; ``limit`` in seconds."""
    return SCRIPT.format(mode=MODES[method][0], depth=depth, limit=limit, solver=solver)


def solve(
    folder: Path,
    netlist: str,
    method: str,
    depth: int,
    *,
    tools: Path,
    slots: Slots,
    solvers: Sequence[str] = (),
    favourite: str = "",
    limit: int = TIME_LIMIT,
) -> Solved:
    """Check ``netlist`` in ``folder``, for at most ``limit`` seconds; see :func:`~.engines.race`.

    Raise :class:`~.engines.Stopped` if ``slots`` are closed meanwhile.
    """

    def run(where: Path, method: str, depth: int, limit: int) -> Verdict:
        def files(solver):
            return {"task.sby": script(method, depth, solver, limit), "design.il": netlist}

        return race(where, files, tools, slots, solvers, favourite=favourite)

    start = time.monotonic()
    found = run(folder, method, depth, limit)
    left = min(SEARCH_SECONDS, limit - int(time.monotonic() - start))
    if found.status != "unknown" or method != "induction" or left < 1:
        return Solved(found.status, found.solver, found.folder)
    search = run(folder / "search", "bmc", SEARCH_DEPTH, left)
    if search.status == "failed":
        return Solved("failed", search.solver, search.folder)
    searched = SEARCH_DEPTH if search.status == "proved" else _steps(search.folder)
    return Solved("unknown", found.solver, found.folder, searched)


def _steps(folder: Path) -> int:
    """How many cycles a bounded check has finished: all before the one that it began last."""
    return max(map(int, _STEP.findall((folder / "log.txt").read_text())), default=0)
