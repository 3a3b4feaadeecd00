"""Holding detected beats against the cardiologists' annotations.

Matching is one to one within 150 ms (54 samples), the rule of ANSI/AAMI EC57: sensitivity is the
share of annotated beats that were found, positive predictivity the share of found beats that are
real.
"""

from dataclasses import dataclass

import numpy as np

from .model import CLASSES

__all__ = ["TOLERANCE", "Score", "match", "peaks_score", "score"]

TOLERANCE = 54


def match(annotated: np.ndarray, detected: np.ndarray, tolerance: int = TOLERANCE) -> np.ndarray:
    """For each detected beat the index of its annotation, or -1. Both are in rising order."""
    pairs = np.full(len(detected), -1, np.int64)
    a = 0
    for d, place in enumerate(detected):
        while a < len(annotated) and annotated[a] < place - tolerance:
            a += 1
        if a == len(annotated) or annotated[a] > place + tolerance:
            continue
        following = annotated[a + 1] if a + 1 < len(annotated) else None
        if following is not None and abs(following - place) < abs(annotated[a] - place):
            a += 1
        pairs[d] = a
        a += 1
    return pairs


@dataclass(frozen=True)
class Score:
    """How well a record was read.

    ``confusion[t][p]`` counts beats of annotated class t called p; its last column (index 6)
    counts annotated beats that were not found, its last row beats called p that carry no
    annotation of the six classes (another symbol, or none).
    """

    annotated: int
    detected: int
    matched: int
    confusion: np.ndarray

    @property
    def sensitivity(self) -> float:
        return self.matched / max(1, self.annotated)

    @property
    def predictivity(self) -> float:
        return self.matched / max(1, self.detected)

    @property
    def found_accuracy(self) -> float:
        """Share of found six-class beats that are of the right class."""
        found = self.confusion[:6, :6]
        return float(np.trace(found) / max(1, found.sum()))

    @property
    def accuracy(self) -> float:
        """The same, of all annotated six-class beats: a missed beat is a wrong one."""
        return float(np.trace(self.confusion[:6, :6]) / max(1, self.confusion[:6].sum()))

    def __add__(self, other: "Score") -> "Score":
        return Score(
            self.annotated + other.annotated,
            self.detected + other.detected,
            self.matched + other.matched,
            self.confusion + other.confusion,
        )


def score(
    annotated: np.ndarray, truth: np.ndarray, detected: np.ndarray, called: np.ndarray
) -> Score:
    """Compare beats at ``detected`` called ``called`` with annotations (-1: other class)."""
    pairs = match(annotated, detected)
    side = len(CLASSES)
    confusion = np.zeros((side + 1, side + 1), np.int64)
    found = np.zeros(len(annotated), bool)
    for pair, label in zip(pairs, called, strict=True):
        row = truth[pair] if pair >= 0 else -1
        confusion[row, label] += 1
        if pair >= 0:
            found[pair] = True
    for label in truth[~found]:
        if label >= 0:
            confusion[label, side] += 1
    return Score(len(annotated), len(detected), int(found.sum()), confusion)


def peaks_score(annotated: np.ndarray, detected: np.ndarray, left_out: tuple = ()) -> Score:
    """R peaks alone; what lies in the episodes ``left_out`` (first and last sample) is not counted.

    ANSI/AAMI EC57 leaves ventricular flutter and fibrillation out of the comparison beat by beat:
    there is no QRS complex to be found, and no annotation to find it by. Pairs are made first, so a
    beat at an episode's edge is not torn from its annotation.
    """
    pairs = match(annotated, detected)
    found = np.zeros(len(annotated), bool)
    found[pairs[pairs >= 0]] = True
    extra = detected[pairs < 0]
    missed = annotated[~found]
    for first, last in left_out:
        extra = extra[(extra < first) | (extra > last)]
        missed = missed[(missed < first) | (missed > last)]
    matched = int(found.sum())
    confusion = np.zeros((len(CLASSES) + 1,) * 2, np.int64)
    return Score(matched + len(missed), matched + len(extra), matched, confusion)
