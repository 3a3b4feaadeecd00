"""Options of `trebuchet measure`, and lists in them; one line on what is wrong."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ...models.errors import TrebuchetError
from ..options import MAX_SECONDS, a_number
from .generator import CONNECTIONS
from .traffic import LARGEST, Traffic

__all__ = ["Client", "parse_numbers", "parse_rates", "parse_sizes"]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}
_STEP = 4
#: Transfers a second that an open loop may ask for.
_FASTEST = 1e6


class Client(StrEnum):
    BLOCKING = "blocking"
    POLLING = "polling"
    BOTH = "both"

    @property
    def kinds(self) -> Sequence["Client"]:
        return (Client.BLOCKING, Client.POLLING) if self == Client.BOTH else (self,)


def _size(text: str) -> int:
    unit = text[-1:].upper()
    digits = text[:-1] if unit in ("K", "M") else text
    if digits.isascii() and digits.isdigit() and len(digits) < 10:
        size = int(digits) * _UNITS[unit if unit in ("K", "M") else ""]
        if 1 <= size <= LARGEST:
            return size
    raise TrebuchetError(
        f"a size must be 1 to 64M bytes, as 64, 16K or 1M, not {text!r}; "
        "sizes are 64,1K,16K or 64:64M (each four times the one before)"
    )


def parse_sizes(text: str) -> list[int]:
    """``64,1K,16K``, or ``64:64M``: from the first to the second, each four times the last."""
    low, colon, high = text.partition(":")
    if not colon:
        return [_size(word) for word in text.split(",")]
    size, last = _size(low), _size(high)
    if size > last:
        raise TrebuchetError(f"sizes must rise, not {text!r}")
    sizes = []
    while size < last:
        sizes.append(size)
        size *= _STEP
    return [*sizes, last]


def parse_numbers(text: str) -> list[int]:
    """Numbers of connections, ``1,4,16``."""
    words = text.split(",")
    if all(w.isascii() and w.isdigit() and 1 <= int(w[:9]) <= CONNECTIONS for w in words):
        return [int(word) for word in words]
    raise TrebuchetError(f"connections must be 1 to {CONNECTIONS}, as 1,4,16, not {text!r}")


def parse_rates(text: str) -> list[float]:
    """Transfers per second, ``100,1000``."""
    try:
        rates = [float(word) for word in text.split(",")]
    except ValueError:
        rates = []
    if rates and all(0 < rate <= _FASTEST for rate in rates):
        return rates
    raise TrebuchetError(
        f"rates must be above 0 to 1e6 transfers a second, as 100,1e3, not {text!r}"
    )


Addresses = Annotated[
    list[str],
    typer.Argument(
        metavar="ADDRESS...",
        help="Boards, model nodes or job servers, HOST or HOST:PORT; they share the connections.",
    ),
]
TrafficOption = Annotated[Traffic, typer.Option(help="Kind of transfers.")]
RoleOption = Annotated[
    str | None, typer.Option(help="Name of the role on the board; default: that of the port.")
]
SecondsOption = Annotated[
    float,
    typer.Option(
        min=0.001, max=MAX_SECONDS, callback=a_number, help="How long transfers are started."
    ),
]
ConnectionsOption = Annotated[
    int, typer.Option(min=1, max=CONNECTIONS, help="Connections at the same time.")
]
InFlightOption = Annotated[
    int, typer.Option(min=1, max=1 << 16, help="Transfers under way on each connection.")
]
ClientOption = Annotated[
    Client, typer.Option(help="Wait in the kernel, or ask all the time, which takes a processor.")
]
CyclesOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=(1 << 32) - 1,
        help="Configure the benchmark role first, with so many cycles a job; "
        "a job server without --configured needs it.",
    ),
]
MostOption = Annotated[
    int | None, typer.Option("--count", min=1, help="Start so many transfers at most.")
]
ManagementOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65535,
        help="Port of GET /status, for role times; a model node's is its own. Default: 80 of an "
        "ADDRESS without a port.",
    ),
]
MetricsOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="A job server's metrics: times of queue and nodes."),
]
ClockOption = Annotated[
    float | None,
    typer.Option(min=1, max=1e12, callback=a_number, help="The board's clock, for role times."),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        min=0.1, max=MAX_SECONDS, callback=a_number, help="Seconds without any transfer's end."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
CsvOption = Annotated[Path | None, typer.Option(help="Write the runs as CSV.")]
PlotOption = Annotated[Path | None, typer.Option(help="Draw them (.png, .svg, .pdf).")]
SeedOption = Annotated[int, typer.Option(min=0, help="Of everything random.")]
