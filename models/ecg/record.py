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

from collections.abc import Iterator

import numpy as np

from . import model

__all__ = ["GAP", "KEPT", "MAX_PART", "RecordStream", "parts_of", "read_record"]

KEPT = 704
GAP = 72
MAX_PART = model.MAX_SAMPLES - KEPT


class RecordStream:
    """The state of one record; ``preset`` and ``weights`` as for :func:`model.classify_block`."""

    def __init__(self, preset=None, weights=None):
        self.preset = model.FAITHFUL if preset is None else preset
        self.weights = weights
        self._forget()

    def _forget(self):
        self.offset = 0
        self._kept = np.zeros(0, np.int16)
        self._late = 0

    def block(self, samples) -> bytes:
        """The result of the next part."""
        samples = np.asarray(samples, np.int16)
        count = len(samples)
        if not model.MIN_SAMPLES <= count <= MAX_PART or count % 4:
            self._forget()
            raise ValueError(
                f"a part must have {model.MIN_SAMPLES} to {MAX_PART} samples, a multiple of 4, "
                f"not {count}"
            )
        return self._classify(samples)

    def end(self) -> bytes:
        """The beats that are still due; the next part begins a record."""
        result = self._classify(np.zeros(0, np.int16)) if len(self._kept) else b""
        self._forget()
        return result

    def _classify(self, samples) -> bytes:
        block = np.concatenate([self._kept, samples])
        tail = self.preset.tail
        low = max(0, len(self._kept) - tail) + self._late
        high = max(0, len(block) - tail) if len(samples) else len(block)
        beats = [
            beat
            for beat in model.unpack_records(model.classify_block(block, self.weights, self.preset))
            if low <= beat.position < high
        ]
        free = beats[-1].position + GAP if beats else low
        self._late = max(0, free - high)
        self._kept = block[-KEPT:]
        self.offset += len(block) - len(self._kept)
        return b"".join(beat.pack() for beat in beats)


def parts_of(samples) -> Iterator[np.ndarray]:
    """Cut a record into parts; the last 1 to 67 samples may be left out."""
    usable = len(samples) - len(samples) % 4
    for start in range(0, usable, MAX_PART):
        part = samples[start : min(start + MAX_PART, usable)]
        if len(part) >= model.MIN_SAMPLES:
            yield part


def read_record(samples, preset=None, weights=None) -> list[tuple]:
    """``(position, class, scores)`` of every beat of a record, streamed in parts."""
    stream = RecordStream(preset, weights)
    beats: list[tuple] = []

    def note(offset, result):
        for beat in model.unpack_records(result):
            beats.append((offset + beat.position, beat.label, beat.scores))

    for part in parts_of(samples):
        offset = stream.offset
        note(offset, stream.block(part))
    offset = stream.offset
    note(offset, stream.end())
    return beats
