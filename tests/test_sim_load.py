"""The load generator, checked against the kernel's own TCP before it checks ours."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from sim_server import ANSWER
from sim_tops import needs_network, wire
from trebuchet.sim.netns import Namespace

BAD_LINK = ["--loss", "3%", "--reorder", "5%", "--duplicate", "2%", "--corrupt", "1%"]
SERVER = Path(__file__).with_name("sim_server.py")

pytestmark = needs_network


def load(mode, port, *options, clients=20, transactions=60):
    """Exit code and statistics of a load on a kernel server at ``port``."""
    command = [sys.executable, SERVER, wire(), "--tap", "tap0", "--address", "192.0.2.2/16"]
    command += ["--time", "wall", "--stats", "-", "--seconds", "40", "--load", mode]
    command += ["--port", port, "--clients", clients, "--transactions", transactions, *options]
    with Namespace() as namespace:
        done = subprocess.run(namespace.enter(command), capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    stats = json.loads(done.stdout)
    print(json.dumps(stats))
    return done.returncode, stats


def assert_clean(stats, transactions):
    result = stats["load"]
    assert result["complete"] == 1
    assert result["transactions"] == transactions
    for name in ("errors", "bad_ack", "beyond_window", "beyond_fin", "active"):
        assert result[name] == 0, (name, result)


def test_http(tmp_path):
    expected = tmp_path / "answer"
    expected.write_bytes(ANSWER)
    code, stats = load("http", 80, "--expect", expected)
    assert code == 0
    assert_clean(stats, 60)
    assert stats["load"]["bytes_received"] == 60 * len(ANSWER)
    assert stats["load"]["cycles_per_transaction"] > 0
    assert stats["load"]["latency_p50"] <= stats["load"]["latency_p99"]


def test_http_with_an_answer_that_differs(tmp_path):
    expected = tmp_path / "answer"
    expected.write_bytes(ANSWER[:-1] + b"x")
    code, stats = load("http", 80, "--expect", expected, clients=2, transactions=4)
    assert code == 1
    assert stats["load"]["mismatches"] >= 4


@pytest.mark.parametrize(
    "options", [[], ["--pause", "0.05", "--window", "6000"], ["--mss", "100"]], ids=str
)
def test_echo(options):
    code, stats = load("echo", 7, *options)
    assert code == 0
    assert_clean(stats, 60)
    assert stats["load"]["bytes_received"] == stats["load"]["bytes_sent"] > 0
    assert stats["load"]["bad_checksums"] == 0
    if "--pause" in options:
        assert stats["load"]["pauses"] > 0


def test_what_is_carried_in_the_time_measured():
    """Of one client: what its transactions sent and got; of many: what is under way, too."""
    code, stats = load("echo", 7, clients=1, transactions=10)
    assert code == 0
    result = stats["load"]
    assert result["carried_in"] == result["carried_out"] == result["bytes_sent"] > 0
    # So long that when counting begins, and when it ends, the others are in the middle of theirs;
    # whose middle is further on is chance.
    sizes = ("--min-bytes", 100_000, "--max-bytes", 200_000)
    code, stats = load("echo", 7, *sizes, clients=8, transactions=12)
    assert code == 0
    beside = stats["load"]["carried_in"] - stats["load"]["bytes_received"]
    assert 0 < abs(beside) <= 7 * 200_000


def test_discard():
    code, stats = load("discard", 9)
    assert code == 0
    assert_clean(stats, 60)
    assert stats["load"]["bytes_received"] == 0


@pytest.mark.parametrize("options", [[], BAD_LINK], ids=["good", "bad"])
def test_idle_connections(options):
    """Three hundred are there before the first client and leave after the last one."""
    code, stats = load("http", 80, "--idle", 300, "--idle-port", 9, *options)
    assert code == 0
    assert_clean(stats, 60)
    crowd = stats["load"]["crowd"]
    assert (crowd["members"], crowd["open"], crowd["over"]) == (300, 0, 300)
    if options:
        assert crowd["repeats"] > 0


def test_idle_connections_that_are_refused():
    code, stats = load("http", 80, "--idle", 20, "--idle-port", 1, clients=2, transactions=2)
    assert code == 1
    assert stats["load"]["crowd"]["resets"] == 20


def test_too_many_idle_connections():
    command = [wire(), "--load", "http", "--idle", "1000001", "--time", "wall"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith("--idle must be 0 to 1000000")


@pytest.mark.parametrize("mode", ["echo", "http", "discard"])
def test_bad_link(mode):
    port = {"echo": 7, "http": 80, "discard": 9}[mode]
    code, stats = load(mode, port, *BAD_LINK, "--seed", 2)
    assert code == 0
    assert_clean(stats, 60)
    assert stats["load"]["retransmissions"] > 0
    assert stats["from_board"]["lost"] > 0


def messages(path, *, wrong=False):
    """Messages that an echo server answers rightly; the last byte of one answer is ``wrong``."""
    parts = []
    for number, size in enumerate((12, 13, 3000, 8204)):
        request = bytes(number + i & 0xFF for i in range(size))
        answer = request[:-1] + b"x" if wrong and number == 2 else request
        parts += [struct.pack("<4I", size, size, 8, 8), request, answer]
    path.write_bytes(b"".join(parts))
    return path


@pytest.mark.parametrize("options", [[], ["--abort", "0.2"], ["--ramp", 3, *BAD_LINK]], ids=str)
def test_messages(tmp_path, options):
    code, stats = load("messages", 7, "--messages", messages(tmp_path / "m"), *options)
    assert code == 0
    assert_clean(stats, 60)
    assert (stats["load"]["aborted"] > 0) == ("--abort" in options)
    assert stats["load"]["bytes_received"] == stats["load"]["bytes_sent"] > 0


def test_messages_with_an_answer_that_differs(tmp_path):
    file = messages(tmp_path / "m", wrong=True)
    code, stats = load("messages", 7, "--messages", file, clients=2, transactions=8)
    assert code == 1
    assert stats["load"]["mismatches"] > 0


def test_wrong_byte_is_found():
    options = ["--min-bytes", 2000, "--max-bytes", 3000]
    code, stats = load("echo", 13, *options, clients=2, transactions=4)
    assert code == 1
    assert stats["load"]["mismatches"] >= 4
    assert "received" in stats["load"]["first_error"]


def test_refused_connection_is_an_error():
    code, stats = load("echo", 1, clients=2, transactions=2)
    assert code == 1
    assert stats["load"]["resets"] >= 2


def test_hostile_frames_hurt_no_honest_client():
    code, stats = load("hostile", 7, "--attack", 100, "--drain", 50)
    assert stats["load"]["complete"] == 1
    assert_clean(stats, 60)
    for kind in ("damaged", "datagram", "half_open", "mutated", "noise", "stray", "vanished"):
        assert stats["load"]["attacks"][kind] > 0
    assert code == 0
