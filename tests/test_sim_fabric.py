"""The fabric top: the shell under the load generator, and under this machine's kernel."""

import random
import threading

import pytest
from e2e_board import impatient_fabric
from patience import join
from sim_tops import needs_network
from trebuchet.sim.defaults import PAGE
from trebuchet.sim.run import Board, run_batch

# Compiling the shell takes a minute.
pytestmark = pytest.mark.slow

BAD_LINK = ["--loss", "3%", "--reorder", "5%", "--duplicate", "2%", "--corrupt", "1%"]


@pytest.fixture(scope="module")
def fabric():
    return impatient_fabric()


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page"
    path.write_bytes(PAGE)
    return path


def assert_clean(code, stats):
    load = stats["load"]
    assert (code, load["complete"], load["errors"], load["active"]) == (0, 1, 0, 0), stats
    assert stats["link_errors"] == 0
    counters = stats["counters"]
    for name in ("segments_free", "descriptors_free"):
        assert counters[f"tcp.{name}"] == stats["counters_initial"][f"tcp.{name}"], name


@pytest.mark.parametrize("link", [[], [*BAD_LINK, "--stall", "30%"]], ids=["good", "bad"])
@pytest.mark.parametrize(
    "mode", ["http", "echo", pytest.param("discard", marks=pytest.mark.nightly)]
)
def test_load(fabric, page, mode, link):
    arguments = ["--load", mode, "--clients", 16, "--transactions", 40, "--seed", 3]
    arguments += ["--max-bytes", 6000, "--pause", "2%", "--drain", 3000]
    arguments += ["--port", 8080, "--expect", page] if mode == "http" else []
    code, stats = run_batch(
        fabric, [*arguments, *link, "--time", "cycles:200", "--cycles", 40_000_000], timeout=500
    )
    assert_clean(code, stats)


@needs_network
def test_kernel_tcp_beside_arp(fabric):
    data = random.Random(6).randbytes(60_000)
    results = {}

    def echo(board, i):
        with board.connect(7) as s:
            writer = threading.Thread(target=s.sendall, args=(data,))
            writer.start()
            received = bytearray()
            while len(received) < len(data) and (chunk := s.recv(65536)):
                received += chunk
            writer.join()
            results[i] = bytes(received) == data

    with Board(fabric) as board:
        board.wait_port(7, 30)
        threads = [threading.Thread(target=echo, args=(board, i)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            join(thread, 120)
        assert results == dict.fromkeys(range(4), True)
        assert board.counters()["classifier.other_frames"] > 0
