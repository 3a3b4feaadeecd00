"""`trebuchet config message|send`: configuration messages as files.

A file holds one message as it goes over the wire, so any program can send it: to a board, or to a
job server (``docs/jobs.md``). What it says: docs/firmware-manage.md.
"""

from pathlib import Path
from typing import Annotated

import typer

from ..client import Board
from ..client.owner import split_address
from ..client.smp import (
    HEADER,
    PORT,
    WORD,
    Configuration,
    Core,
    Header,
    MessageType,
    parse_configuration,
)
from ..models.config_message import cores_of_build, cores_of_listing, slots_named
from ..models.errors import TrebuchetError
from ..models.files import read_file, write_file
from ..models.image import Image
from .manage import MAX_IMAGE, UPDATE_TIMES, update_seconds
from .options import Seconds, open_board, seconds

__all__ = ["message_command", "send_command"]

_SIZE = {"min": 0, "max": 0xFFFF_FFFF}


def _slots(source: str, timeout: float) -> dict[str, int]:
    """Role slots of a build's folder, or else of the board at an address."""
    if Path(source).exists():
        return cores_of_build(Path(source))
    if "/" in source:
        raise TrebuchetError(f"there is no build at {source}")
    with open_board(source, timeout) as board:
        return cores_of_listing(board.command("role"))


def message_command(
    source: Annotated[
        str,
        typer.Argument(help="Folder of a build, build/BOARD, or a board's address: its roles."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The message.")],
    role: Annotated[
        list[str] | None,
        typer.Option("--role", help="A role to use, all instances of it. Default: the first."),
    ] = None,
    image: Annotated[
        Path | None, typer.Option(help="An image that the board is to have, of `image pack`.")
    ] = None,
    input_size: Annotated[int, typer.Option(**_SIZE, help="Bytes of operands; 0: any.")] = 0,
    output_size: Annotated[int, typer.Option(**_SIZE, help="Bytes of results; 0: any.")] = 0,
    benchmark: Annotated[
        int | None,
        typer.Option(**_SIZE, metavar="US", help="Instead: a benchmark with this delay in µs."),
    ] = None,
    timeout: Seconds = 15,
) -> None:
    """Make a configuration message, from a build's outputs or for a board that runs."""
    if benchmark is not None:
        if role or image:
            raise TrebuchetError("a benchmark has neither --role nor --image; leave them out")
        message = Configuration(input_size, output_size, (), WORD.pack(benchmark)).message()
        write_file(output, message.pack())
        typer.echo(f"{output}: benchmark, {benchmark} µs")
        return
    slots = _slots(source, timeout)
    names = role or list(slots)[:1]
    contents = b"" if image is None else read_file(image, MAX_IMAGE)
    if image is not None:
        try:
            Image.unpack(contents)
        except TrebuchetError as error:
            raise TrebuchetError(f"{image}: {error}") from error
    cores = tuple(Core(control, 0, 0) for control in slots_named(slots, names))
    write_file(output, Configuration(input_size, output_size, cores, contents).message().pack())
    said = f"{output}: {len(cores)} cores ({', '.join(names) or 'no role'})"
    typer.echo(said + (f", image of {len(contents)} bytes" if contents else ""))


def send_command(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    file: Annotated[Path, typer.Argument(help="A message, as `config message` makes it.")],
    timeout: Annotated[float | None, seconds(f"{UPDATE_TIMES} of an image")] = None,
) -> None:
    """Send a configuration message to the port of a board's roles, and wait for the answer."""
    data = read_file(file, MAX_IMAGE)
    header = Header.of(data[: HEADER.size].ljust(HEADER.size, b"\0"))
    if header.kind != MessageType.CONFIGURATION or header.size != len(data) - HEADER.size:
        raise TrebuchetError(
            f"{file} does not hold one configuration message; make one with: trebuchet config "
            "message"
        )
    configuration = parse_configuration(data[HEADER.size :])
    wait = timeout or update_seconds(len(data))
    host, port = split_address(board, PORT)
    with Board(host, port=port, timeout=wait) as opened:
        opened.configure(configuration, at_role=True)
    typer.echo(f"{board} is configured")
