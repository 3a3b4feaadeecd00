"""What is asked of a board, without I/O: jobs, batches of them, and calls.

A *call* is a generator that yields batches and is resumed with their results; what it returns is
the caller's result. If a job of a batch fails, its error is raised at the ``yield``. The same
generator serves blocking and asyncio callers, boards and pools:

>>> def double(data):
...     first, second = yield Batch("loopback", [data, data], pure=True)
...     return first + second
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from .smp import MAX_PAYLOAD, MessageType

__all__ = ["AnyCall", "Batch", "Call", "Service", "Told"]

T = TypeVar("T")


class Service(Enum):
    """Which of a board's TCP services takes a job."""

    ROLE = "role"
    MANAGEMENT = "management"
    STATUS = "status"


#: Called after each answer: index in the batch, result, seconds since its first byte was sent.
Told: TypeAlias = Callable[[int, bytes, float], None]


@dataclass(frozen=True)
class Batch:
    """Jobs that may be under way together.

    Attributes
    ----------
    role : str or None
        Name of the role that they are for; None: the role of the TCP port.
    operands : sequence of bytes
        One for each job.
    kind : MessageType
        Type of the messages.
    pure : bool
        The result depends on the operand alone, so a job may be done twice: one whose board was
        lost, or which was aborted, is repeated.
    together : bool
        All jobs go in order over one connection, on which no other job's stream messages are.
        If it is lost they fail: a board keeps a record's state for a connection.
    service : Service
        Which service takes them.
    largest : int
        Bytes of the largest result; a longer one fails the connection before it is received.
    timeout : float or None
        Seconds without progress, in place of the board's.
    fault : callable
        ``fault(index, result)`` returns what is wrong with the form of a result, or None.
    told : callable
        Called after each answer, in the order in which they come.
    """

    role: str | None
    operands: Sequence[bytes]
    kind: MessageType = MessageType.DATA
    pure: bool = False
    together: bool = False
    service: Service = Service.ROLE
    largest: int = MAX_PAYLOAD - 4
    timeout: float | None = None
    fault: Callable[[int, bytes], str | None] = field(default=lambda index, result: None)
    told: Told = field(default=lambda index, result, seconds: None)


#: Yields batches, gets the results of each, returns what the caller gets.
Call: TypeAlias = Generator[Batch, list[bytes], T]
#: A call of which only the run matters.
AnyCall: TypeAlias = Generator[Batch, list[bytes], Any]
