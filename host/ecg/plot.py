"""The picture of a run: an overview of all beats, and the most interesting strips of the trace."""

from pathlib import Path
from typing import Any

import numpy as np

from ...models.ecg.conversion import COUNTS_PER_MV
from ...models.ecg.data import RATE, Record
from ...models.ecg.model import CLASSES
from ...models.ecg.scoring import match
from ...models.files import make_folder
from ..pictures import save_picture
from .client import Reading

__all__ = ["draw", "interesting_strips"]

#: Okabe and Ito's palette: told apart by colour-blind readers too.
COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#d55e00", "#56b4e9")
LETTERS = ("N", "L", "R", "A", "V", "P")
NAMES = ("normal", *CLASSES[1:])
STRIP_SECONDS = 30
#: Marks nearer than this are put on two lines, in seconds.
CROWDED = 0.7


class Verdicts:
    """For every found beat its annotated class (-1 other, -2 none); and the beats missed."""

    def __init__(self, record: Record, reading: Reading) -> None:
        self.known = record.positions is not None and record.labels is not None
        self.truth = np.full(len(reading.positions), -1)
        self.missed = np.zeros(0, np.int64)
        if record.positions is None or record.labels is None:
            self.wrong = np.zeros(len(reading.positions), bool)
            return
        pairs = match(record.positions, reading.positions)
        self.truth = np.where(pairs >= 0, record.labels[pairs], -2)
        self.missed = np.delete(record.positions, pairs[pairs >= 0])
        self.wrong = (self.truth == -2) | ((self.truth >= 0) & (self.truth != reading.labels))


def interesting_strips(record: Record, reading: Reading, count: int = 3) -> list[int]:
    """Starts (in samples) of non-overlapping strips that show most classes, then most errors."""
    verdicts = Verdicts(record, reading)
    length = STRIP_SECONDS * RATE
    last = max(0, len(record.samples) - length)
    ranked = []
    for start in range(0, last + 1, length // 3):
        inside = (reading.positions >= start) & (reading.positions < start + length)
        kinds = len(np.unique(reading.labels[inside]))
        errors = int(verdicts.wrong[inside].sum())
        rare = int((reading.labels[inside] != 0).sum())
        # A strip full of errors shows noise; a few errors among many classes show the method.
        ranked.append((kinds, min(errors, 3), min(rare, 12), -start))
    chosen: list[int] = []
    for *_, negative in sorted(ranked, reverse=True):
        start = -negative
        if all(abs(start - other) >= length for other in chosen) and len(chosen) < count:
            chosen.append(start)
    return sorted(chosen)


def draw(record: Record, reading: Reading, path: Path, subtitle: str = "") -> None:
    """Write the picture; the suffix of ``path`` says of which kind."""
    import matplotlib  # noqa: PLC0415 - slow to import, and only pictures need it

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of backend

    strips = interesting_strips(record, reading)
    verdicts = Verdicts(record, reading)
    rows = 1 + len(strips)
    figure, axes = plt.subplots(
        rows, 1, figsize=(17, 3.0 + 2.7 * len(strips)), layout="constrained", squeeze=False
    )
    panels = axes[:, 0]
    draw_overview(panels[0], record, reading, verdicts, strips)
    for panel, start in zip(panels[1:], strips, strict=True):
        draw_strip(panel, record, reading, verdicts, start)
    title = f"ECG record {record.name}, {len(record.samples) / RATE / 60:.1f} min"
    title = f"{title}: {subtitle}" if subtitle else title
    figure.suptitle(f"{title}\n{record.source}", fontsize=13)
    draw_legend(figure, reading, verdicts)
    make_folder(path.parent)
    save_picture(figure, path, dpi=110)
    plt.close(figure)


def draw_overview(panel, record, reading, verdicts, strips) -> None:
    """RR interval of every beat over time: rhythm and classes at a glance."""
    times = reading.positions / RATE
    intervals = np.diff(times, prepend=np.nan)
    top = max(1.5, float(np.nanpercentile(intervals, 99.5)) * 1.15) if len(times) > 1 else 1.5
    heights = np.minimum(intervals, top)
    for label in range(len(CLASSES)):
        mine = reading.labels == label
        panel.scatter(times[mine], heights[mine], s=12, color=COLOURS[label], zorder=3)
    wrong = verdicts.wrong
    panel.scatter(
        *(times[wrong], heights[wrong]), s=60, facecolors="none", edgecolors="black", zorder=4
    )
    panel.scatter(verdicts.missed / RATE, [0.06 * top] * len(verdicts.missed), **MISSED)
    for start in strips:
        panel.axvspan(start / RATE, start / RATE + STRIP_SECONDS, color="0.9", zorder=0)
    panel.set(xlim=(0, len(record.samples) / RATE), ylim=(0, top), ylabel="RR interval [s]")
    panel.set_title("all beats (grey: the strips below)", loc="left", fontsize=10)
    panel.set_xlabel("time [s]")


MISSED = {"marker": "x", "color": "black", "s": 55, "linewidths": 1.8, "zorder": 5}


def draw_strip(panel, record, reading, verdicts, start) -> None:
    """Thirty seconds of the trace; each beat a letter in its colour, errors in a box."""
    length = STRIP_SECONDS * RATE
    part = record.samples[start : start + length] / COUNTS_PER_MV
    time = (start + np.arange(len(part))) / RATE
    panel.plot(time, part, color="0.35", linewidth=0.7, zorder=2)
    low, high = np.percentile(part, [0.05, 99.95])
    span = max(high - low, 0.5)
    lines = (high + 0.12 * span, high + 0.27 * span)
    previous, line = -CROWDED, 0
    edge = RATE // 10
    shown = (reading.positions >= start + edge) & (reading.positions < start + length - edge)
    for index in np.flatnonzero(shown):
        place, label = int(reading.positions[index]), int(reading.labels[index])
        ecg = record.samples[max(0, place - 32) : place + 32] / COUNTS_PER_MV
        around = (max(0, place - 32) + np.arange(len(ecg))) / RATE
        panel.plot(around, ecg, color=COLOURS[label], linewidth=1.4, zorder=3)
        wrong = verdicts.wrong[index]
        text = LETTERS[label]
        if wrong:
            truth = int(verdicts.truth[index])
            text += f"≠{LETTERS[truth]}" if truth >= 0 else "≠–"
        line = 1 - line if wrong and place / RATE - previous < CROWDED else 0
        previous = place / RATE
        panel.text(
            place / RATE,
            lines[line],
            text,
            color=COLOURS[label],
            ha="center",
            va="center",
            fontsize=9,
            fontweight="bold",
            bbox={"boxstyle": "round,pad=0.2", "fc": "#fff2b3", "ec": "black"} if wrong else None,
        )
    inside = (verdicts.missed >= start) & (verdicts.missed < start + length)
    panel.scatter(verdicts.missed[inside] / RATE, [low] * int(inside.sum()), **MISSED)
    panel.set(xlim=(time[0], time[0] + STRIP_SECONDS), ylabel="mV")
    panel.set_ylim(low - 0.08 * span, high + 0.38 * span)
    panel.set_xlabel("time [s]")
    panel.grid(axis="x", color="0.93", zorder=0)


def draw_legend(figure, reading, verdicts) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415 - as in draw()

    counts = np.bincount(reading.labels, minlength=len(CLASSES))
    marks = [
        Line2D([], [], color=colour, marker="o", label=f"{letter}  {name}: {count}")
        for colour, letter, name, count in zip(COLOURS, LETTERS, NAMES, counts, strict=True)
        if count
    ]
    if verdicts.known:
        ring: dict[str, Any] = {
            "marker": "o",
            "markerfacecolor": "none",
            "color": "black",
            "linestyle": "none",
        }
        wrong, missed = int(verdicts.wrong.sum()), len(verdicts.missed)
        marks.append(Line2D([], [], **ring, label=f"not as annotated (found≠annotated): {wrong}"))
        cross: dict[str, Any] = {"marker": "x", "color": "black", "linestyle": "none"}
        marks.append(Line2D([], [], **cross, label=f"missed: {missed}"))
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
