"""`trebuchet config pack|show|cluster|message|send`: settings and configurations as files."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ..models.config_block import cluster_texts, pack, unpack
from ..models.errors import TrebuchetError
from ..models.files import make_folder, read_file, write_file
from .config_message import message_command, send_command
from .options import AsJson

__all__ = ["app", "read_file", "write_file"]

app = typer.Typer(
    no_args_is_help=True,
    help="Pack a board's settings for its flash, or show them; make and send configurations.",
)
app.command("message")(message_command)
app.command("send")(send_command)


@app.command("pack")
def pack_command(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="Lines KEY=VALUE; # comments.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The block.")],
    sequence: Annotated[
        int, typer.Option(min=0, max=0xFFFF_FFFF, help="Of two copies the later one counts.")
    ] = 1,
) -> None:
    """Make a configuration block from a text of settings."""
    data = read_file(source)
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise TrebuchetError(f"{source} must be ASCII; byte {error.start} is not") from error
    try:
        block = pack(text, sequence)
    except TrebuchetError as error:
        raise TrebuchetError(f"{source}: {error}") from error
    write_file(output, block)
    typer.echo(f"{output}: {len(block)} bytes, sequence {sequence}")


def _offset(text: object) -> int:
    try:
        value = int(str(text), 0)  # the default comes as a number
    except ValueError:
        value = -1
    if value < 0:
        raise typer.BadParameter(f"must be a number of at least 0, not {text!r}")
    return value


@app.command("show")
def show_command(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A block, or a flash from it on.")],
    offset: Annotated[
        int, typer.Option(parser=_offset, metavar="N", help="Where in the file it is; 0x… too.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Print the settings of a configuration block."""
    data = read_file(source)
    try:
        block = unpack(data[offset:])
    except TrebuchetError as error:
        raise TrebuchetError(f"{source}: {error}; `trebuchet config pack` makes one") from error
    if as_json:
        typer.echo(json.dumps({"sequence": block.sequence, "text": block.text}, indent=2))
        return
    typer.echo(f"# sequence {block.sequence}")
    typer.echo(block.text, nl=False)


@app.command("cluster")
def cluster_command(
    boards: Annotated[
        list[str], typer.Argument(metavar="MAC,IP...", help="Addresses of each board, 2 to 16.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")],
    timeout_us: Annotated[
        int, typer.Option(min=1, max=32767, metavar="US", help="A frame's time-out in µs.")
    ] = 1000,
) -> None:
    """Write the settings of boards that do each other's jobs, a file for each."""
    pairs = []
    for text in boards:
        mac, comma, ip = text.partition(",")
        if not comma:
            raise TrebuchetError(f"a board must be MAC,IP, not {text!r}")
        pairs.append((mac, ip))
    texts = cluster_texts(pairs, timeout_us)
    make_folder(output)
    for (_, ip), text in zip(pairs, texts, strict=True):
        write_file(output / f"{ip}.txt", text.encode("ascii"))
        typer.echo(output / f"{ip}.txt")
