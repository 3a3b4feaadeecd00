"""A picture of a routed design: which component lies where on the FPGA, and how full it is."""

import json
import re
from collections import Counter, defaultdict
from html import escape

from ..boards.ecp5_devices import ecp5_device
from .timing import component

__all__ = ["draw"]

#: Colours that people with colour blindness can tell apart (Okabe and Ito), then lighter ones.
_COLOURS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#f0e442",
    "#66a3d2",
    "#a6d854",
    "#8c8c8c",
)
_PLACE = re.compile(r"^X(\d+)/Y(\d+)/")
_TILE = 8
_LEGEND = 260
#: Cells that one tile holds.
_CELLS = 16
#: What the legend counts, by nextpnr's names.
_RESOURCES = {
    "TRELLIS_COMB": "LUTs",
    "TRELLIS_FF": "flip-flops",
    "DP16KD": "block RAMs",
    "MULT18X18D": "multipliers",
}


def _tiles(netlist):
    """``{(x, y): Counter of components}`` of the cells of a netlist that nextpnr has placed."""
    (module,) = (
        module
        for module in json.loads(netlist.read_text())["modules"].values()
        if "top" in module.get("attributes", {})
    )
    tiles = defaultdict(Counter)
    for name, cell in module["cells"].items():
        place = _PLACE.match(str(cell["attributes"].get("NEXTPNR_BEL", "")))
        if place is not None:
            tiles[tuple(map(int, place.groups()))][component(name, depth=2)] += 1
    return tiles


def _taken(report):
    """A line on each resource, of a report of nextpnr."""
    utilization = json.loads(report.read_text())["utilization"]
    for name, what in _RESOURCES.items():
        used, there = utilization[name]["used"], utilization[name]["available"]
        yield f"{what}: {used} of {there}, {used / there:.0%}"


def draw(placement, device, title):
    """The picture of the whole FPGA as SVG text.

    Parameters
    ----------
    placement : Placement
        Where nextpnr wrote the netlist and its report.
    device : str
        The FPGA, an ECP5.
    title : str
        Line above the picture.
    """
    tiles = _tiles(placement.path("_placed.json"))
    grid = ecp5_device(device)
    total = sum(tiles.values(), Counter())
    named = [name for name, _ in total.most_common(len(_COLOURS) - 1)]
    colour = dict(zip(named, _COLOURS, strict=False))
    width, height = grid.columns * _TILE, (grid.rows + 2) * _TILE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + _LEGEND} {height}" '
        f'width="{width + _LEGEND}" height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="4" y="{_TILE + 4}">{escape(title)}</text>',
        f'<rect x="0" y="{2 * _TILE}" width="{width}" height="{height - 2 * _TILE}" '
        f'fill="none" stroke="{_COLOURS[-1]}"/>',
    ]
    for (x, y), cells in sorted(tiles.items()):
        first = cells.most_common(1)[0][0]
        opacity = 0.35 + 0.65 * min(1, cells.total() / _CELLS)
        lines.append(
            f'<rect x="{x * _TILE}" y="{(y + 2) * _TILE}" width="{_TILE}" height="{_TILE}" '
            f'fill="{colour.get(first, _COLOURS[-1])}" fill-opacity="{opacity:.2f}"/>'
        )
    rest = total.total() - sum(total[name] for name in named)
    for row, (name, count) in enumerate([*((n, total[n]) for n in named), ("others", rest)]):
        y = (row * 2 + 4) * _TILE
        lines += [
            f'<rect x="{width + 8}" y="{y}" width="12" height="12" '
            f'fill="{colour.get(name, _COLOURS[-1])}"/>',
            f'<text x="{width + 26}" y="{y + 11}">{escape(name)}: {count} cells</text>',
        ]
    for row, text in enumerate(_taken(placement.path("_pnr.json")), len(named) + 2):
        lines.append(f'<text x="{width + 8}" y="{(row * 2 + 4) * _TILE + 11}">{text}</text>')
    return "\n".join([*lines, "</svg>", ""])
