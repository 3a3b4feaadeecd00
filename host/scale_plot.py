"""The picture of the data-centre model: round trips by tier, beside those of the paper."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..models.scale.summary import MODELLED
from .pictures import save_picture

__all__ = ["draw"]

_OURS, _PAPER = "#0072b2", "#d55e00"


def _by_reach(axes: Any, tiers: Mapping[str, Any]) -> None:
    reach = [t["machines"] for t in tiers.values()]
    for name, values, low, high, colour, marker in (
        (
            "this model",
            [t["average"] for t in tiers.values()],
            [t["min"] for t in tiers.values()],
            [t["p99_9"] for t in tiers.values()],
            _OURS,
            "o",
        ),
        (
            "paper, measured",
            [t["paper"]["average"] for t in tiers.values()],
            [t["paper"]["average"] for t in tiers.values()],
            [t["paper"]["p99_9"] for t in tiers.values()],
            _PAPER,
            "s",
        ),
    ):
        axes.plot(reach, values, marker=marker, color=colour, label=name)
        axes.fill_between(reach, low, high, color=colour, alpha=0.18, linewidth=0)
        shift = 8 if colour == _OURS else -14
        for x, y in zip(reach, values, strict=True):
            axes.annotate(f"{y:.2f}", (x, y), (0, shift), textcoords="offset points", color=colour)
    axes.set_xscale("log")
    axes.set_xlabel("machines in reach")
    axes.set_ylabel("round trip, µs")
    axes.set_ylim(bottom=0)
    axes.set_title("average, and range to the 99.9th percentile")
    axes.legend(loc="upper left")
    axes.grid(alpha=0.3)


def _histogram(axes: Any, tier: str, figures: Mapping[str, Any], trips: np.ndarray) -> None:
    axes.hist(trips, bins=60, color=_OURS, alpha=0.8)
    axes.axvline(figures["paper"]["average"], color=_PAPER, label="paper's average")
    axes.axvline(figures["paper"]["p99_9"], color=_PAPER, linestyle=":", label="its 99.9 %")
    axes.set_title(f"{tier}: {figures['machines']:,} machines", fontsize=10)
    axes.set_yscale("log")
    axes.set_ylabel("trips")


def draw(
    result: Mapping[str, Any], trips: Mapping[str, Sequence[Sequence[float]]], path: Path
) -> None:
    """Write the picture; the suffix of ``path`` says of which kind."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    FigureCanvasAgg(figure)
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.25, 1))
    left, right = halves
    _by_reach(left.subplots(), result["tiers"])
    rows = right.subplots(len(result["tiers"]), 1)
    for axes, (tier, figures) in zip(rows, result["tiers"].items(), strict=True):
        _histogram(axes, tier, figures, np.concatenate([np.array(t) for t in trips[tier]]))
    rows[-1].set_xlabel("round trip, µs")
    rows[0].legend(fontsize=8)
    rtt = result["calibration"]["ltl.rtt_cycles"]
    figure.suptitle(
        f"LTL round trips in the modelled data centre; shells: {rtt['value']:g} cycles, "
        f"{rtt['origin']}\n{MODELLED}",
        fontsize=10,
    )
    save_picture(figure, path, dpi=110)
