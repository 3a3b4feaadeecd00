"""Figures of a run of the data-centre model, beside the paper's."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .parameters import PAPER, TIERS, Parameters, Shell

__all__ = ["MEASURED", "MODELLED", "summary"]

#: What the figures rest on; shown with them wherever they are shown.
MEASURED = "the shells' cycles: cycle-accurate simulation of this project's gateware"
MODELLED = "clock, MAC and PHY, cables, switches, other traffic: assumptions, not fitted"


def _figures(trips: np.ndarray) -> dict[str, float]:
    low, median, p99, p999, high = np.percentile(trips, [0, 50, 99, 99.9, 100])
    values = {"average": trips.mean(), "min": low, "median": median}
    values |= {"p99": p99, "p99_9": p999, "max": high}
    return {name: round(float(value), 3) for name, value in values.items()}


def summary(
    p: Parameters, shell: Shell, trips: Mapping[str, Sequence[Sequence[float]]]
) -> dict[str, Any]:
    """Everything a reader needs, as JSON: per tier in µs, what it rests on, the parameters."""
    reach = p.reach()
    tiers = {}
    for tier in TIERS:
        table = np.array(trips[tier])
        average, p999 = PAPER[tier]
        tiers[tier] = {
            "machines": reach[tier],
            **_figures(table),
            "pair_averages": [round(float(v), 3) for v in table.mean(axis=1)],
            "paper": {"average": average, "p99_9": p999},
        }
    calibration = {
        "ltl.rtt_cycles": {"value": shell.rtt_cycles, "origin": shell.origin["ltl.rtt_cycles"]},
        "bridge.latency_cycles": {
            "value": shell.bridge_cycles,
            "origin": shell.origin["bridge.latency_cycles"],
        },
    }
    return {
        "unit": "us",
        "tiers": tiers,
        "measured": MEASURED,
        "modelled": MODELLED,
        "calibration": calibration,
        "parameters": p.as_dict(),
    }
