"""Flow control, closing and reuse of sessions: kernel clients on a good link."""

import contextlib
import errno
import random
import socket
import threading
import time

import pytest
from e2e_board import ROOM, assert_drained, fabric_in_simulation, rise
from e2e_clients import (
    DISCARD,
    ECHO,
    PAGE_PORT,
    SMP,
    ask,
    ecg_blocks,
    ecg_job,
    echo,
    read_all,
    read_exactly,
    reset,
    run_clients,
)
from patience import PATIENCE, join, wait_until
from sim_tops import needs_network
from trebuchet.models.ecg import model
from trebuchet.models.smp_framing import data_message
from trebuchet.sim.defaults import PAGE

pytestmark = [pytest.mark.slow, needs_network]

SEED = 30
GET = b"GET / HTTP/1.1\r\nHost: board\r\n\r\n"


@pytest.fixture(scope="module")
def running():
    with fabric_in_simulation("--seed", str(SEED), impatient=True) as board:
        yield board, board.counters()


@pytest.fixture
def board(running):
    """The module's board; whatever the test did, it must be drained afterwards."""
    print(f"seed {SEED}")
    board, fresh = running
    yield board
    assert_drained(board.counters, fresh)


@pytest.fixture
def rng(request):
    return random.Random(f"{SEED} {request.node.name}")


def small_window(board, port, size=2304):
    """A connection whose receive buffer is so small that its window soon closes."""
    connection = board.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    connection.settimeout(30)
    connection.connect((board.ip, port))
    return connection


@pytest.mark.parametrize("size", [1, 1459, 1460, 1461, 2920, 32768, 65536, 200_000])
def test_echo_of_every_size(board, rng, size):
    with board.connect(ECHO) as connection:
        echo(connection, rng.randbytes(size))


def test_discard_swallows_everything(board, rng):
    before = board.counters()
    with board.connect(DISCARD) as connection:
        connection.sendall(rng.randbytes(150_000))
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b""
    assert "tcp.rst_tx" not in rise(before, board.counters())


def test_page(board):
    for _ in range(5):
        assert ask(board, PAGE_PORT, GET) == PAGE


def test_page_in_tiny_segments(board):
    with board.connect(PAGE_PORT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in GET:
            connection.sendall(bytes([byte]))
        assert read_all(connection) == PAGE


def test_client_that_does_not_read_and_then_does(board, rng):
    """Its window closes; the board probes it, waits, and goes on where it stopped."""
    data = rng.randbytes(120_000)
    before = board.counters()
    with small_window(board, ECHO) as connection:
        sender = threading.Thread(target=connection.sendall, args=(data,), daemon=True)
        sender.start()
        wait_until(
            lambda: rise(before, board.counters()).get("tcp.zero_window_probes", 0) >= 2,
            20,
            "no probes of the closed window",
        )
        assert read_exactly(connection, len(data)) == data
        join(sender, 30)


def fill(connection, rng):
    """Send without reading until nothing more is taken."""
    connection.settimeout(1)
    with contextlib.suppress(TimeoutError):
        while True:
            connection.sendall(rng.randbytes(5000))


def test_one_that_does_not_read_stops_no_other(board, rng):
    with small_window(board, ECHO) as stuck:
        fill(stuck, rng)
        with board.connect(ECHO) as connection:
            echo(connection, rng.randbytes(100_000))
        with board.connect(SMP) as connection:
            ecg_job(connection, 1, *ecg_blocks(rng, 1))
        reset(stuck)


def test_slow_sender(board, rng):
    data = rng.randbytes(300)
    with board.connect(ECHO) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), 3):
            connection.sendall(data[at : at + 3])
            board.sleep(0.01)
        assert read_exactly(connection, len(data)) == data


def test_slow_reader(board, rng):
    data = rng.randbytes(60_000)
    with small_window(board, ECHO, 4096) as connection:
        sender = threading.Thread(target=connection.sendall, args=(data,), daemon=True)
        sender.start()
        back = bytearray()
        while len(back) < len(data):
            chunk = connection.recv(1000)
            assert chunk
            back += chunk
            board.sleep(0.005)
        join(sender, 30)
    assert back == data


@pytest.mark.parametrize("size", [0, 1, 40_000])
def test_half_close_returns_the_rest(board, rng, size):
    data = rng.randbytes(size)
    with board.connect(ECHO) as connection:

        def send():
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        assert read_all(connection) == data
        join(sender, 30)


def test_half_close_with_jobs_under_way(board, rng):
    blocks = ecg_blocks(rng, 3)
    with board.connect(SMP) as connection:
        for ident, block in enumerate(blocks):
            connection.sendall(data_message(ident, block.astype("<i2").tobytes()))
        connection.shutdown(socket.SHUT_WR)
        answers = [data_message(i, model.classify_block(b)) for i, b in enumerate(blocks)]
        assert read_all(connection) == b"".join(answers)


def test_client_closes_first_and_board_closes_first(board):
    before = board.counters()
    connection = board.connect(ECHO)
    connection.shutdown(socket.SHUT_WR)
    assert read_all(connection) == b""
    connection.close()
    connection = board.connect(PAGE_PORT)
    connection.sendall(GET)
    assert read_all(connection) == PAGE  # its FIN has come: the client closes second
    connection.close()
    assert "tcp.rst_rx" not in rise(before, board.counters())


def test_client_that_closes_without_reading(board, rng):
    """The kernel answers the echo of a closed socket with RST."""
    before = board.counters()
    for _ in range(5):
        connection = board.connect(ECHO)
        connection.sendall(rng.randbytes(20_000))
        connection.close()
    wait_until(lambda: rise(before, board.counters()).get("tcp.rst_rx", 0) >= 5, 20, "no resets")


@pytest.mark.parametrize("port", [ECHO, DISCARD, SMP, PAGE_PORT])
def test_reset_in_every_service(board, rng, port):
    before = board.counters()
    for size in (0, 1, 7, 8, 4000):
        connection = board.connect(port)
        connection.sendall(rng.randbytes(size))
        reset(connection)
    wait_until(lambda: rise(before, board.counters()).get("tcp.rst_rx", 0) >= 1, 20, "no resets")
    assert ask(board, PAGE_PORT, GET) == PAGE


def test_two_hundred_connections_in_a_row(board, rng):
    before = board.counters()
    for _ in range(200):
        with board.connect(ECHO) as connection:
            echo(connection, rng.randbytes(rng.randint(1, 100)))
    assert rise(before, board.counters())["tcp.established"] == 200


def connect_from(board, port, source_port):
    """Connect as soon as the kernel has forgotten the last connection from that port."""
    while True:
        try:
            return board.connect(port, source_port=source_port)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
        time.sleep(0.01)


def test_same_port_again_after_the_board_closed(board):
    """The board waits in TIME-WAIT; a new SYN from the same port replaces that session."""
    before = board.counters()
    for _ in range(5):
        with connect_from(board, PAGE_PORT, 45_000) as connection:
            connection.sendall(GET)
            assert read_all(connection) == PAGE
    risen = rise(before, board.counters())
    assert risen["tcp.established"] == 5
    assert risen["tcp.time_wait_reused"] > 0


def test_more_connections_than_sessions(board, rng):
    """Those beyond a service's slots are taken when the kernel asks again, and are served."""
    before = board.counters()
    full = threading.Event()

    def client(seed):
        rng = random.Random(seed)
        with board.connect(ECHO, timeout=60 * PATIENCE) as connection:
            echo(connection, rng.randbytes(100))
            full.wait()
            echo(connection, rng.randbytes(2000))

    def release():
        wait_until(
            lambda: (
                board.counters()["tcp.sessions_used"] == ROOM
                and rise(before, board.counters()).get("tcp.refused_full", 0) > 0
            ),
            25,
            "the service's slots were not filled",
        )
        full.set()

    extra = 16
    clients = [lambda n=n: client(f"{SEED} full {n}") for n in range(ROOM + extra)]
    run_clients([*clients, release], 75)
    assert rise(before, board.counters())["tcp.established"] == ROOM + extra
