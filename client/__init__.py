"""Client library: boards and pools of boards, blocking and with asyncio (docs/client.md).

>>> from trebuchet.client import Board
>>> with Board("192.0.2.2") as board:
...     board.role("verilog_example").call(b"123456789")

Plain Python without other packages; a role's typed calls may need some. The errors are those of
:mod:`.errors`: one for each status of a board, such as ``BadLength``.
"""

from typing import TYPE_CHECKING, Any

from . import errors
from .blocking import Board, Pool
from .errors import (
    BoardError,
    ConnectionLost,
    MissingPackage,
    ProtocolError,
    Refused,
    WrongRole,
)
from .jobs import Batch, Call
from .management import Reply
from .operation import operation
from .role import O, Role

__all__ = [
    "AsyncBoard",
    "AsyncPool",
    "Batch",
    "Board",
    "BoardError",
    "Call",
    "ConnectionLost",
    "MissingPackage",
    "O",
    "Pool",
    "ProtocolError",
    "Refused",
    "Reply",
    "Role",
    "WrongRole",
    "operation",
]


if TYPE_CHECKING:
    from .aio import AsyncBoard, AsyncPool


def __getattr__(name: str) -> Any:
    """The error of a status, such as ``BadLength`` of ``BAD_LENGTH``; what needs asyncio."""
    if name in ("AsyncBoard", "AsyncPool"):
        from . import aio  # noqa: PLC0415 - half of the time of an import that may not need it

        return getattr(aio, name)
    return getattr(errors, name)
