"""Running boards for the end-to-end tests: their tops, and what must be true of them afterwards."""

import contextlib
import json
import socket
import sys
import time

from patience import Patience, wait_until
from trebuchet.cores.shell_config import ShellConfig
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.sim.build import build
from trebuchet.sim.defaults import MAC
from trebuchet.sim.fabric import fabric_source
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

__all__ = [
    "BAD_LINK",
    "ROOM",
    "SESSIONS",
    "assert_drained",
    "board_in_simulation",
    "fabric_in_simulation",
    "impatient_fabric",
    "know_address",
    "quiet_counters",
    "raw_socket",
    "rise",
    "status",
    "status_counters",
    "stores",
    "wait_until",
]

#: Both ways, as in the issue's list of what is judged.
BAD_LINK = ("--loss", "3%", "--reorder", "5%", "--duplicate", "2%", "--corrupt", "1%")
SESSIONS = 64
#: Sessions that one service can have: what the reserves of the others leave.
ROOM = ShellConfig().tcp.per_service

#: Times of an impatient fabric: seconds where it would be minutes.
_TIMES = {
    "syn_retries": 2,
    "retries": 5,
    "keepalive_retries": 2,
    "keepalive_idle": 4000,
    "keepalive_interval": 500,
    "user_timeout": 8000,
    "time_wait": 500,
}

#: What must be as it was when the board was fresh, by the engine's registers.
_STORES = ("sessions_used", "half_open", "segments_free", "descriptors_free")

#: More than the board's TIME-WAIT, in its ticks.
_QUIET = 1300

_STATIC_ARP = """
import fcntl, socket, struct, sys
ip, mac = socket.inet_aton(sys.argv[1]), bytes.fromhex(sys.argv[2].replace(":", ""))
request = struct.pack("=HH4s8x", socket.AF_INET, 0, ip)
request += struct.pack("=H6s8x", 1, mac) + struct.pack("=i16s16s", 6, bytes(16), b"tap0")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, 0x8955, request)
"""


def know_address(board):
    """A fixed ARP entry for the board: address resolution is not what a bad link is to test."""
    done = board.run([sys.executable, "-c", _STATIC_ARP, board.ip, MAC])
    assert done.returncode == 0, done.stderr


def impatient_fabric():
    """The program of a shell without CPU that gives vanished peers up within seconds.

    When too many handshakes are under way it sends SYN cookies.
    """
    return build(fabric_source(TcpConfig(cookies=True), csr={"csr_tcp": _TIMES}))


@contextlib.contextmanager
def fabric_in_simulation(*arguments, impatient=False):
    """The shell without CPU, or the :func:`impatient_fabric`."""
    made = impatient_fabric() if impatient else build(source("fabric"))
    with Board(made, arguments, uart="none") as board:
        know_address(board)
        yield board


@contextlib.contextmanager
def board_in_simulation(*arguments, plan=None, **options):
    """The whole SoC, once its firmware is ready; ``plan`` and ``options``: of its source."""
    made = source("board", plan, **options)
    with Board(build(made), arguments, cwd=made.folder, ready="ready") as board:
        know_address(board)
        yield board


def rise(before, after):
    """Registers that have changed, and by how much (modulo the width of a counter)."""
    return {
        name: (value - before[name]) % (1 << 32)
        for name, value in after.items()
        if value != before[name]
    }


def rises(counters, before, **least):
    """Wait until ``counters()`` have risen by at least that much; ``smp__errors`` is smp.errors."""
    names = {name.replace("__", "."): value for name, value in least.items()}

    def enough():
        risen = rise(before, counters())
        return all(risen.get(name, 0) >= value for name, value in names.items())

    wait_until(enough, 20, f"counters did not rise by {names}")


def stores(counters):
    """The engine's stores as ``{register: value}``."""
    return {name: counters[f"tcp.{name}"] for name in _STORES}


def assert_drained(counters, fresh, seconds=40, pause=0.1):
    """Wait until all sessions, segments and descriptors are back where they were at ``fresh``.

    ``counters`` is a function that reads them, every ``pause`` seconds; of a board with a CPU it is
    :func:`quiet_counters`.
    """
    patience = Patience(seconds)
    while stores(now := counters()) != stores(fresh):
        assert not patience.over(), f"not drained: {stores(now)}, fresh: {stores(fresh)}"
        time.sleep(pause)


def status(board):
    """The board's ``GET /status``."""
    with board.connect(80) as connection:
        connection.sendall(b"GET /status HTTP/1.1\r\nHost: board\r\n\r\n")
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    return json.loads(body)


def status_counters(board):
    """The same as :meth:`Board.counters`, from a board that has a CPU to ask."""
    engines = status(board)["engines"]
    return {f"{block}.{name}": value for block, of in engines.items() for name, value in of.items()}


def quiet_counters(board):
    """:func:`status_counters` once no session of an earlier request is in TIME-WAIT.

    The request itself is a session. Asked in quick succession, one finds its predecessors too, so
    stores that are compared are read by this, before and after.
    """
    board.hurry(_QUIET)
    return status_counters(board)


def raw_socket(board):
    """A packet socket on the wire: sends any frame, sees every IPv4 frame from the board."""
    s = board.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind(("tap0", 0x0800))
    return s
