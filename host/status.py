"""`trebuchet status`: ask a board for its state over HTTP (`GET /status`, served by firmware)."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..models.errors import TrebuchetError

__all__ = ["fetch_status", "status"]

#: No board says more; a peer that does is not a board.
MAX_BYTES = 1 << 20

#: Seconds; the slowest board is a simulated one on a busy machine.
TIMEOUT = 15.0


def fetch_status(board: str, timeout: float = TIMEOUT) -> dict[str, Any]:
    """The board's state as it reports it. ``board`` is ``host`` or ``host:port``."""
    url = f"http://{board}/status"
    # A board is a direct neighbour: a proxy from the environment has no way to it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=timeout) as answer:
            body = answer.read(MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise TrebuchetError(f"{url} answered HTTP {error.code} {error.reason}") from error
    except TimeoutError as error:
        raise TrebuchetError(f"{board} did not answer within {timeout:g} s") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise TrebuchetError(f"{board} did not answer within {timeout:g} s") from error
        raise TrebuchetError(f"cannot reach {board}: {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise TrebuchetError(f"cannot read {url}: {error or type(error).__name__}") from error
    return parse_status(board, body)


def parse_status(board: str, body: bytes) -> dict[str, Any]:
    """The JSON object in ``body``."""
    if len(body) > MAX_BYTES:
        raise TrebuchetError(f"{board} sent more than {MAX_BYTES} bytes as its status")
    try:
        state = json.loads(body)
    except ValueError as error:
        raise TrebuchetError(f"{board} sent a status that is not JSON: {error}") from error
    if not isinstance(state, dict):
        raise TrebuchetError(
            f"the status of {board} must be a JSON object, not {type(state).__name__}"
        )
    return state


def flatten(state: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Rows ``("tcp.segments", "12")`` of a nested object, in its order."""
    rows: list[tuple[str, str]] = []
    for key, value in state.items():
        if isinstance(value, dict):
            rows += flatten(value, f"{prefix}{key}.")
        else:
            rows.append((prefix + key, value if isinstance(value, str) else json.dumps(value)))
    return rows


def status(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait.")] = TIMEOUT,
) -> None:
    """Show version, uptime, sessions and every counter of a running board."""
    state = fetch_status(board, timeout)
    if as_json:
        typer.echo(json.dumps(state, indent=2))
        return
    table = Table("field", "value", box=None)
    for name, value in flatten(state):
        table.add_row(name, value, style="dim" if value == "0" else None)
    Console().print(table)
