"""Figures of the job server (docs/jobs.md), on this machine, over loopback.

Each is a ratio or a difference within a pair of runs one after the other, and the median of
:data:`PAIRS` pairs, since a machine that does other things changes both runs of a pair. All
connections have the same congestion control, cubic if there is one: BBR's timers would cost more
than what is compared. Four model nodes with the loopback role; a user that keeps a fixed number of
messages under way (``jobd/src/load.cpp``); the raw echo server of the source (4.2.1), with a
blocking thread for each connection.

=================================  ================================================================
``jobs.cpu_ratio_echo``            processor time of the server for a byte, as a multiple of the
                                   echo server's; the worse of 256 KiB and 1 MiB messages
``jobs.cpu_ratio_copying``         processor time of server, nodes and user for a byte of 256 KiB
                                   messages, as a multiple of that with ``--copy``
``jobs.throughput_ratio_haproxy``  bytes per second of four users with 256 KiB messages, as a
                                   multiple of those through HAProxy's TCP relay with splice, where
                                   each user has a node of its own; both with the system's
                                   congestion control
``jobs.small_ratio_echo``          messages per second, as a share of the echo server's; the worst
                                   of 16, 64, 1024 and 4096 bytes; ``--window 16``, as for jobs
                                   that take less time than the way to the node
``jobs.latency_added_*_us``        round trip of a message of 1 KiB, less that to a node directly
``jobs.latency_unlimited``         median time from a job's arrival to its answer, by the log of
                                   jobs, with a sender that only TCP stops; in service times of the
                                   node (table 4.1)
``jobs.fairness_64``               Jain's index of the answers to 64 users, who keep 4 nodes busy
``jobs.stalled_effect``            share of their jobs per second that eight users lose while
                                   another sends jobs and takes no answers
``jobs.linear_44``                 jobs per second of 44 nodes that take 20 ms, as a share of 44
                                   times those of one
=================================  ================================================================
"""

import contextlib
import csv
import resource
import socket
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..client.smp import data_message
from ..host.jobd_build import FOLDER, LOAD, build
from ..host.measure.figures import jain
from ..host.measure.haproxy import haproxy
from ..host.measure.programs import Program, end_user, nodes, servers, start_user, started
from .job import Sampled, Values

__all__ = ["jobs"]

PAIRS = 10
SECONDS = 0.5
NODES = 4
MEBIBYTE = 1 << 20
LARGE = (MEBIBYTE // 4, MEBIBYTE)
SMALL, LITTLE = 64, 1024
SMALL_SIZES = (16, SMALL, LITTLE, 4096)
#: Messages under way of a user with large and with small ones.
UNDER_WAY, MANY = 16, 64
#: Jobs of a node at a time; the same of small ones; messages under way of a sender that only TCP
#: stops.
WINDOW, WIDE, UNLIMITED = 2, 16, 1024
USERS, GOOD = 64, 8
#: An item of table 4.1: bytes, and microseconds on the node.
ITEM, ITEM_US = 32 << 10, 1117
#: Of the nodes that work: 20 ms; for the users who compete 0.2 ms; 2 ms, so that nodes are the
#: limit on a busy machine, too. At 50 MHz.
SLOW, QUICK, STEADY = 1_000_000, 10_000, 100_000
SCALED = 44


@dataclass(frozen=True)
class Run:
    """One run of a user: its answers, and processor seconds of the server and of all."""

    answers: int
    seconds: float
    p50_us: float
    p99_us: float
    server: float
    everything: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds


def _run(
    port: str,
    size: int,
    under_way: int,
    server: Program,
    *others: Program,
    seconds: float = SECONDS,
) -> Run:
    """Run a user to its end; it must have no error."""
    programs = (server, *others)
    before = [program.cpu() for program in programs]
    mine = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = end_user(start_user(port, size, under_way, seconds))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = [program.cpu() - was for program, was in zip(programs, before, strict=True)]
    user = after.ru_utime + after.ru_stime - mine.ru_utime - mine.ru_stime
    return Run(
        found.answers,
        found.seconds,
        found.p50_us,
        found.p99_us,
        spent[0],
        sum(spent) + user,
    )


def _pairs(first: Callable[[], Run], second: Callable[[], Run]) -> list[tuple[Run, Run]]:
    return [(first(), second()) for _ in range(PAIRS)]


def _median(values: Iterator[float]) -> float:
    return statistics.median(values)


def _large(found: Program) -> Values:
    ports = found.words
    with (
        servers(ports) as (splicing, splice),
        servers(ports, "--copy") as (copying, copy),
        started(build(LOAD), "--echo", 1) as echo,
    ):
        ratios = []
        for size in LARGE:
            pairs = _pairs(
                partial(_run, splice, size, UNDER_WAY, splicing),
                partial(_run, echo.words[0], size, UNDER_WAY, echo),
            )
            ratios.append(_median(a.server / a.answers / (b.server / b.answers) for a, b in pairs))
        pairs = _pairs(
            partial(_run, splice, LARGE[0], UNDER_WAY, splicing, found),
            partial(_run, copy, LARGE[0], UNDER_WAY, copying, found),
        )
        copied = _median(a.everything / a.answers / (b.everything / b.answers) for a, b in pairs)
    return {"jobs.cpu_ratio_echo": max(ratios), "jobs.cpu_ratio_copying": copied}


def _small(found: Program) -> Values:
    ratios = []
    with (
        servers(found.words, "--window", WIDE) as (server, port),
        started(build(LOAD), "--echo", 1) as echo,
    ):
        for size in SMALL_SIZES:
            pairs = _pairs(
                partial(_run, port, size, MANY, server),
                partial(_run, echo.words[0], size, MANY, echo),
            )
            ratios.append(_median(a.rate / b.rate for a, b in pairs))
    with servers(found.words) as (server, port):
        pairs = _pairs(
            partial(_run, port, LITTLE, 1, server), partial(_run, found.words[0], LITTLE, 1, found)
        )
    return {
        "jobs.small_ratio_echo": min(ratios),
        "jobs.latency_added_p50_us": _median(a.p50_us - b.p50_us for a, b in pairs),
        "jobs.latency_added_p99_us": _median(a.p99_us - b.p99_us for a, b in pairs),
    }


def _rates(port: str, count: int, size: int, under_way: int, seconds: float) -> list[float]:
    """Answers per second of users who work at the same time."""
    users = [start_user(port, size, under_way, seconds, "--wait", 1) for _ in range(count)]
    time.sleep(count / 32)  # until all are connected
    for user in users:
        assert user.stdin
        user.stdin.write("\n")
        user.stdin.flush()
    return [end_user(user).rate for user in users]


def _relayed(found: Program) -> float:
    with (
        servers(found.words, own_congestion=False) as (_, port),
        haproxy(found.words) as relay,
    ):
        ratios = []
        for _ in range(PAIRS):
            ours, theirs = (
                sum(_rates(to, NODES, LARGE[0], WINDOW, SECONDS)) for to in (port, relay)
            )
            ratios.append(ours / theirs)
    return statistics.median(ratios)


@contextlib.contextmanager
def _stalled(port: str) -> Iterator[None]:
    """A user that sends jobs until it cannot, and takes no answers."""
    job = data_message(0, bytes(LARGE[0])).pack()
    with socket.create_connection(("127.0.0.1", int(port))) as user:
        user.settimeout(1)
        with contextlib.suppress(TimeoutError):
            while True:
                user.sendall(job)
        yield


def _answered(server: Program) -> float:
    """Jobs that the server has answered so far."""
    place = f"http://127.0.0.1:{server.port('metrics')}/metrics"
    with urllib.request.urlopen(place) as answer:  # noqa: S310
        lines = answer.read().decode().splitlines()
    name = "trebuchet_jobd_jobs_answered_total "
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def _rate_of_good(server: Program, port: str) -> float:
    """Answers per second to users, once all are at work; a busy machine starts them one by one."""
    users = [start_user(port, SMALL, UNDER_WAY, 4 * SECONDS) for _ in range(GOOD)]
    time.sleep(SECONDS)
    begin, before = time.monotonic(), _answered(server)
    time.sleep(2 * SECONDS)
    rate = (_answered(server) - before) / (time.monotonic() - begin)
    for user in users:
        end_user(user)
    return rate


def _stalled_effect() -> float:
    """One minus the median share that is left; less than nothing is the machine's noise."""
    with nodes(NODES, "--cycles", STEADY) as found, servers(found.words) as (server, port):
        shares = []
        for _ in range(PAIRS):
            before = _rate_of_good(server, port)
            with _stalled(port):
                shares.append(_rate_of_good(server, port) / before)
    return max(0.0, 1 - statistics.median(shares))


def _latency_unlimited() -> float:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "jobs.csv"
        work = ("--clock-hz", 1_000_000, "--cycles", ITEM_US)
        with nodes(NODES, *work) as found, servers(found.words, "--job-log", log) as (server, port):
            _run(port, ITEM, UNLIMITED, server, seconds=2.0)
        with log.open() as file:
            rows = list(csv.DictReader(file))
    times = [int(row["ended_us"]) - int(row["arrived_us"]) for row in rows]
    return statistics.median(times) / ITEM_US


def _fairness() -> float:
    with nodes(NODES, "--cycles", QUICK) as found, servers(found.words) as (_, port):
        return jain(_rates(port, USERS, SMALL, UNDER_WAY, 2.0))


def _rate(count: int) -> float:
    with nodes(count, "--cycles", SLOW) as found, servers(found.words) as (server, port):
        run = _run(port, SMALL, 4 * count, server, seconds=2.0)
    return run.rate


def _measure(seed: int) -> Values:
    with nodes(NODES) as found:
        values = _large(found) | _small(found)
        values["jobs.throughput_ratio_haproxy"] = _relayed(found)
    values["jobs.latency_unlimited"] = _latency_unlimited()
    values["jobs.fairness_64"] = _fairness()
    values["jobs.stalled_effect"] = _stalled_effect()
    values["jobs.linear_44"] = _rate(SCALED) / (SCALED * _rate(1))
    return {name: round(value, 3) for name, value in values.items()}


def jobs() -> Sampled:
    """All figures of the job server."""
    sources = sorted((FOLDER / "src").iterdir())
    return Sampled((*sources, FOLDER / "Makefile"), _measure)
