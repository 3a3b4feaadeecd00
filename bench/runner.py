"""Measure what the ledger does not know yet, and put figures beside their budgets."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from ..models.errors import TrebuchetError
from ..models.ledger import Ledger
from .registry import COLLECTIONS, GROUPS, LEDGER, UNITS, Group, load_budgets

__all__ = ["Progress", "figures", "lost", "select", "stale"]

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
    """``{figure: {value, was, unit, budget, inputs}}``; measures stale groups, all if ``fresh``.

    ``was`` is the value in the ledger before. A group with a figure that has lost more than
    :data:`.registry.LOSSES` allow keeps its old rows there, unless ``accept``.
    """
    ledger = Ledger(LEDGER) if ledger is None else ledger
    budgets = load_budgets()
    result = {}
    for group in groups:
        inputs = group.digest()
        old = {name: ledger.rows[name]["value"] for name in group.figures if name in ledger.rows}
        values = old
        if fresh or stale([group], ledger):
            progress(group)
            with stdout_to_stderr():
                values = group.measure()
        for figure in group.figures:
            result[figure] = {
                "value": values[figure],
                "was": old.get(figure, values[figure]),
                "unit": budgets[figure].unit,
                "budget": budgets[figure].budget,
                "inputs": inputs,
            }
        if values is not old and (accept or not lost({f: result[f] for f in group.figures})):
            for figure, value in values.items():
                ledger.record(figure, inputs, value=value)
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
