"""The job server under faults: each job is answered once, and all resources come back."""

import contextlib
import re
import socket
import struct
import subprocess
import time

import pytest
from jobd_bench import PATIENCE, SANITIZED, JobServer, Nodes, eventually, serving, tally
from streams import make_rng, seeds
from trebuchet.client import smp
from trebuchet.host.jobd_build import build
from trebuchet.models.smp_framing import error_message
from trebuchet.models.status import Status

BIG = ("--segment", 1 << 22)


class Board:
    """A board whose answers the test makes; ``server`` is a job server that has it alone."""

    def __init__(self, listener, server):
        self.listener, self.server = listener, server
        self.accept()

    def accept(self):
        self.socket, _ = self.listener.accept()
        self.socket.settimeout(PATIENCE)
        self.decoder, self.ready = smp.Decoder(), []

    def job(self):
        """ID on the wire and data of the next job."""
        while not self.ready:
            data = self.socket.recv(1 << 16)
            assert data
            self.ready += self.decoder.feed(data)
        return smp.parse_data(self.ready.pop(0).payload)

    def answer(self, ident, data):
        self.socket.sendall(smp.data_message(ident, data).pack())


@contextlib.contextmanager
def board_and_server(*options):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        server = JobServer("--node", place, "--configured", *options)
        try:
            board = Board(listener, server)
            server.wait_for_nodes(1)
            with board.socket:
                yield board, server
        finally:
            server.stop()


def send_and_kill(user, jobs, victims, rng):
    """Exchange ``{id: data}``; kill a process when a random number of answers have come."""
    moments = {rng.randrange(len(jobs)): victim for victim in victims}
    left, found, waiting = list(jobs.items()), {}, 0
    while left or waiting:
        while left and waiting < 16:
            user.send(smp.data_message(*left.pop(0)))
            waiting += 1
        found |= user.results(1)
        waiting -= 1
        if victim := moments.pop(len(found), None):
            victim.kill()
    return found


def check_killed(seed, variant="release", threads=1):
    rng = make_rng(seed, "kill")
    victims = [Nodes(1, "--cycles", 5000, *BIG) for _ in range(2)]
    places = [word for victim in victims for word in victim.places]
    jobs = {i: rng.randbytes(rng.choice([20, 3000, 100_000, 700_000])) for i in range(80)}
    options = ("--threads", threads, *places)
    try:
        with serving(*options, node_options=BIG, variant=variant, configured=True) as server:
            server.wait_for_nodes(3 * threads)
            with server.user() as user:
                answers = send_and_kill(user, jobs, victims, rng)
            counted = tally(answers.values())
            assert counted["data"] + counted["ABORTED"] == len(jobs)
            assert counted["ABORTED"] <= 2 * len(victims), "no more than are in flight"
            wrong = [i for i, a in answers.items() if isinstance(a, bytes) and a != jobs[i]]
            assert wrong == []
            assert server.idle()["jobs_aborted_total"] == counted["ABORTED"]
    finally:
        for victim in victims:
            victim.stop()


@seeds(4)
def test_jobs_of_a_board_that_dies_are_aborted_and_no_others(seed):
    check_killed(seed)


@pytest.mark.nightly
@seeds(20)
def test_boards_die_at_twenty_moments(seed):
    check_killed(100 + seed, threads=1 + seed % 2)


def test_a_board_that_comes_back_is_used_again():
    """Three times; it is configured each time, or it would answer as the loopback role does."""
    flapping = Nodes(1)
    port = flapping.ports[0]
    server = JobServer(*flapping.places)
    try:
        server.wait_for_nodes(1)
        with server.user() as user:
            assert user.configure() == (Status.OK, 1)
            for _ in range(3):
                assert user.exchange({1: bytes(32)})[1][16:] != bytes(16)
                flapping.kill()
                flapping.stop()
                eventually(lambda: server.nodes_connected() == 0, "the node is lost")
                flapping = Nodes(1, port=port)
                server.wait_for_nodes(1)
        server.idle()
    finally:
        server.stop()
        flapping.stop()


def test_a_board_that_hangs_is_given_up():
    with board_and_server("--patience-ms", 200) as (board, server):
        with server.user() as user:
            user.send(smp.data_message(3, b"never answered"))
            ident, _ = board.job()
            assert user.results(1) == {3: Status.ABORTED}
            with contextlib.suppress(OSError):
                board.answer(ident, b"late")
            board.socket.close()
            board.accept()
            with board.socket:
                user.send(smp.data_message(4, b"again"))
                board.answer(*board.job())
                assert user.results(1) == {4: b"again"}
        assert any("did not answer a job in time" in line for line in server.lines)
        assert server.idle()["jobs_aborted_total"] == 1


def test_late_and_doubled_answers_are_dropped():
    with board_and_server() as (board, server):
        with server.user() as user:
            user.send(smp.data_message(7, b"one"))
            first, _ = board.job()
            board.answer(first ^ 1 << 20, b"of no job")
            board.answer(first, b"1")
            board.answer(first, b"doubled")
            assert user.results(1) == {7: b"1"}
            user.send(smp.data_message(8, b"two"))
            second, _ = board.job()
            assert second != first
            board.answer(first, b"late")
            board.answer(second, b"2")
            assert user.results(1) == {8: b"2"}
        assert server.idle()["late_answers_total"] == 3


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "sent no SMP answer: BAD_TYPE"),
        (struct.pack("<B3xI", 3, 0xFFFFFFFF), "sent no SMP answer: TOO_LARGE"),
        (struct.pack("<B3xI", 3, 2) + b"ab", "sent a data message without an ID"),
        (struct.pack("<B3xI", 2, 3) + b"abc", "sent a response of neither 1 nor 8 bytes"),
        (smp.data_message(1, bytes(100)).pack()[:50], "closed the connection"),
    ],
)
def test_a_node_that_is_none_is_lost(said, line):
    """The user's job is answered, no part of what the node said reaches the user."""
    with board_and_server() as (board, server):
        with server.user() as user:
            user.send(smp.data_message(7, b"job"))
            board.job()
            board.socket.sendall(said)
            board.socket.shutdown(socket.SHUT_WR)
            assert user.results(1) == {7: Status.ABORTED}
        eventually(lambda: any(line in logged for logged in server.lines), f"the log has {line}")
        server.idle()


def test_a_refusal_without_an_id_is_of_the_oldest_job():
    with board_and_server() as (board, server):
        with server.user() as user:
            for ident in (5, 6):
                user.send(smp.data_message(ident, b"job"))
            board.job()
            second, _ = board.job()
            board.socket.sendall(error_message(Status.NO_ROOM))
            assert user.results(1) == {5: Status.NO_ROOM}
            board.socket.sendall(error_message(Status.BAD_DATA, second))
            assert user.results(1) == {6: Status.BAD_DATA}


def test_what_no_board_takes_is_refused_without_asking_again():
    """A board ends a connection by whose header it is too large; that happens once."""
    options = ("--segment", 1000)
    with serving(boards=1, node_options=options, configured=True) as server:
        server.wait_for_nodes(1)
        with server.user() as user:
            user.send(smp.data_message(1, bytes(2000)))
            assert user.results(1) == {1: Status.TOO_LARGE}
            eventually(lambda: server.metrics()["nodes_lost_total"] == 1, "the node hangs up")
            server.wait_for_nodes(1)
            assert user.exchange({2: bytes(3000)}) == {2: Status.TOO_LARGE}
            assert user.exchange({3: bytes(900)}) == {3: bytes(900)}
        assert server.metrics()["nodes_lost_total"] == 1


def test_jobs_without_a_node_are_given_up_in_time():
    server = JobServer("--configured", "--patience-ms", 100)
    try:
        with server.user() as user:
            assert user.exchange({1: b"a", 2: b"b"}) == {1: Status.ABORTED, 2: Status.ABORTED}
        assert server.idle()["jobs_aborted_total"] == 2
    finally:
        server.stop()


def test_a_message_whose_rest_does_not_come_is_late():
    options = ("--message-timeout-ms", 100)
    with serving(*options, boards=1, node_options=BIG, configured=True) as server:
        server.wait_for_nodes(1)
        for there in (3, 11, 100, 50_000):
            with server.user() as user:
                user.socket.sendall(smp.data_message(9, bytes(100_000)).pack()[:there])
                assert user.results(1) == {0: Status.TIMED_OUT}
                assert user.closed()
        with server.user() as user:
            time.sleep(0.3)  # a connection without a message is not late
            assert user.exchange({1: b"x"}) == {1: b"x"}


def hostile_users(server, rng):
    """Users of all bad kinds: slow, silent, torn, with garbage; some stay."""
    message = smp.data_message(1, bytes(rng.choice([10, 50_000]))).pack()
    said = [
        b"",
        message[: rng.randrange(len(message))],
        struct.pack("<B3xI", 3, 0xFFFFFFFF) + bytes(100),
        struct.pack("<B3xI", 1, 0xFFFFFFFF) + bytes(100),
        rng.randbytes(300),
        struct.pack("<B3xI", 3, 3) + b"abc" + message,
        message * 10,
    ]
    users = []
    for data in said:
        user = socket.create_connection(("127.0.0.1", server.user_port))
        with contextlib.suppress(OSError):
            user.sendall(data)
        users.append(user)
    return users


def check_hostile(variant, threads, rounds=3):
    rng = make_rng(variant, "hostile")
    options = ("--threads", threads, "--message-timeout-ms", 20_000)
    with serving(*options, boards=2, node_options=BIG, variant=variant, configured=True) as server:
        server.wait_for_nodes(2 * threads)
        bad = []
        with server.user() as user:
            for turn in range(rounds):
                bad += hostile_users(server, rng)
                jobs = {100 * turn + i: rng.randbytes(20_000 * (i % 4) + 5) for i in range(20)}
                assert user.exchange(jobs) == jobs
        for other in bad:
            other.close()
        # A status is a line in the log, not one for each message of a flood.
        lines = [line for line in server.lines if "refused" in line]
        assert len(lines) <= len(bad)
        assert all(re.fullmatch(r"jobd: user [\d.:]+: refused.*: [A-Z_]+", ln) for ln in lines)


def test_bad_users_disturb_no_good_one():
    check_hostile("release", 1)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["address", "thread"])
def test_with_sanitizers(variant):
    """The same with ASan and UBSan, and with TSan and several threads: nothing is found."""
    threads = 3 if variant == "thread" else 1
    check_hostile(variant, threads, rounds=1)
    check_killed(1, variant, threads)
    with serving("--own", 1, "--threads", threads, boards=3, variant=variant) as server:
        for _ in range(2):
            with server.user() as one, server.user() as two:
                for user in (one, two):
                    eventually(lambda user=user: user.configure() == (Status.OK, 1), "a node")
                    assert len(user.exchange({1: bytes(16)})[1]) == 16


def fuzz(inputs):
    """Feed the parser with sanitizers; what it makes of a stream is what a naive one does."""
    done = subprocess.run(
        [build("trebuchet-jobd-fuzz", "address"), str(inputs), "1"],
        capture_output=True,
        text=True,
        env=SANITIZED,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{inputs} inputs")


@pytest.mark.slow
def test_fuzz():
    fuzz(100_000)


@pytest.mark.nightly
@pytest.mark.cpu_limit(7200)
def test_fuzz_ten_million():
    fuzz(10_000_000)
