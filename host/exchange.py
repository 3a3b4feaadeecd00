"""Messages to a role and their answers: some under way at a time, told apart by their ID."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..models.errors import TrebuchetError
from . import smp

__all__ = ["Answer", "Refused", "exchange"]


class Refused(TrebuchetError):
    """The board answered a message with an error."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Answer:
    """The result of message ``index``, ``seconds`` after the first byte of it was sent."""

    index: int
    result: bytes
    seconds: float


def exchange(
    connection: smp.Connection,
    payloads: Sequence[bytes],
    outstanding: int,
    kind: smp.MessageType = smp.MessageType.DATA,
    fault: Callable[[int, bytes], str | None] = lambda index, result: None,
    role: int | None = None,
) -> Iterator[Answer]:
    """Send the payloads, yield the answers as they come. ``role``: number of the role they are for.

    A board answers two messages of a connection before it waits for the first answer to be taken:
    when messages or answers are large, more ``outstanding`` could wait for each other for ever.
    ``fault(index, result)`` says what is wrong with the form of a message's result, or None.
    """
    if outstanding < 1:
        raise ValueError(f"outstanding must be at least 1, not {outstanding}")
    waiting: dict[int, float] = {}
    sent = 0
    while sent < len(payloads) or waiting:
        while sent < len(payloads) and len(waiting) < outstanding:
            waiting[sent] = time.monotonic()
            connection.send(smp.data_message(sent, payloads[sent], kind, role))
            sent += 1
        id, result = _receive_result(connection, waiting, fault)
        yield Answer(id, result, time.monotonic() - waiting.pop(id))


def _receive_result(
    connection: smp.Connection, waiting: dict[int, float], fault: Callable[[int, bytes], str | None]
) -> tuple[int, bytes]:
    message = connection.receive()
    if message is None:
        raise TrebuchetError(
            f"{connection.name} closed the connection with {len(waiting)} messages unanswered"
        )
    if message.kind == smp.MessageType.RESPONSE:
        response = smp.parse_response(message.payload)
        which = "a message" if response.id is None else f"message {response.id}"
        raise Refused(
            f"{connection.name} refused {which}: {smp.describe_status(response.status)}",
            response.status,
        )
    if message.kind != smp.MessageType.DATA:
        raise smp.ProtocolError(f"{connection.name} sent a {message.kind.name} message")
    id, result = smp.parse_data(message.payload)
    if id not in waiting:
        raise smp.ProtocolError(f"{connection.name} answered message {id}, which is not under way")
    if (wrong := fault(id, result)) is not None:
        raise smp.ProtocolError(f"{connection.name} sent {wrong}")
    return id, result
