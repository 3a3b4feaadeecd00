"""`GET /status` of a board, without I/O: the request, and what its answer says."""

import http.client
import io
import json
import re
import socket
from collections.abc import Mapping
from typing import Any, cast

from ..models.role_folders import role_of_instance
from .errors import BoardError, ProtocolError

__all__ = [
    "COUNTERS",
    "MAX_BYTES",
    "is_whole",
    "parse_answer",
    "parse_status",
    "request_for",
    "roles_of",
]

#: No board says more; a peer that does is not a board.
MAX_BYTES = 1 << 20
#: No board's objects and lists lie in each other deeper.
MAX_DEPTH = 16
#: Members of a board's status: an object with none of them is of another server.
OF_BOARDS = frozenset(("board", "engines", "version"))
#: Counters that the slot of every role has, and nothing else.
COUNTERS = frozenset(("jobs", "errors", "cycles", "hangs"))
#: Counter that only the slot of a peer has, which is no role of the board.
OF_PEERS = "strays"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r?$", re.I | re.M)


def request_for(host: str) -> bytes:
    """The request, for ``Host: host``."""
    return f"GET /status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()


def is_whole(answer: bytes | bytearray) -> bool:
    """Whether an answer has all bytes that its head announces; False if that says no length."""
    head, end, body = bytes(answer).partition(b"\r\n\r\n")
    announced = _LENGTH.search(head)
    return (
        end != b"" and announced is not None and len(body) >= min(int(announced[1]), MAX_BYTES + 1)
    )


class _Received:
    """All that ``http.client`` asks of a socket."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, mode: str) -> io.BufferedReader:
        return cast(io.BufferedReader, io.BytesIO(self.data))


def parse_answer(board: str, data: bytes) -> bytes:
    """The body of an answer: all bytes of the connection. Raises :class:`BoardError`."""
    url = f"http://{board}/status"
    answer = http.client.HTTPResponse(cast(socket.socket, _Received(data)), method="GET")
    try:
        answer.begin()
        body = answer.read(MAX_BYTES + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise ProtocolError(f"cannot read {url}: {reason}; is it a Trebuchet board?") from error
    if answer.status != http.client.OK:
        raise BoardError(
            f"{url} answered HTTP {answer.status} {answer.reason}; is it a Trebuchet board?"
        )
    return body


def parse_status(board: str, body: bytes) -> dict[str, Any]:
    """The JSON object in ``body``."""
    if len(body) > MAX_BYTES:
        raise ProtocolError(f"{board} sent more than {MAX_BYTES} bytes as its status")
    try:
        state = json.loads(body)
    except ValueError as error:
        raise ProtocolError(
            f"{board} sent a status that is not JSON: {error}; is it a Trebuchet board?"
        ) from error
    except RecursionError as error:
        raise _too_deep(board) from error
    if not isinstance(state, dict):
        raise ProtocolError(
            f"the status of {board} must be a JSON object, not {type(state).__name__}; "
            "is it a Trebuchet board?"
        )
    level: list[Any] = [state]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
    if level:
        raise _too_deep(board)
    if not state.keys() & OF_BOARDS:
        raise ProtocolError(
            f"{board} sent a status without {', '.join(sorted(OF_BOARDS))}; "
            "is it a Trebuchet board? `trebuchet discover` lists the boards of this network"
        )
    return state


def _too_deep(board: str) -> ProtocolError:
    return ProtocolError(f"the status of {board} must be at most {MAX_DEPTH} objects deep")


def _inside(value: Any) -> list[Any]:
    """The values in an object or a list."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def blocks_of(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Blocks of counters in a board's status, by name."""
    engines = state.get("engines")
    found = engines.items() if isinstance(engines, dict) else ()
    return {name: block for name, block in found if isinstance(block, dict)}


def slots_of(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Blocks of the slots of roles, instances and peers."""
    return {name: block for name, block in blocks_of(state).items() if block.keys() >= COUNTERS}


def roles_of(state: dict[str, Any]) -> list[str]:
    """Names of the roles in a board's status, by their numbers; instances count once, peers not."""
    slots = [name for name, slot in slots_of(state).items() if OF_PEERS not in slot]
    return list(dict.fromkeys(map(role_of_instance, slots)))
