"""The bench command: what it measures, what it takes from the ledger, what it prints."""

import dataclasses
import json
import subprocess
import sys

import pytest
import typer
from trebuchet.bench import cli, registry, runner
from trebuchet.bench.cli import bench
from trebuchet.bench.job import Job
from trebuchet.bench.needs import Unmeasurable
from trebuchet.bench.registry import Budget, Group
from trebuchet.boards import BUILT
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.ledger import Ledger


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A gating group `t` of two figures whose input is a text; counts its measurements."""
    budgets = tmp_path / "budgets.json"
    entry = {"budget": 10, "unit": "cycles", "better": "lower"}
    budgets.write_text(json.dumps({"t.one": entry, "t.two": entry, "other.x": entry}))
    group = Group("t", "trebuchet.bench.job:job", "", ("t.one", "t.two"))
    lab = Lab(group, Ledger(tmp_path / "ledger"))
    page = tmp_path / "resources.md"
    page.touch()
    monkeypatch.setattr(cli, "PAGE", page)
    monkeypatch.setattr(registry, "BUDGETS", budgets)
    monkeypatch.setattr(runner, "LEDGER", lab.ledger.folder)
    monkeypatch.setattr(runner, "BUILD", tmp_path / "figures")
    monkeypatch.setattr(runner, "GROUPS", {"t": group})
    monkeypatch.setattr(runner, "_sources_state", lambda: lab.sources)
    monkeypatch.setattr("trebuchet.bench.group.importlib.import_module", lambda name: lab)
    return lab


class Lab:
    def __init__(self, group, ledger):
        self.group, self.ledger = group, ledger
        self.text = self.sources = "1"
        self.values = {"t.one": 3, "t.two": 7}
        self.runs = self.jobs = 0

    def job(self):
        self.jobs += 1
        return Job((self.text,), self.measure)

    def measure(self):
        self.runs += 1
        print("noise from Python")
        subprocess.run(["echo", "noise from a tool"], check=True)
        return self.values

    def change(self, text):
        """Change what the tools read, and so the sources."""
        self.text = self.sources = text


def test_measures_what_is_missing_and_keeps_it(lab):
    row = runner.figures([lab.group], record=True)["t.one"]
    assert row == {
        "kind": "gating",
        "value": 3,
        "was": 3,
        "unit": "cycles",
        "budget": 10,
        "kept": True,
        "inputs": runner.key_of(lab.group),
        **{name: Ledger(lab.ledger.folder).rows["t.one"][name] for name in ("date", "commit")},
    }
    assert runner.figures([lab.group], record=True)["t.one"] == row
    assert lab.runs == 1
    assert runner.gating(lab.group, Ledger(lab.ledger.folder)).source == "ledger"


def test_what_this_machine_measured_is_used_again(lab):
    """As after a test run, which leaves the ledger alone."""
    assert runner.gating(lab.group, lab.ledger).source == "measured"
    assert runner.gating(lab.group, lab.ledger).source == "kept"
    lab.change("2")
    assert runner.gating(lab.group, lab.ledger).source == "measured"
    lab.change("1")
    assert runner.gating(lab.group, lab.ledger).source == "kept"
    assert Ledger(lab.ledger.folder).rows == {}
    # The command writes what was kept into the ledger, and measures nothing.
    runner.figures([lab.group], record=True)
    assert lab.runs == 2
    assert Ledger(lab.ledger.folder).rows["t.one"]["value"] == 3


def test_keys_are_made_anew_only_when_sources_changed(lab):
    runner.gating(lab.group, lab.ledger)
    jobs = lab.jobs
    runner.gating(lab.group, lab.ledger)
    assert lab.jobs == jobs
    lab.sources = "something else"  # that no tool reads
    assert runner.gating(lab.group, lab.ledger).source == "kept"
    assert lab.jobs == jobs + 1


@pytest.mark.parametrize("broken", ["", "[]", '{"t.one": 3}'])
def test_a_broken_file_is_no_result(lab, broken):
    runner.gating(lab.group, lab.ledger)
    (kept,) = runner.BUILD.glob("t-*.json")
    kept.write_text(broken)
    (runner.BUILD / "keys" / "t.json").write_text(broken)
    assert runner.gating(lab.group, lab.ledger).source == "measured"


def test_without_record_the_ledger_stays_as_it_is(lab):
    bench("t")
    assert Ledger(lab.ledger.folder).rows == {}
    bench("t", record=True)
    assert (lab.runs, set(Ledger(lab.ledger.folder).rows)) == (1, {"t.one", "t.two"})


def test_changed_inputs_and_fresh_measure_again(lab):
    runner.figures([lab.group], record=True)
    lab.change("2")
    lab.values["t.one"] = 4
    assert runner.figures([lab.group], record=True)["t.one"]["value"] == 4
    lab.values["t.one"] = 5
    assert runner.figures([lab.group], record=True)["t.one"]["value"] == 4
    assert runner.figures([lab.group], fresh=True, record=True)["t.one"]["value"] == 5
    assert lab.runs == 3


def test_json_is_all_that_comes_on_stdout(lab, capfd):
    bench("t", as_json=True)
    out, err = capfd.readouterr()
    assert {name: row["value"] for name, row in json.loads(out).items()} == lab.values
    assert "noise from Python" in err
    assert "noise from a tool" in err


@pytest.mark.parametrize(
    ("group", "name", "message"),
    [
        ("t", "t.three", r"bench/ledger/t\.json: row 't\.three' is of no figure"),
        ("u", "t.one", r"bench/ledger/u\.json: row 't\.one' belongs into t\.json"),
    ],
)
def test_rows_of_unknown_figures_are_refused(lab, group, name, message):
    lab.ledger.record(group, name, "1", value=1)
    with pytest.raises(TrebuchetError, match=message):
        bench("t", record=True)


def test_table_says_which_budgets_are_kept(lab, capfd):
    lab.values["t.two"] = 12
    with pytest.raises(typer.Exit) as stopped:
        bench("t", record=True)
    assert stopped.value.exit_code == 1
    out, err = capfd.readouterr()
    lines = [line.split() for line in out.splitlines()]
    assert ["t.one", "3", "at", "most", "10", "cycles", "kept"] in [l[:7] for l in lines]
    assert ["t.two", "12", "at", "most", "10", "cycles", "missed"] in [l[:7] for l in lines]
    assert "t.two must be at most 10 cycles, not 12; not recorded" in err


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_table_holds_the_names_at_any_width(lab, capfd, monkeypatch, columns):
    """Names are folded in a narrow terminal, and dates left out; no character is lost."""
    monkeypatch.setenv("COLUMNS", str(columns))
    bench("t", record=True)
    out, _ = capfd.readouterr()
    lines = out.splitlines()
    assert max(map(len, lines)) <= columns
    assert "\N{HORIZONTAL ELLIPSIS}" not in out
    first = "".join(line.split("  ")[0].strip() for line in lines)
    assert "t.one" in first
    assert "t.two" in first
    assert all(word in out for word in ("kept", "cycles"))
    assert ("measured" in lines[0]) == (columns >= 60)


def test_a_missed_budget_is_not_recorded(lab, capfd):
    bench("t", record=True)
    lab.values["t.two"] = 12
    with pytest.raises(typer.Exit):
        bench("t", fresh=True, record=True, as_json=True)
    out, _ = capfd.readouterr()
    rows = json.loads(out[out.index("{") :])
    assert {name: row["kept"] for name, row in rows.items()} == {"t.one": True, "t.two": False}
    assert Ledger(lab.ledger.folder).rows["t.two"]["value"] == 7
    bench("t", fresh=True, accept=True)
    assert Ledger(lab.ledger.folder).rows["t.two"]["value"] == 12
    # What is pending has no budget to keep yet.
    entry = json.loads(registry.BUDGETS.read_text())
    entry["t.two"]["pending"] = "later"
    registry.BUDGETS.write_text(json.dumps(entry))
    lab.values["t.two"] = 99
    bench("t", fresh=True, record=True)
    assert Ledger(lab.ledger.folder).rows["t.two"]["value"] == 99


def test_small_losses_add_up(lab):
    """Each is measured from the best value since one was accepted."""
    area = {"budget": 10_000, "unit": "LUT4", "better": "lower"}
    registry.BUDGETS.write_text(json.dumps({"t.one": area, "t.two": area}))
    lab.values = {"t.one": 1000, "t.two": 1000}
    bench("t", record=True)
    lab.values["t.one"] = 1020
    bench("t", fresh=True, record=True)
    lab.values["t.one"] = 1040
    with pytest.raises(typer.Exit):
        bench("t", fresh=True, record=True)
    assert Ledger(lab.ledger.folder).rows["t.one"]["value"] == 1020
    bench("t", fresh=True, accept=True)
    lab.values["t.one"] = 1070
    bench("t", fresh=True, record=True)
    assert Ledger(lab.ledger.folder).rows["t.one"]["value"] == 1070
    lab.values["t.one"] = 900
    bench("t", fresh=True, record=True)
    lab.values["t.one"] = 928
    with pytest.raises(typer.Exit):
        bench("t", fresh=True, record=True)


def test_a_measurement_must_yield_its_figures(lab):
    del lab.values["t.two"]
    with pytest.raises(RuntimeError, match=r"must measure \['t.one', 't.two'\], not \['t.one'\]"):
        runner.figures([lab.group], record=True)


def test_what_cannot_be_measured_here_is_left_out(lab, monkeypatch, capfd):
    def job():
        raise Unmeasurable("get the records")

    monkeypatch.setattr(lab, "job", job)
    with pytest.raises(Unmeasurable, match="get the records"):
        runner.figures([lab.group])
    other = dataclasses.replace(lab.group, name="u")
    assert runner.figures([lab.group, other]) == {}
    assert "t is left out: get the records" in capfd.readouterr().err


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


def test_a_loss_is_not_recorded(lab, capfd):
    cycles = {"budget": 10, "unit": "cycles", "better": "lower"}
    area = {"budget": 10_000, "unit": "LUT4", "better": "lower"}
    registry.BUDGETS.write_text(json.dumps({"t.one": area, "t.two": cycles}))
    lab.values = {"t.one": 1000, "t.two": 5}
    bench("t", record=True)
    lab.values = {"t.one": 1031, "t.two": 9}
    with pytest.raises(typer.Exit) as stopped:
        bench("t", fresh=True, record=True)
    assert stopped.value.exit_code == 1
    errors = capfd.readouterr().err
    assert "t.one was 1,000 and is 1,031 LUT4: 3.1% worse; not recorded" in errors
    assert "t.two was" not in errors
    assert Ledger(lab.ledger.folder).rows["t.one"]["value"] == 1000
    lab.values["t.one"] = 1030
    bench("t", fresh=True, record=True)
    assert Ledger(lab.ledger.folder).rows["t.one"]["value"] == 1030
    lab.values["t.one"] = 2000
    bench("t", fresh=True, accept=True)
    assert Ledger(lab.ledger.folder).rows["t.one"]["value"] == 2000


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ('{"a": {}, "a": {}}', "'a' is there 2 times"),
        ('{"a": {"budget": 1}}', "missing 2 required positional arguments: 'unit' and 'better'"),
        ("[]", "'list' object has no attribute 'items'"),
    ],
)
def test_bad_budgets_are_one_line(tmp_path, text, fault):
    path = tmp_path / "budgets.json"
    path.write_text(text)
    with pytest.raises(TrebuchetError) as refused:
        registry.load_budgets(path)
    assert str(refused.value).startswith("bench/budgets.json: ")
    assert str(refused.value).endswith(f"{fault}; restore it with git")


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


def test_command_shows_dated_rows_with_commit_date_and_seeds():
    """End to end: nothing is measured, stdout is JSON."""
    command = [sys.executable, "-m", "trebuchet.host.cli", "bench", "board_versa_ecp5", "--json"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert set(rows) == set(registry.GROUPS["board_versa_ecp5"].figures)
    for row in rows.values():
        assert row["kind"] == "dated"
        assert set(row) >= {
            "median",
            "minimum",
            "seeds",
            "commit",
            "date",
            "age",
            "tools",
            "inputs",
        }


def test_a_requirement_beside_the_budget():
    area = Budget(900, "LUT4", "lower", required=500, missed="two lanes")
    assert area.kept_by(880)
    assert not area.kept_by(901)
    assert area.requirement(880) == {"required": 500, "reached": False, "missed": "two lanes"}
    assert area.requirement(500)["reached"]
    assert Budget(900, "LUT4", "lower").requirement(1000) == {}
    share = Budget(0.8, "share", "higher", required=0.9, missed="idle sessions")
    assert not share.requirement(0.85)["reached"]
    assert share.requirement(0.9)["reached"]


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"required": 500}, "both, or neither"),
        ({"missed": "why"}, "both, or neither"),
        ({"required": 901, "missed": "why"}, "must be stricter than the budget, not 901"),
    ],
)
def test_requirements_that_say_nothing(entry, fault):
    with pytest.raises(ValueError, match=fault):
        Budget(900, "LUT4", "lower", **entry)
