"""Compiles ``agent.cpp`` with the integration library of the user's Renode, and runs both."""

import hashlib
import subprocess
from pathlib import Path

from ....models.errors import TrebuchetError
from ....models.lock import FileLock
from ....models.renode import need_renode
from ...build import build_folder

__all__ = ["build_agent", "integration_library"]

HERE = Path(__file__).resolve().parent

#: Where it is beside the launcher: in a release, and in a tree that Renode was built in.
_PLACES = ("plugins/IntegrationLibrary", "src/Plugins/CoSimulationPlugin/IntegrationLibrary")

_SOURCES = (
    "src/renode_bus.cpp",
    "src/buses/bus.cpp",
    "src/communication/socket_channel.cpp",
    "libs/socket-cpp/Socket/TCPClient.cpp",
    "libs/socket-cpp/Socket/Socket.cpp",
)


def integration_library() -> Path:
    """The folder of Renode's integration library."""
    launcher = need_renode().resolve()
    for place in _PLACES:
        folder = launcher.parent / place
        if (folder / _SOURCES[0]).is_file():
            return folder
    raise TrebuchetError(
        f"the co-simulation needs Renode's IntegrationLibrary, which is not beside {launcher}; "
        "name the launcher in Renode's own folder in the variable RENODE"
    )


def build_agent(library: bool) -> Path:
    """The agent as a library for Renode, or as a program; compiled once for each Renode."""
    integration = integration_library()
    sources = [HERE / "agent.cpp", *(integration / name for name in _SOURCES)]
    digest = hashlib.sha256(repr(integration).encode())
    for path in sources:
        digest.update(path.read_bytes())
    name = "libagent.so" if library else "agent"
    folder = build_folder() / f"agent-{digest.hexdigest()[:20]}"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    with FileLock(folder / "lock"):
        if not target.exists():
            flags = ["-shared", "-fPIC"] if library else []
            command = ["g++", "-std=c++17", "-O2", *flags, f"-I{integration}", "-o", target]
            done = subprocess.run(
                [*command, *sources, "-lpthread"], capture_output=True, text=True, check=False
            )
            if done.returncode:
                lines = [line for line in done.stderr.splitlines() if "error" in line]
                raise TrebuchetError(f"compiling the agent failed: {' | '.join(lines[:3])}")
    return target
