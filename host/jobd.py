"""`trebuchet jobd` and `trebuchet node`: the job server and models of boards (docs/jobs.md).

Both are native programs (`jobd/`), compiled at their first use, which take this process's place.
"""

import errno
import ipaddress
import os
import re
import socket
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ..models.epoch import EPOCH_BITS
from ..models.errors import TrebuchetError
from ..models.files import check_files
from .jobd_build import build
from .options import MAX_SECONDS, a_number

__all__ = ["connected_nodes", "jobd", "node"]

MAX_PORT = 65535
_SERVER = re.compile(r"[^:/@\s]+:\d{1,5}")
_PLACE = re.compile(r"[^:/@\s]+:\d{1,5}(/\d{1,5})?(@\d{1,5})?")


def connected_nodes(metrics: str) -> int:
    """How many nodes a job server has, by the text of its metrics."""
    lines = metrics.splitlines()
    nodes = (line for line in lines if line.startswith("trebuchet_jobd_node_connected{"))
    return sum(line.endswith(" 1") for line in nodes)


class Policy(StrEnum):
    QUEUE = "queue"
    STACK = "stack"
    LEAST = "least"


def _become(program: str, arguments: list[str]) -> NoReturn:
    path = str(build(program))
    sys.stdout.flush()
    os.execv(path, [program, *arguments])


def _port(help: str) -> typer.models.OptionInfo:
    return typer.Option(min=0, max=MAX_PORT, help=f"{help}; 0: any.")


def _words(options: dict[str, object]) -> list[str]:
    """Command line of a native program; None and False: without the option."""
    words = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append(f"--{name}")
        if value is not True:
            words.append(str(value))
    return words


def _seconds(help: str) -> typer.models.OptionInfo:
    return typer.Option(min=0.001, max=MAX_SECONDS, callback=a_number, help=help)


def _check_place(option: str, place: str, form: str, pattern: re.Pattern[str]) -> None:
    found = pattern.fullmatch(place)
    numbers = [int(number) for number in re.findall(r"[:/](\d+)", place)] if found else [0]
    epoch = int(place.partition("@")[2] or 0) if found else 0
    if not all(0 < number <= MAX_PORT for number in numbers) or epoch >> EPOCH_BITS:
        raise TrebuchetError(f"{option} must be {form}, not {place!r}")


def _check_nodes(places: list[str], file: Path | None) -> None:
    """Refuse what the server would refuse, before it is compiled."""
    for place in places:
        _check_place("--node", place, "HOST:PORT[/PORT][@EPOCH]", _PLACE)
    if file is not None and not file.is_file():
        raise TrebuchetError(f"--nodes {file} is no file; it must have a node a line, HOST:PORT")
    lines = file.read_text(errors="replace").splitlines() if file is not None else []
    for number, line in enumerate(lines, 1):
        if place := line.partition("#")[0].strip():
            form = "HOST:PORT[/PORT][@EPOCH], a node a line"
            _check_place(f"--nodes {file}, line {number}:", place, form, _PLACE)


def _check_ports(address: str, ports: dict[str, int | None]) -> None:
    """Refuse an address that this machine lacks, and ports that another program has."""
    try:
        ipaddress.IPv4Address(address)
    except ValueError:
        raise TrebuchetError(
            f"--address must be an IPv4 address of this machine, not {address!r}"
        ) from None
    for option, port in ports.items():
        if port is None:
            continue
        try:
            socket.create_server((address, port)).close()
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise TrebuchetError(
                    f"--address must be an IPv4 address of this machine, not {address!r}"
                ) from None
            reason = os.strerror(error.errno or 0)
            raise TrebuchetError(
                f"{option} {port}: {reason}; choose another port, or 0 for any"
            ) from None


def _check_congestion(name: str | None) -> None:
    """Refuse a congestion control that this machine's kernel does not have."""
    if name is None:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            raise TrebuchetError(
                f"--congestion {name}: this machine has no such congestion control; "
                "`sysctl net.ipv4.tcp_available_congestion_control` lists what is there"
            ) from None


def _milliseconds(seconds: float) -> int:
    return max(1, round(1000 * seconds))


Address = Annotated[str, typer.Option(help="IPv4 address to listen at; 0.0.0.0: all.")]


def jobd(
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT[/PORT][@EPOCH]",
            help="A node to connect to; /PORT: where it takes configuration messages; @EPOCH: of "
            "its lease. Repeatable.",
        ),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(help="File with more nodes, one a line; read again at the signal HUP."),
    ] = None,
    address: Address = "127.0.0.1",
    user_port: Annotated[int, _port("TCP port for users")] = 4002,
    node_port: Annotated[int, _port("TCP port for nodes that connect to the server")] = 4003,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=MAX_PORT, help="TCP port for metrics; 0: any.")
    ] = None,
    policy: Annotated[Policy, typer.Option(help="How a node is chosen.")] = Policy.LEAST,
    window: Annotated[
        int, typer.Option(min=1, max=64, help="Jobs that a node has at most at a time.")
    ] = 2,
    threads: Annotated[int, typer.Option(min=1, max=256, help="Threads, each a server.")] = 1,
    own: Annotated[
        int | None,
        typer.Option(min=1, help="Each user has up to so many nodes of its own; default: shared."),
    ] = None,
    configured: Annotated[
        bool, typer.Option(help="Nodes need no configuration: users may send data at once.")
    ] = False,
    streams: Annotated[
        bool, typer.Option(help="Nodes take stream messages: each record has a node of its own.")
    ] = False,
    copy: Annotated[bool, typer.Option(help="Copy payloads instead of splicing them.")] = False,
    largest: Annotated[
        int, typer.Option(min=256, max=1 << 32, help="Bytes of the largest message.")
    ] = 16 << 20,
    pipes: Annotated[
        int, typer.Option(min=0, max=1 << 20, help="Pipes of a thread at a time.")
    ] = 1024,
    congestion: Annotated[
        str | None, typer.Option(help="TCP's congestion control, as cubic; default: the system's.")
    ] = None,
    job_log: Annotated[
        Path | None,
        typer.Option(help="Write a line for each job: node, user, ID, bytes, times, outcome."),
    ] = None,
    patience: Annotated[
        float, _seconds("Seconds for a node's answer; then the node is lost.")
    ] = 30.0,
    message_timeout: Annotated[float, _seconds("Seconds for the rest of a user's message.")] = 30.0,
) -> None:
    """Spread users' SMP messages over nodes: the job server."""
    _check_nodes(node or [], nodes)
    ports = {"--user-port": user_port, "--node-port": node_port, "--metrics-port": metrics_port}
    _check_ports(address, ports)
    _check_congestion(congestion)
    check_files({"job-log": job_log})
    words = _words(
        {
            "nodes": nodes,
            "address": address,
            "user-port": user_port,
            "node-port": node_port,
            "metrics-port": metrics_port,
            "policy": policy.value,
            "window": window,
            "threads": threads,
            "own": own,
            "configured": configured,
            "streams": streams,
            "copy": copy,
            "largest": largest,
            "pipes": pipes,
            "congestion": congestion,
            "job-log": job_log,
            "patience-ms": _milliseconds(patience),
            "message-timeout-ms": _milliseconds(message_timeout),
        }
    )
    for place in node or ():
        words += ["--node", place]
    _become("trebuchet-jobd", words)


def node(
    boards: Annotated[int, typer.Option(min=1, max=1000, help="Boards to model.")] = 1,
    address: Address = "127.0.0.1",
    port: Annotated[int, _port("TCP port of the first board; the others follow")] = 4000,
    server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Connect to this job server instead of listening."),
    ] = None,
    cycles: Annotated[int, typer.Option(min=0, max=(1 << 32) - 1, help="Cycles of a job.")] = 0,
    clock_hz: Annotated[
        int, typer.Option(min=1, max=10**10, help="Cycles per second.")
    ] = 50_000_000,
    segment: Annotated[
        int, typer.Option(min=256, max=1 << 32, help="Bytes of the largest message.")
    ] = 1 << 17,
    streams: Annotated[
        bool, typer.Option(help="Take stream messages; results are CRCs of the record so far.")
    ] = False,
    lease: Annotated[
        int, typer.Option(min=0, max=(1 << EPOCH_BITS) - 1, help="Epoch of each board's lease.")
    ] = 0,
    guard: Annotated[
        bool, typer.Option("--guard", help="Refuse messages of other epochs.")
    ] = False,
) -> None:
    """Model boards with one role each, for the job server: loopback or benchmark role."""
    if server is not None:
        _check_place("--server", server, "HOST:PORT", _SERVER)
    elif port and port + boards - 1 > MAX_PORT:
        raise TrebuchetError(
            f"--port must be at most {MAX_PORT + 1 - boards} with --boards {boards}, not {port}"
        )
    else:
        _check_ports(address, {"--port": port})
    options = {"boards": boards, "address": address, "port": port, "server": server}
    options |= {"cycles": cycles, "clock-hz": clock_hz, "segment": segment}
    options |= {"streams": streams, "lease": lease, "guard": guard}
    _become("trebuchet-node", _words(options))
