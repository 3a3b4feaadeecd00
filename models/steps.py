"""Progress of work that takes longer than a user wants to wait without a word.

A step has a title, an expected time on two idle cores, and perhaps a count. On a terminal its line
is renewed every second; elsewhere there is a line at its start, one every :data:`QUIET` seconds,
and one at its end. ``tools/bootstrap.py`` uses this module before any package is installed, so it
needs the standard library only, and syntax that an old Python reads.
"""

import sys
import threading
import time

__all__ = ["QUIET", "Step"]

#: Seconds between two lines where the output is no terminal.
QUIET = 15


class Step:
    """Context manager: show what is being done, how far it is, and how long it takes.

    Parameters
    ----------
    title : str
        What is done: "installing the Python packages".
    expected : float
        Seconds that it takes on two idle cores.
    count : callable or None
        Returns ``(done, total)``, or None as long as that is not clear.
    unit : str
        What is counted: "package", "file".
    out : file
        Where the lines go; default: stderr.
    late : bool
        For what is often done already: leave no line behind if it takes less than :data:`QUIET`
        seconds, and elsewhere than on a terminal write none before.
    """

    def __init__(self, title, expected, count=None, unit="file", out=None, late=False):
        self.title, self.expected, self.count, self.unit = title, expected, count, unit
        self.out = out or sys.stderr
        self.late, self.silent = late, late and not self.out.isatty()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self.start = time.monotonic()
        if not self.silent:
            self._write(self.line())
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.ended.set()
        self.thread.join()
        if self.silent:
            return
        if self.late and self.out.isatty() and time.monotonic() - self.start < QUIET:
            self._write("")
            return
        outcome = "stopped after" if kind else "done in"
        self._write(f"{self.title}: {outcome} {time.monotonic() - self.start:.0f} s", last=True)

    def line(self):
        """Title, count, elapsed and expected time."""
        parts = []
        found = self.count() if self.count else None
        if found:
            parts.append("{} {} of {}".format(self.unit, *found))
        seconds = time.monotonic() - self.start
        parts.append(f"{seconds:.0f} s of about {self.expected:.0f} s")
        return "{}: {}".format(self.title, ", ".join(parts))

    def _watch(self):
        while not self.ended.wait(1 if self.out.isatty() else QUIET):
            self.silent = False
            self._write(self.line())

    def _write(self, text, last=False):
        if self.out.isatty():
            self.out.write("\r\033[K" + text + ("\n" if last else ""))
        else:
            self.out.write(text + "\n")
        self.out.flush()
