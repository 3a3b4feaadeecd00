"""Fifty connections over a bad link, both ways: byte-exact, and none hangs."""

import random
import socket

import pytest
from e2e_board import BAD_LINK, assert_drained, fabric_in_simulation
from e2e_clients import ECHO, SMP, ecg_blocks, ecg_job, echo, read_all, run_clients
from patience import PATIENCE
from sim_tops import needs_network

pytestmark = needs_network

CONNECTIONS = 50
SEED = 20
MOST = 40_000
LIMIT = 150


@pytest.fixture(scope="module")
def fabric():
    print(f"seed {SEED}")
    with fabric_in_simulation(*BAD_LINK, "--seed", str(SEED), impatient=True) as board:
        yield board


def echo_client(board, seed):
    """One connection, a few transfers of up to 40 KB, then an orderly end."""
    rng = random.Random(seed)
    with board.connect(ECHO, timeout=LIMIT * PATIENCE) as connection:
        for _ in range(rng.randint(1, 3)):
            echo(connection, rng.randbytes(rng.randint(1, MOST)))
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b""


def ecg_client(board, seed):
    rng = random.Random(seed)
    with board.connect(SMP, timeout=LIMIT * PATIENCE) as connection:
        for ident, block in enumerate(ecg_blocks(rng, rng.randint(1, 4))):
            ecg_job(connection, ident, block)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b""


def test_fifty_connections_over_a_bad_link(fabric):
    print(f"seed {SEED}")
    fresh = fabric.counters()
    clients = []
    for number in range(CONNECTIONS):
        client = ecg_client if number % 3 == 0 else echo_client
        clients.append(lambda c=client, n=number: c(fabric, f"{SEED} {n}"))
    run_clients(clients, LIMIT)
    assert_drained(fabric.counters, fresh)
    stats = fabric.stats()
    for way in ("to_board", "from_board"):
        for damage in ("lost", "duplicated", "reordered", "corrupted_fcs", "corrupted_payload"):
            assert stats[way][damage] > 0, (way, damage)
    now = stats["counters"]
    assert now["tcp.established"] - fresh["tcp.established"] >= CONNECTIONS
    assert now["tcp.retransmits"] > 0
    assert stats["link_errors"] == 0
