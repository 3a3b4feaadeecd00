"""Bad input on the fabric: the defined answer, a counter that rises, and everyone else goes on."""

import contextlib
import random
import socket
import struct

import pytest
from e2e_board import (
    SESSIONS,
    assert_drained,
    fabric_in_simulation,
    raw_socket,
    rise,
    rises,
)
from e2e_clients import ECHO, PAGE_PORT, SMP, Witness, ecg_blocks, ecg_job, read_all, reset
from e2e_raw import ACK, FIN, PSH, RST, SYN, RawPeer, tcp_frame
from patience import wait_until
from sim_tops import needs_network
from trebuchet.cores.tcp.config import TINY
from trebuchet.models.smp_framing import (
    TYPE_CONFIGURATION,
    TYPE_DATA,
    TYPE_RESPONSE,
    data_message,
    error_message,
)
from trebuchet.models.status import Status

pytestmark = [pytest.mark.slow, needs_network]

SEED = 40


@pytest.fixture(scope="module")
def running():
    with fabric_in_simulation("--seed", str(SEED), impatient=True) as board:
        yield board, board.counters()


@pytest.fixture
def board(running):
    """The module's board with an echo and an ECG session that go on; drained afterwards."""
    print(f"seed {SEED}")
    board, fresh = running
    with Witness(board, SEED) as witness:
        yield board
        witness.mark()
    assert_drained(board.counters, fresh)


@pytest.fixture
def rng(request):
    return random.Random(f"{SEED} {request.node.name}")


# --- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 126, 129, 8194, 20_000])
def test_samples_of_the_wrong_length(board, rng, length):
    """Answered BAD_LENGTH with the message's ID; the connection goes on."""
    before = board.counters()
    with board.connect(SMP) as connection:
        connection.sendall(data_message(77, rng.randbytes(length)))
        expected = error_message(Status.BAD_LENGTH, 77)
        assert connection.recv(100) == expected
        ecg_job(connection, 78, *ecg_blocks(rng, 1))
    rises(board.counters, before, smp__bad_length=1, ecg__errors=1)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_message_without_room_for_its_id(board, rng, size):
    before = board.counters()
    with board.connect(SMP) as connection:
        connection.sendall(struct.pack("<B3xI", TYPE_DATA, size) + bytes(size))
        assert connection.recv(100) == error_message(Status.BAD_LENGTH)
        ecg_job(connection, 1, *ecg_blocks(rng, 1))
    rises(board.counters, before, smp__bad_length=1)


@pytest.mark.parametrize("kind", [0, TYPE_CONFIGURATION, TYPE_RESPONSE, 4, 255])
def test_unknown_type(board, kind):
    """Where the next message begins is unknown: BAD_TYPE, then the board closes."""
    before = board.counters()
    with board.connect(SMP) as connection:
        connection.sendall(struct.pack("<B3xI", kind, 16) + bytes(16))
        assert read_all(connection) == error_message(Status.BAD_TYPE)
    rises(board.counters, before, smp__bad_type=1)


@pytest.mark.parametrize("size", [TINY.unread - 7, 32761, 40_000, 0xFFFFFFF8, 0xFFFFFFFF])
def test_payload_larger_than_the_buffer(board, rng, size):
    before = board.counters()
    with board.connect(SMP) as connection:
        connection.sendall(struct.pack("<B3xI", TYPE_DATA, size) + rng.randbytes(30_000))
        assert read_all(connection) == error_message(Status.TOO_LARGE)
    rises(board.counters, before, smp__too_large=1)


def test_largest_payload_that_fits(board, rng):
    """Also when the window's edge lags behind because a short message went before."""
    with board.connect(SMP) as connection:
        for ident in range(4):
            connection.sendall(data_message(ident, bytes(701)))
            assert connection.recv(100) == error_message(Status.BAD_LENGTH, ident)
            connection.sendall(data_message(5, rng.randbytes(TINY.unread - 12)))
            assert connection.recv(100) == error_message(Status.BAD_LENGTH, 5)
        ecg_job(connection, 6, *ecg_blocks(rng, 1))


def test_random_bytes_as_messages(board, rng):
    """Whatever a stranger sends is answered or refused, and his connection ends."""
    for _ in range(10):
        with board.connect(SMP) as connection:
            connection.sendall(rng.randbytes(rng.randint(8, 3000)))
            connection.shutdown(socket.SHUT_WR)
            read_all(connection)


# --- clients that vanish -------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [3, 8, 11, 2000, 8203])
def test_reset_half_way_through_a_message(board, rng, sent):
    before = board.counters()
    message = data_message(1, rng.randbytes(8192))
    connection = board.connect(SMP)
    connection.sendall(message[:sent])
    wait_until(lambda: board.counters()["tcp.sessions_used"] >= 3, 10, "no third session")
    board.sleep(0.1)
    reset(connection)
    rises(board.counters, before, tcp__rst_rx=1, smp__aborted=1)


def test_end_half_way_through_a_message(board, rng):
    with board.connect(SMP) as connection:
        connection.sendall(data_message(1, rng.randbytes(8192))[:5000])
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b""


def test_reset_with_jobs_under_way(board, rng):
    """The role's answers for a session that is gone are for nobody, least of all its successor."""
    before = board.counters()
    for _ in range(10):
        connection = board.connect(SMP)
        for ident, block in enumerate(ecg_blocks(rng, 3)):
            connection.sendall(data_message(ident, block.astype("<i2").tobytes()))
        reset(connection)
    rises(board.counters, before, tcp__rst_rx=10)
    with board.connect(SMP) as connection:
        ecg_job(connection, 9, *ecg_blocks(rng, 1))


def test_client_that_falls_silent(board, rng):
    """Half a message, then nothing, not even answers: keep-alive probes find out."""
    before = board.counters()
    with RawPeer(board) as peer:
        for number, port in enumerate((SMP, ECHO, PAGE_PORT)):
            place = peer.open(5000 + number, port)
            payload = data_message(1, rng.randbytes(8192))[:1000] if port == SMP else b""
            peer.send(5000 + number, port, ACK | PSH, payload=payload, **place)
        rises(board.counters, before, tcp__established=3)
        rises(board.counters, before, tcp__keepalive_probes=3, tcp__timeouts=3, smp__aborted=1)


@pytest.mark.nightly
def test_message_whose_rest_does_not_come(board, rng):
    """Its peer answers probes; it is told, and the slot is free again."""
    before = board.counters()
    with board.connect(SMP) as connection:
        connection.sendall(data_message(1, rng.randbytes(8192))[:1000])
        assert read_all(connection) == error_message(Status.TIMED_OUT)
    rises(board.counters, before, smp__timed_out=1)


def test_silent_peers_on_every_slot(board, rng):
    """They answer probes, and ask for nothing. Clients of each service get in all the same."""
    before = board.counters()
    with contextlib.ExitStack() as stack:
        for port, count in ((SMP, SESSIONS), (ECHO, 6), (PAGE_PORT, 6)):
            for _ in range(count):  # when there is no slot a SYN comes again after a second
                stack.enter_context(board.connect(port))
        with board.connect(SMP) as connection:
            ecg_job(connection, 9, *ecg_blocks(rng, 1))
        with board.connect(ECHO) as connection:
            connection.sendall(b"in spite of all")
            assert connection.recv(100) == b"in spite of all"
    rises(board.counters, before, tcp__evicted=5)


@pytest.mark.nightly
def test_client_that_does_not_acknowledge(board, rng):
    """What it was sent is sent again a few times; then the session is given up."""
    before = board.counters()
    with RawPeer(board) as peer:
        place = peer.open(6000, ECHO)
        peer.send(6000, ECHO, ACK | PSH, payload=rng.randbytes(1000), **place)
        peer.receive(6000, wanted=lambda s: s.payload)
        rises(board.counters, before, tcp__rto=3, tcp__timeouts=1)


@pytest.mark.nightly
def test_window_that_stays_closed(board, rng):
    """A peer that never opens its window, nor answers probes of it, is given up as well."""
    before = board.counters()
    with RawPeer(board) as peer:
        place = peer.open(6001, ECHO, window=0)
        peer.send(6001, ECHO, ACK | PSH, payload=rng.randbytes(1000), window=0, **place)
        rises(board.counters, before, tcp__zero_window_probes=2, tcp__timeouts=1)


# --- segments and frames -------------------------------------------------------------------------


def test_closed_port(board):
    """RST, as RFC 9293, 3.10.7.1 says, with the numbers that it asks for."""
    before = board.counters()
    with pytest.raises(ConnectionRefusedError):
        board.connect(8081)
    with RawPeer(board) as peer:
        peer.send(7000, 8081, SYN, seq=123)
        answer = peer.receive(7000)
        assert (answer.flags, answer.seq, answer.ack) == (RST | ACK, 0, 124)
        peer.send(7000, 8081, ACK, seq=123, ack=456)
        answer = peer.receive(7000)
        assert (answer.flags, answer.seq) == (RST, 456)
    rises(board.counters, before, tcp__unknown=3, tcp__rst_tx=3)


def test_segments_of_no_session(board, rng):
    before = board.counters()
    with RawPeer(board) as peer:
        for number, flags in enumerate((ACK, FIN | ACK, PSH | ACK, SYN | ACK)):
            peer.send(7100 + number, ECHO, flags, seq=9, ack=5, payload=b"stray")
            answer = peer.receive(7100 + number)
            assert (answer.flags, answer.seq, answer.payload) == (RST, 5, b"")
        peer.send(7200, ECHO, RST, seq=9)
        peer.send(7201, PAGE_PORT, RST | ACK, seq=9, ack=5)
        with pytest.raises(AssertionError, match="no answer"):
            peer.receive(7200, seconds=0.5)
    rises(board.counters, before, tcp__unknown=6, tcp__rst_tx=4)


@pytest.mark.nightly
def test_flood_of_half_open_connections(board, rng):
    """Beyond the limit SYNs leave nothing; sessions that are open go on, and the flood passes."""
    before = board.counters()
    with raw_socket(board) as wire:
        for number in range(400):
            source = f"10.0.{1 + number % 200}.{rng.randint(1, 250)}"
            wire.send(tcp_frame(source, board.ip, 1024 + number, ECHO, SYN, seq=number))
            board.sleep(0.002)
    rises(board.counters, before, tcp__syn_rx=100, tcp__cookies_sent=50)
    assert board.counters()["tcp.half_open"] < SESSIONS
    wait_until(lambda: board.counters()["tcp.half_open"] == 0, 30, "half-open sessions stay")
    with board.connect(SMP) as connection:
        ecg_job(connection, 1, *ecg_blocks(rng, 1))


def mutated(rng, frame):
    """A frame with some bytes changed, or cut, or with a tail."""
    frame = bytearray(frame)
    kind = rng.randrange(4)
    if kind == 0:
        return bytes(frame[: rng.randint(14, len(frame))])
    if kind == 1:
        return bytes(frame + rng.randbytes(rng.randint(1, 100)))
    for _ in range(rng.randint(1, 4)):
        # Addresses stay, so that most still reach the engine.
        frame[rng.randrange(12, len(frame))] = rng.randrange(256)
    return bytes(frame)


@pytest.mark.nightly
def test_mutated_segments(board, rng):
    """Segments of an open session of its own, damaged in every place."""
    before = board.counters()
    with RawPeer(board, "192.0.2.78") as peer:
        place = peer.open(8000, SMP)
        for _ in range(1500):
            payload = data_message(1, rng.randbytes(rng.randint(0, 600)))
            flags = rng.choice([ACK, ACK | PSH, ACK | FIN, SYN, rng.randrange(256)])
            frame = peer.frame(8000, SMP, flags, payload=payload, **place)
            peer.socket.send(mutated(rng, frame))
            board.sleep(0.0005)
        peer.send(8000, SMP, RST, seq=place["seq"])
    risen = rise(before, board.counters())
    assert sum(risen.get(name, 0) for name in risen if name.startswith("tcp_rx.")) > 500, risen


def test_random_segments_with_right_checksums(board, rng):
    """Any flags, numbers, ports and options: the engine itself must cope."""
    before = board.counters()
    with RawPeer(board, "192.0.2.79") as peer:
        for _ in range(1500):
            options = rng.randbytes(4 * rng.randint(0, 10))
            peer.send(
                rng.randint(9000, 9040),
                rng.choice([ECHO, 9, SMP, PAGE_PORT, 80, rng.randrange(65536)]),
                rng.randrange(256),
                seq=rng.getrandbits(32),
                ack=rng.getrandbits(32),
                window=rng.getrandbits(16),
                payload=rng.randbytes(rng.choice([0, 1, rng.randint(0, 1400)])),
                options=options,
            )
            board.sleep(0.0005)
    risen = rise(before, board.counters())
    assert risen["tcp.unknown"] > 100
    assert risen["tcp.rst_tx"] > 100


def test_garbage_frames(board, rng):
    """Noise, also with the board's address or with types that others use."""
    before = board.counters()
    mac = tcp_frame("192.0.2.1", board.ip, 1, 2, 0)[:6]
    with raw_socket(board) as wire:
        for _ in range(1000):
            head = rng.choice([mac, b"\xff" * 6, rng.randbytes(6)]) + rng.randbytes(6)
            head += rng.choice([b"\x08\0", b"\x08\6", b"\x86\xdd", b"\x81\0", rng.randbytes(2)])
            wire.send(head + rng.randbytes(rng.choice([0, 1, 46, rng.randint(0, 1500)])))
            board.sleep(0.0005)
    rises(board.counters, before, classifier__other_frames=500)
