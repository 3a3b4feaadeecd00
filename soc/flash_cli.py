"""`trebuchet flash`: the golden bitstream, or images, into the flash of a connected board."""

from pathlib import Path
from typing import Annotated

import typer

from ..boards import load_board
from ..models.errors import TrebuchetError
from ..models.files import make_folder, read_file, writing_to
from ..models.image import HEADER_BYTES, Image, check_firmware, slot_bytes
from ..models.paths import BUILD
from .loader import explain_failure, run_loader
from .multiboot import jump_page
from .reports import IMAGE, bitstream_of
from .toolchain import require_tool

__all__ = ["check_board", "flash", "golden_pieces", "slot_pieces"]

#: What a programmer may erase at a time: pieces begin and end at multiples of it.
BLOCK = 1 << 16


def _aligned(board, name):
    """``(offset, bytes)`` of a part of the flash that can be written without touching others."""
    part = board.flash.parts.get(name)
    if part is None:
        raise TrebuchetError(f"board {board.name!r} has no part {name!r} in its flash")
    if part[0] % BLOCK or part[1] % BLOCK:
        raise TrebuchetError(
            f"Board {board.name!r}: flash.{name} must begin and end at multiples of {BLOCK} to be "
            f"written from outside, not {part}"
        )
    return part


def golden_pieces(board, bitstream):
    """``(offset, bytes)`` to be written one by one, for the golden ``bitstream`` of an ECP5.

    Where the FPGA starts with it, the way back to it comes first: the last page of the flash.
    """
    offset, room = _aligned(board, "golden")
    if len(bitstream) > room:
        raise TrebuchetError(
            f"the bitstream has {len(bitstream)} bytes; flash.golden of board {board.name!r} takes "
            f"{room}: TOO_LARGE"
        )
    if offset == 0:
        start = board.flash.size - BLOCK
        if any(start < at + length for at, length in board.flash.parts.values()):
            raise TrebuchetError(
                f"Board {board.name!r}: the last {BLOCK} bytes of the flash must be free for the "
                "way back to the golden bitstream"
            )
        yield start, jump_page(0).rjust(BLOCK, b"\xff")
    yield offset, bitstream


def slot_pieces(board, image, slot=None):
    """``(offset, bytes)`` to be written one by one, for an ``image`` (bytes), which must be good.

    ``slot``: the part of the flash that it goes into; that of its kind if left out.

    The first takes away the image that is in the slot, the last has the header at its end: wherever
    that is broken off, the slot has no image.
    """
    found = Image.unpack(image)
    if found.board != board.name:
        raise TrebuchetError(
            f"the image is for board {found.board!r}, not {board.name!r}: WRONG_BOARD"
        )
    check_firmware(found)
    offset, room = _aligned(board, slot or found.kind.name)
    data = slot_bytes(image, room)
    last = room - BLOCK
    yield offset + last, b"\xff" * BLOCK
    contents = min(len(image) - HEADER_BYTES, last)
    if contents:
        yield offset, data[:contents]
    yield offset + last, data[last:]


def check_board(name, board):
    """Raise if openFPGALoader cannot write the flash of a board by its layout."""
    if board.flash is None or not board.loader:
        raise TrebuchetError(
            f"board {name!r} has no flash that can be written from here; docs/porting.md says what "
            "its file must have for that"
        )
    if "--dfu" in board.loader:
        raise TrebuchetError(
            f"the flash of board {name!r} is its bootloader's; use: trebuchet load {name}, and "
            "trebuchet update for images"
        )


def _write(board, pieces, folder):
    """Have openFPGALoader write the pieces; each is read back."""
    tool = require_tool("openFPGALoader")
    make_folder(folder)
    for number, (offset, data) in enumerate(pieces):
        path = folder / f"piece{number}.bin"
        with writing_to(folder):
            path.write_bytes(data)
        command = [tool, *board.loader, "--write-flash", "--verify", "--file-type", "bin"]
        command += ["--offset", str(offset), str(path)]
        done, said = run_loader(command)
        if not done:
            otherwise = "is the board connected, powered, and may this user open its USB device?"
            raise TrebuchetError(
                f"openFPGALoader could not write {len(data)} bytes at {offset:#x}; "
                f"{explain_failure(said, otherwise)} Then begin again"
            )


def _pieces_of(board, paths):
    """Of the images in these files, all of which must be good, each for a slot of its own."""
    pieces, kinds = [], {}
    for path in paths:
        data = read_file(path, board.flash.size)
        try:
            pieces += slot_pieces(board, data)
            kind = Image.unpack(data).kind.name
        except TrebuchetError as error:
            raise TrebuchetError(f"{path}: {error}") from error
        if kind in kinds:
            raise TrebuchetError(f"{kinds[kind]} and {path} are both for the slot flash.{kind}")
        kinds[kind] = path
    return pieces


def _golden_firmware(board, folder):
    """Pieces of the golden firmware that the build left, for a board with a boot ROM."""
    if not board.boot_rom:
        return
    path = folder / IMAGE
    try:
        yield from slot_pieces(board, read_file(path, board.flash.size), "golden_firmware")
    except TrebuchetError as error:
        raise TrebuchetError(f"{error}; build it with: trebuchet build {board.name}") from error


def _flash_with_vivado(name, board, folder):
    """The golden bitstream, by the project's own script."""
    if board.flash is None:
        raise TrebuchetError(
            f"board {name!r} has no flash that can be written from here; docs/porting.md says what "
            "its file must have for that"
        )
    vivado = require_tool("vivado")
    contents = Path(bitstream_of(name, board, folder)).with_suffix(".mcs")
    if not contents.exists():
        raise TrebuchetError(f"vivado wrote no {contents.name}; see {contents.parent}")
    command = [vivado, "-mode", "batch", "-source", "flash.tcl"]
    done, said = run_loader(command, contents.parent)
    if not done:
        reason = explain_failure(said, "is the board connected, powered?")
        raise TrebuchetError(f"Vivado could not write the flash; {reason}")


def flash(
    board: Annotated[str, typer.Argument(help="A board, or a board file.")],
    images: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[IMAGE]...", help="Images for the slots; the golden bitstream if left out."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder it was built in; build/BOARD by default.")
    ] = None,
) -> None:
    """Write the flash of a board that is connected to this machine.

    Without images: the golden bitstream, and the golden firmware if it is not in the bitstream.

    With images (`trebuchet image pack`) the golden bitstream is not touched. All are checked before
    anything is written, and what is cut off leaves a slot without an image.
    """
    found = load_board(board)
    folder = Path(output or BUILD / found.name)
    if found.flow == "vivado":
        if images:
            raise TrebuchetError(
                f"images of board {board!r} go to its flash over the network: trebuchet update"
            )
        _flash_with_vivado(board, found, folder)
        return
    check_board(board, found)
    if images:
        pieces = _pieces_of(found, images)
    else:
        golden = Path(bitstream_of(board, found, folder)).read_bytes()
        pieces = [*_golden_firmware(found, folder), *golden_pieces(found, golden)]
    _write(found, pieces, folder / "flash")
    typer.echo(f"{found.title}: {sum(len(data) for _, data in pieces)} bytes written and read back")
