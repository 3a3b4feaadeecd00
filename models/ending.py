"""Termination: SIGTERM and SIGHUP as an exception, so that clean-up runs; groups of processes."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = ["GRACE", "Terminated", "catch_termination", "start_group", "stop_group"]

#: Signals that end a program unless it handles them; Python itself turns SIGINT into an exception.
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
#: Seconds that a process has to clean up between SIGTERM and SIGKILL.
GRACE = 10.0


class Terminated(SystemExit):
    """Raised in the main thread when a signal asks the program to end; exit code 128 + signal."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.signal = signal.Signals(number)


@contextlib.contextmanager
def catch_termination() -> Iterator[None]:
    """Raise :class:`Terminated` for the first SIGTERM or SIGHUP that arrives inside the block.

    Further ones are ignored until the block is left, so that they do not interrupt clean-up. A
    signal that the program ignores (``nohup``) stays ignored. Outside the main thread, which alone
    may set signal handlers, the block does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    raised = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        if not raised:
            raised = True
            raise Terminated(number)

    caught = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def start_group(command: Any, **options: Any) -> Iterator[subprocess.Popen]:
    """Start a process in a group of its own; stop the group if an exception leaves the block.

    A signal whose exception came while the process is being started would leave it behind, since
    nobody has it yet: it is held back until the block has begun. ``command`` and ``options`` are
    those of :class:`subprocess.Popen`.
    """
    with _signals_held() as release:
        process = subprocess.Popen(command, start_new_session=True, **options)
        try:
            release()
            yield process
        except BaseException:
            stop_group(process)
            raise
        finally:
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


@contextlib.contextmanager
def _signals_held() -> Iterator[Callable[[], None]]:
    """Hold back SIGINT, SIGTERM and SIGHUP until the function that is given is called.

    By handlers, not by a mask, which a process that is started would inherit. Other threads than
    the main one are interrupted by no signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    arrived: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *SIGNALS)}
    before = {n: handler for n, handler in before.items() if handler not in (None, signal.SIG_IGN)}

    def release() -> None:
        while before:
            signal.signal(*before.popitem())
        if arrived:
            signal.raise_signal(arrived.pop(0))

    for number in before:
        signal.signal(number, lambda number, frame: arrived.append(number))
    try:
        yield release
    finally:
        release()


def stop_group(process: subprocess.Popen, grace: float = GRACE) -> None:
    """End a process and all others of its process group; wait until the process has ended.

    Start it with ``start_new_session=True``, so that it leads a group of its own. The group
    receives SIGTERM, and SIGKILL if ``process`` still runs after ``grace`` seconds. Once it has
    ended, whatever it left behind in its group is killed.
    """
    _signal_group(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: subprocess.Popen, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
