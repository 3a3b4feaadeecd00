"""Parse headers of WFDB records, NAME.hea: rate, length, signals, segments.

Source: the WFDB Applications Guide, header(5). A field that is optional there is optional here.
Whatever is wrong raises ValueError with one line that names the file, the line and what the field
must be.
"""

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from ..files import read_file

__all__ = ["DEFAULT_GAIN", "GAP", "Header", "Segment", "Signal", "read_header"]

#: Counts a millivolt of a signal whose gain is 0 or not given: uncalibrated.
DEFAULT_GAIN = 200.0
DEFAULT_RATE = 250.0
#: Name of a segment without samples, and of the file of a signal that a layout header declares.
GAP = "~"
#: Limits of headers: no real record comes near, and nothing computed from them overflows.
MAX_HEADER_BYTES = 1 << 24
MAX_SIGNALS = 1024
MAX_LENGTH = 1 << 40
MAX_RATE = 1e6
MAX_OFFSET = 1 << 30
MAX_FRAME = 1 << 16

FORMAT = re.compile(r"(\d+)(?:x(\d+))?(?::(\d+))?(?:\+(\d+))?", re.ASCII)
GAIN = re.compile(r"([^(/]+)(?:\(([^)]*)\))?(?:/(.*))?")
WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)


@dataclass(frozen=True)
class Signal:
    """One signal: where its samples are stored, and what a count of them is."""

    file: str
    format: str
    #: Samples in each frame of the record.
    per_frame: int
    #: Frames by which the signal is late in its file; bytes before the file's first sample.
    skew: int
    offset: int
    #: Counts a unit, 0 if uncalibrated; the count that is 0 units; the unit as it is written.
    gain: float
    baseline: int
    unit: str
    #: Value before the first difference, of format 8.
    initial: int
    #: Sum of the samples modulo 65536; None if the header has none, or 0, which many programs
    #: write that do not compute it.
    checksum: int | None
    name: str


@dataclass(frozen=True)
class Segment:
    """Name of the record that is a segment, :data:`GAP` for a gap; length in frames."""

    name: str
    length: int


@dataclass(frozen=True)
class Header:
    """Frames a second; length in frames, None if not given; signals or segments."""

    rate: float
    length: int | None
    signals: tuple[Signal, ...]
    segments: tuple[Segment, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(signal.name for signal in self.signals)


def whole(text: str, what: str, low: int, high: int) -> int:
    """Return a whole number of a header; raise ValueError outside ``low`` … ``high``."""
    value = int(text) if WHOLE.fullmatch(text) else None
    if value is None or not low <= value <= high:
        raise ValueError(f"{what} must be a whole number from {low} to {high}, not {text[:40]!r}")
    return value


def real(text: str, what: str) -> float:
    """Return a finite number of a header."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{what} must be a finite number, not {text[:40]!r}")
    return value


def header_lines(path: Path) -> list[str]:
    """Lines that are neither empty nor comments. Units and names are UTF-8 or Latin-1."""
    data = read_file(path, MAX_HEADER_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and line[0] != "#"]


def parse_gain(words: list[str], zero: int, what: str) -> tuple[float, int, str]:
    """Return gain, baseline and unit from ``gain(baseline)/unit``; each is optional."""
    match = GAIN.fullmatch(words[0]) if words else None
    if words and match is None:
        raise ValueError(f"{what}: the gain must be GAIN(BASELINE)/UNIT, not {words[0][:40]!r}")
    gain, baseline, unit = match.groups() if match else ("0", None, None)
    limit = 1 << 31
    at = zero if baseline is None else whole(baseline, f"{what}: baseline", -limit, limit - 1)
    return real(gain, f"{what}: gain"), at, unit or "mV"


def parse_signal(line: str, number: int) -> Signal:
    """Return what one signal line says; ``number`` counts from 0."""
    what = f"signal {number}"
    words = line.split(maxsplit=8)
    if len(words) < 2:
        raise ValueError(f"{what} must have a file and a format, not {line[:40]!r}")
    match = FORMAT.fullmatch(words[1])
    if match is None:
        raise ValueError(f"{what}: the format must be a number, not {words[1][:40]!r}")
    form, frames, skew, offset = match.groups()
    path = PurePosixPath(words[0])
    if path.is_absolute() or ".." in path.parts or words[0] == "-":
        raise ValueError(f"{what}: its file must lie beside the header, not be {words[0][:80]!r}")
    limit = 1 << 31
    # ADC resolution and block size are of no use here, so whatever is written there is accepted.
    zero = whole(words[4], f"{what}: ADC zero", -limit, limit - 1) if len(words) > 4 else 0
    initial = whole(words[5], f"{what}: initial value", -limit, limit) if len(words) > 5 else zero
    checksum = whole(words[6], f"{what}: checksum", -limit, limit) if len(words) > 6 else 0
    gain, baseline, unit = parse_gain(words[2:3], zero, what)
    return Signal(
        file=words[0],
        format=form.lstrip("0") or "0",
        per_frame=whole(frames or "1", f"{what}: samples a frame", 1, MAX_FRAME),
        skew=whole(skew or "0", f"{what}: skew", 0, MAX_OFFSET),
        offset=whole(offset or "0", f"{what}: byte offset", 0, MAX_OFFSET),
        gain=gain,
        baseline=baseline,
        unit=unit,
        initial=initial,
        checksum=checksum or None,
        name=words[8] if len(words) > 8 else what,
    )


def parse_segment(line: str, number: int) -> Segment:
    words = line.split()
    what = f"segment {number}"
    if len(words) < 2:
        raise ValueError(f"{what} must have a name and a length, not {line[:40]!r}")
    if words[0] != PurePosixPath(words[0]).name or words[0] == "..":
        raise ValueError(f"{what}: its record must lie beside the header, not be {words[0][:80]!r}")
    return Segment(words[0], whole(words[1], f"{what}: length", 0, MAX_LENGTH))


def distinct(signals: tuple[Signal, ...]) -> tuple[Signal, ...]:
    """Return the signals with their numbers added to names that occurred before."""
    seen: set[str] = set()
    result = []
    for number, signal in enumerate(signals):
        name = f"{signal.name} (signal {number})" if signal.name in seen else signal.name
        seen.add(name)
        result.append(replace(signal, name=name))
    return tuple(result)


def parse(lines: list[str]) -> Header:
    if not lines:
        raise ValueError("the header is empty")
    words = lines[0].split()
    if len(words) < 2:
        raise ValueError(f"the first line must be NAME SIGNALS RATE LENGTH, not {lines[0][:40]!r}")
    _, slash, segments = words[0].partition("/")
    count = whole(words[1], "the number of signals", 0, MAX_SIGNALS)
    rate = real(words[2].partition("/")[0], "the rate") if len(words) > 2 else DEFAULT_RATE
    if not 0 < rate <= MAX_RATE:
        raise ValueError(f"the rate must be above 0 and at most {MAX_RATE:g} Hz, not {rate:g}")
    length = whole(words[3], "the length", 0, MAX_LENGTH) if len(words) > 3 else 0
    if not slash:
        if len(lines) <= count:
            raise ValueError(f"the header must describe {count} signals; it has {len(lines) - 1}")
        signals = tuple(parse_signal(line, n) for n, line in enumerate(lines[1 : 1 + count]))
        return Header(rate, length or None, distinct(signals))
    parts = whole(segments, "the number of segments", 1, MAX_HEADER_BYTES)
    if len(lines) <= parts:
        raise ValueError(f"the header must list {parts} segments; it has {len(lines) - 1}")
    listed = tuple(parse_segment(line, n) for n, line in enumerate(lines[1 : 1 + parts]))
    total = sum(segment.length for segment in listed)
    if length and total != length:
        raise ValueError(f"the segments must have {length} samples together, not {total}")
    return Header(rate, total, (), listed)


def read_header(path: Path) -> Header:
    """Return what a header file says; raise ValueError if it is none."""
    try:
        return parse(header_lines(path))
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error
