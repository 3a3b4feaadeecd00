"""Model nodes and simulated boards behave alike: the same answers, the same counters.

What a model node counts is held against the model of the framer (``models/smp_framing.py``). By
night four simulated boards and four model nodes are one pool, for the client library and for the
job server.
"""

import contextlib
import itertools
import json
import random
import socket
import struct
import sys
import urllib.request
from pathlib import Path

import paper_client as paper
import pytest
from e2e_clients import read_all
from jobd_bench import PATIENCE, JobServer, Nodes, eventually
from patience import wait_until
from sim_tops import needs_network
from smp_streams import random_stream
from streams import make_rng, seeds
from trebuchet.client import smp
from trebuchet.cores.tcp.config import TINY
from trebuchet.models.roles import benchmark, loopback
from trebuchet.models.smp_framing import MESSAGE_HEADER, data_message, frame
from trebuchet.models.status import Status

#: Bytes of the largest message and of its operand, of the simulated board.
SEGMENT = TINY.unread
FULL = SEGMENT - MESSAGE_HEADER
#: Bytes of its longest result (``result_bytes`` of the roles).
RESULT = 32752
#: Of a node whose answers are counted alone.
SMALL, ROOM = 512, 300
COUNTED = (Status.BAD_TYPE, Status.BAD_LENGTH, Status.TOO_LARGE, Status.NO_ROOM)


def answers(stream):
    """The messages of what a board sent."""
    decoder = smp.Decoder()
    found = decoder.feed(stream)
    decoder.finish()
    return found


def counts_of(streams, segment, room):
    """What the framer counts for the bytes of some connections, and jobs of the role."""
    found = dict.fromkeys(("messages", "answers", *(s.name.lower() for s in COUNTED)), 0)
    for stream in streams:
        said, jobs, _ = frame(stream, segment, lambda ident, data: loopback(data, room))
        found["messages"] += len(jobs)
        for message in answers(said):
            if message.kind == smp.MessageType.DATA:
                found["answers"] += 1
            else:
                status = Status(smp.parse_response(message.payload).status)
                found[status.name.lower()] += 1
    return found, found["messages"]


def converse(connection, stream):
    """Send a stream, half close, and return all that comes back."""
    with contextlib.suppress(ConnectionError):  # it was refused by a header, and hung up
        connection.sendall(stream)
        connection.shutdown(socket.SHUT_WR)
    return read_all(connection)


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@seeds(20)
def test_a_model_node_counts_as_the_framer(seed):
    rng = make_rng(seed, "counters")
    streams = [
        random_stream(rng, rng.randint(1, 12), SMALL, 0.05, (0, 2, 4, 6, 255)) for _ in range(10)
    ]
    nodes = Nodes(1, "--segment", SMALL, "--room", ROOM)
    (port,) = nodes.ports
    try:
        for stream in streams:
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
                want, _, _ = frame(stream, SMALL, lambda ident, data: loopback(data, ROOM))
                assert converse(connection, stream) == want
        lost = socket.create_connection(("127.0.0.1", port), PATIENCE)
        lost.sendall(data_message(1, b"lost")[: rng.randrange(1, 16)])
        assert eventually(lambda: model_state(port)["sessions"] == 2, "it is connected")
        reset(lost)
        counted, jobs = counts_of(streams, SMALL, ROOM)
        counted["aborted"] = 1
        eventually(
            lambda: counted.items() <= model_state(port)["smp"].items(), f"it counts {counted}"
        )
        assert model_state(port)["role_counters"]["jobs"] == jobs
    finally:
        nodes.stop()


def model_state(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=PATIENCE) as answer:
        return json.load(answer)


class Member:
    """A simulated board, or a model node on the same network."""

    def __init__(self, fleet, host, port, management):
        self.fleet, self.host, self.port, self.management = fleet, host, port, management

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    def connect(self, port=None):
        connection = self.fleet.socket()
        connection.settimeout(600)
        connection.connect((self.host, port or self.port))
        return connection

    def counters(self):
        """The framer's counters by name, and jobs of the loopback role."""
        with self.connect(self.management) as connection:
            connection.sendall(b"GET /status HTTP/1.1\r\nHost: x\r\n\r\n")
            state = json.loads(read_all(connection).partition(b"\r\n\r\n")[2])
        if "engines" in state:
            engines = state["engines"]
            return engines["smp"] | {"jobs": engines["loopback"]["jobs"]}
        return state["smp"] | {"jobs": state["role_counters"]["jobs"]}


def rise(before, after):
    """By how much a member's counters have risen: those that a model node has."""
    names = ("messages", "answers", *(s.name.lower() for s in COUNTED), "aborted", "jobs")
    return {name: (after[name] - before[name]) % (1 << 16) for name in names}


@pytest.fixture(scope="module")
def pool():
    """Four simulated boards and four model nodes: fleet and members."""
    from jobd_fleet import boards_on_a_switch  # noqa: PLC0415 - it compiles gateware

    with boards_on_a_switch(4) as fleet, contextlib.ExitStack() as stack:
        nodes = Nodes(4, "--segment", SEGMENT, "--room", RESULT, start=fleet.popen)
        stack.callback(nodes.stop)
        members = [Member(fleet, board.ip, 4000, 80) for board in fleet.topology.boards]
        members += [Member(fleet, "127.0.0.1", port, port) for port in nodes.ports]
        yield fleet, members


def trace(rng):
    """Bytes of some connections: good messages of all lengths, and all that is wrong with one."""
    good = [data_message(rng.getrandbits(32), rng.randbytes(n)) for n in (0, 1, 16, 1500, FULL)]
    short = struct.pack("<B3xI", 3, 3) + b"abc"
    streams = [
        b"".join(good),
        good[2] + short + good[3] + short,
        good[1] + struct.pack("<B3xI", rng.choice((0, 2, 4, 6, 255)), 5) + good[0],
        good[3] + struct.pack("<B3xI", 3, SEGMENT - 7) + bytes(100),
        good[0] + struct.pack("<B3xI", 3, 0xFFFFFFFF) + bytes(100),
        good[2] + good[3][: rng.randrange(1, len(good[3]))],
    ]
    rng.shuffle(streams)
    return streams


nightly_with_boards = [pytest.mark.nightly, pytest.mark.cpu_limit(1800), needs_network]


def marked(test):
    for mark in nightly_with_boards:
        test = mark(test)
    return test


@marked
def test_a_trace_has_the_same_answers_and_counters_on_boards_and_models(pool):
    streams = trace(random.Random(51))
    want = [frame(s, SEGMENT, lambda ident, data: loopback(data, RESULT))[0] for s in streams]
    counted, jobs = counts_of(streams, SEGMENT, RESULT)
    counted |= {"aborted": 1, "jobs": jobs}
    for member in pool[1]:
        before = member.counters()
        for stream, answer in zip(streams, want, strict=True):
            with member.connect() as connection:
                assert converse(connection, stream) == answer, member.address
        lost = member.connect()
        lost.sendall(data_message(1, bytes(3000))[:1000])
        member.fleet.sleep(1)
        reset(lost)
        wait_until(
            lambda m=member, b=before: rise(b, m.counters()) == counted,
            60,
            f"{member.address} does not count {counted}",
        )


@marked
def test_the_client_library_has_them_as_one_pool(pool):
    """Exact results; each job is one message, one answer and one job of the role somewhere."""
    fleet, members = pool
    before = [member.counters() for member in members]
    script = Path(__file__).with_name("pool_on_network.py")
    addresses = ",".join(member.address for member in members)
    jobs = 120
    words = [sys.executable, script, addresses, "52", str(jobs), str(FULL)]
    done = fleet.run(words, timeout=1200)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{jobs}\n", "")
    check_shares(members, before, jobs)


def check_shares(members, before, jobs):
    """All members worked; together they counted each job once; return each one's share."""
    risen = [rise(b, member.counters()) for b, member in zip(before, members, strict=True)]
    for counted in risen:
        assert counted["messages"] == counted["answers"] == counted["jobs"] > 0, risen
        assert sum(counted.values()) == 3 * counted["jobs"], risen
    assert sum(counted["jobs"] for counted in risen) == jobs
    return [counted["jobs"] for counted in risen]


@contextlib.contextmanager
def job_server(fleet, members, *options):
    def connect(address, timeout):
        connection = fleet.socket()
        connection.settimeout(timeout)
        connection.connect(address)
        return connection

    nodes = [word for member in members for word in ("--node", member.address)]
    patient = ("--patience-ms", 3_600_000, "--message-timeout-ms", 3_600_000)
    server = JobServer(*nodes, *patient, *options, start=fleet.popen, connect=connect)
    try:
        server.wait_for_nodes(len(members))
        yield server
        server.idle()
    finally:
        server.stop()


@marked
def test_the_job_server_has_them_as_one_pool(pool):
    """Exact results; the server's counters of each node are those that the node has itself."""
    fleet, members = pool
    rng = random.Random(53)
    jobs = {n: rng.randbytes(rng.choice((0, 1, 700, FULL))) for n in range(120)}
    before = [member.counters() for member in members]
    with job_server(fleet, members, "--configured") as server:
        with server.user(timeout=600) as user:
            assert user.exchange(jobs, outstanding=24) == jobs
        values = server.idle()
    shares = check_shares(members, before, len(jobs))
    for member, share in zip(members, shares, strict=True):
        for name in ("node_jobs_total", "node_answers_total"):
            sent = [
                v for n, v in values.items() if n.startswith(f'{name}{{node="{member.address}"')
            ]
            assert sent == [share], member.address


@marked
def test_the_papers_client_has_them_as_one_pool(pool):
    """A benchmark (4.2.2), by a client written from the source's text, through the job server."""
    fleet, members = pool
    rng = random.Random(54)
    jobs = {n: rng.randbytes(2000) for n in range(40)}
    with job_server(fleet, members) as server:
        with server.user(timeout=600) as user:  # its socket alone
            connection = user.socket
            connection.sendall(paper.benchmarking(2000, 3000, 100))
            paper.expect_status(connection, 0)
            waiting = iter(jobs.items())
            for ident, job in itertools.islice(waiting, 16):
                connection.sendall(paper.data(ident, job))
            for _ in jobs:
                kind, payload = paper.receive(connection)
                (ident,) = struct.unpack_from("<I", payload)
                want = benchmark(jobs[ident], RESULT, 3000)[1]
                assert (kind, payload[4:]) == (paper.DATA, want)
                for another, job in itertools.islice(waiting, 1):
                    connection.sendall(paper.data(another, job))
