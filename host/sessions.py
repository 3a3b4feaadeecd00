"""`trebuchet sessions`: the TCP sessions of a running board, as its firmware tells them.

The figures come from the TCP engine's records, one after the other while it works, so each is of
its own moment (`cores/tcp/inspect.py`). Sequence numbers are those on the wire.
"""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ..models.errors import TrebuchetError
from ..models.status import Status
from .manage import TIMEOUT, Manager
from .options import Seconds
from .smp import ProtocolError

__all__ = ["fetch_sessions", "sessions"]

_MORE = "more: sessions "
#: No board has more sessions: numbers grow, so a list ends.
MAX_SESSIONS = 1 << 17
#: A board's numbers are of 32 bits.
_DIGITS = 10
#: The board's names of the columns, as users of this command see them.
_TITLES = {
    "snd.una": "SND.UNA",
    "snd.nxt": "SND.NXT",
    "rcv.nxt": "RCV.NXT",
    "peer-window": "SND.WND",
    "window": "RCV.WND",
    "rto": "RTO ms",
    "rtt": "RTT ms",
}


def _value(name: str, word: str) -> int | str:
    """A figure as a number; Python itself refuses to read one of thousands of digits."""
    if not word.isdecimal():
        return word
    if len(word) > _DIGITS:
        raise ProtocolError(f"{name} told of a session with a number of {len(word)} digits")
    return int(word)


def _rows(name: str, columns: list[str], lines: list[str]) -> Iterator[dict[str, Any]]:
    """Sessions in one answer."""
    for line in lines:
        words = line.split()
        if len(words) != len(columns):
            raise ProtocolError(f"{name} told of a session in {len(words)} words: {line[:80]!r}")
        yield {column: _value(name, word) for column, word in zip(columns, words, strict=True)}


def _list(manager: Manager, board: str, start: int) -> tuple[list[str], list[str], int | None]:
    """One answer: columns, lines, and with which session the list goes on, if it does."""
    reply = manager.command(f"sessions {start}")
    if reply.status == Status.NOT_BUILT_IN:
        raise TrebuchetError(
            f"{board} cannot tell its sessions: build it with `inspect=True` in its board file"
        )
    if not reply.good:
        raise TrebuchetError(f"{board} answered {reply.reason}")
    heading, *lines = reply.text.splitlines() or [""]
    columns = heading.split()
    if columns[:3] != ["session", "state", "peer"]:
        raise ProtocolError(f"{board} did not answer with a list of sessions")
    if not lines or not lines[-1].startswith(_MORE):
        return columns, lines, None
    after = _value(board, lines.pop().removeprefix(_MORE))
    if not (isinstance(after, int) and start < after < MAX_SESSIONS):
        raise ProtocolError(f"{board} goes on with session {str(after)[:80]} after {start}")
    return columns, lines, after


def fetch_sessions(board: str, timeout: float = TIMEOUT) -> list[dict[str, Any]]:
    """The sessions of ``board``, ``HOST`` or ``HOST:PORT``, by number; one row is our own.

    Keys are the columns of the firmware's command ``sessions`` (docs/firmware.md): numbers but for
    ``state`` and ``peer``; times in milliseconds, windows in bytes. Errors are
    :class:`TrebuchetError`.
    """
    found: list[dict[str, Any]] = []
    start: int | None = 0
    least = 0
    with Manager(board, timeout) as manager:
        while start is not None:
            columns, lines, after = _list(manager, board, start)
            least = max(least, start)
            for row in _rows(board, columns, lines):
                if found and list(row) != list(found[0]):
                    raise ProtocolError(f"{board} changed the columns of its list of sessions")
                session = row["session"]
                if not (isinstance(session, int) and least <= session < MAX_SESSIONS):
                    raise ProtocolError(
                        f"{board} told of session {str(session)[:80]}; the next one must be "
                        f"from {least} to {MAX_SESSIONS - 1}"
                    )
                least = session + 1
                found.append(row)
            start = after
    return found


def _columns(found: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of a table as wide as it must be: a terminal breaks lines where it likes."""
    rows = [[_TITLES.get(column, column) for column in found[0]]]
    rows += [[str(value) for value in row.values()] for row in found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


def sessions(
    board: Annotated[str, typer.Option(help="Address of the board, HOST or HOST:PORT.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects only.")] = False,
    timeout: Seconds = TIMEOUT,
) -> None:
    """Show the TCP sessions of a running board.

    State, peer, our port, bytes that the peer has not acknowledged and that our side has not read,
    SND.UNA, RCV.NXT, SND.NXT, both windows, time-out, round trip, congestion window, and transmit
    descriptors not answered.
    """
    found = fetch_sessions(board, timeout)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    if not found:
        typer.echo("no session")
        return
    typer.echo("\n".join(_columns(found)))
