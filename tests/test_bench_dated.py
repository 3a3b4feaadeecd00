"""Dated figures: rows of several seeds, their faults, and measuring that goes on where it was."""

import dataclasses

import pytest
from trebuchet.bench import dated, registry, runner
from trebuchet.bench.job import Sampled
from trebuchet.bench.registry import BUILT, GROUPS, Budget, Group
from trebuchet.boards import load_board
from trebuchet.models.ledger import Ledger

MHZ = Budget(60, "MHz", "higher")
ROW = {"values": {"1": 64.8, "2": 70.2, "3": 66.0}, "median": 66.0, "minimum": 64.8, "commit": "a"}
VERSA = "board.versa_ecp5.sys_mhz"


@pytest.fixture(autouse=True)
def age(monkeypatch):
    """Commits of the gateware since any row was measured: none."""
    ages = {"a": 0, "old": registry.MAX_AGE, "too old": registry.MAX_AGE + 1, "gone": None}
    monkeypatch.setattr(dated, "gateware_commits_since", ages.__getitem__)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (ROW, None),
        ({**ROW, "commit": "old"}, None),
        ({**ROW, "commit": "gone"}, None),
        ({**ROW, "minimum": 60.0}, None),
        ({**ROW, "minimum": None, "values": {"1,2,3": 66.0}}, None),
        (None, f"{VERSA} was never measured; measure it with `make nightly`"),
        (
            {**ROW, "median": 59.9, "minimum": 60},
            f"{VERSA} must be at least 60 MHz, not 59.9 (seeds 1, 2, 3)",
        ),
        (
            {**ROW, "values": {"1": 59.0, "2": 61.0, "3": 62.0}, "minimum": 59.0},
            f"{VERSA}: seed 1 reached 59.0 MHz of the board's 60; lower sys_clk_hz, or make the "
            "design faster",
        ),
        (
            {**ROW, "commit": "too old"},
            f"{VERSA} was measured {registry.MAX_AGE + 1} commits of the gateware ago, "
            f"{registry.MAX_AGE} are allowed; measure it with `make nightly`",
        ),
    ],
)
def test_what_is_wrong_with_a_row(row, fault):
    assert load_board("versa_ecp5").sys_clk_hz == 60e6
    assert dated.faults(VERSA, row, MHZ) == ([] if fault is None else [fault])


def test_only_boards_have_a_clock_that_each_seed_must_reach():
    row = {**ROW, "minimum": 1.0, "values": {"1": 1.0, "2": 66.0, "3": 70.0}}
    assert dated.faults("ltl.ecp5_mhz", row, MHZ) == []


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A dated group `t` of two figures with three seeds; counts its measurements."""
    group = Group("t", "trebuchet.bench.job:job", "", ("t.mhz", "t.cells"), dated=True)
    lab = Lab(group, Ledger(tmp_path / "ledger"))
    monkeypatch.setattr(runner, "BUILD", tmp_path / "figures")
    monkeypatch.setattr(runner, "_sources_state", lambda: lab.text)
    monkeypatch.setattr("trebuchet.bench.group.importlib.import_module", lambda name: lab)
    monkeypatch.setattr(dated, "load_budgets", lambda: {"t.mhz": MHZ, "t.cells": MHZ})
    return lab


class Lab:
    def __init__(self, group, ledger):
        self.group, self.ledger, self.text, self.runs = group, ledger, "1", []

    def job(self):
        return Sampled((self.text,), self.measure, tools=("amaranth",))

    def measure(self, seed):
        self.runs.append(seed)
        return {"t.mhz": 60.0 + 10 / seed, "t.cells": 100}


def test_a_row_is_written_when_all_seeds_are_measured(lab):
    assert dated.due_seeds(lab.group, lab.ledger) == [1, 2, 3]
    for seed in (1, 3):
        dated.measure_seed(lab.group, seed)
        assert not dated.record_rows(lab.group, lab.ledger)
    # As after a run that was stopped: what is measured is not measured again.
    assert dated.due_seeds(lab.group, Ledger(lab.ledger.folder)) == [2]
    dated.measure_seed(lab.group, 2)
    assert dated.record_rows(lab.group, lab.ledger)
    row = Ledger(lab.ledger.folder).rows["t.mhz"]
    assert row["values"] == {"1": 70.0, "2": 65.0, "3": 60.0 + 10 / 3}
    assert (row["median"], row["minimum"]) == (65.0, 60.0 + 10 / 3)
    assert set(row) >= {"date", "commit", "seconds", "inputs"}
    assert row["tools"][0].startswith("amaranth 0.")
    assert dated.due_seeds(lab.group, Ledger(lab.ledger.folder)) == []
    assert lab.runs == [1, 3, 2]


def test_another_design_makes_all_seeds_due_and_leaves_the_row(lab):
    for seed in (1, 2, 3):
        dated.measure_seed(lab.group, seed)
    dated.record_rows(lab.group, lab.ledger)
    before = Ledger(lab.ledger.folder).rows
    lab.text = "2"
    assert dated.due_seeds(lab.group, lab.ledger) == [1, 2, 3]
    dated.measure_seed(lab.group, 1)
    assert not dated.record_rows(lab.group, lab.ledger)
    assert Ledger(lab.ledger.folder).rows == before


def test_a_row_of_fewer_seeds_is_due(lab):
    key = runner.key_of(lab.group)
    for figure in lab.group.figures:
        lab.ledger.record("t", figure, key, values={"1": 64.0}, median=64.0, minimum=64.0)
    assert dated.due_seeds(lab.group, lab.ledger) == [1, 2, 3]


def test_what_is_shown_of_a_row(lab):
    unknown = dated.known([lab.group], lab.ledger)["t.mhz"]
    assert (unknown["value"], unknown["kept"], unknown["age"]) == (None, False, None)
    lab.ledger.record("t", "t.mhz", "key", **ROW)
    shown = dated.known([lab.group], lab.ledger)["t.mhz"]
    assert (shown["value"], shown["kept"], shown["age"]) == (66.0, True, 0)
    assert (shown["seeds"], shown["minimum"]) == ([1, 2, 3], 64.8)


def test_a_measurement_must_yield_its_figures(lab):
    lab.group = dataclasses.replace(lab.group, figures=("t.mhz",))
    with pytest.raises(RuntimeError, match=r"must measure \['t.mhz'\], not \['t.cells', 't.mhz'\]"):
        dated.measure_seed(lab.group, 1)


def test_noisy_and_dear_figures_are_dated():
    for group in GROUPS.values():
        noisy = any(f.endswith(("mhz", "_85f", "minutes", "gib")) for f in group.figures)
        assert group.dated or not noisy, group.name
    assert all(GROUPS[f"board_{name}"].dated for name in BUILT)
