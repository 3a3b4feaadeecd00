"""What follows a failing induction step: a bounded check from reset, as far as its bound."""

import re
from pathlib import Path

import pytest
from amaranth.hdl import Assert
from prove_lib import Counter, Sum, proof_of, says
from trebuchet.formal.kit import runner, solve, trace
from trebuchet.formal.kit.engines import Slots, Verdict


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "BUILD", tmp_path)

    def run(harness, **arguments):
        return runner.run_tasks(runner.tasks_of(proof_of(harness, **arguments))[:1])[0]

    return run


def test_a_bug_beyond_the_induction_is_found(run):
    """It shows in cycle 15; an induction with a depth of 2 fails from an unreachable state."""
    result = run(Sum(limit=15), depth=2)
    assert (result.status, result.searched) == ("failed", None)
    text = trace.explain(result.folder)
    assert "The induction's step" not in text
    assert re.search(r"^total +6 +7 +8 +9 +a +b +c +d +e +f$", text, re.MULTILINE)
    again = run(Sum(limit=15), depth=2)
    assert again.cached
    assert (again.status, again.folder) == (result.status, result.folder)


def test_what_is_true_but_not_inductive_stays_unknown(run, monkeypatch):
    """From the unreachable 5 it goes to 6. The result says how far there is no counterexample."""
    monkeypatch.setattr(solve, "SEARCH_DEPTH", 20)
    result = run(Counter(says(lambda c: Assert(c != 6))), depth=1)
    assert (result.status, result.searched) == ("unknown", 20)
    assert result.row()["searched"] == 20
    assert str(result) == (
        "test is unknown, must be proved (the induction step fails, but there is no counterexample "
        "within 20 cycles after reset)"
    )
    assert "The induction's step does not hold" in trace.explain(result.folder)
    assert not run(Counter(says(lambda c: Assert(c != 6))), depth=1).cached


def test_what_is_proved_or_decided_is_not_searched(run, monkeypatch):
    monkeypatch.setattr(solve, "SEARCH_DEPTH", None)
    assert run(Counter(says(lambda c: Assert(c <= 2)))).status == "proved"
    assert run(Counter(says(lambda c: Assert(c < 2)))).status == "failed"


class Races:
    """In the place of races: the first is undecided, the second gives ``second``."""

    def __init__(self, second, log=""):
        self.second, self.log, self.limits = second, log, []

    def __call__(self, folder, files, *arguments, **more):
        self.limits.append(int(re.search(r"timeout (\d+)", files("yices")["task.sby"])[1]))
        (folder / "yices").mkdir(parents=True)
        (folder / "yices" / "log.txt").write_text(self.log)
        return Verdict(["unknown", self.second][len(self.limits) - 1], "yices", folder / "yices")


def _solve(folder, monkeypatch, races, **arguments):
    monkeypatch.setattr(solve, "race", races)
    arguments = {"method": "induction", "depth": 3, "tools": Path(), "slots": Slots(1), **arguments}
    return solve.solve(folder, "", **arguments)


def test_a_search_out_of_time_says_how_far_it_came(tmp_path, monkeypatch):
    log = "".join(f"##   0:00:01  Checking assertions in step {step}..\n" for step in range(8))
    races = Races("unknown", log)
    found = _solve(tmp_path, monkeypatch, races)
    assert (found.status, found.searched) == ("unknown", 7)
    assert races.limits == [solve.TIME_LIMIT, solve.SEARCH_SECONDS]
    assert _solve(tmp_path / "2", monkeypatch, Races("unknown")).searched == 0


def test_a_search_takes_no_more_than_what_is_left_of_the_time(tmp_path, monkeypatch):
    races = Races("unknown")
    _solve(tmp_path, monkeypatch, races, limit=40)
    assert races.limits[0] == 40
    assert 1 <= races.limits[1] <= 40
    # Nothing is left; the clock of this test stands still until the first race takes it all.
    times = iter([0.0, 40.0])
    monkeypatch.setattr(solve.time, "monotonic", lambda: next(times))
    races = Races("unknown")
    assert _solve(tmp_path / "2", monkeypatch, races, limit=40).searched is None
    assert races.limits == [40]


@pytest.mark.parametrize("method", ["bmc", "cover"])
def test_only_an_induction_is_followed_by_a_search(tmp_path, monkeypatch, method):
    races = Races("failed")
    assert _solve(tmp_path, monkeypatch, races, method=method).status == "unknown"
    assert len(races.limits) == 1
