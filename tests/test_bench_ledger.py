"""The checked-in figures belong to the sources as they are, and keep their budgets."""

import json

import pytest
from trebuchet.bench.registry import GROUPS, LEDGER, load_budgets
from trebuchet.bench.runner import stale
from trebuchet.models.ledger import Ledger

BUDGETS = load_budgets()


@pytest.mark.parametrize("name", GROUPS)
def test_no_row_is_stale(name):
    pending = [b.pending for f, b in BUDGETS.items() if f in GROUPS[name].figures and b.pending]
    if pending:
        pytest.skip(pending[0])
    old = stale([GROUPS[name]], Ledger(LEDGER))
    assert old == [], f"measured on other sources, or never: run `trebuchet bench {name}`"


@pytest.mark.parametrize("figure", BUDGETS)
def test_figure_keeps_its_budget(figure):
    if BUDGETS[figure].pending:
        pytest.skip(BUDGETS[figure].pending)
    row = Ledger(LEDGER).rows.get(figure)
    assert row is not None, "never measured: run `trebuchet bench`"
    budget = BUDGETS[figure]
    assert budget.kept_by(row["value"]), (
        f"{figure} is {row['value']} {budget.unit}, {budget.better} is better than {budget.budget}"
    )


def test_every_figure_has_a_group_and_every_row_a_budget():
    figures = [figure for group in GROUPS.values() for figure in group.figures]
    assert sorted(figures) == sorted(BUDGETS)
    rows = json.loads(LEDGER.read_text()) if LEDGER.exists() else {}
    assert set(rows) <= set(BUDGETS)
