"""Solvers, their race, and the traces of what fails."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Assert, Signal
from prove_lib import Factors, Sum, nobody_works_in, proof_of
from trebuchet.formal.kit import engines, runner, trace
from trebuchet.formal.kit.engines import SOLVERS, Slots, Stopped, race
from trebuchet.formal.kit.solve import script
from trebuchet.formal.kit.solvers import commands
from trebuchet.models.errors import TrebuchetError


def bounded(harness, **arguments):
    return proof_of(harness, **{"depth": 6, "method": "bmc", **arguments})


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    return lambda harness, task=0, **arguments: runner.run_tasks(
        [runner.tasks_of(bounded(harness))[task]], **arguments
    )[0]


def test_commands():
    lines = ["(a)\n", "\n", "(b (c\n", " d))\n", "(e)"]
    assert list(commands(lines)) == ["(a)", "(b (c\n d))", "(e)"]


def test_a_solver_says_nothing_but_answers_on_its_first_run(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "trebuchet.formal.kit.solvers", "boolector", "--smt2", "-i"],
        env={**os.environ, "YOWASP_CACHE_DIR": str(tmp_path)},
        input="(set-logic QF_BV)\n(check-sat)\n(exit)\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert list(tmp_path.iterdir())  # it was compiled here
    assert done.stdout.split() == ["sat"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver",
    [SOLVERS[0], *(pytest.param(name, marks=pytest.mark.nightly) for name in SOLVERS[1:])],
)
def test_every_solver_decides(solver, run):
    good, bad = run(Sum(), solvers=[solver]), run(Sum(limit=3), solvers=[solver])
    assert [(r.status, r.solver) for r in (good, bad)] == [("proved", solver), ("failed", solver)]
    assert run(Sum(), task=1, solvers=[solver]).status == "proved"


class EndsWhenLookedAt:
    """In the place of a solver: over from the second look on, and its verdict is good."""

    def __init__(self, solver, folder, files, tools):
        self.solver, self.folder, self.looks = solver, folder, 0

    @property
    def over(self):
        self.looks += 1
        return self.looks > 1

    def status(self):
        return "proved"

    def stop(self):
        self.stopped = True


def test_a_solver_that_ends_between_two_looks_is_heard(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "_Run", EndsWhenLookedAt)
    verdict = race(tmp_path, lambda solver: {}, tmp_path, Slots(1), ("yices",))
    assert verdict.status == "proved"


@pytest.mark.parametrize("favourite", ["", "bitwuzla", "a solver of the past"])
def test_who_decided_it_last_begins(tmp_path, monkeypatch, favourite):
    monkeypatch.setattr(engines, "_Run", EndsWhenLookedAt)
    verdict = race(tmp_path, lambda solver: {}, tmp_path, Slots(1), favourite=favourite)
    assert verdict.solver == (favourite if favourite in SOLVERS else SOLVERS[0])


@pytest.mark.slow
def test_the_first_to_decide_ends_the_race(tmp_path):
    """The other, and all it has started, is gone afterwards."""
    slots = Slots(1)

    def files(solver):
        harness = Factors() if solver == "z3" else Sum()
        task = runner.tasks_of(bounded(harness))[0]
        netlist = rtlil.convert(harness, name="top", platform="formal", ports=[])
        return {"task.sby": script(task.method, task.depth, solver), "design.il": netlist}

    verdict = race(tmp_path / "race", files, tmp_path / "tools", slots, ("z3", "yices"))
    assert (verdict.status, verdict.solver) == ("proved", "yices")
    nobody_works_in(tmp_path / "race" / "z3")
    assert slots.take_idle()
    # A late one joins if a slot is idle, and is what decides here.
    slots = Slots(2)
    order = {"yices": "z3", "bitwuzla": "yices"}
    late = race(
        tmp_path / "late", lambda s: files(order.get(s, s)), tmp_path / "tools", slots, (), 1
    )
    assert (late.status, late.solver) == ("proved", "bitwuzla")
    assert slots.take_idle()
    assert slots.take_idle()
    assert not slots.take_idle()


def test_closed_slots_stop_a_race(tmp_path, monkeypatch):
    """And one that waits for a slot; what runs is stopped."""
    runs = []

    class Endless(EndsWhenLookedAt):
        over = False

        def __init__(self, *arguments):
            super().__init__(*arguments)
            runs.append(self)
            slots.close()

    monkeypatch.setattr(engines, "_Run", Endless)
    slots = Slots(1)
    with pytest.raises(Stopped):
        race(tmp_path, lambda solver: {}, tmp_path, slots, ("yices",))
    assert [run.stopped for run in runs] == [True]
    with pytest.raises(Stopped):
        race(tmp_path, lambda solver: {}, tmp_path, slots, ("yices",))
    assert len(runs) == 1


def test_a_process_that_its_solver_has_not_noted_is_stopped(tmp_path, monkeypatch):
    """Even one that has moved to a process group of its own, under a parent that hangs."""
    script = tmp_path / "sby"
    script.write_text(
        f"#!{sys.executable}\nimport os, signal, subprocess, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '600'], preexec_fn=os.setpgrp)\n"
        "print('ready', flush=True)\ntime.sleep(600)\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr(engines, "_sby", lambda environment: str(script))
    monkeypatch.setattr(engines, "GRACE", 0.2)
    run = engines._Run("yices", tmp_path / "run", {}, tmp_path / "tools")
    while "ready" not in (tmp_path / "run" / "log.txt").read_text():
        assert not run.over
        time.sleep(0.05)
    run.stop()
    nobody_works_in(tmp_path / "run")


def test_unknown_engine_is_refused(capsys):
    from trebuchet.formal.cli import prove

    with pytest.raises(TrebuchetError, match="there is no engine 'abacus'; there are: yices, "):
        prove(["skid_buffer"], engine=["abacus"], jobs=1)


def test_statements_are_counted(run):
    row = run(Sum()).row()
    assert (row["asserts"], row["assumes"], row["covers"]) == (1, 1, 1)
    harness = Sum()
    harness.elaborate = lambda platform: _without_assumption()
    with pytest.raises(TrebuchetError, match="must have assume statements, but has none"):
        run(harness)


def _without_assumption():
    from amaranth.hdl import Module

    m = Module()
    count = Signal(3)
    m.d.sync += count.eq(count + 1)
    m.d.comb += Assert(count <= 7)
    return m


def test_a_failure_is_explained(run):
    """The statement in words of the source, each cycle's values, and all of it for a viewer."""
    from pylibfst import ffi, lib

    result = run(Sum(limit=3))
    ((place,),) = trace.broken((result.folder / "log.txt").read_text())
    assert Path(place.file).name == "prove_lib.py"
    text = trace.explain(result.folder)
    assert f"prove_lib.py:{place.line}: Assert(total < self.limit)\n" in text
    assert re.search(r"^total +0 +1 +2 +3$", text, re.MULTILINE)
    assert (result.folder / "trace.txt").read_text() == text
    found = trace.Trace.read(next(result.folder.glob("out/engine_0/trace*.vcd")))
    assert found.values["top", "total"] == ["0", "1", "10", "11"]
    reader = lib.fstReaderOpen(str(result.folder / "trace.fst").encode())
    assert reader != ffi.NULL
    assert lib.fstReaderGetVarCount(reader) == len(found.values)
    assert lib.fstReaderGetEndTime(reader) == 40
    lib.fstReaderClose(reader)


def test_a_cover_out_of_reach_is_named(run):
    result = run(Sum(wide=1, limit=2), task=1)
    assert result.status == "failed"
    assert "Cover(total == 2)" in trace.explain(result.folder)
