"""`trebuchet nightly`: what is due, in which order, and that a stopped run goes on."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from trebuchet.bench import nightly as module
from trebuchet.bench.nightly import Work, due, nightly
from trebuchet.bench.registry import GROUPS
from trebuchet.formal.kit import registry as proofs
from trebuchet.models.errors import TrebuchetError

FIRST = proofs.PROOFS[0].name


@pytest.fixture
def lab(monkeypatch):
    """Two groups with seeds that are due, one stale proof with its mutants."""
    rows = {"ltl.ecp5_mhz": {"date": "2026-11-20", "seconds": 60.0}}
    seeds = {"ltl_clock": [2, 3], "router_clock": [1]}
    monkeypatch.setattr(module, "load_ledger", lambda: SimpleNamespace(rows=rows))
    monkeypatch.setattr(module, "due_seeds", lambda group, ledger: seeds.get(group.name, []))
    monkeypatch.setattr(module, "stale", lambda proof, *_: proof.name == FIRST)
    proved = {FIRST: {"date": "2026-11-22"}, f"{FIRST}.cover": {"date": "2026-11-21"}}
    monkeypatch.setattr(module, "Ledger", lambda path: SimpleNamespace(rows=proved))
    monkeypatch.setattr(module, "expected_seconds", lambda task, ledger: 10.0)
    monkeypatch.setattr(module, "_write_pages", lambda: None)


def test_the_oldest_comes_first_and_tests_last(lab):
    work = due()
    names = [each.name for each in work]
    assert set(names[:2]) == {"router_clock:1", f"mutants:{FIRST}"}  # never measured
    assert names[2:] == ["ltl_clock:2", "ltl_clock:3", f"prove:{FIRST}", "tests"]
    assert [each.seconds for each in work if each.name.startswith("ltl")] == [60.0, 60.0]


def test_names_choose(lab):
    assert [each.name for each in due(["ltl"])] == ["ltl_clock:2", "ltl_clock:3"]
    assert [each.name for each in due(["tests", "prove:"])] == [f"prove:{FIRST}", "tests"]
    with pytest.raises(TrebuchetError, match="no nightly work whose name begins with 'ltx'; there"):
        due(["ltx"])


def test_the_estimate_comes_first_and_list_does_nothing(lab, capfd, monkeypatch):
    monkeypatch.setattr(module, "_run_all", lambda *_: pytest.fail("it ran"))
    nightly(["ltl"], show=True, jobs=2)
    out, err = capfd.readouterr()
    assert err.startswith("2 jobs, about 1 min with 2 at a time")
    assert out.splitlines() == [
        "ltl_clock:2  2026-11-20  1 min",
        "ltl_clock:3  2026-11-20  1 min",
    ]


@pytest.fixture
def work(monkeypatch, tmp_path):
    """Jobs that are small programs, by name."""
    programs = {}
    real = subprocess.Popen

    def popen(command, **options):
        program = programs[command[command.index("--job") + 1]]
        return real([sys.executable, "-c", program], **options)

    monkeypatch.setattr(module.subprocess, "Popen", popen)
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(module, "_write_pages", lambda: None)
    monkeypatch.setattr(module, "due", lambda only: [Work(name, "", 1.0) for name in programs])
    return programs


def test_failures_are_named_and_do_not_stop_the_rest(work, tmp_path, capfd):
    work |= {"a:1": "print('all is well')", "b:1": "raise SystemExit(3)", "c:1": ""}
    with pytest.raises(TrebuchetError, match=r"^1 of 3 jobs failed: b:1; see "):
        nightly(jobs=2)
    err = capfd.readouterr().err
    assert "b:1: FAILED" in err
    assert "[3/3] " in err
    assert (tmp_path / "logs" / "a-1.log").read_text() == "all is well\n"


def test_tests_run_alone_at_the_end(work, tmp_path):
    (tmp_path / "done").mkdir()
    touch = "import time, pathlib; time.sleep(0.3); pathlib.Path({!r}).touch()"
    work["tests"] = f"import os; raise SystemExit(len(os.listdir({str(tmp_path / 'done')!r})) != 2)"
    work |= {name: touch.format(str(tmp_path / "done" / name)) for name in ("a", "b")}
    nightly(jobs=3)


def test_a_run_that_is_ended_ends_its_jobs(work, tmp_path):
    started = tmp_path / "started"
    work["a"] = f"import time, pathlib; pathlib.Path({str(started)!r}).touch(); time.sleep(1000)"
    pid = os.fork()
    if pid == 0:
        try:
            nightly(jobs=1)
        except SystemExit as ended:
            os._exit(ended.code)
        os._exit(1)
    while not started.exists():
        time.sleep(0.05)
    (child,) = children(pid)
    os.kill(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGTERM
    assert not os.path.exists(f"/proc/{child}")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        found = [int(word) for word in file.read().split()]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found += [int(word) for word in file.read().split()]
    return set(found)


def test_one_job_of_each_kind(monkeypatch):
    done = []
    monkeypatch.setattr(module, "measure_seed", lambda group, seed: done.append((group.name, seed)))
    monkeypatch.setattr(module, "record_rows", lambda group, ledger: done.append(group.name))
    monkeypatch.setattr(module, "record", lambda results, known: done.append(len(results)))
    task = SimpleNamespace(name="x.mutant.y")
    good, bad = (SimpleNamespace(task=task, status=s, good=s == "caught") for s in ("caught", "no"))
    monkeypatch.setattr(
        module, "check_current", lambda proof, mutants: [good, *[bad] * (not mutants)]
    )
    nightly(job="ltl_clock:2")
    nightly(job=f"mutants:{FIRST}")
    assert done == [("ltl_clock", 2), "ltl_clock", 1]
    with pytest.raises(TrebuchetError, match="^x.mutant.y is no$"):
        nightly(job=f"prove:{FIRST}")
    codes = iter([0, 5, 1])
    monkeypatch.setattr(
        module.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=next(codes))
    )
    nightly(job="tests")
    nightly(job="tests")
    with pytest.raises(TrebuchetError, match="pytest ended with code 1"):
        nightly(job="tests")


def test_every_dated_group_can_be_named():
    assert all(GROUPS[name].dated for name in ("tcp_full", "ecg_training", "gowin"))
