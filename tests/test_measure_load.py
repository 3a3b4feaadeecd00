"""`trebuchet measure`: its figures, its load generator, and its traffic, against known servers."""

import contextlib
import fcntl
import itertools
import math
import random
import socket
import struct
import threading
import time

import pytest
from fake_board import HOST, FakeBoard, closed_port
from trebuchet.client.errors import BoardError, ConnectionLost, ProtocolError
from trebuchet.client.smp import data_message, response_message
from trebuchet.host.measure.connection import Place, Transfer
from trebuchet.host.measure.figures import Run, jain, percentile, summary
from trebuchet.host.measure.generator import Load, poisson, regular, run_closed, run_open, run_paced
from trebuchet.host.measure.output import flatten, notes
from trebuchet.host.measure.target import Counters, split_times
from trebuchet.host.measure.traffic import SmpReader, Traffic
from trebuchet.models.progress import VARIABLE
from trebuchet.models.status import Status


def test_percentiles_are_by_nearest_rank_and_need_enough_values():
    rng = random.Random(1)
    for count in (1, 2, 99, 100, 101, 1000):
        values = sorted(rng.randrange(1000) for _ in range(count))
        for share in (0.5, 0.95, 0.99, 0.999):
            naive = next(v for n, v in enumerate(values, 1) if n >= share * count - 1e-9)
            enough = share == 0.5 or count * (1 - share) >= 1 - 1e-9
            assert percentile(values, share) == (naive if enough else None), (count, share)
    assert percentile([], 0.5) is None
    assert summary([3e-6, 1e-6], 1e6)["mean"] == 2
    with pytest.raises(ValueError, match="share must be above 0 and below 1, not 1"):
        percentile([1], 1)


def test_jain():
    assert jain([5, 5, 5, 5]) == 1
    assert jain([8, 0, 0, 0]) == 0.25
    assert jain([]) == jain([0, 0]) == 1
    assert jain([1, 3]) == pytest.approx(0.8)


def test_poisson_starts_are_random_and_repeatable():
    starts = list(itertools.islice(poisson(1000, 7), 20_000))
    assert starts == list(itertools.islice(poisson(1000, 7), 20_000))
    assert starts != list(itertools.islice(poisson(1000, 8), 20_000))
    gaps = [after - before for before, after in zip([0, *starts], starts, strict=False)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert mean == pytest.approx(1e-3, rel=0.03)
    assert deviation == pytest.approx(mean, rel=0.05)  # as of an exponential distribution
    assert list(itertools.islice(regular(4), 3)) == [0.25, 0.5, 0.75]


def test_the_reader_finds_answers_however_bytes_are_split():
    rng = random.Random(2)
    stream, wanted = b"", []
    for number in range(1, 200):
        if rng.random() < 0.3:
            stream += response_message(Status.BAD_DATA, number).pack()
            wanted.append((number, 0, Status.BAD_DATA))
        else:
            size = rng.choice((0, 1, 3, 4, 5, 1000))
            stream += data_message(number, rng.randbytes(size)).pack()
            wanted.append((number, size, Status.OK))
    for most in (1, 7, 8, 12, 5000):
        reader, left, found = SmpReader("board"), memoryview(stream), []
        while left:
            size = rng.randint(1, most)
            found += [(a.number, a.size, a.status) for a in reader.feed(left[:size])]
            left = left[size:]
        assert found == wanted, most
    with pytest.raises(ProtocolError, match="type 72 .* is it a Trebuchet"):
        list(SmpReader("board").feed(memoryview(b"HTTP/1.1 200 OK")))


# --- servers -------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(serve):
    """A server at the port that this gives; ``serve(connection)`` in a thread for each."""
    with socket.create_server((HOST, 0)) as server:

        def one(connection):
            with connection, contextlib.suppress(OSError):
                serve(connection)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=one, args=(server.accept()[0],), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def echo_bytes(connection):
    while data := connection.recv(1 << 16):
        connection.sendall(data)


def read(connection, count):
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise OSError
        data += piece
    return data


def read_message(connection):
    size = struct.unpack("<4xI", read(connection, 8))[0]
    body = read(connection, size)
    return int.from_bytes(body[:4], "little"), body[4:]


def load(port, size=64, traffic=Traffic.ROLE, **options):
    payload = memoryview(random.Random(size).randbytes(size))
    transfer = Transfer(traffic, size, payload)
    options = {"seconds": 30, "timeout": 20} | options
    return Load([Place(HOST, port)], transfer, **options)


# --- closed loop ---------------------------------------------------------------------------------


@pytest.mark.parametrize("polling", [False, True])
@pytest.mark.parametrize("size", [1, 64, 70_000])
def test_every_transfer_is_counted_once(size, polling):
    with FakeBoard() as board:
        run = run_closed(
            load(board.port, size, connections=3, in_flight=4, most=50, polling=polling)
        )
        assert len(board.jobs) == 50
        assert all(len(data) == size for _, data in board.jobs)
    assert run.transfers == 50
    assert sum(run.shares) == 50
    assert run.sent == run.received == 50 * size
    assert run.rate() == pytest.approx(50 / run.seconds)


def test_no_more_are_under_way_than_asked_for():
    most, waiting, lock = 0, 0, threading.Lock()
    gate = threading.Event()

    def serve(connection):
        nonlocal most, waiting
        while True:
            number, data = read_message(connection)
            with lock:
                waiting += 1
                most = max(most, waiting)
            gate.wait(0.02)
            with lock:
                waiting -= 1
            connection.sendall(data_message(number, data).pack())

    with serving(serve) as port:
        run = run_closed(load(port, connections=5, most=40))
    assert run.transfers == 40
    assert most <= 5


def test_answers_out_of_order_are_matched_by_their_numbers():
    """Two transfers that begin 0.2 s apart, and end together, the second one first."""

    def serve(connection):
        first, second = read_message(connection), read_message(connection)
        connection.sendall(data_message(*second).pack())
        connection.sendall(data_message(*first).pack())
        connection.recv(1)

    with serving(serve) as port:
        run = run_open(load(port, in_flight=2, seconds=0.5), regular(5))
    assert run.latencies[1] >= run.latencies[0] + 0.19


def test_transfers_of_the_simple_services():
    taken = threading.Semaphore(0)

    def discard(connection):
        while data := connection.recv(1 << 16):
            taken.release(len(data))

    with serving(echo_bytes) as port:
        run = run_closed(load(port, 100_000, Traffic.ECHO, in_flight=3, most=12))
        assert (run.transfers, run.sent, run.received) == (12, 1_200_000, 1_200_000)
    with serving(discard) as port:
        run = run_closed(load(port, 50_000, Traffic.DISCARD, in_flight=2, most=9))
        assert (run.transfers, run.sent, run.received) == (9, 450_000, 0)
        for _ in range(450_000):
            assert taken.acquire(timeout=20)

    page = b"HTTP/1.1 200 OK\r\n\r\n" + bytes(1000)

    def serve_page(connection):
        assert read(connection, 4) == b"GET "
        while b"\r\n\r\n" not in connection.recv(1 << 12):
            pass
        connection.sendall(page)

    with serving(serve_page) as port:
        run = run_closed(load(port, 1, Traffic.PAGE, connections=2, in_flight=5, most=6))
        assert (run.transfers, run.sent, run.received) == (6, 0, 6 * len(page))


def test_what_a_peer_does_not_take_is_not_discarded():
    done = threading.Event()
    with serving(lambda connection: done.wait(20)) as port:
        with pytest.raises(ConnectionLost, match=r"no transfer to .* ended within 0\.5 s"):
            run_closed(load(port, 30_000_000, Traffic.DISCARD, timeout=0.5))
        done.set()


@pytest.mark.parametrize(
    ("serve", "message"),
    [
        (lambda c: c.sendall(data_message(9, b"").pack()) or c.recv(99), "answered transfer 9"),
        (lambda c: c.recv(1 << 16), "ended the connection with 1 transfers"),
        (lambda c: c.sendall(response_message(Status.STOPPED, 1).pack()) or c.recv(99), "--cycles"),
        (lambda c: c.sendall(response_message(Status.BUSY, 1).pack()) or c.recv(99), "BUSY"),
        (lambda c: c.sendall(b"SSH-2.0-OpenSSH") or c.recv(99), "is it a Trebuchet board"),
    ],
)
def test_a_wrong_peer_is_one_line(serve, message):
    with serving(serve) as port, pytest.raises(BoardError, match=message) as caught:
        run_closed(load(port))
    assert "\n" not in str(caught.value)


def test_no_peer_is_one_line():
    with pytest.raises(ConnectionLost, match="cannot connect to .* for role traffic"):
        run_closed(load(closed_port()))


# --- open loop -----------------------------------------------------------------------------------


def stalling(seconds):
    """Answers the first message after ``seconds``, all others at once."""

    def serve(connection):
        number, data = read_message(connection)
        time.sleep(seconds)
        while True:
            connection.sendall(data_message(number, data).pack())
            number, data = read_message(connection)

    return serve


def test_latency_counts_from_the_intended_start():
    """A stall of 0.5 s at 200 transfers a second delays about 100 of them, 0.25 s on average."""
    with serving(stalling(0.5)) as port:
        run = run_open(load(port, seconds=1), regular(200))
    assert run.transfers == 199  # that at 1 s is not part of the load
    assert run.offered == 199
    assert sum(latency >= 0.25 for latency in run.latencies) >= 45
    assert run.unanswered == 0
    assert max(run.lag) >= 0.4
    with serving(stalling(0.5)) as port:  # a closed loop omits them: that is the difference
        closed = run_closed(load(port, most=200))
    assert sum(latency >= 0.45 for latency in closed.latencies) < 20


def test_a_paced_sender_is_slower_under_back_pressure():
    """It counts from the actual start, as the paper's user does: the stall delays one transfer."""
    with serving(stalling(0.5)) as port:
        run = run_paced(load(port, seconds=1), 200)
    assert 1 < run.transfers <= 102
    assert sum(latency >= 0.45 for latency in run.latencies) == 1
    with FakeBoard() as board:
        run = run_paced(load(board.port, seconds=0.5, connections=2), 100)
        assert 1 < run.transfers <= 51
        few = run_paced(load(board.port, most=3), 1000)
    assert few.transfers == 3


def test_unanswered_transfers_are_counted():
    def serve(connection):
        connection.sendall(data_message(*read_message(connection)).pack())
        read(connection, 1 << 30)

    with serving(serve) as port:
        run = run_open(load(port, seconds=0.5, timeout=0.5, in_flight=4), regular(100))
    assert (run.transfers, run.unanswered) == (1, 48)


def refusing(*statuses):
    """Answers with these statuses, one after the other."""

    def serve(connection):
        for status in statuses:
            number, data = read_message(connection)
            good = status == Status.OK
            answer = data_message(number, data) if good else response_message(status, number)
            connection.sendall(answer.pack())

    return serve


def test_refusals_of_single_transfers_are_counted_others_end_the_run():
    with serving(refusing(Status.ABORTED, Status.OK, Status.BUSY, Status.OK)) as port:
        run = run_open(load(port, seconds=1, most=4), regular(100))
    assert run.transfers == 2
    assert run.refused == {"ABORTED": 1, "BUSY": 1}
    with serving(refusing(Status.BAD_TYPE)) as port, pytest.raises(BoardError, match="BAD_TYPE"):
        run_open(load(port, seconds=1, most=1), regular(100))


# --- what else is reported -----------------------------------------------------------------------


def test_simulated_cycles(tmp_path, monkeypatch):
    """A board whose simulator advances by 1,000 cycles a job."""
    path = tmp_path / "progress"
    path.write_bytes(struct.pack("<QQQ", 0, 0, 50_000_000))
    monkeypatch.setenv(VARIABLE, str(path))
    with open(path, "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the simulator runs
        jobs = itertools.count(1)

        def role(ident, data):
            file.seek(0)
            file.write(struct.pack("<Q", 1000 * next(jobs)))
            return Status.OK, data

        with FakeBoard({"echo": role}) as board:
            run = run_closed(load(board.port, most=20))
    assert set(run.cycles) == {1000}
    assert run.total_cycles == 20_000
    row = run.table()
    assert row["cycles"] == 20_000
    assert row["latency_cycles"]["p50"] == 1000


def test_time_is_split_by_counters():
    run = Run(latencies=[1e-3, 3e-3], wire=1e-4)
    before, after = Counters(10, 5000, 100), Counters(12, 55_000, 150)
    found = split_times(before, after, run, 50e6)
    assert found == {
        "wire_us": 100,
        "role_cycles": 25_000,
        "role_us": 500,
        "queue_us": 1400,
        "board_ms": 50,
    }
    assert "role_us" not in split_times(before, after, run, None)
    assert split_times(Counters(), Counters(), Run(), 50e6) == {}
    # No job was done: no mean.
    assert "role_cycles" not in split_times(before, before, run, 50e6)
    waited = split_times(
        Counters(waits=1.0, wait_s=1.0, services=0.0, service_s=0.0),
        Counters(waits=3.0, wait_s=1.5, services=4.0, service_s=1.0),
        Run(),
        None,
    )
    assert waited == {"role_us": 250_000, "queue_us": 250_000}


def test_notes_say_when_figures_are_the_generators():
    rows = [
        {"client": "blocking", "generator_cpu": 0.95},
        {"client": "polling", "generator_cpu": 1},
    ]
    assert len(notes(rows)) == 1
    assert notes(rows)[0].startswith("in 1 of 2 runs the generator itself used 90%")
    late = {"client": "blocking", "lag_us": {"p50": 9.0}, "latency_us": {"p50": 10.0}}
    assert "later than intended" in notes([late])[0]
    assert "is busy" in notes([{"generator_starved": 0.5}])[0]
    assert flatten({"a": {"b": [1, 2]}, "c": 3}) == {"a.b": "1 2", "c": 3}


def test_wrong_loads_are_refused():
    with pytest.raises(ValueError, match="connections must be 1 to 512, not 0"):
        load(1, connections=0)
    with pytest.raises(ValueError, match="in_flight must be at least 1, not 0"):
        load(1, in_flight=0)
