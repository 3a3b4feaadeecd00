"""Measure what the ledger does not know yet, and put figures beside their budgets."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from ..models.errors import TrebuchetError
from ..models.ledger import Ledger
from .registry import COLLECTIONS, GROUPS, LEDGER, UNITS, Group, load_budgets

__all__ = ["Progress", "figures", "lost", "missed", "select", "stale"]

#: Called with a group before it is measured.
Progress = Callable[[Group], None]


def select(name: str | None) -> list[Group]:
    """The group called ``name``, the groups of its collection, its unit or its part, or all.

    A part is what figures' names begin with: ``ecg`` stands for all that measure ``ecg.…``. All, a
    unit and a collection are those whose budgets are not pending: the others are to be named.
    """
    if name is None:
        budgets = load_budgets()
        return [g for g in GROUPS.values() if not all(budgets[f].pending for f in g.figures)]
    if name in GROUPS:
        return [GROUPS[name]]
    if name in UNITS:
        budgets = load_budgets()
        return [
            group
            for group in select(None)
            if any(budgets[figure].unit in UNITS[name] for figure in group.figures)
        ]
    parts = COLLECTIONS.get(name, (name,))
    found = [
        group
        for group in (select(None) if name in COLLECTIONS else GROUPS.values())
        if any(figure.partition(".")[0] in parts for figure in group.figures)
    ]
    if not found:
        known = ", ".join(dict.fromkeys([*GROUPS, *COLLECTIONS, *UNITS]))
        raise TrebuchetError(f"group must be one of {known}, not {name!r}")
    return found


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send everything that anybody prints, compilers included, to stderr."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def stale(groups: Iterable[Group], ledger: Ledger) -> list[str]:
    """Figures whose row is missing or was measured on other inputs."""
    return [
        figure
        for group in groups
        for digest in [group.digest()]
        for figure in group.figures
        if ledger.current(figure, digest) is None
    ]


def figures(
    groups: Iterable[Group],
    fresh: bool = False,
    ledger: Ledger | None = None,
    progress: Progress = lambda group: None,
    accept: bool = False,
) -> dict[str, dict[str, Any]]:
    """What is known of each figure, by its name; measures stale groups, all if ``fresh``.

    That is its ``value``, ``unit``, ``budget``, whether that is ``kept``, the digest of its
    ``inputs``, and ``was``, the best value since one was accepted: so small losses add up. A group
    with a figure that has lost more than :data:`.registry.LOSSES` allow, or misses its budget,
    keeps its old rows in the ledger, unless ``accept``.
    """
    ledger = Ledger(LEDGER) if ledger is None else ledger
    budgets = load_budgets()
    result: dict[str, dict[str, Any]] = {}
    for group in groups:
        inputs = group.digest()
        rows = {name: ledger.rows[name] for name in group.figures if name in ledger.rows}
        values = old = {name: row["value"] for name, row in rows.items()}
        if fresh or stale([group], ledger):
            progress(group)
            with stdout_to_stderr():
                values = group.measure()
        mine = {}
        for figure, value in values.items():
            budget = budgets[figure]
            mine[figure] = {
                "value": value,
                "was": rows.get(figure, {}).get("best", old.get(figure, value)),
                "unit": budget.unit,
                "budget": budget.budget,
                "kept": budget.kept_by(value),
                "inputs": inputs,
            }
        result |= mine
        if values is not old and (accept or not (lost(mine) or missed(mine))):
            for figure, row in mine.items():
                value, was = row["value"], row["was"]
                worse = not accept and budgets[figure].loss(was, value) > 0
                ledger.record(figure, inputs, value=value, **({"best": was} if worse else {}))
    return result


def lost(results: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The figures that have lost more than is allowed, and the share."""
    budgets = load_budgets()
    losses = {name: budgets[name].loss(row["was"], row["value"]) for name, row in results.items()}
    return {
        name: loss
        for name, loss in losses.items()
        if (most := budgets[name].allowed) is not None and loss > most
    }


def missed(results: dict[str, dict[str, Any]]) -> list[str]:
    """The figures that do not keep their budgets, but for those whose budget is pending."""
    budgets = load_budgets()
    return [name for name, row in results.items() if not (row["kept"] or budgets[name].pending)]
