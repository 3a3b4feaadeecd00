"""Renode as a process, told what to do: :class:`Renode`.

It talks to the server that Renode has for Robot Framework (XML-RPC): its answers are exact, where
those of the monitor's text are mixed with prompts and log lines.
"""

import contextlib
import http.client
import shutil
import socket
import subprocess
import tempfile
import time
import xmlrpc.client
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from ...models.errors import TrebuchetError
from ...models.renode import need_renode, starting

__all__ = ["Renode", "free_port", "last_line"]


def free_port() -> int:
    """A TCP port of this machine that nobody listens at."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def last_line(log: Path) -> str:
    """What Renode said last, for an error."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


class Renode:
    """A Renode without windows; a context manager.

    Parameters
    ----------
    environment : mapping or None
        Its environment, also that of the libraries that it loads.
    timeout : float
        Seconds that it may take to come up.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, timeout: float = 600) -> None:
        launcher = need_renode()
        self._cleanup = contextlib.ExitStack()
        folder = Path(tempfile.mkdtemp(prefix="trebuchet-renode-"))
        self._cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        self.folder = folder
        port = free_port()
        words: list[object] = [launcher, "--disable-gui", "--plain", "--hide-log"]
        words += ["--robot-server-port", port, "--config", folder / "config"]
        with starting(launcher), open(folder / "output.log", "wb") as output:
            self._process = subprocess.Popen(
                [str(w) for w in words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        self._server = xmlrpc.client.ServerProxy(f"http://127.0.0.1:{port}", allow_none=True)
        try:
            self._wait(timeout)
        except BaseException:
            self.close()
            raise

    def _wait(self, timeout: float) -> None:
        deadline, log = time.monotonic() + timeout, self.folder / "output.log"
        while True:
            try:
                self._server.get_keyword_names()
                return
            except (OSError, http.client.HTTPException):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise TrebuchetError(f"Renode did not start: {last_line(log)}") from None
                time.sleep(0.1)

    def keyword(self, name: str, *arguments: object) -> Any:
        """Run a keyword of Renode's Robot library; raises :class:`TrebuchetError` if it fails."""
        result: Any = self._server.run_keyword(name, [str(a) for a in arguments])
        if result["status"] != "PASS":
            reason = " ".join(str(result.get("error", "")).split())
            raise TrebuchetError(f"Renode: {name} {' '.join(map(str, arguments))}: {reason}")
        return result.get("return", "")

    def do(self, command: str) -> str:
        """Run a command of the monitor; returns what it prints."""
        return str(self.keyword("ExecuteCommand", command)).strip()

    def read(self, address: int) -> int:
        """The word at ``address`` on the system bus."""
        return int(self.do(f"sysbus ReadDoubleWord 0x{address:X}"), 16)

    def write(self, address: int, value: int) -> None:
        """Write the word at ``address``."""
        self.do(f"sysbus WriteDoubleWord 0x{address:X} 0x{value:X}")

    def close(self) -> None:
        """End Renode."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException, xmlrpc.client.Fault):
                self._server.run_keyword("ExecuteCommand", ["quit"])
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._cleanup.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
