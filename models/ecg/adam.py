"""Training of the two-layer network by stochastic gradient descent (Adam), in NumPy. Seeded.

Sigmoid units in the hidden layer; the outputs compete (softmax, cross entropy), because the
greatest of them is the class. ``copies`` are inputs of the same beats seen slightly differently;
each step takes one of them at random, so that the network does not depend on the exact place of a
crossing.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["Recipe", "calibrate", "descend", "sigmoid", "softmax"]


@dataclass(frozen=True)
class Recipe:
    """How long and how fast: the rate falls as a half cosine after a short rise."""

    steps: int
    rate: float = 1e-2
    batch: int = 512
    decay: float = 1e-5  # weight decay, which keeps the weights inside their fixed-point range
    rise: int = 200


def sigmoid(z):
    return 1 / (1 + np.exp(-np.clip(z, -30, 30)))


def softmax(y):
    e = np.exp(y - y.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def calibrate(outputs: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """``(scale, shift)`` that make ``sigmoid(scale * (outputs + shift))`` a probability.

    It comes as near as can be to 1 for the class and to 0 for the others, while the order of the
    outputs stays what it is.
    """
    one_hot = np.eye(outputs.shape[1], dtype=bool)[labels]
    best = (np.inf, 1.0, 0.0)
    for scale in np.linspace(0.2, 1.4, 13):
        for shift in np.linspace(-8, 8, 33):
            y = scale * (outputs + shift)
            loss = np.logaddexp(0, np.where(one_hot, -y, y)).mean()
            best = min(best, (float(loss), float(scale), float(shift)))
    return best[1:]


def descend(
    copies: np.ndarray, targets: np.ndarray, hidden: int, recipe: Recipe, seed: int
) -> list[np.ndarray]:
    """``[w1, b1, w2, b2]`` (inputs first) from ``copies[copy][beat][input]``, normalised.

    ``targets[beat][class]``: 1 for the class of the beat, 0 for the others, or what a better
    network thinks of it.
    """
    rng = np.random.default_rng(seed)
    single = np.float32
    count, inputs = copies.shape[1:]
    outputs = targets.shape[1]
    targets = targets.astype(single)
    weights = [
        (rng.standard_normal((inputs, hidden)) * np.sqrt(2 / inputs)).astype(single),
        np.zeros(hidden, single),
        (rng.standard_normal((hidden, outputs)) * np.sqrt(4 / hidden)).astype(single),
        np.zeros(outputs, single),
    ]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    batches = count // recipe.batch
    decay = single(recipe.decay)
    for step in range(recipe.steps):
        if step % batches == 0:
            order = rng.permutation(count)
        at = step % batches * recipe.batch
        chosen = order[at : at + recipe.batch]
        x = copies[rng.integers(len(copies))][chosen]
        h = sigmoid(x @ weights[0] + weights[1])
        error = (softmax(h @ weights[2] + weights[3]) - targets[chosen]) / single(recipe.batch)
        back = (error @ weights[2].T) * h * (1 - h)
        slopes = [
            x.T @ back + decay * weights[0],
            back.sum(axis=0),
            h.T @ error + decay * weights[2],
            error.sum(axis=0),
        ]
        rate = recipe.rate * 0.5 * (1 + np.cos(np.pi * step / recipe.steps))
        rate *= min(1, (step + 1) / recipe.rise)
        rate *= np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        for w, m, v, slope in zip(weights, first, second, slopes, strict=True):
            m += single(0.1) * (slope - m)
            v += single(0.001) * (slope * slope - v)
            w -= single(rate) * m / (np.sqrt(v) + single(1e-8))
    return weights
