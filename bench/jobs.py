"""Figures of the job server (docs/jobs.md), on this machine, over loopback.

Each is a ratio or a difference within a pair of runs one after the other, and the median of
:data:`PAIRS` pairs, since a machine that does other things changes both runs of a pair. All
connections have the same congestion control, cubic if there is one: BBR's timers would cost more
than what is compared. Four model nodes with the loopback role; a user that keeps a fixed number of
messages under way (``jobd/src/load.cpp``); the raw echo server of the source (4.2.1), with a
blocking thread for each connection.

===========================  ===================================================================
``jobs.cpu_ratio_echo``      processor time of the server for a byte, as a multiple of the echo
                             server's; the worse of 256 KiB and 1 MiB messages
``jobs.cpu_ratio_copying``   processor time of server, nodes and user for a byte of 256 KiB
                             messages, as a multiple of that with ``--copy``
``jobs.small_ratio_echo``    messages of 64 bytes per second, as a share of the echo server's
``jobs.latency_added_*_us``  round trip of a message of 1 KiB, less that to a node directly
``jobs.fairness_64``         Jain's index of the answers to 64 users, who keep 4 nodes busy
``jobs.linear_44``           jobs per second of 44 nodes that take 20 ms, as a share of 44 times
                             those of one
===========================  ===================================================================
"""

import resource
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from ..host.jobd_build import FOLDER, LOAD, build
from ..host.measure.figures import jain
from ..host.measure.programs import Program, end_user, nodes, servers, start_user, started
from .job import Sampled, Values

__all__ = ["jobs"]

PAIRS = 10
SECONDS = 0.5
NODES = 4
MEBIBYTE = 1 << 20
LARGE = (MEBIBYTE // 4, MEBIBYTE)
SMALL, LITTLE = 64, 1024
#: Messages under way of a user with large and with small ones.
UNDER_WAY, MANY = 16, 64
USERS = 64
#: Of the nodes that work: 20 ms, and for the users who compete 0.2 ms, at 50 MHz.
SLOW, QUICK = 1_000_000, 10_000
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
    with servers(found.words) as (server, port), started(build(LOAD), "--echo", 1) as echo:
        pairs = _pairs(
            partial(_run, port, SMALL, MANY, server),
            partial(_run, echo.words[0], SMALL, MANY, echo),
        )
        ratio = _median(a.answers / a.seconds / (b.answers / b.seconds) for a, b in pairs)
        pairs = _pairs(
            partial(_run, port, LITTLE, 1, server), partial(_run, found.words[0], LITTLE, 1, found)
        )
    return {
        "jobs.small_ratio_echo": ratio,
        "jobs.latency_added_p50_us": _median(a.p50_us - b.p50_us for a, b in pairs),
        "jobs.latency_added_p99_us": _median(a.p99_us - b.p99_us for a, b in pairs),
    }


def _fairness() -> float:
    with nodes(NODES, "--cycles", QUICK) as found, servers(found.words) as (_, port):
        users = [start_user(port, SMALL, UNDER_WAY, 2.0, "--wait", 1) for _ in range(USERS)]
        time.sleep(2)  # until all are connected
        for user in users:
            assert user.stdin
            user.stdin.write("\n")
            user.stdin.flush()
        answers = [end_user(user).answers for user in users]
    return jain(answers)


def _rate(count: int) -> float:
    with nodes(count, "--cycles", SLOW) as found, servers(found.words) as (server, port):
        run = _run(port, SMALL, 4 * count, server, seconds=2.0)
    return run.answers / run.seconds


def _measure(seed: int) -> Values:
    with nodes(NODES) as found:
        values = _large(found) | _small(found)
    values["jobs.fairness_64"] = _fairness()
    values["jobs.linear_44"] = _rate(SCALED) / (SCALED * _rate(1))
    return {name: round(value, 3) for name, value in values.items()}


def jobs() -> Sampled:
    """All figures of the job server."""
    sources = sorted((FOLDER / "src").iterdir())
    return Sampled((*sources, FOLDER / "Makefile"), _measure)
