"""A pytest plugin: limits for tests that do not depend on how busy the machine is.

A test ends as failed when

1. it has used more than its limit of **processor time**: this process, its live descendants and
   those that have been waited for, from set-up to teardown. Default: the ini option ``cpu_limit``;
   for one test the mark ``@pytest.mark.cpu_limit(SECONDS)``. Simulators count, a compilation counts
   for the test that needs it first, and two processes at work count twice.
2. it is **deadlocked**: for ``idle_limit`` seconds the same processes have used less than a fifth
   of a processor although the machine had one to give. Seconds in which all processors are busy do
   not count, so a test that is starved, or waits for another worker's lock, is left alone; but
   after :data:`ABANDONED` times as many seconds it is ended all the same.

Then all descendants are killed, since the test may wait for one of them, and an exception is raised
in the main thread; the stacks of all threads and the list of descendants are in the report. If the
test has not ended ``limits_grace`` seconds later, this process prints the reason and exits:
pytest-xdist reports that as a crash of the worker, with the name of the test.

Registered in ``conftest.py``: ``pytest_plugins = ["limits"]``. Needs Linux's ``/proc``.
"""

import contextlib
import faulthandler
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

__all__ = ["ABANDONED", "cpu_seconds", "descendants"]

#: Times ``idle_limit`` after which a test without processor time is ended on a busy machine, too.
ABANDONED = 10

_TICK = os.sysconf("SC_CLK_TCK")
#: Share of a processor that a test at work uses at least, if it can have one.
_AT_WORK = 0.2
_LONGEST_PAUSE = 2.0
_EXIT_CODE = 70
_WATCH = pytest.StashKey["_Watch"]()


def _processes():
    """``{pid: (parent, processor seconds)}`` of all processes; the children waited for included."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            found[int(folder.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / _TICK)
    return found


def descendants(processes=None):
    """``{pid: processor seconds}`` of this process's children, their children, and so on."""
    processes = processes or _processes()
    inside, grown = {os.getpid()}, True
    while grown:
        new = {pid for pid, (parent, _) in processes.items() if parent in inside} - inside
        inside |= new
        grown = bool(new)
    return {pid: processes[pid][1] for pid in inside - {os.getpid()} if pid in processes}


def cpu_seconds():
    """Processor time of this process and all its descendants, ended or not."""
    return sum(os.times()[:4]) + sum(descendants().values())


def _machine():
    """Idle and total seconds of all processors since the machine's start."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    numbers = [int(field) / _TICK for field in fields[:8]]
    return numbers[3] + numbers[4], sum(numbers)


def _stacks():
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read().decode(errors="replace")


def _described(pid):
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        return f"{pid}: {words.decode(errors='replace')[:200]}"
    return f"{pid}: gone"


class _Watch:
    """The limits of one test, looked at by a thread of its own."""

    def __init__(self, item):
        config, mark = item.config, item.get_closest_marker("cpu_limit")
        self.item = item
        self.limit = float(mark.args[0] if mark else config.getini("cpu_limit"))
        self.idle_limit = float(config.getini("idle_limit"))
        self.grace = float(config.getini("limits_grace"))
        self.reason = self.phase = None
        self.raised = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="limits", daemon=True)

    def start(self):
        self._start = cpu_seconds()
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join()

    def _run(self):
        pause = min(_LONGEST_PAUSE, self.limit / 10, self.idle_limit / 10)
        now, used, (idle, total) = time.monotonic(), self._start, _machine()
        quiet = without = 0.0
        while not self._over.wait(pause):
            before = now, used, idle, total
            now, used, (idle, total) = time.monotonic(), cpu_seconds(), _machine()
            passed = now - before[0]
            share = (idle - before[2]) / max(total - before[3], 1 / _TICK)
            at_work = used - before[1] >= _AT_WORK * passed
            quiet = 0.0 if at_work else quiet + passed * share
            without = 0.0 if at_work else without + passed
            if used - self._start > self.limit:
                self._end(f"used more than {self.limit:g} s of processor time (cpu_limit)")
            elif quiet > self.idle_limit or without > ABANDONED * self.idle_limit:
                self._end(f"has been idle for {without:.0f} s: a deadlock (idle_limit)")
            else:
                continue
            return

    def _end(self, what):
        """Make the test fail; called in the watching thread."""
        children = descendants()
        self.details = "\n".join([_stacks(), "descendants, killed:", *map(_described, children)])
        self.reason = f"{self.item.nodeid} {what}"
        for pid in children:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        if not self._over.wait(self.grace):
            self._exit()

    def _exit(self):
        """The test does not end: end the process, and say why where a human sees it."""
        capture = self.item.config.pluginmanager.getplugin("capturemanager")
        if capture:
            capture.suspend_global_capture(in_=True)
        sys.__stderr__.write(
            f"\nlimits: {self.reason}, and did not end within {self.grace:g} s; "
            f"the process exits.\n{self.details}\n{_stacks()}\n"
        )
        sys.__stderr__.flush()
        os._exit(_EXIT_CODE)

    def raise_if_over(self):
        """Raise in the main thread, once, if a limit is over and the test's own code runs."""
        if self.reason and self.phase and not self.raised:
            self.raised = True
            self.item.add_report_section(self.phase, "limits", self.details)
            pytest.fail(f"{self.reason}, during {self.phase}")


def pytest_addoption(parser):
    parser.addini("cpu_limit", "seconds of processor time that a test may use", default="600")
    parser.addini("idle_limit", "seconds after which an idle test is deadlocked", default="300")
    parser.addini("limits_grace", "seconds that a test has for its end after that", default="120")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "cpu_limit(seconds): processor time that the test may use (tests/limits.py)"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    watch = item.stash[_WATCH] = _Watch(item)
    before = signal.signal(signal.SIGUSR1, lambda *_: watch.raise_if_over())
    watch.start()
    try:
        return (yield)
    finally:
        watch.stop()
        signal.signal(signal.SIGUSR1, before)


def _phase(item, name):
    """Let the watch raise while the hook runs, whose phase this is."""
    watch = item.stash[_WATCH]
    watch.phase = name
    try:
        result = yield
        watch.raise_if_over()  # the signal came before: the fixtures' ends were not to be skipped
        return result
    finally:
        watch.phase = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    return (yield from _phase(item, "setup"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield from _phase(item, "call"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    return (yield from _phase(item, "teardown"))
