"""Make samples of the role, 360 Hz and 200 counts a millivolt, from voltages at any rate.

Invalid samples (NaN) are replaced by interpolation between the valid ones around them. Stretches of
:data:`GAP_SECONDS` and more are reported as gaps as well, so that nothing that is found in them
counts.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["COUNTS_PER_MV", "RATE", "Converted", "check_rate", "convert", "resample", "rescale"]

#: Samples a second and counts a millivolt that the role takes.
RATE = 360
COUNTS_PER_MV = 200
#: Below it the QRS complex is lost; above it nothing is gained, and resampling takes too long.
MIN_RATE, MAX_RATE = 100, 20000
GAP_SECONDS = 1.0
#: Zero crossings of the resampling filter's kernel on each side of its middle.
CROSSINGS = 16
#: A smaller span than this is no ECG but a wrong gain or unit; larger offsets than this likewise.
MIN_SPAN_MV, MAX_OFFSET_MV = 0.02, 1000
#: Share of the samples that may be saturated: artefacts, such as those of a defibrillator.
SATURATED = 0.01


@dataclass(frozen=True)
class Converted:
    """Samples (int16); first and last sample of each gap; lines on what was changed."""

    samples: np.ndarray
    gaps: tuple[tuple[int, int], ...]
    notes: tuple[str, ...]


def rescale(place: float, rate: float) -> int:
    """Return the sample at ``RATE`` that is nearest to sample ``place`` at ``rate``."""
    return round(place * RATE / rate)


def runs(mask: np.ndarray) -> np.ndarray:
    """Return first and one past the last index of each run of True, one row a run."""
    edges = np.diff(mask.astype(np.int8), prepend=0, append=0)
    return np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)], 1)


def resample(values: np.ndarray, rate: float, target: float = RATE) -> np.ndarray:
    """Return float64 ``values`` at another rate, by a sinc kernel under a Blackman window.

    Its cut-off is half the lower of both rates. Before the first and after the last value these go
    on. Each output is the weighted mean of the 2 * CROSSINGS input values around it, more when the
    rate is reduced.
    """
    count = int(len(values) * target / rate)
    cut = min(1.0, target / rate)
    half = int(np.ceil(CROSSINGS / cut))
    padded = np.pad(values, (half, half + 1), mode="edge")
    steps = np.arange(1 - half, half + 1)
    result = np.empty(count)
    size = max(1, (1 << 20) // len(steps))
    for start in range(0, count, size):
        places = np.arange(start, min(start + size, count)) * (rate / target)
        whole = np.floor(places).astype(np.int64)
        distance = steps - (places - whole)[:, None]
        angle = np.pi * np.clip(distance / half, -1, 1)
        kernel = np.sinc(cut * distance) * (0.42 + 0.5 * np.cos(angle) + 0.08 * np.cos(2 * angle))
        taken = padded[whole[:, None] + steps + half]
        result[start : start + len(places)] = (taken * kernel).sum(1) / kernel.sum(1)
    return result


def fill(values: np.ndarray, rate: float) -> tuple[np.ndarray, list[tuple[int, int]], list[str]]:
    """Return the values without invalid ones, the gaps at ``RATE``, and what to say of them."""
    invalid = np.isnan(values)
    missing = int(invalid.sum())
    if missing == len(values):
        raise ValueError("it has no valid samples" if missing else "it has no samples")
    if not missing:
        return values, [], []
    places = np.arange(len(values))
    filled = np.where(invalid, np.interp(places, places[~invalid], values[~invalid]), values)
    share = 100 * missing / len(values)
    notes = [f"{missing} invalid samples ({share:.2g} %) were replaced by interpolation"]
    long = [(a, b) for a, b in runs(invalid).tolist() if b - a >= GAP_SECONDS * rate]
    if long:
        seconds = sum(b - a for a, b in long) / rate
        notes.append(f"{len(long)} gaps, {seconds:.1f} s together: beats in them do not count")
    return filled, [(rescale(a, rate), rescale(b, rate) - 1) for a, b in long], notes


def counts_of(millivolts: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return samples of finite voltages; raise ValueError where no ECG can have such."""
    notes = []
    limit = (1 << 15) / COUNTS_PER_MV
    offset = float(np.median(millivolts))
    if limit <= abs(offset) <= MAX_OFFSET_MV:
        notes.append(f"an offset of {offset:.0f} mV was removed")
        millivolts = millivolts - offset
    wrong = "its gain, baseline or unit must be wrong"
    if np.mean(np.abs(millivolts) >= limit) > SATURATED:
        low, high = millivolts.min(), millivolts.max()
        raise ValueError(f"an ECG is within {limit:.0f} mV, not {low:.4g} to {high:.4g}: {wrong}")
    span = float(np.ptp(millivolts))
    if 0 < span < MIN_SPAN_MV:
        raise ValueError(f"an ECG spans at least {MIN_SPAN_MV} mV, not {span:.2g}: {wrong}")
    if not span:
        notes.append("the signal is constant")
    samples = np.clip(np.rint(millivolts * COUNTS_PER_MV), -32768, 32767)
    return samples.astype(np.int16), notes


def check_rate(rate: float) -> None:
    """Raise ValueError for a rate from which samples of the role cannot be made."""
    if not MIN_RATE <= rate <= MAX_RATE:
        raise ValueError(
            f"an ECG must have {MIN_RATE} to {MAX_RATE} samples a second, not {rate:.10g}"
        )


def convert(millivolts: np.ndarray, rate: float) -> Converted:
    """Return the role's samples of float64 ``millivolts``, NaN where invalid, at ``rate`` Hz."""
    check_rate(rate)
    values, gaps, notes = fill(millivolts, rate)
    if not np.isfinite(values).all():
        raise ValueError("its voltages are infinite: its gain must be wrong")
    if rate != RATE:
        values = resample(values, rate)
        notes.append(f"resampled from {rate:.10g} to {RATE} samples a second")
    samples, more = counts_of(values)
    return Converted(samples, tuple(gaps), (*notes, *more))
