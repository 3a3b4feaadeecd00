"""Training of the ECG network; writes ``weights.json``. Seeded; same machine, same weights.

Whole records go through the integer model's own detection (in overlapping blocks, as a client
sends them) and its own features, so the network is trained on exactly what it will see. Each
detected beat takes the class of the annotation within 150 ms; beats of other classes and false
detections are left out of the training and kept in the scores.

The network is scikit-learn's ``MLPClassifier`` on one-hot labels: six logistic outputs, cross
entropy, L-BFGS. Features are normalised for the training; mean and scale are then folded into the
first layer. Weights are rounded after training (:func:`quantise`): ``w1`` to multiples of
``2**-(SHIFT1 + 6)``, ``w2`` to ``2**-(SHIFT2 - 9)``; ``b1`` takes up what the rounding of ``w1``
does to the mean input.

The checked-in weights are trained on a random half of the beats of each class of all records; the
figures are for the other half. With that split a patient's beats are on both sides, as in the
source; ``inter_patient`` trains on the records of DS1 and scores those of DS2 that are here.
"""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from ..errors import TrebuchetError
from . import blocks, data, model
from .scoring import Score, match, score

__all__ = ["Beats", "gather", "quantise", "train", "write_weights"]

SEED = 1
ITERATIONS = 1500
#: Weight decay; keeps the weights inside their fixed-point range.
ALPHA = 0.5


@dataclass(frozen=True)
class Beats:
    """Detected beats of one record, with the annotations they are held against."""

    name: str
    features: np.ndarray  # [beats][11]
    positions: np.ndarray
    labels: np.ndarray  # class of the annotation, -1: none of the six or no annotation
    annotated: np.ndarray
    truth: np.ndarray

    def score(self, called: np.ndarray) -> Score:
        return score(self.annotated, self.truth, self.positions, called)


def gather(record: data.Record) -> Beats:
    """Detect the beats of a record and compute their features."""
    if record.positions is None or record.labels is None:
        raise TrebuchetError(f"record {record.name} has no annotations to train on")
    parts = blocks.cut(record.samples)
    found = blocks.merge(parts, [model.reported(part.samples) for part in parts])
    positions = np.array([place for place, _ in found], np.int64)
    rr = np.array([rr for _, rr in found], np.int64)
    half = model.WINDOW // 2
    index = positions[:, None] + np.arange(-half, half)
    vectors = model.features(model.remove_mean(record.samples.astype(np.int64)[index]), rr)
    pairs = match(record.positions, positions)
    labels = np.where(pairs >= 0, record.labels[pairs], -1)
    return Beats(record.name, vectors, positions, labels, record.positions, record.labels)


@dataclass(frozen=True)
class Trained:
    """A network in floating point, with the normalisation of its inputs."""

    network: MLPClassifier
    mean: np.ndarray
    scale: np.ndarray

    def classify(self, vectors: np.ndarray) -> np.ndarray:
        normal = (vectors - self.mean) / self.scale
        return self.network.predict_proba(normal).argmax(axis=1)


def fit(vectors: np.ndarray, labels: np.ndarray) -> Trained:
    mean, scale = vectors.mean(axis=0), vectors.std(axis=0)
    network = MLPClassifier(
        (model.HIDDEN,),
        activation="logistic",
        solver="lbfgs",
        alpha=ALPHA,
        max_iter=ITERATIONS,
        max_fun=2 * ITERATIONS,
        random_state=SEED,
    )
    one_hot = np.eye(model.OUTPUTS, dtype=int)[labels]
    with warnings.catch_warnings():
        # The limit of iterations is meant to be reached: it is part of the recipe.
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit((vectors - mean) / scale, one_hot)
    return Trained(network, mean, scale)


def quantise(trained: Trained) -> model.Weights:
    """Fixed-point weights; raises if one does not fit its range."""
    unit1 = 2.0 ** (model.SHIFT1 + 6)
    unit2 = 2.0 ** (model.SHIFT2 + 6)
    hidden_one = 2.0**15
    first, second = trained.network.coefs_
    bias1, bias2 = trained.network.intercepts_
    w1 = np.rint(first.T / trained.scale * unit1)
    b1 = np.rint(bias1 * unit1 - w1 @ trained.mean)
    w2 = np.rint(second.T * unit2 / hidden_one)
    b2 = np.rint(bias2 * unit2)
    w1, b1, w2, b2 = (part.astype(np.int64) for part in (w1, b1, w2, b2))
    return model.Weights(w1, b1, w2, b2, model.sigmoid_table())


def write_weights(weights: model.Weights, path: Path) -> None:
    """One row of a matrix a line, so that a change can be read."""
    lines = []
    for name in ("w1", "b1", "w2", "b2", "table"):
        value = getattr(weights, name).tolist()
        if name.startswith("w"):
            rows = ",\n  ".join(json.dumps(row) for row in value)
            lines.append(f'"{name}": [\n  {rows}\n]')
        else:
            lines.append(f'"{name}": {json.dumps(value)}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@dataclass(frozen=True)
class Report:
    """What a training achieved. Fractions, not per cent."""

    records: dict[str, Score]
    split: Score  # integer model on the half not trained on; a missed beat is a wrong one
    split_float: float  # accuracy of the network before rounding, found beats of that half
    inter_patient: Score | None
    weights: model.Weights


def halves(beats: list[Beats]) -> tuple[np.ndarray, np.ndarray]:
    """Masks over all beats in order: trained on, and tested on (six classes only)."""
    labels = np.concatenate([part.labels for part in beats])
    known = np.flatnonzero(labels >= 0)
    one, other = train_test_split(
        known, test_size=0.5, stratify=labels[known], random_state=SEED, shuffle=True
    )
    masks = np.zeros((2, len(labels)), bool)
    masks[0, one] = masks[1, other] = True
    return masks[0], masks[1]


def split_score(
    beats: list[Beats], labels: np.ndarray, called: np.ndarray, tested: np.ndarray
) -> Score:
    """Score of the tested half; half of the missed beats (rounded up) belong to it."""
    side = model.OUTPUTS
    confusion = np.zeros((side + 1, side + 1), np.int64)
    np.add.at(confusion, (labels[tested], called[tested]), 1)
    for part in beats:
        missed = part.score(np.zeros(len(part.positions), np.int64)).confusion[:side, side]
        confusion[:side, side] += (missed + 1) // 2
    count = int(tested.sum())
    return Score(int(confusion[:side].sum()), count, count, confusion)


def train_inter_patient(beats: list[Beats]) -> Score | None:
    """Train on DS1, score on DS2, integer model; None unless both have records here."""
    one = [part for part in beats if part.name in data.DS1]
    other = [part for part in beats if part.name in data.DS2]
    if not one or not other:
        return None
    vectors = np.concatenate([part.features for part in one])
    labels = np.concatenate([part.labels for part in one])
    weights = quantise(fit(vectors[labels >= 0], labels[labels >= 0]))
    results = [part.score(model.network(part.features, weights)[0]) for part in other]
    return sum(results[1:], results[0])


def train(folder: Path, say=lambda line: None) -> Report:
    """Train on every record of ``folder``; ``say`` hears what is going on."""
    names = data.list_records(folder)
    if not names:
        raise TrebuchetError(f"there are no records in {folder}")
    say(f"detecting the beats of {len(names)} records")
    beats = [gather(data.read_wfdb(folder, name)) for name in names]
    vectors = np.concatenate([part.features for part in beats])
    labels = np.concatenate([part.labels for part in beats])
    trained_on, tested = halves(beats)
    say(f"training on {trained_on.sum()} beats")
    trained = fit(vectors[trained_on], labels[trained_on])
    weights = quantise(trained)
    called = model.network(vectors, weights)[0]
    ends = np.cumsum([len(part.labels) for part in beats])[:-1]
    per_record = {
        part.name: part.score(mine)
        for part, mine in zip(beats, np.split(called, ends), strict=True)
    }
    say("training on DS1 for the inter-patient figure")
    return Report(
        records=per_record,
        split=split_score(beats, labels, called, tested),
        split_float=float((trained.classify(vectors[tested]) == labels[tested]).mean()),
        inter_patient=train_inter_patient(beats),
        weights=weights,
    )
