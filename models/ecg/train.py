"""Training of the ECG networks of all presets; writes their weights. Seeded.

Whole records go through the integer model's own detection (in parts, as a role takes them) and its
own inputs, so a network is trained on exactly what it will see. Each detected beat takes the class
of the annotation within 150 ms; beats of other classes and false detections are left out of the
training and kept in the scores.

Both presets minimise cross entropy; their scores are logistic functions of the outputs. Inputs are
normalised for the training; mean and scale are then folded into the first layer. Weights are
rounded after training (:func:`quantise`): ``w1`` to multiples of ``2**-(shift1 + 6)``, ``w2`` to
``2**-(shift2 - 9)``; ``b1`` takes up what the rounding of ``w1`` does to the mean input.

- ``faithful``: scikit-learn's ``MLPClassifier``, L-BFGS.
- ``second``: :mod:`.adam`. Each beat comes in seven copies, shifted by -3 to 3 samples: crossings
  lie on a grid of four. First a few larger networks learn; their mean opinion, rather than the
  bare class, is what the network learns from then (distillation).

The checked-in weights are trained on a random half of the beats of each class of all records; the
figures are for the other half. With that split a patient's beats are on both sides, as in the
source; ``inter_patient`` trains on the records of DS1 and scores those of DS2 that are here.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from ..errors import TrebuchetError
from ..files import write_whole, writing_to
from . import data, model
from .adam import Recipe, calibrate, descend, sigmoid, softmax
from .record import read_parts
from .scoring import Score, match, score

__all__ = ["Beats", "Effort", "Trained", "fit", "gather", "quantise", "train", "write_weights"]

SEED = 1


@dataclass(frozen=True)
class Effort:
    """How much computing a training may take; the defaults are those of the checked-in weights."""

    #: L-BFGS, and its weight decay, which keeps the weights inside their fixed-point range.
    iterations: int = 1500
    alpha: float = 0.5
    #: The larger networks: how many, how large, how long; then the one that learns from them.
    teachers: int = 2
    teacher_hidden: int = 128
    teacher: Recipe = field(default_factory=lambda: Recipe(12_000))
    pupil: Recipe = field(default_factory=lambda: Recipe(40_000))
    #: Shifts of the copies, in samples; 0 first.
    shifts: tuple = (0, -3, -2, -1, 1, 2, 3)


@dataclass(frozen=True)
class Beats:
    """Detected beats of one record, with the annotations they are held against."""

    name: str
    copies: np.ndarray  # [copies][beats][inputs]; the first is not shifted
    positions: np.ndarray
    labels: np.ndarray  # class of the annotation, -1: none of the six or no annotation
    annotated: np.ndarray
    truth: np.ndarray

    @property
    def vectors(self) -> np.ndarray:
        return self.copies[0]

    @property
    def pairs(self) -> np.ndarray:
        """Index of each detected beat's annotation, or -1."""
        return match(self.annotated, self.positions)

    def score(self, called: np.ndarray) -> Score:
        return score(self.annotated, self.truth, self.positions, called)


def shifted(samples: np.ndarray, by: int) -> np.ndarray:
    """``samples`` moved to the left by ``by``; the end that is empty repeats its neighbour."""
    return samples[np.clip(np.arange(len(samples)) + by, 0, len(samples) - 1)]


def gather(
    record: data.Record, preset: model.Preset = model.FAITHFUL, shifts: tuple = (0,)
) -> Beats:
    """Detect the beats of a record and compute their inputs."""
    if record.positions is None or record.labels is None:
        raise TrebuchetError(f"record {record.name} has no annotations to train on")

    def read(block):
        peaks = model.r_peaks(block)
        chosen = model.inside(block, peaks)
        if not chosen:
            return []
        copies = [preset.vectors(shifted(block, by), peaks, chosen) for by in shifts]
        rows = np.stack(copies, axis=1).astype(np.int16)
        return [(peaks[i][0], row) for i, row in zip(chosen, rows, strict=True)]

    found = read_parts(record.samples, preset.tail, read)
    positions = np.array([place for place, _ in found], np.int64)
    empty = np.zeros((0, len(shifts), preset.inputs), np.int16)
    copies = np.stack([rows for _, rows in found]) if found else empty
    pairs = match(record.positions, positions)
    labels = np.where(pairs >= 0, record.labels[pairs], -1)
    return Beats(
        record.name, copies.swapaxes(0, 1), positions, labels, record.positions, record.labels
    )


@dataclass(frozen=True)
class Trained:
    """A network in floating point (matrices inputs first), with the normalisation of its inputs."""

    w1: np.ndarray
    b1: np.ndarray
    w2: np.ndarray
    b2: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    def outputs(self, vectors: np.ndarray) -> np.ndarray:
        """The outputs before their sigmoid."""
        normal = (vectors - self.mean) / self.scale
        return sigmoid(normal @ self.w1 + self.b1) @ self.w2 + self.b2

    def probabilities(self, vectors: np.ndarray) -> np.ndarray:
        return sigmoid(self.outputs(vectors))

    def classify(self, vectors: np.ndarray) -> np.ndarray:
        return self.outputs(vectors).argmax(axis=1)


def fit(copies, labels, preset=model.FAITHFUL, effort=None, say=lambda line: None) -> Trained:
    """Train a preset's network on ``copies[copy][beat]`` and the classes of the beats."""
    effort = effort or Effort()
    if preset.name == "faithful":
        return fit_lbfgs(copies[0], labels, preset, effort)
    return fit_pupil(copies, labels, preset, effort, say)


def fit_lbfgs(vectors, labels, preset, effort) -> Trained:
    mean, scale = vectors.mean(axis=0), vectors.std(axis=0)
    network = MLPClassifier(
        (preset.hidden,),
        activation="logistic",
        solver="lbfgs",
        alpha=effort.alpha,
        max_iter=effort.iterations,
        max_fun=2 * effort.iterations,
        random_state=SEED,
    )
    one_hot = np.eye(model.OUTPUTS, dtype=int)[labels]
    with warnings.catch_warnings():
        # The limit of iterations is meant to be reached: it is part of the recipe.
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit((vectors - mean) / scale, one_hot)
    (w1, w2), (b1, b2) = network.coefs_, network.intercepts_
    return Trained(w1, b1, w2, b2, mean, scale)


def fit_pupil(copies, labels, preset, effort, say) -> Trained:
    """Larger networks first, then the preset's from what they make of each beat."""
    mean, scale = copies[0].mean(axis=0), np.maximum(copies[0].std(axis=0), 1)
    normal = np.stack([((part - mean) / scale).astype(np.float32) for part in copies])
    targets = np.eye(model.OUTPUTS)[labels]
    if effort.teachers:
        opinions = np.zeros(targets.shape)
        for number in range(effort.teachers):
            say(f"larger network {number + 1} of {effort.teachers}")
            w1, b1, w2, b2 = descend(
                normal, targets, effort.teacher_hidden, effort.teacher, SEED + 9 + number
            )
            for part in normal:
                opinions += softmax(sigmoid(part @ w1 + b1) @ w2 + b2)
        targets = (targets + opinions / (effort.teachers * len(normal))) / 2
    say("the network itself")
    weights = descend(normal, targets, preset.hidden, effort.pupil, SEED)
    w1, b1, w2, b2 = (part.astype(np.float64) for part in weights)
    gain, shift = calibrate(sigmoid(normal[0] @ w1 + b1) @ w2 + b2, labels)
    return Trained(w1, b1, gain * w2, gain * (b2 + shift), mean, scale)


def quantise(trained: Trained, preset: model.Preset = model.FAITHFUL) -> model.Weights:
    """Fixed-point weights; raises if one does not fit its range."""
    unit1, unit2 = (2.0 ** (shift + 6) for shift in preset.shifts)
    hidden_one = 2.0**15
    w1 = np.rint(trained.w1.T / trained.scale * unit1)
    b1 = np.rint(trained.b1 * unit1 - w1 @ trained.mean)
    w2 = np.rint(trained.w2.T * unit2 / hidden_one)
    b2 = np.rint(trained.b2 * unit2)
    w1, b1, w2, b2 = (part.astype(np.int64) for part in (w1, b1, w2, b2))
    return model.Weights(w1, b1, w2, b2, model.sigmoid_table())


def write_weights(weights: model.Weights, path: Path) -> None:
    """Write weights, whole or not at all: one row of a matrix a line, so a change can be read."""
    lines = []
    for name in ("w1", "b1", "w2", "b2", "table"):
        value = getattr(weights, name).tolist()
        if name.startswith("w"):
            rows = ",\n  ".join(json.dumps(row) for row in value)
            lines.append(f'"{name}": [\n  {rows}\n]')
        else:
            lines.append(f'"{name}": {json.dumps(value)}')
    with writing_to(path.parent):
        write_whole(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


@dataclass(frozen=True)
class Report:
    """What a training achieved. Fractions, not per cent."""

    preset: model.Preset
    records: dict[str, Score]
    split: Score  # integer model on the half not trained on; a missed beat is a wrong one
    split_float: float  # accuracy of the network before rounding, found beats of that half
    inter_patient: Score | None
    inter_patient_float: float | None  # found beats, before rounding
    weights: model.Weights


@dataclass(frozen=True)
class Halves:
    """The six-class beats of all records, each class split at random into two halves.

    The split is one of the annotated beats, so it does not depend on detection.
    """

    trained_on: np.ndarray  # mask over all detected beats in order
    tested: np.ndarray  # the same for the other half
    missed: np.ndarray  # annotated beats of each class in that half that were not detected


def halves(beats: list[Beats]) -> Halves:
    truth = np.concatenate([part.truth for part in beats])
    known = np.flatnonzero(truth >= 0)
    one, other = train_test_split(
        known, test_size=0.5, stratify=truth[known], random_state=SEED, shuffle=True
    )
    side = np.zeros(len(truth), np.int8)
    side[one], side[other] = 1, 2
    sides, missed = [], np.zeros(model.OUTPUTS, np.int64)
    start = 0
    for part in beats:
        mine, pairs = side[start : start + len(part.truth)], part.pairs
        start += len(part.truth)
        sides.append(np.where(pairs >= 0, mine[pairs], 0))
        lost = mine == 2
        lost[pairs[pairs >= 0]] = False
        missed += np.bincount(part.truth[lost], minlength=model.OUTPUTS)
    found = np.concatenate(sides)
    return Halves(found == 1, found == 2, missed)


def split_score(half: Halves, labels: np.ndarray, called: np.ndarray) -> Score:
    """Score of the tested half; a missed beat is a wrong one."""
    side = model.OUTPUTS
    confusion = np.zeros((side + 1, side + 1), np.int64)
    np.add.at(confusion, (labels[half.tested], called[half.tested]), 1)
    confusion[:side, side] = half.missed
    count = int(half.tested.sum())
    return Score(int(confusion[:side].sum()), count, count, confusion)


def join(beats: list[Beats]) -> tuple[np.ndarray, np.ndarray]:
    """``(copies, labels)`` of the beats of all records in order."""
    copies = np.concatenate([part.copies for part in beats], axis=1)
    return copies, np.concatenate([part.labels for part in beats])


def total(scores: list[Score]) -> Score:
    return sum(scores[1:], scores[0])


def train_inter_patient(
    beats: list[Beats], preset: model.Preset, effort: Effort
) -> tuple[Score, float] | tuple[None, None]:
    """Train on DS1, score on DS2; the network by itself, without larger ones before it.

    The integer model's score, and the accuracy before rounding on the beats that were found; None
    unless both sets have records here.
    """
    one = [part for part in beats if part.name in data.DS1]
    other = [part for part in beats if part.name in data.DS2]
    if not one or not other:
        return None, None
    copies, labels = join(one)
    known = labels >= 0
    trained = fit(copies[:, known], labels[known], preset, replace(effort, teachers=0))
    weights = quantise(trained, preset)
    called = [model.network(part.vectors, weights, preset.shifts)[0] for part in other]
    result = total([part.score(mine) for part, mine in zip(other, called, strict=True)])
    copies, labels = join(other)
    known = labels >= 0
    right = trained.classify(copies[0][known]) == labels[known]
    return result, float(right.mean())


def train(
    folder: Path,
    preset: model.Preset = model.FAITHFUL,
    effort: Effort | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Report:
    """Train on every record of ``folder``; ``say`` hears what is going on."""
    effort = effort or Effort()
    names = data.list_records(folder)
    if not names:
        raise TrebuchetError(f"there are no records in {folder}")
    say(f"detecting the beats of {len(names)} records")
    shifts = effort.shifts if preset.name != model.FAITHFUL.name else (0,)
    beats = [gather(data.read_wfdb(folder, name), preset, shifts) for name in names]
    copies, labels = join(beats)
    half = halves(beats)
    say(f"training on {half.trained_on.sum()} beats")
    trained = fit(copies[:, half.trained_on], labels[half.trained_on], preset, effort, say)
    weights = quantise(trained, preset)
    called = model.network(copies[0], weights, preset.shifts)[0]
    ends = np.cumsum([len(part.labels) for part in beats])[:-1]
    per_record = {
        part.name: part.score(mine)
        for part, mine in zip(beats, np.split(called, ends), strict=True)
    }
    say("training on DS1 for the inter-patient figure")
    inter_patient, inter_patient_float = train_inter_patient(beats, preset, effort)
    return Report(
        preset=preset,
        records=per_record,
        split=split_score(half, labels, called),
        split_float=float((trained.classify(copies[0][half.tested]) == labels[half.tested]).mean()),
        inter_patient=inter_patient,
        inter_patient_float=inter_patient_float,
        weights=weights,
    )
