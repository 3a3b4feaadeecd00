"""Native programs of `jobd/` for measurements: model nodes, job servers, echo servers, users.

All have the same congestion control, cubic if there is one: BBR's timers would cost more than what
is compared.
"""

import contextlib
import json
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...models.errors import TrebuchetError
from ..jobd import connected_nodes
from ..jobd_build import JOBD, LOAD, NODE, build

__all__ = ["Program", "User", "congestion", "end_user", "nodes", "servers", "start_user", "started"]

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_LARGEST_MESSAGE = 2 << 20
#: Seconds until all nodes are connected.
_PATIENCE = 60.0


def congestion() -> list[str]:
    """Return the option of all programs for their congestion control."""
    known = _AVAILABLE.read_text().split() if _AVAILABLE.exists() else []
    return ["--congestion", "cubic"] if "cubic" in known else []


class Program:
    """A native program with open ports: the words behind the colon of its first line.

    What it logs is shown if it does not start. ``own_congestion``: as all programs here; else the
    system's congestion control.
    """

    def __init__(self, *command: object, own_congestion: bool = True) -> None:
        own = congestion() if own_congestion else []
        words = [str(word) for word in (*command, *own)]
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self._log.seek(0)
            said = " ".join(self._log.read().split()) or "it said nothing"
            self.stop()
            raise TrebuchetError(f"{Path(words[0]).name} did not start: {said[-200:]}")
        self.words = line.partition(":")[2].split()

    def port(self, name: str) -> int:
        """The port behind a word of the first line."""
        return int(self.words[self.words.index(name) + 1])

    def cpu(self) -> float:
        """Processor seconds so far, those of ended threads included."""
        clock = (~self.process.pid << 3) | 2  # CPUCLOCK_SCHED of another process, as in glibc
        return time.clock_gettime(clock)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self._log.close()


@contextlib.contextmanager
def started(*command: object, own_congestion: bool = True) -> Iterator[Program]:
    """A program that ends with the block."""
    program = Program(*command, own_congestion=own_congestion)
    try:
        yield program
    finally:
        program.stop()


@contextlib.contextmanager
def nodes(count: int, *options: object, segment: int = _LARGEST_MESSAGE) -> Iterator[Program]:
    """Model nodes that take messages of up to ``segment`` bytes."""
    size = ("--segment", segment)
    with started(build(NODE), "--port", 0, "--boards", count, *size, *options) as program:
        yield program


@contextlib.contextmanager
def servers(
    ports: Sequence[str], *options: object, own_congestion: bool = True
) -> Iterator[tuple[Program, str]]:
    """A job server with nodes at these ports, all connected, and its port for users."""
    places = [word for port in ports for word in ("--node", f"127.0.0.1:{port}")]
    given = ("--user-port", 0, "--node-port", 0, "--metrics-port", 0, "--configured")
    command = (build(JOBD), *given, *places, *options)
    with started(*command, own_congestion=own_congestion) as program:
        _wait_for(program.port("metrics"), len(ports))
        yield program, str(program.port("users"))


def _wait_for(metrics: int, count: int) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics") as answer:  # noqa: S310
            if connected_nodes(answer.read().decode()) == count:
                return
        time.sleep(0.01)
    raise TrebuchetError(f"the job server did not connect to its {count} nodes")


@dataclass(frozen=True)
class User:
    """What a native user (`jobd/src/load.cpp`) found: answers, seconds, latencies."""

    answers: int
    seconds: float
    p50_us: float
    p99_us: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds if self.seconds > 0 else 0.0


def start_user(
    port: str, size: int, under_way: int, seconds: float, *more: object
) -> "subprocess.Popen[str]":
    """Start a user with so many messages of ``size`` bytes under way."""
    options = {"server": f"127.0.0.1:{port}", "bytes": size, "outstanding": under_way}
    options["seconds"] = seconds
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    command = [str(word) for word in (build(LOAD), *words, *congestion(), *more)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def end_user(user: "subprocess.Popen[str]", line: str | None = None) -> User:
    """Wait for a user; it must have no error. ``line``: what it waits for."""
    printed, _ = user.communicate(line)
    found: dict[str, Any] = json.loads(printed or "{}")
    if not found or found["errors"] or not found["answers"]:
        raise TrebuchetError(f"the native user had no answers: {printed.strip() or 'no result'}")
    return User(found["answers"], found["seconds"], found["p50_us"], found["p99_us"])
