"""The second preset: the smoothed signal around a beat, that around the block's beats on average,
and the rhythm.

Detection and records are those of :mod:`.model` (steps 1 to 5, 10), and so is the network (step 9)
but for its size and :data:`SHIFTS`. In place of steps 6 to 8, for a beat whose crossing is ``m``:

6. Traces (:func:`trace`, :func:`template`)
    The block's A2 is the low-pass of A1 (step 1), 16 bit, ``count = M / 4`` values; an index below
    0 means the first value, one beyond the end the last. The beat's trace is ``A2[m+i] - mean``
    with ``mean = (sum of A2[m-32 .. m+31]) >> 6``, saturated to -2048..2047 (12 bit signed), for
    the 45 places ``i = -32, -30 .. -14, -12, -11 .. 13, 14, 16 .. 30`` in rising order: every value
    near the QRS complex, every other from 356 ms before the beat to 344 ms after it, P and T wave
    included.

    The template stands for what this heart's beats look like. Of the block's accepted beats (step
    4, in order, reported or not) the first ``K`` take part, ``K`` the largest of 1, 2, 4, 8, 16
    that is not greater than their number. ``t[i] = (sum of A2[m_k + i] over these beats) >>
    log2(K)`` for ``i = -32 .. 31``, 16 bit; the template is ``t[i] - ((sum of all 64 t) >> 6)`` at
    the same places, saturated in the same way. It is the same for all beats of a block.

7. Intervals (:func:`intervals`), 5 values of 16 bit signed
    ``gap`` is the distance of two successive accepted beats of the block, in values of D2, at most
    255. With ``plog`` of step 8, the logarithms of the gap before the beat, the one after it, the
    one before the gap before, the one after the gap after; each ``plog(255)`` if the block has no
    such gap; then the logarithm of the block's mean interval:
    ``plog(last beat - first beat) - plog(beats - 1)``, indices of the first and last accepted beat,
    or ``plog(255) - plog(1)`` if the block has one beat only.

8. Inputs, 95 in this order: the trace (0 to 44), the template (45 to 89), the intervals (90 to 94).

The only multipliers are the network's; only A2 of a block is kept, a quarter of its samples.
Template and intervals need the end of the block's detection. The zone of a part of a record ends
:data:`TAIL` samples before the block, so that the gap after a beat is known unless it is longer
than that.
"""

from pathlib import Path

import numpy as np

from .model import Preset, dwt_level, plog

__all__ = [
    "AFTER",
    "BEFORE",
    "FINE",
    "FINE_END",
    "GAP_MAX",
    "HIDDEN",
    "INPUTS",
    "INTERVALS",
    "PLACES",
    "SECOND",
    "SHIFTS",
    "TAIL",
    "TEMPLATE",
    "TEMPLATE_BEATS_LOG2",
    "TRACE",
]

#: A2 values before the beat and from it on that take part in a mean; together a power of two.
BEFORE, AFTER = 32, 32
#: Of those 64 values, from FINE to FINE_END (exclusive) all are inputs, elsewhere every other.
FINE, FINE_END = 20, 46
PLACES = np.array([i for i in range(BEFORE + AFTER) if FINE <= i < FINE_END or i % 2 == 0])
TRACE = TEMPLATE = len(PLACES)
INTERVALS = 5
TRACE_MAX = 2047
TEMPLATE_BEATS_LOG2 = 4
GAP_MAX = 255
INPUTS = TRACE + TEMPLATE + INTERVALS
HIDDEN = 48
SHIFTS = (12, 19)
TAIL = 352


def block_a2(samples):
    """A2 of a block: ``len(samples) // 4`` values."""
    used = len(samples) - len(samples) % 4
    return dwt_level(dwt_level(samples[:used])[0])[0]


def around(a2, m):
    """The 64 values of A2 around the index ``m`` (any shape; a new last axis)."""
    places = np.asarray(m)[..., None] + np.arange(-BEFORE, AFTER)
    return a2[np.clip(places, 0, len(a2) - 1)]


def centre(values):
    """Those of 64 values (last axis) that are inputs, minus the mean of all; 12 bit."""
    mean = values.sum(axis=-1, keepdims=True) >> 6
    return np.clip(values[..., PLACES] - mean, -TRACE_MAX - 1, TRACE_MAX)


def trace(a2, m):
    """The trace of beats at the indices ``m``."""
    return centre(around(a2, m))


def template(a2, beats):
    """The template of a block from all of its accepted ``beats`` (indices, in order)."""
    log2 = min(len(beats).bit_length() - 1, TEMPLATE_BEATS_LOG2)
    return centre(around(a2, beats[: 1 << log2]).sum(axis=0) >> log2)


def intervals(beats):
    """Intervals of all accepted ``beats`` of a block: one row each."""
    count = len(beats)
    gaps = np.full(count + 3, GAP_MAX)  # gaps[i + 1] lies before beat i
    gaps[2:-2] = np.minimum(np.diff(beats), GAP_MAX)
    near = plog(gaps)
    mean = plog(GAP_MAX) - plog(1)
    if count > 1:
        mean = plog(beats[-1] - beats[0]) - plog(count - 1)
    columns = [near[i : i + count] for i in (1, 2, 0, 3)]
    return np.stack([*columns, np.full(count, mean)], axis=-1)


def second_vectors(samples, peaks, chosen):
    """The inputs for the chosen peaks."""
    a2 = block_a2(samples)
    beats = np.array([position // 4 for position, _ in peaks], np.int64)
    own = trace(a2, beats[chosen])
    common = np.broadcast_to(template(a2, beats), (len(chosen), TEMPLATE))
    return np.concatenate([own, common, intervals(beats)[chosen]], axis=-1)


SECOND = Preset(
    name="second",
    inputs=INPUTS,
    hidden=HIDDEN,
    shifts=SHIFTS,
    tail=TAIL,
    vectors=second_vectors,
    weights_file=Path(__file__).with_name("weights_second.json"),
)
