"""Leases of model nodes, and a job server whose lease is over: epochs are those of the framer."""

import json
import signal
import socket
import struct
import subprocess
import threading
import urllib.request

import pytest
import test_services_framer as framer_bench
from jobd_bench import PATIENCE, JobServer, Nodes, benchmarking, eventually, serving, tally
from service_model import Connection
from streams import make_rng, seeds
from test_jobd_messages import talk
from trebuchet.client import Board, Pool, Stale
from trebuchet.client.smp import Message, MessageType, data_message, parse_reply
from trebuchet.host.jobd_build import build
from trebuchet.models import smp_framing
from trebuchet.models.epoch import is_newer
from trebuchet.models.roles import loopback
from trebuchet.models.smp_framing import error_message, frame
from trebuchet.models.status import Status

SEGMENT = framer_bench.SEGMENT
ROOM = framer_bench.ROOM
COUNTERS = ("messages", "answers", "bad_type", "bad_length", "too_large", "stale", "lease", "guard")


def state_of(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=PATIENCE) as answer:
        return json.load(answer)


def command(port, line):
    """Status and text of the answer to a command."""
    with Board("127.0.0.1", management=port, timeout=PATIENCE) as board:
        reply = board.ask(line)
        return Status(reply.status), reply.text


def run_role(ident, operand):
    return loopback(operand, ROOM)


def random_messages(rng, count, epochs):
    """Data messages of these epochs; some too short or, rarely, too large."""
    out = b""
    for _ in range(count):
        epoch, kind = rng.choice(epochs), rng.random()
        if kind < 0.05:
            out += struct.pack("<BxHI", 3, epoch, rng.choice([SEGMENT - 7, 1 << 31]))
        elif kind < 0.15:
            out += struct.pack("<BxHI", 3, epoch, 3) + b"abc"
        else:
            length = rng.choice([0, 4, SEGMENT - 12, rng.randint(0, 60)])
            data = rng.randbytes(length)
            out += smp_framing.data_message(rng.getrandbits(32), data, epoch=epoch)
    return out


@seeds(20)
def test_a_model_node_with_a_lease_answers_as_the_framer(seed):
    rng = make_rng(seed, "lease")
    lease = rng.choice([0, 1, 0x8001])
    nodes = Nodes(1, "--segment", SEGMENT, "--room", ROOM, "--lease", lease, "--guard")
    try:
        stream = random_messages(rng, 8, (lease, lease, 0, 1, 0x0101, 0x8001))
        want, jobs, _ = frame(stream, SEGMENT, run_role, lease=lambda _: lease)
        assert talk(nodes.ports[0], stream) == want
        assert state_of(nodes.ports[0])["role_counters"]["jobs"] == len(jobs)
    finally:
        nodes.stop()


def script(rng):
    """Registers, and the bytes of a connection that is served under them."""
    steps = [(0, 0), (0, 1), (5, 1), (6, 1), (6, 0), (0x8006 - 1, 1), (0xFFFF, 1), (1, 1)]
    return [
        (lease, guard, random_messages(rng, 5, (lease, lease, 0, 5, 6))) for lease, guard in steps
    ]


def played_to_a_node(steps):
    """Answers and counters of a model node, whose lease follows by its command."""
    nodes = Nodes(1, "--segment", SEGMENT, "--room", ROOM)
    port, answers, before = nodes.ports[0], [], 0
    try:
        for lease, guard, stream in steps:
            if lease != before:
                assert is_newer(lease, before)
                assert command(port, f"lease {lease}")[0] == Status.OK
            command(port, f"lease {'on' if guard else 'off'}")
            answers.append(talk(port, stream))
            before = lease
        return answers, {name: state_of(port)["smp"][name] for name in COUNTERS}
    finally:
        nodes.stop()


def played_to_the_framer(steps, monkeypatch):
    """The same of the simulated framer, whose registers follow as the firmware sets them."""
    monkeypatch.setattr(framer_bench, "work", run_role)
    bench = framer_bench.Bench(1)
    csr, begun = bench.dut.csr, []
    conns = [
        Connection(b"", fin=lambda c: c in begun and c.delivered == len(c.payload)) for _ in steps
    ]

    async def play(ctx):
        for conn, (lease, guard, stream) in zip(conns, steps, strict=True):
            ctx.set(csr.lease, lease)
            ctx.set(csr.guard, guard)
            conn.payload = stream
            begun.append(conn)
            while not conn.released:
                await ctx.tick()

    bench.run(conns, play, limit=200_000)
    return [conn.received for conn in conns], {n: bench.counters[n] for n in COUNTERS}


def test_model_node_and_framer_have_the_same_answers_and_counters(monkeypatch):
    steps = script(make_rng(3, "script"))
    answers, counters = played_to_a_node(steps)
    assert counters["stale"] > 5
    assert counters["messages"] > 5
    assert (answers, counters) == played_to_the_framer(steps, monkeypatch)


def test_the_command_of_a_model_node_is_the_firmwares():
    nodes = Nodes(1, "--lease", 17)
    port = nodes.ports[0]
    try:
        assert command(port, "lease") == (Status.OK, "lease 17, guard off, 0 stale messages\n")
        assert command(port, "lease 18") == (Status.OK, "lease 18, guard on, 0 stale messages\n")
        said = "error: STALE: 18 is not newer than the board's epoch 18\n"
        assert command(port, "lease 18") == (Status.STALE, said)
        said = "error: BAD_ARGUMENT: the form is: lease [EPOCH|on|off]\n"
        for word in ("0", "65536", "x", ""):
            assert command(port, f"lease {word}") == (Status.BAD_ARGUMENT, said)
        assert command(port, "leases")[0] == Status.UNKNOWN_COMMAND
        assert command(port, "lease off")[1].startswith("lease 18, guard off")
        configuration = benchmarking().message()
        stale = Message(configuration.kind, configuration.payload, epoch=17).pack()
        assert talk(port, stale) == error_message(Status.OK)
        command(port, "lease on")
        assert talk(port, stale) == error_message(Status.STALE)
        line = Message(MessageType.COMMAND, b"lease").pack()
        assert parse_reply(talk(port, line)[8:])[1] == "lease 18, guard on, 1 stale messages\n"
    finally:
        nodes.stop()


def test_a_job_server_stamps_what_it_sends():
    """Data and configurations; the user's own bytes there are replaced, its role is passed on."""
    with socket.create_server(("127.0.0.1", 0)) as board:
        place = f"127.0.0.1:{board.getsockname()[1]}@4660"
        server = JobServer("--node", place)
        try:
            node, _ = board.accept()
            with node, server.user() as user:
                server.wait_for_nodes(1)
                user.send(benchmarking().message())
                assert node.recv(24, socket.MSG_WAITALL)[:4] == bytes((1, 0, 0x34, 0x12))
                node.sendall(error_message(Status.OK))
                assert user.results(1) == {1: Status.OK}
                user.socket.sendall(struct.pack("<BBBBII", 3, 5, 6, 7, 6, 99) + b"xy")
                assert node.recv(14, socket.MSG_WAITALL)[:4] == bytes((3, 5, 0x34, 0x12))
        finally:
            server.stop()


@pytest.mark.parametrize("configured", [True, False])
def test_a_node_with_another_lease_is_given_up(configured):
    """One line in the log; the others do the jobs; it is not tried again with this epoch."""
    lost = Nodes(1, "--lease", 18, "--guard")
    port = lost.ports[0]
    try:
        with serving("--node", f"127.0.0.1:{port}@17", configured=configured) as server:
            server.wait_for_nodes(2)
            with server.user() as user:
                if not configured:
                    assert user.configure() == (Status.OK, 1)
                jobs = {k: bytes([k]) * 40 for k in range(1, 41)}
                counted = tally(user.exchange(jobs).values())
                assert counted["ABORTED"] <= 2 * configured
                assert counted["data"] + counted["ABORTED"] == len(jobs)
            values = server.idle()
            assert values["nodes_stale_total"] == 1
            line = f"jobd: 127.0.0.1:{port}@17: STALE: its lease has another epoch; it is given up"
            logged = lambda: [each for each in server.lines if "@17" in each]  # noqa: E731
            eventually(logged, "a line of the log")
            assert logged() == [line]
        state = state_of(port)
        assert 1 <= state["smp"]["stale"] <= 2
        assert state["role_counters"]["jobs"] == state["role_counters"]["configurations"] == 0
    finally:
        lost.stop()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("127.0.0.1:4000@", "must be a number from 1 to 65535, not "),
        ("127.0.0.1:4000@0", "must be a number from 1 to 65535, not 0"),
        ("127.0.0.1:4000/80@65536", "must be a number from 1 to 65535, not 65536"),
    ],
)
def test_an_epoch_that_is_none_is_one_line(place, said):
    done = subprocess.run(
        [build("trebuchet-jobd"), "--node", place], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, f"jobd: --node {said}\n")


class Stream(threading.Thread):
    """A user whose jobs go on until it is stopped; ``answers`` are those that came."""

    def __init__(self, server, rng):
        super().__init__(daemon=True)
        self.user, self.rng = server.user(), rng
        self.jobs, self.answers = {}, {}
        self.enough = threading.Event()
        self.start()

    def run(self):
        waiting = 0
        while waiting or not self.enough.is_set():
            while waiting < 6 and not self.enough.is_set():
                ident = len(self.jobs) + 1
                self.jobs[ident] = self.rng.randbytes(self.rng.choice([5, 2000, 40_000]))
                self.user.send(data_message(ident, self.jobs[ident]))
                waiting += 1
            self.answers |= self.user.results(1)
            waiting -= 1

    def stop(self):
        self.enough.set()
        self.join(PATIENCE)
        assert not self.is_alive(), "a job has no answer"
        self.user.close()


@seeds(3)
def test_a_job_server_that_slept_through_the_end_of_its_lease(seed):
    """Nothing that it sends reaches a role; the new holder's jobs are undisturbed, byte by byte."""
    rng = make_rng(seed, "slept")
    nodes = Nodes(1, "--cycles", 20_000, "--guard", "--lease", 17)  # 0.4 ms a job
    port = nodes.ports[0]
    old = JobServer("--node", f"127.0.0.1:{port}@17", "--configured", "--patience-ms", 1000)
    new = None
    try:
        stale = Stream(old, rng)
        eventually(lambda: len(stale.answers) > 5 + rng.randrange(30), "jobs under the old lease")
        old.signal(signal.SIGSTOP)
        assert command(port, "lease 18")[0] == Status.OK
        before = state_of(port)["role_counters"]["jobs"]
        new = JobServer("--node", f"127.0.0.1:{port}@18", "--configured")
        fresh = Stream(new, make_rng(seed, "fresh"))
        eventually(lambda: len(fresh.answers) > 10, "jobs under the new lease")
        old.signal(signal.SIGCONT)
        eventually(lambda: old.metrics()["nodes_stale_total"] == 1, "the old holder is refused")
        count = len(fresh.answers)
        eventually(lambda: len(fresh.answers) > count + 10, "the new holder goes on")
        fresh.stop()
        assert fresh.answers == fresh.jobs
        state = state_of(port)
        assert state["smp"]["stale"] >= 1
        assert state["role_counters"]["jobs"] - before == len(fresh.jobs)
        assert new.settled()["nodes_stale_total"] == 0
        stale.stop()
        assert {i: a for i, a in stale.answers.items() if a != Status.ABORTED}.items() <= (
            stale.jobs.items()
        )
        assert len(stale.answers) == len(stale.jobs)
    finally:
        old.signal(signal.SIGCONT)
        for program in (old, new, nodes):
            if program is not None:
                program.stop()


def test_a_pool_of_model_nodes_with_leases():
    """The library's pool: the board whose lease is over has no jobs; the others do them."""
    nodes = [Nodes(1, "--guard", "--lease", epoch) for epoch in (17, 9)]
    places = [f"127.0.0.1:{each.ports[0]}" for each in nodes]
    try:
        with Pool([f"{places[0]}@16", f"{places[1]}@9"], roles=["loopback"]) as pool:
            pieces = [bytes([k]) for k in range(40)]
            assert list(pool.role("loopback").stream(pieces)) == pieces
        assert state_of(nodes[0].ports[0])["role_counters"]["jobs"] == 0
        with Board(places[0], epoch=16, roles=["loopback"]) as board:
            with pytest.raises(Stale, match="another epoch than the board's lease"):
                board.role("loopback").call(b"x")
            board.epoch = 17
            assert board.role("loopback").call(b"x") == b"x"
    finally:
        for each in nodes:
            each.stop()
