"""Running the simulator: :class:`Board`, a board on a network of its own, and :func:`run_batch`.

>>> with Board(build(source), arguments=["--loss", "3%"]) as board:
...     with board.connect(7) as s:
...         s.sendall(b"hello")
...     board.stats()["counters"]
"""

import contextlib
import json
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from ..models.errors import TrebuchetError
from .build import build_folder
from .netns import Namespace, NamespaceError

__all__ = ["Board", "run_batch"]

HOST_IP, BOARD_IP = "10.0.0.1", "10.0.0.2"
EXIT_USAGE = 2
_STOP_SECONDS = 5


def _last_words(path):
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("sim: ") if lines else "no reason given"


def run_batch(binary, arguments=(), timeout=300, cwd=None):
    """Run the simulator without network to its end.

    Returns ``(exit code, statistics)``; the exit codes are explained in ``harness/simulation.h``.
    Wrong use raises :class:`TrebuchetError`; too long a run :class:`subprocess.TimeoutExpired`.
    """
    command = [str(binary), *map(str, arguments), "--stats", "-"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, cwd=cwd, check=False
    )
    if done.returncode == EXIT_USAGE or not done.stdout.strip():
        message = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise TrebuchetError(f"{message} (ran: {shlex.join(command)})")
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


class Board:
    """A simulated board, running; a context manager.

    The kernel of this machine is its peer: 10.0.0.1 on TAP device ``tap0`` in a namespace that only
    this object knows. Closing it ends the simulator and everything started with :meth:`run` or
    :meth:`popen`; if this process dies, they end as well.

    Parameters
    ----------
    binary : path
        From :func:`trebuchet.sim.build.build`.
    arguments : sequence of str
        More options of the harness (impairments, ``--pcap``, ``--seed`` …).
    uart : str
        ``"log"`` keeps the UART's output in a file (:meth:`uart_text`); else as for the harness.
    time : str
        ``--time`` of the harness.
    ready : str or None
        Text on the UART that says that the board is up; the constructor waits for it.
    timeout : float
        Seconds to wait for that.
    cwd : path or None
        Where the simulator runs: memory images are read from there.
    """

    ip = BOARD_IP
    host_ip = HOST_IP

    def __init__(
        self,
        binary,
        arguments=(),
        *,
        uart="log",
        time="wall",
        ready=None,
        timeout=120,
        cwd=None,
    ):
        self._lock = threading.Lock()
        self._children = []
        self._cleanup = contextlib.ExitStack()
        try:
            self._start(binary, arguments, uart, time, cwd)
            if ready is not None:
                self.wait_uart(ready, timeout)
        except BaseException:
            self.close()
            raise

    def _start(self, binary, arguments, uart, time, cwd):
        (build_folder() / "run").mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="board-", dir=build_folder() / "run"))
        self._cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self.namespace = self._cleanup.enter_context(Namespace())
        except NamespaceError as error:
            raise TrebuchetError(str(error)) from None
        self._control, far = socket.socketpair()
        self._cleanup.callback(self._control.close)
        self._uart_path = self.folder / "uart.log"
        self._error_path = self.folder / "stderr.log"
        where = f"file:{self._uart_path}" if uart == "log" else uart
        command = [Path(binary).resolve(), "--tap", "tap0", "--address", f"{HOST_IP}/24"]
        command += ["--time", time, "--uart", where, "--control", far.fileno(), *arguments]
        with far, open(self._error_path, "wb") as errors:
            self._process = subprocess.Popen(
                # It ends with the control connection; no tether, so any thread may start it.
                self.namespace.enter(command, tether=False),
                pass_fds=[far.fileno()],
                stderr=errors,
                cwd=cwd,
            )
        self._replies = self._control.makefile("r", encoding="utf-8")
        self._cleanup.callback(self._replies.close)
        self._cleanup.callback(self._stop)
        line = self._replies.readline()
        if not line:
            self._process.wait()
            raise TrebuchetError(f"the simulator did not start: {_last_words(self._error_path)}")
        self.uart_device = json.loads(line)["uart"]

    def _stop(self):
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self):
        """Process id of the simulator."""
        return self._process.pid

    def alive(self):
        """Is the simulator still running?"""
        return self._process.poll() is None

    def wait(self, timeout):
        """Wait up to ``timeout`` seconds for the simulator's end; is it still running?"""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self.alive()

    def check(self):
        """Raise :class:`TrebuchetError` if the simulator has ended."""
        if not self.alive():
            raise TrebuchetError(f"the simulator has ended: {_last_words(self._error_path)}")

    def uart_text(self):
        """What the board has printed so far (``uart="log"`` only)."""
        try:
            return self._uart_path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def wait_uart(self, text, timeout=120):
        """Wait until ``text`` has been printed."""
        deadline = time.monotonic() + timeout
        while text not in self.uart_text():
            self.check()
            if time.monotonic() > deadline:
                tail = self.uart_text()[-300:]
                raise TrebuchetError(
                    f"the board did not print {text!r} within {timeout} s; its last words: {tail!r}"
                )
            time.sleep(0.02)

    def stats(self):
        """Statistics now: cycles, link, ``counters`` by name (fabric top)."""
        with self._lock:
            try:
                self._control.sendall(b"stats\n")
                line = self._replies.readline()
            except OSError:
                line = ""
        if not line:
            self._process.wait(timeout=_STOP_SECONDS)
            self.check()
        return json.loads(line)

    def counters(self):
        """The board's event counters by ``block.register`` (fabric top)."""
        return self.stats()["counters"]

    def wait_port(self, port=7, timeout=120):
        """Wait until the board accepts TCP connections on ``port``."""
        deadline = time.monotonic() + timeout
        while True:
            self.check()
            try:
                self.connect(port, timeout=2).close()
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    raise TrebuchetError(
                        f"no connection to the board's port {port} within {timeout} s: {error}"
                    ) from None
            time.sleep(0.05)

    def socket(self, family=socket.AF_INET, type=socket.SOCK_STREAM):
        """An unconnected socket on the simulated network."""
        return self.namespace.socket(family, type)

    def connect(self, port, timeout=30, source_port=0):
        """A TCP connection to the board."""
        s = self.socket()
        try:
            s.settimeout(timeout)
            if source_port:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind((HOST_IP, source_port))
            s.connect((BOARD_IP, port))
        except BaseException:
            s.close()
            raise
        return s

    def popen(self, command, **kwargs):
        """Start a command on the simulated network; it is killed with the board at the latest."""
        child = subprocess.Popen(self.namespace.enter(command), **kwargs)
        self._children.append(child)
        return child

    def run(self, command, timeout=60, **kwargs):
        """Run a command on the simulated network; returns :class:`subprocess.CompletedProcess`."""
        kwargs.setdefault("capture_output", True)
        kwargs.setdefault("text", True)
        return subprocess.run(self.namespace.enter(command), timeout=timeout, check=False, **kwargs)

    def close(self):
        """End everything; returns the simulator's exit code (None if it never started)."""
        for child in self._children:
            if child.poll() is None:
                child.kill()
            child.wait()
        self._children.clear()
        self._cleanup.close()
        process = getattr(self, "_process", None)
        return process.returncode if process else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
