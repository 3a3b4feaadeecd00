"""The limits of tests (tests/limits.py): what ends a test, and what does not."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import limits
import pytest

HERE = Path(__file__).parent
QUICK = {"cpu_limit": 1, "idle_limit": 1, "limits_grace": 20}

BUSY = """
def test_busy():
    while True:
        pass

def test_next():
    pass
"""
SLEEPER = """
import threading

def test_deadlock():
    threading.Event().wait()

def test_next():
    pass
"""
CHILD = """
import subprocess, sys

def test_child():
    subprocess.run([sys.executable, "-c", "while True: pass"])
"""


def run_pytest(folder, text, *arguments, **options):
    """Run pytest on ``text`` with short limits; returns the process and its output."""
    (folder / "test_it.py").write_text(text)
    (folder / "conftest.py").write_text('pytest_plugins = ["limits"]\n')
    settings = [
        word for key, value in {**QUICK, **options}.items() for word in ("-o", f"{key}={value}")
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder]
    done = subprocess.run(
        [*command, *settings, *arguments, folder],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, done.stdout + done.stderr


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_busy_loop_ends_with_its_processor_time(tmp_path, workers):
    done, text = run_pytest(tmp_path, BUSY, *workers, idle_limit=1000)
    assert done.returncode == 1, text
    assert "test_it.py::test_busy used more than 1 s of processor time (cpu_limit), during" in text
    assert "1 failed, 1 passed" in text
    assert re.search(r'test_it\.py", line [34] in test_busy', text)  # the stack


def test_the_mark_is_the_limit_of_a_test(tmp_path):
    marked = "import pytest\n@pytest.mark.cpu_limit(2)" + BUSY
    _, text = run_pytest(tmp_path, marked, idle_limit=1000)
    assert "test_busy used more than 2 s of processor time" in text


def test_children_count_and_are_killed(tmp_path):
    done, text = run_pytest(tmp_path, CHILD, idle_limit=1000)
    assert done.returncode == 1, text
    assert "test_child used more than 1 s of processor time" in text
    assert "-c while True: pass" in text  # in the list of what was killed


def test_processor_time_of_children_that_have_ended_counts():
    before = limits.cpu_seconds()
    code = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert limits.cpu_seconds() - before >= 0.4  # the kernel counts in ticks, and cuts them off


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_deadlock_is_ended(tmp_path, workers):
    done, text = run_pytest(tmp_path, SLEEPER, *workers, cpu_limit=1000)
    assert done.returncode == 1, text
    assert "test_it.py::test_deadlock has been idle for " in text
    assert " s: a deadlock (idle_limit), during call" in text
    assert "1 failed, 1 passed" in text


class Machine:
    """What ``/proc`` says, made up: seconds that pass by the number of looks."""

    def __init__(self, monkeypatch, idle, used):
        self.looks = 0
        self.idle, self.used = idle, used
        monkeypatch.setattr(limits, "_machine", self.machine)
        monkeypatch.setattr(limits, "cpu_seconds", lambda: self.used * self.looks)

    def machine(self):
        self.looks += 1
        return 2 * self.idle * self.looks, 2 * self.looks


class Item:
    nodeid = "it"
    stash = {}

    def __init__(self, **settings):
        self.settings = {**QUICK, "limits_grace": 0, **settings}
        self.config = self

    def getini(self, name):
        return str(self.settings[name])

    def get_closest_marker(self, name):
        return None


def watched(monkeypatch, idle, used, seconds=60, **settings):
    """Reasons for which a test is ended within ``seconds`` on such a machine."""
    Machine(monkeypatch, idle, used)
    ended = threading.Event()
    reasons = []
    monkeypatch.setattr(
        limits._Watch, "_end", lambda _, reason: (reasons.append(reason), ended.set())
    )
    watch = limits._Watch(Item(**settings))
    watch.start()
    ended.wait(seconds)
    watch.stop()
    return reasons


def test_a_starved_test_is_left_alone(monkeypatch):
    """It gets nothing of a machine that has nothing to give."""
    monkeypatch.setattr(limits, "ABANDONED", 1000)
    assert watched(monkeypatch, idle=0.0, used=0.0, seconds=1.5, idle_limit=0.3) == []


def test_a_test_without_processor_time_on_an_idle_machine_is_not(monkeypatch):
    assert watched(monkeypatch, idle=0.5, used=0.0, idle_limit=0.3)


def test_a_starved_test_is_ended_at_last(monkeypatch):
    assert watched(monkeypatch, idle=0.0, used=0.0, idle_limit=0.05)


def test_a_test_at_work_is_not_idle(monkeypatch):
    limits_of = {"idle_limit": 0.3, "cpu_limit": 1000}
    assert watched(monkeypatch, idle=0.5, used=0.1, seconds=1.5, **limits_of) == []


STUCK = """
import signal, threading

def test_stuck():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    threading.Event().wait()
"""


def test_a_test_that_does_not_end_ends_its_process(tmp_path):
    done, text = run_pytest(tmp_path, STUCK, limits_grace=0.5)
    assert done.returncode == limits._EXIT_CODE, text
    assert "limits: test_it.py::test_stuck has been idle for" in text
    assert "did not end within 0.5 s; the process exits" in text


def test_a_worker_that_exits_names_its_test(tmp_path):
    done, text = run_pytest(
        tmp_path, STUCK, "-n", "1", "--max-worker-restart", "0", limits_grace=0.5
    )
    assert done.returncode != 0
    assert "crashed while running" in text
    assert "test_stuck" in text


TEARDOWN = """
import pytest, time

@pytest.fixture
def resource():
    yield
    print("given back")

def test_busy(resource):
    while True:
        pass
"""


def test_fixtures_are_torn_down(tmp_path):
    _, text = run_pytest(tmp_path, TEARDOWN, idle_limit=1000)
    assert "given back" in text
    assert "1 failed" in text
