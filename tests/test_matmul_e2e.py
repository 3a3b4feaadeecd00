"""Matrices over the kernel's TCP: the matmul role on the fabric and on the whole board."""

import contextlib
import json
import random
import socket
import sys

import pytest
from e2e_board import (
    BAD_LINK,
    assert_drained,
    know_address,
    quiet_counters,
    rise,
    rises,
    status,
    status_counters,
)
from e2e_clients import (
    ECHO,
    SMP,
    echo,
    read_all,
    read_exactly,
    read_message,
    reset,
    run_clients,
)
from patience import PATIENCE, wait_until
from sim_tops import needs_network
from trebuchet.models import matmul
from trebuchet.models.smp_framing import TYPE_DATA, data_message, error_message
from trebuchet.models.status import Status
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

pytestmark = [pytest.mark.nightly, needs_network]

SEED = 70
PAIR = matmul.pair_bytes()
SEGMENT = 1 << 17  # boards/sim.py with this role: three pairs a message


@contextlib.contextmanager
def simulated(top, *arguments):
    made = source(top, "matmul")
    started = {"uart": "none"} if top == "fabric" else {"ready": "ready"}
    with Board(build(made), ["--seed", str(SEED), *arguments], cwd=made.folder, **started) as board:
        know_address(board)
        yield board


@pytest.fixture(scope="module")
def running():
    with simulated("fabric") as board:
        yield board, board.counters()


@pytest.fixture
def fabric(running):
    """The module's board; afterwards it still multiplies, and everything is free again."""
    print(f"seed {SEED}")
    board, fresh = running
    yield board
    with board.connect(SMP) as connection:
        multiply(connection, 99, matmul.random_operand(random.Random(SEED), 1))
    assert_drained(board.counters, fresh)


@pytest.fixture
def rng(request):
    return random.Random(f"{SEED} {request.node.name}")


def multiply(connection, ident, operand):
    """Have the board multiply; the products must be the golden model's."""
    connection.sendall(data_message(ident, operand))
    kind, payload = read_message(connection)
    assert kind == TYPE_DATA, f"type {kind}: {payload.hex()}"
    assert payload[:4] == ident.to_bytes(4, "little")
    assert payload[4:] == matmul.result(operand)


# --- products ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", [1, 2, 3])
def test_messages_of_several_pairs(fabric, rng, pairs):
    before = fabric.counters()
    with fabric.connect(SMP) as connection:
        for ident in range(3):  # from the second one on, it wraps in the ring
            multiply(connection, ident, matmul.random_operand(rng, pairs))
    risen = rise(before, fabric.counters())
    assert risen["matmul.products"] == 3 * pairs
    assert risen["smp.messages"] == risen["smp.answers"] == 3


def test_messages_that_wait_for_each_other(fabric, rng):
    """Sent without waiting, answered in order; the window closes and opens again."""
    operands = [matmul.random_operand(rng, rng.choice([1, 2, 3])) for _ in range(8)]
    stream = b"".join(data_message(i, operand) for i, operand in enumerate(operands))
    want = b"".join(data_message(i, matmul.result(operand)) for i, operand in enumerate(operands))
    with fabric.connect(SMP) as connection:

        def send():
            connection.sendall(stream)
            connection.shutdown(socket.SHUT_WR)

        def receive():
            assert read_all(connection) == want

        run_clients([send, receive], 120)


def test_clients_beside_each_other(fabric):
    def client(number):
        rng = random.Random(f"{SEED} client {number}")
        with fabric.connect(SMP) as connection:
            for ident in range(4):
                multiply(connection, ident, matmul.random_operand(rng, rng.choice([1, 1, 2, 3])))

    run_clients([lambda n=n: client(n) for n in range(8)], 120)


def test_echo_through_a_large_segment(fabric, rng):
    """The window is smaller than the segment: everything still comes back, in order."""
    with fabric.connect(ECHO) as connection:
        echo(connection, rng.randbytes(500_000))


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 4, PAIR // 2, PAIR - 1, PAIR + 1, 2 * PAIR - 4])
def test_operand_of_the_wrong_length(fabric, rng, length):
    """Answered BAD_LENGTH with the message's ID; the connection goes on."""
    before = fabric.counters()
    with fabric.connect(SMP) as connection:
        connection.sendall(data_message(77, rng.randbytes(length)))
        assert read_exactly(connection, 16) == error_message(Status.BAD_LENGTH, 77)
        multiply(connection, 78, matmul.random_operand(rng, 1))
    rises(fabric.counters, before, smp__bad_length=1, matmul__errors=1)


def test_largest_message_that_fits(fabric, rng):
    """The ring is filled to its last byte, again after a small message."""
    with fabric.connect(SMP) as connection:
        for ident in range(2):
            connection.sendall(data_message(ident, rng.randbytes(SEGMENT - 12)))
            assert read_exactly(connection, 16) == error_message(Status.BAD_LENGTH, ident)
            connection.sendall(data_message(ident, bytes(5)))
            assert read_exactly(connection, 16) == error_message(Status.BAD_LENGTH, ident)
        multiply(connection, 9, matmul.random_operand(rng, 3))


def test_more_pairs_than_fit(fabric, rng):
    before = fabric.counters()
    with fabric.connect(SMP) as connection:
        multiply(connection, 1, matmul.random_operand(rng, 1))
        connection.sendall(data_message(2, matmul.random_operand(rng, 4)))
        assert read_all(connection) == error_message(Status.TOO_LARGE)
    rises(fabric.counters, before, smp__too_large=1)


# --- clients that vanish -------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [11, 5000, PAIR, 2 * PAIR, 3 * PAIR])
def test_reset_in_the_middle_of_an_operand(fabric, rng, sent):
    before = fabric.counters()
    connection = fabric.connect(SMP)
    connection.sendall(data_message(1, matmul.random_operand(rng, 3))[:sent])
    wait_until(
        lambda: rise(before, fabric.counters()).get("tcp.sessions_used", 0) >= 1, 10, "no session"
    )
    fabric.sleep(0.3)
    reset(connection)
    rises(fabric.counters, before, tcp__rst_rx=1, smp__aborted=1)


def test_end_in_the_middle_of_an_operand(fabric, rng):
    with fabric.connect(SMP) as connection:
        connection.sendall(data_message(1, matmul.random_operand(rng, 3))[: 2 * PAIR])
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b""


def test_reset_while_the_role_works(fabric, rng):
    before = fabric.counters()
    for _ in range(6):
        connection = fabric.connect(SMP)
        connection.sendall(data_message(1, matmul.random_operand(rng, 3)))
        started = rise(before, fabric.counters()).get("smp.messages", 0)
        if rng.random() < 0.5:
            wait_until(
                lambda started=started: (
                    rise(before, fabric.counters()).get("smp.messages", 0) > started
                ),
                20,
                "no job",
            )
        reset(connection)
    rises(fabric.counters, before, tcp__rst_rx=6)


# --- bad link ------------------------------------------------------------------------------------


def test_products_over_a_bad_link():
    print(f"seed {SEED}")
    with simulated("fabric", *BAD_LINK) as board:
        fresh = board.counters()

        def client(number):
            rng = random.Random(f"{SEED} link {number}")
            # Without SACK and timestamps the kernel doubles its time-out with each hole it has to
            # find by one (RFC 6298, 5.5), until a segment comes through that it sent only once.
            with board.connect(SMP, timeout=150 * PATIENCE) as connection:
                for ident in range(2):
                    multiply(connection, ident, matmul.random_operand(rng, rng.choice([1, 2, 3])))
                connection.shutdown(socket.SHUT_WR)
                assert read_all(connection) == b""

        run_clients([lambda n=n: client(n) for n in range(4)], 160)
        assert_drained(board.counters, fresh)
        assert board.counters()["tcp.kept"] > 0
        assert board.stats()["to_board"]["lost"] > 0


# --- the whole board -----------------------------------------------------------------------------


@pytest.mark.nightly  # a command of README.md does the same in `make test`
def test_the_whole_board_multiplies():
    """The command, through firmware's board; the status page shows the role under its name."""
    print(f"seed {SEED}")
    command = [sys.executable, "-m", "trebuchet.host.cli", "matmul", "run"]
    with simulated("board") as board:
        fresh = quiet_counters(board)
        assert {"jobs", "errors", "cycles", "products", "mac_cycles"} <= set(
            status(board)["engines"]["matmul"]
        )
        done = board.run([*command, board.ip, "--count", "8", "--pairs", "3", "--json"], 300)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["products"], report["exact"], report["messages"]) == (8, 8, 3)
        risen = rise(fresh, status_counters(board))
        assert (risen["matmul.products"], risen["matmul.jobs"]) == (8, 3)
        done = board.run([*command, board.ip, "--count", "4", "--pairs", "4"], 300)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert " refused message 0: TOO_LARGE: " in done.stderr
        assert_drained(lambda: quiet_counters(board), fresh)
