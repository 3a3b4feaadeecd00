"""Typed calls of the ECG role: beats of a record. Needs NumPy.

A board that takes records gets one in parts (:mod:`trebuchet.models.ecg.record`), one SMP stream
message each, and keeps itself what it needs of the part before. To any board, a record may go as
overlapping blocks (:mod:`trebuchet.models.ecg.blocks`), one data message each, which are
independent of each other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...models.ecg import blocks, model
from ...models.ecg import record as parts
from ...models.ecg.data import Record
from ...models.ecg.scoring import Score, score
from ...models.status import Status
from ..errors import Refused
from ..jobs import Batch, Call, Told
from ..operation import operation
from ..role import O, Role
from ..smp import MessageType

__all__ = ["EcgCalls", "Plan", "Reading", "plan_blocks", "plan_stream"]


@dataclass(frozen=True)
class Reading:
    """Beats of a whole record: positions, classes (index into ``CLASSES``) and scores."""

    positions: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]
    scores: np.ndarray[Any, Any]

    @classmethod
    def of(cls, beats: Sequence[tuple[Any, ...]]) -> "Reading":
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
class Plan:
    """What is sent for a record, and how the results are put together."""

    kind: MessageType
    payloads: list[bytes]
    read: Callable[[Sequence[bytes]], Reading]

    def batch(self, role: str | None, told: Told = lambda index, result, seconds: None) -> Batch:
        """The messages for ``role``; a record gives the same beats each time."""
        return Batch(
            role,
            self.payloads,
            self.kind,
            pure=True,
            together=self.kind == MessageType.STREAM,
            largest=model.MAX_RESULT,
            fault=result_fault,
            told=told,
        )


def plan_blocks(samples: np.ndarray[Any, Any]) -> Plan:
    """Overlapping blocks, independent of each other."""
    cut = blocks.cut(samples)
    return Plan(
        MessageType.DATA,
        [block.payload() for block in cut],
        lambda results: Reading.of(blocks.merge_results(cut, results)),
    )


def plan_stream(samples: np.ndarray[Any, Any]) -> Plan:
    """Parts of a record, and an empty message at the end."""
    payloads = [part.astype("<i2").tobytes() for part in parts.parts_of(samples)]
    before = np.cumsum([0, *(len(payload) // 2 for payload in payloads)])
    offsets = np.maximum(before - parts.KEPT, 0).tolist()

    def read(results: Sequence[bytes]) -> Reading:
        return Reading.of(
            [
                (offset + beat.position, beat.label, beat.scores)
                for offset, result in zip(offsets, results, strict=True)
                for beat in model.unpack_records(result)
            ]
        )

    return Plan(MessageType.STREAM, [*payloads, b""], read)


def result_fault(index: int, result: bytes) -> str | None:
    """What is wrong with the form of a result, or None."""
    if len(result) % model.RECORD_BYTES == 0 and len(result) <= model.MAX_RESULT:
        return None
    return (
        f"a result of {len(result)} bytes; it must be a multiple of {model.RECORD_BYTES}, "
        f"at most {model.MAX_RESULT}"
    )


class EcgCalls(Role[O]):
    """``board.ecg.run(samples)``."""

    kind = "ecg"
    pure = True

    @operation
    def run(self, samples: Any, *, streamed: bool | None = None) -> Call[Reading]:
        """The beats of a record: of ``samples``, 64 or more int16 at 360 Hz, 200 a millivolt.

        ``streamed``: in parts, or as independent blocks, which several boards may share; None: in
        parts if the board takes them. Raises ``ValueError`` for what are no such samples.
        """
        record = _samples(samples)
        if streamed is not False:
            planned = plan_stream(record)
            try:
                results = yield planned.batch(self.name)
                return planned.read(results)
            except Refused as refused:
                if streamed or refused.status != Status.BAD_TYPE:
                    raise
        planned = plan_blocks(record)
        results = yield planned.batch(self.name)
        return planned.read(results)


def _samples(samples: Any) -> np.ndarray[Any, Any]:
    made = np.asarray(samples)
    if made.ndim != 1 or not np.issubdtype(made.dtype, np.integer):
        raise ValueError(
            f"samples must be a sequence of integers, not {made.ndim} dimensions of {made.dtype}"
        )
    if len(made) < model.MIN_SAMPLES:
        raise ValueError(
            f"a record must have at least {model.MIN_SAMPLES} samples, not {len(made)}"
        )
    if made.min() < -(1 << 15) or made.max() >= 1 << 15:
        raise ValueError("samples must be -32768 to 32767")
    return made.astype(np.int16)
