"""The longest paths of a routed design, by component."""

import json
from dataclasses import dataclass
from itertools import groupby

__all__ = ["Path", "clock_name", "component", "critical_paths"]


@dataclass(frozen=True)
class Path:
    """The longest path between two clocks, or within one.

    Attributes
    ----------
    start, end : str
        Clocks, or ``"pins"``.
    ns : float
        Its delay; ``logic_ns`` of it in cells, the rest in wires.
    hops : tuple of (str, int, float)
        Components on the way: name, cells there, and nanoseconds up to the next one.
    """

    start: str
    end: str
    ns: float
    logic_ns: float
    hops: tuple


def component(cell, depth=3):
    """The part that a cell belongs to: the first ``depth`` names of its hierarchy.

    Amaranth's names have dots between modules, and the cell's own name last. Migen flattens its
    hierarchy: of those names the first three words count.
    """
    *modules, _ = cell.replace("_instance.", ".").split(".")
    if modules:
        return ".".join(modules[:depth])
    return "_".join(cell.split("_")[:3])


def _clock(name):
    edge, _, net = name.partition(" ")
    if not net:
        return "pins"
    return clock_name(net)


def clock_name(net):
    """The design's name of a clock, from that of nextpnr's net."""
    return net.removeprefix("$glbnet$").split("$")[0]


def critical_paths(report):
    """The :class:`Path` of every pair of clocks in a report file of nextpnr, the longest first."""
    found = []
    for row in json.loads(report.read_text())["critical_paths"]:
        steps = [(component(step["to"]["cell"]), step) for step in row["path"]]
        hops = []
        for name, group in groupby(steps, key=lambda pair: pair[0]):
            group = [step for _, step in group]
            cells = len({step["to"]["cell"] for step in group})
            hops.append((name, cells, sum(step["delay"] for step in group)))
        logic = sum(step["delay"] for _, step in steps if step["type"] != "routing")
        total = sum(step["delay"] for _, step in steps)
        found.append(Path(_clock(row["from"]), _clock(row["to"]), total, logic, tuple(hops)))
    return sorted(found, key=lambda path: -path.ns)
