"""Termination by a signal: clean-up runs, exit code 128 + signal, no process is left behind."""

import signal
import subprocess
import sys
import threading

import pytest
from trebuchet.models.ending import Terminated, catch_termination, start_group, stop_group

PROGRAM = """
import sys, time
from trebuchet.models.ending import catch_termination
with catch_termination():
    try:
        print("ready", flush=True)
        time.sleep(600)
    finally:
        print("cleaning", flush=True)
        sys.stdin.readline()
        print("clean", flush=True)
"""


@pytest.fixture(autouse=True)
def heeds_hangups():
    """As in a shell; whoever started the tests with `nohup` has SIGHUP ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_runs_the_clean_up(number):
    """Once: what arrives during the clean-up does not interrupt it."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "cleaning\n"
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        assert process.communicate("\n", timeout=60) == ("clean\n", None)
        assert process.returncode == 128 + number


def test_handlers_are_restored():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    with pytest.raises(Terminated) as raised, catch_termination():
        signal.raise_signal(signal.SIGHUP)
    assert raised.value.code == 128 + signal.SIGHUP
    assert raised.value.signal is signal.SIGHUP
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with catch_termination():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_may_enter():
    entered = []

    def enter():
        with catch_termination():
            entered.append(True)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [True]


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_a_group_is_stopped(trap):
    """With the processes that it started, and if it ignores SIGTERM."""
    script = f"{trap}sleep 600 & echo ready; wait; sleep 600"
    process = subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline() == "ready\n"
    stop_group(process, grace=0.2 if trap else 10)
    assert process.returncode in (-signal.SIGTERM, -signal.SIGKILL)
    assert process.stdout.read() == ""  # returns when the last process that holds it has ended
    stop_group(process)  # one that has ended is left alone
    process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_a_process_is_started_leaves_none_behind(monkeypatch, number):
    """It comes when the process runs, and nobody has it yet."""
    started, start = [], subprocess.Popen

    def interrupted(*args, **options):
        started.append(start(*args, **options))
        signal.raise_signal(number)
        return started[0]

    handlers = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises((Terminated, KeyboardInterrupt)), catch_termination():
        with start_group(["sleep", "1000"]):
            pytest.fail("the signal is lost")
    assert started[0].poll() is not None
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)] == handlers
