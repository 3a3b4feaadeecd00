"""Accuracy of the ECG role's presets, in the gateware's arithmetic, on the MIT-BIH records.

Whole records go through the golden model in parts, as a client streams them. Of the beats of each
class a random half was trained on (:mod:`trebuchet.models.ecg.train`); accuracy is that of the
other half, and a beat that detection missed counts as wrong. R peaks are compared within 150 ms,
over all records whole but for episodes of ventricular flutter (ANSI/AAMI EC57 leaves them out).

The records are not part of the project; without them nothing here can be measured.
"""

from pathlib import Path

import numpy as np

from ..models.ecg import data, model
from ..models.ecg.presets import PRESETS
from ..models.ecg.scoring import Score, peaks_score
from ..models.ecg.train import gather, halves, join, split_score, total, train
from ..models.errors import TrebuchetError
from .job import Job, Sampled, Values
from .needs import Unmeasurable

__all__ = ["accuracy", "peaks", "require_records", "split", "training"]

#: The figures are over all records that the project was given; fewer would be other figures.
RECORDS = 35
#: Packages whose arithmetic the figures depend on.
TOOLS = ("numpy", "scikit-learn", "scipy", "wfdb")


def require_records() -> Path:
    folder = data.find_folder()
    count = len(data.list_records(folder))
    if folder is None or count < RECORDS:
        raise Unmeasurable(
            f"accuracy is measured on {RECORDS} records of MIT-BIH, and {count} are here: set "
            f"{data.VARIABLE}, or get them with `trebuchet ecg fetch`"
        )
    return folder


def load_all(folder: Path) -> list[data.Record]:
    return [data.read_wfdb(folder, name) for name in data.list_records(folder)]


def split(records: list[data.Record], preset: model.Preset) -> Score:
    """Score of the half that the preset's checked-in weights were not trained on."""
    beats = [gather(record, preset) for record in records]
    copies, labels = join(beats)
    called = model.network(copies[0], preset.load_weights(), preset.shifts)[0]
    return split_score(halves(beats), labels, called)


def class_accuracies(score: Score) -> np.ndarray:
    confusion = score.confusion[: model.OUTPUTS]
    return confusion.diagonal() / confusion.sum(axis=1)


def peaks(records: list[data.Record], flutter: bool = False) -> Score:
    """R peaks of all records; ``flutter``: with its episodes."""
    scores = []
    for record in records:
        beats = gather(record)
        left_out = () if flutter else record.flutter
        scores.append(peaks_score(beats.annotated, beats.positions, left_out))
    return total(scores)


def _records() -> tuple[Path, tuple[Path, ...]]:
    """The folder of records, and the files that are read there."""
    folder = require_records()
    names = data.list_records(folder)
    files = [folder / f"{name}.{end}" for name in names for end in ("hea", "dat", "atr")]
    return folder, tuple(files)


def accuracy() -> Job:
    """Return the measurement of both presets and of the R peaks, with the stored weights."""
    folder, files = _records()
    weights = tuple(PRESETS[name].weights_file for name in ("faithful", "second"))

    def measure() -> Values:
        records = load_all(folder)
        faithful, second = (split(records, PRESETS[name]) for name in ("faithful", "second"))
        found = peaks(records)
        return {
            "ecg.accuracy_faithful": faithful.accuracy,
            "ecg.accuracy_second": second.accuracy,
            "ecg.accuracy_second_class_min": float(class_accuracies(second).min()),
            "ecg.rpeak_se": found.sensitivity,
            "ecg.rpeak_ppv": found.predictivity,
        }

    return Job((weights, files), measure, tools=TOOLS)


def training() -> Sampled:
    """Return the measurement that needs a training of its own.

    That is the inter-patient split, and the loss by rounding.
    """
    folder, files = _records()
    return Sampled((files,), lambda seed: _train(folder), tools=TOOLS, seeds=(1,))


def _train(folder: Path) -> Values:
    figures = {}
    for name, preset in PRESETS.items():
        report = train(folder, preset)
        if report.inter_patient is None:
            raise TrebuchetError("the records of DS1 and DS2 are missing: no inter-patient figure")
        figures[f"ecg.inter_patient_{name}"] = report.inter_patient.accuracy
        figures[f"ecg.fixed_point_loss_{name}"] = report.split_float - report.split.found_accuracy
    return figures
