"""A record as strips of one minute, its detected beats coloured by class, errors marked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..models.ecg.data import RATE, Record
from ..models.ecg.model import CLASSES
from ..models.ecg.scoring import match

__all__ = ["COLOURS", "draw", "errors_of"]

#: Okabe and Ito's palette: told apart by colour-blind readers too. In the order of CLASSES.
COLOURS = ("#009E73", "#0072B2", "#56B4E9", "#E69F00", "#CC79A7", "#000000")
ERROR = "#D00000"
STRIP = 60 * RATE
#: Microvolts are not the point here: strips share a scale that shows every R peak.
QUANTILE = 0.0005


def errors_of(
    record: Record, positions: np.ndarray, called: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``(wrong, missed)``: indices of detected beats that are not as annotated (or not there at
    all), and positions of annotated beats that were not found. Beats that carry an annotation of
    none of the six classes are neither. Both are empty for a record without annotations."""
    if record.positions is None or record.labels is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    pairs = match(record.positions, positions)
    truth = np.where(pairs >= 0, record.labels[pairs], -2)
    wrong = np.flatnonzero((truth != called) & (truth != -1))
    found = np.zeros(len(record.positions), bool)
    found[pairs[pairs >= 0]] = True
    return wrong, record.positions[~found]


def draw(record: Record, beats: Sequence[tuple[Any, ...]], title: str, path: Path) -> None:
    """Write the picture; ``beats`` are ``(position, class, …)`` in order."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    positions = np.array([beat[0] for beat in beats], np.int64)
    called = np.array([beat[1] for beat in beats], np.int64)
    wrong, missed = errors_of(record, positions, called)
    millivolts = record.samples / 200
    low, high = np.quantile(millivolts, [QUANTILE, 1 - QUANTILE])
    margin = 0.15 * (high - low) or 1.0
    strips = max(1, -(-len(millivolts) // STRIP))
    with mpl.rc_context({"font.size": 8, "path.simplify": True}):
        figure = Figure(figsize=(18, 1.1 + 1.05 * strips), layout="constrained")
        axes = figure.subplots(strips, 1, squeeze=False, sharey=True)[:, 0]
        for number, axis in enumerate(axes):
            begin, end = number * STRIP, (number + 1) * STRIP
            part = millivolts[begin:end]
            axis.plot(np.arange(len(part)) / RATE, part, color="#777777", linewidth=0.5)
            for label, colour in enumerate(COLOURS):
                here = positions[(called == label) & (positions >= begin) & (positions < end)]
                axis.plot((here - begin) / RATE, millivolts[here], ".", color=colour, markersize=5)
            bad = positions[wrong]
            bad = bad[(bad >= begin) & (bad < end)]
            axis.plot((bad - begin) / RATE, millivolts[bad], "o", markersize=9, **_ring(), zorder=5)
            lost = missed[(missed >= begin) & (missed < end)]
            axis.plot((lost - begin) / RATE, millivolts[lost], "x", color=ERROR, markersize=6)
            axis.set(xlim=(0, 60), ylim=(low - margin, high + margin), ylabel=f"{number} min")
            axis.tick_params(labelbottom=number == strips - 1)
        axes[-1].set_xlabel("seconds; amplitude in mV")
        figure.suptitle(title, fontsize=11)
        figure.legend(
            handles=_legend(called, len(wrong), len(missed), record.positions is not None),
            loc="outside lower center",
            ncols=8,
            frameon=False,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=100)


def _ring() -> dict[str, Any]:
    return {"markerfacecolor": "none", "markeredgecolor": ERROR, "markeredgewidth": 1.2}


def _legend(called: np.ndarray, wrong: int, missed: int, annotated: bool) -> list[Any]:
    from matplotlib.lines import Line2D

    def entry(text: str, marker: str, **style: Any) -> Line2D:
        return Line2D([], [], linestyle="none", marker=marker, label=text, **style)

    entries = [
        entry(f"{name}: {count}", ".", color=colour, markersize=9)
        for label, (name, colour) in enumerate(zip(CLASSES, COLOURS, strict=True))
        if (count := int((called == label).sum()))
    ]
    if annotated:
        entries.append(entry(f"not as annotated: {wrong}", "o", markersize=9, **_ring()))
        entries.append(entry(f"missed: {missed}", "x", color=ERROR))
    return entries
