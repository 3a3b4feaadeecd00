"""The command `trebuchet prove`: what it prints and when, its options, and how it ends."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Cover
from prove_lib import Counter, Factors, nobody_works_in, proof_of, says, working_in
from trebuchet.formal import cli
from trebuchet.formal.kit import registry, runner
from trebuchet.formal.kit.report import Report
from trebuchet.host.cli import main
from trebuchet.models.errors import TrebuchetError

GOOD = proof_of(Counter(says(lambda c: Assert(c <= 2), lambda c: Cover(c == 2))), name="good")
BAD = proof_of(Counter(says(lambda c: Assert(c < 2), lambda c: Cover(c == 2))), name="bad")
SLOW = proof_of(Factors(), name="slow", method="bmc")


@pytest.fixture
def few(tmp_path, monkeypatch):
    """Three proofs are all that there are."""
    monkeypatch.setattr(registry, "PROOFS", (GOOD, BAD, SLOW))
    monkeypatch.setattr(runner, "BUILD", tmp_path / "build")
    monkeypatch.setattr(runner, "LEDGER", tmp_path / "ledger")
    monkeypatch.setattr(cli.page, "write", lambda proofs: None)


def _result(proof, status="proved", task=0, **arguments):
    task = runner.tasks_of(proof)[task]
    arguments = {"seconds": 1.5, "solver": "yices", "inputs": "0", "counts": {}, **arguments}
    return runner.Result(task, status, folder=Path(), **arguments)


def test_a_result_is_printed_when_it_is_there(capsys):
    """And so is the number of those to come; neither needs a terminal."""
    with Report(as_json=False) as report:
        report.expect(["good", "bad"])
        assert capsys.readouterr() == ("", "0 of 2 done, 0 not as expected\n")
        report.result(_result(GOOD))
        assert capsys.readouterr() == (
            "proved  good (1.5 s, yices)\n",
            "1 of 2 done, 0 not as expected\n",
        )
        report.result(_result(BAD, "failed", cached=True))
        assert capsys.readouterr() == (
            "failed  bad (cached)\n",
            "2 of 2 done, 1 not as expected\n",
        )


def test_progress_does_not_flood_a_file(capsys):
    with Report(as_json=True) as report:
        report.expect([f"{k}" for k in range(1000)])
        for _ in range(1000):
            report.result(_result(GOOD))
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 11


def test_failures_come_first_in_the_table(few, capsys):
    with pytest.raises(TrebuchetError, match=r"^bad is failed, must be proved$"):
        cli.prove(["good", "bad"])
    out, err = capsys.readouterr()
    lines = out.splitlines()
    table = next(k for k, line in enumerate(lines) if line.split()[:2] == ["proof", "method"])
    assert {line.split()[1] for line in lines[:table]} == {
        "good", "good.cover", "bad", "bad.cover"
    }  # fmt: skip
    assert [line.split()[0] for line in lines[table + 1 :]] == [
        "bad", "good", "good.cover", "bad.cover"
    ]  # fmt: skip
    assert "4 of 4 done, 1 not as expected" in err
    assert "Assert(c < 2)" in err  # it is explained


def test_the_first_failure_ends_the_run(few, capsys):
    """The slow one would take the whole day."""
    message = r"^bad is failed, must be proved; 3 tasks were not run$"
    with pytest.raises(TrebuchetError, match=message):
        cli.prove(["bad", "slow"], fail_fast=True, jobs=1)
    out, _ = capsys.readouterr()
    assert out.startswith("failed  bad (")


def test_a_time_limit_makes_what_takes_longer_unknown(few, capsys):
    with pytest.raises(TrebuchetError, match="^slow is unknown, must be proved"):
        cli.prove(["slow"], timeout=1)
    assert "unknown slow (" in capsys.readouterr().out


@pytest.mark.parametrize("timeout", ["0", "-1", "soon"])
def test_a_time_limit_must_be_a_number_of_seconds(timeout, capsys):
    with pytest.raises(SystemExit) as left:
        main(["prove", "--timeout", timeout])
    assert left.value.code == 2
    assert "--timeout" in capsys.readouterr().err


def test_results_are_recorded_on_demand(few):
    cli.prove(["good"])
    assert not runner.LEDGER.exists()
    cli.prove(["good"], timeout=1, record=True)
    assert not runner.LEDGER.exists()
    cli.prove(["good"], record=True)
    assert runner.stale(GOOD, runner.Ledger(runner.LEDGER)) is False


def test_json_output_is_nothing_but_json():
    command = [Path(sys.executable).parent / "trebuchet", "prove", "skid_buffer", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)
    assert [row["name"] for row in rows] == ["skid_buffer", "skid_buffer.cover"]
    for row in rows:
        assert set(row) >= {"name", "core", "method", "depth", "status", "seconds"}
        assert row["status"] == "proved"
    assert done.stderr.endswith("2 of 2 done, 0 not as expected\n")


def test_results_are_in_a_pipe_though_progress_is_on_a_terminal():
    """As in `trebuchet prove | tee log`."""
    command = [Path(sys.executable).parent / "trebuchet", "prove", "skid_buffer"]
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = _all_of(ours)
        lines = process.communicate()[0].splitlines()
    assert process.returncode == 0
    assert {line.split()[1] for line in lines[:2]} == {"skid_buffer", "skid_buffer.cover"}
    assert "\x1b" not in "".join(lines)
    assert b"of 2 done" in shown
    assert b"skid_buffer (" not in shown


def _all_of(terminal):
    """What is written to a terminal until its other end is closed."""
    text = b""
    with contextlib.suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as file:
        while part := file.read(1024):
            text += part
    return text


PROGRAM = """
import sys
from pathlib import Path
import test_prove_command as tests
from trebuchet.formal.kit import registry, runner
from trebuchet.host.cli import main
registry.PROOFS = (tests.SLOW,)
runner.BUILD, runner.LEDGER = Path(sys.argv[1]), Path(sys.argv[1]) / "none"
main(["prove", "slow", *sys.argv[2:]])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_solvers(tmp_path, number):
    """Exit code 128 + signal, and no process is left."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, tmp_path]
    process = subprocess.Popen(
        command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # SymbiYosys, yosys-smtbmc and the solver: it is at work.
    while len(working_in(tmp_path)) < 3:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=600)
    assert process.returncode == 128 + number
    nobody_works_in(tmp_path)
