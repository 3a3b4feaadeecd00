"""The bench command: what it measures, what it takes from the ledger, what it prints."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
import typer
from trebuchet.bench import registry, runner
from trebuchet.bench.cli import bench
from trebuchet.bench.registry import Budget, Group
from trebuchet.boards import BUILT
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.ledger import ROOT, Ledger


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A group `t` of two figures whose inputs are one file; counts its measurements."""
    budgets = tmp_path / "budgets.json"
    entry = {"budget": 10, "unit": "cycles", "better": "lower"}
    budgets.write_text(json.dumps({"t.one": entry, "t.two": entry, "other.x": entry}))
    subject = ROOT / "build" / "pytest" / f"subject-{os.getpid()}.txt"
    subject.write_text("1")
    group = Group(
        "t", "somewhere:measure", (str(subject.relative_to(ROOT)),), "", ("t.one", "t.two")
    )
    lab = Lab(subject, group, Ledger(tmp_path / "ledger.json"))
    monkeypatch.setattr(registry, "BUDGETS", budgets)
    monkeypatch.setattr(runner, "LEDGER", lab.ledger.path)
    monkeypatch.setattr(runner, "GROUPS", {"t": group})
    monkeypatch.setattr(registry.importlib, "import_module", lambda name: lab)
    yield lab
    subject.unlink()


class Lab:
    def __init__(self, subject, group, ledger):
        self.subject, self.group, self.ledger = subject, group, ledger
        self.values = {"t.one": 3, "t.two": 7}
        self.runs = 0

    def measure(self):
        self.runs += 1
        print("noise from Python")
        subprocess.run(["echo", "noise from a tool"], check=True)
        return self.values


def test_measures_what_is_missing_and_keeps_it(lab):
    assert runner.stale([lab.group], lab.ledger) == ["t.one", "t.two"]
    inputs = lab.group.digest()
    expected = {"value": 3, "was": 3, "unit": "cycles", "budget": 10, "kept": True}
    expected["inputs"] = inputs
    assert runner.figures([lab.group])["t.one"] == expected
    assert runner.figures([lab.group])["t.one"] == expected
    assert lab.runs == 1
    assert runner.stale([lab.group], Ledger(lab.ledger.path)) == []


def test_changed_inputs_and_fresh_measure_again(lab):
    runner.figures([lab.group])
    lab.subject.write_text("2")
    lab.values["t.one"] = 4
    assert runner.stale([lab.group], Ledger(lab.ledger.path)) == ["t.one", "t.two"]
    assert runner.figures([lab.group])["t.one"]["value"] == 4
    lab.values["t.one"] = 5
    assert runner.figures([lab.group])["t.one"]["value"] == 4
    assert runner.figures([lab.group], fresh=True)["t.one"]["value"] == 5
    assert lab.runs == 3


def test_json_is_all_that_comes_on_stdout(lab, capfd):
    bench("t", as_json=True)
    out, err = capfd.readouterr()
    assert {name: row["value"] for name, row in json.loads(out).items()} == lab.values
    assert "noise from Python" in err
    assert "noise from a tool" in err


def test_table_says_which_budgets_are_kept(lab, capfd):
    lab.values["t.two"] = 12
    with pytest.raises(typer.Exit) as stopped:
        bench("t")
    assert stopped.value.exit_code == 1
    out, err = capfd.readouterr()
    lines = [line.split() for line in out.splitlines()]
    assert ["t.one", "3", "at", "most", "10", "cycles", "kept"] in lines
    assert ["t.two", "12", "at", "most", "10", "cycles", "missed"] in lines
    assert "t.two must be at most 10 cycles, not 12; not recorded" in err


def test_a_missed_budget_is_not_recorded(lab, capfd):
    bench("t")
    lab.values["t.two"] = 12
    with pytest.raises(typer.Exit):
        bench("t", fresh=True, as_json=True)
    out, _ = capfd.readouterr()
    rows = json.loads(out[out.index("{") :])
    assert {name: row["kept"] for name, row in rows.items()} == {"t.one": True, "t.two": False}
    assert Ledger(lab.ledger.path).rows["t.two"]["value"] == 7
    bench("t", fresh=True, accept=True)
    assert Ledger(lab.ledger.path).rows["t.two"]["value"] == 12
    # What is pending has no budget to keep yet.
    entry = json.loads(registry.BUDGETS.read_text())
    entry["t.two"]["pending"] = "later"
    registry.BUDGETS.write_text(json.dumps(entry))
    lab.values["t.two"] = 99
    bench("t", fresh=True)
    assert Ledger(lab.ledger.path).rows["t.two"]["value"] == 99


def test_small_losses_add_up(lab):
    """Each is measured from the best value since one was accepted."""
    area = {"budget": 10_000, "unit": "LUT4", "better": "lower"}
    registry.BUDGETS.write_text(json.dumps({"t.one": area, "t.two": area}))
    lab.values = {"t.one": 1000, "t.two": 1000}
    bench("t")
    lab.values["t.one"] = 1020
    bench("t", fresh=True)
    lab.values["t.one"] = 1040
    with pytest.raises(typer.Exit):
        bench("t", fresh=True)
    assert Ledger(lab.ledger.path).rows["t.one"]["value"] == 1020
    bench("t", fresh=True, accept=True)
    lab.values["t.one"] = 1070
    bench("t", fresh=True)
    assert Ledger(lab.ledger.path).rows["t.one"]["value"] == 1070
    lab.values["t.one"] = 900
    bench("t", fresh=True)
    lab.values["t.one"] = 928
    with pytest.raises(typer.Exit):
        bench("t", fresh=True)


def test_what_makes_a_board_larger_or_slower_is_a_loss():
    budgets = registry.load_budgets()
    for name in BUILT:
        for figure in set(registry.BOARD_FIGURES) - {"build_minutes", "build_gib"}:
            assert budgets[f"board.{name}.{figure}"].allowed is not None


def test_a_measurement_must_yield_its_figures(lab):
    del lab.values["t.two"]
    with pytest.raises(RuntimeError, match=r"must measure \['t.one', 't.two'\], not \['t.one'\]"):
        runner.figures([lab.group])


def test_unknown_group():
    with pytest.raises(
        TrebuchetError, match="group must be one of ecg, .*toe, area, fmax, not 'gpu'"
    ):
        runner.select("gpu")


def test_collections_and_parts():
    toe = runner.select("toe")
    assert registry.GROUPS["tcp"] in toe
    assert all(figure.startswith("tcp.") for group in toe for figure in group.figures)
    assert registry.GROUPS["tcp_full"] in toe
    assert registry.GROUPS["tcp_tiny_clock"] in toe
    assert {f.partition(".")[0] for g in runner.select("roles") for f in g.figures} >= {"ecg"}
    boards = [registry.GROUPS[f"board_{name}"] for name in BUILT]
    assert runner.select("board") == boards
    assert runner.select("board_ulx3s") == [registry.GROUPS["board_ulx3s"]]


def test_what_is_pending_is_measured_only_by_its_name(lab):
    assert runner.select(None) == [lab.group]
    entry = {"budget": 10, "unit": "cycles", "better": "lower"}
    budgets = {"t.one": entry | {"pending": "later"}, "t.two": entry}
    registry.BUDGETS.write_text(json.dumps(budgets))
    assert runner.select(None) == [lab.group]
    budgets["t.two"] = entry | {"pending": "later"}
    registry.BUDGETS.write_text(json.dumps(budgets))
    assert runner.select(None) == []
    assert runner.select("t") == [lab.group]


@pytest.mark.parametrize(
    ("unit", "better", "least", "allowed", "too_much", "percent"),
    [("LUT4", "lower", 1000, 1030, 1031, "3.1%"), ("MHz", "higher", 1000, 920, 919, "8.1%")],
)
def test_a_loss_is_not_recorded(lab, capfd, unit, better, least, allowed, too_much, percent):
    entry = {"budget": 10, "unit": "cycles", "better": "lower"}
    bound = 0 if better == "higher" else 10_000
    changing = {"budget": bound, "unit": unit, "better": better}
    registry.BUDGETS.write_text(json.dumps({"t.one": changing, "t.two": entry}))
    lab.values = {"t.one": least, "t.two": 5}
    bench("t")
    lab.values = {"t.one": too_much, "t.two": 9}
    with pytest.raises(typer.Exit) as stopped:
        bench("t", fresh=True)
    assert stopped.value.exit_code == 1
    errors = capfd.readouterr().err
    assert f"t.one was 1,000 and is {too_much:,} {unit}: {percent} worse; not recorded" in errors
    assert "t.two was" not in errors
    assert Ledger(lab.ledger.path).rows["t.one"]["value"] == least
    lab.values["t.one"] = allowed
    bench("t", fresh=True)
    assert Ledger(lab.ledger.path).rows["t.one"]["value"] == allowed
    lab.values["t.one"] = least * 2 if better == "lower" else least // 2
    bench("t", fresh=True, accept=True)
    assert Ledger(lab.ledger.path).rows["t.one"]["value"] == lab.values["t.one"]


def test_loss_from_nothing():
    assert Budget(10, "DSP", "lower").loss(0, 0) == 0
    assert Budget(10, "DSP", "lower").loss(0, 1) == 1
    assert Budget(10, "cycles", "lower").allowed is None


def test_collections_by_unit(monkeypatch):
    budgets = registry.load_budgets()
    for figure in registry.GROUPS["bridge_ecp5"].figures:
        budgets[figure] = dataclasses.replace(budgets[figure], pending="later")
    monkeypatch.setattr(runner, "load_budgets", lambda: budgets)
    areas = runner.select("area")
    assert registry.GROUPS["router_area"] in areas
    assert registry.GROUPS["router_area_ecp5"] in areas
    assert registry.GROUPS["tcp_full_area"] in areas
    assert registry.GROUPS["bridge_ecp5"] not in areas  # pending
    assert registry.GROUPS["ecg_accuracy"] not in areas
    assert registry.GROUPS["matmul_clock"] in runner.select("fmax")
    assert registry.GROUPS["board_versa_ecp5"] in runner.select("fmax")


def test_budget_bounds():
    assert Budget(10, "cycles", "lower").kept_by(10)
    assert not Budget(10, "cycles", "lower").kept_by(10.1)
    assert Budget(60, "MHz", "higher").kept_by(60)
    assert not Budget(60, "MHz", "higher").kept_by(59.9)
    with pytest.raises(ValueError, match="better must be 'lower' or 'higher', not 'less'"):
        Budget(1, "", "less")


def test_command_prints_json_only_for_a_current_group():
    """End to end, where the ledger has all rows: nothing is measured, stdout is JSON."""
    ledger = Ledger(runner.LEDGER)
    quick = [g for g in registry.GROUPS.values() if not g.board]  # a board would be generated first
    groups = [g for g in quick if not runner.stale([g], ledger)]
    assert groups, "every row of bench/ledger.json is stale: run `make bench`"
    result = subprocess.run(
        [sys.executable, "-m", "trebuchet.host.cli", "bench", groups[0].name, "--json"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    for row in json.loads(result.stdout).values():
        assert sorted(row) == ["budget", "inputs", "kept", "unit", "value", "was"]
