"""Pictures of the paper's figures: our points as lines, the paper's values beside them."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Picture

from ..pictures import save_picture
from .paper import Figure

__all__ = ["draw"]

#: From this ratio of the largest to the smallest value on an axis is logarithmic.
_WIDE = 30


def _wide(places: list[float]) -> bool:
    return min(places, default=0) > 0 and max(places) / min(places) > _WIDE


def _panel(axes: Any, ours: dict[str, list[Any]], theirs: dict[str, list[Any]]) -> None:
    colours = {}
    for series, points in ours.items():
        (line,) = axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=series)
        colours[series] = line.get_color()
    for series, points in theirs.items():
        style = {"linestyle": "--", "marker": "x", "alpha": 0.8}
        label = f"paper: {series}"
        colour = colours.get(series)
        axes.plot(*zip(*points, strict=True), label=label, color=colour, **style)
    all_points = [
        point for group in (ours, theirs) for points in group.values() for point in points
    ]
    if _wide([x for x, _ in all_points]):
        axes.set_xscale("log", base=2)
    if _wide([y for _, y in all_points]):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=6)


def draw(figure: Figure, path: Path) -> None:
    """Draw all panels of a figure to a file."""
    count = len(figure.panels)
    picture = Picture(figsize=(1 + 5 * count, 4.5), layout="constrained")
    all_axes = picture.subplots(1, count, squeeze=False)[0]
    for axes, (label, (ours, theirs)) in zip(all_axes, figure.panels.items(), strict=True):
        _panel(axes, ours, theirs)
        axes.set_xlabel(figure.x)
        axes.set_ylabel(label)
    picture.suptitle(figure.title)
    save_picture(picture, path)
