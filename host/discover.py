"""`trebuchet discover`: find the boards on this machine's networks."""

import ipaddress
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from ..client.discover import WAIT, discover, networks
from ..models.discovery import Found
from ..models.errors import TrebuchetError
from .options import MAX_SECONDS, a_number

__all__ = ["discover_command", "doubles"]


def _grouped(
    found: list[Found], key: Callable[[Found], str], other: Callable[[Found], str]
) -> Iterator[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for board in found:
        groups[key(board)].append(other(board))
    return ((name, others) for name, others in groups.items() if len(others) > 1)


def doubles(found: list[Found]) -> list[str]:
    """Return a line for each address or MAC address that several of the boards have."""
    lines = [
        f"several boards have the address {address}: {', '.join(macs)}; give each its own: "
        "docs/firmware-flash.md"
        for address, macs in _grouped(found, lambda f: f.address, lambda f: f.mac)
    ]
    lines += [
        f"several boards have the MAC address {mac}: {', '.join(addresses)}; set `mac` in their "
        "configuration: trebuchet config"
        for mac, addresses in _grouped(found, lambda f: f.mac, lambda f: f.address)
    ]
    return lines


def _where(interface: str | None, network: str | None) -> str:
    if network is not None:
        return str(ipaddress.IPv4Network(network, strict=False))
    names = networks()
    chosen = names if interface is None else {interface: names[interface]}
    return ", ".join(f"{name} ({a.network})" for name, a in chosen.items()) or "any network"


def discover_command(
    interface: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Ask on this interface only, such as eth0."),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            metavar="NET/BITS", help="Ask this network, such as 192.168.1.0/24, not all here."
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=MAX_SECONDS,
            callback=a_number,
            help="Seconds without a further board after which the search ends.",
        ),
    ] = WAIT,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects only.")] = False,
) -> None:
    """Find boards: name, address, board, roles, version, MAC address.

    Boards with a processor answer a broadcast, to hosts of their own network only. Exit code 1 if
    none does.
    """
    found = discover(interface, network, wait)
    if as_json:
        typer.echo(json.dumps([asdict(board) for board in found], indent=2))
    elif found:
        columns = ("name", "board", "version", "roles", "MAC address")
        table = Table(Column("address", no_wrap=True), *columns, box=None)
        for board in found:
            roles = ", ".join(board.roles) or "none"
            cells = (board.name or "-", board.board, board.version, roles)
            table.add_row(board.address, *cells, board.mac)
        Console(markup=False).print(table)
    for line in doubles(found):
        typer.echo(f"trebuchet: {line}", err=True)
    if not found:
        raise TrebuchetError(
            f"no board answered on {_where(interface, network)} within {wait:g} s; is it up, on "
            "this network, with firmware of version 0.2, and does no firewall drop answers to "
            "broadcasts? Boards without a processor do not answer"
        )
