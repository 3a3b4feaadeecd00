"""Where Renode is: it is on no package registry, so whoever wants it says where.

``RENODE`` names the launcher or the folder it lies in; else it is on PATH.
"""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from .errors import TrebuchetError

__all__ = ["INSTALL", "check_version", "find_renode", "need_renode", "renode_version", "starting"]

INSTALL = (
    "unpack the portable release of Renode 1.16 from https://renode.io (no registry has it) and "
    "put its folder on PATH, or name its launcher in the variable RENODE"
)

#: The first version that has what our models use.
OLDEST = (1, 16)

_VERSION_SECONDS = 60


def find_renode() -> Path | None:
    """The launcher that ``$RENODE`` or PATH names; None if there is none."""
    named = os.environ.get("RENODE")
    if named:
        # Unlike Path's, these say no of what cannot be looked at.
        path = Path(named, "renode") if os.path.isdir(named) else Path(named)
        return path if os.path.isfile(path) and os.access(path, os.X_OK) else None
    found = shutil.which("renode")
    return Path(found) if found else None


def need_renode() -> Path:
    """The launcher; an error says how to get one."""
    path = find_renode()
    if path is None:
        named = os.environ.get("RENODE")
        why = f"RENODE={named!r} is no Renode" if named else "Renode is not on PATH"
        raise TrebuchetError(f"{why}; {INSTALL}")
    return path


def check_version(path: Path) -> None:
    """Raise if the launcher says that it is a Renode older than :data:`OLDEST`."""
    found = renode_version(path)
    numbers = re.findall(r"\d+", found or "")
    if len(numbers) >= 2 and (int(numbers[0]), int(numbers[1])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise TrebuchetError(f"{path} is Renode {found}; {wanted} or newer is needed; {INSTALL}")


@contextlib.contextmanager
def starting(launcher: Path) -> Iterator[None]:
    """Around the start of a launcher, or of what lies beside it: one that cannot run is told."""
    try:
        yield
    except OSError as error:
        raise TrebuchetError(f"cannot run {launcher}: {error.strerror}; {INSTALL}") from error


def renode_version(path: Path) -> str | None:
    """What the launcher says of itself, as ``1.16.1``; None if it cannot be run or hangs."""
    try:
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = [w for line in done.stdout.splitlines() for w in line.split() if w.startswith("v1")]
    return ".".join(words[0][1:].split(".")[:3]) if words else "unknown"
