"""Programs that are started to generate a board: they end with us, and all that they started."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from ..models.ending import Terminated, start_group

__all__ = ["children_end_with_us", "run_group"]


def run_group(command, **options):
    """Run a program in a process group of its own, which is ended if an exception interrupts this.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.
    **options
        Those of :class:`subprocess.Popen`.

    Returns
    -------
    subprocess.CompletedProcess
        Its ``check_returncode`` raises if the program failed.
    """
    with start_group(command, **options) as process:
        out, error = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, error)


@contextlib.contextmanager
def children_end_with_us():
    """Kill programs that a library starts in the block if Ctrl-C or a signal interrupts it.

    Amaranth leaves its Yosys running. On systems without ``/proc`` nothing is killed.
    """
    before = _children()
    try:
        yield
    except (KeyboardInterrupt, Terminated):
        for child in _children() - before:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        raise


def _children():
    """Process numbers of the programs that this process has started and that have not ended."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                found.add(int(path.parent.name))
    return found
