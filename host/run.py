"""`trebuchet run`: from a board's name to a result: build, load, wait, find the address, talk."""

import importlib
import ipaddress
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..client.owner import split_address
from ..models.errors import TrebuchetError
from ..models.steps import Step
from .console import SerialConsole, serial_ports
from .demo import trebuchet

__all__ = ["address_on_console", "command_for", "run"]

#: Seconds after loading until a board prints ``ready``: mostly the training of its memory.
START = 60.0
#: Seconds until a board that is ready has a lease, and answers.
ANSWER = 60.0
#: Seconds that a build takes on two idle cores, as a rule.
BUILD = 600.0
#: TCP ports that answer on boards with and without a processor: status page, echo.
STATUS_PORT, ECHO_PORT = 80, 7
#: Commands that make, start or load a board, and do not talk to one.
_OWN_BOARD = ("sim", "run", "demo", "build", "load", "flash", "renode")
#: An address to check commands with.
_EXAMPLE = "192.0.2.2"
#: Stands for the board's address in a command.
HERE = "@"
_PAUSE = 1.0


def command_for(words: list[str], address: str) -> list[str]:
    """A command of ``trebuchet`` with the board's address put in.

    It takes the place of each ``@``; without one it comes before the first option, or at the end:
    ``ecg run --minutes 1`` becomes ``ecg run ADDRESS --minutes 1``.
    """
    if HERE in words:
        return [address if word == HERE else word for word in words]
    first = next((k for k, word in enumerate(words) if word.startswith("-")), len(words))
    return [*words[:first], address, *words[first:]]


def _check_command(words: list[str]) -> None:
    """Refuse a command that is wrong before a board is built for it."""
    if words and words[0] in _OWN_BOARD:
        raise TrebuchetError(
            f"{words[0]!r} talks to no board; give a command that does, such as: -- status"
        )
    if words:
        importlib.import_module("trebuchet.host.cli").check_usage(command_for(words, _EXAMPLE))


def _check_place(board: Any, address: str | None, port: str | None) -> None:
    """Refuse what would fail only after the build: address, serial port, tools for loading."""
    if address is not None:
        split_address(address, STATUS_PORT)
        if re.fullmatch(r"[0-9.]+", address):
            try:
                ipaddress.IPv4Address(address)
            except ValueError:
                raise TrebuchetError(
                    f"--address must be an IPv4 address or a name, not {address!r}"
                ) from None
    if port is not None and not Path(port).is_char_device():
        raise TrebuchetError(
            f"--port {port}: there is no serial port of that name; left out, the only one on USB "
            "is taken"
        )
    tool = "vivado" if board.flow == "vivado" else "openFPGALoader"
    importlib.import_module("trebuchet.soc.toolchain").require_tool(tool)


def _plan_words(**options: Any) -> list[str]:
    """Options that say another plan than the board's, as the commands that take them have them."""
    words: list[str] = []
    for name, values in options.items():
        for value in values if isinstance(values, list) else [values]:
            words += [f"--{name}", str(value)] if value is not None else []
    return words


def _call(words: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run another command of ours; its line of an error becomes ours."""
    done = subprocess.run(trebuchet(*words), text=True, check=False, **options)
    if done.returncode:
        said = (done.stderr or "").strip().splitlines()
        reason = said[-1].removeprefix("trebuchet: ") if said else f"exit code {done.returncode}"
        raise TrebuchetError(f"trebuchet {' '.join(words)}: {reason}")
    return done


def _built(name: str, plan: list[str]) -> Path:
    """Build the board, unless that is done; the folder of the build."""
    with Step(f"building {name}", BUILD):
        done = _call(
            ["build", name, "--json", *plan], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    report = json.loads(done.stdout)
    if not report.get("bitstream"):
        raise TrebuchetError(
            f"board {name} has a Vivado project, no bitstream yet; docs/vendor.md says how to go on"
        )
    return Path(report["bitstream"]).parent.parent


def address_on_console(found: SerialConsole) -> str:
    """The address of a board that is starting, asked on its console until it has one."""
    found.until(r"ready\r?\n")
    end = time.monotonic() + ANSWER
    while True:
        match = re.search(r"^address +(\d+\.\d+\.\d+\.\d+)$", found.run("ip"), re.MULTILINE)
        if match:
            return match[1]
        if time.monotonic() > end:
            raise TrebuchetError(
                f"the board has no address after {ANSWER:g} s; is there a DHCP server on its "
                "network? `trebuchet config` sets a fixed address"
            )
        time.sleep(_PAUSE)


def _wait_for(address: str, port: int) -> None:
    end = time.monotonic() + ANSWER
    while True:
        try:
            socket.create_connection((address, port), timeout=_PAUSE).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                raise TrebuchetError(
                    f"the board is loaded, but {address} does not answer on TCP port {port} "
                    f"within {ANSWER:g} s ({error}); is it on this network, and the cable in?"
                ) from None
        time.sleep(_PAUSE)


def _loaded(name: str, board: Any, plan: list[str], address: str | None, port: str | None) -> str:
    """Build and load a board; its address, once it answers."""
    managed = board.cpu_variant != "none"
    folder = _built(name, plan)
    if managed and address is None and port is None:
        ports = serial_ports()
        port = ports[0][0] if len(ports) == 1 else None
        if port is None and board.dhcp:
            raise TrebuchetError(
                f"board {name} gets its address by DHCP; name it with --address, or with --port "
                "the serial port on which the board tells it"
            )
    load = ["load", name, "--output", str(folder)]
    if managed and address is None and port is not None:
        # Listen before the start, which is not said twice.
        with SerialConsole(port, board.uart_baud, START) as found:
            _call(load)
            address = address_on_console(found)
    else:
        _call(load)
    address = address or board.ip
    with Step(f"waiting for {address}", ANSWER):
        _wait_for(address, STATUS_PORT if managed else ECHO_PORT)
    return address


def run(
    board: Annotated[str, typer.Argument(help="A board's name or file; sim: the simulated one.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="A command of trebuchet for it, behind --, such as: -- ecg run. The address is "
            "put where @ stands, or before the first option. Left out: status.",
            show_default=False,
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Its address; found on its console, or in its file, if left out."),
    ] = None,
    port: Annotated[
        str | None, typer.Option(help="Its serial port; the only one on USB if left out.")
    ] = None,
    role: Annotated[list[str] | None, typer.Option(help="As of trebuchet build.")] = None,
    service: Annotated[list[str] | None, typer.Option(help="As of trebuchet build.")] = None,
    plan: Annotated[Path | None, typer.Option(help="As of trebuchet build.")] = None,
    roles: Annotated[list[Path] | None, typer.Option(help="As of trebuchet build.")] = None,
    engine: Annotated[list[str] | None, typer.Option(help="As of trebuchet build.")] = None,
    tcp: Annotated[str | None, typer.Option(help="As of trebuchet build.")] = None,
    clock: Annotated[str | None, typer.Option(help="As of trebuchet build.")] = None,
    ip: Annotated[str | None, typer.Option(help="As of trebuchet build.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="As of trebuchet build.")] = None,
) -> None:
    """Build a board unless that is done, load it, wait until it answers, and talk to it.

    The simulated board is compiled and started instead, and ends with the command. Exit code: the
    command's.
    """
    chosen = _plan_words(role=role or [], service=service or [], plan=plan, roles=roles or [])
    chosen += _plan_words(engine=engine or [], tcp=tcp, clock=clock, ip=ip, set=set_ or [])
    found = importlib.import_module("trebuchet.boards").load_board(board)
    if clock or ip or set_:
        plans = importlib.import_module("trebuchet.soc.plans")
        found = plans.with_choices(found, overrides=plans.overrides_of(clock, ip, set_))
    words = command or (["status"] if found.cpu_variant != "none" else [])
    if found.flow == "sim":
        if address or port:
            raise TrebuchetError(
                "the simulated board has neither --address nor --port; leave them out"
            )
        _check_command(words)
        inner = shlex.join(trebuchet(*command_for(words, found.ip)))
        os.execv(sys.executable, trebuchet("sim", *chosen, "--exec", inner))
    _check_command(words)
    _check_place(found, address, port)
    address = _loaded(board, found, chosen, address, port)
    typer.echo(f"{board} is at {address}", err=True)
    if words:
        raise typer.Exit(subprocess.run(trebuchet(*command_for(words, address))).returncode)
