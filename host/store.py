"""`trebuchet store make`: a folder as a FAT volume, the image of a card.

What is in it: :mod:`trebuchet.models.fat`.
"""

import enum
from pathlib import Path
from typing import Annotated

import typer

from ..models.errors import TrebuchetError
from ..models.fat import BLOCK, MIB, geometry, make_volume, survey
from ..models.files import replacing

__all__ = ["app", "make_card"]

app = typer.Typer(no_args_is_help=True, help="Make the image of a card from a folder.")


class Bits(enum.StrEnum):
    """Types of volume."""

    fat16 = "16"
    fat32 = "32"


@app.callback()
def group() -> None:
    """Make the image of a card from a folder."""


def make_card(folder: Path, output: Path, mib: int | None, bits: int | None) -> str:
    """Make the image; return a line on what it is."""
    tree = survey(folder)
    if output.resolve().is_relative_to(folder.resolve()):
        raise TrebuchetError(f"{output} lies in {folder} itself; choose a place outside of it")
    form = geometry(tree, None if mib is None else mib * MIB, bits)
    with replacing(output) as file:
        make_volume(file, tree, form)
    files = [node for node in tree.walk() if node.children is None]
    return (
        f"{output}: FAT{form.bits}, {form.blocks * BLOCK // MIB} MiB, {len(files)} files with "
        f"{sum(node.size for node in files)} bytes"
    )


@app.command("make")
def make(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The image.")],
    size: Annotated[
        int | None,
        typer.Option(
            metavar="MIB", min=4, max=1 << 21, help="Its size; default: as small as can be."
        ),
    ] = None,
    fat: Annotated[
        Bits | None, typer.Option(help="Type of volume; default: 16 below 512 MiB.")
    ] = None,
) -> None:
    """Make the image of a card: a FAT volume with the files of a folder.

    The same files give the same image, byte by byte: times of files are left out. Copy it to a card
    as it is: `dd if=card.img of=/dev/sdX bs=4M`.
    """
    typer.echo(make_card(folder, output, size, int(fat) if fat else None))
