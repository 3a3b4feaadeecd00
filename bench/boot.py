"""From reset to `ready`, and from an interrupt to its handler, of the simulated board, in cycles.

``boot.…`` is the board with a boot ROM: it reads its golden firmware from the flash, which gives a
bit every two cycles, and runs it from external memory through an instruction cache. ``boot.rom_…``
is the board whose firmware is in ROM. Reset to ``ready`` counts until the console has printed that.
The interrupt is the timer's, the latest of those that come while a status page is printed; its
handler reads how many cycles ago the timer expired.
"""

import re
import subprocess
from pathlib import Path

from ..models.errors import TrebuchetError
from ..sim.build import Source, build
from ..sim.run import run_batch
from ..sim.tops import source
from .job import Job, Values

__all__ = ["cycles"]

#: A run that takes longer has hung.
MOST = 4_000_000
_TIME = ("--time", "cycles:1000", "--cycles", MOST)
_LATE = re.compile(r"interrupts at most (\d+) cycles late")


def cycles() -> Job:
    """Return the measurement of both boards."""
    boards = {"boot.": source("bootrom"), "boot.rom_": source("board")}
    contents = [path for board in boards.values() for path in _contents(board)]

    def measure() -> Values:
        values: Values = {}
        for name, board in boards.items():
            binary = build(board)
            values[f"{name}ready_cycles"] = _ready(binary, board)
            values[f"{name}interrupt_cycles"] = _late(binary, board)
        return values

    return Job((*boards.values(), contents), measure)


def _contents(board: Source) -> list[Path]:
    """What is in the memories of a board, and in its flash."""
    assert board.folder is not None
    return sorted([*board.folder.glob("*.init"), *board.folder.glob("flash.bin")])


def _ready(binary: Path, board: Source) -> int:
    _, stats = run_batch(binary, [*_TIME, "--until", "ready\r\n"], cwd=board.folder)
    if stats["ended"] != "text printed":
        raise TrebuchetError(f"the board was not ready after {MOST} cycles")
    cycle: int = stats["cycles"]
    return cycle


def _late(binary: Path, board: Source) -> int:
    command = [binary, "--uart", "stdio", *_TIME, "--until", " cycles late"]
    said = subprocess.run(
        [str(word) for word in command],
        input="status\nuptime\n",
        capture_output=True,
        text=True,
        cwd=board.folder,
        check=False,
    ).stdout
    found = _LATE.search(said)
    if found is None:
        raise TrebuchetError(f"the console did not tell how late interrupts are: {said[-200:]!r}")
    return int(found[1])
