"""Finding ECG records: MIT-BIH where there is a copy, else a synthetic one that says so.

Records are looked for in this order:

1. the folder that the environment variable ``TREBUCHET_MITDB`` names (an error if not there), else
   ``~/.cache/trebuchet/mitdb`` (``XDG_CACHE_HOME`` is heeded), where ``trebuchet ecg fetch`` puts
   the database;
2. ``~/.cache/trebuchet/demo``, where ``trebuchet ecg fetch --demo`` puts one record: record 208 as
   the database has it, or the five minutes of it without annotations that SciPy 1.9.3 brought.

Where there is none, the record ``synthetic`` stands in; it is always available under that name.

Records of other sources are read from such a folder, or by the path of their header. What is
changed to make them samples of the role (lead, unit, rate, invalid samples) is listed in
:attr:`Record.notes`; what cannot be used is refused with a reason.
"""

import os
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..errors import TrebuchetError
from ..paths import cache_home
from .conversion import RATE, Converted, convert, rescale
from .leads import lead_key
from .model import CLASSES
from .synthetic import synthesise
from .wfdb_annotations import Annotations, read_annotations
from .wfdb_record import Trace, read_trace

__all__ = [
    "DEMO",
    "DS1",
    "DS2",
    "EXCERPT",
    "EXCERPT_FILE",
    "OTHERS",
    "RATE",
    "SYNTHETIC",
    "Record",
    "all_records",
    "cache_folder",
    "default_record",
    "demo_folder",
    "find_folder",
    "list_records",
    "load",
]

SYNTHETIC = "synthetic"
#: A day: no record here is longer.
MAX_MINUTES = 1440
#: The record of the demo: normal beats, PVCs and fusions of both.
DEMO = "208"
#: Five minutes of its lead MLII, without annotations, and the file that has them.
EXCERPT, EXCERPT_FILE = "208-excerpt", "ecg.dat"
VARIABLE = "TREBUCHET_MITDB"
DATABASE = "MIT-BIH Arrhythmia Database"
#: The inter-patient split of de Chazal et al. (IEEE TBME 51(7), 2004): no paced records.
DS1 = (
    *("101", "106", "108", "109", "112", "114", "115", "116", "118", "119", "122"),
    *("124", "201", "203", "205", "207", "208", "209", "215", "220", "223", "230"),
)
DS2 = (
    *("100", "103", "105", "111", "113", "117", "121", "123", "200", "202", "210"),
    *("212", "213", "214", "219", "221", "222", "228", "231", "232", "233", "234"),
)
LABELS = dict(zip("NLRAV/", range(len(CLASSES)), strict=True))
#: The records of patients with pacemakers.
OTHERS = ("102", "104", "107", "217")
#: Annotation symbols that stand for a beat (PhysioNet's list), the six classes included.
BEATS = frozenset("NLRBAaJSVrFejnE/fQ?")


@dataclass(frozen=True)
class Record:
    """Samples (int16, 360 Hz, 200 counts a millivolt, 0 is 0 mV) and, if known, the true beats."""

    name: str
    source: str
    samples: np.ndarray
    positions: np.ndarray | None
    labels: np.ndarray | None  # index into CLASSES, -1 for beats of no such class
    #: First and last sample of each episode of ventricular flutter or fibrillation. It has no QRS
    #: complexes, so its waves are not annotated as beats.
    flutter: tuple[tuple[int, int], ...] = ()
    #: First and last sample of each gap, a second or longer: interpolated, so beats there are none.
    gaps: tuple[tuple[int, int], ...] = ()
    #: What was changed of the record in the files, a line each.
    notes: tuple[str, ...] = ()

    def first(self, minutes: float | None) -> "Record":
        """The first ``minutes`` of it; all for None."""
        if minutes is None:
            return self
        check_minutes(minutes)
        count = round(minutes * 60 * RATE)
        flutter, gaps = (
            tuple(part for part in parts if part[0] < count) for parts in (self.flutter, self.gaps)
        )
        part = replace(self, samples=self.samples[:count], flutter=flutter, gaps=gaps)
        if self.positions is None or self.labels is None:
            return part
        inside = self.positions < count
        return replace(part, positions=self.positions[inside], labels=self.labels[inside])


def check_minutes(minutes: float) -> None:
    """How much of a record can be asked for."""
    if not 0 < minutes <= MAX_MINUTES:
        raise TrebuchetError(
            f"the number of minutes must be above 0 and at most {MAX_MINUTES}, not {minutes:g}"
        )


def cache_folder(name: str = "mitdb") -> Path:
    return cache_home() / "trebuchet" / name


def demo_folder() -> Path:
    """Where the record of the demo is kept; it is no database to train on."""
    return cache_folder("demo")


def find_folder() -> Path | None:
    """The folder with the database; None if there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_dir():
            raise TrebuchetError(f"{VARIABLE} names {named}, which is not a folder")
        return Path(named)
    return cache_folder() if all_records(cache_folder()) else None


def all_records(folder: Path | None) -> list[str]:
    """Return the names of all records of a folder, with and without annotations."""
    return sorted(path.stem for path in folder.glob("*.hea")) if folder is not None else []


def list_records(folder: Path | None) -> list[str]:
    """Return the names of the annotated records of a folder, which can be trained on."""
    if folder is None:
        return []
    return [name for name in all_records(folder) if (folder / f"{name}.atr").exists()]


def folder_of(name: str) -> Path | None:
    """Return the folder that has the record; None if there is none."""
    return next((f for f in (find_folder(), demo_folder()) if name in all_records(f)), None)


def default_record() -> str:
    """Record for a demonstration; the synthetic one if there is no real one."""
    if folder_of(DEMO) is not None:
        return DEMO
    if (demo_folder() / EXCERPT_FILE).exists():
        return EXCERPT
    folder = find_folder()
    names = list_records(folder) or all_records(folder)
    return names[0] if names else SYNTHETIC


def load(name: str, minutes: float | None = None, lead: str | None = None) -> Record:
    """Return a record by its name, a number of MIT-BIH or ``synthetic``, or by its header's path.

    ``lead``: name of the signal to take; None: the best ECG lead.
    """
    if minutes is not None:
        check_minutes(minutes)
    if name == SYNTHETIC:
        check_only_lead(name, lead, "synthetic")
        samples, positions, labels = synthesise(30 if minutes is None else minutes)
        source = "synthetic, generated by this program: no real patient"
        return Record(name, source, samples, positions, labels).first(minutes)
    if name == EXCERPT and (demo_folder() / EXCERPT_FILE).exists():
        check_only_lead(name, lead, "MLII")
        return read_excerpt(demo_folder() / EXCERPT_FILE).first(minutes)
    path = Path(name)
    if path.name != name or path.suffix == ".hea":
        name = path.name.removesuffix(".hea")
        folder = path.parent if name in all_records(path.parent) else None
    else:
        folder = folder_of(name)
    if folder is None:
        raise TrebuchetError(missing(path))
    return read_wfdb(folder, name, minutes, lead)


def missing(path: Path) -> str:
    """Return the message that there is no record of that name or path."""
    if path.name != str(path) or path.suffix == ".hea":
        return f"there is no record {path}: its header, {path.with_suffix('.hea')}, is not there"
    database = find_folder()
    names = all_records(database)
    there = f"{database} has {' '.join(names)}" if names else "no folder with records was found"
    return (
        f"there is no record {path}: {there}; set {VARIABLE}, or get the database with "
        f"`trebuchet ecg fetch`, or use the record {SYNTHETIC!r}"
    )


def check_only_lead(name: str, lead: str | None, only: str) -> None:
    if lead is not None and lead_key(lead) != lead_key(only):
        raise TrebuchetError(f"record {name} has no lead {lead!r}; its only lead is {only}")


def read_excerpt(path: Path) -> Record:
    """The five minutes of record 208: an archive of NumPy's with counts from 1024 on."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            counts = archive["ecg"].astype(np.int64)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise TrebuchetError(
            f"cannot read {path}: {error}; remove it and run `trebuchet ecg fetch --demo`"
        ) from error
    samples = np.clip(counts - 1024, -32768, 32767).astype(np.int16)
    source = f"{DATABASE}, lead MLII, five minutes of record 208 from SciPy 1.9.3"
    return Record(EXCERPT, f"{source}, no annotations", samples, None, None)


def read_wfdb(
    folder: Path, name: str, minutes: float | None = None, lead: str | None = None
) -> Record:
    """Return a record of WFDB files; without NAME.atr it has no beats to compare with."""
    seconds = 60 * (MAX_MINUTES if minutes is None else minutes)
    try:
        # A second more, so that the last samples asked for are resampled from real ones.
        trace = read_trace(folder, name, lead, seconds + 1)
        converted = convert_lead(trace)
        annotated = (folder / f"{name}.atr").exists()
        notes = read_annotations(folder / f"{name}.atr") if annotated else None
    except (OSError, ValueError, TrebuchetError) as error:
        raise TrebuchetError(f"cannot read record {name} in {folder}: {error}") from error
    lines = (*trace.notes, *converted.notes)
    source = f"{origin(folder, name)}, lead {trace.name}, record {name}"
    if notes is None:
        lines = (*lines, f"no annotations ({name}.atr is not there)")
        record = Record(name, source, converted.samples, None, None, (), converted.gaps, lines)
        return record.first(minutes if minutes is not None else MAX_MINUTES)
    rate = notes.rate or trace.frame_rate
    count = len(converted.samples)
    beats = [
        (rescale(place, rate), LABELS.get(symbol, -1))
        for place, symbol in zip(notes.places.tolist(), notes.symbols, strict=True)
        if symbol in BEATS
    ]
    beats = [beat for beat in beats if 0 <= beat[0] < count]
    positions, labels = np.array(beats, np.int64).reshape(-1, 2).T
    flutter = tuple(
        (rescale(a, rate), rescale(b, rate)) for a, b in episodes(notes, round(count * rate / RATE))
    )
    record = Record(
        name, source, converted.samples, positions, labels, flutter, converted.gaps, lines
    )
    return record.first(minutes if minutes is not None else MAX_MINUTES)


def convert_lead(trace: Trace) -> Converted:
    """Return the samples of a lead; raise ValueError that names it."""
    try:
        return convert(trace.millivolts, trace.rate)
    except ValueError as error:
        raise ValueError(f"lead {trace.name} cannot be used: {error}") from error


def origin(folder: Path, name: str) -> str:
    """Return what is known of where a record is from: its number is one of MIT-BIH, or nothing."""
    return DATABASE if name in {*DS1, *DS2, *OTHERS} else f"WFDB files in {folder}"


def episodes(notes: Annotations, count: int) -> tuple[tuple[int, int], ...]:
    """Episodes of flutter: from a ``[`` to the next ``]``, or to the end of the record."""
    marks = zip(notes.places.tolist(), notes.symbols, strict=True)
    found, start = [], None
    for place, symbol in marks:
        if symbol == "[" and start is None:
            start = place
        elif symbol == "]" and start is not None:
            found.append((start, place))
            start = None
    return (*found, *([(start, count - 1)] if start is not None else []))
