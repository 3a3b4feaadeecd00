"""Read one ECG lead of a WFDB record as voltages, whatever its format, units and segments.

A record is one segment or a list of them, with gaps between (header(5), "multi-segment records").
In a record of variable layout the first segment has no samples and names all signals; the others
have some of them, each with its own gain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..files import read_file
from .conversion import check_rate
from .leads import candidates, listed, millivolts_of, named
from .wfdb_formats import FORMATS
from .wfdb_header import DEFAULT_GAIN, GAP, Header, Signal, read_header

__all__ = ["Trace", "read_counts", "read_trace"]

MAX_FILE_BYTES = 1 << 30
#: Samples of all signals that are unpacked at a time; a multiple of every format's block.
CHUNK = 3 << 18
#: A signal that is in less than this share of a record yields to one that is longer there.
PRESENT = 0.5
#: Samples of a lead that are converted at a time: four hours at 8 kHz, or a week at 200 Hz.
MAX_SAMPLES = 1 << 27


@dataclass(frozen=True)
class Trace:
    """A lead: its name, samples a second, float64 millivolts with NaN for invalid samples.

    ``frame_rate`` is that of the record, in which annotations count.
    """

    name: str
    rate: float
    frame_rate: float
    millivolts: np.ndarray
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A segment: its header, None in a gap, and its length in frames, None if not given."""

    header: Header | None
    length: int | None


def group_of(header: Header, index: int) -> range:
    """Return the indices of the signals that are stored in the same file, around ``index``."""
    signals = header.signals
    first, last = index, index + 1
    while first and signals[first - 1].file == signals[index].file:
        first -= 1
    while last < len(signals) and signals[last].file == signals[index].file:
        last += 1
    return range(first, last)


def length_in(header: Header, group: range, size: int) -> int:
    """Return the frames in a file of ``size`` bytes; raise ValueError if the header has more."""
    signal = header.signals[group[0]]
    form, width = FORMATS[signal.format], sum(header.signals[n].per_frame for n in group)
    if header.length is None:
        return form.samples_of(max(0, size - signal.offset)) // width
    needed = signal.offset + form.bytes_of(header.length * width)
    if size < needed:
        raise ValueError(f"{signal.file} must have {needed} bytes, not {size}")
    return header.length


def check_group(header: Header, group: range) -> None:
    for n in group:
        signal = header.signals[n]
        if signal.format not in FORMATS:
            raise ValueError(
                f"signals must be of format {', '.join(FORMATS)}, not {signal.format[:20]}"
            )
        if signal.format != header.signals[group[0]].format:
            raise ValueError(f"the signals of {signal.file} must all be of one format")


def read_counts(folder: Path, header: Header, index: int) -> np.ndarray:
    """Return all counts, int64, of a signal: ``length * per_frame`` of them.

    Raise ValueError if its file is too short, or if a signal in it does not have its checksum.
    """
    group = group_of(header, index)
    check_group(header, group)
    signal = header.signals[index]
    path = folder / signal.file
    if not path.is_file():
        raise ValueError(f"the header's file of samples, {signal.file}, is not there")
    data = read_file(path, MAX_FILE_BYTES)
    length = length_in(header, group, len(data))
    form = FORMATS[signal.format]
    widths = [header.signals[n].per_frame for n in group]
    width = sum(widths)
    starts = np.cumsum([0, *widths])
    last = [header.signals[n].initial for n in group]
    sums, kept = [0] * len(group), []
    # A chunk begins with a frame and with a block of the format.
    frames = max(1, CHUNK // width // form.samples) * form.samples
    for at in range(0, length, frames):
        count = min(frames, length - at) * width
        begin = header.signals[group[0]].offset + form.bytes_of(at * width)
        matrix = form.decode(data[begin : begin + form.bytes_of(count)], count).reshape(-1, width)
        for n in range(len(group)):
            column = matrix[:, starts[n] : starts[n + 1]].reshape(-1)
            if form.differences:
                column = last[n] + np.cumsum(column)
                last[n] = int(column[-1])
            sums[n] += int(column.sum())
            if group[n] == index:
                kept.append(column)
    for n, total in zip(group, sums, strict=True):
        expected = header.signals[n].checksum
        if expected is not None and (total - expected) % 65536:
            raise ValueError(f"{signal.file}: signal {n} does not have its header's checksum")
    return np.concatenate(kept) if kept else np.zeros(0, np.int64)


def to_millivolts(counts: np.ndarray, signal: Signal) -> np.ndarray:
    """Return float64 millivolts; NaN where the format's marker of an invalid sample is."""
    factor = millivolts_of(signal.unit) if signal.gain else 1.0
    with np.errstate(over="ignore"):
        values = (counts - signal.baseline) / (signal.gain or DEFAULT_GAIN) * (factor or 1.0)
    values[counts == FORMATS[signal.format].invalid] = np.nan
    late = min(signal.skew * signal.per_frame, len(values))
    return np.concatenate([values[late:], np.full(late, np.nan)])


def read_parts(folder: Path, header: Header) -> list[Part]:
    """Return the segments of a record; itself if it has none."""
    if not header.segments:
        return [Part(header, header.length)]
    parts = []
    for segment in header.segments:
        if segment.name == GAP:
            parts.append(Part(None, segment.length))
            continue
        path = folder / f"{segment.name}.hea"
        if not path.is_file():
            raise ValueError(f"{path.name}, the header of a segment, is not there")
        inner = read_header(path)
        if inner.segments:
            raise ValueError(f"{path.name}: a segment must not have segments itself")
        if inner.rate != header.rate:
            raise ValueError(f"{path.name}: its rate must be {header.rate:g}, not {inner.rate:g}")
        if inner.length is not None and inner.length != segment.length:
            raise ValueError(
                f"{path.name}: its length must be {segment.length}, not {inner.length}"
            )
        parts.append(Part(inner, segment.length))
    return parts


def signals_of(parts: Sequence[Part]) -> dict[str, tuple[Signal, int]]:
    """Return for each name of a signal its first description and the frames it is present for."""
    found: dict[str, tuple[Signal, int]] = {}
    for part in parts:
        for signal in part.header.signals if part.header else ():
            first, present = found.get(signal.name, (signal, 0))
            found[signal.name] = (first, present + (part.length or 0))
    return found


def candidates_of(parts: Sequence[Part], wanted: str | None) -> list[str]:
    """Return names of the signals to try; raise ValueError if none can be an ECG."""
    known = signals_of(parts)
    described = [(name, signal.unit) for name, (signal, _) in known.items()]
    if wanted is not None:
        return [described[named(described, wanted)][0]]
    names = [described[n][0] for n in candidates(described)]
    if not names:
        raise ValueError(
            f"none of its signals is an ECG lead by name and unit: {listed(described)}; "
            "if one is, name it with --lead"
        )
    longest = max(known[name][1] for name in names)
    return sorted(names, key=lambda name: known[name][1] < PRESENT * longest)


def lead_of(folder: Path, parts: Sequence[Part], name: str, most: int) -> tuple[np.ndarray, int]:
    """Return the first ``most`` frames of a lead in millivolts, and its samples in each frame."""
    pieces: list[np.ndarray] = []
    width = signals_of(parts)[name][0].per_frame
    lengths = [part.length for part in parts]
    whole = most if None in lengths else min(most, sum(length or 0 for length in lengths))
    left = whole
    if whole * width > MAX_SAMPLES:
        raise ValueError(f"{whole * width} samples are too many: name fewer --minutes")
    for part in parts:
        if not left:
            break
        names = part.header.names if part.header else ()
        if part.header is None or name not in names:
            piece = np.full(min(part.length or 0, left) * width, np.nan)
        elif part.length == 0:
            continue
        else:
            index = names.index(name)
            signal = part.header.signals[index]
            if signal.per_frame != width:
                raise ValueError(f"signal {name} must have {width} samples a frame everywhere")
            if millivolts_of(signal.unit) is None:
                raise ValueError(f"signal {name} is in {signal.unit} in a segment, no voltage")
            piece = to_millivolts(read_counts(folder, part.header, index), signal)
        pieces.append(piece[: left * width])
        left -= len(pieces[-1]) // width
    return np.concatenate(pieces) if pieces else np.zeros(0), width


def notes_of(parts: Sequence[Part], name: str) -> tuple[str, ...]:
    signal, _ = signals_of(parts)[name]
    if not signal.gain:
        return (f"uncalibrated: {DEFAULT_GAIN:g} counts a millivolt are assumed",)
    factor = millivolts_of(signal.unit)
    return () if factor == 1 else (f"scaled from {signal.unit} to mV",)


def check_lead_rate(lead: str, rate: float) -> None:
    try:
        check_rate(rate)
    except ValueError as error:
        raise ValueError(f"lead {lead} cannot be used: {error}") from error


def read_trace(folder: Path, name: str, wanted: str | None, most_seconds: float) -> Trace:
    """Return the first ``most_seconds`` of a lead of the record ``name``.

    The lead is the one called ``wanted``, or the best ECG lead that has valid samples. Raise
    ValueError if there is none, or if files are missing or wrong.
    """
    header = read_header(folder / f"{name}.hea")
    parts = read_parts(folder, header)
    most = int(most_seconds * header.rate)
    names = candidates_of(parts, wanted)
    notes: list[str] = []
    for lead in names:
        check_lead_rate(lead, header.rate * signals_of(parts)[lead][0].per_frame)
        values, width = lead_of(folder, parts, lead, most)
        if not np.isnan(values).all() or lead == names[-1]:
            break
        notes.append(f"lead {lead} has no valid samples")
    notes += notes_of(parts, lead)
    return Trace(lead, header.rate * width, header.rate, values, tuple(notes))
