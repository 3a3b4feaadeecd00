"""Running several simulated boards on one switch: :class:`Fleet`.

>>> with Fleet(topology, binary, folders) as fleet:
...     fleet.wait_ready()
...     fleet.popen(["trebuchet", "status", topology.boards[2].ip]).wait()
...     fleet.stats()["ports"]["board2"]
"""

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...models.errors import TrebuchetError
from ..build import build_folder
from ..netns import Namespace, NamespaceError
from .topology import Topology

__all__ = ["Fleet", "plan_text"]

_STOP_SECONDS = 5


def plan_text(
    topology: Topology,
    folders: Sequence[Path],
    uarts: Sequence[str],
    *,
    seed: int = 1,
    time_mode: str = "wall",
    tap: bool = True,
    control: int | None = None,
    idle_sleep: bool = False,
    cycles: int = 0,
) -> str:
    """The plan for the harness (``harness/plan.h``): the host's port first, then the boards."""
    lines = [f"seed {seed}", f"time {time_mode}"]
    lines += [f"tap tap0 {topology.host_ip}/{topology.prefix}"] if tap else []
    lines += [f"control {control}"] if control is not None else []
    lines += ["idle_sleep"] if idle_sleep else []
    lines += [f"cycles {cycles}"] if cycles else []
    lines.append(topology.host_link.plan("host", topology.clock_mhz))
    for board, folder, uart in zip(topology.boards, folders, uarts, strict=True):
        lines.append(board.link.plan(board.name, topology.clock_mhz))
        lines.append(f"board {folder} {uart} {board.ip} {board.mac}")
    return "\n".join(lines) + "\n"


class Fleet:
    """The boards of a topology, running; a context manager.

    This machine's kernel is at the switch, too: the host's address of the topology on device
    ``tap0``, in a namespace that only this object knows. Everything ends with this object.

    Parameters
    ----------
    topology : Topology
        Boards, links, addresses.
    binary : path
        From :func:`trebuchet.sim.fleet.build.build_fleet`.
    folders : sequence of paths
        Of the boards' memory images, :func:`trebuchet.sim.fleet.firmware.board_folder`.
    seed, time_mode, idle_sleep
        As for one board.
    """

    def __init__(
        self,
        topology: Topology,
        binary: Path,
        folders: Sequence[Path],
        *,
        seed: int = 1,
        time_mode: str = "wall",
        idle_sleep: bool = False,
    ) -> None:
        self.topology = topology
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[Any]] = []
        self._cleanup = contextlib.ExitStack()
        try:
            self._start(binary, folders, seed=seed, time_mode=time_mode, idle_sleep=idle_sleep)
        except BaseException:
            self.close()
            raise

    def _start(self, binary: Path, folders: Sequence[Path], **options: Any) -> None:
        (build_folder() / "run").mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="fleet-", dir=build_folder() / "run"))
        self._cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self.namespace = self._cleanup.enter_context(Namespace())
        except NamespaceError as error:
            raise TrebuchetError(str(error)) from None
        self._control, far = socket.socketpair()
        self._cleanup.callback(self._control.close)
        uarts = [f"file:{self.uart_path(board.name)}" for board in self.topology.boards]
        plan, errors_path = self.folder / "plan", self.folder / "stderr.log"
        plan.write_text(plan_text(self.topology, folders, uarts, control=far.fileno(), **options))
        command = [str(Path(binary).resolve()), str(plan)]
        with far, open(errors_path, "wb") as errors:
            self._process = subprocess.Popen(
                self.namespace.enter(command, tether=False), pass_fds=[far.fileno()], stderr=errors
            )
        self._replies = self._control.makefile("r", encoding="utf-8")
        self._cleanup.callback(self._replies.close)
        self._cleanup.callback(self._stop)
        if not self._replies.readline():
            self._process.wait()
            raise TrebuchetError(f"the simulator did not start: {self._last_words()}")

    def _last_words(self) -> str:
        text = (self.folder / "stderr.log").read_text(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        return lines[-1].removeprefix("sim: ") if lines else "no reason given"

    def _stop(self) -> None:
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def uart_path(self, name: str) -> Path:
        """Where the console output of a board goes."""
        return self.folder / f"{name}.uart"

    def alive(self) -> bool:
        """Is the simulator still running?"""
        return self._process.poll() is None

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the simulator's end; is it still running?"""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.alive()

    def stats(self) -> dict[str, Any]:
        """Statistics now: cycles, and ``ports`` of the switch by name."""
        with self._lock:
            try:
                self._control.sendall(b"stats\n")
                line = self._replies.readline()
            except OSError:
                line = ""
        if not line:
            raise TrebuchetError(f"the simulator has ended: {self._last_words()}")
        return json.loads(line)

    def wait_ready(self, timeout: float = 120) -> None:
        """Wait until the firmware of every board says that it is up."""
        deadline = time.monotonic() + timeout
        for board in self.topology.boards:
            path = self.uart_path(board.name)
            while not path.exists() or "ready" not in path.read_text(errors="replace").split():
                if not self.alive():
                    raise TrebuchetError(f"the simulator has ended: {self._last_words()}")
                if time.monotonic() > deadline:
                    raise TrebuchetError(f"board {board.name!r} is not up within {timeout:g} s")
                time.sleep(0.05)

    def popen(self, command: Sequence[str], **kwargs: Any) -> subprocess.Popen[Any]:
        """Start a command on the boards' network; it is killed with them at the latest."""
        child = subprocess.Popen(self.namespace.enter(command), **kwargs)
        self._children.append(child)
        return child

    def close(self) -> int | None:
        """End everything; returns the simulator's exit code (None if it never started)."""
        for child in self._children:
            if child.poll() is None:
                child.kill()
            child.wait()
        self._children.clear()
        self._cleanup.close()
        process = getattr(self, "_process", None)
        return process.returncode if process else None

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
