"""`trebuchet role`: what roles there are, their registers, and a new one."""

import inspect
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..models.errors import TrebuchetError
from ..models.paths import IN_CHECKOUT

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="List roles, print their registers, make a new one.")


@app.command("list")
def list_roles(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """List the roles in the tree, each with the first line of its data sheet."""
    from ..cores.roles.catalog import load_role, role_names

    rows = {}
    for name in role_names():
        text = (inspect.getdoc(load_role(name)) or "").splitlines()
        rows[name] = text[0].split(" (role contract")[0] if text else ""
    if as_json:
        listed = [{"name": name, "title": title} for name, title in rows.items()]
        typer.echo(json.dumps(listed, indent=2))
        return
    table = Table("role", "what it does", box=None)
    for name, title in rows.items():
        table.add_row(name, title)
    Console().print(table)


@app.command()
def csr(
    name: Annotated[str, typer.Argument(help="A role of `trebuchet role list`.")],
    as_c: Annotated[bool, typer.Option("--c", help="Print a C header.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_svd: Annotated[bool, typer.Option("--svd", help="Print CMSIS-SVD.")] = False,
    base: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where the slot's registers begin.")
    ] = "0",
) -> None:
    """Print the register map of a slot with this role in it."""
    from ..cores.roles.catalog import slot_block
    from .csr_export import c_header, json_map, svd

    if as_c + as_json + as_svd > 1:
        raise TrebuchetError("choose one of --c, --json and --svd")
    try:
        address = int(base, 0)
    except ValueError:
        address = -1
    if not 0 <= address < 1 << 32 or address % 4:
        raise TrebuchetError(f"the base must be an address, a multiple of 4, not {base!r}")
    regions = [(slot_block(name), address)]
    if as_c:
        typer.echo(c_header(regions, f"TREBUCHET_{name.upper()}_H"), nl=False)
    elif as_json:
        typer.echo(json_map(regions), nl=False)
    elif as_svd:
        typer.echo(svd(regions, name), nl=False)
    else:
        Console().print(_table(*regions[0]))


def _table(block, address):
    from .csr_export import register_offsets

    table = Table("address", "register", "access", "bits", "meaning", box=None)
    offsets = register_offsets(block)
    for register in block.registers:
        where = f"0x{address + offsets[register.name]:08x}"
        table.add_row(
            where, register.name, register.access, str(register.width), register.description
        )
        for field in register.fields:
            last = field.offset + field.width - 1
            bits = str(field.offset) if field.width == 1 else f"{last}:{field.offset}"
            table.add_row("", f"  .{field.name}", "", bits, field.description)
    return table


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="A lower-case identifier.")],
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir", help="Where: a checkout or any other folder. Left out: the checkout."
        ),
    ] = None,
) -> None:
    """Write a role that builds: gateware, model, test; in a checkout proof and figure, too."""
    from .role_template import ROOT, create

    root = (directory or (ROOT if IN_CHECKOUT else Path())).resolve()
    for path in create(name, root):
        typer.echo(path)
    if not (root / "cores" / "roles").is_dir():
        typer.echo(
            f"\nIt inverts bytes until you change it. Next:\n"
            f"  pytest {root / name}\n"
            f"  trebuchet sim --role {root / name}\n"
            f"and docs/plan.md says how a board gets it."
        )
        return
    typer.echo(
        f"\nIt inverts bytes until you change it. Next:\n"
        f"  pytest tests/test_roles_{name}_role.py\n"
        f"  trebuchet prove {name}\n"
        f"  trebuchet bench {name}\n"
        f"  trebuchet role csr {name}\n"
        f"and docs/roles.md says what each file is for."
    )
