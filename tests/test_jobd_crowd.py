"""Many users of the job server at a time: bounded memory; no descriptor, pipe or job is left."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from jobd_bench import eventually, serving
from streams import make_rng
from trebuchet.client import smp

#: Bytes of the server's memory: of itself, and of each user, who may store two messages of 64 KiB
#: in each direction, with its connection and coroutines.
OWN, EACH = 48 << 20, 320 << 10
#: Bytes by which a crowd may make the server larger than those before it did: the allocator's.
SLACK = 8 << 20
#: Crowds after which the server keeps nothing more. What it keeps is what its busiest moment took.
ROUNDS = 8
#: Users of one load generator; of small messages, and of such as are spliced.
GROUP = 500
SIZES = (1024, 65536)
#: Answers of an average user from which on each must have had one.
FEW = 20


def resident(server, peak=False):
    """Bytes of the server's memory, now or at most so far."""
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


#: A load generator: says when its users are connected, begins at a line, prints its figures.
GENERATOR = """
import json, sys
from trebuchet.host.measure.connection import Place, Transfer
from trebuchet.host.measure.generator import Load, run_closed
from trebuchet.host.measure.traffic import Traffic

port, users, size, seconds = map(int, sys.argv[1:])
transfer = Transfer(Traffic.ROLE, size, memoryview(bytes(size)))
def ready():
    print("ready", flush=True)
    sys.stdin.readline()
load = Load([Place("127.0.0.1", port)], transfer, connections=users, in_flight=2, timeout=600,
            seconds=seconds, ready=ready)
print(json.dumps(run_closed(load).table()))
"""


def start_crowd(server, users, size, seconds):
    """A process whose users work for so many seconds."""
    words = map(str, (server.user_port, users, size, seconds))
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", GENERATOR, *words]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def begin(running, there):
    """Wait until all are connected at the same time; let them begin."""
    for process in running:
        assert process.stdout.readline() == "ready\n"
    eventually(there, "all users are there")
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()


def vanish(server, rng, count):
    """Users that go away with jobs in flight, and in the middle of a message."""
    for _ in range(count):
        with server.user() as user:
            for ident in range(3):
                user.send(smp.data_message(ident, rng.randbytes(rng.choice(SIZES))))
            half = smp.data_message(9, bytes(SIZES[1])).pack()
            user.socket.sendall(half[: rng.randrange(1, 60_000)])


def crowd(server, rng, users, seconds):
    """Users work, while others come and vanish; return jobs done, and the shares of users."""
    groups = [min(GROUP, users - first) for first in range(0, users, GROUP)]
    sizes = [SIZES[(number + 1) % len(SIZES)] for number in range(len(groups))]
    running = [start_crowd(server, *group, seconds) for group in zip(groups, sizes, strict=True)]
    begin(running, lambda: server.metrics()["users"] >= users)
    while any(process.poll() is None for process in running):
        vanish(server, rng, 5)
    found = [json.loads(process.communicate()[0]) for process in running]
    assert all(process.returncode == 0 for process in running)
    assert not any("refused" in row for row in found), found
    return sum(row["transfers"] for row in found), [row["shares"] for row in found]


def check_round(server, rng, users, seconds):
    """All users are served; no job is lost."""
    before = server.idle()
    done, shares = crowd(server, rng, users, seconds)
    after = server.idle()
    assert after["users_total"] - before["users_total"] >= users
    for group in shares:
        assert min(group) > 0 or sum(group) < FEW * len(group), "a user had no answer"
    assert done <= after["jobs_answered_total"] - before["jobs_answered_total"]
    assert after["jobs_aborted_total"] == after["node_faults_total"] == 0


def kept(server):
    """Return pipes, bytes of memory, and descriptors that are not of pipes, when all is quiet."""
    values = server.idle()
    return values["pipes"], resident(server), values["open_descriptors"] - 2 * values["pipes"]


def check_crowd(users, boards, seconds):
    """A server that loses something is larger after each crowd; one that keeps buffers is not."""
    rng = make_rng(users, "crowd")
    options = ("--cycles", 50_000)  # 1 ms
    with serving(boards=boards, node_options=options, configured=True) as server:
        server.wait_for_nodes(boards)
        pipes, memory, descriptors = kept(server)
        found = []
        for _ in range(ROUNDS):
            check_round(server, rng, users, seconds)
            found.append(kept(server))
            assert found[-1][2] <= descriptors
            if found[-1][0] <= pipes and found[-1][1] <= memory + SLACK:
                break
            pipes, memory = max(pipes, found[-1][0]), max(memory, found[-1][1])
        else:
            pytest.fail(f"each of {ROUNDS} crowds left more pipes or memory behind: {found}")
        assert resident(server, peak=True) <= OWN + users * EACH


def test_a_crowd():
    check_crowd(100, 25, 1)


@pytest.mark.nightly
@pytest.mark.cpu_limit(1800)
def test_a_thousand_users_on_250_boards():
    check_crowd(1000, 250, 60)
