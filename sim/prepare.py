"""Compile a simulated board's parts side by side: ``python -m trebuchet.sim.prepare PART``.

``common`` compiles what all boards share, the harness and Verilator's runtime. ``board`` generates
the board's Verilog and firmware. Each is one process, because LiteX takes over the outputs of the
one that runs it. What is made is kept (:mod:`trebuchet.models.kept`), and whoever needs it next
finds it, or waits for it.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

from ..models.errors import TrebuchetError
from ..models.paths import BUILD
from . import build

__all__ = ["PARTS", "compiled", "generated", "making", "wait"]

#: What LiteX prints while it makes the simulated board.
LOG = BUILD / "sim" / "litex.log"


#: Of the two, what nothing waits for at first; it takes the core that the other leaves idle.
NICENESS = {"common": 10, "board": 0}


def make_common() -> None:
    build.make_libraries()


def make_board() -> None:
    from . import tops  # noqa: PLC0415 - LiteX is slow to import

    tops.source("board")


PARTS: dict[str, Callable[[], None]] = {"common": make_common, "board": make_board}


@contextlib.contextmanager
def making(part: str) -> Iterator[subprocess.Popen]:
    """Make a part in a process of its own; it and its children end with the context."""
    command = [sys.executable, "-m", "trebuchet.sim.prepare", part]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def wait(process: subprocess.Popen) -> None:
    """Wait for a part; raise :class:`TrebuchetError` with the reason if it could not be made."""
    assert process.stderr is not None
    said = process.stderr.read()
    if process.wait():
        lines = said.decode(errors="replace").strip().splitlines() or ["it gave no reason"]
        raise TrebuchetError(f"making the simulated board failed: {lines[-1]}")


def generated(began: float) -> tuple[int, int] | None:
    """How many of how many files of the firmware's C library are compiled since the time ``began``.

    None before the first.
    """
    try:
        if LOG.stat().st_mtime < began:
            return None
        found = re.findall(rb"\[(\d+)/(\d+)\]", LOG.read_bytes())
    except OSError:
        return None
    return (int(found[-1][0]), int(found[-1][1])) if found else None


def compiled() -> tuple[int, int] | None:
    """How many of how many files of Verilator's C++ are compiled; None before it has written."""
    folders = list(build.build_folder().glob("board-*.new/obj"))
    total = sum(1 for folder in folders for _ in folder.glob("*.cpp"))
    done = sum(1 for folder in folders for _ in folder.glob("*.o"))
    return (min(done, total), total) if total else None


def main(part: str) -> None:
    os.nice(NICENESS[part])
    try:
        PARTS[part]()
    except TrebuchetError as error:
        sys.exit(" ".join(str(error).split()))


if __name__ == "__main__":
    main(sys.argv[1])
