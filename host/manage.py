"""`trebuchet manage` and `trebuchet update`: a board's commands, and its image, over TCP.

The board's firmware answers SMP messages on its HTTP port (``docs/firmware-manage.md``): commands,
the same ones as on its console, data messages, and configurations with an image for its flash.
"""

import contextlib
import io
import json
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from ..client import Board
from ..client.errors import describe_status
from ..client.management import encode_command
from ..client.smp import Configuration
from ..models import sockets
from ..models.errors import TrebuchetError
from ..models.files import read_file
from ..models.image import MAGIC, SECTOR
from ..models.progress import Deadline, current_simulation
from .options import Seconds, open_board, seconds

__all__ = ["accept_board", "manage", "update"]

#: Seconds; the slowest board is a simulated one on a busy machine.
TIMEOUT = 15.0
#: A board writes a whole image to flash before it answers: so long, and so long for each sector
#: (the slowest flashes may take 0.8 s to erase one).
UPDATE_TIMEOUT, SECTOR_TIMEOUT = 300.0, 1.0
UPDATE_TIMES = f"{UPDATE_TIMEOUT:g}, and {SECTOR_TIMEOUT:g} for each 4 KiB"
#: No board has a slot for a larger one.
MAX_IMAGE = 1 << 26


def update_seconds(size: int) -> float:
    """How long a board may take to write ``size`` bytes to its flash."""
    return UPDATE_TIMEOUT + SECTOR_TIMEOUT * -(-size // SECTOR)


def accept_board(address: str, port: int, timeout: float = TIMEOUT) -> Board:
    """Wait at ``port`` of this machine until the board ``address`` connects.

    Whoever else connects meanwhile is turned away. ``timeout`` bounds this wait as well.
    """
    end = Deadline(timeout, current_simulation())
    try:
        wanted = socket.gethostbyname(address)
        with sockets.listen(port, timeout) as listener:
            while True:
                listener.settimeout(end.left() or 1e-3)
                connected, (peer, peer_port) = listener.accept()
                if peer == wanted:
                    return Board.adopt(connected, f"{peer}:{peer_port}", timeout)
                connected.close()
    except TimeoutError as error:
        raise TrebuchetError(f"{address} did not connect to port {port} within {end}") from error
    except OSError as error:
        raise TrebuchetError(f"cannot wait at port {port} for {address}: {error}") from error


def _print(text: str) -> None:
    typer.echo(text, nl=bool(text) and not text.endswith("\n"))


def run_command(board: Board, line: str, as_json: bool = False) -> None:
    """Have a board carry out a command, and print its answer; as JSON even if it is a failure."""
    if not as_json:
        _print(board.command(line))
        return
    reply = board.ask(line)
    status = describe_status(reply.status).partition(":")[0]
    typer.echo(json.dumps({"command": line, "status": status, "text": reply.text}))
    if not reply.good:
        raise typer.Exit(1)


def typed_lines(prompt: str) -> Iterator[str]:
    """Lines from the terminal, up to its end or ``exit``."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 (gives input() its line editor)
    while True:
        try:
            line = input(prompt).strip()
        except EOFError:
            typer.echo()
            return
        if line in ("exit", "quit"):
            return
        if line:
            yield line


def converse(board: Board, lines: Iterable[str]) -> None:
    """As on the console: a command that fails says so, and the next one may follow."""
    for line in lines:
        try:
            encode_command(line)
        except TrebuchetError as error:
            typer.echo(f"error: {error}", err=True)
            continue
        reply = board.ask(line)
        if reply.good:
            _print(reply.text)
        else:
            typer.echo(f"error: {reply.reason}", err=True)


def _prepare_stdin() -> None:
    if sys.stdin is None:
        raise TrebuchetError("standard input is closed; give the command as an argument")
    if isinstance(sys.stdin, io.TextIOWrapper):
        # So that the lines before one that is no UTF-8 are carried out, whatever the locale.
        sys.stdin.reconfigure(errors="surrogateescape")


def manage(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(help="A command of the board's console; `help` lists them."),
    ] = None,
    timeout: Seconds = TIMEOUT,
    listen: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, metavar="PORT", help="Wait for the board to connect to this port."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each answer as a line of JSON, failures too.")
    ] = False,
) -> None:
    """Have a board carry out a command, as on its console.

    Without a command, lines are read from the terminal; or from a pipe or file, until one fails.
    Exit code 1 if the board answers a command with another status than OK.
    """
    if not command:
        _prepare_stdin()
    made = open_board(board, timeout) if listen is None else accept_board(board, listen, timeout)
    with made as opened:
        if command:
            run_command(opened, " ".join(command), as_json)
        elif sys.stdin.isatty() and not as_json:
            converse(opened, typed_lines(f"{board}> "))
        else:
            for line in filter(None, map(str.strip, sys.stdin)):
                run_command(opened, line, as_json)


def update(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    image: Annotated[Path, typer.Argument(help="Image, as `trebuchet image pack` makes it.")],
    timeout: Annotated[
        float | None,
        seconds(UPDATE_TIMES),
    ] = None,
) -> None:
    """Write an image to a board's flash; the board checks it first."""
    contents = read_file(image, MAX_IMAGE)
    if not contents:
        raise TrebuchetError(f"an image must have 1 to {MAX_IMAGE} bytes; {image} has none")
    if not contents.startswith(MAGIC):
        raise TrebuchetError(f"{image} is no image; make one with: trebuchet image pack")
    written = timeout or update_seconds(len(contents))
    with open_board(board, timeout or UPDATE_TIMEOUT) as opened:
        opened.configure(Configuration(0, 0, (), contents), written)
    typer.echo(f"{board} has {image.name} in flash ({len(contents)} bytes)")
