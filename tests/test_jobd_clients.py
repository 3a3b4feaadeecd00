"""Clients that know nothing of this project's library, through the job server."""

import random
import socket
import struct

import paper_client as paper
import pytest
from e2e_clients import read_all
from jobd_bench import PATIENCE, serving
from minimal_clients import MADE, make_client, run_client
from trebuchet.models.roles import benchmark
from trebuchet.models.status import Status

HOST = "127.0.0.1"


def connected(server):
    return socket.create_connection((HOST, server.user_port), PATIENCE)


def expect_results(connection, results):
    """Results in any order, each by its ID; the source's client counts them."""
    left = dict(results)
    while left:
        kind, payload = paper.receive(connection)
        (ident,) = struct.unpack_from("<I", payload)
        assert (kind, payload[4:]) == (paper.DATA, left.pop(ident))


def test_the_papers_client_works_through_the_job_server():
    """4.2.2: configure for a benchmark, await the response, send data, count the results."""
    rng = random.Random(11)
    with serving(boards=3) as server:
        server.wait_for_nodes(3)
        with connected(server) as connection:
            for sizes in ((64, 1500), (0, 0), (100_000, 20)):
                connection.sendall(paper.benchmarking(*sizes, 1000))
                paper.expect_status(connection, 0)
                jobs = {n: rng.randbytes(sizes[0] or 3000) for n in range(20)}
                connection.sendall(b"".join(paper.data(n, job) for n, job in jobs.items()))
                expect_results(
                    connection, {n: benchmark(job, 1 << 17, sizes[1])[1] for n, job in jobs.items()}
                )


def test_the_papers_client_is_told_what_no_node_takes():
    """Cores that no node has; data before any configuration."""
    with serving(boards=2) as server:
        server.wait_for_nodes(2)
        with connected(server) as connection:
            connection.sendall(paper.configuration(0x1234))
            paper.expect_status(connection, Status.BAD_DATA)
            connection.sendall(paper.data(5, b"data"))
            paper.expect_status(connection, Status.STOPPED)
            assert read_all(connection) == b""


@pytest.fixture(scope="module")
def server():
    with serving(boards=2, configured=True) as found:
        found.wait_for_nodes(2)
        yield found


@pytest.mark.parametrize("name", MADE)
def test_minimal_clients_work_through_the_job_server(server, root, tmp_path, name):
    command = make_client(root, name, tmp_path)
    for text in ("", "a heart beat \u00e9", "long " * 4000):
        done = run_client(command, HOST, server.user_port, text)
        assert (done.returncode, done.stdout, done.stderr) == (0, text.encode(), b"")
