"""`trebuchet demo --boards N`: simulated boards behind a job server share a record.

Boards, job server and users are on the simulated network, and are what they would be with real
boards: `trebuchet jobd` connects to the boards' port 4000, and `trebuchet ecg run --independent`
sends the record's blocks over one connection a user. Each result is compared with the golden
model's. What each board did is counted twice, by its status page and by the job server's log, and
both must agree.
"""

import importlib
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table

from ..client.smp import PORT
from ..models.errors import TrebuchetError
from ..models.steps import Step
from .demo import (
    Network,
    compile_board,
    cycles_per_transaction,
    engine_counters,
    run_ecg,
    simulator,
    trebuchet,
)
from .jobd import connected_nodes
from .jobd_build import JOBD, build
from .schedule_plot import LoggedJob, busy_share, draw_schedule, read_job_log

__all__ = [
    "FleetNetwork",
    "Place",
    "demonstrate",
    "schedule_path",
    "share_record",
    "work_of_each",
]

#: Seconds of the simulation for a status page of one processor among several, and for all
#: connections to be there.
STATUS_SECONDS, CONNECT_SECONDS = 200, 120
#: Seconds of wall time for an answer of a simulated board; a day and more on a busy machine would
#: be no fault of it.
_PATIENT = ["--patience", "86400", "--message-timeout", "86400"]


class FleetNetwork(Network, Protocol):
    """What this demo needs of :class:`trebuchet.sim.fleet.run.Fleet`."""

    def popen(self, command: list[str], **options: Any) -> Any: ...

    def socket(self) -> Any: ...


@dataclass(frozen=True)
class Place:
    """A board: what it is called, ``HOST:PORT`` of its role, address of its status page."""

    name: str
    role: str
    status: str


def schedule_path(picture: Path) -> Path:
    """Where the second picture goes: beside the first, of the same kind."""
    return picture.with_name(f"{picture.stem}-schedule{picture.suffix}")


@contextmanager
def simulated_boards(count: int, console: Console) -> Iterator[tuple[FleetNetwork, list[Place]]]:
    """Boards that differ in their addresses, compiled if need be, up and serving."""
    begin = time.monotonic()
    _, binary = compile_board("the simulated boards", simulator("fleet.build").build_fleet)
    # Without connections among each other, so that they are built as the single board is.
    topology = simulator("fleet.topology").parse(
        {"boards": [{"name": f"board{k}"} for k in range(count)]}
    )
    folders: list[Path] = []
    with Step("compiling each board's firmware", 5 * count, lambda: (len(folders), count), "board"):
        make = simulator("fleet.firmware").board_folder
        files = importlib.import_module("trebuchet.soc.build").build_sim()
        for board in topology.boards:
            folders.append(make(files, topology, board))
    with simulator("fleet.run").Fleet(topology, binary, folders) as fleet:
        with Step(f"starting {count} boards", 8 * count):
            fleet.wait_ready(100 * count)
        console.print(f"{count} simulated boards are up after {time.monotonic() - begin:.1f} s")
        places = [Place(board.name, f"{board.ip}:{PORT}", board.ip) for board in topology.boards]
        yield fleet, places


@contextmanager
def job_server(network: FleetNetwork, places: Sequence[Place], log: Path) -> Iterator[int]:
    """A job server with all boards connected, and its port for users; ``log`` has its jobs."""
    ports = ["--user-port", "0", "--node-port", "0", "--metrics-port", "0"]
    nodes = [word for place in places for word in ("--node", place.role)]
    command = trebuchet("jobd", *ports, *nodes, "--configured", "--job-log", str(log), *_PATIENT)
    with network.popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            words = process.stdout.readline().split()
            if "users" not in words:
                process.kill()
                said = process.stderr.read().strip().splitlines() or ["it gave no reason"]
                raise TrebuchetError(f"the job server did not start: {said[-1]}")
            users, metrics = (int(words[words.index(w) + 1]) for w in ("users", "metrics"))
            _wait_for_nodes(network, metrics, len(places))
            yield users
        finally:
            process.terminate()


def _wait_for_nodes(network: FleetNetwork, metrics: int, count: int) -> None:
    with Step(f"connecting the job server to {count} boards", 2):
        end = time.monotonic() + CONNECT_SECONDS
        while _connected(network, metrics) < count:
            if time.monotonic() > end:
                raise TrebuchetError(
                    f"the job server did not connect to its {count} boards in {CONNECT_SECONDS} s"
                )
            time.sleep(0.1)


def _connected(network: FleetNetwork, metrics: int) -> int:
    answer = b""
    with network.socket() as connection:
        connection.settimeout(CONNECT_SECONDS)
        connection.connect(("127.0.0.1", metrics))
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        while data := connection.recv(1 << 16):
            answer += data
    return connected_nodes(answer.decode())


def share_record(
    network: FleetNetwork,
    places: Sequence[Place],
    users: int,
    options: Sequence[str],
    picture: Path,
    timeout: float,
    console: Console,
) -> None:
    """Send a record to the boards through a job server; print and draw what each board did.

    ``options``: of `trebuchet ecg run`; ``picture``: where the schedule goes.
    """
    log = picture.with_suffix(".csv")
    before = [engine_counters(network, place.status, STATUS_SECONDS) for place in places]
    with job_server(network, places, log) as port:
        # Two jobs for each board, and one that waits, so that no board is ever without.
        outstanding = -(-3 * len(places) // users)
        words = ["127.0.0.1", "--port", str(port), "--independent", "--preset", "faithful"]
        words += ["--connections", str(users), "--outstanding", str(min(outstanding, 64))]
        seconds = run_ecg(network, [*words, *options], timeout)
    after = [engine_counters(network, place.status, STATUS_SECONDS) for place in places]
    jobs = read_job_log(log)
    console.print(work_of_each(places, before, after, jobs))
    console.print(f"\n{len(jobs)} transactions of {users} users; {seconds:.1f} s of wall time")
    title = f"{len(jobs)} jobs of {users} users on {len(places)} boards"
    draw_schedule(jobs, picture, {place.role: place.name for place in places}, title)


def work_of_each(
    places: Sequence[Place],
    before: Sequence[dict[str, dict[str, int]]],
    after: Sequence[dict[str, dict[str, int]]],
    jobs: Sequence[LoggedJob],
) -> Table:
    """What each board did; raises if board and job server do not count the same jobs."""
    logged = Counter(job.node for job in jobs if job.outcome == "OK")
    table = Table("board", title="transactions per board", title_justify="left", box=None)
    for column in ("transactions", "cycles each", "busy"):
        table.add_column(column, justify="right")
    for place, earlier, later in zip(places, before, after, strict=True):
        counted, cycles = (0, 0.0)
        if earlier["ecg"]["jobs"] != later["ecg"]["jobs"]:
            counted, cycles = cycles_per_transaction(earlier, later)
        if counted != logged[place.role]:
            raise TrebuchetError(
                f"{place.name} counted {counted} transactions, the job server "
                f"{logged[place.role]}: jobs were lost, or done twice"
            )
        share = busy_share(jobs, place.role)
        table.add_row(place.name, str(counted), f"{cycles:,.0f}", f"{share:.0%}")
    return table


def demonstrate(
    boards: int,
    users: int,
    options: Sequence[str],
    plot: Path,
    timeout: float,
    console: Console,
) -> None:
    """Run the demo with so many boards: `trebuchet demo --boards`."""
    with Step("compiling the job server", 60):
        build(JOBD)
    picture = schedule_path(plot)
    with simulated_boards(boards, console) as (fleet, places):
        share_record(fleet, places, users, options, picture, timeout, console)
    console.print(f"see {plot} and {picture}")
