"""Measured figures as plots, and boards with their figures, from the ledger of `bench/`."""

from collections.abc import Iterator

from ...bench.registry import LEDGER, load_budgets
from ...bench.resources import _PARTS as PARTS
from ...bench.resources import number
from ...boards import NAMES, load_board
from ...models.ledger import ROOT, Ledger, value_of
from .diagrams import bars

__all__ = ["pages"]

FIGURES_HEAD = """# Measured figures

From `bench/ledger`, with the budgets of `bench/budgets.json`: a black line is the budget, and a bar
is blue if it keeps it. [Cycles, area and clocks](../resources.md) has the same as a table, with
references and dates.
"""
BOARDS_HEAD = """# Boards

Boards in the tree; [porting.md](../porting.md) adds another.
"""
FLOORPLANS_HEAD = """## Floor plans

`trebuchet build BOARD` draws which component lies where on the FPGA. Of the boards that were built
in this checkout:
"""
#: Figures of a board that are plotted over all boards, with their titles.
BOARD_PLOTS = {"sys_mhz": "clock that nextpnr reached", "lut_share": "share of the LUTs taken"}


def _plots(group: list[str], picture: str) -> Iterator[tuple[str, str, str]]:
    """Yield title, file and text of a plot for each unit and direction of some figures."""
    rows, budgets = Ledger(LEDGER).rows, load_budgets()
    kinds: dict[tuple[str, str], list[str]] = {}
    for name in group:
        if name in rows and name in budgets and value_of(rows[name]) is not None:
            kinds.setdefault((budgets[name].unit, budgets[name].better), []).append(name)
    for index, ((unit, better), names) in enumerate(sorted(kinds.items())):
        data = [(name, value_of(rows[name]), budgets[name].budget) for name in names]
        bar = [(name.partition(".")[2], value, most, number(value)) for name, value, most in data]
        yield unit, f"{picture}_{index}.svg", bars(bar, unit, better == "lower")


def _board_table() -> Iterator[str]:
    rows = Ledger(LEDGER).rows
    yield "| board | FPGA | clock of the system | sessions | roles | flow |"
    yield "|---|---|---|---|---|---|"
    for name in NAMES:
        board = load_board(name)
        reached = rows.get(f"board.{name}.sys_mhz")
        clock = f"{board.sys_clk_hz / 1e6:g} MHz"
        clock += f" (reached {number(value_of(reached))})" if reached else ""
        roles = ", ".join(entry.name for entry in board.plan.roles)
        cells = (f"`{name}`: {board.title}", board.device, clock, board.sessions, roles, board.flow)
        yield f"| {' | '.join(map(str, cells))} |"


def _figures() -> dict[str, str]:
    text, found = [FIGURES_HEAD], {}
    budgets = load_budgets()
    for part in dict.fromkeys(name.partition(".")[0] for name in budgets):
        if part == "board":
            continue
        title = PARTS.get(part, part)
        text.append(f"## {title}\n")
        group = [name for name in budgets if name.partition(".")[0] == part]
        for unit, file, picture in _plots(group, f"figures_{part}"):
            found[f"reference/{file}"] = picture
            text.append(f"![{title}: {unit}]({file})\n")
    return found | {"reference/figures.md": "\n".join(text)}


def _boards() -> dict[str, str]:
    rows, budgets = Ledger(LEDGER).rows, load_budgets()
    text, found = [BOARDS_HEAD, *_board_table(), ""], {}
    for figure, title in BOARD_PLOTS.items():
        data = []
        for board in NAMES:
            row = rows.get(name := f"board.{board}.{figure}")
            if row is not None and value_of(row) is not None:
                bound = budgets[name]
                data.append((board, value_of(row), bound.budget, number(value_of(row))))
        found[f"reference/boards_{figure}.svg"] = bars(data, title, bound.better == "lower")
        text.append(f"![{title}](boards_{figure}.svg)\n")
    text.append(FLOORPLANS_HEAD)
    for board in NAMES:
        for path in sorted((ROOT / "build" / board / "gateware").glob("*.svg")):
            found[f"reference/floorplan_{board}.svg"] = path.read_text()
            text.append(f"![Floor plan of {board}](floorplan_{board}.svg)\n")
    return found | {"reference/boards.md": "\n".join(text)}


def pages() -> dict[str, str]:
    """Return the pages of figures and boards and their plots, by name."""
    return _figures() | _boards()
