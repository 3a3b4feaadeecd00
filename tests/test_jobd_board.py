"""The job server with a simulated board: from a user through the server to the gateware.

The board is passive: the server connects to it. Or active: it connects to the server, from behind
a NAT, so that the server sees the router's address alone and has no route to the board.
"""

import contextlib
import random
import subprocess

import pytest
from e2e_board import assert_drained, know_address, quiet_counters
from e2e_smp import FULL, made, simulated
from jobd_bench import JobServer, benchmarking
from nat import FAR_IP, ROUTER_IP, far_side
from sim_tops import needs_network
from trebuchet.client import smp
from trebuchet.models import roles
from trebuchet.models.config_message import cores_of_build
from trebuchet.models.status import Status

pytestmark = [pytest.mark.slow, needs_network]

SERVER, PORT = 4321, 4000
#: Bytes of operand and of result, and microseconds on the board, of a benchmark (4.2.2).
BYTES, DELAY = 16384, 949
SETTINGS = f"server={FAR_IP}:{SERVER}\nnetmask=255.255.255.0\ngateway=192.0.2.1\n"


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    with simulated(tmp_path_factory.mktemp("jobd"), SETTINGS) as board:
        know_address(board)
        fresh = quiet_counters(board)
        yield board
        assert_drained(lambda: quiet_counters(board), fresh)


@contextlib.contextmanager
def job_server(board, namespace, *options):
    """A job server in a namespace, as patient as a simulated board needs it."""

    def start(command, **kwargs):
        return subprocess.Popen(namespace.enter(command), **kwargs)

    def connect(address, timeout):
        connection = board.socket(within=namespace)
        connection.settimeout(timeout)
        connection.connect(address)
        return connection

    patient = ("--patience-ms", 3_600_000, "--message-timeout-ms", 3_600_000)
    server = JobServer(*options, *patient, start=start, connect=connect)
    try:
        yield server
        server.idle()
    finally:
        server.stop()


@contextlib.contextmanager
def behind_nat(board):
    try:
        context = far_side(board.namespace)
        namespace = context.__enter__()
    except RuntimeError as error:
        pytest.skip(f"no NAT here: {error}")
    try:
        with pytest.raises(OSError, match="unreachable"):
            namespace.socket().connect((board.ip, PORT))
        yield namespace
    finally:
        context.__exit__(None, None, None)


@contextlib.contextmanager
def server_of(board, how):
    """A job server whose node is the board."""
    if how == "passive":
        with job_server(board, board.namespace, "--node", f"{board.ip}:{PORT}") as server:
            yield server
        return
    with behind_nat(board) as far:
        options = ("--address", "0.0.0.0", "--node-port", SERVER)
        with job_server(board, far, *options) as server:
            yield server


def wait_for_board(board, server):
    """Wait until the server has the board; returns the address that it has it by."""
    end = board.deadline(200)
    while not server.nodes_connected():
        assert end.left(), server.lines
        board.sleep(0.2)
    (name,) = (
        name for name, on in server.metrics().items() if name.startswith("node_connected{") and on
    )
    return name


@pytest.mark.parametrize("how", ["passive", "active"])
def test_configuration_and_data_reach_the_gateware(board, how):
    """A benchmark (4.2.2), then a core by its address; what comes back is exact, and all of it."""
    rng = random.Random(f"31 {how}")
    with server_of(board, how) as server:
        name = wait_for_board(board, server)
        assert (board.ip if how == "passive" else ROUTER_IP) in name
        with server.user(timeout=300) as user:
            assert user.configure(benchmarking(DELAY, BYTES, BYTES)) == (Status.OK, 1)
            jobs = {k: rng.randbytes(BYTES) for k in range(1, 4)}
            expected = {k: roles.benchmark(operand, BYTES, BYTES)[1] for k, operand in jobs.items()}
            assert user.exchange(jobs) == expected
            core = smp.Core(cores_of_build(made().folder.parent)["loopback"], 0, 0)
            loopback = smp.Configuration(0, 0, (core,), b"")
            assert user.configure(loopback) == (Status.OK, 1)
            jobs = {k: rng.randbytes(length) for k, length in enumerate((FULL, 0, FULL, 2033), 4)}
            assert user.exchange(jobs) == jobs
            wrong = smp.Configuration(0, 0, (smp.Core(core.control + 4, 0, 0),), b"")
            assert user.configure(wrong) == (Status.BAD_DATA, 0)
