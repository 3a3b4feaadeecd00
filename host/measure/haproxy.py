"""HAProxy as a TCP relay with splice, beside which the job server is measured."""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...models.errors import TrebuchetError

__all__ = ["haproxy"]

#: Seconds until it listens.
_PATIENCE = 60.0
#: One thread, as the job server's default, and pipes as large as the job server's.
_CONFIGURATION = """\
global
    nbthread 1
    tune.pipesize 1048576
defaults
    mode tcp
    option splice-request
    option splice-response
    timeout connect 10s
    timeout client 60s
    timeout server 60s
listen relay
    bind 127.0.0.1:{port}
    balance roundrobin
{servers}
"""


def _program() -> str:
    found = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if found is None:
        raise TrebuchetError(
            "this measurement needs HAProxy; install it with: sudo apt-get install haproxy"
        )
    return found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def haproxy(ports: Sequence[str]) -> Iterator[str]:
    """A relay to these ports of this machine, of which each connection has the next; its port."""
    port = _free_port()
    lines = [f"    server node{i} 127.0.0.1:{to}" for i, to in enumerate(ports)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "haproxy.cfg"
        path.write_text(_CONFIGURATION.format(port=port, servers="\n".join(lines)))
        log = Path(folder) / "log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [_program(), "-db", "-f", str(path)], stdout=file, stderr=subprocess.STDOUT
            )
        try:
            _wait_for(process, port, log)
            yield str(port)
        finally:
            process.terminate()
            process.wait()


def _wait_for(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)
    said = " ".join(log.read_text().split()) or "it said nothing"
    raise TrebuchetError(f"HAProxy did not start: {said[-200:]}")
