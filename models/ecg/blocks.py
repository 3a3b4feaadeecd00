"""Cutting a long record into the role's messages, and putting the beats back together.

Blocks are independent of each other, so a beat near an end of its block may lack its window, its RR
interval, or its rival for the same QRS complex. Neighbouring blocks therefore overlap and each one
speaks for a zone of its own:

- the zone begins ``LEAD`` samples into the block: a beat in it whose predecessor lies before the
  block has an RR interval that is clipped (511) anyway, so the value is right in every case;
- the zone ends ``TAIL`` samples before the end: window and refractory time of a beat in it are
  inside.

All offsets are multiples of 4, so D2 of the overlap is the same in both blocks. The thresholds of
two blocks may still differ; two beats closer than ``GAP`` across a border are one, and the earlier
stays.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from . import model

__all__ = ["ADVANCE", "GAP", "LEAD", "TAIL", "Block", "cut", "merge", "merge_results"]

LEAD = 544
TAIL = 160
ADVANCE = model.MAX_SAMPLES - LEAD - TAIL
GAP = 72


@dataclass(frozen=True)
class Block:
    """One message: samples from ``offset`` on; it speaks for ``low <= position < high``."""

    offset: int
    samples: np.ndarray
    low: int
    high: int

    def payload(self) -> bytes:
        return self.samples.astype("<i2").tobytes()


def cut(samples: np.ndarray) -> list[Block]:
    """Overlapping blocks of a record; the last one is as long as the others where it can be."""
    count = len(samples)
    if count < model.MIN_SAMPLES:
        raise ValueError(f"a record must have at least {model.MIN_SAMPLES} samples, not {count}")
    last = max(0, (count - model.MAX_SAMPLES + 3) // 4 * 4)
    offsets = [*range(0, last, ADVANCE), last]
    blocks: list[Block] = []
    for offset in offsets:
        low = blocks[-1].high if blocks else 0
        high = count if offset == last else offset + model.MAX_SAMPLES - TAIL
        blocks.append(Block(offset, samples[offset : offset + model.MAX_SAMPLES], low, high))
    return blocks


def merge(blocks: list[Block], found: Iterable[list[tuple]]) -> list[tuple]:
    """Beats of the whole record from ``(position in the block, …)`` tuples of each block."""
    beats: list[tuple] = []
    for block, local in zip(blocks, found, strict=True):
        for position, *rest in local:
            place = block.offset + position
            inside = block.low <= place < block.high
            if inside and (not beats or place - beats[-1][0] >= GAP):
                beats.append((place, *rest))
    return beats


def merge_results(blocks: list[Block], results: Iterable[bytes]) -> list[tuple]:
    """``(position, class, scores)`` of every beat, from the result of each block."""
    return merge(
        blocks,
        (
            [(beat.position, beat.label, beat.scores) for beat in model.unpack_records(result)]
            for result in results
        ),
    )
