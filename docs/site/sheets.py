"""Data sheets: a page for each module of `cores/`, of docstrings and rows of the ledgers.

A docstring is a component's data sheet and states its ports, parameters and timing. Behind it come
the proofs of the module's components (`formal/ledger`), and figures of :data:`MEASURED`.
"""

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ...bench.registry import LEDGER, Budget, load_budgets
from ...bench.resources import number
from ...models.ledger import ROOT, Ledger, value_of
from .declared import declared
from .modules import PREFIX, components, is_package, modules, page, short
from .registers import register_pages
from .rst import heading, list_table, literal

__all__ = ["MEASURED", "proofs_of", "sheets"]

#: Module of `cores/` -> beginnings of the names of its figures.
MEASURED = {
    "bridge.bridge": ("bridge.",),
    "cluster.node": ("cluster.",),
    "ltl.engine": ("ltl.",),
    "memory_arbiter": ("memory.",),
    "roles.ecg.role": ("ecg.",),
    "roles.matmul.role": ("matmul.",),
    "router.router": ("router.",),
    "tcp.engine": ("tcp.", "gowin.tcp_"),
}


def proofs_of(module: ModuleType, rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the rows whose core is in the module."""
    own = re.compile(rf"cores\.{re.escape(short(module))}(?:\.\w+)?(?![.\w])")
    return {name: row for name, row in rows.items() if own.match(row["core"])}


def _proofs(rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    mutants: dict[str, int] = {}
    for name in rows:
        proof, is_mutant, _ = name.partition(".mutant.")
        mutants[proof] = mutants.get(proof, 0) + bool(is_mutant)
    yield from heading("Proofs", "-")
    yield "Method and depth in cycles, numbers of properties, assumptions and covers, and of"
    yield "mutants (planted faults) that the proof catches. :doc:`/proofs` has what is not proved."
    yield ""
    table = []
    for name, row in rows.items():
        if "." in name and ".second" not in name:
            continue
        subject = row["core"].partition(".")[2]
        counts = [str(row[key]) for key in ("asserts", "assumes", "covers")]
        bound = f"{row['method']}, {row['depth']}"
        cells = [literal(name), literal(subject), bound, *counts, str(mutants.get(name, 0))]
        table.append([*cells, row["status"]])
    header = ["proof", "of", "method", "properties", "assumptions", "covers", "mutants", "status"]
    yield from list_table(header, table)


def _figures(names: tuple[str, ...]) -> Iterator[str]:
    rows, budgets = Ledger(LEDGER).rows, load_budgets()
    yield from heading("Measured", "-")
    yield ":doc:`/reference/figures` has the plots, :doc:`/resources` how each is measured."
    yield ""
    table = [
        [literal(name), figure(row, budgets[name]), bound(budgets[name]), row.get("date", "")]
        for name, row in rows.items()
        if name.startswith(names) and name in budgets
    ]
    yield from list_table(["figure", "measured", "budget", "date"], table)


def figure(row: dict[str, Any], budget: Budget) -> str:
    """Return a row's value (of several seeds the median) with its unit."""
    return f"{number(value_of(row))} {budget.unit}"


def bound(budget: Budget) -> str:
    required = f" ({number(budget.wanted)} required)" if budget.missed else ""
    return f"{budget.bound} {number(budget.budget)}{required}"


def _sheet(
    module: ModuleType, proofs: dict[str, dict[str, Any]], registers: dict[str, str]
) -> Iterator[str]:
    yield from (":orphan:", "")
    name = short(module)
    path = f"{module.__name__.partition('.')[2].replace('.', '/')}.py"
    yield from heading(name.rpartition(".")[2], "=")
    yield f"Source: {literal(path)}"
    yield ""
    yield f".. automodule:: {module.__name__}"
    yield ""
    yield from declared(module, registers)
    if rows := proofs_of(module, proofs):
        yield from _proofs(rows)
    if names := MEASURED.get(name):
        yield from _figures(names)


def first_line(documented: Any) -> str:
    text = (inspect.getdoc(documented) or "").strip().partition("\n\n")[0]
    return " ".join(text.split())


def _package(package: ModuleType | None, inner: list[ModuleType]) -> Iterator[str]:
    if package is not None:
        yield from (":orphan:", "")
    title = "Data sheets of the cores" if package is None else f"cores.{short(package)}"
    yield from heading(title, "=")
    if package is None:
        yield "A page for each module of ``cores/``, made from its docstrings: ports, parameters,"
        yield "latency, throughput, back-pressure, reset and bad input of each component, then its"
        yield "proofs and figures."
    else:
        yield f".. automodule:: {package.__name__}"
        yield "   :no-members:"
    yield ""
    table = []
    for module in inner:
        name = f":doc:`{short(module).rpartition('.')[2]} <{page(module)}>`"
        found = ", ".join(map(literal, components(module)))
        table.append([name, found, first_line(module)])
    yield from list_table(["module", "components", "what"], table)


def sheets() -> dict[str, str]:
    """Return the pages of the data sheets by name, with suffix."""
    proofs = Ledger(ROOT / "formal" / "ledger").rows
    found, registers = modules(), register_pages()

    def inside(package: str) -> list[ModuleType]:
        return [module for module in found if module.__name__.rpartition(".")[0] == package]

    pages = {"reference/cores/index.rst": _package(None, inside(PREFIX.removesuffix(".")))}
    for module in found:
        if is_package(module):
            lines = _package(module, inside(module.__name__))
        else:
            lines = _sheet(module, proofs, registers)
        pages[f"{page(module)[1:]}.rst"] = lines
    return {name: "\n".join(lines) + "\n" for name, lines in pages.items()}
