"""`trebuchet burnin`: load a board's logic, multipliers, RAMs, memory and link, and check all.

Each connection sends messages of a header and a pattern (:mod:`trebuchet.models.burnin`) to the
burn-in role. The role checks the pattern, runs its lanes, and answers with its counts and another
pattern. What TCP carries lies in external memory on its way, in both directions.
"""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from ..client import Batch, Board, Call, MissingPackage
from ..client.errors import BoardError
from ..client.owner import split_address
from ..client.smp import PORT
from ..models import burnin as model
from ..models.errors import TrebuchetError
from .health import Health, Limits, judge
from .options import MAX_SECONDS, RoleName, Seconds, a_number
from .roles import explained
from .status import fetch_status

__all__ = ["Load", "Outcome", "burnin", "run_load"]

#: Messages of a batch, of which two are in flight.
BATCH = 4
#: The golden model computes digests of so many steps; of more, answers are compared with the first.
MODELLED = 50_000
#: Faults that can be planted.
INJECT = {"data": 8, "logic": 1, "multiplier": 2, "ram": 4}
_DATA = INJECT["data"]


@dataclass(frozen=True)
class Load:
    """What is sent: steps of the lanes a message, bytes of pattern there and back, a fault."""

    cycles: int = 20_000
    size: int = 8192
    seed: int = 1
    inject: int = 0

    def operand(self, number: int) -> tuple[int, bytes]:
        """Return seed and operand of a message; the first one has the fault."""
        seed = (self.seed + number % BATCH) & 0xFFFFFFFF
        fault = self.inject if number == 0 else 0
        data = bytearray(model.operand(seed, self.cycles, self.size, self.size, fault % _DATA))
        if fault & _DATA:
            data[-1] ^= 0x80
        return seed, bytes(data)


@dataclass
class Outcome:
    """What came of a run.

    Attributes
    ----------
    messages, received : int
        Messages answered; bytes of pattern in both directions.
    steps, lanes : int
        Steps of the lanes; lanes of the role.
    data, logic, multiplier, ram : int
        What the role found: wrong words of operands, cycles with a mismatch.
    results, digests : int
        Answers whose pattern, or digest of all lanes, was wrong.
    """

    messages: int = 0
    received: int = 0
    steps: int = 0
    lanes: int = 0
    data: int = 0
    logic: int = 0
    multiplier: int = 0
    ram: int = 0
    results: int = 0
    digests: int = 0
    digest_of: dict[int, int] = field(default_factory=dict, repr=False)

    def take(self, load: Load, seed: int, result: bytes, faulty: bool) -> None:
        """Check an answer and count what is wrong with it."""
        report = model.Report.of(result)
        self.messages += 1
        self.received += 2 * load.size
        self.steps += report.cycles
        self.lanes = report.lanes
        self.data += report.wrong
        self.logic += report.logic
        self.multiplier += report.multiplier
        self.ram += report.ram
        expected = model.pattern(seed ^ 0xFFFFFFFF, load.size)
        whole = report.checked == load.size // 4 and report.cycles == load.cycles
        self.results += not whole or result[model.REPORT_BYTES :] != expected
        if faulty:
            return  # its digest has the fault
        if seed not in self.digest_of:
            modelled = load.cycles <= MODELLED
            self.digest_of[seed] = (
                model.run_lanes(seed, load.cycles, report.lanes)[3] if modelled else report.digest
            )
        self.digests += report.digest != self.digest_of[seed]

    @property
    def faults(self) -> dict[str, int]:
        """Return the counts of what was wrong."""
        names = ("data", "logic", "multiplier", "ram", "results", "digests")
        return {name: getattr(self, name) for name in names}


def _form(load: Load) -> Callable[[int, bytes], str | None]:
    size = model.REPORT_BYTES + load.size

    def fault(index: int, result: bytes) -> str | None:
        if len(result) != size:
            return f"a result of {len(result)} bytes, not {size}: is its role burnin?"
        try:
            model.Report.of(result)
        except ValueError as error:
            return f"{error}: is its role burnin?"
        return None

    return fault


def run_load(
    address: str,
    load: Load,
    more: Callable[[int], bool],
    connections: int = 1,
    port: int = PORT,
    timeout: float = 30.0,
    role: str | None = None,
) -> Outcome:
    """Send messages while ``more(messages sent)``; ``role``: its name on the board, or the port's.

    Each connection sends the next batch when it has all answers to the last.
    """
    outcome, lock = Outcome(), threading.Lock()
    sent = 0

    def batch() -> tuple[int, list[tuple[int, bytes]]]:
        nonlocal sent
        with lock:
            first = sent
            numbers: list[int] = []
            while len(numbers) < BATCH and more(sent):
                numbers.append(sent)
                sent += 1
        return first, [load.operand(number) for number in numbers]

    def calls(operands: list[bytes]) -> Call[list[bytes]]:
        largest = model.REPORT_BYTES + load.size
        return (yield Batch(role, operands, pure=True, largest=largest, fault=_form(load)))

    def connection(_: int) -> None:
        with (
            Board(address, port=port, timeout=timeout, in_flight=2) as board,
            explained(board, role, "burnin"),
        ):
            while True:
                first, messages = batch()
                if not messages:
                    return
                results = board.run(calls([data for _, data in messages]))
                with lock:
                    for k, (message, result) in enumerate(zip(messages, results, strict=True)):
                        faulty = first + k == 0 and load.inject > 0
                        outcome.take(load, message[0], result, faulty)

    with ThreadPoolExecutor(connections) as pool:
        try:
            for done in [pool.submit(connection, k) for k in range(connections)]:
                done.result()
        finally:
            with lock:
                sent = 1 << 62  # the others end when one fails
    return outcome


def _status(address: str, timeout: float) -> dict[str, Any] | None:
    """Return the board's status; None of a board without a processor.

    A port in the address is the role's.
    """
    host, _ = split_address(address.partition("@")[0], PORT)
    try:
        return fetch_status(host, timeout)
    except (BoardError, MissingPackage):
        return None


def _table(outcome: Outcome, seconds: float, health: Health | None) -> Table:
    table = Table("what", "value", box=None)
    table.add_row("messages", f"{outcome.messages} in {seconds:.1f} s")
    table.add_row("pattern", f"{outcome.received / 1e6:,.3f} MB there and back")
    table.add_row("lanes", f"{outcome.lanes}, {outcome.steps:,} steps each")
    for name, count in outcome.faults.items():
        table.add_row(name, "good" if count == 0 else f"{count} wrong")
    if health is None:
        table.add_row("link", "not known: the board has no status page")
    else:
        told = f"{health.damaged} CRC errors, {health.checksums} wrong checksums"
        table.add_row("link", f"{told}, {health.lost} frames lost")
        table.add_row("resets", f"{health.role_resets} of roles, {health.restarts} of the board")
    return table


def _fault_number(name: str) -> int:
    if name and name not in INJECT:
        raise typer.BadParameter(f"must be one of {', '.join(INJECT)}, not {name!r}")
    return INJECT.get(name, 0)


def burnin(
    board: Annotated[str, typer.Argument(help="Address of the board.")],
    messages: Annotated[int, typer.Option(min=1, help="Messages, without --minutes.")] = 64,
    minutes: Annotated[
        float, typer.Option(min=0, max=MAX_SECONDS, callback=a_number, help="Run so long instead.")
    ] = 0,
    cycles: Annotated[
        int, typer.Option(min=0, max=model.MOST_CYCLES, help="Steps of the lanes a message.")
    ] = 20_000,
    size: Annotated[
        int,
        typer.Option(
            "--bytes", min=0, max=1 << 16, help="Pattern a message, each way; a multiple of 16."
        ),
    ] = 8192,
    connections: Annotated[
        int, typer.Option(min=1, max=64, help="TCP connections, each with memory of its own.")
    ] = 2,
    inject: Annotated[
        str,
        typer.Option(
            metavar="FAULT",
            help=f"Plant a fault in the first message, which must be found: {', '.join(INJECT)}.",
        ),
    ] = "",
    seed: Annotated[int, typer.Option(min=0, max=0xFFFFFFFF, help="Of the patterns.")] = 1,
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port of the role.")] = PORT,
    role: RoleName = None,
    timeout: Seconds = 60,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Load a board's logic, multipliers, RAMs, memory and link, and check all they return.

    The board has the role `burnin`; for the simulated one: trebuchet sim --role burnin. Exit code 1
    if anything was wrong: a word, a product, an answer, or the board's health (`trebuchet health`).
    """
    if size % 16:
        raise typer.BadParameter(f"must be a multiple of 16, not {size}", param_hint="--bytes")
    if inject == "data" and not size:
        raise typer.BadParameter("'data' needs --bytes above 0", param_hint="--inject")
    load = Load(cycles, size, seed, _fault_number(inject))
    console = Console(stderr=as_json)
    before = _status(board, timeout)
    start = time.monotonic()
    total = 60 * minutes or messages
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("burn-in", total=total)

        def more(sent: int) -> bool:
            done = time.monotonic() - start if minutes else sent
            bar.update(task, completed=min(done, total))
            return done < total

        outcome = run_load(board, load, more, connections, port, timeout, role)
    seconds = time.monotonic() - start
    after = _status(board, timeout) if before is not None else None
    health = None
    if before is not None:
        if after is None:
            raise TrebuchetError(f"{board} does not answer any more; is it still powered?")
        # What the role found is in `outcome`, which knows of what.
        health = judge(board, after, Limits(faults=1 << 32), before)
    wrong = [f"{count} {name}" for name, count in outcome.faults.items() if count]
    wrong += health.exceeded if health is not None else []
    if as_json:
        said = {
            "messages": outcome.messages,
            "bytes": outcome.received,
            "seconds": seconds,
            "steps": outcome.steps,
            "lanes": outcome.lanes,
            "faults": outcome.faults,
            "health": None if health is None else asdict(health),
            "good": not wrong,
        }
        typer.echo(json.dumps(said, indent=2))
    else:
        console.print(_table(outcome, seconds, health))
    if wrong:
        raise TrebuchetError(f"{board} is not in order: {'; '.join(wrong)}")
