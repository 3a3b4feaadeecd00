"""`trebuchet status`: ask a board for its state over HTTP (`GET /status`, served by firmware)."""

import http.client
import io
import json
import socket
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..models.errors import TrebuchetError
from ..models.progress import Deadline
from .manage import split_address
from .options import Seconds
from .smp import connect, deadline

__all__ = ["fetch_status", "status"]

#: No board says more; a peer that does is not a board.
MAX_BYTES = 1 << 20
#: No board's objects and lists lie in each other deeper.
MAX_DEPTH = 16

#: Seconds; the slowest board is a simulated one on a busy machine.
TIMEOUT = 15.0


class _Answer(io.RawIOBase):
    """What a socket receives until ``end``: ``http.client`` bounds single reads only."""

    def __init__(self, connected: socket.socket, end: Deadline) -> None:
        super().__init__()
        self.connected, self.end = connected, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not (left := self.end.left()):
            raise TimeoutError
        self.connected.settimeout(left)
        return self.connected.recv_into(buffer)

    def makefile(self, mode: str) -> io.BufferedReader:
        """All that ``http.client`` asks of a socket."""
        return io.BufferedReader(self)


def fetch_status(board: str, timeout: float = TIMEOUT) -> dict[str, Any]:
    """The board's state as it reports it. ``board`` is ``host`` or ``host:port``.

    ``timeout`` (seconds, as for :class:`.smp.Connection`) bounds the connect, and the whole answer.
    Proxies of the environment are not asked: they have no way to a board, a direct neighbour.
    """
    url = f"http://{board}/status"
    request = f"GET /status HTTP/1.1\r\nHost: {board}\r\nConnection: close\r\n\r\n"
    with connect(*split_address(board), timeout) as connected:
        end = deadline(timeout)
        try:
            connected.sendall(request.encode())
            reader = cast(socket.socket, _Answer(connected, end))
            answer = http.client.HTTPResponse(reader, method="GET")
            answer.begin()
            body = answer.read(MAX_BYTES + 1)
        except TimeoutError as error:
            raise TrebuchetError(f"{board} did not answer within {end}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise TrebuchetError(
                f"cannot read {url}: {str(error) or type(error).__name__}"
            ) from error
    if answer.status != http.client.OK:
        raise TrebuchetError(f"{url} answered HTTP {answer.status} {answer.reason}")
    return parse_status(board, body)


def parse_status(board: str, body: bytes) -> dict[str, Any]:
    """The JSON object in ``body``."""
    if len(body) > MAX_BYTES:
        raise TrebuchetError(f"{board} sent more than {MAX_BYTES} bytes as its status")
    try:
        state = json.loads(body)
    except ValueError as error:
        raise TrebuchetError(f"{board} sent a status that is not JSON: {error}") from error
    except RecursionError as error:
        raise _too_deep(board) from error
    if not isinstance(state, dict):
        raise TrebuchetError(
            f"the status of {board} must be a JSON object, not {type(state).__name__}"
        )
    level: list[Any] = [state]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
    if level:
        raise _too_deep(board)
    return state


def _too_deep(board: str) -> TrebuchetError:
    return TrebuchetError(f"the status of {board} must be at most {MAX_DEPTH} objects deep")


def _inside(value: Any) -> list[Any]:
    """The values in an object or a list."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def flatten(state: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Rows ``("tcp.segments", "12")`` of a nested object, in its order."""
    rows: list[tuple[str, str]] = []
    for key, value in state.items():
        if isinstance(value, dict):
            rows += flatten(value, f"{prefix}{key}.")
        else:
            rows.append((prefix + key, value if isinstance(value, str) else json.dumps(value)))
    return rows


def _plain(text: str) -> Text:
    """What a board wrote, which a terminal must not take for markup or for control codes."""
    return Text("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def status(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    timeout: Seconds = TIMEOUT,
) -> None:
    """Show version, uptime, sessions and every counter of a running board."""
    state = fetch_status(board, timeout)
    if as_json:
        typer.echo(json.dumps(state, indent=2))
        return
    table = Table("field", "value", box=None)
    for name, value in flatten(state):
        table.add_row(_plain(name), _plain(value), style="dim" if value == "0" else None)
    Console().print(table)
