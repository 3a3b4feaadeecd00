"""Golden model of a record that comes in parts: every beat is reported once.

A part has 64 to :data:`MAX_PART` samples, a multiple of four. The role keeps the last
:data:`KEPT` samples of the record (all of it if it is shorter). A block is what is kept and the
part behind it; it is classified like any other block. Of its beats those are reported that lie in
the part's *zone*, in positions of the block:

- the zone begins at ``max(0, kept - tail) + late``, where the zone before ended (0 for the first
  part), ``late`` samples later if the last beat that was reported is less than :data:`GAP` samples
  before: ``late = max(0, last beat + GAP - end of its zone)``, and what is still due of ``late`` if
  the zone had no beat;
- it ends ``tail`` samples before the block's end (at 0 if the block is shorter): all that a beat in
  it depends on lies in the block. ``tail`` belongs to the preset.

The end of the record is a part without samples: the block is what is kept, the zone reaches to its
end, and nothing is kept afterwards. So does a part of a wrong length, which is refused, end the
record, but without its last beats.

Positions in the answer count from the block's first sample, which is kept sample number 0. That
is sample ``RecordStream.offset`` of the record: ``max(0, samples before - KEPT)``.
All numbers are multiples of four, so the transforms of neighbouring blocks agree on what they
share.
"""

from collections.abc import Callable, Iterator

import numpy as np

from . import model

__all__ = [
    "GAP",
    "KEPT",
    "MAX_PART",
    "PartReader",
    "RecordStream",
    "parts_of",
    "read_parts",
    "read_record",
]

KEPT = 704
GAP = 72
MAX_PART = model.MAX_SAMPLES - KEPT


class PartReader:
    """What is kept of one record from part to part.

    ``tail``: see above; ``read(block)`` finds the beats of a block: tuples that begin with the
    position. Each part gives ``(offset, beats in its zone)``.
    """

    def __init__(self, tail: int, read: Callable[[np.ndarray], list[tuple]]):
        self.tail, self.read = tail, read
        self.forget()

    def forget(self):
        self.offset = 0
        self._kept = np.zeros(0, np.int16)
        self._late = 0

    def part(self, samples) -> tuple[int, list[tuple]]:
        samples = np.asarray(samples, np.int16)
        count = len(samples)
        if not model.MIN_SAMPLES <= count <= MAX_PART or count % 4:
            self.forget()
            raise ValueError(
                f"a part must have {model.MIN_SAMPLES} to {MAX_PART} samples, a multiple of 4, "
                f"not {count}"
            )
        return self._zone(samples)

    def end(self) -> tuple[int, list[tuple]]:
        offset, beats = self._zone(np.zeros(0, np.int16)) if len(self._kept) else (0, [])
        self.forget()
        return offset, beats

    def _zone(self, samples):
        block = np.concatenate([self._kept, samples])
        low = max(0, len(self._kept) - self.tail) + self._late
        high = max(0, len(block) - self.tail) if len(samples) else len(block)
        beats = [beat for beat in self.read(block) if low <= beat[0] < high]
        free = beats[-1][0] + GAP if beats else low
        self._late = max(0, free - high)
        self._kept = block[-KEPT:]
        offset = self.offset
        self.offset += len(block) - len(self._kept)
        return offset, beats


class RecordStream:
    """One record; ``preset`` and ``weights`` as for :func:`model.classify_block`."""

    def __init__(self, preset=None, weights=None):
        self.preset = preset or model.FAITHFUL

        def read(block):
            beats = model.unpack_records(model.classify_block(block, weights, self.preset))
            return [(beat.position, beat) for beat in beats]

        self._reader = PartReader(self.preset.tail, read)

    @property
    def offset(self) -> int:
        """Place in the record of the next block's first sample."""
        return self._reader.offset

    def block(self, samples) -> bytes:
        """The result of the next part."""
        return b"".join(beat.pack() for _, beat in self._reader.part(samples)[1])

    def end(self) -> bytes:
        """The beats that are still due; the next part begins a record."""
        return b"".join(beat.pack() for _, beat in self._reader.end()[1])


def parts_of(samples) -> Iterator[np.ndarray]:
    """Cut a record into parts; the last 1 to 67 samples may be left out."""
    usable = len(samples) - len(samples) % 4
    for start in range(0, usable, MAX_PART):
        part = samples[start : min(start + MAX_PART, usable)]
        if len(part) >= model.MIN_SAMPLES:
            yield part


def read_parts(samples, tail, read) -> list[tuple]:
    """The beats of a record in parts, with their places in the record instead of positions."""
    reader = PartReader(tail, read)
    beats: list[tuple] = []
    for offset, found in [*map(reader.part, parts_of(samples)), reader.end()]:
        beats += [(offset + position, *rest) for position, *rest in found]
    return beats


def read_record(samples, preset=None, weights=None) -> list[tuple]:
    """``(position, class, scores)`` of every beat of a record, streamed in parts."""
    preset = preset or model.FAITHFUL

    def read(block):
        result = model.classify_block(block, weights, preset)
        return [(b.position, b.label, b.scores) for b in model.unpack_records(result)]

    return read_parts(samples, preset.tail, read)
