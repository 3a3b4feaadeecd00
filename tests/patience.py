"""Waits in tests whose limits do not depend on how busy the machine is.

A wait of N seconds, of an idle machine, is over when N seconds have passed and this process and
its descendants, the simulators among them, have used :data:`PATIENCE` times N seconds of processor
time: what one of them waits for, another one computes. What waits for nothing but a deadlock
is ended by ``limits.py``. Where a simulated board is at hand, its own limits do
(:meth:`trebuchet.sim.process.SimulatorProcess.deadline`, and the time-outs of its sockets).
"""

import subprocess
import time
from pathlib import Path

from limits import cpu_seconds

__all__ = ["PATIENCE", "Patience", "finish", "gone", "join", "wait_until"]

#: Times as long as an idle machine needs. Nothing is slower for it that passes.
PATIENCE = 3


class Patience:
    """The end of a wait of ``seconds`` that begins now."""

    def __init__(self, seconds):
        self.seconds = seconds
        self._start, self._used = time.monotonic(), cpu_seconds()

    def over(self):
        if time.monotonic() - self._start < self.seconds:
            return False
        return cpu_seconds() - self._used >= PATIENCE * self.seconds

    def __str__(self):
        return f"{self.seconds:g} s"


def wait_until(true, seconds, what, pause=0.05):
    """Poll ``true()`` until it holds; its last value is in the message if it never does."""
    patience = Patience(seconds)
    while not (value := true()):
        assert not patience.over(), f"{what} within {patience}; last {value!r}"
        time.sleep(pause)
    return value


def join(thread, seconds, what="the thread"):
    """Wait for the end of a thread."""
    wait_until(lambda: not thread.is_alive(), seconds, f"{what} did not end", pause=0.01)


def finish(process, seconds=60):
    """Wait for a child's end; returns its exit code. It is killed when the wait is over."""
    patience = Patience(seconds)
    while True:
        try:
            return process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            if patience.over():
                process.kill()
                process.wait()
                raise


def gone(pid):
    """Has the process ended? Whoever started it need not have asked yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"
