"""Records of stream messages through the job server: each stays whole, at one node, in order.

A model node answers a part with the CRC-32C of its connection's record so far, so a part that went
elsewhere, came out of turn or was mixed with another record gives a wrong result.
"""

import threading
import time

import pytest
from jobd_bench import PATIENCE, JobServer, Nodes, benchmarking, eventually, serving
from streams import make_rng, seeds
from trebuchet.client import smp
from trebuchet.models.crc32c import crc32c
from trebuchet.models.status import Status

#: Model nodes with records, and 0.2 ms a job.
RECORDS = ("--streams", "--cycles", 10_000, "--segment", 1 << 20)


def part(ident, data):
    return smp.Message(smp.MessageType.STREAM, ident.to_bytes(4, "little") + data)


def results_of(parts):
    """What a node answers to the parts of a record, the end included."""
    return [crc32c(b"".join(parts[: k + 1])).to_bytes(4, "little") for k in range(len(parts))]


def random_record(rng):
    count = rng.randint(1, 8)
    return [rng.randbytes(rng.choice([1, 60, 3000, 40_000])) for _ in range(count)] + [b""]


def play(user, rng, records, failures):
    """Send records and data messages between their parts; each answer is checked."""
    try:
        ident, want, waiting = 0, {}, 0
        for _ in range(records):
            record = random_record(rng)
            for data, result in zip(record, results_of(record), strict=True):
                if rng.random() < 0.4:
                    ident += 1
                    want[ident] = rng.randbytes(rng.choice([5, 50_000]))
                    user.send(smp.data_message(ident, want[ident]))
                    waiting += 1
                ident += 1
                want[ident] = result
                user.send(part(ident, data))
                waiting += 1
                while waiting > 5:
                    for found, answer in user.results(1).items():
                        assert answer == want.pop(found), found
                    waiting -= 1
        for found, answer in user.results(waiting).items():
            assert answer == want.pop(found), found
        assert not want
    except BaseException as error:
        failures.append(error)


@seeds(4)
def test_records_of_many_users_stay_whole(seed):
    """More users than nodes: those who find no node for a record wait, and lose nothing."""
    rng = make_rng(seed, "records")
    variant = "address" if seed == 0 else "release"
    with serving(
        "--streams", boards=3, node_options=RECORDS, configured=True, variant=variant
    ) as s:
        s.wait_for_nodes(3)
        failures, users = [], [s.user() for _ in range(7)]
        threads = [
            threading.Thread(
                target=play, args=(user, make_rng(seed, f"user {k}"), 6, failures), daemon=True
            )
            for k, user in enumerate(users)
        ]
        rng.shuffle(threads)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * PATIENCE)
            assert not thread.is_alive(), "a part has no answer"
        if failures:
            raise failures[0]
        for user in users:
            user.close()
        values = s.idle()
        assert values["records"] == values["records_broken_total"] == 0
        assert values["jobs_aborted_total"] == values["jobs_refused_total"] == 0


def test_without_the_option_a_stream_message_ends_the_connection():
    with serving(node_options=RECORDS, configured=True) as server:
        server.wait_for_nodes(1)
        with server.user() as user:
            user.send(part(3, b"abc"))
            assert user.results(1) == {0: Status.BAD_TYPE}
            assert user.closed()


def test_a_record_that_its_user_leaves_open_is_ended():
    """The next one at that node begins anew; so does that of a user who configures again."""
    with serving("--streams", node_options=("--streams",)) as server:
        server.wait_for_nodes(1)
        with server.user() as user:
            assert user.configure(benchmarking()) == (Status.OK, 1)
            user.send(part(1, b"left"))
            assert user.results(1) == {1: results_of([b"left"])[0]}
            assert server.metrics()["records"] == 1
            assert user.configure(benchmarking(cycles=5))[0] == Status.OK
            user.send(part(2, b"again"))
            assert user.results(1) == {2: results_of([b"again"])[0]}
        values = server.idle()
        assert (values["records"], values["records_broken_total"]) == (0, 2)
        with server.user() as user:
            assert user.configure(benchmarking(cycles=5))[0] == Status.OK
            user.send(part(1, b"whole"))
            user.send(part(2, b""))
            first, second = results_of([b"whole", b""])
            assert user.results(2) == {1: first, 2: second}


def test_a_record_whose_node_is_lost_is_aborted_to_its_end():
    """No node gets its other parts; what comes behind the end is a record anew."""
    nodes = [Nodes(1, "--streams") for _ in range(2)]
    server = JobServer(*(word for n in nodes for word in n.places), "--configured", "--streams")
    try:
        server.wait_for_nodes(2)
        with server.user() as user:
            user.send(part(1, b"one"))
            assert user.results(1) == {1: results_of([b"one"])[0]}
            values = server.metrics()
            holder = next(
                n
                for n in nodes
                if any(
                    f":{n.ports[0]}" in name and value
                    for name, value in values.items()
                    if name.startswith("node_jobs_total{")
                )
            )
            holder.kill()
            eventually(lambda: server.nodes_connected() == 1, "the node is lost")
            for ident, data in ((2, b"two"), (3, b"three"), (4, b"")):
                user.send(part(ident, data))
            assert user.results(3) == dict.fromkeys((2, 3, 4), Status.ABORTED)
            user.send(part(5, b"five"))
            user.send(part(6, b""))
            first, second = results_of([b"five", b""])
            assert user.results(2) == {5: first, 6: second}
        values = server.idle()
        assert (values["records"], values["records_broken_total"]) == (0, 1)
    finally:
        server.stop()
        for each in nodes:
            each.stop()


def test_a_record_that_finds_no_node_is_busy_to_its_end():
    """Each node has another user's record; data messages go on, and so do records once it ends."""
    options = ("--streams", "--patience-ms", 300)
    with serving(*options, node_options=("--streams",), configured=True) as server:
        server.wait_for_nodes(1)
        with server.user() as holder, server.user() as user:
            holder.send(part(1, b"held"))
            assert holder.results(1) == {1: results_of([b"held"])[0]}
            for ident, data in ((1, b"a"), (2, b"b"), (3, b"")):
                user.send(part(ident, data))
            begin = time.monotonic()
            assert user.results(3) == dict.fromkeys((1, 2, 3), Status.BUSY)
            assert time.monotonic() - begin > 0.25
            user.send(smp.data_message(4, b"data"))
            assert user.results(1) == {4: b"data"}
            user.send(part(5, b"x"))
            holder.send(part(2, b""))
            assert holder.results(1) == {2: results_of([b"held", b""])[1]}
            assert user.results(1) == {5: results_of([b"x"])[0]}
            user.send(part(6, b""))
            user.results(1)
        assert server.idle()["records"] == 0


def test_nodes_that_take_no_records():
    """The first one says so, with the status of a board; the server refuses them from then on."""
    with serving("--streams", boards=2, configured=True) as server:
        server.wait_for_nodes(2)
        with server.user() as user:
            user.send(part(7, b"abc"))
            assert user.results(1) == {7: Status.BAD_TYPE}
            user.send(smp.data_message(8, b"data"))
            assert user.results(1) == {8: b"data"}
            user.send(part(9, b"abc"))
            assert user.results(1) == {0: Status.BAD_TYPE}
            assert user.closed()
        assert server.idle()["records"] == 0


@pytest.mark.parametrize("seed", range(2))
def test_a_node_dies_while_users_send_records(seed):
    """Each part has one answer: its result, or ABORTED up to the end of its record."""
    rng = make_rng(seed, "record dies")
    victim = Nodes(1, *RECORDS)
    try:
        with serving(
            *victim.places, "--streams", boards=2, node_options=RECORDS, configured=True
        ) as server:
            server.wait_for_nodes(3)
            counts = {"whole": 0, "aborted": 0}

            def work(user, rng):
                for number in range(25):
                    record = random_record(rng)
                    base = 100 * (number + 1)
                    for k, data in enumerate(record):
                        user.send(part(base + k, data))
                    answers = user.results(len(record))
                    found = [answers[base + k] for k in range(len(record))]
                    good = results_of(record)
                    kept = next((k for k, a in enumerate(found) if a != good[k]), len(found))
                    assert all(a == Status.ABORTED for a in found[kept:]), found
                    counts["whole" if kept == len(found) else "aborted"] += 1

            users = [server.user() for _ in range(5)]
            failures = []

            def guarded(user, rng):
                try:
                    work(user, rng)
                except BaseException as error:
                    failures.append(error)

            threads = [
                threading.Thread(target=guarded, args=(u, make_rng(seed, f"user {k}")), daemon=True)
                for k, u in enumerate(users)
            ]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.01, 0.1))
            victim.kill()
            for thread in threads:
                thread.join(2 * PATIENCE)
                assert not thread.is_alive(), "a part has no answer"
            if failures:
                raise failures[0]
            for user in users:
                user.close()
            assert sum(counts.values()) == 125
            assert counts["aborted"] <= 2
            assert server.idle()["records"] == 0
    finally:
        victim.stop()


def test_refusals_that_nobody_takes_stop_the_reading():
    """A user who sends what is refused, and takes no answer, makes the server store little."""
    with serving(configured=True) as server:
        server.wait_for_nodes(1)
        with server.user(timeout=1) as user:
            short = smp.Message(smp.MessageType.DATA, b"abc").pack() * 10_000_000  # 110 MB
            with pytest.raises(TimeoutError):
                user.socket.sendall(short)
            refused = server.metrics()["jobs_refused_total"]
            time.sleep(0.2)
            assert server.metrics()["jobs_refused_total"] == refused
