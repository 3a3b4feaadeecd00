"""Finding ECG records: MIT-BIH where there is a copy, else a synthetic one that says so.

Records are looked for in this order:

1. the folder that the environment variable ``TREBUCHET_MITDB`` names (an error if not there), else
   ``~/.cache/trebuchet/mitdb`` (``XDG_CACHE_HOME`` is heeded), where ``trebuchet ecg fetch`` puts
   the database;
2. ``~/.cache/trebuchet/demo``, where ``trebuchet ecg fetch --demo`` puts one record: record 208 as
   the database has it, or the five minutes of it without annotations that SciPy 1.9.3 brought.

Where there is none, the record ``synthetic`` stands in; it is always available under that name.
"""

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import TrebuchetError
from .model import CLASSES
from .synthetic import synthesise
from .wfdb_files import Annotations, read_annotations, read_header, read_signals

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
    "cache_folder",
    "default_record",
    "demo_folder",
    "find_folder",
    "list_records",
    "load",
]

RATE = 360
GAIN = 200
SYNTHETIC = "synthetic"
#: A day: no record here is longer.
MAX_MINUTES = 1440
#: The record of the demo: normal beats, PVCs and fusions of both.
DEMO = "208"
#: Five minutes of its lead MLII, without annotations, and the file that has them.
EXCERPT, EXCERPT_FILE = "208-excerpt", "ecg.dat"
VARIABLE = "TREBUCHET_MITDB"
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

    def first(self, minutes: float | None) -> "Record":
        """The first ``minutes`` of it; all for None."""
        if minutes is None:
            return self
        check_minutes(minutes)
        count = round(minutes * 60 * RATE)
        if self.positions is None or self.labels is None:
            return Record(self.name, self.source, self.samples[:count], None, None)
        inside = self.positions < count
        positions, labels = self.positions[inside], self.labels[inside]
        flutter = tuple(episode for episode in self.flutter if episode[0] < count)
        return Record(self.name, self.source, self.samples[:count], positions, labels, flutter)


def check_minutes(minutes: float) -> None:
    """How much of a record can be asked for."""
    if not 0 < minutes <= MAX_MINUTES:
        raise TrebuchetError(
            f"the number of minutes must be above 0 and at most {MAX_MINUTES}, not {minutes:g}"
        )


def cache_folder(name: str = "mitdb") -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "trebuchet" / name


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
    return cache_folder() if list_records(cache_folder()) else None


def list_records(folder: Path | None) -> list[str]:
    """Names of the complete records (header, samples, annotations) of a folder."""
    if folder is None:
        return []
    names = sorted(path.stem for path in folder.glob("*.hea"))
    return [n for n in names if all((folder / f"{n}.{end}").exists() for end in ("dat", "atr"))]


def folder_of(name: str) -> Path | None:
    """The folder that has the record; None if there is none."""
    return next((f for f in (find_folder(), demo_folder()) if name in list_records(f)), None)


def default_record() -> str:
    """Record for a demonstration; the synthetic one if there is no real one."""
    if folder_of(DEMO) is not None:
        return DEMO
    if (demo_folder() / EXCERPT_FILE).exists():
        return EXCERPT
    names = list_records(find_folder())
    return names[0] if names else SYNTHETIC


def load(name: str, minutes: float | None = None) -> Record:
    """A record by its name: a number of MIT-BIH, or ``synthetic``."""
    if minutes is not None:
        check_minutes(minutes)
    if name == SYNTHETIC:
        samples, positions, labels = synthesise(30 if minutes is None else minutes)
        source = "synthetic, generated by this program: no real patient"
        return Record(name, source, samples, positions, labels).first(minutes)
    if name == EXCERPT and (demo_folder() / EXCERPT_FILE).exists():
        return read_excerpt(demo_folder() / EXCERPT_FILE).first(minutes)
    folder = folder_of(name)
    if folder is None:
        database = find_folder()
        names = list_records(database)
        there = f"{database} has {' '.join(names)}" if names else "no folder with records was found"
        raise TrebuchetError(
            f"there is no record {name}: {there}; set {VARIABLE}, or get the database with "
            f"`trebuchet ecg fetch`, or use the record {SYNTHETIC!r}"
        )
    return read_wfdb(folder, name).first(minutes)


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
    source = "MIT-BIH Arrhythmia Database, lead MLII, five minutes of record 208 from SciPy 1.9.3"
    return Record(EXCERPT, f"{source}, no annotations", samples, None, None)


def read_wfdb(folder: Path, name: str) -> Record:
    try:
        header = read_header(folder / f"{name}.hea")
        counts = read_signals(folder / f"{name}.dat", header)
        notes = read_annotations(folder / f"{name}.atr")
    except (OSError, ValueError) as error:
        raise TrebuchetError(f"cannot read record {name} in {folder}: {error}") from error
    if header.rate != RATE:
        raise TrebuchetError(
            f"record {name} must have {RATE} samples a second, not {header.rate:g}"
        )
    lead = header.names.index("MLII") if "MLII" in header.names else 0
    raw = counts[:, lead].astype(np.int64) - header.baselines[lead]
    gain = header.gains[lead]
    if gain != GAIN:
        raw = np.rint(raw * (GAIN / gain))
    samples = np.clip(raw, -32768, 32767).astype(np.int16)
    beats = [
        (place, LABELS.get(symbol, -1))
        for place, symbol in zip(notes.places.tolist(), notes.symbols, strict=True)
        if symbol in BEATS
    ]
    positions, labels = np.array(beats, np.int64).reshape(-1, 2).T
    source = f"MIT-BIH Arrhythmia Database, lead {header.names[lead]}, record {name}"
    return Record(name, source, samples, positions, labels, episodes(notes, len(samples)))


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
