"""`trebuchet web`: files that a board's web service answers with (``docs/web.md``)."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ..client import Board
from ..client.smp import Configuration
from ..models.errors import TrebuchetError
from ..models.http.folder import objects_of
from ..models.http.image import LAYOUT, Image
from ..models.http.load import pack
from ..models.status import Status
from .manage import TIMEOUT
from .options import AsJson, Seconds, open_board, seconds
from .output import aligned

__all__ = ["app", "load_files", "load_seconds", "web_state"]

#: Seconds until a board has taken an image, and more for each KiB of it: a processor without a
#: cache takes some hundred cycles a byte, and a simulated one has a million of them a second.
LOAD_TIMEOUT, KIB_TIMEOUT = 60.0, 0.25
LOAD_TIMES = f"{LOAD_TIMEOUT:g}, and {KIB_TIMEOUT:g} for each KiB"

app = typer.Typer(no_args_is_help=True, help="Load files into a board's web service.")


def load_seconds(size: int) -> float:
    """How long a board may take for an image of ``size`` bytes."""
    return LOAD_TIMEOUT + KIB_TIMEOUT * (size >> 10)


def web_state(board: Board, name: str) -> dict[str, int]:
    """What the board says of its web service: the rows of its command ``web``."""
    reply = board.ask("web")
    if reply.status == Status.UNKNOWN_COMMAND:
        raise TrebuchetError(
            f"{name} has no web service; build it with one, as by --service +8000=web"
        )
    if not reply.good:
        raise TrebuchetError(f"{name} answered {reply.reason}")
    state = {}
    for line in reply.text.splitlines():
        word, _, value = line.partition(" ")
        if not (value.isdecimal() and len(value) <= 10):
            raise TrebuchetError(f"{name} described its web service with {line[:80]!r}")
        state[word] = int(value)
    missing = {"port", "enabled", "held", "next", "room", "layout"} - state.keys()
    if missing:
        raise TrebuchetError(f"{name} did not say {min(missing)!r} of its web service")
    return state


def load_files(board: Board, name: str, folder: Path, timeout: float | None = None) -> Image:
    """Have a board serve the files of a folder; returns their image.

    Raises :class:`TrebuchetError` if there is no such folder, no web service, or no room.
    """
    objects = objects_of(folder)
    state = web_state(board, name)
    if state["layout"] != LAYOUT:
        raise TrebuchetError(
            f"{name} lays images out otherwise; use the trebuchet that it was built with"
        )
    if state["held"]:
        raise TrebuchetError(
            f"{name} still sends {state['held']} responses of the files before the present ones; "
            "try again"
        )
    try:
        image = Image(objects, state["next"], state["room"])
    except ValueError as error:
        raise TrebuchetError(f"{name} cannot hold {folder}: {error}") from error
    contents = pack(image)
    written = timeout or load_seconds(len(contents))
    board.configure(Configuration(0, 0, (), contents), written)
    return image


@app.command()
def load(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    folder: Annotated[Path, typer.Argument(help="Folder whose files are to be served.")],
    timeout: Annotated[float | None, seconds(LOAD_TIMES)] = None,
) -> None:
    """Have a board serve the files of a folder, instead of those before.

    Requests are answered from the files before until all of the new ones are there.
    """
    with open_board(board, timeout or LOAD_TIMEOUT) as opened:
        image = load_files(opened, board, folder, timeout)
        port = web_state(opened, board)["port"]
    for path in sorted(image.left_out):
        shown = path.decode("utf-8", "replace")
        typer.echo(f"left out, as its path has more than 96 bytes: {shown}", err=True)
    typer.echo(f"{board} serves {image.paths} paths ({len(image.bytes)} bytes) on port {port}")


@app.command()
def status(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    as_json: AsJson = False,
    timeout: Seconds = TIMEOUT,
) -> None:
    """Show what a board's web service serves, and its counters."""
    with open_board(board, timeout) as opened:
        state = web_state(opened, board)
        counters = {
            name.removeprefix("web."): value
            for name, value in opened.counters().items()
            if name.startswith("web.")
        }
    shown = {name: state[name] for name in ("port", "enabled", "paths", "bytes", "room", "held")}
    shown |= {name: counters[name] for name in counters if name != "enable"}
    if as_json:
        typer.echo(json.dumps(shown, indent=2))
        return
    typer.echo("\n".join(aligned([[name, str(value)] for name, value in shown.items()])))
