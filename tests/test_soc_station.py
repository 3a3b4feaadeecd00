"""A board in the wire, whole: the kernel's TCP through it, and to it, from both of its sides."""

import os
import random
import socket
import threading

import pytest
from e2e_clients import ECHO, echo, run_clients
from patience import join
from sim_tops import needs_network
from trebuchet.sim.bridge import BridgeBoard, bridge_source
from trebuchet.sim.build import build

pytestmark = [pytest.mark.nightly, needs_network]


@pytest.fixture(scope="module", params=[False, True], ids=["unmanaged", "managed"])
def board(request):
    top = bridge_source(managed=request.param)
    options = {"ready": "ready"} if request.param else {"uart": "none"}
    with BridgeBoard(build(top), cwd=top.folder, **options) as running:
        running.wait_port(ECHO)
        yield running


def _connect(board, namespace, address, port, timeout=60):
    made = board.socket(within=namespace)
    made.settimeout(timeout)
    made.connect((address, port))
    return made


def _serve(board, namespace, address, port):
    """An echo server of this machine's kernel in ``namespace``, for one client."""
    listener = board.socket(within=namespace)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen()
    listener.settimeout(60)

    def serve():
        with listener, listener.accept()[0] as peer:
            peer.settimeout(60)
            while data := peer.recv(65536):
                peer.sendall(data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def _through(board, client, server, address, length):
    """Echo between the two kernels, which only the board joins."""
    thread = _serve(board, server, address, 5000)
    with _connect(board, client, address, 5000) as peer:
        echo(peer, os.urandom(length))
    join(thread, 60)


def test_the_host_reaches_the_network_through_the_board(board):
    for length in (1, 1460, 200_000):
        _through(board, board.host, board.namespace, board.host_ip, length)


def test_the_network_reaches_the_host_through_the_board(board):
    for length in (1, 1460, 200_000):
        _through(board, board.namespace, board.host, board.behind_ip, length)


@pytest.mark.parametrize("side", ["network", "host"])
def test_the_board_answers_both_sides(board, side):
    namespace = board.namespace if side == "network" else board.host
    for length in (1, 1460, 100_000):
        with _connect(board, namespace, board.ip, ECHO) as peer:
            echo(peer, os.urandom(length))


def test_all_at_once(board):
    """Both sides with the board, and with each other, for a while."""

    def ask(namespace, seed):
        rng = random.Random(seed)
        for _ in range(4):
            with _connect(board, namespace, board.ip, ECHO) as peer:
                echo(peer, rng.randbytes(20_000))

    run_clients(
        [
            lambda: _through(board, board.host, board.namespace, board.host_ip, 300_000),
            *(lambda k=k: ask(board.namespace, k) for k in range(3)),
            *(lambda k=k: ask(board.host, 10 + k) for k in range(3)),
        ],
        120,
    )


def test_datagrams_and_pings_cross_it(board):
    """UDP between the kernels; each says what it got."""
    far = board.socket(type=socket.SOCK_DGRAM)
    near = board.socket(type=socket.SOCK_DGRAM, within=board.host)
    with far, near:
        far.bind((board.host_ip, 6000))
        for made in (far, near):
            made.settimeout(20)
        for length in (1, 18, 1472):
            data = os.urandom(length)
            near.sendto(data, (board.host_ip, 6000))
            got, sender = far.recvfrom(4096)
            assert (got, sender[0]) == (data, board.behind_ip)
            far.sendto(data, sender)
            assert near.recv(4096) == data


def test_the_link_has_had_no_fault(board):
    assert board.stats()["link_errors"] == 0
