"""`trebuchet manage` and `trebuchet update`: a board's commands, and its image, over TCP.

The board's firmware answers SMP messages on its HTTP port (``docs/firmware-manage.md``): commands,
the same ones as on its console, data messages, and configurations with an image for its flash.
"""

import contextlib
import io
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..models.errors import TrebuchetError
from ..models.image import SECTOR
from ..models.status import Status
from . import smp
from .config import read_file
from .exchange import Refused
from .options import Seconds, seconds

__all__ = ["MAX_LINE", "PORT", "Manager", "Reply", "manage", "update"]

#: The CPU's TCP port, which it shares with HTTP.
PORT = 80
#: Bytes of the longest command.
MAX_LINE = 127
#: No board says more.
MAX_PAYLOAD = 1 << 16
#: Seconds; the slowest board is a simulated one on a busy machine.
TIMEOUT = 15.0
#: A board writes a whole image to flash before it answers: so long, and so long for each sector
#: (the slowest flashes may take 0.8 s to erase one).
UPDATE_TIMEOUT, SECTOR_TIMEOUT = 300.0, 1.0
#: No board has a slot for a larger one.
MAX_IMAGE = 1 << 26


@dataclass(frozen=True)
class Reply:
    """What a command said, and its status."""

    status: int
    text: str

    @property
    def good(self) -> bool:
        return self.status == Status.OK

    @property
    def reason(self) -> str:
        """One line that names the status."""
        described = smp.describe_status(self.status)
        name = described.partition(":")[0]
        line = " ".join(self.text.split()).removeprefix("error: ")
        if line.startswith(f"{name}: "):
            return line
        return described if line in ("", name) else f"{name}: {line}"


def split_address(board: str, port: int = PORT) -> tuple[str, int]:
    """``HOST`` or ``HOST:PORT``."""
    host, colon, number = board.rpartition(":")
    if board and not colon:
        return board, port
    if not host or ":" in host or not number.isdecimal() or not 0 < int(number) < 1 << 16:
        raise TrebuchetError(f"the board must be HOST or HOST:PORT, not {board!r}")
    return host, int(number)


def encode_command(line: str) -> bytes:
    """A command as it goes to the board."""
    try:
        text = line.encode()
    except UnicodeEncodeError as error:
        # Python keeps bytes that are no UTF-8, of an argument or a line, as lone surrogates.
        raise TrebuchetError(
            f"a command must be UTF-8; its character {error.start + 1} is not"
        ) from error
    if len(text) > MAX_LINE:
        raise TrebuchetError(f"a command must have at most {MAX_LINE} bytes, not {len(text)}")
    return text


class Manager:
    """A connection to a board's management service; a context manager.

    ``board`` is ``HOST`` or ``HOST:PORT``; ``timeout`` (seconds) bounds every wait for the board.
    With ``listen`` the board connects to that port of this machine instead, as its setting `server`
    says. What goes wrong is a :class:`TrebuchetError`, and :class:`Refused` with the status if the
    board refuses a message.
    """

    def __init__(self, board: str, timeout: float = TIMEOUT, listen: int | None = None) -> None:
        if listen is None:
            self.connection = smp.Connection(*split_address(board), timeout, MAX_PAYLOAD)
        else:
            self.connection = smp.Connection.accepted_from(board, listen, timeout, MAX_PAYLOAD)

    def __enter__(self) -> "Manager":
        return self

    def __exit__(self, *exc: object) -> None:
        self.connection.close()

    def _ask(
        self, message: smp.Message, kind: smp.MessageType, timeout: float | None = None
    ) -> smp.Message:
        name = self.connection.name
        self.connection.send(message)
        answer = self.connection.receive(timeout)
        if answer is None:
            raise TrebuchetError(f"{name} closed the connection without an answer")
        if answer.kind == smp.MessageType.RESPONSE:
            status = smp.parse_response(answer.payload).status
            if status != Status.OK or kind != smp.MessageType.RESPONSE:
                what = message.kind.name.lower()
                said = smp.describe_status(status)
                raise Refused(f"{name} refused the {what} message: {said}", status)
        if answer.kind != kind:
            raise smp.ProtocolError(f"{name} answered with a {answer.kind.name} message")
        return answer

    def command(self, line: str) -> Reply:
        """Have a command carried out; a reply with another status than OK is returned, too."""
        message = smp.Message(smp.MessageType.COMMAND, encode_command(line))
        return Reply(*smp.parse_reply(self._ask(message, smp.MessageType.REPLY).payload))

    def work(self, id: int, operand: bytes) -> bytes:
        """Run a job on the board's role; small operands only, others go to the role's own port."""
        answer = self._ask(smp.data_message(id, operand), smp.MessageType.DATA)
        answered, result = smp.parse_data(answer.payload)
        if answered != id:
            name = self.connection.name
            raise smp.ProtocolError(f"{name} answered message {answered}, not message {id}")
        return result

    def configure(self, configuration: smp.Configuration, timeout: float | None = None) -> None:
        """Configure the node; returns when it has said OK.

        ``timeout`` bounds the wait for that in the place of the manager's.
        """
        self._ask(configuration.message(), smp.MessageType.RESPONSE, timeout)


def _print(reply: Reply) -> None:
    typer.echo(reply.text, nl=bool(reply.text) and not reply.text.endswith("\n"))


def _run(manager: Manager, line: str) -> None:
    reply = manager.command(line)
    if not reply.good:
        raise TrebuchetError(f"{manager.connection.name} answered {reply.reason}")
    _print(reply)


def _typed(prompt: str) -> Iterator[str]:
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


def _converse(manager: Manager, lines: Iterable[str]) -> None:
    """As on the console: a command that fails says so, and the next one may follow."""
    for line in lines:
        try:
            encode_command(line)
        except TrebuchetError as error:
            typer.echo(f"error: {error}", err=True)
            continue
        reply = manager.command(line)
        if reply.good:
            _print(reply)
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
) -> None:
    """Have a board carry out a command, as on its console.

    Without a command, lines are read from the terminal; or from a pipe or file, until one fails.
    Exit code 1 if the board answers a command with another status than OK.
    """
    if not command:
        _prepare_stdin()
    with Manager(board, timeout, listen) as manager:
        if command:
            _run(manager, " ".join(command))
        elif sys.stdin.isatty():
            _converse(manager, _typed(f"{board}> "))
        else:
            for line in filter(None, map(str.strip, sys.stdin)):
                _run(manager, line)


def update(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    image: Annotated[Path, typer.Argument(help="Image, as `trebuchet image pack` makes it.")],
    timeout: Annotated[
        float | None,
        seconds(f"{UPDATE_TIMEOUT:g}, and {SECTOR_TIMEOUT:g} for each 4 KiB"),
    ] = None,
) -> None:
    """Write an image to a board's flash; the board checks it first."""
    contents = read_file(image, MAX_IMAGE)
    if not contents:
        raise TrebuchetError(f"an image must have 1 to {MAX_IMAGE} bytes; {image} has none")
    written = timeout or UPDATE_TIMEOUT + SECTOR_TIMEOUT * -(-len(contents) // SECTOR)
    with Manager(board, timeout or UPDATE_TIMEOUT) as manager:
        manager.configure(smp.Configuration(0, 0, (), contents), written)
    typer.echo(f"{board} has {image.name} in flash ({len(contents)} bytes)")
