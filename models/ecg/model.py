"""Golden model of the ECG role: integer arithmetic only, bit for bit what the gateware does.

Source: sopc-cloud-platform, section 5.2 (two-level DWT, R peaks from D2, 64-sample QRS windows,
11 features, 11-20-6 network). Everything below is exact: ``>>`` is an arithmetic shift (floor), no
intermediate overflows the width given, and no result depends on the order of a sum.

Block
    One message holds ``N`` samples, int16 little-endian, ``64 <= N <= 4096`` (the weights are for
    360 Hz and 200 counts a millivolt). Any other payload length, or an odd number of bytes, is
    answered ``BAD_LENGTH``. Blocks are independent of each other.

1. Block DWT (:func:`dwt_level`, quadratic spline wavelet, decimating)
    ``a[n] = (x[2n-1] + 3 x[2n] + 3 x[2n+1] + x[2n+2] + 4) >> 3`` and ``d[n] = x[2n] - x[2n+1]``;
    beyond either end the end sample repeats. Only the first ``M = N - N mod 4`` samples take part.
    A1 (16 bit) is the low-pass of the samples, D2 (17 bit) the high-pass of A1; D1 and A2 of the
    block are not needed. D2 has ``M / 4`` values: a positive R peak is a negative minimum
    followed by a positive maximum; the crossing at index ``m`` belongs to sample ``4m``.

2. Score (:func:`scores`, 20 bit unsigned, 4 values of delay)
    ``E[m] = sum |D2[j]|`` for ``m - 4 <= j <= m + 3`` (zero outside the block): a running sum.
    Index ``m >= 1`` is a crossing if ``D2[m-1]`` and ``D2[m]`` differ in sign (zero counts as
    positive), either way round: a QRS complex of negative polarity is as good as a positive one.

3. Signal level (:func:`signal_level`, 20 bit, known at the end of the block)
    The largest crossing score (0 if none) of each complete run of 128 D2 values; of the only,
    incomplete run if there are fewer than 128. These are 1 to 8 maxima; the level is their lower
    median, ``sorted[(count - 1) >> 1]``.

4. Detection (:func:`detect`, second pass over the crossings in order, one step each)
    State: candidate (index, score) or none; last accepted beat (index, score) or none.
    For the crossing ``(m, E)``: (a) if there is a candidate and ``m - candidate > REFRACTORY``, it
    is accepted: it becomes the last beat, and there is no candidate; (b) the crossing is skipped
    unless ``E > MIN_SCORE`` and ``16 E > THRESHOLD * level`` and, when a last beat exists and ``m -
    last <= T_WAVE``, ``16 E > T_THRESHOLD * last score``; (c) the crossing becomes the candidate if
    there is none or if its score is greater (not equal). At the end of the block a candidate is
    accepted. Two beats are thus more than REFRACTORY apart.

5. R position (:func:`r_peaks`)
    ``R = 4 m``. ``RR = min(R - previous R, 511)``, 511 for the first beat of the block; every
    accepted beat counts as a previous one. A beat is reported if ``R >= 32`` and ``R + 32 <= N``.
    (A search for the extremum of the raw signal around ``4 m`` was tried and made the classes
    worse, so there is none.)

6. QRS window (:func:`window`, 64 values of 12 bit signed)
    Samples ``R - 32 .. R + 31`` minus ``mean = (sum of the 64) >> 6``, saturated to -2048..2047.

7. Second DWT (:func:`subbands`): the same filter on the window (its ends repeat)
    A1 has 32 values of 12 bit, D1 32 of 13 bit; on A1: A2 16 of 12 bit, D2 16 of 13 bit.

8. Features (:func:`features`), 11 values of 16 bit signed, in this order
    ``plog(v)`` is Mitchell's logarithm with 8 fraction bits: 0 for ``v = 0``, else with the leading
    one at bit ``e``: ``(e + 1) << 8`` plus the 8 bits right of the leading one (zeros below bit 0).

    - 0: ``plog(var)`` of the window, ``var = n * sum(x*x) - sum(x)**2``, n = 64, below 2**36;
    - 1 2 3: the same of D1 (n = 32), D2 and A2 (n = 16);
    - 4 5 6: autocorrelation of D1, D2, A2: ``r[k] = sum x[i] x[i+k]``, k = 0 .. n-1, 31 bit signed;
      ``s = max(0, bit length of r[0] - 16)``; ``q[k] = r[k] >> s``, 17 bit signed;
      ``plog(var of q) + 512 s``, var below 2**42;
    - 7 8 9: ratio of minimum to maximum of D1, D2, A2, as a difference of logarithms (no divider):
      ``plog(max(0, -min)) - plog(max(0, max))``;
    - 10: ``8 * RR``.

9. Network (:func:`network`), weights 16 bit, biases 34 bit, accumulators 36 bit signed
    hidden j: ``z = b1[j] + sum_i w1[j][i] f[i]``; ``h[j] = table[address(z, SHIFT1)] >> 1``;
    output c: ``y = b2[c] + sum_j w2[c][j] h[j]``; its score is ``table[address(y, SHIFT2)]``.
    ``address(z, s) = clamp(z >> s, -512, 511) + 512``; the table has 1,024 entries of 16 bit
    unsigned: ``table[i] = round(65535 / (1 + exp(-(i - 511.5) / 64)))``. Thus one in z is
    ``2**(SHIFT1 + 6)`` and h has 15 bits. The class is the index of the greatest ``y``, the lowest
    such index. ``w1 b1 w2 b2 table`` are data (``weights.json``): new training, same gateware.

10. Record: 16 bytes a beat, in order of position, little-endian
    u16 R, u8 class, u8 0, u16 scores[6]. At most 40 beats fit a block; a result has no more than
    :data:`MAX_RESULT` bytes.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = [
    "CLASSES",
    "FAITHFUL",
    "MAX_SAMPLES",
    "MIN_SAMPLES",
    "Beat",
    "Preset",
    "Weights",
    "autocorrelation",
    "classify_block",
    "detect",
    "dwt_level",
    "features",
    "load_weights",
    "network",
    "plog",
    "r_peaks",
    "scores",
    "signal_level",
    "subbands",
    "unpack_records",
    "variance",
    "window",
]

CLASSES = ("N", "LBBB", "RBBB", "APB", "PVC", "paced")
MIN_SAMPLES = 64
MAX_SAMPLES = 4096
RECORD_BYTES = 16
MAX_BEATS = 64
MAX_RESULT = RECORD_BYTES * MAX_BEATS

#: D2 values each side of a crossing in its score; a power of two.
SCORE_HALF = 4
#: log2 of the D2 values in a run whose maximum counts for the signal level.
RUN_LOG2 = 7
#: Detection constants; see the data sheet, step 4. Indices are D2 values (4 samples).
MIN_SCORE = 72
THRESHOLD = 5
REFRACTORY = 27
T_WAVE = 34
T_THRESHOLD = 8
WINDOW = 64
WINDOW_MAX = 2047
RR_MAX = 511
RR_SHIFT = 3
PLOG_FRACTION = 8
CORRELATION_BITS = 16
FEATURES = 11
HIDDEN = 20
OUTPUTS = 6
SHIFT1 = 12
SHIFT2 = 19
BIAS_BITS = 34
TABLE_LOG2 = 10
WEIGHTS_FILE = Path(__file__).with_name("weights.json")


def dwt_level(x):
    """One decimating level over the last axis (even length): ``(approximation, detail)``."""
    x = np.asarray(x, np.int64)
    even, odd = x[..., 0::2], x[..., 1::2]
    before = np.concatenate([x[..., :1], odd[..., :-1]], axis=-1)
    after = np.concatenate([even[..., 1:], x[..., -1:]], axis=-1)
    return (before + 3 * even + 3 * odd + after + 4) >> 3, even - odd


def block_d2(samples):
    """D2 of a block: ``len(samples) // 4`` values."""
    used = len(samples) - len(samples) % 4
    approximation, _ = dwt_level(samples[:used])
    return dwt_level(approximation)[1]


def scores(d2):
    """``(crossings, score)``: the indices of the sign changes and their scores."""
    magnitude = np.abs(d2)
    total = np.concatenate([[0], np.cumsum(magnitude)])
    index = np.arange(len(d2))
    low = np.maximum(index - SCORE_HALF, 0)
    high = np.minimum(index + SCORE_HALF, len(d2))
    score = total[high] - total[low]
    positive = d2 >= 0
    crossings = np.flatnonzero(positive[1:] != positive[:-1]) + 1
    return crossings, score[crossings]


def signal_level(crossings, score, count):
    """Lower median of the largest scores of the runs of a block of ``count`` D2 values."""
    runs = max(1, count >> RUN_LOG2)
    largest = [0] * runs
    for m, value in zip(crossings.tolist(), score.tolist(), strict=True):
        run = m >> RUN_LOG2
        if run < runs:
            largest[run] = max(largest[run], value)
    return sorted(largest)[(runs - 1) >> 1]


def detect(crossings, score, level):
    """Indices ``m`` of the accepted beats of a block, in order."""
    beats = []
    candidate = last = None
    for m, e in zip(crossings.tolist(), score.tolist(), strict=True):
        if candidate is not None and m - candidate[0] > REFRACTORY:
            beats.append(candidate)
            last, candidate = candidate, None
        if e <= MIN_SCORE or 16 * e <= THRESHOLD * level:
            continue
        if last is not None and m - last[0] <= T_WAVE and 16 * e <= T_THRESHOLD * last[1]:
            continue
        if candidate is None or e > candidate[1]:
            candidate = (m, e)
    if candidate is not None:
        beats.append(candidate)
    return [m for m, _ in beats]


def r_peaks(samples):
    """``(position, rr)`` of every accepted beat of a block, reported or not."""
    d2 = block_d2(samples)
    crossings, score = scores(d2)
    level = signal_level(crossings, score, len(d2))
    peaks, previous = [], None
    for m in detect(crossings, score, level):
        position = 4 * m
        rr = RR_MAX if previous is None else min(position - previous, RR_MAX)
        peaks.append((position, rr))
        previous = position
    return peaks


def window(samples, position):
    """The QRS window around ``position``: 64 values, mean removed, 12 bit."""
    half = WINDOW // 2
    part = np.asarray(samples[position - half : position + half], np.int64)
    return remove_mean(part)


def remove_mean(part):
    """Windows (last axis) minus their mean, saturated to 12 bit."""
    mean = part.sum(axis=-1, keepdims=True) >> 6
    return np.clip(part - mean, -WINDOW_MAX - 1, WINDOW_MAX)


def subbands(qrs):
    """``(D1, D2, A2)`` of windows (last axis)."""
    a1, d1 = dwt_level(qrs)
    a2, d2 = dwt_level(a1)
    return d1, d2, a2


def bit_length(value):
    """Bit length of non-negative integers below 2**53, element by element."""
    return np.frexp(np.asarray(value, np.float64))[1].astype(np.int64)


def plog(value):
    """Mitchell's logarithm with 8 fraction bits of non-negative integers below 2**53."""
    value = np.asarray(value, np.int64)
    length = bit_length(value)
    exponent = np.maximum(length - 1, 0)
    rest = value - (np.int64(1) << exponent)
    down = np.maximum(exponent - PLOG_FRACTION, 0)
    up = np.maximum(PLOG_FRACTION - exponent, 0)
    fraction = (rest >> down) << up
    return np.where(value == 0, 0, (length << PLOG_FRACTION) + fraction)


def variance(x):
    """``n * sum(x*x) - sum(x)**2`` over the last axis: n*n times the variance."""
    x = np.asarray(x, np.int64)
    return x.shape[-1] * (x * x).sum(axis=-1) - x.sum(axis=-1) ** 2


def autocorrelation(x):
    """``r[k]``, k = 0 .. n-1, over the last axis."""
    x = np.asarray(x, np.int64)
    n = x.shape[-1]
    lags = [(x[..., : n - k] * x[..., k:]).sum(axis=-1) for k in range(n)]
    return np.stack(lags, axis=-1)


def correlation_feature(x):
    """Logarithm of the variance of the autocorrelation, block-scaled by ``r[0]``."""
    r = autocorrelation(x)
    shift = np.maximum(bit_length(r[..., 0]) - CORRELATION_BITS, 0)
    q = r >> shift[..., None]
    return plog(variance(q)) + (shift << (PLOG_FRACTION + 1))


def ratio_feature(x):
    """Logarithm of minus minimum over maximum."""
    return plog(np.maximum(-x.min(axis=-1), 0)) - plog(np.maximum(x.max(axis=-1), 0))


def features(qrs, rr):
    """The 11 features; ``qrs`` has 64 values in its last axis, ``rr`` the shape of the others."""
    bands = subbands(qrs)
    columns = [plog(variance(qrs))]
    columns += [plog(variance(band)) for band in bands]
    columns += [correlation_feature(band) for band in bands]
    columns += [ratio_feature(band) for band in bands]
    columns.append(np.asarray(rr, np.int64) << RR_SHIFT)
    return np.stack(columns, axis=-1)


@dataclass(frozen=True)
class Weights:
    """What training produces; the shapes say how large the network is."""

    w1: np.ndarray  # int16 [hidden][inputs]
    b1: np.ndarray  # int34 [hidden]
    w2: np.ndarray  # int16 [6][hidden]
    b2: np.ndarray  # int34 [6]
    table: np.ndarray  # uint16 [1024]

    def __post_init__(self):
        hidden, inputs = self.w1.shape
        shapes = {
            "w1": (hidden, inputs),
            "b1": (hidden,),
            "w2": (OUTPUTS, hidden),
            "b2": (OUTPUTS,),
            "table": (1 << TABLE_LOG2,),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} must be {shape}, not {getattr(self, name).shape}")
        for name in ("w1", "w2"):
            if np.abs(getattr(self, name)).max() > 32767:
                raise ValueError(f"{name} must be 16 bit, not {np.abs(getattr(self, name)).max()}")
        for name in ("b1", "b2"):
            if np.abs(getattr(self, name)).max() >= 1 << BIAS_BITS - 1:
                raise ValueError(f"{name} must be {BIAS_BITS} bit signed")
        if self.table.min() < 0 or self.table.max() > 65535:
            raise ValueError("table must be 16 bit unsigned")


@dataclass(frozen=True)
class Preset:
    """A set of features and the network behind them; detection and records are common to all."""

    name: str
    inputs: int
    hidden: int
    #: Scale of the two layers (step 9).
    shifts: tuple
    #: Samples after a beat, in a multiple of four, on which its record may depend (``record.py``).
    tail: int
    #: ``vectors(samples, peaks, chosen)``: inputs of the network for those of a block's ``peaks``
    #: (:func:`r_peaks`) whose indices are ``chosen``, one row each.
    vectors: Callable
    weights_file: Path

    def load_weights(self, path=None):
        return load_weights(path or self.weights_file, self)


def sigmoid_table():
    """The table of the data sheet, step 9."""
    z = (np.arange(1 << TABLE_LOG2) - (1 << TABLE_LOG2 - 1) + 0.5) / 64
    return np.rint(65535 / (1 + np.exp(-z))).astype(np.int64)


def load_weights(path=WEIGHTS_FILE, preset=None):
    """Weights from a JSON file that :mod:`trebuchet.models.ecg.train` wrote."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    weights = Weights(**{k: _integers(k, content[k]) for k in ("w1", "b1", "w2", "b2", "table")})
    preset = preset or FAITHFUL
    if weights.w1.shape != (preset.hidden, preset.inputs):
        raise ValueError(
            f"{path} must have weights of the {preset.name} preset, {preset.inputs} inputs and "
            f"{preset.hidden} hidden neurons, not {weights.w1.shape[::-1]}"
        )
    return weights


def _integers(name, lists):
    array = np.array(lists)
    if array.dtype != np.int64:  # conversion would cut a fraction off
        raise ValueError(f"{name} must be lists of integers")
    return array


def table_address(z, shift):
    """Address of the sigmoid table for an accumulator."""
    half = 1 << TABLE_LOG2 - 1
    return np.clip(z >> shift, -half, half - 1) + half


def network(vector, weights, shifts=(SHIFT1, SHIFT2)):
    """``(class, scores, y)`` of vectors of inputs (last axis)."""
    z = weights.b1 + vector @ weights.w1.T
    hidden = weights.table[table_address(z, shifts[0])] >> 1
    y = weights.b2 + hidden @ weights.w2.T
    return y.argmax(axis=-1), weights.table[table_address(y, shifts[1])], y


@dataclass(frozen=True)
class Beat:
    """One result record."""

    position: int
    label: int
    scores: tuple

    def pack(self):
        return (
            self.position.to_bytes(2, "little")
            + bytes((self.label, 0))
            + b"".join(score.to_bytes(2, "little") for score in self.scores)
        )


def unpack_records(result):
    """The beats of a result: list of :class:`Beat`."""
    if len(result) % RECORD_BYTES:
        raise ValueError(f"a result must be a multiple of {RECORD_BYTES} bytes, not {len(result)}")
    fields = np.frombuffer(result, "<u2").reshape(-1, RECORD_BYTES // 2)
    return [Beat(int(f[0]), int(f[1]) & 255, tuple(int(s) for s in f[2:])) for f in fields]


def inside(samples, peaks):
    """Indices of the ``peaks`` whose QRS window lies in the block: those that are reported."""
    half = WINDOW // 2
    return [i for i, (r, _) in enumerate(peaks) if half <= r <= len(samples) - half]


def reported(samples):
    """``(position, rr)`` of the beats whose window lies in the block."""
    peaks = r_peaks(samples)
    return [peaks[i] for i in inside(samples, peaks)]


def faithful_vectors(samples, peaks, chosen):
    """The 11 features of the chosen peaks."""
    qrs = np.stack([window(samples, peaks[i][0]) for i in chosen])
    return features(qrs, np.array([peaks[i][1] for i in chosen]))


FAITHFUL = Preset(
    name="faithful",
    inputs=FEATURES,
    hidden=HIDDEN,
    shifts=(SHIFT1, SHIFT2),
    tail=160,
    vectors=faithful_vectors,
    weights_file=WEIGHTS_FILE,
)
_defaults: dict = {}


def default_weights(preset):
    """The trained weights of a preset, read once."""
    if preset.name not in _defaults:
        _defaults[preset.name] = preset.load_weights()
    return _defaults[preset.name]


def classify_block(samples, weights=None, preset=None):
    """The result of one block of int16 samples: 16 bytes a beat.

    ``preset``: :data:`FAITHFUL` if None; ``weights``: those trained for it if None.
    """
    preset = preset or FAITHFUL
    samples = np.asarray(samples)
    if not MIN_SAMPLES <= len(samples) <= MAX_SAMPLES:
        raise ValueError(f"a block must have 64 to 4096 samples, not {len(samples)}")
    weights = weights or default_weights(preset)
    peaks = r_peaks(samples)
    chosen = inside(samples, peaks)
    if not chosen:
        return b""
    vector = preset.vectors(samples, peaks, chosen)
    labels, score, _ = network(vector, weights, preset.shifts)
    return b"".join(
        Beat(peaks[i][0], int(label), tuple(int(s) for s in row)).pack()
        for i, label, row in zip(chosen, labels, score, strict=True)
    )
