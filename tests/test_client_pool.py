"""Pools of boards, by both drivers: sharing, order, lost boards, boards with other roles."""

import random
import threading
import time

import pytest
from fake_board import HANG_UP, HOST, POOLS, FakeBoard, closed_port, echo
from trebuchet.client import Batch, BoardError, ConnectionLost, Pool, WrongRole
from trebuchet.models.status import Status


@pytest.fixture(params=POOLS)
def connect(request):
    return POOLS[request.param]


class Boards:
    """Some fakes; their management ports differ, so a pool of them names their roles."""

    def __init__(self, *fakes):
        self.fakes = fakes

    def __enter__(self):
        for fake in self.fakes:
            fake.__enter__()
        return self

    def __exit__(self, *exc):
        for fake in self.fakes:
            fake.__exit__(*exc)

    @property
    def addresses(self):
        return [fake.address for fake in self.fakes]


def pieces(count, seed=1):
    rng = random.Random(seed)
    return [k.to_bytes(2, "little") + rng.randbytes(rng.randint(0, 300)) for k in range(count)]


def slow(seconds):
    def work(ident, data):
        time.sleep(seconds)
        return Status.OK, data

    return {"echo": work}


ONE = {"roles": ["echo"], "timeout": 20}


@pytest.mark.parametrize("ordered", [True, False])
def test_each_job_is_done_once(connect, ordered):
    items = pieces(200)
    with Boards(FakeBoard(), FakeBoard(), FakeBoard()) as boards:
        with connect(boards.addresses, **ONE) as pool:
            found = list(pool.map(pool.role("echo").call, items, ordered=ordered))
        assert (found == items) if ordered else (sorted(found) == sorted(items))
        assert sum(len(fake.jobs) for fake in boards.fakes) == 200


@pytest.mark.parametrize("seed", range(3))
def test_pure_jobs_of_a_lost_board_are_done_by_others(connect, seed):
    """At a moment of chance one board loses its power."""
    rng = random.Random(seed)
    fatal = rng.randint(0, 30)

    def die(connection, message, answer):
        if message >= fatal:
            threading.Thread(target=boards.fakes[0].vanish, daemon=True).start()
            return HANG_UP
        return answer

    items = pieces(150, seed)

    def call(data):
        (result,) = yield Batch("echo", [data], pure=True)
        return result

    class Echo:
        plan = staticmethod(call)

    with Boards(FakeBoard(slow(0.001), tamper=die), FakeBoard(slow(0.001))) as boards:
        with connect(boards.addresses, **ONE) as pool:
            assert list(pool.map(Echo, items)) == items
        done = [data for fake in boards.fakes for _, data in fake.jobs]
        assert set(done) == set(items)
        assert len(done) - len(items) <= 3


def test_what_is_not_pure_is_not_done_twice(connect):
    def die(connection, message, answer):
        return HANG_UP if message == 2 else answer

    with Boards(FakeBoard(tamper=die), FakeBoard(tamper=die)) as boards:
        with connect(boards.addresses, **ONE) as pool:
            with pytest.raises(ConnectionLost, match="closed the connection with|broke"):
                list(pool.map(pool.role("echo").call, pieces(40)))
        done = [data for fake in boards.fakes for _, data in fake.jobs]
        assert len(done) == len(set(done))


def test_a_board_that_is_not_there_is_done_without(connect):
    with Boards(FakeBoard()) as boards:
        with connect([f"{HOST}:{closed_port()}", *boards.addresses], **ONE) as pool:
            items = pieces(30)
            assert list(pool.map(pool.role("echo").call, items)) == items


def test_a_board_that_comes_back_is_used_again(connect):
    """It loses its power for a while; the others go on."""
    again = FakeBoard(slow(0.005))

    def outage(connection, message, answer):
        return HANG_UP if (connection, message) == (0, 1) else answer

    with Boards(FakeBoard(slow(0.005), tamper=outage), again) as boards:
        with connect(boards.addresses, **ONE) as pool:
            role = pool.role("echo")
            assert len(list(role.stream(pieces(100), pure=True))) == 100
        assert boards.fakes[0].connections == 2
        assert len(boards.fakes[0].jobs) > 10


def test_a_silent_board_s_jobs_go_to_others(connect):
    over = threading.Event()

    def silent(connection, message, answer):
        over.wait(20)
        return answer

    with Boards(FakeBoard(tamper=silent), FakeBoard()) as boards:
        with connect(boards.addresses, roles=["echo"], timeout=0.3) as pool:
            items = pieces(20)
            assert list(pool.role("echo").stream(items, pure=True)) == items
        over.set()


def test_all_boards_are_gone(connect):
    ports = [closed_port() for _ in range(2)]
    with connect([f"{HOST}:{port}" for port in ports], **ONE) as pool:
        with pytest.raises(ConnectionLost) as caught:
            pool.role("echo").call(b"x", pure=True)
    text = str(caught.value)
    assert text.startswith("no board of the pool takes the job: cannot connect to ")
    assert all(f"{HOST}:{port}: " in text for port in ports)


def test_jobs_go_to_the_boards_that_have_the_role():
    """By their names, though they have other numbers on each board."""

    def marked(mark):
        return lambda ident, data: (Status.OK, mark + data)

    with (
        FakeBoard({"a": marked(b"a1"), "b": marked(b"b1")}) as one,
        FakeBoard({"b": marked(b"b2"), "c": marked(b"c2")}) as two,
    ):
        members = [fake.address for fake in (one, two)]
        with Pool(members) as pool:
            for member, fake in zip(pool._dispatcher.members, (one, two), strict=True):
                for service, link in member.links.items():
                    if service.value != "role":
                        link.port = fake.management
            assert pool.role("a").call(b"x") == b"a1x"
            assert pool.role("c").call(b"x") == b"c2x"
            both = set(pool.map(pool.role("b").call, [b"x"] * 50))
            assert both == {b"b1x", b"b2x"}
            with pytest.raises(WrongRole, match="its roles are: a, b; .* its roles are: b, c$"):
                pool.role("d").call(b"x")


def test_the_first_error_ends_a_map(connect):
    def refuse(ident, data):
        return (Status.BAD_DATA, b"") if data == b"wrong" else (Status.OK, data)

    with Boards(FakeBoard({"echo": refuse}), FakeBoard({"echo": refuse})) as boards:
        with connect(boards.addresses, **ONE) as pool:
            results = pool.map(pool.role("echo").call, [b"a", b"b", b"wrong", b"c"])
            assert next(results) == b"a"
            assert next(results) == b"b"
            with pytest.raises(BoardError, match="BAD_DATA"):
                next(results)
            assert pool.role("echo").call(b"after") == b"after"


def test_addresses_are_checked():
    for wrong in ([], "10.0.0.2"):
        with pytest.raises(ValueError, match="^addresses must be a sequence of at least one addre"):
            Pool(wrong)
    assert echo(1, b"x") == (Status.OK, b"x")
