"""`trebuchet image pack|show|send`: images of firmware and bitstreams for a board's flash.

What an image is: :mod:`trebuchet.models.image`.
"""

import json
import zlib
from pathlib import Path
from typing import Annotated, Any

import typer

from ..models.errors import TrebuchetError
from ..models.files import read_file, write_file
from ..models.image import (
    HEADER_BYTES,
    MAIN_RAM,
    SECTOR,
    Image,
    Kind,
    check_contents,
    check_firmware,
    slot_bytes,
)
from .options import AsJson

__all__ = ["HEADER_BYTES", "MAIN_RAM", "SECTOR", "Image", "Kind", "app", "slot_bytes"]

app = typer.Typer(no_args_is_help=True, help="Pack an image for a board's flash, or show one.")


@app.command("pack")
def pack_command(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="application.bin, or a bitstream.")
    ],
    board: Annotated[str, typer.Option(help="Name of the board it is for.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The image.")],
    kind: Annotated[Kind, typer.Option(help="What it is.")] = Kind.firmware,
    version: Annotated[str, typer.Option(help="For people, at most 16 characters.")] = "0",
) -> None:
    """Make an image from firmware linked for external memory, or from a bitstream."""
    load = MAIN_RAM if kind is Kind.firmware else 0
    contents = read_file(source)
    try:
        image = Image(kind, board, version, contents, load)
        check_firmware(image)
        data = image.pack()
        check_contents(kind, contents)
    except TrebuchetError as error:
        raise TrebuchetError(f"{source}: {error}") from error
    write_file(output, data)
    typer.echo(f"{output}: {kind.name} {version} for {board}, {len(contents)} bytes of contents")


@app.command("send")
def send_command(
    device: Annotated[Path, typer.Argument(help="Serial line of the board, like /dev/ttyUSB1.")],
    source: Annotated[Path, typer.Argument(metavar="FILE", help="An image of firmware.")],
) -> None:
    """Send firmware to a board whose boot ROM asks for an image on its console."""
    from .console import send_image

    data = read_file(source)
    try:
        image = Image.unpack(data)
        if image.kind is not Kind.firmware:
            raise TrebuchetError("this is no firmware, but a bitstream: BAD_DATA")
        check_firmware(image)
    except TrebuchetError as error:
        raise TrebuchetError(f"{source}: {error}; `trebuchet image pack` makes one") from error
    status = send_image(str(device), data)
    if status != "OK":
        raise TrebuchetError(f"the board refused {source}: {status}")
    typer.echo(f"{source}: the board starts it")


@app.command("show")
def show_command(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="An image.")],
    as_json: AsJson = False,
) -> None:
    """Print what an image is, and check it."""
    data = read_file(source)
    try:
        image = Image.unpack(data)
    except TrebuchetError as error:
        raise TrebuchetError(f"{source}: {error}; `trebuchet image pack` makes one") from error
    said: dict[str, Any] = {"kind": image.kind.name, "board": image.board, "version": image.version}
    size, checksum = len(image.contents), zlib.crc32(image.contents)
    if as_json:
        said |= {"bytes": size, "crc32": checksum, "load": image.load}
        typer.echo(json.dumps(said, indent=2))
        return
    said |= {"contents": f"{size} bytes, CRC-32 {checksum:08x}", "load": f"0x{image.load:08x}"}
    for name, value in said.items():
        typer.echo(f"{name:9} {value}")
