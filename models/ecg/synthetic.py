"""A synthetic ECG with known beats: the stand-in where no recorded ECG is at hand.

Each beat is a sum of Gaussian bumps (after McSharry et al., IEEE Trans Biomed Eng 50(3):289-294,
2003, without their differential equation), one set of bumps a class, on a wandering baseline with
noise.
It exercises the whole chain; it says nothing about how well real patients are classified, the
less so as the bumps were tuned until the network, trained on real beats, took them for their class.
"""

import numpy as np

__all__ = ["synthesise"]

RATE = 360
#: Bumps of each class (index as in ``model.CLASSES``): amplitude in counts, centre and width in ms.
BUMPS = (
    ((25, -170, 22), (-25, -28, 9), (220, 0, 11), (-45, 28, 10), (50, 260, 45)),
    ((38, -109, 15), (360, -5, 38), (204, 32, 25), (-41, 237, 32)),
    ((32, -172, 25), (209, -2, 7), (-203, 10, 12), (130, 78, 22), (34, 276, 45)),
    ((-27, -95, 11), (-49, -34, 9), (119, 8, 9), (-87, 15, 3), (15, 231, 47)),
    ((321, 5, 38), (-200, 68, 44), (-100, 257, 70)),
    ((222, -61, 3), (-212, -5, 36), (84, 59, 29), (101, 279, 50)),
)
#: What a stretch of beats is made of: its basic class, and a rare one with its probability.
RHYTHMS = ((0, 4, 0.12), (0, 3, 0.10), (1, 4, 0.05), (2, 3, 0.06), (5, 4, 0.04))
STRETCH = 40
EARLY = 0.68
LATE = 1.30


def schedule(minutes: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions and classes of the beats."""
    positions: list[int] = []
    labels: list[int] = []
    place, end = 0.5 * RATE, minutes * 60 * RATE
    while place < end - 0.3 * RATE:
        basic, rare, share = RHYTHMS[len(positions) // STRETCH % len(RHYTHMS)]
        label = rare if rng.random() < share else basic
        if labels and labels[-1] != basic:
            label = basic
        positions.append(round(place))
        labels.append(label)
        rr = 0.82 * (1 + 0.03 * rng.standard_normal())
        # An early beat and the pause after it: the next beat is drawn now, so look ahead one step.
        place += rr * RATE * (LATE if label in (3, 4) else 1.0)
    places = np.array(positions, np.int64)
    kinds = np.array(labels, np.int64)
    early = np.flatnonzero((kinds == 3) | (kinds == 4))
    early = early[early > 0]
    gap = places[early] - places[early - 1]
    places[early] -= np.rint(gap * (1 - EARLY)).astype(np.int64)
    return places, kinds


def synthesise(minutes: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(samples, positions, labels)`` of an ECG of that length, 360 Hz, 200 counts a millivolt."""
    rng = np.random.default_rng(seed)
    count = round(minutes * 60 * RATE)
    positions, labels = schedule(minutes, rng)
    time = np.arange(count) / RATE
    trace = 40 * np.sin(2 * np.pi * 0.21 * time) + 15 * np.sin(2 * np.pi * 0.07 * time + 1)
    trace += 3 * rng.standard_normal(count)
    reach = RATE
    around = np.arange(-reach, reach)
    shapes = [
        sum(a * np.exp(-(((around * 1000 / RATE - c) / w) ** 2) / 2) for a, c, w in bumps)
        for bumps in BUMPS
    ]
    for place, label in zip(positions.tolist(), labels.tolist(), strict=True):
        low, high = max(0, place - reach), min(count, place + reach)
        part = np.asarray(shapes[label])[low - place + reach : high - place + reach]
        trace[low:high] += part * (1 + 0.04 * rng.standard_normal())
    return np.clip(np.rint(trace), -1024, 1023).astype(np.int16), positions, labels
