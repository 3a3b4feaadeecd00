"""`trebuchet health`: what the counters of boards say of their links, roles and restarts."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from ..client.discover import discover
from ..client.owner import MANAGEMENT_PORT, split_address
from ..client.status import blocks_of, slots_of
from ..models.errors import AWAY, TrebuchetError
from .options import MAX_SECONDS, Seconds, a_number
from .status import TIMEOUT, fetch_status
from .watch import sleep

__all__ = ["LEAST", "Health", "Limits", "health", "judge"]

#: So few frames of a kind are no trouble, whatever share they are.
LEAST = 10
#: Boards that are asked at a time.
_AT_ONCE = 32
#: Bits of a counter, so many as a board's widest have that wrap.
_WRAP = 1 << 32
_NARROW = 1 << 16
_MILLION = 1_000_000

#: Counters, ``BLOCK.NAME``, that are added up.
_RECEIVED = ("classifier.toe_frames", "classifier.other_frames")
_DAMAGED = ("classifier.errors",)
_CHECKSUMS = ("tcp_rx.ip_checksum", "tcp_rx.tcp_checksum")
_LOST = (
    *("classifier.drops", "tcp_rx.overflow", "tcp.pool_dry"),
    *("udp_echo.overflow", "nic.dropped"),
)
#: Counters of the slot of a burn-in role (:mod:`trebuchet.models.burnin`).
_FAULTS = ("wrong_words", "logic_faults", "multiplier_faults", "ram_faults")
#: What the firmware says of its memory test at start -> what the table shows.
_MEMORY = {"good": "good", "none": "untested", "": "-"}


@dataclass(frozen=True)
class Limits:
    """What a healthy board has at most, or at least.

    Shares are of received frames, in frames per million, and count from :data:`LEAST` frames on.
    """

    uptime: float = 0.0
    restarts: int = 0
    damaged: float = 100.0
    checksums: float = 100.0
    lost: float = 1000.0
    role_resets: int = 0
    sessions: float = 90.0
    faults: int = 0


@dataclass(frozen=True)
class Health:
    """What one board's status says.

    Attributes
    ----------
    uptime_s : float
        Seconds since the start; ``start`` is what caused it.
    restarts : int
        Since power-up.
    received, damaged, checksums, lost : int
        Frames: all, with a wrong FCS, with a wrong IPv4 or TCP checksum, dropped for want of room.
    role_resets : int
        Resets of roles by their watchdogs.
    sessions : float
        Share of the TCP sessions in use, in percent.
    memory_test : str
        Of external memory at start: ``good``; ``none``: not tested; ``""``: not reported.
    faults : int
        Found by the board's burn-in role, if it has one.
    temperature_c : float or None
        None: not measured. No board has a sensor that is read.
    exceeded : list of str
        A line for each limit that is not kept; ``unreachable`` is why there is no status, else "".
    """

    board: str
    uptime_s: float = 0.0
    start: str = ""
    restarts: int = 0
    received: int = 0
    damaged: int = 0
    checksums: int = 0
    lost: int = 0
    role_resets: int = 0
    sessions: float = 0.0
    memory_test: str = ""
    faults: int = 0
    temperature_c: float | None = None
    exceeded: list[str] = field(default_factory=list)
    unreachable: str = ""

    @property
    def good(self) -> bool:
        return not self.exceeded and not self.unreachable


def _counters(state: Mapping[str, Any]) -> dict[str, int]:
    return {
        f"{block}.{name}": value
        for block, counters in blocks_of(state).items()
        for name, value in counters.items()
        if isinstance(value, int)
    }


def _number(state: Mapping[str, Any], name: str) -> int:
    value = state.get(name)
    return value if isinstance(value, int) else 0


def judge(
    board: str, state: Mapping[str, Any], limits: Limits, before: Mapping[str, Any] | None = None
) -> Health:
    """Compare a board's status with limits.

    ``before``: an earlier status of it, since which events count; None: since the board's start.
    If it was started in between, since then.
    """
    now, then = _counters(state), _counters(before or {})
    if before is not None and _number(before, "uptime_ms") > _number(state, "uptime_ms"):
        then = {}

    def total(names: Iterable[str], wrap: int = _WRAP) -> int:
        return sum((now.get(name, 0) - then.get(name, 0)) % wrap for name in names)

    slots = now.get("tcp.sessions", 0)
    used = now.get("tcp.sessions_used", 0)
    found = Health(
        board,
        _number(state, "uptime_ms") / 1000,
        str(state.get("start", "")),
        _number(state, "restarts") - (_number(before, "restarts") if before else 0),
        total(_RECEIVED),
        total(_DAMAGED),
        total(_CHECKSUMS),
        total(name for name in _LOST if name != "nic.dropped") + total(("nic.dropped",), _NARROW),
        total((f"{slot}.hangs" for slot in slots_of(state)), _NARROW),
        100 * used / slots if slots else 0.0,
        str(state.get("memory_test", "")),
        total(name for name in now if name.rpartition(".")[2] in _FAULTS),
    )
    found.exceeded.extend(_exceeded(found, limits))
    return found


def _exceeded(found: Health, limits: Limits) -> Iterable[str]:
    if found.uptime_s < limits.uptime:
        yield f"up for {found.uptime_s:.0f} s only, started by {found.start or '?'}"
    if found.restarts > limits.restarts:
        yield f"restarted {found.restarts} times, last by {found.start or '?'}"
    for what, count, limit in (
        ("damaged", found.damaged, limits.damaged),
        ("with a wrong checksum", found.checksums, limits.checksums),
        ("lost", found.lost, limits.lost),
    ):
        share = _MILLION * count / max(found.received, count, 1)
        if count > LEAST and share > limit:
            yield f"{count} of {found.received} frames {what}: {share:.0f} a million"
    if found.role_resets > limits.role_resets:
        yield f"roles reset {found.role_resets} times by their watchdog"
    if found.sessions > limits.sessions:
        yield f"{found.sessions:.0f}% of the TCP sessions in use"
    if found.faults > limits.faults:
        yield f"{found.faults} faults found by its burn-in role"
    if found.memory_test not in _MEMORY:
        yield f"memory test at start: {found.memory_test}"


def _ask(boards: Sequence[str], timeout: float) -> dict[str, tuple[Mapping[str, Any] | None, str]]:
    """Status of each board, or None and why there is none."""

    def one(board: str) -> tuple[Mapping[str, Any] | None, str]:
        try:
            return fetch_status(board, timeout), ""
        except TrebuchetError as error:
            return None, str(error)

    with ThreadPoolExecutor(min(len(boards), _AT_ONCE)) as pool:
        return dict(zip(boards, pool.map(one, boards), strict=True))


def _examine(boards: Sequence[str], limits: Limits, over: float, timeout: float) -> list[Health]:
    before = _ask(boards, timeout) if over else {}
    if over:
        sleep(over)
    found = []
    for board, (state, reason) in _ask(boards, timeout).items():
        earlier = before.get(board, (None, ""))[0]
        if state is None:
            found.append(Health(board, unreachable=reason))
        else:
            found.append(judge(board, state, limits, earlier))
    return found


def _table(found: Sequence[Health]) -> Table:
    names = ("up", "restarts", "CRC", "sums", "lost", "resets", "TCP", "memory")
    columns = [Column(name, justify="right", no_wrap=True) for name in names]
    table = Table(Column("board", no_wrap=True), *columns, "health", box=None)
    for one in found:
        numbers = (one.restarts, one.damaged, one.checksums, one.lost, one.role_resets)
        cells = [f"{one.uptime_s:.0f} s", *map(str, numbers), f"{one.sessions:.0f}%"]
        cells.append(_MEMORY.get(one.memory_test, one.memory_test) if not one.faults else "faults")
        shown = [""] * len(cells) if one.unreachable else cells
        verdict = Text("good", "green") if one.good else Text("bad", "bold red")
        table.add_row(Text(one.board), *map(Text, shown), verdict)
    return table


def _option(help: str, most: float = MAX_SECONDS, callback: Callable[..., Any] = a_number) -> Any:
    return typer.Option(min=0, max=most, callback=callback, help=help)


_PPM = _MILLION


def health(
    boards: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BOARD",
            help="Addresses, HOST or HOST:PORT. Left out: all that `trebuchet discover` finds.",
            show_default=False,
        ),
    ] = None,
    uptime: Annotated[float, _option("Seconds that it is up at least.", 1e9)] = Limits.uptime,
    restarts: Annotated[
        int, typer.Option(min=0, help="Restarts since power-up, at most.")
    ] = Limits.restarts,
    damaged: Annotated[
        float, _option("Frames with a wrong CRC, of a million received, at most.", _PPM)
    ] = Limits.damaged,
    checksums: Annotated[
        float, _option("Frames with a wrong IPv4 or TCP checksum, likewise.", _PPM)
    ] = Limits.checksums,
    lost: Annotated[
        float, _option("Frames dropped for want of room, likewise.", _PPM)
    ] = Limits.lost,
    role_resets: Annotated[
        int, typer.Option(min=0, help="Resets of roles by their watchdog, at most.")
    ] = Limits.role_resets,
    sessions: Annotated[
        float, _option("Percent of the TCP sessions in use, at most.", 100)
    ] = Limits.sessions,
    faults: Annotated[
        int, typer.Option(min=0, help="Faults that its burn-in role found, at most.")
    ] = Limits.faults,
    over: Annotated[
        float,
        _option("Ask twice, so many seconds apart, and count what happened in between."),
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects only.")] = False,
    timeout: Seconds = TIMEOUT,
) -> None:
    """Say which boards are in good health, by the counters of their status.

    Columns: time since the start, restarts, frames with a wrong CRC, with a wrong checksum, and
    dropped for want of room; resets of roles; TCP sessions in use; the test of external memory at
    start, or `faults` that the burn-in role found. Exit code 1 if a limit is exceeded, or a board
    cannot be reached. Counts are since the start of the board, or with --over of that time; up to
    ten frames of a kind are no trouble. The temperature is not measured: no board has a sensor that
    is read.
    """
    names = boards or [board.address for board in discover()]
    if not names:
        raise TrebuchetError("no board answers a broadcast; name the boards")
    for name in names:
        split_address(name, MANAGEMENT_PORT)
    limits = Limits(uptime, restarts, damaged, checksums, lost, role_resets, sessions, faults)
    found = _examine(list(dict.fromkeys(names)), limits, over, timeout)
    if as_json:
        typer.echo(json.dumps([asdict(one) | {"good": one.good} for one in found], indent=2))
    else:
        Console(markup=False).print(_table(found))
        for one in found:
            for line in [one.unreachable] if one.unreachable else one.exceeded:
                named = line if one.board in line else f"{one.board}: {line}"
                Console(markup=False, highlight=False).print(named, soft_wrap=True)
        if any(one.unreachable.startswith("cannot connect") for one in found):
            Console(markup=False, highlight=False).print(AWAY, soft_wrap=True)
    if not all(one.good for one in found):
        raise typer.Exit(1)
