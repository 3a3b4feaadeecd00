"""A simulator's process on a network of its own: what one board and several have in common.

Time limits here are in the simulation's time (:mod:`trebuchet.models.progress`); a command that is
started on the network gets the name of the file with the progress in its environment.
"""

import contextlib
import json
import os
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from ..models.errors import TrebuchetError
from ..models.files import make_folder
from ..models.progress import VARIABLE, Deadline, Simulation
from ..models.sockets import SimulatedTimeSocket
from .build import build_folder
from .netns import Namespace, NamespaceError, OwnNetwork

__all__ = ["SimulatorProcess", "run_limited", "shell_code"]

#: Seconds of wall time for a simulator that was asked to end; a busy one looks up rarely.
_STOP_SECONDS = 60


def shell_code(code: int) -> int:
    """The exit code that a shell has for a process's: 128 + N if signal N ended it."""
    return 128 - code if code < 0 else code


def run_limited(
    command: Sequence[Any], cpu_seconds: float, cwd: str | Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command that computes, with its output captured.

    After ``cpu_seconds`` of processor time it is ended, and :class:`subprocess.TimeoutExpired`
    raised: how long that takes depends on the machine and on what else it does.
    """
    words = [str(word) for word in command]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd
    ) as child:
        limit = max(1, round(cpu_seconds))
        with contextlib.suppress(ProcessLookupError):  # it may have ended
            resource.prlimit(child.pid, resource.RLIMIT_CPU, (limit, limit))
        try:
            out, errors = child.communicate()
        except BaseException:
            child.kill()
            raise
    if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise subprocess.TimeoutExpired(words, cpu_seconds, out, errors)
    return subprocess.CompletedProcess(words, child.returncode, out, errors)


def _new_folder(above: Path, name: str) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=above))
    except OSError as error:
        raise TrebuchetError(f"cannot make a folder in {above}: {error.strerror}") from error


class SimulatorProcess:
    """A simulator, running; a context manager.

    Closing it ends the simulator and everything started with :meth:`run` or :meth:`popen`; if this
    process dies, they end as well.

    Parameters
    ----------
    name : str
        Begins the name of its folder.
    command : callable
        The command by the file descriptor of its control connection (``harness/control.h``). It is
        called when ``folder`` and ``namespace`` are there. The simulator must publish its progress
        to ``progress_path`` (``harness/progress.h``) before its greeting.
    cwd : path or None
        Where the simulator runs: memory images are read from there.
    network : callable
        Makes the network: a new one, or this process's own (:class:`~.netns.OwnNetwork`).
    apart : bool
        Ctrl-C in a terminal does not reach the simulator, whose counters can so be read after it;
        nor can the simulator read that terminal then.

    Attributes
    ----------
    folder : path
        For its files; removed at the end.
    namespace : Namespace or OwnNetwork
        The network. TAP device ``tap0`` in it is the simulator's, unless its own has another name.
    greeting : dict
        The line by which the simulator said that it is up.
    simulation : Simulation
        Its progress, which limits are measured by.
    last_words : str
        The last line of its messages, when it has ended.
    """

    def __init__(
        self,
        name: str,
        command: Callable[[int], Sequence[Any]],
        cwd: str | Path | None = None,
        network: Callable[[], Namespace | OwnNetwork] = Namespace,
        apart: bool = False,
    ) -> None:
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[Any]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._cleanup = contextlib.ExitStack()
        with self._closed_on_error():
            self._start(name, command, cwd, network, apart)

    @contextlib.contextmanager
    def _closed_on_error(self):
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _start(self, name, command, cwd, network, apart):
        self.folder = _new_folder(make_folder(build_folder() / "run"), name)
        self._cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self.namespace = self._cleanup.enter_context(network())
        except NamespaceError as error:
            raise TrebuchetError(str(error)) from None
        self._control, far = socket.socketpair()
        self._cleanup.callback(self._control.close)
        with far, open(self.folder / "stderr.log", "wb") as errors:
            self._process = subprocess.Popen(
                # It ends with the control connection; no tether, so any thread may start it.
                self.namespace.enter(command(far.fileno()), tether=False),
                pass_fds=[far.fileno()],
                stderr=errors,
                cwd=cwd,
                process_group=0 if apart else None,
            )
        self._replies = self._control.makefile("r", encoding="utf-8")
        self._cleanup.callback(self._replies.close)
        self._cleanup.callback(self._stop, self._process)
        line = self._replies.readline()
        if not line:
            self._process.wait()
            raise TrebuchetError(f"the simulator did not start: {self._last_words()}")
        self.greeting = json.loads(line)
        self.simulation = Simulation(self.progress_path)

    @property
    def progress_path(self) -> Path:
        """File that the simulator publishes its progress to."""
        return self.folder / "progress"

    def inside(self, within: Namespace | None = None) -> str:
        """How a user's shell begins a command on the network, limits in simulated time included.

        ``within``: another namespace than this object's, on the far side of the device.
        """
        enter = (within or self.namespace).enter([], tether=False)
        return shlex.join(["env", f"{VARIABLE}={self.progress_path}", *enter])

    def deadline(self, seconds: float) -> Deadline:
        """The end of a wait of simulated ``seconds`` from now."""
        return Deadline(seconds, self.simulation)

    def sleep(self, seconds: float) -> None:
        """Wait until the simulation has advanced by so many seconds, and so has the wall clock."""
        end = self.deadline(seconds)
        while left := end.left():
            self.check()
            time.sleep(min(left, 0.1))

    def pass_ticks(self, milliseconds: int) -> None:
        """Wait until the design has been given so many millisecond ticks."""
        end = self.simulation.ticks + milliseconds
        while self.simulation.ticks < end:
            self.check()
            time.sleep(0.005)

    def _stop(self, process):
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            process.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.last_words = self._last_words()

    def _last_words(self) -> str:
        text = (self.folder / "stderr.log").read_text(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        return lines[-1].removeprefix("sim: ") if lines else "no reason given"

    @property
    def pid(self) -> int:
        """Process id of the simulator."""
        assert self._process is not None
        return self._process.pid

    def alive(self) -> bool:
        """Is the simulator still running?"""
        return self._process is not None and self._process.poll() is None

    def wait(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds for the simulator's end; is it still running?"""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self.alive()

    def wait_for_end(self) -> None:
        """Wait for the simulator's end or an interrupt, and close; raises if there was a fault."""
        try:
            while self.wait(1):
                pass
        except KeyboardInterrupt:
            pass
        code = self.close()
        if code:
            raise TrebuchetError(
                f"the simulator reported a fault: {self.last_words} (exit code {code})"
            )

    def check(self) -> None:
        """Raise :class:`TrebuchetError` if the simulator has ended."""
        if not self.alive():
            raise TrebuchetError(f"the simulator has ended: {self._last_words()}")

    def stats(self) -> dict[str, Any]:
        """Statistics now, as the harness gives them."""
        return self.ask("stats")

    def ask(self, command: str) -> dict[str, Any]:
        """The answer of the simulator to a command (``harness/control.h``)."""
        with self._lock:
            try:
                self._control.sendall(f"{command}\n".encode())
                line = self._replies.readline()
            except OSError:
                line = ""
        if not line:
            self.wait(_STOP_SECONDS)
            self.check()
            raise TrebuchetError("the simulator does not answer")
        return json.loads(line)

    def socket(
        self,
        family: socket.AddressFamily = socket.AF_INET,
        type: socket.SocketKind = socket.SOCK_STREAM,
        within: Namespace | None = None,
    ) -> SimulatedTimeSocket:
        """An unconnected socket on the simulated network; its time-outs are in simulated time.

        ``within``: another namespace than this object's, on the far side of the device.
        """
        return SimulatedTimeSocket(self.simulation, (within or self.namespace).socket(family, type))

    def popen(self, command: Sequence[Any], **kwargs: Any) -> subprocess.Popen[Any]:
        """Start a command on the network; it is killed with the simulator at the latest."""
        environment = {**(kwargs.pop("env", None) or os.environ)}
        environment[VARIABLE] = str(self.progress_path)
        child = subprocess.Popen(self.namespace.enter(command), env=environment, **kwargs)
        self._children.append(child)
        return child

    def run(
        self,
        command: Sequence[Any],
        timeout: float = 60,
        *,
        capture_output: bool = True,
        text: bool = True,
        **kwargs: Any,
    ) -> subprocess.CompletedProcess[Any]:
        """Run a command on the network; returns :class:`subprocess.CompletedProcess`.

        After ``timeout`` simulated seconds it is killed, and :class:`subprocess.TimeoutExpired`
        raised.
        """
        pipe = subprocess.PIPE if capture_output else None
        end = self.deadline(timeout)
        if text:
            kwargs = {"errors": "replace", **kwargs}
        with self.popen(command, stdout=pipe, stderr=pipe, text=text, **kwargs) as child:
            while True:
                try:
                    out, errors = child.communicate(timeout=end.pause())
                except subprocess.TimeoutExpired:
                    continue
                except TimeoutError:
                    child.kill()
                    raise subprocess.TimeoutExpired(child.args, timeout) from None
                except BaseException:
                    child.kill()
                    raise
                return subprocess.CompletedProcess(child.args, child.returncode, out, errors)

    def close(self) -> int | None:
        """End everything; returns the simulator's exit code (None if it never started)."""
        for child in self._children:
            if child.poll() is None:
                child.kill()
            child.wait()
        self._children.clear()
        self._cleanup.close()
        return self._process.returncode if self._process else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
