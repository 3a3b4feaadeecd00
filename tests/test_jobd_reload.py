"""The list of nodes of a job server, read again while it runs: nodes and leases come and go."""

import subprocess
import threading
import time

import pytest
from jobd_bench import JobServer, Nodes, benchmarking, eventually
from streams import make_rng
from test_jobd_lease import Stream, command, state_of
from trebuchet.client import smp
from trebuchet.host.jobd_build import build
from trebuchet.models.status import Status


class Listed:
    """A job server with a list of nodes in a file; a context manager."""

    def __init__(self, path, places, *options, variant="release"):
        self.path = path
        self.write(places)
        self.server = JobServer("--nodes", path, *options, variant=variant)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()

    def write(self, places):
        self.path.write_text("# nodes\n\n" + "".join(f"{place}  # a node\n" for place in places))

    def reload(self, *places):
        before = len(self.lines("read again"))
        self.write(places)
        self.server.signal(1)
        eventually(lambda: len(self.lines("read again")) > before, "the list is read again")

    def lines(self, said):
        return [line for line in self.server.lines if said in line]


def place_of(nodes, epoch=None):
    return f"127.0.0.1:{nodes.ports[0]}" + (f"@{epoch}" if epoch else "")


@pytest.fixture
def boards():
    made = [Nodes(1, "--cycles", 20_000) for _ in range(3)]
    yield made
    for each in made:
        each.stop()


@pytest.mark.parametrize("options", [(), ("--threads", 2)])
@pytest.mark.parametrize("variant", ["release", "thread"])
def test_nodes_come_and_go_under_load(boards, tmp_path, options, variant):
    """No job is lost or aborted when the list changes: a node that goes does its jobs first."""
    first, second, third = boards
    count = 2 if options else 1
    listed = Listed(
        tmp_path / "nodes",
        [place_of(first), place_of(second)],
        "--configured",
        *options,
        variant=variant,
    )
    with listed:
        server = listed.server
        server.wait_for_nodes(2 * count)
        load = Stream(server, make_rng(1, "reload"))
        for nodes in ((second, third), (third,), (first, third), (first, second, third)) * 2:
            listed.reload(*map(place_of, nodes))
            server.wait_for_nodes(count * len(nodes))
            answered = len(load.answers)
            eventually(lambda: len(load.answers) > answered + 10, "jobs go on")  # noqa: B023
        load.stop()
        assert load.answers == load.jobs
        values = server.idle()
        assert values["nodes_withdrawn_total"] >= 3 * count
        assert values["nodes_lost_total"] == values["nodes_withdrawn_total"]
        eventually(lambda: state_of(first.ports[0])["sessions"] == count + 1, "no session is left")


def test_a_new_lease_of_a_node(boards, tmp_path):
    """The board is fenced, the list has the new epoch: the server's jobs go on under it."""
    board, other, _ = boards
    port = board.ports[0]
    assert command(port, "lease 17")[0] == Status.OK
    with Listed(
        tmp_path / "nodes", [place_of(board, 17), place_of(other)], "--configured"
    ) as listed:
        server = listed.server
        server.wait_for_nodes(2)
        load = Stream(server, make_rng(2, "lease"))
        eventually(lambda: len(load.answers) > 20, "jobs under the old lease")
        assert command(port, "lease 18")[0] == Status.OK
        eventually(lambda: server.metrics()["nodes_stale_total"] == 1, "the old lease is over")
        jobs = state_of(port)["role_counters"]["jobs"]
        listed.reload(place_of(board, 17), place_of(other))
        assert server.nodes_connected() == 1, "the same epoch is not tried again"
        listed.reload(place_of(board, 18), place_of(other))
        server.wait_for_nodes(2)
        eventually(lambda: state_of(port)["role_counters"]["jobs"] > jobs + 5, "jobs under the new")
        load.stop()
        aborted = {ident for ident, answer in load.answers.items() if answer == Status.ABORTED}
        assert len(aborted) <= 2
        assert all(load.answers[i] == load.jobs[i] for i in load.jobs if i not in aborted)
        server.idle()


def test_own_nodes_that_are_taken_off_the_list(boards, tmp_path):
    """Idle ones at once, those of users after their jobs; users of the other threads' too."""
    with Listed(tmp_path / "nodes", map(place_of, boards), "--own", 1, "--threads", 2) as listed:
        server = listed.server
        users = [server.user() for _ in range(2)]
        for user in users:
            eventually(lambda u=user: u.configure(benchmarking())[0] == Status.OK, "a node is free")
        listed.reload()
        eventually(lambda: server.nodes_connected() == 0, "all nodes went")
        for each in boards:
            eventually(lambda p=each.ports[0]: state_of(p)["sessions"] == 1, "no session is left")
        listed.reload(place_of(boards[0]))
        with server.user() as user:
            eventually(lambda: user.configure(benchmarking())[0] == Status.OK, "it is used again")
            user.send(smp.data_message(1, bytes(16)))
            assert user.results(1) == {1: bytes(16)}
        for user in users:
            user.close()
        server.idle()


def test_a_wrong_list_changes_nothing(boards, tmp_path):
    with Listed(tmp_path / "nodes", [place_of(boards[0])], "--configured") as listed:
        server = listed.server
        server.wait_for_nodes(1)
        for place, said in (
            ("127.0.0.1", "line 3: must be HOST:PORT, not 127.0.0.1"),
            ("127.0.0.1:1@0", "line 3: must be a number from 1 to 65535, not 0"),
            ("127.0.0.1:1 more", "line 3: one node a line, not also more"),
        ):
            listed.write([place])
            server.signal(1)
            line = f"jobd: --nodes: {listed.path}, {said}; the nodes are as before"
            eventually(lambda: listed.lines(said), "a line")  # noqa: B023
            assert listed.lines(said) == [line]
        listed.path.unlink()
        server.signal(1)
        eventually(lambda: listed.lines("cannot be read"), "a line")
        assert server.nodes_connected() == 1
        with server.user() as user:
            user.send(smp.data_message(1, b"x"))
            assert user.results(1) == {1: b"x"}


def test_without_a_list_the_signal_is_one_line():
    server = JobServer("--configured")
    try:
        server.signal(1)
        line = "jobd: SIGHUP: there is no --nodes FILE to read again"
        eventually(lambda: line in server.lines, "a line")
    finally:
        server.stop()


def test_a_list_that_is_none_is_one_line(tmp_path):
    done = subprocess.run(
        [build("trebuchet-jobd"), "--nodes", tmp_path / "no"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"jobd: cannot be read: {tmp_path / 'no'}\n"


def test_a_withdrawn_node_does_its_job_first(tmp_path):
    """Its answer comes, though it takes half a second; then its connection ends."""
    slow = Nodes(1, "--cycles", 25_000_000)
    try:
        with Listed(tmp_path / "nodes", [place_of(slow)], "--configured") as listed:
            server = listed.server
            server.wait_for_nodes(1)
            with server.user() as user:
                answers = {}
                user.send(smp.data_message(1, b"slow"))
                eventually(lambda: server.metrics()["jobs_in_flight"] == 1, "the job has begun")
                waiting = threading.Thread(target=lambda: answers.update(user.results(1)))
                waiting.start()
                begin = time.monotonic()
                listed.reload()
                assert server.nodes_connected() == 1 or time.monotonic() - begin > 0.4
                waiting.join()
                assert answers == {1: b"slow"}
                eventually(lambda: server.nodes_connected() == 0, "the node went")
    finally:
        slow.stop()
