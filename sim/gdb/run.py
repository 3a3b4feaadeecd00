"""A simulated board with a GDB server beside it.

>>> files = debug_files()
>>> with debugged(build(files.source), files) as (board, server):
...     subprocess.run(["gdb-multiarch", files.elf, "-ex", f"target remote :{server.port}"])
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...models.errors import TrebuchetError
from ...models.plan import Plan
from ..build import Source
from ..run import Board
from .server import GdbServer

__all__ = ["HARNESS", "DebugFiles", "debug_files", "debugged"]

HARNESS = Path(__file__).resolve().parent / "harness"


@dataclass(frozen=True)
class DebugFiles:
    """The board with its CPU's debug port.

    Attributes
    ----------
    source : Source
        To compile.
    elf : path
        The firmware with its symbols.
    csr_json : path
        LiteX's map of memories and registers.
    """

    source: Source
    elf: Path
    csr_json: Path


def debug_files(top: str = "board", plan: Plan | None = None) -> DebugFiles:
    """Make the board with the debug port, with its own plan or another."""
    if top != "board":
        raise TrebuchetError(f"GDB needs a CPU, and so the top board; {top!r} has none")
    from ...soc.build import build_sim

    files = build_sim(plan=plan, debug=True)
    source = Source(
        "board",
        files.top,
        {},
        files.sources,
        files.folder,
        ready_port=7,
        main=HARNESS / "debug.cpp",
    )
    build = files.folder.parent
    return DebugFiles(source, build / "software" / "bios" / "bios.elf", build / "csr.json")


@contextmanager
def debugged(
    binary: Path,
    files: DebugFiles,
    port: int = 0,
    arguments: Sequence[str] = (),
    **options: Any,
) -> Iterator[tuple[Board, GdbServer]]:
    """Run the board and serve debuggers on ``port`` of 127.0.0.1, 0 for any that is free.

    ``arguments`` and ``options`` are those of :class:`~trebuchet.sim.run.Board`.
    """
    # Not in the board's folder: the path of a Unix socket must be short.
    with tempfile.TemporaryDirectory(prefix="trebuchet-") as folder:
        path = Path(folder) / "debug"
        # A board that sleeps would answer a debugger slowly.
        options = {"cwd": files.source.folder, "busy": True, **options}
        with (
            Board(binary, [*arguments, "--debug", str(path)], **options) as board,
            GdbServer(path, files.csr_json, port, board.simulation) as server,
        ):
            yield board, server
