"""Measure what is neither in the ledger nor kept on this machine, and compare with the budgets.

Where a gating figure comes from, in this order: the ledger, if its row has today's key; the results
that this machine keeps (``build/figures``); a measurement. To find today's key, all that the tools
read is generated, so keys are kept as well, for as long as no source file has changed in what
counts (:mod:`trebuchet.models.sources`).
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..models.errors import TrebuchetError
from ..models.files import write_whole
from ..models.ledger import ROOT, Ledger, origin
from ..models.lock import FileLock
from ..models.sources import content_hash, files_below, tree_hash
from .job import Values
from .keys import job_key
from .needs import Unmeasurable
from .registry import COLLECTIONS, GROUPS, LEDGER, UNITS, Group, load_budgets

__all__ = ["Outcome", "Progress", "figures", "gating", "key_of", "kept_values", "load_ledger"]
__all__ += ["lost", "missed", "select", "stdout_to_stderr"]

#: Called with a group before it is measured.
Progress = Callable[[Group], None]
#: What this machine keeps: keys by the state of the sources, values by key.
BUILD = ROOT / "build" / "figures"
#: Folders whose files can change what a tool reads.
SOURCES = ("boards", "cores", "firmware", "models", "sim", "soc")


@dataclass(frozen=True)
class Outcome:
    """Values of a group and where they are from: ``ledger``, ``kept`` or ``measured``."""

    values: Values
    inputs: str
    source: str


def load_ledger() -> Ledger:
    """Return the ledger; raise :class:`TrebuchetError` if it has rows of no known figure."""
    ledger = Ledger(LEDGER)
    known = {figure: group for group in GROUPS.values() for figure in group.figures}
    for name in ledger.rows:
        place = f"bench/ledger/{ledger.groups[name]}.json"
        if name not in known:
            raise TrebuchetError(
                f"{place}: row {name!r} is of no figure of bench/registry.py; remove the row"
            )
        if ledger.groups[name] != known[name].part:
            raise TrebuchetError(f"{place}: row {name!r} belongs into {known[name].part}.json")
    return ledger


def select(name: str | None) -> list[Group]:
    """Return the group called ``name``, those of its collection, unit or part, or all.

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


def key_of(group: Group) -> str:
    """Return today's key of a group, kept while no source has changed in what counts."""
    state, path = _sources_state(), BUILD / "keys" / f"{group.name}.json"
    found = _read(path)
    if found.get("sources") == state and isinstance(found.get("key"), str):
        return found["key"]
    with stdout_to_stderr():
        key = job_key(group.job(), group.target)
    _write(path, {"sources": state, "key": key})
    return key


def _sources_state() -> str:
    """Hash of all that can decide a key: sources, locked packages, this Python."""
    state = hashlib.sha256(f"{tree_hash(SOURCES)} {sys.version}".encode())
    code = [path for path in files_below(ROOT / "bench") if path.suffix == ".py"]
    for path in [*code, *sorted(ROOT.glob("requirements*.lock"))]:
        state.update(content_hash(path).encode())
    state.update(os.environ.get("TREBUCHET_MITDB", "").encode())
    return state.hexdigest()


def kept_values(name: str) -> dict[str, Any]:
    """Return what this machine keeps under a name; empty if there is nothing whole."""
    return _read(BUILD / f"{name}.json")


def keep_values(name: str, values: dict[str, Any]) -> None:
    """Keep values on this machine under a name."""
    _write(BUILD / f"{name}.json", values)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(values).encode())


def gating(
    group: Group, ledger: Ledger, fresh: bool = False, progress: Progress = lambda group: None
) -> Outcome:
    """Return the values of a gating group, from the ledger, this machine or a measurement.

    Two processes that want the same group: one measures, the other waits for it.
    """
    with FileLock(BUILD / "locks" / group.name):
        key = key_of(group)
        rows = [ledger.current(figure, key) for figure in group.figures]
        if not fresh and all(row is not None for row in rows):
            values = {f: row["value"] for f, row in zip(group.figures, rows, strict=True) if row}
            return Outcome(values, key, "ledger")
        kept = {} if fresh else kept_values(f"{group.name}-{key}")
        if set(kept) == set(group.figures):
            return Outcome(kept, key, "kept")
        progress(group)
        with stdout_to_stderr():
            began = time.monotonic()
            values = group.check(group.job().measure())
            print(f"{group.name} measured in {time.monotonic() - began:.0f} s")
        keep_values(f"{group.name}-{key}", values)
        return Outcome(values, key, "measured")


def figures(
    groups: Iterable[Group],
    fresh: bool = False,
    ledger: Ledger | None = None,
    progress: Progress = lambda group: None,
    record: bool = False,
    accept: bool = False,
) -> dict[str, dict[str, Any]]:
    """Return what is known of each gating figure, by its name; with ``record`` write it down.

    That is its ``value``, ``unit``, ``budget``, whether that is ``kept``, its key (``inputs``), and
    ``was``, the best value since one was accepted: so small losses add up. A group with a figure
    that has lost more than :data:`.registry.LOSSES` allow, or misses its budget, keeps its old rows
    in the ledger, unless ``accept``. Of several groups, those that cannot be measured here are left
    out.
    """
    ledger = load_ledger() if ledger is None else ledger
    budgets = load_budgets()
    result: dict[str, dict[str, Any]] = {}
    for group in (groups := list(groups)):
        rows = {name: ledger.rows[name] for name in group.figures if name in ledger.rows}
        try:
            outcome = gating(group, ledger, fresh, progress)
        except Unmeasurable as error:
            if len(groups) == 1:
                raise
            print(f"{group.name} is left out: {error}", file=sys.stderr)
            continue
        mine = {}
        for figure, value in outcome.values.items():
            budget, row = budgets[figure], rows.get(figure, {})
            mine[figure] = {
                "kind": "gating",
                "value": value,
                "was": row.get("best", row.get("value", value)),
                "unit": budget.unit,
                "budget": budget.budget,
                "kept": budget.kept_by(value),
                **budget.requirement(value),
                "inputs": outcome.inputs,
            }
        result |= mine
        if record and outcome.source != "ledger" and (accept or not (lost(mine) or missed(mine))):
            made = origin()
            new = {}
            for figure, known in mine.items():
                worse = not accept and budgets[figure].loss(known["was"], known["value"]) > 0
                best = {"best": known["was"]} if worse else {}
                new[figure] = {"value": known["value"], **best, **made, "inputs": outcome.inputs}
            ledger.record_all(group.part, new)
        for figure in mine:
            row = ledger.rows.get(figure, {})
            mine[figure] |= {name: row[name] for name in ("commit", "date") if name in row}
    return result


def lost(results: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return the gating figures that have lost more than is allowed, and the share."""
    budgets = load_budgets()
    losses = {
        name: budgets[name].loss(row["was"], row["value"])
        for name, row in results.items()
        if row["kind"] == "gating"
    }
    return {
        name: loss
        for name, loss in losses.items()
        if (most := budgets[name].allowed) is not None and loss > most
    }


def missed(results: dict[str, dict[str, Any]]) -> list[str]:
    """Return the figures that miss their budgets, but for those whose budget is pending."""
    budgets = load_budgets()
    return [name for name, row in results.items() if not (row["kept"] or budgets[name].pending)]
