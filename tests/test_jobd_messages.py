"""SMP of the job server and the model node: answers as the framer's model, whatever comes."""

import json
import re
import socket
import struct
import subprocess
import time
import urllib.request

import pytest
import smp_streams
from jobd_bench import PATIENCE, JobServer, Nodes, benchmarking, serving
from streams import make_rng, seeds
from trebuchet.client import smp
from trebuchet.host.jobd_build import build, status_header
from trebuchet.models.roles import benchmark, loopback
from trebuchet.models.smp_framing import data_message, error_message, frame
from trebuchet.models.status import Status

SEGMENT = 512
ROOM = SEGMENT - 16


def talk(port, stream, pieces=()):
    """What comes back for the bytes of a connection, which are sent in pieces of these sizes."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for size in pieces:
            connection.sendall(stream[:size])
            stream = stream[size:]
            time.sleep(0.001)
        connection.sendall(stream)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while data := connection.recv(1 << 16):
            received += data
    return received


def random_stream(rng, messages):
    return smp_streams.random_stream(rng, messages, SEGMENT, 0.04, (0, 2, 4, 6, 255))


def random_pieces(rng):
    return [rng.choice([1, 7, 8, 9, 12, 13, 100]) for _ in range(rng.randint(0, 6))]


@pytest.fixture(scope="module")
def node():
    nodes = Nodes(1, "--segment", SEGMENT, "--room", ROOM)
    yield nodes.ports[0]
    nodes.stop()


@seeds(40)
def test_a_model_node_answers_as_the_framer(node, seed):
    rng = make_rng(seed, "jobd")
    stream = random_stream(rng, rng.randint(0, 8))
    want, _, _ = frame(stream, SEGMENT, lambda ident, data: loopback(data, ROOM))
    assert talk(node, stream, random_pieces(rng)) == want


@seeds(3)
def test_the_benchmark_role_is_the_model(seed):
    rng = make_rng(seed, "benchmark")
    output = rng.choice([0, 16, 17, 100, ROOM + 1])
    nodes = Nodes(1, "--segment", SEGMENT, "--room", ROOM)
    try:
        stream = random_stream(rng, 8)
        begin = benchmarking(output=output).message().pack()
        want, _, _ = frame(stream, SEGMENT, lambda ident, data: benchmark(data, ROOM, output))
        assert talk(nodes.ports[0], begin + stream) == error_message(Status.OK) + want
    finally:
        nodes.stop()


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        (bytes(11), Status.BAD_LENGTH),
        (struct.pack("<III", 0, 0, 1) + bytes(11), Status.BAD_LENGTH),
        (struct.pack("<III", 0, 0, 0xFFFFFFFF) + bytes(4), Status.BAD_LENGTH),
        (struct.pack("<III", 0, 0, 1) + bytes(12), Status.BAD_DATA),
        (struct.pack("<III", 0, 0, 0) + bytes(5), Status.NOT_BUILT_IN),
        (struct.pack("<III", 0, 0, 0) + bytes(4), Status.OK),
    ],
)
def test_configurations_of_a_model_node(node, payload, status):
    message = smp.Message(smp.MessageType.CONFIGURATION, payload).pack()
    assert talk(node, message) == error_message(status)


def test_the_status_page_of_a_model_node():
    nodes = Nodes(2, "--cycles", 100, "--segment", SEGMENT)
    try:
        port = nodes.ports[1]
        talk(port, data_message(1, b"ab") + struct.pack("<B3xI", 3, 1) + b"a" + bytes(8))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status") as answer:
            state = json.load(answer)
        assert state["board"] == "model-1"
        counted = {"messages": 1, "answers": 1, "bad_type": 1, "bad_length": 1, "too_large": 0}
        assert state["smp"] == counted | {
            "no_room": 0,
            "aborted": 0,
            "stale": 0,
            "lease": 0,
            "guard": 0,
        }
        assert state["role_counters"] == {"jobs": 1, "busy_cycles": 100, "configurations": 0}
        assert b"404" in talk(port, b"GET /else HTTP/1.1\r\n\r\n")
    finally:
        nodes.stop()


@pytest.fixture(scope="module")
def server():
    options = ("--segment", 1 << 16, "--room", ROOM)
    with serving("--largest", SEGMENT, boards=2, node_options=options, configured=True) as found:
        found.wait_for_nodes(2)
        yield found


def cut(stream):
    """The messages of a stream of answers."""
    decoder = smp.Decoder()
    found = [message.pack() for message in decoder.feed(stream)]
    decoder.finish()
    return found


@seeds(40)
def test_a_user_is_answered_as_by_a_board(server, seed):
    """The same answers, but for their order; the last is that to what ends the connection."""
    rng = make_rng(seed, "user")
    stream = random_stream(rng, rng.randint(0, 8))
    want, _, lost = frame(stream, SEGMENT, lambda ident, data: loopback(data, ROOM))
    answers = cut(talk(server.user_port, stream, random_pieces(rng)))
    assert sorted(answers) == sorted(cut(want))
    if lost:
        assert answers[-1] == cut(want)[-1]


def test_reserved_bytes_are_passed_on():
    """A user's header reaches the node as it is, but for the ID: the first names a role."""
    with socket.create_server(("127.0.0.1", 0)) as board:
        place = f"127.0.0.1:{board.getsockname()[1]}"
        server = JobServer("--node", place, "--configured")
        try:
            node, _ = board.accept()
            with node, server.user() as user:
                user.socket.sendall(struct.pack("<BBBBII", 3, 5, 6, 7, 6, 99) + b"xy")
                header = node.recv(14, socket.MSG_WAITALL)
                assert header[:8] == struct.pack("<BBBBI", 3, 5, 6, 7, 6)
                node.sendall(struct.pack("<BBBBI", 3, 8, 9, 10, 7) + header[8:12] + b"abc")
                want = struct.pack("<BBBBII", 3, 8, 9, 10, 7, 99) + b"abc"
                assert user.socket.recv(15, socket.MSG_WAITALL) == want
        finally:
            server.stop()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--node", "nowhere"], "jobd: --node must be HOST:PORT, not nowhere"),
        (["--node", "127.0.0.1:0"], "jobd: --node must be a number from 1 to 65535, not 0"),
        (["--policy", "best"], "jobd: --policy must be queue, stack or least, not best"),
        (["--window", "65"], "jobd: --window must be a number from 1 to 64, not 65"),
        (["--window"], "jobd: --window needs a value"),
        (["--address", "::1"], "jobd: --address must be an IPv4 address, not ::1"),
        (["--what"], "jobd: there is no option --what"),
    ],
)
def test_wrong_usage_is_one_line(options, line):
    done = subprocess.run(
        [build("trebuchet-jobd"), *options], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, line + "\n")


def test_a_port_in_use_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = f"127.0.0.1:{other.getsockname()[1]}"
        for program, option in (("trebuchet-jobd", "--node-port"), ("trebuchet-node", "--port")):
            options = ["--user-port", "0"] if program == "trebuchet-jobd" else []
            done = subprocess.run(
                [build(program), *options, option, place.partition(":")[2]],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 1
            assert re.fullmatch(f"\\w+: cannot listen at {place}: .*in use\n", done.stderr)


def test_status_codes_are_those_of_the_table():
    header = status_header()
    for code in Status:
        assert f"    {code.name} = {int(code)},  //" in header
        assert f'return "{code.name}";' in header
