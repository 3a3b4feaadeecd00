"""A thousand connections of the kernel at once; goodput under loss."""

import random
import resource
import selectors
import socket

import pytest
from e2e_board import assert_drained, know_address
from e2e_clients import ECHO, echo, run_clients
from patience import PATIENCE, Patience, wait_until
from peer_stacks import large_fabric
from sim_tops import needs_network
from trebuchet.sim.run import Board

pytestmark = pytest.mark.slow

CONNECTIONS = 1000
#: Two in a hundred are larger than a window.
MOST, LARGEST = 700, 70_000
SEED = 7


class Client:
    """One connection of a crowd: sends its text when told to, wants it back, then its end."""

    def __init__(self, board, number):
        rng = random.Random(f"{SEED} {number}")
        size = rng.randint(1, LARGEST if number % 50 == 0 else MOST)
        self.text, self.number = rng.randbytes(size), number
        self.sent, self.got = 0, 0
        self.socket = board.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex((board.ip, ECHO))
        self.connected = self.done = False

    def ready(self, mask):
        """Do what can be done; returns the events to wait for next."""
        if mask & selectors.EVENT_WRITE:
            error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            assert not error, f"client {self.number}: error {error}"
            self.connected = True
        if mask & selectors.EVENT_READ:
            chunk = self.socket.recv(65536)
            expected = self.text[self.got : self.got + len(chunk)]
            assert chunk == expected, f"client {self.number}: wrong from byte {self.got} on"
            self.got += len(chunk)
            self.done = not chunk
            assert chunk or self.got == len(self.text), f"client {self.number}: early end"

    def send(self):
        if self.sent < len(self.text):
            self.sent += self.socket.send(self.text[self.sent :])
            if self.sent == len(self.text):
                self.socket.shutdown(socket.SHUT_WR)


def crowd(board, seconds):
    """All connect; when all are there, all send; each must get its own back."""
    patience = Patience(seconds)
    clients = [Client(board, number) for number in range(CONNECTIONS)]
    both = selectors.EVENT_READ | selectors.EVENT_WRITE
    with selectors.DefaultSelector() as poll:
        for client in clients:
            poll.register(client.socket, selectors.EVENT_WRITE, client)
        while waiting := sum(not c.connected for c in clients):
            assert not patience.over(), f"{waiting} have not connected"
            for key, mask in poll.select(1):
                key.data.ready(mask)
                poll.modify(key.fileobj, selectors.EVENT_READ, key.data)
        wait_until(lambda: board.counters()["tcp.sessions_used"] >= CONNECTIONS, 10, "not at once")
        for client in clients:
            poll.modify(client.socket, both, client)
        while waiting := sum(not c.done for c in clients):
            assert not patience.over(), f"{waiting} hang"
            for key, mask in poll.select(1):
                client = key.data
                client.ready(mask & selectors.EVENT_READ)
                if client.done:
                    poll.unregister(client.socket)
                elif mask & selectors.EVENT_WRITE:
                    client.send()
                    if client.sent == len(client.text):
                        poll.modify(client.socket, selectors.EVENT_READ, client)
    for client in clients:
        client.socket.close()


@pytest.fixture
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < CONNECTIONS + 100:
        pytest.skip(f"a process may have {hard} files here, not {CONNECTIONS + 100}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, CONNECTIONS + 100), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.nightly
@needs_network
def test_a_thousand_connections_of_the_kernel(many_files):
    """Open at the same time, over a link that loses 10 % each way and does worse things."""
    link = ["--loss", "10%", "--reorder", "3%", "--duplicate", "1%", "--corrupt", "1%"]
    with Board(large_fabric(), [*link, "--seed", str(SEED)], uart="none") as board:
        know_address(board)
        fresh = board.counters()
        crowd(board, 60)
        now = board.counters()
        assert now["tcp.established"] - fresh["tcp.established"] == CONNECTIONS
        assert now["tcp.retransmits"] > 0
        assert_drained(board.counters, fresh)
        assert board.stats()["link_errors"] == 0


@pytest.mark.nightly
@needs_network
def test_eight_megabytes_both_ways():
    """The longest transfer, with a frame in a hundred lost."""
    with Board(large_fabric(), ["--loss", "1%", "--seed", str(SEED)], uart="none") as board:
        know_address(board)
        fresh = board.counters()
        with board.connect(ECHO, timeout=100 * PATIENCE) as connection:
            echo(connection, random.Random(SEED).randbytes(8_000_000))
        assert board.counters()["tcp.fast_retransmits"] > 0
        assert_drained(board.counters, fresh)


# --- goodput --------------------------------------------------------------------------------------


STREAMS, BYTES = 4, 500_000


def cycles(*link):
    """In how many clock cycles the kernel's connections have so many bytes echoed, all at once."""
    with Board(large_fabric(), [*link, "--seed", str(SEED)], uart="none") as board:
        know_address(board)
        texts = [random.Random(f"{SEED} {n}").randbytes(BYTES) for n in range(STREAMS)]
        connections = [board.connect(ECHO, timeout=60 * PATIENCE) for _ in texts]
        for connection in connections:
            echo(connection, b"there")
        start = board.simulation.cycles
        pairs = zip(connections, texts, strict=True)
        run_clients([lambda c=c, t=t: echo(c, t) for c, t in pairs], 100)
        for connection in connections:
            connection.close()
        return board.simulation.cycles - start


@needs_network
def test_goodput_with_one_percent_of_loss():
    """At least half of what it is without loss. Another job on the machine may spoil one try."""
    for _ in range(3):
        clean, lossy = cycles(), cycles("--loss", "1%")
        print(f"{clean} cycles clean, {lossy} with loss: {clean / lossy:.2f}")
        if lossy <= 2 * clean:
            return
    pytest.fail("less than half of the goodput")
