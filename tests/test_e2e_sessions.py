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
from e2e_crowd import Crowd
from patience import Patience, wait_until
from sim_tops import needs_network
from trebuchet.boards.presets import TCP_PRESETS, TcpChoice
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

pytestmark = needs_network

PORTS = (ECHO, DISCARD, SMP, PAGE_PORT)
MEDIUM, FULL = TcpChoice("medium"), TcpChoice("full")
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


def repeated(board):
    """Segments that the kernel has sent again: late ones belong to no session."""
    lines = board.run(["cat", "/proc/net/snmp"]).stdout.splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def settled(counters, fresh, count):
    """All are established: none waits for the ACK of its SYN-ACK, which a full buffer may lose."""

    def there():
        now = counters()
        risen = now["tcp.established"] - fresh["tcp.established"]
        return risen >= count and now["tcp.half_open"] == 0

    wait_until(there, 60, "not all are established")


@pytest.mark.slow
def test_a_crowd_without_sockets():
    """What opens a hundred thousand, on the shell of 64: all open, are probed, and close."""
    count = 40
    with Board(build(source("fabric")), uart="none") as board:
        know_address(board)
        fresh = board.counters()
        with Crowd(board, count, PORTS, at_once=16) as crowd:
            crowd.open()
            assert board.counters()["tcp.sessions_used"] == count
            with board.connect(SMP) as connection:
                ecg_job(connection, 1, *ecg_blocks(random.Random(SEED), 1))
            board.hurry(61_000)  # keep-alive
            wait_until(lambda: crowd.probed >= count, 60, "not all are probed")
            crowd.close()
            assert (crowd.opened, crowd.closed) == (count, count)
            assert_drained(board.counters, fresh)
        now = board.counters()
        assert now["tcp.rst_tx"] == crowd.late
        assert now["tcp.challenge_acks"] <= crowd.repeated
        assert now["tcp.timeouts"] == board.stats()["link_errors"] == 0


@pytest.mark.slow
def test_two_thousand_idle_connections(many_files):
    """Eight times as many as the cache holds; then all are closed, in random order."""
    ports, count = PORTS, 2000
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
        assert now["tcp.unknown"] == now["tcp.rst_tx"] <= repeated(board)
        free = [value for name, value in now.items() if name.startswith("tcp.places_free_")]
        assert free == [MEDIUM_PLACES] * 5  # for each service, the mailbox among them
        assert board.stats()["link_errors"] == 0


def command(board, *arguments):
    """What ``trebuchet`` prints as JSON, on the board's network."""
    words = [sys.executable, "-m", "trebuchet.host.cli", *arguments]
    done = board.run(words, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def record_is_right(board):
    """A record goes through the board as through the golden model."""
    record = ("--record", "synthetic", "--minutes", "0.2", "--json", "--independent")
    assert command(board, "ecg", "run", board.ip, *record)["differing_messages"] == 0


def page_of(board, start, limit):
    """Sessions from number ``start`` on, at most ``limit``."""
    page = ("--from", str(start), "--limit", str(limit))
    return command(board, "sessions", board.ip, "--json", "--timeout", "300", *page)


@pytest.mark.nightly
def test_a_board_with_thousands_of_idle_connections(many_files):
    """Whole SoC: a record and its list of sessions meanwhile, and nothing is left afterwards."""
    ports, count = PORTS, 3500
    made = source("board", tcp=MEDIUM)
    with Board(build(made), cwd=made.folder, ready="ready") as board:
        know_address(board)
        fresh = quiet_counters(board)
        idle = Idle(board, ports, count, 300)
        settled(lambda: status_counters(board), fresh, count)
        idle.speak(ports, range(0, count, 500))
        record_is_right(board)
        first = page_of(board, 0, 30)
        assert len(first) == 30
        assert [row["state"] for row in first].count("ESTABLISHED") >= 28
        following = first[-1]["session"] + 1
        second = page_of(board, following, 5)
        assert [row["session"] for row in second] == [following + k for k in range(5)]
        assert page_of(board, 4000, 10) == []
        idle.check()
        idle.close(lambda: status_counters(board))
        assert_drained(lambda: quiet_counters(board), fresh, seconds=120)
        now = status_counters(board)
        assert now["tcp.unknown"] == now["tcp.rst_tx"] <= repeated(board)


def quiet(board):
    """:func:`status_counters` when earlier requests' TIME-WAIT is over; ticks follow cycles."""
    board.pass_ticks(1300)
    return status_counters(board)


def walk_through(board, crowd, pages, rows=25):
    """Pages of the list of sessions from the first number to the last: each has its own peer."""
    names, found = set(crowd.names()), []
    last = status_counters(board)["tcp.sessions_high"] - rows
    for k in range(pages):
        page = page_of(board, last * k // (pages - 1), rows)
        theirs = [row for row in page if row["peer"] in names]
        assert len(theirs) >= rows - 3, page  # the rest are requests, or were
        assert {row["state"] for row in theirs} == {"ESTABLISHED"}
        found += theirs
    for column in ("peer", "session"):
        assert len({row[column] for row in found}) == len(found)
    assert page_of(board, last + rows + 3, 10) == []


@pytest.mark.nightly
@pytest.mark.cpu_limit(20_000)
def test_a_board_with_a_hundred_thousand_idle_connections():
    """The same with preset full; nearly all records are in external memory all the time.

    Ticks follow cycles: while the machine simulates the opening, which is a second of a real board,
    minutes pass, after which the board would probe all connections by keep-alive, again and again.
    """
    count, made = 100_000, source("board", tcp=FULL)
    with Board(build(made), cwd=made.folder, ready="ready", time="cycles:1000") as board:
        know_address(board)
        fresh = quiet(board)
        with Crowd(board, count, PORTS, at_once=48) as crowd:
            crowd.open()
            record_is_right(board)
            used = status_counters(board)["tcp.sessions_used"]
            assert used - fresh["tcp.sessions_used"] >= count
            walk_through(board, crowd, pages=10)
            crowd.close()
        assert_drained(lambda: quiet(board), fresh, seconds=120)
        now = quiet(board)
        places = [name for name in now if name.startswith("tcp.places_free_")]
        assert [now[name] for name in places] == [fresh[name] for name in places]
        assert now["tcp.timeouts"] == 0
        assert now["tcp.unknown"] == now["tcp.rst_tx"] == crowd.late
