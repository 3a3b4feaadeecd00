"""A simulator's process on a network of its own: what one board and several have in common."""

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from ..models.errors import TrebuchetError
from ..models.files import make_folder
from .build import build_folder
from .netns import Namespace, NamespaceError

__all__ = ["SimulatorProcess", "shell_code"]

_STOP_SECONDS = 5


def shell_code(code: int) -> int:
    """The exit code that a shell has for a process's: 128 + N if signal N ended it."""
    return 128 - code if code < 0 else code


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
        called when ``folder`` and ``namespace`` are there.
    cwd : path or None
        Where the simulator runs: memory images are read from there.

    Attributes
    ----------
    folder : path
        For its files; removed at the end.
    namespace : Namespace
        The network. TAP device ``tap0`` in it is the simulator's.
    greeting : dict
        The line by which the simulator said that it is up.
    """

    def __init__(
        self,
        name: str,
        command: Callable[[int], Sequence[Any]],
        cwd: str | Path | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[Any]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._cleanup = contextlib.ExitStack()
        with self._closed_on_error():
            self._start(name, command, cwd)

    @contextlib.contextmanager
    def _closed_on_error(self):
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _start(self, name, command, cwd):
        self.folder = _new_folder(make_folder(build_folder() / "run"), name)
        self._cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self.namespace = self._cleanup.enter_context(Namespace())
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
            )
        self._replies = self._control.makefile("r", encoding="utf-8")
        self._cleanup.callback(self._replies.close)
        self._cleanup.callback(self._stop, self._process)
        line = self._replies.readline()
        if not line:
            self._process.wait()
            raise TrebuchetError(f"the simulator did not start: {self._last_words()}")
        self.greeting = json.loads(line)

    def _stop(self, process):
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            process.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

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
            raise TrebuchetError(f"the simulator reported a fault (exit code {code})")

    def check(self) -> None:
        """Raise :class:`TrebuchetError` if the simulator has ended."""
        if not self.alive():
            raise TrebuchetError(f"the simulator has ended: {self._last_words()}")

    def stats(self) -> dict[str, Any]:
        """Statistics now, as the harness gives them."""
        with self._lock:
            try:
                self._control.sendall(b"stats\n")
                line = self._replies.readline()
            except OSError:
                line = ""
        if not line:
            self.wait(_STOP_SECONDS)
            self.check()
            raise TrebuchetError("the simulator does not answer")
        return json.loads(line)

    def popen(self, command: Sequence[Any], **kwargs: Any) -> subprocess.Popen[Any]:
        """Start a command on the network; it is killed with the simulator at the latest."""
        child = subprocess.Popen(self.namespace.enter(command), **kwargs)
        self._children.append(child)
        return child

    def run(
        self, command: Sequence[Any], timeout: float = 60, **kwargs: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Run a command on the network; returns :class:`subprocess.CompletedProcess`."""
        kwargs.setdefault("capture_output", True)
        kwargs.setdefault("text", True)
        return subprocess.run(self.namespace.enter(command), timeout=timeout, check=False, **kwargs)

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
