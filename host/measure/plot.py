"""Pictures of `trebuchet measure`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ..pictures import save_picture

__all__ = ["draw"]

_PERCENTILES = {"p50": "50 %", "p95": "95 %", "p99": "99 %", "p99_9": "99.9 %"}


def draw(result: Mapping[str, Any], path: Path) -> None:
    """Draw the runs of a result to a file."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = [row for row in result["runs"] if row.get("latency_us")]
    x, label, log = {
        "load": ("rate", "offered transfers per second", True),
        "fairness": ("connections", "connections", True),
    }.get(result["measurement"], ("size", "bytes of a transfer", True))
    for client in dict.fromkeys(row["client"] for row in rows):
        of_client = [row for row in rows if row["client"] == client]
        _latencies(right, of_client, x, client)
        if result["measurement"] == "fairness":
            _shares(left, of_client)
        else:
            _rates(left, of_client, x, client, result["measurement"])
    for axes in (left, right):
        axes.set_xlabel(label)
        if log and rows:
            axes.set_xscale("log", base=2 if x != "rate" else 10)
        axes.grid(alpha=0.3)
        if rows:
            axes.legend(fontsize=8)
    figure.suptitle(f"{result['measurement']}: {result['traffic']}, {', '.join(result['targets'])}")
    save_picture(figure, path)


def _rates(axes: Any, rows: Sequence[Any], x: str, client: str, kind: str) -> None:
    name = "transfers_per_s" if kind in ("load", "latency") else "mbit_per_s"
    axes.plot([r[x] for r in rows], [r[name] for r in rows], marker="o", label=client)
    axes.set_ylabel("transfers per second" if name == "transfers_per_s" else "Mb/s")
    axes.set_ylim(bottom=0)


def _shares(axes: Any, rows: Sequence[Any]) -> None:
    counts = [row["connections"] for row in rows]
    for edge in (min, max):
        shares = [edge(r["shares"]) * len(r["shares"]) / (sum(r["shares"]) or 1) for r in rows]
        axes.plot(counts, shares, marker=".", label=f"{edge.__name__} share times connections")
    axes.plot(counts, [row["jain"] for row in rows], marker="o", label="Jain's index")
    axes.set_ylim(bottom=0)


def _latencies(axes: Any, rows: Sequence[Any], x: str, client: str) -> None:
    for name, label in _PERCENTILES.items():
        points = [(r[x], r["latency_us"][name]) for r in rows if r["latency_us"][name] is not None]
        if points:
            axes.plot(*zip(*points, strict=True), marker=".", label=f"{client}, {label}")
    axes.set_yscale("log")
    axes.set_ylabel("latency, µs")
