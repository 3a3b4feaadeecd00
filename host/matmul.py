"""`trebuchet matmul run`: have a board multiply matrices, and check every product.

The pairs are random, with many extreme values (:func:`trebuchet.models.matmul.random_operand`), and
go as SMP data messages over one connection. Two are under way: while the board works on one, the
next one comes. Every product is compared with the golden model byte for byte.
"""

import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from ..client import Batch, Board, Call
from ..client.smp import PORT
from ..models import matmul
from ..models.errors import TrebuchetError
from .options import RoleName, Seconds
from .roles import explained

__all__ = ["Run", "app", "run_pairs"]

#: Messages under way: as many as a board answers before an answer has been taken.
OUTSTANDING = 2
#: More pairs need a longer message than a role's operand can be.
MAX_PAIRS = 31
#: Additions and multiplications of a product.
OPERATIONS = 2 * matmul.ORDER**3

app = typer.Typer(no_args_is_help=True, help="Have a board multiply matrices of 64x64 integers.")


@dataclass(frozen=True)
class Run:
    """What came of some products."""

    products: int
    exact: int
    seconds: float  # from the first message's begin to the last answer
    latencies: tuple[float, ...]  # seconds of each message, from its begin to its answer

    @property
    def gops(self) -> float:
        """Additions and multiplications in a nanosecond, all that is around them included."""
        return self.products * OPERATIONS / self.seconds / 1e9

    def require_exact(self) -> None:
        if self.exact != self.products:
            raise TrebuchetError(
                f"{self.products - self.exact} of {self.products} products of the board differ "
                "from the golden model: a role of another kind, or a fault"
            )


def _fault(pairs: list[int]) -> Callable[[int, bytes], str | None]:
    def fault(index: int, result: bytes) -> str | None:
        size = pairs[index] * matmul.result_bytes()
        return None if len(result) == size else f"a result of {len(result)} bytes, not {size}"

    return fault


def run_pairs(
    address: str,
    port: int,
    count: int,
    seed: int,
    pairs: int = 1,
    timeout: float = 30.0,
    progress: Callable[[int], None] = lambda done: None,
    role: str | None = None,
) -> Run:
    """Send ``count`` pairs, ``pairs`` a message; ``progress(done)`` is called after each answer.

    ``role``: name of the role on the board; None: the port's.
    """
    rng = random.Random(seed)
    sizes = [min(pairs, count - at) for at in range(0, count, pairs)]
    operands = [matmul.random_operand(rng, size) for size in sizes]
    latencies = [0.0] * len(operands)
    answered: set[int] = set()

    def told(index: int, result: bytes, seconds: float) -> None:
        latencies[index] = seconds
        answered.add(index)
        progress(sum(sizes[each] for each in answered))

    def call() -> Call[list[bytes]]:
        largest = max(sizes) * matmul.result_bytes()
        return (
            yield Batch(role, operands, pure=True, largest=largest, fault=_fault(sizes), told=told)
        )

    with (
        Board(address, port=port, timeout=timeout, in_flight=OUTSTANDING) as board,
        explained(board, role, "matmul"),
    ):
        start = time.monotonic()
        results = board.run(call())
        seconds = time.monotonic() - start
    size = matmul.result_bytes()
    exact = 0
    for operand, result in zip(operands, results, strict=True):
        golden = matmul.result(operand)
        exact += sum(
            result[at : at + size] == golden[at : at + size] for at in range(0, len(golden), size)
        )
    return Run(count, exact, seconds, tuple(latencies))


def as_dict(run: Run) -> dict[str, Any]:
    return {
        "products": run.products,
        "exact": run.exact,
        "messages": len(run.latencies),
        "seconds": run.seconds,
        "gops": run.gops,
        "latency": {
            "min": min(run.latencies),
            "median": statistics.median(run.latencies),
            "max": max(run.latencies),
        },
    }


def _table(run: Run) -> Table:
    table = Table("what", "value", box=None)
    table.add_row("products", f"{run.products} in {len(run.latencies)} messages")
    table.add_row("exact", f"{run.exact} of {run.products}")
    table.add_row("time", f"{run.seconds:.3f} s, {run.products / run.seconds:,.1f} products/s")
    table.add_row("rate", f"{run.gops:.6f} GOPS")
    low, high = (f"{1000 * pick(run.latencies):,.2f}" for pick in (min, max))
    median = f"{1000 * statistics.median(run.latencies):,.2f}"
    table.add_row("latency", f"{median} ms a message (median; {low} to {high})")
    return table


@app.callback()
def matmul_commands() -> None:
    """Have a board multiply matrices of 64x64 integers."""


@app.command("run")
def run_command(
    board: Annotated[str, typer.Argument(help="Address of the board.")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port of the role.")] = PORT,
    count: Annotated[int, typer.Option(min=1, max=4096, help="Products.")] = 16,
    pairs: Annotated[
        int, typer.Option(min=1, max=MAX_PAIRS, help="Pairs of matrices a message.")
    ] = 1,
    seed: Annotated[int, typer.Option(help="Of the matrices.")] = 1,
    role: RoleName = None,
    timeout: Seconds = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Send random pairs of matrices; check every product against the golden model."""
    console = Console(stderr=as_json)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("products", total=count)
        run = run_pairs(
            board,
            port,
            count,
            seed,
            pairs,
            timeout,
            lambda done: bar.update(task, completed=done),
            role,
        )
    if as_json:
        typer.echo(json.dumps(as_dict(run), indent=2))
    else:
        console.print(_table(run))
    run.require_exact()
