"""Sending a record to a board's ECG role over TCP, and checking what comes back.

A board that takes records gets one in parts (:mod:`trebuchet.models.ecg.record`), one SMP stream
message each, and keeps itself what it needs of the part before. To any board, a record may go as
overlapping blocks (:mod:`trebuchet.models.ecg.blocks`), one data message each, which are
independent of each other. A few messages are under way at a time, so that the board always has
work; answers may come in any order and are told apart by their ID. Every answer is compared with
the golden model byte for byte.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...models.ecg import blocks, model
from ...models.ecg import record as parts
from ...models.ecg.data import Record
from ...models.ecg.model import Preset, Weights
from ...models.ecg.presets import PRESETS
from ...models.ecg.scoring import Score, score
from ...models.errors import TrebuchetError
from ...models.status import Status
from .. import smp
from ..exchange import Refused, exchange
from ..roles import explain, role_number
from ..status import fetch_status

__all__ = [
    "Plan",
    "Reading",
    "Refused",
    "Run",
    "board_preset",
    "exchange",
    "read_with_model",
    "run_record",
]

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
    def of(cls, beats: list[tuple]) -> "Reading":
        """From ``(position, class, scores)`` tuples."""
        return cls(
            np.array([place for place, _, _ in beats], np.int64),
            np.array([label for _, label, _ in beats], np.int64),
            np.array([scores for _, _, scores in beats], np.int64).reshape(-1, model.OUTPUTS),
        )

    def outside(self, gaps: tuple[tuple[int, int], ...]) -> "Reading":
        """Without the beats in ``gaps``, whose samples are interpolated."""
        kept = np.ones(len(self.positions), bool)
        for first, last in gaps:
            kept &= (self.positions < first) | (self.positions > last)
        return Reading(self.positions[kept], self.labels[kept], self.scores[kept])

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
    streamed: bool
    differing: tuple[int, ...]  # messages whose result is not the golden model's

    def require_equal(self) -> None:
        if self.differing:
            some = ", ".join(map(str, self.differing[:8]))
            raise TrebuchetError(
                f"{len(self.differing)} of {self.messages} results of the board differ from the "
                f"golden model (messages {some}): weights of another version, or a fault"
            )


@dataclass(frozen=True)
class Plan:
    """What is sent for a record, what must come back, and how it is put together."""

    kind: smp.MessageType
    payloads: list[bytes]
    golden: list[bytes]
    read: Callable[[Sequence[bytes]], Reading]


def plan_blocks(record: Record, preset: Preset | None, weights: Weights | None) -> Plan:
    """Overlapping blocks, independent of each other."""
    cut = blocks.cut(record.samples)
    return Plan(
        smp.MessageType.DATA,
        [block.payload() for block in cut],
        [model.classify_block(block.samples, weights, preset) for block in cut],
        lambda results: Reading.of(blocks.merge_results(cut, results)).outside(record.gaps),
    )


def plan_stream(record: Record, preset: Preset | None, weights: Weights | None) -> Plan:
    """Parts of a record, and an empty message at the end."""
    stream = parts.RecordStream(preset, weights)
    payloads, golden, offsets = [], [], []
    for part in parts.parts_of(record.samples):
        offsets.append(stream.offset)
        payloads.append(part.astype("<i2").tobytes())
        golden.append(stream.block(part))
    offsets.append(stream.offset)
    payloads.append(b"")
    golden.append(stream.end())

    def read(results: Sequence[bytes]) -> Reading:
        beats = [
            (offset + beat.position, beat.label, beat.scores)
            for offset, result in zip(offsets, results, strict=True)
            for beat in model.unpack_records(result)
        ]
        return Reading.of(beats).outside(record.gaps)

    return Plan(smp.MessageType.STREAM, payloads, golden, read)


def plan(
    record: Record, streamed: bool, preset: Preset | None = None, weights: Weights | None = None
) -> Plan:
    """The messages of a record; ``preset`` and ``weights`` are those of the board."""
    count = len(record.samples)
    if count < model.MIN_SAMPLES:
        raise TrebuchetError(
            f"record {record.name}: a record must have at least {model.MIN_SAMPLES} samples, "
            f"not {count}"
        )
    return (plan_stream if streamed else plan_blocks)(record, preset, weights)


def result_fault(index: int, result: bytes) -> str | None:
    """What is wrong with the form of a result, or None."""
    if len(result) % model.RECORD_BYTES == 0 and len(result) <= model.MAX_RESULT:
        return None
    return (
        f"a result of {len(result)} bytes; it must be a multiple of {model.RECORD_BYTES}, "
        f"at most {model.MAX_RESULT}"
    )


def read_with_model(
    record: Record,
    streamed: bool = True,
    preset: Preset | None = None,
    weights: Weights | None = None,
) -> Reading:
    """What the golden model reads; no board needed."""
    planned = plan(record, streamed, preset, weights)
    return planned.read(planned.golden)


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
) -> Run:
    """Send the whole record; ``progress(done, total)`` is called after each answer.

    ``role``: name of the role on the board; None: the port's.
    ``streamed``: in parts or as independent blocks; ``None``: in parts if the board takes them.
    ``seconds`` of the result is the time from the connect to the last answer; the golden model is
    computed outside it.
    """
    number = role_number(address, role, timeout)
    planned = plan(record, streamed is not False, preset, weights)
    try:
        return send_plan(address, port, record, planned, outstanding, timeout, progress, number)
    except Refused as refusal:
        if streamed is not None or refusal.status != Status.BAD_TYPE:
            raise explain(address, refusal, timeout) from refusal
    planned = plan(record, False, preset, weights)
    return send_plan(address, port, record, planned, outstanding, timeout, progress, number)


def send_plan(
    address: str,
    port: int,
    record: Record,
    planned: Plan,
    outstanding: int,
    timeout: float,
    progress: Callable[[int, int], None],
    role: int | None = None,
) -> Run:
    count = len(planned.payloads)
    results: list[bytes] = [b""] * count
    start = time.monotonic()
    with smp.Connection(address, port, timeout, max_payload=MAX_ANSWER) as connection:
        answers = exchange(
            connection, planned.payloads, outstanding, planned.kind, fault=result_fault, role=role
        )
        for done, answer in enumerate(answers, 1):
            results[answer.index] = answer.result
            progress(done, count)
    seconds = time.monotonic() - start
    return Run(
        record,
        planned.read(results),
        planned.read(planned.golden),
        count,
        seconds,
        planned.kind == smp.MessageType.STREAM,
        tuple(i for i, result in enumerate(results) if result != planned.golden[i]),
    )
