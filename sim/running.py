"""Which simulations run on this machine, so that another terminal can enter their networks."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ..models.errors import TrebuchetError

__all__ = ["Running", "announced", "find"]


@dataclass(frozen=True)
class Running:
    """A simulation that runs.

    Attributes
    ----------
    pid : int
        Process id of its ``trebuchet sim``.
    top : str
        What is simulated.
    inside : str
        How a command on the board's network begins.
    environment : dict
        Variables for such a command.
    """

    pid: int
    top: str
    inside: str
    environment: Mapping[str, str]


def _folder() -> Path:
    """The user's own; the network of another's simulation cannot be entered anyway."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base) / f"trebuchet-{os.getuid()}"


@contextlib.contextmanager
def announced(running: Running) -> Iterator[None]:
    """Let :func:`find` find a simulation within the ``with`` block."""
    folder = _folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{running.pid}.json"
    path.write_text(json.dumps(asdict(running)))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _all() -> Iterator[Running]:
    folder = _folder()
    if not folder.is_dir() or folder.stat().st_uid != os.getuid():
        return
    for path in sorted(folder.glob("*.json")):
        try:
            running = Running(**json.loads(path.read_text()))
            os.kill(running.pid, 0)
        except ProcessLookupError:  # it was killed
            path.unlink(missing_ok=True)
        except (OSError, ValueError, TypeError):
            continue
        else:
            yield running


def find(pid: int | None = None) -> Running:
    """The simulation that runs, or of several the one of process ``pid``."""
    found = list(_all())
    chosen = [running for running in found if pid in (None, running.pid)]
    if len(chosen) == 1:
        return chosen[0]
    if not found:
        raise TrebuchetError("no simulation runs; start one with: trebuchet sim")
    names = ", ".join(f"{running.pid} ({running.top})" for running in found)
    what = "several simulations run" if pid is None else f"no simulation has process id {pid}"
    raise TrebuchetError(f"{what}; name one with --pid: {names}")
