"""`trebuchet demo` and `make demo`: a simulated board classifies a real ECG.

The board is the whole SoC in the simulator, alone with this machine's kernel on a network of its
own. What talks to it is what would talk to a real one: `trebuchet ecg run` and `trebuchet status`,
as processes on that network, through the kernel's TCP.
"""

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console

from ..models.errors import TrebuchetError
from .ecg.records import Lead, record_or_default
from .options import MAX_SECONDS, a_number
from .pictures import check_picture
from .steps import Step

__all__ = ["SimulatedBoard", "cycles_per_transaction", "demo", "show"]

#: The whole SoC, among the tops that can be simulated.
TOP = "board"
PICTURE = Path("build") / "demo" / "ecg.png"
STATUS_SECONDS = 60


class SimulatedBoard(Protocol):
    """What the demo needs of :class:`trebuchet.sim.run.Board`."""

    ip: str

    def run(self, command: list[str], timeout: float, **options: Any) -> Any: ...


def trebuchet(*arguments: str) -> list[str]:
    """This very command, as another process."""
    return [sys.executable, "-m", "trebuchet.host.cli", *arguments]


def engine_counters(board: SimulatedBoard, address: str) -> dict[str, dict[str, int]]:
    """The counters of every engine, from the board's status page."""
    command = trebuchet("status", address, "--json", "--timeout", str(STATUS_SECONDS))
    try:
        done = board.run(command, timeout=2 * STATUS_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise TrebuchetError(f"{address} gave no status within {2 * STATUS_SECONDS} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise TrebuchetError(lines[-1].removeprefix("trebuchet: "))
    return json.loads(done.stdout)["engines"]


def cycles_per_transaction(
    before: dict[str, dict[str, int]], after: dict[str, dict[str, int]], role: str = "ecg"
) -> tuple[int, float]:
    """``(transactions, clock cycles a transaction was in the role)`` between two looks at the
    counters, which are 32 bit and wrap."""
    if role not in before or role not in after:
        raise TrebuchetError(f"the board has no role {role!r}; it has: {', '.join(after)}")
    jobs, cycles = (
        (after[role][name] - before[role][name]) % (1 << 32) for name in ("jobs", "cycles")
    )
    if not jobs:
        raise TrebuchetError("the board answered, but its role counted no transaction")
    return jobs, cycles / jobs


def show(
    board: SimulatedBoard,
    options: list[str],
    timeout: float,
    console: Console,
    status_address: str | None = None,
) -> None:
    """Send a record to the running board, and print what it took."""
    status_address = status_address or board.ip
    before = engine_counters(board, status_address)
    start = time.monotonic()
    # Its tables and its progress bar go straight to the terminal.
    command = trebuchet("ecg", "run", board.ip, *options)
    try:
        done = board.run(command, timeout=timeout, capture_output=False)
    except subprocess.TimeoutExpired as error:
        raise TrebuchetError(
            f"the demo was not done after {timeout:g} s; give it more with --timeout, or a shorter "
            "record with --minutes"
        ) from error
    seconds = time.monotonic() - start
    if done.returncode:
        raise TrebuchetError("the demo failed: what went wrong is in the lines above")
    jobs, cycles = cycles_per_transaction(before, engine_counters(board, status_address))
    console.print(
        f"\n{jobs} transactions, {cycles:,.0f} clock cycles each in the role; "
        f"{seconds:.1f} s of wall time"
    )


@contextmanager
def simulated_board(console: Console) -> Iterator[SimulatedBoard]:
    """The board, compiled if need be, up and serving."""
    # By name, because host/ needs no gateware unless it simulates one.
    tops, build, run, prepare = (
        importlib.import_module(f"trebuchet.sim.{name}")
        for name in ("tops", "build", "run", "prepare")
    )
    begin, now = time.monotonic(), time.time()
    with prepare.making("common") as common:
        title = "generating the board's Verilog and firmware"
        with Step(title, 60, lambda: prepare.generated(now)), prepare.making("board") as process:
            prepare.wait(process)
        source = tops.source(TOP)
        with Step("compiling the simulated board", 50, prepare.compiled):
            prepare.wait(common)
            binary = build.build(source)
    with run.Board(binary, cwd=source.folder) as board:
        with Step("starting the board", 8):
            board.wait_port(source.ready_port)
        console.print(f"the simulated board is up after {time.monotonic() - begin:.1f} s")
        yield board


def demo(
    record: Annotated[
        str | None, typer.Option(help="Record, such as 208, or synthetic; default: the best here.")
    ] = None,
    lead: Lead = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="How much of it.")] = 10,
    plot: Annotated[Path, typer.Option(help="Where the picture goes.")] = PICTURE,
    timeout: Annotated[
        float,
        typer.Option(min=1, max=MAX_SECONDS, callback=a_number, help="Seconds that it may take."),
    ] = 1800,
) -> None:
    """Classify a real ECG on the simulated board, compare with golden model and annotations.

    Prints beats per class, the confusion matrix, clock cycles per transaction and wall time, and
    draws the trace with its beats.
    """
    check_picture(plot)
    console = Console()
    chosen = record_or_default(record, minutes, console, lead)
    options = ["--minutes", str(minutes), "--plot", str(plot), "--timeout", str(timeout)]
    options += ["--record", record or chosen.name]
    options += ["--lead", lead] if lead else []
    with simulated_board(console) as board:
        show(board, options, timeout, console)
    console.print(f"see {plot}")
