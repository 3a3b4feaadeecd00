"""Where Renode is: it is on no package registry, so whoever wants it says where.

``RENODE`` names the launcher or the folder it lies in; else it is on PATH.
"""

import os
import shutil
import subprocess
from pathlib import Path

from .errors import TrebuchetError

__all__ = ["INSTALL", "find_renode", "need_renode", "renode_version"]

INSTALL = (
    "unpack the portable release of Renode 1.16 from https://renode.io (no registry has it) and "
    "put its folder on PATH, or name its launcher in the variable RENODE"
)

_VERSION_SECONDS = 60


def find_renode() -> Path | None:
    """The launcher that ``$RENODE`` or PATH names; None if there is none."""
    named = os.environ.get("RENODE")
    if named:
        path = Path(named)
        path = path / "renode" if path.is_dir() else path
        return path if path.is_file() and os.access(path, os.X_OK) else None
    found = shutil.which("renode")
    return Path(found) if found else None


def need_renode() -> Path:
    """The launcher; an error says how to get one."""
    path = find_renode()
    if path is None:
        named = os.environ.get("RENODE")
        why = f"RENODE={named} is no Renode" if named else "Renode is not on PATH"
        raise TrebuchetError(f"{why}; {INSTALL}")
    return path


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
