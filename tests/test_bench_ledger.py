"""Gating figures are those of today's sources and keep their budgets; dated rows are good."""

import json

import pytest
from trebuchet.bench import resources
from trebuchet.bench.dated import faults
from trebuchet.bench.ecg_accuracy import require_records
from trebuchet.bench.registry import GROUPS, load_budgets
from trebuchet.bench.resources import PAGE, page
from trebuchet.bench.runner import gating, load_ledger
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.ledger import Ledger

BUDGETS = load_budgets()
GATING = [group for group in GROUPS.values() if not group.dated]
DATED = [figure for group in GROUPS.values() if group.dated for figure in group.figures]


@pytest.mark.slow
@pytest.mark.parametrize("group", GATING, ids=lambda group: group.name)
def test_gating_figures_keep_their_budgets(group):
    """Measured here unless the ledger or this machine has the result for what the tools read."""
    if group.name == "ecg_accuracy":
        try:
            require_records()
        except TrebuchetError as error:
            pytest.skip(str(error))
    outcome = gating(group, load_ledger())
    for figure, value in outcome.values.items():
        budget = BUDGETS[figure]
        if budget.pending:
            continue
        assert budget.kept_by(value), (
            f"{figure} is {value} {budget.unit} and must be {budget.bound} {budget.budget} "
            f"({outcome.source}, key {outcome.inputs}); CONTRIBUTING.md says what to do"
        )
        assert not (budget.missed and budget.reached_by(value)), (
            f"{figure} is {value}, which is what is required: make that its budget"
        )


@pytest.mark.parametrize("figure", DATED)
def test_dated_row_is_there_good_and_young(figure):
    if BUDGETS[figure].pending:
        pytest.skip(BUDGETS[figure].pending)
    assert faults(figure, load_ledger().rows.get(figure), BUDGETS[figure]) == []


def test_every_figure_has_a_group_and_a_budget():
    figures = [figure for group in GROUPS.values() for figure in group.figures]
    assert sorted(figures) == sorted(BUDGETS)
    for group in GROUPS.values():
        assert len({figure.partition(".")[0] for figure in group.figures}) == 1, group.name


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "run `trebuchet bench --record`: it writes the page"


def test_a_page_of_other_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "REFERENCES", tmp_path / "references.json")
    resources.REFERENCES.write_text(json.dumps({"x.cycles": [450, "a paper, 2"]}))
    budgets, ledger = tmp_path / "budgets.json", Ledger(tmp_path / "ledger")
    bound = {"budget": 1234.5, "unit": "cycles", "better": "lower"}
    waiting = {"budget": 0.5, "unit": "share", "better": "higher", "pending": "not built yet"}
    clock = {"budget": 60, "unit": "MHz", "better": "higher"}
    large = {"budget": 900, "unit": "LUT4", "better": "lower", "required": 500, "missed": "why"}
    entries = {"x.cycles": bound, "tcp.share": waiting, "x.mhz": clock, "x.lut4": large}
    budgets.write_text(json.dumps(entries))
    origin = {"date": "2026-11-26", "commit": "0123456789"}
    ledger.record("x", "x.cycles", "a", value=48.0, **origin)
    seeds = {"values": {"1": 64.8, "2": 70.2, "3": 66.0}, "median": 66.0, "minimum": 64.8}
    ledger.record("x", "x.mhz", "b", **seeds, **origin)
    text = page(budgets, ledger.folder)
    assert "| `x.cycles` | 48 | ≤ 1,234 cycles | 450, a paper, 2 | 2026-11-26 0123456789 |" in text
    assert "| `x.mhz` | 66 (64.8 the least, seeds 1, 2, 3) | ≥ 60 MHz |  | 2026-11-26" in text
    ledger.record("x", "x.lut4", "c", value=880, **origin)
    text = page(budgets, ledger.folder)
    assert "| `x.lut4` | 880 | ≤ 900 LUT4; **required: ≤ 500**, missed: why |" in text
    assert "| `tcp.share` | not built yet | ≥ 0.5 share |  |  |" in text
    assert text.index("## TCP engine") < text.index("## x")
    resources.REFERENCES.write_text(json.dumps({"y.cycles": [1, ""]}))
    with pytest.raises(ValueError, match=r"figures of budgets\.json, not \{'y\.cycles'\}"):
        page(budgets, ledger.folder)
