"""Thousands of idle connections, whose records are in external memory, beside one at work.

A connection that is held open is at rest: its record leaves the chip, and has to be found again
when its peer says something, at the latest when it closes.
"""

import json
import random
import resource
import select
import socket
import sys

import pytest
from e2e_board import assert_drained, know_address, quiet_counters, status_counters
from e2e_clients import DISCARD, ECHO, PAGE_PORT, SMP, ecg_blocks, ecg_job, echo
from patience import Patience, wait_until
from sim_tops import needs_network
from trebuchet.boards.presets import TCP_PRESETS, TcpChoice
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

pytestmark = needs_network

MEDIUM = TcpChoice("medium")
MEDIUM_PLACES = TCP_PRESETS["medium"].places
#: Connections that open at the same time: their SYNs fit the board's receive buffer.
AT_ONCE = 32
#: Source addresses, in turn; the first one is the network's own.
SOURCES = ("192.0.2.1", "192.0.2.11", "192.0.2.12")
SEED = 11


class Idle:
    """``count`` connections of the kernel to ``ports`` in turn, held open by this process."""

    def __init__(self, board, ports, count, seconds):
        for address in SOURCES[1:]:
            done = board.run(["ip", "address", "replace", f"{address}/24", "dev", "tap0"])
            assert done.returncode == 0, done.stderr
        patience, poll, waiting = Patience(seconds), select.epoll(), {}
        self.sockets = []
        while waiting or len(self.sockets) < count:
            while len(self.sockets) < count and len(waiting) < AT_ONCE:
                number = len(self.sockets)
                s = self._connect(board, ports[number % len(ports)], number)
                self.sockets.append(s)
                waiting[s.fileno()] = s
                poll.register(s, select.EPOLLOUT)
            for handle, _ in poll.poll(1):
                poll.unregister(handle)
                error = waiting.pop(handle).getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                assert not error, f"{len(self.sockets)} are open, one has error {error}"
            assert not patience.over(), f"{len(waiting)} of {len(self.sockets)} do not open"
        poll.close()

    @staticmethod
    def _connect(board, port, number):
        s = board.socket()
        s.setblocking(False)
        s.bind((SOURCES[number % len(SOURCES)], 0))
        s.connect_ex((board.ip, port))
        return s

    def check(self):
        """None has been closed or reset."""
        for number, s in enumerate(self.sockets):
            with pytest.raises(BlockingIOError):
                pytest.fail(f"connection {number} has {s.recv(1)!r}")

    def speak(self, ports, numbers):
        """Connections that were silent have a text echoed."""
        rng = random.Random(SEED)
        for number in numbers:
            assert ports[number % len(ports)] == ECHO
            self.sockets[number].settimeout(100)
            echo(self.sockets[number], rng.randbytes(100))
            self.sockets[number].setblocking(False)

    def close(self, counters):
        """Close all, in random order, a few at a time: the board's buffer would lose most FINs."""
        left = random.Random(SEED).sample(self.sockets, len(self.sockets))
        while left:
            for s in left[-AT_ONCE:]:
                s.close()
            del left[-AT_ONCE:]
            most = len(left) + AT_ONCE
            wait_until(lambda n=most: counters()["tcp.sessions_used"] <= n, 60, "not closed")


@pytest.fixture
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 5000:
        pytest.skip(f"a process may have {hard} files here, not 5000")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 5000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def settled(counters, fresh, count):
    """All are established: none waits for the ACK of its SYN-ACK, which a full buffer may lose."""

    def there():
        now = counters()
        risen = now["tcp.established"] - fresh["tcp.established"]
        return risen >= count and now["tcp.half_open"] == 0

    wait_until(there, 60, "not all are established")


@pytest.mark.slow
def test_two_thousand_idle_connections(many_files):
    """Eight times as many as the cache holds; then all are closed, in random order."""
    ports, count = (ECHO, DISCARD, SMP, PAGE_PORT), 2000
    with Board(build(source("fabric", tcp=MEDIUM)), uart="none") as board:
        know_address(board)
        fresh = board.counters()
        idle = Idle(board, ports, count, 60)
        settled(board.counters, fresh, count)
        idle.speak(ports, range(0, count, 200))
        with board.connect(SMP) as connection:
            for ident, block in enumerate(ecg_blocks(random.Random(SEED), 3)):
                ecg_job(connection, ident, block)
        with board.connect(ECHO) as connection:
            echo(connection, random.Random(SEED).randbytes(3000))
        idle.check()
        idle.close(board.counters)
        assert_drained(board.counters, fresh, seconds=60)
        now = board.counters()
        assert now["tcp.unknown"] == now["tcp.rst_tx"] == 0
        free = [value for name, value in now.items() if name.startswith("tcp.places_free_")]
        assert free == [MEDIUM_PLACES] * 5  # for each service, the mailbox among them
        assert board.stats()["link_errors"] == 0


@pytest.mark.nightly
def test_a_board_with_thousands_of_idle_connections(many_files):
    """Whole SoC: a record and its list of sessions meanwhile, and nothing is left afterwards."""
    ports, count = (ECHO, DISCARD, SMP, PAGE_PORT), 3500
    made = source("board", tcp=MEDIUM)
    with Board(build(made), cwd=made.folder, ready="ready") as board:
        know_address(board)
        fresh = quiet_counters(board)
        idle = Idle(board, ports, count, 300)
        settled(lambda: status_counters(board), fresh, count)
        idle.speak(ports, range(0, count, 500))

        def run(*arguments):
            command = [sys.executable, "-m", "trebuchet.host.cli", *arguments]
            done = board.run(command, timeout=600)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        record = ("--record", "synthetic", "--minutes", "0.2", "--json", "--independent")
        assert run("ecg", "run", board.ip, *record)["differing_messages"] == 0
        pages = ("sessions", board.ip, "--json", "--timeout", "300")
        first = run(*pages, "--limit", "30")
        assert len(first) == 30
        assert [row["state"] for row in first].count("ESTABLISHED") >= 28
        following = str(first[-1]["session"] + 1)
        second = run(*pages, "--from", following, "--limit", "5")
        assert [row["session"] for row in second] == [int(following) + k for k in range(5)]
        assert run(*pages, "--from", "4000") == []
        idle.check()
        idle.close(lambda: status_counters(board))
        assert_drained(lambda: quiet_counters(board), fresh, seconds=120)
        now = status_counters(board)
        assert now["tcp.unknown"] == now["tcp.rst_tx"] == 0
