"""`trebuchet demo` and `make demo`: a simulated board, or several, classify a real ECG.

The board is the whole SoC in the simulator, alone with this machine's kernel on a network of its
own. What talks to it is what would talk to a real one: `trebuchet ecg run` and `trebuchet status`,
as processes on that network, through the kernel's TCP. Several boards are those of
:mod:`.demo_fleet`.
"""

import enum
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console

from ..models.errors import TrebuchetError
from ..models.steps import Step
from .ecg.records import Lead, record_or_default
from .options import MAX_SECONDS, a_number
from .pictures import check_picture

__all__ = [
    "Network",
    "SimulatedBoard",
    "compile_board",
    "cycles_per_transaction",
    "demo",
    "engine_counters",
    "run_ecg",
    "show",
    "simulator",
    "trebuchet",
]

#: The whole SoC, among the tops that can be simulated.
TOP = "board"
PICTURE = Path("build") / "demo" / "ecg.png"
STATUS_SECONDS = 60
#: With --boards: the most there may be, and users unless it is said how many.
MOST_BOARDS, USERS = 8, 3


class Network(Protocol):
    """What the demo needs of a simulator: commands run on the simulated network."""

    def run(self, command: list[str], timeout: float, **options: Any) -> Any: ...


class SimulatedBoard(Network, Protocol):
    """What the demo needs of :class:`trebuchet.sim.run.Board`."""

    ip: str


def trebuchet(*arguments: str) -> list[str]:
    """This very command, as another process."""
    return [sys.executable, "-m", "trebuchet.host.cli", *arguments]


def engine_counters(
    board: Network, address: str, seconds: int = STATUS_SECONDS
) -> dict[str, dict[str, int]]:
    """The counters of every engine, from the board's status page.

    ``seconds``: time-out of the connection; the whole may take twice as long.
    """
    command = trebuchet("status", address, "--json", "--timeout", str(seconds))
    try:
        done = board.run(command, timeout=2 * seconds)
    except subprocess.TimeoutExpired as error:
        raise TrebuchetError(f"{address} gave no status within {2 * seconds} s") from error
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
    seconds = run_ecg(board, [board.ip, *options], timeout)
    jobs, cycles = cycles_per_transaction(before, engine_counters(board, status_address))
    console.print(
        f"\n{jobs} transactions, {cycles:,.0f} clock cycles each in the role; "
        f"{seconds:.1f} s of wall time"
    )


def run_ecg(network: Network, options: list[str], timeout: float) -> float:
    """Run `trebuchet ecg run`; its tables and progress bar go to the terminal. Return seconds."""
    start = time.monotonic()
    try:
        done = network.run(trebuchet("ecg", "run", *options), timeout=timeout, capture_output=False)
    except subprocess.TimeoutExpired as error:
        raise TrebuchetError(
            f"the demo was not done after {timeout:g} s; give it more with --timeout, or a shorter "
            "record with --minutes"
        ) from error
    if done.returncode:
        raise TrebuchetError("the demo failed: what went wrong is in the lines above")
    return time.monotonic() - start


def simulator(name: str) -> Any:
    """A module of the simulator, by name because host/ needs no gateware unless it simulates."""
    return importlib.import_module(f"trebuchet.sim.{name}")


def compile_board(what: str, build: Callable[[Any], Path]) -> tuple[Any, Path]:
    """Generate and compile the board, unless that is done; its source and what ``build`` made."""
    tops, prepare = simulator("tops"), simulator("prepare")
    now = time.time()
    with prepare.making("common") as common:
        title = "generating the board's Verilog and firmware"
        with Step(title, 60, lambda: prepare.generated(now)), prepare.making("board") as process:
            prepare.wait(process)
        source = tops.source(TOP)
        with Step(f"compiling {what}", 50, prepare.compiled):
            prepare.wait(common)
            return source, build(source)


@contextmanager
def simulated_board(console: Console) -> Iterator[SimulatedBoard]:
    """The board, compiled if need be, up and serving."""
    begin = time.monotonic()
    source, binary = compile_board("the simulated board", simulator("build").build)
    with simulator("run").Board(binary, cwd=source.folder) as board:
        with Step("starting the board", 8):
            board.wait_port(source.ready_port)
        console.print(f"the simulated board is up after {time.monotonic() - begin:.1f} s")
        yield board


class Demo(enum.StrEnum):
    """What there is to see."""

    ecg = "ecg"
    web = "web"


def demo(
    what: Annotated[
        Demo, typer.Argument(help="An ECG that is classified, or pages for your browser.")
    ] = Demo.ecg,
    record: Annotated[
        str | None, typer.Option(help="Record, such as 208, or synthetic; default: the best here.")
    ] = None,
    lead: Lead = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="How much of it.")] = 10,
    boards: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST_BOARDS,
            help="So many boards behind a job server, 2 to 8; draws their schedule, too.",
        ),
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(min=1, max=16, help="Users who share the boards, with --boards; default: 3."),
    ] = None,
    plot: Annotated[Path, typer.Option(help="Where the picture goes.")] = PICTURE,
    timeout: Annotated[
        float,
        typer.Option(min=1, max=MAX_SECONDS, callback=a_number, help="Seconds that it may take."),
    ] = 1800,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With web: serve these files; default: documentation."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="With web: port here; default: any.")
    ] = None,
) -> None:
    """Classify a real ECG on the simulated board, compare with golden model and annotations.

    `demo web`: the simulated board serves the documentation, or another folder, to your browser.

    Prints beats per class, the confusion matrix, clock cycles per transaction and wall time, and
    draws the trace with its beats. With --boards the record goes in blocks to several boards,
    through the job server; a second picture, NAME-schedule, shows which board did which user's job
    when.
    """
    if what is Demo.web:
        _demo_web(folder, port, record, lead, boards, users)
        return
    if folder is not None or port is not None:
        raise TrebuchetError("--folder and --port are those of the web demo: trebuchet demo web")
    if users is not None and boards is None:
        raise TrebuchetError("--users is for several boards; give --boards N, 2 to 8, too")
    console = Console()
    # A record that was named is looked for before the picture's folder is made.
    named = record_or_default(record, minutes, console, lead) if record is not None else None
    check_picture(plot)
    chosen = named or record_or_default(record, minutes, console, lead)
    options = ["--minutes", str(minutes), "--plot", str(plot), "--timeout", str(timeout)]
    options += ["--record", record or chosen.name]
    options += ["--lead", lead] if lead else []
    if boards is not None:
        from . import demo_fleet  # noqa: PLC0415 - it needs this module

        demo_fleet.demonstrate(boards, users or USERS, options, plot, timeout, console)
        return
    with simulated_board(console) as board:
        show(board, options, timeout, console)
    console.print(f"see {plot}")


def _demo_web(folder: Path | None, port: int | None, *of_ecg: object) -> None:
    from . import demo_web  # noqa: PLC0415 - it needs this module

    if any(option is not None for option in of_ecg):
        raise TrebuchetError(
            "--record, --lead, --boards and --users are those of the ECG demo; leave them out"
        )
    demo_web.demonstrate(folder, port or 0, Console())
