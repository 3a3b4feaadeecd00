"""Sending a record to a board's ECG role over TCP, and checking what comes back.

How a record goes is :mod:`trebuchet.client.roles.ecg`. A few messages are under way at a time, so
that the board always has work. Every answer is compared with the golden model byte for byte.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...client import Board, Call, Pool, Refused
from ...client.owner import Options
from ...client.roles.ecg import Plan, Reading, plan_blocks, plan_stream
from ...client.smp import MessageType
from ...models.ecg import model
from ...models.ecg import record as parts
from ...models.ecg.data import Record
from ...models.ecg.model import Preset, Weights
from ...models.ecg.presets import PRESETS
from ...models.errors import TrebuchetError
from ...models.status import Status
from ..roles import explained
from ..status import fetch_status

__all__ = ["Reading", "Run", "board_preset", "read_with_model", "run_record"]

OUTSTANDING = 4


@dataclass(frozen=True)
class Run:
    """One record sent to a board."""

    record: Record
    board: Reading
    golden: Reading
    messages: int
    seconds: float
    streamed: bool
    differing: tuple[int, ...]  # messages whose result is not the golden model's

    def require_equal(self) -> None:
        if self.differing:
            some = ", ".join(map(str, self.differing[:8]))
            raise TrebuchetError(
                f"{len(self.differing)} of {self.messages} results of the board differ from the "
                f"golden model (messages {some}): weights of another version, or a fault"
            )


def golden_results(
    planned: Plan, preset: Preset | None = None, weights: Weights | None = None
) -> list[bytes]:
    """The golden model's result of each message."""
    stream = parts.RecordStream(preset, weights)
    found = []
    for payload in planned.payloads:
        samples = np.frombuffer(payload, "<i2")
        if planned.kind == MessageType.DATA:
            found.append(model.classify_block(samples, weights, preset))
        else:
            found.append(stream.block(samples) if len(samples) else stream.end())
    return found


def plan(record: Record, streamed: bool) -> Plan:
    """The messages of a record."""
    count = len(record.samples)
    if count < model.MIN_SAMPLES:
        raise TrebuchetError(
            f"record {record.name}: a record must have at least {model.MIN_SAMPLES} samples, "
            f"not {count}"
        )
    return (plan_stream if streamed else plan_blocks)(record.samples)


def read_with_model(
    record: Record,
    streamed: bool = True,
    preset: Preset | None = None,
    weights: Weights | None = None,
) -> Reading:
    """What the golden model reads; no board needed."""
    planned = plan(record, streamed)
    return planned.read(golden_results(planned, preset, weights)).outside(record.gaps)


def board_preset(board: str, timeout: float = 30.0, role: str | None = None) -> Preset:
    """The preset that a board's status names for ``role``, of several instances the first.

    The faithful one if there is no status to be had. ``role`` None: it is called ecg.
    """
    name = role or "ecg"
    try:
        state = fetch_status(board, timeout)
        engines = state["engines"]
        number = engines.get(name, engines.get(f"{name}_0")).get("preset", 0)
        return list(PRESETS.values())[number]
    except (TrebuchetError, KeyError, TypeError, AttributeError, IndexError):
        return model.FAITHFUL


def run_record(
    address: str,
    port: int,
    record: Record,
    outstanding: int = OUTSTANDING,
    timeout: float = 30.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    streamed: bool | None = None,
    preset: Preset | None = None,
    weights: Weights | None = None,
    role: str | None = None,
    connections: int = 1,
) -> Run:
    """Send the whole record; ``progress(done, total)`` is called after each answer.

    ``role``: name of the role on the board; None: the port's.
    ``streamed``: in parts or as independent blocks; ``None``: in parts if the board takes them.
    ``connections``: how many share the blocks; parts of a record have one connection.
    ``seconds`` of the result is the time from the connect to the last answer; the golden model is
    computed outside it.
    """
    options = Options(port=port, timeout=timeout, in_flight=outstanding)
    with (
        Board(address, **options) as board,
        Pool([address] * connections, **options) as pool,
        explained(board, role, "ecg"),
    ):
        planned = plan(record, streamed is not False)
        try:
            results, seconds = _send(pool, planned, progress, role)
        except Refused as refusal:
            if streamed is not None or refusal.status != Status.BAD_TYPE:
                raise
            planned = plan(record, False)
            results, seconds = _send(pool, planned, progress, role)
    golden = golden_results(planned, preset, weights)
    return Run(
        record,
        planned.read(results).outside(record.gaps),
        planned.read(golden).outside(record.gaps),
        len(results),
        seconds,
        planned.kind == MessageType.STREAM,
        tuple(i for i, result in enumerate(results) if result != golden[i]),
    )


def _send(
    pool: Pool, planned: Plan, progress: Callable[[int, int], None], role: str | None
) -> tuple[list[bytes], float]:
    """Results, and the seconds until the last one came."""
    done: set[int] = set()

    def told(index: int, result: bytes, seconds: float) -> None:
        done.add(index)
        progress(len(done), len(planned.payloads))

    def call() -> Call[list[bytes]]:
        return (yield planned.batch(role, told))

    start = time.monotonic()
    results = pool.run(call())
    return results, time.monotonic() - start
