"""The whole simulated board under fire: pages, counters, and everyone is served on."""

import json
import random
import socket
import struct
import sys

import pytest
from e2e_board import (
    BAD_LINK,
    assert_drained,
    board_in_simulation,
    quiet_counters,
    raw_socket,
    rises,
    status,
    status_counters,
)
from e2e_clients import (
    DISCARD,
    ECHO,
    PAGE_PORT,
    SMP,
    Witness,
    ask,
    ecg_blocks,
    ecg_job,
    echo,
    read_all,
    reset,
    run_clients,
)
from e2e_raw import ACK, RST, SYN, RawPeer, tcp_frame
from patience import PATIENCE
from sim_tops import needs_network
from trebuchet.cores.net.classify import CLASSIFIER_BLOCK
from trebuchet.cores.services.framer import SMP_BLOCK
from trebuchet.cores.services.mailbox import MAILBOX_BLOCK
from trebuchet.cores.tcp.parser import PARSER_BLOCK
from trebuchet.cores.tcp.registers import COUNTERS
from trebuchet.cores.tcp.sender import SENDER_BLOCK
from trebuchet.models.smp_framing import TYPE_DATA, data_message, error_message
from trebuchet.models.status import Status
from trebuchet.sim.defaults import MAC
from trebuchet.soc.firmware import FIRMWARE_DIR

pytestmark = [pytest.mark.slow, needs_network]

SEED = 50
GET_STATUS = b"GET /status HTTP/1.1\r\nHost: board\r\nUser-Agent: test\r\n\r\n"

DATAGRAMS = """
import os, socket, sys
from trebuchet.models.progress import current_simulation
from trebuchet.models.sockets import SimulatedTimeSocket
made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
with SimulatedTimeSocket(current_simulation(), made) as s:
    s.settimeout(20)
    for size in map(int, sys.argv[2:]):
        data = os.urandom(size)
        s.sendto(data, (sys.argv[1], 9))
        s.sendto(data, (sys.argv[1], 7))
        assert s.recv(2000) == data, size
    s.settimeout(0.5)
    try:
        print("unexpected", s.recv(2000))
    except TimeoutError:
        print("silent")
"""


@pytest.fixture(scope="module")
def running():
    with board_in_simulation("--seed", str(SEED)) as board:
        yield board, quiet_counters(board)


@pytest.fixture
def board(running):
    """The module's board, with an echo and an ECG session that go on whatever happens."""
    print(f"seed {SEED}")
    board, _ = running
    with Witness(board, SEED) as witness:
        yield board
        witness.mark()


@pytest.fixture
def rng(request):
    return random.Random(f"{SEED} {request.node.name}")


# --- pages ---------------------------------------------------------------------------------------


def test_status_tells_the_counters_of_every_engine(board):
    state = status(board)
    assert {"version", "board", "uptime_ms", "sessions", "engines"} <= set(state)
    assert state["sessions"] >= 3  # the witness's two and this one
    blocks = (CLASSIFIER_BLOCK, PARSER_BLOCK, SENDER_BLOCK, SMP_BLOCK)
    expected = {b.name: {r.name for r in b.registers if r.access == "ro"} for b in blocks}
    expected["tcp"] = {*COUNTERS, "sessions_used", "segments_free", "descriptors_free"}
    expected[MAILBOX_BLOCK.name] = {"requests", "responses", "dropped"}
    expected["ecg"] = {"jobs", "errors", "cycles"}
    for block, names in expected.items():
        assert names <= set(state["engines"][block]), block


@pytest.mark.parametrize("step", [1, 7])
def test_status_request_in_tiny_segments(board, step):
    with board.connect(80) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(GET_STATUS), step):
            connection.sendall(GET_STATUS[at : at + step])
            board.sleep(0.002)
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(body)["board"] == "sim"


def test_status_for_many_clients_at_once(board):
    """One that has sent half a request keeps nobody waiting, and gets its answer in the end."""
    with board.connect(80) as slow:
        slow.sendall(GET_STATUS[:20])
        run_clients([lambda: status(board)] * 4, 60)
        slow.sendall(GET_STATUS[20:])
        assert read_all(slow).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (b"GET /x HTTP/1.1\r\nHost: b\r\n\r\n", 404),
        (b"DELETE /status HTTP/1.1\r\nHost: b\r\n\r\n", 405),
        (b"\xff\0\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nHost: b\r\nX: " + b"y" * 3000 + b"\r\n\r\n", 431),
    ],
)
def test_wrong_requests(board, request_bytes, code):
    assert ask(board, 80, request_bytes).startswith(b"HTTP/1.1 %d " % code)


def test_request_that_ends_in_the_middle(board):
    with board.connect(80) as connection:
        connection.sendall(GET_STATUS[:30])
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection).startswith(b"HTTP/1.1 400 ")
    with board.connect(80) as connection:
        connection.shutdown(socket.SHUT_WR)
        read_all(connection)


def test_client_that_resets_while_its_page_is_written(board):
    for length in (10, len(GET_STATUS)):
        for _ in range(5):
            connection = board.connect(80)
            connection.sendall(GET_STATUS[:length])
            reset(connection)
    assert status(board)["board"] == "sim"


def test_front_page(board):
    page = (FIRMWARE_DIR / "front.html").read_bytes()
    head, _, body = ask(board, 80, b"GET / HTTP/1.1\r\nHost: b\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
    assert body == page
    again, _, body = ask(board, 80, b"HEAD / HTTP/1.1\r\nHost: b\r\n\r\n").partition(b"\r\n\r\n")
    assert (again, body) == (head, b"")


def test_fixed_page(board):
    pages = [ask(board, PAGE_PORT, b"GET / HTTP/1.1\r\nHost: b\r\n\r\n") for _ in range(3)]
    head, _, body = pages[0].partition(b"\r\n\r\n")
    assert len(pages[0]) == 1024
    assert f"Content-Length: {len(body)}".encode() in head
    assert pages[0] == pages[1] == pages[2]


# --- beside TCP ----------------------------------------------------------------------------------


def test_datagrams_beside_tcp(board):
    sizes = [1, 2, 17, 18, 19, 64, 999, 1471, 1472]
    done = board.run([sys.executable, "-c", DATAGRAMS, board.ip, *map(str, sizes)])
    assert done.stdout == "silent\n", done.stderr


def test_boards_are_found(board):
    command = [sys.executable, "-m", "trebuchet.host.cli", "discover", "--json", "--wait", "3"]
    done = board.run(command, timeout=120)
    (found,) = json.loads(done.stdout)
    assert (found["address"], found["board"], found["roles"]) == (board.ip, "sim", ["ecg"])
    assert found["mac"] == MAC


def test_address_resolution(board):
    """Asked by a stranger, the board tells its address (RFC 826)."""
    mine, mac = "192.0.2.66", b"\x02\0\0\1\0\x42"
    with board.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind(("tap0", 0x0806))
        wire.settimeout(20)
        request = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac + socket.inet_aton(mine)
        request += bytes(6) + socket.inet_aton(board.ip)
        wire.send(b"\xff" * 6 + mac + b"\x08\x06" + request)
        answer = wire.recv(100)
        while answer[:6] != mac:
            answer = wire.recv(100)
    there = bytes.fromhex(MAC.replace(":", ""))
    assert answer[20:22] == b"\0\2"
    assert answer[22:32] == there + socket.inet_aton(board.ip)


# --- bad input -----------------------------------------------------------------------------------


def test_bad_messages_are_answered_and_counted(board, rng):
    before = status_counters(board)
    with board.connect(SMP) as connection:
        connection.sendall(data_message(7, bytes(100)))
        assert connection.recv(100) == error_message(Status.BAD_LENGTH, 7)
        ecg_job(connection, 8, *ecg_blocks(rng, 1))
        connection.sendall(struct.pack("<B3xI", TYPE_DATA, 40_000))
        assert read_all(connection) == error_message(Status.TOO_LARGE)
    with board.connect(SMP) as connection:
        connection.sendall(struct.pack("<B3xI", 9, 4) + bytes(4))
        assert read_all(connection) == error_message(Status.BAD_TYPE)
    rises(
        lambda: status_counters(board),
        before,
        smp__bad_length=1,
        smp__too_large=1,
        smp__bad_type=1,
        ecg__errors=1,
    )


def test_client_that_vanishes_half_way(board, rng):
    before = status_counters(board)
    connection = board.connect(SMP)
    connection.sendall(data_message(1, rng.randbytes(8192))[:5000])
    board.sleep(0.5)
    reset(connection)
    rises(lambda: status_counters(board), before, tcp__rst_rx=1, smp__aborted=1)


def test_closed_ports(board):
    before = status_counters(board)
    for port in (1, 79, 4001):
        with pytest.raises(ConnectionRefusedError):
            board.connect(port)
    rises(lambda: status_counters(board), before, tcp__unknown=3, tcp__rst_tx=3)


def test_garbage_frames(board, rng):
    before = status_counters(board)
    mac = tcp_frame("192.0.2.1", board.ip, 1, 2, 0)[:6]
    with raw_socket(board) as wire:
        for _ in range(300):
            head = rng.choice([mac, b"\xff" * 6, rng.randbytes(6)]) + rng.randbytes(6)
            head += rng.choice([b"\x08\0", b"\x08\6", b"\x86\xdd", b"\x81\0", rng.randbytes(2)])
            wire.send(head + rng.randbytes(rng.choice([0, 1, 46, rng.randint(0, 1500)])))
            board.sleep(0.002)
        for _ in range(300):
            frame = bytearray(tcp_frame("192.0.2.9", board.ip, 9, ECHO, ACK, payload=bytes(50)))
            frame[rng.randrange(14, len(frame))] ^= 1 << rng.randrange(8)
            wire.send(bytes(frame))
            board.sleep(0.002)
    rises(lambda: status_counters(board), before, tcp_rx__tcp_checksum=50, tcp_rx__ip_checksum=10)


def test_flood_of_half_open_connections(board):
    before = status_counters(board)
    ports = range(20_000, 20_100)
    with RawPeer(board, "192.0.2.99") as peer:
        for port in ports:
            peer.send(port, ECHO, SYN, seq=port)
            board.sleep(0.003)
        board.sleep(1)
        for port in ports:  # else the board would wait for a minute
            peer.send(port, ECHO, RST, seq=port + 1)
            board.sleep(0.003)
    rises(
        lambda: status_counters(board),
        before,
        tcp__syn_rx=100,
        tcp__refused_half_open=20,
        tcp__rst_rx=30,
    )


def test_everything_is_back_afterwards(running):
    board, fresh = running
    assert_drained(lambda: quiet_counters(board), fresh)


# --- bad link ------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_connections_over_a_bad_link():
    print(f"seed {SEED}")
    with board_in_simulation(*BAD_LINK, "--seed", str(SEED)) as board:
        fresh = quiet_counters(board)

        def client(number):
            rng = random.Random(f"{SEED} link {number}")
            port = (ECHO, SMP, DISCARD, 80)[number % 4]
            if port == 80:
                for _ in range(2):
                    assert status(board)["board"] == "sim"
                return
            with board.connect(port, timeout=90 * PATIENCE) as connection:
                if port == ECHO:
                    echo(connection, rng.randbytes(rng.randint(1, 20_000)))
                elif port == SMP:
                    for ident, block in enumerate(ecg_blocks(rng, 2)):
                        ecg_job(connection, ident, block)
                else:
                    connection.sendall(rng.randbytes(10_000))
                connection.shutdown(socket.SHUT_WR)
                assert read_all(connection) == b""

        run_clients([lambda n=n: client(n) for n in range(16)], 100)
        assert_drained(lambda: quiet_counters(board), fresh)
        stats = board.stats()
        for way in ("to_board", "from_board"):
            assert stats[way]["lost"] > 0
        assert stats["link_errors"] == 0
