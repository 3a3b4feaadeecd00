"""``trebuchet sim shell``: a shell, or a command, on the network of a simulation that runs."""

import os
import shlex
import subprocess

from .process import shell_code
from .running import find

__all__ = ["enter"]


def enter(pid: int | None, command: str | None) -> int:
    """Run ``command``, or the user's shell, there; return its exit code.

    ``pid``: which simulation, if several run (:func:`~.running.find`).
    """
    running = find(pid)
    inner = ["sh", "-c", command] if command else [os.environ.get("SHELL") or "sh"]
    environment = {**os.environ, **running.environment}
    child = subprocess.Popen([*shlex.split(running.inside), *inner], env=environment)
    while True:
        try:
            return shell_code(child.wait())
        except KeyboardInterrupt:  # the shell's, which has got it, too
            continue
