"""The checked-in figures belong to the sources as they are, and keep their budgets."""

import json

import pytest
from trebuchet.bench import resources
from trebuchet.bench.registry import GROUPS, LEDGER, load_budgets
from trebuchet.bench.resources import PAGE, page
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


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "run `trebuchet bench` for any group: it writes the page"


def test_a_page_of_other_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "REFERENCES", tmp_path / "references.json")
    resources.REFERENCES.write_text(json.dumps({"x.cycles": [450, "a paper, 2"]}))
    budgets, ledger = tmp_path / "budgets.json", tmp_path / "ledger.json"
    bound = {"budget": 1234.5, "unit": "cycles", "better": "lower"}
    waiting = {"budget": 0.5, "unit": "share", "better": "higher", "pending": "not built yet"}
    budgets.write_text(json.dumps({"x.cycles": bound, "tcp.share": waiting}))
    ledger.write_text(json.dumps({"x.cycles": {"value": 48.0, "inputs": "a"}}))
    text = page(budgets, ledger)
    assert "| `x.cycles` | 48 | ≤ 1,234 cycles | 450, a paper, 2 |" in text
    assert "| `tcp.share` | not built yet | ≥ 0.5 share |  |" in text
    assert text.index("## TCP engine") < text.index("## x")
    resources.REFERENCES.write_text(json.dumps({"y.cycles": [1, ""]}))
    with pytest.raises(ValueError, match=r"figures of budgets\.json, not \{'y\.cycles'\}"):
        page(budgets, ledger)
