"""The result of one proof for `make test`: of the ledger, of this machine, or made now; once."""

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Cover
from prove_lib import NO_MUTANT, Counter, proof_of, says
from trebuchet.formal.kit import runner
from trebuchet.formal.kit.engines import Slots, Stopped
from trebuchet.models.ledger import Ledger
from trebuchet.models.lock import FileLock


@pytest.fixture
def proof():
    return proof_of(Counter(says(lambda c: Assert(c <= 2), lambda c: Cover(c == 2))))


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "BUILD", tmp_path / "build")
    monkeypatch.setattr(runner, "LEDGER", tmp_path / "ledger")
    return Ledger(runner.LEDGER)


def _record(ledger, tasks, **values):
    for task in tasks:
        row = {"status": task.expected, "seconds": 3.0, "solver": "z3", "asserts": 1, **values}
        ledger.record("cores", task.name, runner.input_hash(task), **row)


@pytest.fixture
def refuse(monkeypatch):
    """Nothing may be run."""

    def run(tasks, **arguments):
        assert list(tasks) == []
        return []

    monkeypatch.setattr(runner, "run_tasks", run)


def test_a_row_of_the_ledger_is_enough(proof, ledger, refuse):
    _record(ledger, runner.tasks_of(proof))
    results = runner.check_current(proof)
    assert [result.task.name for result in results] == ["test", "test.cover"]
    for result in results:
        assert (result.status, result.cached, result.seconds) == ("proved", True, 3.0)
        assert result.good
        assert result.counts == {"assert": 1, "assume": 0, "cover": 0}


def test_what_is_stale_is_proved(proof, ledger):
    """Once: then the result of this machine is enough."""
    _record(ledger, runner.tasks_of(replace(proof, depth=9, cover_depth=9)))
    results = runner.check_current(proof, longest=100)
    assert [(result.status, result.cached) for result in results] == [("proved", False)] * 2
    results = runner.check_current(proof, longest=0)
    assert [(result.status, result.cached) for result in results] == [("proved", True)] * 2


@pytest.mark.parametrize("status", ["failed", "unknown", None])
def test_a_row_that_is_not_good_is_no_result(proof, ledger, status):
    _record(ledger, runner.tasks_of(proof), status=status)
    assert [result.status for result in runner.check_current(proof)] == ["proved", "proved"]


def test_what_takes_long_is_deferred(proof, ledger, refuse):
    """By the seconds that the row stores, though it is stale."""
    _record(ledger, runner.tasks_of(replace(proof, depth=9, cover_depth=9)), seconds=121.0)
    results = runner.check_current(proof, longest=120)
    assert [(result.status, result.seconds) for result in results] == [("deferred", 121.0)] * 2
    assert not any(result.good or result.cached for result in results)
    assert runner.expected_seconds(results[0].task) == 121.0


def test_a_new_proof_is_not_deferred(proof, ledger):
    assert runner.expected_seconds(runner.tasks_of(proof)[0]) is None
    assert [result.status for result in runner.check_current(proof, longest=0)] == ["proved"] * 2


def test_mutants_are_checked_alike(proof, ledger, refuse):
    proof = replace(proof, mutants=(NO_MUTANT[0], replace(NO_MUTANT[0], name="long")))
    short, long = runner.tasks_of(proof, mutants=True)
    _record(ledger, [short])
    _record(ledger, [replace(long, depth=99)], seconds=11.0)
    results = runner.check_current(proof, mutants=True, longest=10)
    assert [result.status for result in results] == ["caught", "deferred"]


def test_a_failure_is_a_result(ledger):
    proof = proof_of(Counter(says(lambda c: Assert(c < 2), lambda c: Cover(c == 2))))
    results = runner.check_current(proof)
    assert [(result.status, result.good) for result in results] == [
        ("failed", False),
        ("proved", True),
    ]


PROGRAM = """
import sys
from pathlib import Path
from amaranth.hdl import Assert, Cover
from prove_lib import Counter, proof_of, says
from trebuchet.formal.kit import runner
runner.BUILD, runner.LEDGER = Path(sys.argv[1]), Path(sys.argv[1]) / "none"
proof = proof_of(Counter(says(lambda c: Assert(c <= 2), lambda c: Cover(c == 2))))
print([result.cached for result in runner.check_current(proof)])
"""


def test_of_two_processes_one_works(tmp_path):
    command = [sys.executable, "-c", PROGRAM, tmp_path]
    both = [
        subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    cached = [process.communicate(timeout=600)[0].strip("[]\n").split(", ") for process in both]
    for one, other in zip(*cached, strict=True):
        assert {one, other} == {"True", "False"}


def test_what_another_process_runs_is_waited_for(proof, ledger, monkeypatch):
    """With its result in place, nothing is run."""
    task = runner.tasks_of(proof)[0]
    (result,) = runner.run_tasks([task])
    saved = result.folder.parent / "result.json"
    text, waiting = saved.read_text(), threading.Event()
    saved.unlink()
    lock = FileLock(saved.with_name("lock"))
    assert lock.try_enter()
    monkeypatch.setattr(runner, "solve", None)
    monkeypatch.setattr(runner.time, "sleep", lambda seconds: waiting.set())
    found = []
    thread = threading.Thread(target=lambda: found.extend(runner.run_tasks([task])))
    thread.start()
    assert waiting.wait(60)
    assert found == []
    saved.write_text(text)
    lock.release()
    thread.join()
    assert [(result.status, result.cached) for result in found] == [("proved", True)]


def test_closed_slots_end_the_wait(tmp_path):
    lock, slots = FileLock(tmp_path / "lock"), Slots(1)
    assert lock.try_enter()
    slots.close()
    with pytest.raises(Stopped), runner._alone(tmp_path, slots):
        pass
    lock.release()
