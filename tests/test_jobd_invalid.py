"""Invalid input at the job server's ports: one status, one line in the log, no effect on others."""

import contextlib
import http.server
import random
import socket
import struct
import threading
import time

import pytest
from jobd_bench import PATIENCE, JobServer, Nodes, eventually, serving, tally
from jobd_load import Resources
from trebuchet.client import smp
from trebuchet.models.status import Status

BIG = ("--segment", 1 << 22)
FOUR_GB = 0xFFFFFFFF


def header(kind, size):
    return struct.pack("<B3xI", kind, size)


def configuration(payload):
    return smp.Message(smp.MessageType.CONFIGURATION, payload).pack()


#: What a user sends, the status that it gets, and whether its connection ends.
USERS = {
    **{
        f"type {kind}": (header(kind, 4) + b"abcd", Status.BAD_TYPE, True)
        for kind in (0, 2, 4, 5, 6, 7, 255)
    },
    "an HTTP request": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", Status.BAD_TYPE, True),
    "garbage": (bytes([200]) + random.Random(1).randbytes(100_000), Status.BAD_TYPE, True),
    "4 GB of data": (header(3, FOUR_GB) + bytes(1000), Status.TOO_LARGE, True),
    "4 GB of configuration": (header(1, FOUR_GB) + bytes(1000), Status.TOO_LARGE, True),
    "more than the largest": (header(3, 16 << 20) + bytes(1000), Status.TOO_LARGE, True),
    "data without ID": (header(3, 3) + b"abc", Status.BAD_LENGTH, False),
    "data without anything": (header(3, 0), Status.BAD_LENGTH, False),
    "an empty configuration": (configuration(b""), Status.BAD_LENGTH, False),
    "a configuration of 11 bytes": (configuration(bytes(11)), Status.BAD_LENGTH, False),
    "cores that are not there": (
        configuration(struct.pack("<III", 0, 0, 2) + bytes(12)),
        Status.BAD_LENGTH,
        False,
    ),
    "4 billion cores": (
        configuration(struct.pack("<III", 0, 0, FOUR_GB) + bytes(12)),
        Status.BAD_LENGTH,
        False,
    ),
}


@pytest.fixture(scope="module")
def server():
    with serving(boards=2, node_options=BIG, configured=True) as found:
        found.wait_for_nodes(2)
        yield found


def lines_about(server, peer):
    return [line for line in server.lines if peer in line]


@pytest.mark.parametrize("what", USERS)
def test_invalid_input_of_a_user(server, what):
    said, status, ends = USERS[what]
    with server.user() as other, server.user() as user:
        other.send(smp.data_message(1, bytes(100_000)))
        with contextlib.suppress(ConnectionError):
            user.socket.sendall(said)
        assert user.results(1) == {0: status}
        name = "user {}:{}".format(*user.socket.getsockname())
        if ends:
            assert user.closed()
        else:
            assert user.exchange({7: b"goes on"}) == {7: b"goes on"}
        assert other.results(1) == {1: bytes(100_000)}
        (line,) = eventually(lambda: lines_about(server, f"{name}:"), "it is logged")
        assert line.startswith(f"jobd: {name}: ")
        assert line.endswith(f": {status.name}")
    server.idle()
    assert len(lines_about(server, f"{name}:")) == 1


def test_a_flood_of_short_messages_is_one_line(server):
    with server.user() as user:
        user.socket.sendall((header(3, 2) + b"xy") * 1000)
        for _ in range(1000):
            assert user.results(1) == {0: Status.BAD_LENGTH}
        name = "user {}:{}".format(*user.socket.getsockname())
    server.idle()
    (line,) = eventually(lambda: lines_about(server, f"{name}:"), "it is logged")
    assert line == f"jobd: {name}: refused a message: BAD_LENGTH"


@pytest.mark.parametrize("mode", [(), ("--copy",)], ids=["splice", "copy"])
@pytest.mark.parametrize("kind", [1, 3])
def test_a_header_alone_takes_no_memory(mode, kind):
    """Users who announce 15 MiB and send a few bytes of them."""
    with serving(*mode, boards=1, node_options=BIG, configured=True) as server:
        server.wait_for_nodes(1)
        before = memory(server)
        with contextlib.ExitStack() as stack:
            for _ in range(40):
                user = stack.enter_context(server.user())
                user.socket.sendall(header(kind, 15 << 20) + bytes(100))
            with server.user() as good:
                assert good.exchange({1: bytes(200_000)}) == {1: bytes(200_000)}
            eventually(lambda: server.metrics()["users"] == 40, "the good user has left")
            assert memory(server) - before < 40 * (512 << 10)


def memory(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))


#: What a peer says that is no node, and what is logged of it.
NODES = {
    "an HTTP client": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "sent no SMP answer: BAD_TYPE"),
    "garbage": (bytes([99]) + random.Random(2).randbytes(1000), "sent no SMP answer: BAD_TYPE"),
    "a job": (smp.Message(4, bytes(8)).pack(), "sent no SMP answer: BAD_TYPE"),
    "a configuration": (configuration(bytes(16)), "sent no SMP answer: BAD_TYPE"),
    "4 GB of data": (header(3, FOUR_GB) + bytes(1000), "sent no SMP answer: TOO_LARGE"),
    "4 GB of a response": (header(2, FOUR_GB) + bytes(1000), "sent no SMP answer: TOO_LARGE"),
    "a result without ID": (header(3, 3) + b"abc", "sent a data message without an ID"),
    "a response of 3 bytes": (header(2, 3) + b"abc", "sent a response of neither 1 nor 8"),
    "half a message": (header(3, 1000) + bytes(100), "closed the connection"),
    "nothing": (b"", "closed the connection"),
}


def exchange_beside(server):
    """Jobs of a user while a node is wrong: each has its result, or was given up with the node."""
    jobs = {ident: bytes([ident]) * 2000 for ident in range(20)}
    with server.user() as user:
        answers = user.exchange(jobs)
    given_up = {ident: a for ident, a in answers.items() if a != jobs[ident]}
    assert set(given_up.values()) <= {Status.ABORTED}
    assert len(given_up) <= 2, "a node has two jobs at most"


@pytest.mark.parametrize("what", NODES)
def test_a_peer_at_the_node_port_that_is_no_node(server, what):
    said, line = NODES[what]
    held = Resources(server)
    with socket.create_connection(("127.0.0.1", server.node_port), PATIENCE) as peer:
        name = "{}:{}".format(*peer.getsockname())
        with contextlib.suppress(ConnectionError):
            peer.sendall(said)
            peer.shutdown(socket.SHUT_WR)
        exchange_beside(server)
        (found,) = eventually(lambda: lines_about(server, f"{name}:"), "it is logged")
        assert found.startswith(f"jobd: {name}: {line}")
    held.check()
    assert len(lines_about(server, f"{name}:")) == 1


def test_answers_that_nobody_asked_for_are_dropped(server):
    """Of a peer that is otherwise well-behaved; it is a node until it leaves."""
    late = server.idle()["late_answers_total"]
    with socket.create_connection(("127.0.0.1", server.node_port), PATIENCE) as peer:
        name = "{}:{}".format(*peer.getsockname())
        peer.sendall(smp.data_message(77, b"x").pack() * 50 + smp.response_message(6, 9).pack())
        eventually(lambda: server.metrics()["late_answers_total"] == late + 51, "all are dropped")
        assert server.nodes_connected() == 3
    (line,) = eventually(lambda: lines_about(server, f"{name}:"), "it has left")
    assert line == f"jobd: {name}: closed the connection"
    server.wait_for_nodes(2)


def test_a_silent_node_is_given_up():
    """Its two jobs, at most, are given up in time; others go to the real node meanwhile."""
    with serving("--patience-ms", 1500, boards=1, configured=True) as server:
        server.wait_for_nodes(1)
        with socket.create_connection(("127.0.0.1", server.node_port), PATIENCE) as peer:
            server.wait_for_nodes(2)
            name = "{}:{}".format(*peer.getsockname())
            exchange_beside(server)
            eventually(lambda: server.nodes_connected() == 1, "the silent one is lost")
            (line,) = eventually(lambda: lines_about(server, f"{name}:"), "it is logged")
            assert line == f"jobd: {name}: did not answer a job in time"


class Http(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass


def test_a_passive_node_that_is_an_http_server():
    """Its answer is no SMP; it is tried less and less often."""
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Http)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    place = f"127.0.0.1:{web.server_address[1]}"
    try:
        with serving("--node", place, boards=1, configured=True) as server:
            server.wait_for_nodes(2)
            with server.user() as user:
                answers = user.exchange({n: b"a\nb\n\n" * 200 for n in range(40)}, outstanding=4)
            counted = tally(answers.values())
            eventually(
                lambda: 0 < counted["ABORTED"] <= 2 * len(lines_about(server, place)),
                "each connection to it is a line",
            )
            assert set(lines_about(server, place)) <= {
                f"jobd: {place}: sent no SMP answer: BAD_TYPE",
                f"jobd: {place}: closed the connection",
            }
            assert counted["data"] + counted["ABORTED"] == 40
    finally:
        web.shutdown()
        web.server_close()


def pauses_between(listener, connections):
    """A listener that reads and says nothing: seconds from a connection's end to the next one."""
    pauses, ended = [], None
    for _ in range(connections):
        connection, _ = listener.accept()
        if ended is not None:
            pauses.append(time.monotonic() - ended)
        with connection:
            connection.settimeout(PATIENCE)
            while connection.recv(1 << 16):
                pass
        ended = time.monotonic()
    return pauses


@pytest.mark.nightly
def test_a_silent_listener_is_tried_less_and_less_often():
    """Though each of its connections lasts as long as that of a node that has settled."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        server = JobServer("--node", place, "--configured", "--patience-ms", 10_500)
        try:
            with server.user() as user:
                for ident in range(5):  # two for each connection
                    user.send(smp.data_message(ident, b"x"))
                pauses = pauses_between(listener, 3)
                assert user.results(5) == dict.fromkeys(range(5), Status.ABORTED)
            assert pauses[0] >= 0.25
            assert pauses[1] >= 0.5
        finally:
            server.stop()


@pytest.mark.parametrize("boards", [1, 3])
def test_a_configuration_that_no_node_takes(boards):
    """One status; each node refuses it in a line, and is there again for the next user."""
    wrong = smp.Configuration(0, 0, (smp.Core(1, 0, 0),), b"")
    nodes = Nodes(boards)
    server = JobServer(*nodes.places)
    try:
        server.wait_for_nodes(boards)
        with server.user() as user:
            assert user.configure(wrong) == (Status.BAD_DATA, 0)
            name = "user {}:{}".format(*user.socket.getsockname())
            (line,) = eventually(lambda: lines_about(server, f"{name}:"), "it is logged")
            assert line == f"jobd: {name}: configuration refused: BAD_DATA"
            refused = lines_about(server, "refused its configuration: BAD_DATA")  # before that
            assert len(refused) == boards
            server.wait_for_nodes(boards)
            assert user.configure() == (Status.OK, boards)
        server.idle()
    finally:
        server.stop()
        nodes.stop()
