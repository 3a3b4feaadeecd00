"""Several roles on one board, over a bad link, while one of them is reset again and again.

ECG (two instances), matrix multiply and loopback, each with clients of its own. What ECG and matrix
clients get is byte-exact; loopback's get their bytes, or ``ABORTED`` for what a reset has ended.
"""

import json
import random
import sys
import threading
from pathlib import Path

import pytest
from e2e_board import (
    assert_drained,
    board_in_simulation,
    quiet_counters,
    status,
    status_counters,
)
from e2e_clients import read_all, read_message, run_clients
from patience import PATIENCE
from sim_tops import needs_network
from trebuchet.client.status import roles_of
from trebuchet.models.plan import Plan
from trebuchet.models.smp_framing import TYPE_DATA, TYPE_RESPONSE, data_message, error_message
from trebuchet.models.status import Status

pytestmark = [pytest.mark.slow, needs_network]

SEED = 90
PLAN = Plan.of_roles("ecg:instances=2,buffers=2,stream=true", "matmul", "loopback")
ECG, MATMUL, LOOPBACK = 4000, 4001, 4002
LOSSY = ("--loss", "2%", "--reorder", "2%", "--duplicate", "1%", "--seed", str(SEED))
TREBUCHET = [sys.executable, "-m", "trebuchet.host.cli"]


@pytest.fixture(scope="module")
def board():
    with board_in_simulation(plan=PLAN) as board:
        yield board


def run_json(board, *words, seconds):
    done = board.run([*TREBUCHET, *words, "--json"], seconds * PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(status, ident):
    return TYPE_RESPONSE, error_message(status, ident)[8:]


def test_the_board_tells_its_roles(board):
    assert roles_of(status(board)) == ["ecg", "matmul", "loopback"]
    assert {"ecg_0", "ecg_1"} <= status(board)["engines"].keys()


def test_messages_name_a_role(board):
    """On any port with SMP: by its number, by the command's option; one that is not there, too."""
    operand = bytes(range(200))
    for port in (ECG, MATMUL, LOOPBACK):
        with board.connect(port) as connection:
            connection.sendall(data_message(7, operand, role=2))
            assert read_message(connection) == (TYPE_DATA, data_message(7, operand)[8:])
            connection.sendall(data_message(8, operand, role=3))
            assert read_message(connection) == (TYPE_RESPONSE, error_message(Status.NO_ROLE, 8)[8:])
            connection.sendall(data_message(9, operand, kind=4, role=2))
            assert read_message(connection) == (
                TYPE_RESPONSE,
                error_message(Status.BAD_TYPE, 9)[8:],
            )
    words = ("matmul", "run", board.ip, "--count", "2")
    assert run_json(board, *words, "--role", "matmul", seconds=60)["exact"] == 2
    done = board.run([*TREBUCHET, *words, "--role", "sums"], 60 * PATIENCE)
    assert done.returncode == 1
    assert done.stderr.endswith(" has no role 'sums'; its roles are: ecg, matmul, loopback\n")


def test_the_client_library_uses_all_of_the_board(board):
    """Typed calls, streams, asyncio, a pool of two connections, management."""
    script = Path(__file__).with_name("client_on_board.py")
    done = board.run([sys.executable, str(script), board.ip], 300 * PATIENCE)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


def test_an_instance_is_switched_off_alone(board):
    """The other one gets the jobs; with both off they are refused."""

    def manage(*words):
        done = board.run([*TREBUCHET, "manage", board.ip, *words], 60 * PATIENCE)
        assert done.returncode == 0, done.stderr

    def jobs():
        counters = status_counters(board)
        return [counters[f"ecg_{k}.jobs"] for k in range(2)]

    samples = bytes(8192)
    manage("role", "ecg_0", "off")
    before = jobs()
    with board.connect(ECG) as connection:
        for ident in range(4):
            connection.sendall(data_message(ident, samples))
            assert read_message(connection)[0] == TYPE_DATA
    after = jobs()
    assert (after[0] - before[0], after[1] - before[1]) == (0, 4)
    manage("role", "ecg_1", "off")
    with board.connect(ECG) as connection:
        connection.sendall(data_message(1, samples))
        assert read_message(connection) == refusal(Status.STOPPED, 1)
        connection.sendall(data_message(2, b"abc", role=2))  # the others go on
        assert read_message(connection)[0] == TYPE_DATA
    for name in ("ecg_0", "ecg_1"):
        manage("role", name, "on")


def loopback(board, rng, over, seen):
    """Messages of any length until ``over``; each comes back, or was aborted."""
    ident = 0
    with board.connect(LOOPBACK) as connection:
        while not over.is_set():
            ident += 1
            operand = rng.randbytes(rng.randint(0, 1500))
            connection.sendall(data_message(ident, operand))
            answer = read_message(connection)
            aborted = refusal(Status.ABORTED, ident)
            assert answer in (aborted, (TYPE_DATA, data_message(ident, operand)[8:]))
            seen.append(answer == aborted)
        connection.shutdown(2 - 1)
        assert read_all(connection) == b""


@pytest.mark.parametrize(
    ("minutes", "products"),
    [(0.5, 12), pytest.param(10, 1000, marks=pytest.mark.nightly)],
)
def test_all_roles_under_load(minutes, products):
    print(f"seed {SEED}")
    over, seen = threading.Event(), []
    with board_in_simulation(*LOSSY, plan=PLAN) as board:
        fresh = quiet_counters(board)
        reports = {}

        def client(name, *words):
            reports[name] = run_json(board, *words, seconds=60 + 120 * minutes)

        def resets():
            """Loopback is reset every second until the others have done their work."""
            while len(reports) < 2:
                board.sleep(1)
                words = ["manage", board.ip, "role", "loopback", "reset"]
                done = board.run([*TREBUCHET, *words], 60 * PATIENCE)
                assert done.returncode == 0, done.stderr
            over.set()

        record = ("--record", "synthetic", "--minutes", str(minutes), "--port", str(ECG))
        pairs = ("--port", str(MATMUL), "--count", str(products))
        run_clients(
            [
                lambda: client("ecg", "ecg", "run", board.ip, *record),
                lambda: client("matmul", "matmul", "run", board.ip, *pairs),
                lambda: loopback(board, random.Random(f"{SEED} one"), over, seen),
                lambda: loopback(board, random.Random(f"{SEED} two"), over, seen),
                resets,
            ],
            120 + 300 * minutes,
        )
        assert reports["ecg"]["differing_messages"] == 0
        assert reports["matmul"]["exact"] == products
        assert seen.count(False) > 10
        counters = status_counters(board)
        assert all(counters[f"ecg_{k}.jobs"] > 0 for k in range(2))
        assert all(counters[f"{name}.hangs"] == 0 for name in ("ecg_0", "ecg_1", "matmul"))
        assert_drained(lambda: quiet_counters(board), fresh)
