"""Sending a record to a board's ECG role over TCP, and checking what comes back.

A record is cut into overlapping blocks (:mod:`trebuchet.models.ecg.blocks`), one SMP data message
each. A few messages are under way at a time, so that the board always has work; answers may come in
any order and are told apart by their ID. Every answer is compared with the golden model byte for
byte.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...models.ecg import blocks, model
from ...models.ecg.data import Record
from ...models.ecg.scoring import Score, score
from ...models.errors import TrebuchetError
from .. import smp

__all__ = ["Reading", "Run", "exchange", "read_with_model", "run_record"]

OUTSTANDING = 4
#: A result has at most this many bytes after the ID.
MAX_ANSWER = 4 + model.MAX_RESULT


@dataclass(frozen=True)
class Reading:
    """Beats of a whole record: positions, classes (index into ``CLASSES``) and scores."""

    positions: np.ndarray
    labels: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, parts: list[blocks.Block], results: Sequence[bytes]) -> "Reading":
        beats = blocks.merge_results(parts, results)
        return cls(
            np.array([place for place, _, _ in beats], np.int64),
            np.array([label for _, label, _ in beats], np.int64),
            np.array([scores for _, _, scores in beats], np.int64).reshape(-1, model.OUTPUTS),
        )

    def score(self, record: Record) -> Score | None:
        """Comparison with the annotations; None for a record without any."""
        if record.positions is None or record.labels is None:
            return None
        return score(record.positions, record.labels, self.positions, self.labels)


@dataclass(frozen=True)
class Run:
    """One record sent to a board."""

    record: Record
    board: Reading
    golden: Reading
    messages: int
    seconds: float
    differing: tuple[int, ...]  # messages whose result is not the golden model's

    def require_equal(self) -> None:
        if self.differing:
            some = ", ".join(map(str, self.differing[:8]))
            raise TrebuchetError(
                f"{len(self.differing)} of {self.messages} results of the board differ from the "
                f"golden model (messages {some}): weights of another version, or a fault"
            )


def exchange(
    connection: smp.Connection, payloads: Sequence[bytes], outstanding: int = OUTSTANDING
) -> Iterator[tuple[int, bytes]]:
    """Send the payloads, yield ``(index, result)`` as the answers come."""
    if outstanding < 1:
        raise ValueError(f"outstanding must be at least 1, not {outstanding}")
    waiting: set[int] = set()
    sent = 0
    while sent < len(payloads) or waiting:
        while sent < len(payloads) and len(waiting) < outstanding:
            connection.send(smp.data_message(sent, payloads[sent]))
            waiting.add(sent)
            sent += 1
        id, result = receive_result(connection, waiting)
        waiting.remove(id)
        yield id, result


def receive_result(connection: smp.Connection, waiting: set[int]) -> tuple[int, bytes]:
    message = connection.receive()
    if message is None:
        raise TrebuchetError(
            f"{connection.name} closed the connection with {len(waiting)} messages unanswered"
        )
    if message.kind == smp.MessageType.RESPONSE:
        response = smp.parse_response(message.payload)
        which = "a message" if response.id is None else f"message {response.id}"
        raise TrebuchetError(
            f"{connection.name} refused {which}: {smp.describe_status(response.status)}"
        )
    if message.kind != smp.MessageType.DATA:
        raise smp.ProtocolError(f"{connection.name} sent a {message.kind.name} message")
    id, result = smp.parse_data(message.payload)
    if id not in waiting:
        raise smp.ProtocolError(f"{connection.name} answered message {id}, which is not under way")
    if len(result) % model.RECORD_BYTES or len(result) > model.MAX_RESULT:
        raise smp.ProtocolError(
            f"{connection.name} sent a result of {len(result)} bytes; it must be a multiple of "
            f"{model.RECORD_BYTES}, at most {model.MAX_RESULT}"
        )
    return id, result


def read_with_model(record: Record) -> Reading:
    """What the golden model reads; no board needed."""
    parts = cut(record)
    return Reading.of(parts, [model.classify_block(part.samples) for part in parts])


def cut(record: Record) -> list[blocks.Block]:
    try:
        return blocks.cut(record.samples)
    except ValueError as error:
        raise TrebuchetError(f"record {record.name}: {error}") from error


def run_record(
    address: str,
    port: int,
    record: Record,
    outstanding: int = OUTSTANDING,
    timeout: float = 30.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Run:
    """Send the whole record; ``progress(done, total)`` is called after each answer.

    ``seconds`` of the result is the time from the first connect to the last answer; the golden
    model is computed outside it.
    """
    parts = cut(record)
    golden = [model.classify_block(part.samples) for part in parts]
    results: list[bytes] = [b""] * len(parts)
    start = time.monotonic()
    with smp.Connection(address, port, timeout, max_payload=MAX_ANSWER) as connection:
        payloads = [part.payload() for part in parts]
        for done, (index, result) in enumerate(exchange(connection, payloads, outstanding), 1):
            results[index] = result
            progress(done, len(parts))
    seconds = time.monotonic() - start
    differing = tuple(i for i, result in enumerate(results) if result != golden[i])
    return Run(
        record,
        Reading.of(parts, results),
        Reading.of(parts, golden),
        len(parts),
        seconds,
        differing,
    )
