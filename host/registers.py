"""`trebuchet registers`: a board's registers by name: list, read, write."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..client import Board
from ..models.errors import TrebuchetError
from ..models.register_map import Field, Register
from .manage import TIMEOUT
from .options import Seconds, open_board
from .output import aligned

__all__ = ["registers"]

#: What software may do with a register, in a word of the table.
_ACCESS = {"ro": "read-only", "rw": "read, write", "stb": "write-only", "w1c": "write 1 to clear"}


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise TrebuchetError(
            f"the value must be a number like 200, 0xc8 or 0b11001000, not {text!r}"
        ) from None


def _describe(register: Register, field: Field | None = None) -> dict[str, Any]:
    """Return what the map says of a register or field, for ``--json``."""
    said: dict[str, Any] = {"address": register.address, "access": register.access}
    said |= {"width": (field or register).width, "help": (field or register).description}
    if field is not None:
        return said | {"offset": field.offset}
    fields = register.fields.values()
    return said | {
        "fields": {
            f.name: {"offset": f.offset, "width": f.width, "help": f.description} for f in fields
        }
    }


def _list(board: Board, as_json: bool) -> None:
    found = board.register_map()
    if as_json:
        listed = {name: _describe(register) for name, register in found.registers.items()}
        typer.echo(json.dumps({"map": found.hash, "registers": listed}, indent=2))
        return
    rows = [
        (name, f"{r.width} bits", _ACCESS[r.access], r.description)
        for name, r in found.registers.items()
    ]
    typer.echo("\n".join(aligned(rows)))


def _show(board: Board, pattern: str, as_json: bool) -> None:
    values = board.read_registers(pattern)
    if not values:
        raise TrebuchetError(f"the registers of {pattern!r} can only be written")
    found = board.register_map()
    if as_json:
        said = {
            name: {"value": int(value)} | _describe(*found.find(name))
            for name, value in values.items()
        }
        for name, value in values.items():
            for part in value.fields.values():
                said[name]["fields"][part.name]["value"] = part.of(value)
        typer.echo(json.dumps(said, indent=2))
        return
    rows = []
    for name, value in values.items():
        register, field = found.find(name)
        rows.append((name, str(int(value)), f"{value:#x}", (field or register).description))
        rows += [
            (f"  .{part.name}", str(part.of(value)), "", part.description)
            for part in value.fields.values()
        ]
    typer.echo("\n".join(aligned(rows)))


def registers(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    name: Annotated[
        str | None,
        typer.Argument(
            help="BLOCK.REGISTER, BLOCK.REGISTER.FIELD, a block, or a glob like 'tcp.rto*' in "
            "quotes. Left out: list what there is.",
            show_default=False,
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Argument(help="Write this number, like 200 or 0xc8.", show_default=False),
    ] = None,
    map_file: Annotated[
        Path | None,
        typer.Option(
            "--map",
            metavar="FILE",
            help="The registers.json of the board's build, or the build's folder; it is kept. "
            "Default: the build or kept map that has the hash which the board reports.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    timeout: Seconds = TIMEOUT,
) -> None:
    """List, read and write the registers of a running board by name.

    A value is written as it is; what the register then holds is printed. The board refuses
    addresses of another build than the one that it runs.
    """
    number = None if value is None else _number(value)
    with open_board(board, timeout) as opened:
        if map_file is not None:
            opened.register_map(map_file)
        if name is None:
            _list(opened, as_json)
            return
        if number is not None:
            opened.write_register(name, number)
            if not opened.register_map().find(name)[0].readable:
                typer.echo("{}" if as_json else f"{name}: written")
                return
        _show(opened, name, as_json)
