"""Two web servers on this machine, beside which ours is measured: nginx and lighttpd, of Debian.

Each has one process with one worker, no log, and serves a file of 1,024 bytes over loopback in a
network namespace of its own; the load is ``wrk`` with one thread and 64 connections. *Keep-alive*:
connections stay open. *Each*: every request says ``Connection: close``, so each is a connection,
a request and its end, as in sopc-cloud-platform, 6.3.2.

What counts is requests for a second of the *server's processor time*, user and system, the kernel's
TCP included: what else the machine does, and what the client costs, does not count. So it is the
rate of one core of this machine (a core of an AMD EPYC on 2026-11-29, where the ledger's rows are
from), and says nothing about latency. It is the best of :data:`RUNS` runs. Work that the kernel
does for the server in the client's time, as the reception of a segment over loopback, does not
count: it flatters the server.

Budgets are the rates of our service at 62.5 MHz, the clock of our boards: the cycles of
``web.keepalive_1k_cycles`` and of ``web.http_1k_100k_cycles``'s kind without others beside (304).
A server that kept none would serve more on a core than our service on such a board. On an FPGA of
156.25 MHz, the clock of the source's, our service serves 2.5 times as many.
"""

import contextlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ..models.errors import TrebuchetError
from ..sim.netns import Namespace
from .job import Sampled, Values

__all__ = ["missing_programs", "servers"]

SIZE, PORT, CLIENTS, SECONDS, RUNS = 1024, 8080, 64, 2, 3
#: Seconds until a server listens, and of processor time below which a run says nothing.
PATIENCE, LEAST = 60.0, 0.1
NAME = "kilo.bin"
_CONFIGURATIONS = {
    "nginx": """\
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  open_file_cache max=64;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/a;
  proxy_temp_path {folder}/b;
  fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d;
  scgi_temp_path {folder}/e;
  server {{ listen 127.0.0.1:{port} backlog=1024; root {folder}/files; }}
}}
""",
    "lighttpd": """\
server.document-root = "{folder}/files"
server.bind = "127.0.0.1"
server.port = {port}
server.max-keep-alive-requests = 1000000000
server.listen-backlog = 1024
server.errorlog = "{folder}/log"
mimetype.assign = ( ".bin" => "application/octet-stream" )
""",
}
_OPTIONS = {"nginx": ["-c"], "lighttpd": ["-D", "-f"]}


def _which(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin")


def missing_programs() -> list[str]:
    """Return the Debian packages that the measurement needs and this machine has not."""
    packages = {"nginx": "nginx-light", "lighttpd": "lighttpd", "wrk": "wrk"}
    return [package for program, package in packages.items() if _which(program) is None]


def _cpu(process: "subprocess.Popen[bytes]") -> float:
    """Processor seconds of a process so far."""
    return time.clock_gettime((~process.pid << 3) | 2)  # CPUCLOCK_SCHED, as in glibc


@contextlib.contextmanager
def serving(name: str, network: Namespace) -> Iterator["subprocess.Popen[bytes]"]:
    """A server on a network, while the block runs."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "files").mkdir()
        (folder / "files" / NAME).write_bytes(bytes(range(256)) * (SIZE // 256))
        configuration = folder / "configuration"
        configuration.write_text(_CONFIGURATIONS[name].format(folder=folder, port=PORT))
        command = [_which(name), *_OPTIONS[name], configuration]
        process = subprocess.Popen(
            network.enter(command, tether=False),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            _wait_for(name, process, network)
            yield process
        finally:
            process.terminate()
            process.communicate()


def _wait_for(name: str, process: "subprocess.Popen[bytes]", network: Namespace) -> None:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), network.socket() as connection:
            connection.connect(("127.0.0.1", PORT))
            return
        time.sleep(0.01)
    process.terminate()
    said = process.communicate()[1].decode(errors="replace").strip() or "it said nothing"
    raise TrebuchetError(f"{name} did not start: {said[-200:]}")


def load(network: Namespace, each: bool, seconds: int = SECONDS) -> int:
    """Ask for the file as often as possible; return the number of answers."""
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}"]
    command += ["-H", "Connection: close"] if each else []
    command += [f"http://127.0.0.1:{PORT}/{NAME}"]
    said = subprocess.run(network.enter(command), capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+) requests in", said)
    if found is None or "Non-2xx" in said or "Socket errors" in said:
        raise TrebuchetError(f"the load on a web server did not go through: {said.strip()}")
    return int(found[1])


def rate(name: str, each: bool, seconds: int = SECONDS, runs: int = RUNS) -> int:
    """Return the requests for a second of a server's processor time, the best of ``runs``."""
    best = 0.0
    with Namespace() as network, serving(name, network) as process:
        for _ in range(runs):
            before = _cpu(process)
            answers = load(network, each, seconds)
            spent = _cpu(process) - before
            if spent < LEAST * seconds / SECONDS:
                raise TrebuchetError(f"{name} had {spent:.2f} s of processor time: too few")
            best = max(best, answers / spent)
    return round(best)


def servers() -> Sampled:
    """Return the measurement of both servers; raise TrebuchetError if one is not installed."""

    def measure(seed: int) -> Values:
        if missing := missing_programs():
            raise TrebuchetError(
                f"this measurement needs other servers: sudo apt-get install {' '.join(missing)}"
            )
        return {
            f"web.{name}_1k{suffix}_rate": rate(name, each)
            for name in _CONFIGURATIONS
            for suffix, each in (("", False), ("_each", True))
        }

    return Sampled(
        (*_CONFIGURATIONS.values(), SIZE, CLIENTS, SECONDS, RUNS), measure, seeds=(1, 2, 3)
    )
