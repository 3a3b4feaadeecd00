"""The measurements of *distributed-fpga-framework*, chapter 4, with model nodes on this machine.

Each function measures one figure or table and returns a :class:`Figure`: our points, and the
paper's. The server has the job server's defaults but for the policy; ``--congestion`` as in
:mod:`.programs`. Model nodes have the delays of the paper's nodes, so that what is compared is the
server. A user is the native one where only throughput and percentiles are asked for, and the
generator of this package where starts are limited in rate.
"""

import hashlib
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from ...client.smp import Configuration
from ...models.errors import TrebuchetError
from ...models.kept import kept
from ...models.paths import build_folder
from ..jobd_build import LOAD, build
from . import paper_values as values
from .connection import Clock, Connection, Place, Transfer
from .generator import Load, run_paced
from .programs import User, end_user, nodes, servers, start_user, started
from .traffic import Traffic

__all__ = ["FIGURES", "Figure", "Name", "Scope"]

KIBI, MEBI = 1 << 10, 1 << 20
#: Bytes of two operands and of a result of a 64x64 product (4.3.2.3).
OPERANDS, PRODUCT = 32 * KIBI, 16 * KIBI
#: Microseconds of a product on the paper's node: one a message, four a message (4.4.1).
ONE_US, FOUR_US = 1117, 949
#: Model nodes count in microseconds.
MICROSECONDS = ("--clock-hz", 1_000_000)
#: Messages under way of a sender that only the peer's back-pressure stops.
UNLIMITED = 1024
#: The job server's window: jobs of a node at a time.
WINDOW = 2
KHZ = (1, 2, 5, 10, 50, 100)


class Name(StrEnum):
    ECHO = "figure-4.1"
    SERVER = "figure-4.3"
    NODE = "figure-4.5"
    CONFIGURED = "figure-4.10"
    ONE_ITEM = "table-4.1"
    FOUR_ITEMS = "table-4.2"
    RATES = "table-4.3"
    SPEED_UP = "speed-up"
    SCALE_OUT = "scale-out"


@dataclass(frozen=True)
class Scope:
    """How much is measured: seconds of each point; ``quick``: few points, for a test."""

    seconds: float = 2.0
    quick: bool = False
    tell: Callable[[str], None] = lambda line: None

    def some(self, points: Any, wanted: int = 2) -> list[Any]:
        """All points, or the first ones."""
        found = list(points)
        return found[:wanted] if self.quick else found


@dataclass
class Figure:
    """Points ``(x, y)`` by series, and rows with all that was measured.

    ``panels``: of each diagram the label of its y axis, our series and the paper's.
    """

    title: str
    x: str
    panels: dict[str, tuple[dict[str, list[Any]], dict[str, list[Any]]]] = field(
        default_factory=dict
    )
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, panel: str, series: str, x: float, y: float, paper: float | None = None) -> None:
        ours, theirs = self.panels.setdefault(panel, ({}, {}))
        ours.setdefault(series, []).append((x, y))
        if paper is not None:
            theirs.setdefault(series, []).append((x, paper))


def _user(port: str, size: int, under_way: int, seconds: float) -> User:
    return end_user(start_user(port, size, under_way, seconds))


def _sizes(first: int, last: int, factor: int = 4) -> Iterator[int]:
    while first <= last:
        yield first
        first *= factor


@contextmanager
def _configured(port: str, input_size: int, output_size: int, delay: int) -> Iterator[None]:
    """Set up all nodes by the benchmarking configuration of 4.2.2."""
    made = Configuration(input_size, output_size, (), delay.to_bytes(4, "little"))
    transfer = Transfer(Traffic.ROLE, 16, memoryview(bytes(16)), made)
    Connection(Place("127.0.0.1", int(port)), transfer, Clock(), 30.0).close()
    yield


def echo(scope: Scope) -> Figure:
    """Throughput of the raw echo server by payload, 1 to 4 clients (4.2.1)."""
    figure = Figure("SMP echo server", "bytes of a payload")
    panel = "Gb/s"
    with started(build(LOAD), "--echo", 1) as server:
        port = server.words[0]
        for clients in scope.some((1, 2, 3, 4)):
            for size in scope.some(_sizes(1, 16 * MEBI)):
                scope.tell(f"{clients} clients, {size} bytes")
                users = [start_user(port, size, 16, scope.seconds) for _ in range(clients)]
                found = [end_user(user) for user in users]
                rate = sum(user.rate for user in found)
                gigabits = rate * size * 8e-9
                figure.rows.append(
                    {"clients": clients, "size": size, "gbit_per_s": gigabits, "per_s": rate}
                )
                figure.add(panel, f"{clients} clients", size, gigabits)
    figure.panels[panel][1]["from 4 KiB on"] = list(values.ECHO_GBIT.items())
    return figure


def server(scope: Scope) -> Figure:
    """Throughput and latency of the server, queue and stack, 1 to 4 nodes without delay (4.2.2)."""
    figure = Figure("server, nodes without delay", "bytes of a message")
    with nodes(4, segment=32 * MEBI) as found:
        for policy in ("queue", "stack"):
            for count in scope.some((1, 2, 3, 4)):
                for size in scope.some(_sizes(16, 16 * MEBI)):
                    scope.tell(f"{policy}, {count} nodes, {size} bytes")
                    options = ("--policy", policy, "--largest", 32 * MEBI)
                    with servers(found.words[:count], *options) as (_, port):
                        user = _user(port, size, UNLIMITED, scope.seconds)
                    _server_point(figure, policy, count, size, user)
    for (policy, count), (best, at, least) in values.SERVER.items():
        if f"{policy}, {count}" in figure.panels["Gb/s"][0]:
            figure.panels["Gb/s"][1][f"{policy}, {count}"] = [(at, best)]
            figure.panels["ms, median"][1][f"{policy}, {count}"] = [(256 * KIBI, least)]
    return figure


def _server_point(figure: Figure, policy: str, count: int, size: int, user: User) -> None:
    gigabits = user.rate * size * 8e-9
    row = {"policy": policy, "nodes": count, "size": size, "gbit_per_s": gigabits}
    figure.rows.append(row | {"p50_ms": user.p50_us / 1e3, "p99_ms": user.p99_us / 1e3})
    figure.add("Gb/s", f"{policy}, {count}", size, gigabits)
    figure.add("ms, median", f"{policy}, {count}", size, user.p50_us / 1e3)


def node(scope: Scope) -> Figure:
    """Throughput of an isolated node without computation, by size (4.2.3)."""
    figure = Figure("one node, no computation", "bytes of a message")
    with nodes(1) as found:
        for size in scope.some(_sizes(64, 1 * MEBI, 2)):
            scope.tell(f"{size} bytes")
            user = _user(found.words[0], size, WINDOW, scope.seconds)
            megabits = user.rate * size * 8e-6
            figure.rows.append({"size": size, "mbit_per_s": megabits, "p50_us": user.p50_us})
            figure.add("Mb/s", "model node", size, megabits)
    figure.panels["Mb/s"][1]["node"] = [values.NODE]
    return figure


def configured(scope: Scope) -> Figure:
    """A node with 1 to 10 instances, 1 to 5 products a message (4.4.1).

    An instance is a model board with the core's 7 ms a product; the server stands for the node's
    manager. So what the paper's node loses by context switches is not modelled.
    """
    figure = Figure("instances and items per message", "instances")
    for items in scope.some(range(1, 6)):
        for instances in scope.some(range(1, 11), 3):
            scope.tell(f"{items} items, {instances} instances")
            delay = 7000 * items
            with (
                nodes(instances, *MICROSECONDS) as found,
                servers(found.words) as (_, port),
                _configured(port, items * OPERANDS, items * PRODUCT, delay),
            ):
                under_way = WINDOW * instances + 2
                user = _user(port, items * OPERANDS, under_way, scope.seconds)
            megabytes = user.rate * items * OPERANDS / 1e6
            row = {"items": items, "instances": instances, "mbyte_per_s": megabytes}
            figure.rows.append(row | {"us_per_product": 1e6 / (user.rate * items)})
            figure.add("MB/s of input", f"{items} items", instances, megabytes)
        best = values.CONFIGURED[items]
        figure.panels["MB/s of input"][1][f"best, {items} items"] = [(1, best), (10, best)]
    return figure


def _table(scope: Scope, items: int, delay: int, paper: dict[int, Any], title: str) -> Figure:
    """Tables 4.1 and 4.2: an unlimited sender, and one that has as much under way as nodes take."""
    figure = Figure(title, "nodes")
    size = items * OPERANDS
    for count in scope.some(paper):
        with (
            nodes(count, *MICROSECONDS) as found,
            servers(found.words) as (_, port),
            _configured(port, size, items * PRODUCT, delay),
        ):
            for sender, under_way in (("unlimited", UNLIMITED), ("bounded", WINDOW * count + 2)):
                scope.tell(f"{count} nodes, {sender} sender")
                user = _user(port, size, under_way, scope.seconds)
                megabits, milliseconds = user.rate * size * 8e-6, user.p50_us / 1e3
                row = {"nodes": count, "sender": sender, "mbit_per_s": megabits}
                row |= {"p50_ms": milliseconds, "p99_ms": user.p99_us / 1e3}
                row["share_of_nodes"] = user.rate * delay * 1e-6 / count
                figure.rows.append(row)
                known = paper[count] if sender == "unlimited" else (None, None)
                figure.add("Mb/s of input", sender, count, megabits, known[0])
                figure.add("ms, median", sender, count, milliseconds, known[1])
    return figure


def one_item(scope: Scope) -> Figure:
    """1 to 42 nodes, one product a message, no limit of rate (table 4.1)."""
    return _table(scope, 1, ONE_US, values.ONE_ITEM, "one item a message")


def four_items(scope: Scope) -> Figure:
    """1 to 44 nodes, four products a message, no limit of rate (table 4.2)."""
    return _table(scope, 4, 4 * FOUR_US, values.FOUR_ITEMS, "four items a message")


def rates(scope: Scope) -> Figure:
    """1 to 28 nodes, one product a message, 1 to 100 thousand messages a second (4.3, 4.4)."""
    figure = Figure("one item a message, limited rate", "nodes")
    payload = memoryview(bytes(OPERANDS))
    for count in scope.some(values.RATES_MBIT):
        with (
            nodes(count, *MICROSECONDS) as found,
            servers(found.words) as (_, port),
            _configured(port, OPERANDS, PRODUCT, ONE_US),
        ):
            for place, khz in enumerate(scope.some(KHZ)):
                scope.tell(f"{count} nodes, {khz} kHz")
                transfer = Transfer(Traffic.ROLE, OPERANDS, payload)
                address = Place("127.0.0.1", int(port))
                load = Load([address], transfer, in_flight=UNLIMITED, seconds=scope.seconds)
                run = run_paced(load, khz * 1e3)
                mean = sum(run.latencies) / run.transfers * 1e3
                row = {"nodes": count, "khz": khz, "mbit_per_s": run.megabits(), "mean_ms": mean}
                figure.rows.append(row | {"generator_cpu": run.cpu})
                series, of_paper = f"{khz} kHz", (values.RATES_MBIT, values.RATES_MS)
                known = [table[count][place] for table in of_paper]
                figure.add("Mb/s of input", series, count, run.megabits(), known[0])
                figure.add("ms, mean", series, count, mean, known[1])
    return figure


def _compile(folder: Path) -> None:
    source = Path(__file__).with_name("multiply.cpp")
    command = ["g++", "-std=c++20", "-O3", "-march=native"]
    try:
        command += ["-o", str(folder / "multiply"), str(source)]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise TrebuchetError(
            "the software baseline needs g++; install it with: sudo apt-get install g++"
        ) from error


def software(seconds: float) -> float:
    """MB/s of input of the software baseline on this machine (4.5)."""
    text = Path(__file__).with_name("multiply.cpp").read_bytes() + socket.gethostname().encode()
    folder = kept(build_folder("measure") / hashlib.sha256(text).hexdigest()[:20], _compile)
    printed = subprocess.check_output([folder / "multiply", str(seconds)], text=True).split()
    return int(printed[0]) * OPERANDS / 1e6 / float(printed[1])


def speed_up(scope: Scope) -> Figure:
    """Four products a message on 4 to 36 nodes, over software on this machine (4.5, 4.6)."""
    figure = Figure("speed-up over software on one core", "nodes")
    scope.tell("software")
    baseline = software(scope.seconds)
    size, delay = 4 * OPERANDS, 4 * FOUR_US
    for count in scope.some(values.SPEED_UP):
        scope.tell(f"{count} nodes")
        with (
            nodes(count, *MICROSECONDS) as found,
            servers(found.words) as (_, port),
            _configured(port, size, 4 * PRODUCT, delay),
        ):
            user = _user(port, size, WINDOW * count + 2, scope.seconds)
        megabytes = user.rate * size / 1e6
        row = {"nodes": count, "mbyte_per_s": megabytes, "software_mbyte_per_s": baseline}
        row["paper_software_mbyte_per_s"] = values.SOFTWARE_MB
        ratio, of_paper = megabytes / baseline, megabytes / values.SOFTWARE_MB
        figure.rows.append(row | {"speed_up": ratio, "over_paper_software": of_paper})
        figure.add("speed-up", "over this machine's software", count, ratio)
        known = values.SPEED_UP[count]
        figure.add("speed-up", "over the paper's software", count, of_paper, known)
    return figure


def scale_out(scope: Scope) -> Figure:
    """Jobs a second of 1, 2, 4 and 8 boards: long jobs, and large messages without delay.

    Beside it *fpga-cloud-performance*, figure 3: its boards share work by other means.
    """
    figure = Figure("boards together", "boards")
    for series, size, delay in (("1 KiB, 2 ms", KIBI, 2000), ("128 KiB, 0 ms", 128 * KIBI, 0)):
        first = 0.0
        for count in scope.some((1, 2, 4, 8)):
            scope.tell(f"{series}, {count} boards")
            with (
                nodes(count, *MICROSECONDS, "--cycles", delay) as found,
                servers(found.words) as (_, port),
            ):
                user = _user(port, size, WINDOW * count + 2, scope.seconds)
            first = first or user.rate
            figure.rows.append(
                {"load": series, "boards": count, "per_s": user.rate, "speed_up": user.rate / first}
            )
            figure.add("speed-up over one board", series, count, user.rate / first)
    for name, points in values.SCALE_OUT.items():
        figure.panels["speed-up over one board"][1][name] = list(points.items())
    return figure


FIGURES: dict[Name, Callable[[Scope], Figure]] = {
    Name.ECHO: echo,
    Name.SERVER: server,
    Name.NODE: node,
    Name.CONFIGURED: configured,
    Name.ONE_ITEM: one_item,
    Name.FOUR_ITEMS: four_items,
    Name.RATES: rates,
    Name.SPEED_UP: speed_up,
    Name.SCALE_OUT: scale_out,
}
