"""A board through the client library, blocking and with asyncio: jobs, roles, management."""

import asyncio
import random
import socket

import numpy as np
import pytest
from fake_board import BOARDS, HOST, FakeBoard, closed_port, echo
from trebuchet import client
from trebuchet.client import AsyncBoard, Batch, Board, BoardError, ConnectionLost, WrongRole, smp
from trebuchet.client.roles.matmul import MatmulCalls
from trebuchet.client.smp import MAX_PAYLOAD, Configuration
from trebuchet.models import crc32c, matmul, role_folders
from trebuchet.models.smp_framing import TYPE_DATA
from trebuchet.models.status import DESCRIPTIONS, Status


@pytest.fixture(params=BOARDS)
def connect(request):
    return BOARDS[request.param]


def crc_role(ident, data):
    return Status.OK, crc32c.crc32c(data).to_bytes(4, "little")


def matmul_role(ident, data):
    if not data or len(data) % matmul.pair_bytes():
        return Status.BAD_LENGTH, b""
    return Status.OK, matmul.result(data)


def test_a_role_is_found_by_its_name(connect):
    roles = {"echo": echo, "crc32c": crc_role, "matmul": matmul_role}
    with FakeBoard(roles) as fake, connect(fake.address, **fake.options()) as board:
        assert board.role("crc32c").call(b"123456789") == bytes.fromhex("839206e3")
        assert board.roles == ["echo", "crc32c", "matmul"]
        assert board.role().call(b"the port's") == b"the port's"
        assert fake.requests == 1, "the status is asked for once"
        with pytest.raises(WrongRole, match="no role 'sums'; its roles are: echo, crc32c, matmul$"):
            board.role("sums").call(b"")


@pytest.mark.parametrize("status", [status for status in Status if status != Status.OK])
def test_each_status_is_an_exception(connect, status):
    roles = {"echo": lambda ident, data: (status, b"")}
    made = getattr(client, status.name.title().replace("_", ""))
    with FakeBoard(roles) as fake, connect(fake.address, **fake.options()) as board:
        with pytest.raises(made) as caught:
            board.role().call(b"x")
    assert caught.value.status == status
    assert isinstance(caught.value, client.Refused)
    assert str(caught.value).endswith(f"refused message 1: {status.name}: {DESCRIPTIONS[status]}")
    assert DESCRIPTIONS[status] in made.__doc__


def test_a_connection_that_is_replaced_is_closed_first():
    """Not when its socket is collected: until then the peer waits for what it would still say."""
    with FakeBoard(types=()) as fake:
        with Board(fake.address, **fake.options()) as board:
            for _ in range(3):
                with pytest.raises(client.BadType):
                    board.role().call(b"x")
                used = {wire.socket for wire in board._wires.wires.values()}
                with pytest.raises(client.BadType):
                    board.role().call(b"x")
                now = {wire.socket for wire in board._wires.wires.values()}
                assert used - now, "a message of a wrong type ends its connection"
                assert all(each.fileno() < 0 for each in used - now)


def test_a_status_that_is_not_known_is_refused_too(connect):
    def answer(connection, message, said):
        return b"\2\0\0\0\10\0\0\0" + bytes((200, 0, 0, 0, 1, 0, 0, 0))

    with FakeBoard(tamper=answer) as fake, connect(fake.address, **fake.options()) as board:
        with pytest.raises(client.Refused, match="status 200, which this version does not know$"):
            board.role().call(b"x")


def test_there_is_no_other_error():
    with pytest.raises(AttributeError, match="BadWeather"):
        _ = client.BadWeather


@pytest.mark.parametrize("seed", range(3))
def test_jobs_of_a_batch_are_under_way_together(connect, seed):
    rng = random.Random(seed)
    operands = [rng.randbytes(rng.choice([0, 1, 100, 5000, 70000])) for _ in range(40)]
    told = []

    def call():
        return (yield Batch(None, operands, told=lambda index, *_: told.append(index)))

    with FakeBoard() as fake, connect(fake.address, **fake.options(in_flight=8)) as board:
        assert board.run(call()) == operands
    assert told == list(range(40))
    assert [data for _, data in fake.jobs] == operands
    assert fake.connections == 1


@pytest.mark.parametrize("in_flight", [1, 2, 5])
def test_as_many_messages_are_in_flight_as_allowed(connect, in_flight):
    """The fake answers nothing before it has them. That there are no more: client_dispatch."""
    held = []

    def hold(connection, message, answer):
        held.append(answer)
        assert len(held) <= in_flight
        if len(held) < in_flight and message < 19:
            return b""
        said = b"".join(held)
        held.clear()
        return said

    with FakeBoard(tamper=hold) as fake:
        with connect(fake.address, **fake.options(in_flight=in_flight)) as board:
            results = board.map(board.role().call, [bytes([k]) for k in range(20)])
            assert list(results) == [bytes([k]) for k in range(20)]


def test_a_stream_is_read_only_as_far_as_jobs_are_under_way(connect):
    taken = []

    def endless():
        number = 0
        while True:
            taken.append(number)
            yield number.to_bytes(4, "little")
            number += 1

    with FakeBoard() as fake, connect(fake.address, **fake.options()) as board:
        results = board.map(board.role().call, endless())
        for number in range(100):
            assert next(results) == number.to_bytes(4, "little")
            assert len(taken) - number <= 10
        results.close()
        assert board.role().call(b"after") == b"after"


def test_large_messages_both_ways_do_not_wait_for_each_other(connect):
    """More than the kernel's buffers hold: a client that only sent would stop."""
    big = random.Random(1).randbytes(8 << 20)
    with FakeBoard(segment=1 << 24) as fake:
        with connect(fake.address, **fake.options(in_flight=4)) as board:
            assert all(result == big for result in board.map(board.role().call, [big] * 4))


def test_matrices_of_both_kinds(connect):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-(2**31), 2**31, (3, 64, 64)) for _ in range(2))
    expected = np.array([matmul.multiply(x, y) for x, y in zip(a, b, strict=True)])
    roles = {"matmul": matmul_role}
    with FakeBoard(roles) as fake, connect(fake.address, **fake.options()) as board:
        assert (board.matmul(a, b) == expected).all()
        assert (board.matmul(a[0], b[0]) == expected[0]).all()
        assert board.matmul(a[1].tolist(), b[1].tolist()) == expected[1].tolist()
        assert board.matmul(a.tolist(), b.tolist()) == expected.tolist()
        low = a[0].astype(np.uint8)
        assert (MatmulCalls(board).multiply(low, b[0]) == matmul.multiply(low, b[0])).all()
        for wrong in (np.zeros((64, 63), int), np.zeros((64, 64)), [[1, 2], [3, 4]]):
            with pytest.raises(ValueError, match="matrices must be"):
                board.matmul(wrong, wrong)


def test_management(connect):
    commands = {"version": (Status.OK, "0.1.0 on fake\n"), "log": (Status.OK, "one\ntwo\n")}
    commands["sessions 0"] = (Status.NOT_BUILT_IN, "")
    with FakeBoard(commands=commands) as fake, connect(fake.address, **fake.options()) as board:
        assert board.status()["board"] == "fake"
        assert board.counters()["tcp.segments"] == 3
        assert board.command("version") == "0.1.0 on fake\n"
        assert board.events() == ["one", "two"]
        with pytest.raises(BoardError, match="answered UNKNOWN_COMMAND: there is no such command"):
            board.command("fly")
        with pytest.raises(BoardError, match="cannot tell its sessions: build it with `inspect=Tr"):
            board.sessions()
        board.configure(Configuration(0, 0, (), b"image"))
        with pytest.raises(client.Refused, match="refused the configuration message: BAD_DATA"):
            board.configure(Configuration(0, 0, (), b""))
        assert board.work(b"small") == b"small"
        board.configure(Configuration(0, 0, (), b"weights"), at_role=True)


def test_a_connection_that_was_accepted():
    with FakeBoard(commands={"version": (Status.OK, "1\n")}) as fake:
        connected = socket.create_connection((HOST, fake.management))
        with Board.adopt(connected, "board 7", timeout=20) as board:
            assert board.command("version") == "1\n"
            fake.cut()
            for _ in range(2):
                with pytest.raises(ConnectionLost, match="board 7"):
                    board.command("version")


def test_nobody_is_there(connect):
    port = closed_port()
    with connect(f"{HOST}:{port}", management=port) as board:
        for ask in (board.role().call, board.role("echo").call):
            with pytest.raises(BoardError, match=f"^cannot connect to {HOST}:{port}: .*") as caught:
                ask(b"")
        assert str(caught.value).endswith("without status is used by naming its roles: roles=…")
        with pytest.raises(ConnectionLost, match="cannot connect"):
            board.status()


def test_a_peer_without_status_has_the_roles_that_the_user_names(connect):
    roles = {"echo": echo, "crc32c": crc_role}
    with FakeBoard(roles) as fake:
        nowhere = closed_port()
        with connect(fake.address, management=nowhere, roles=["echo", "crc32c"]) as board:
            assert len(board.role("crc32c").call(b"x")) == 4
        with connect(fake.address, management=nowhere, roles=["sums"]) as board:
            assert board.role("sums").call(b"x") == b"x", "a single role is the port's"


def test_a_refusal_of_the_header_is_that_of_the_oldest_message(connect):
    """The board reads nothing after it, so what was sent behind it is sent again."""
    sizes = [10, 20, 1 << 18, 30, 40]
    outcomes = []

    def call():
        try:
            yield Batch(None, [bytes(size) for size in sizes], pure=True)
        except client.TooLarge as error:
            outcomes.append(error.status)
        return (yield Batch(None, [bytes(30), bytes(40)], pure=True))

    with FakeBoard() as fake, connect(fake.address, **fake.options(in_flight=5)) as board:
        assert board.run(call()) == [bytes(30), bytes(40)]
    assert outcomes == [Status.TOO_LARGE]


def test_a_stream_message_that_a_board_does_not_take(connect):
    kind = smp.MessageType.STREAM

    def call():
        with pytest.raises(client.BadType):
            yield Batch(None, [b"a", b"b", b"c"], kind, pure=True, together=True)
        return (yield Batch(None, [b"d"]))

    with FakeBoard(types=(TYPE_DATA,)) as fake, connect(fake.address, **fake.options()) as board:
        assert board.run(call()) == [b"d"]


def test_options_are_checked():
    for options, says in (
        ({"in_flight": 0}, "in_flight must be at least 1, not 0"),
        ({"timeout": 0}, "timeout must be above 0 seconds, not 0"),
        ({"retries": -1}, "retries must be at least 0, not -1"),
        ({"roles": "ecg"}, "roles must be a sequence of names, not the string 'ecg'"),
    ):
        with pytest.raises(ValueError, match=f"^{says}$"):
            Board("x", **options)
    with pytest.raises(BoardError, match="^the board must be HOST or HOST:PORT, not 'a:b'$"):
        Board("a:b")
    with pytest.raises(AttributeError, match=r"no role of this name has typed calls; role\('crc"):
        _ = Board("x").crc99


def test_a_user_s_role_brings_its_calls(tmp_path, monkeypatch):
    monkeypatch.setattr(role_folders, "_own", {})
    folder = tmp_path / "sums"
    folder.mkdir()
    (folder / "role.py").touch()
    (folder / "client.py").write_text(
        "from trebuchet.client import Batch, O, Role, operation\n"
        "class Sums(Role[O]):\n"
        "    kind = 'sums'\n"
        "    @operation\n"
        "    def of(self, *numbers):\n"
        "        (result,) = yield Batch(self.name, [bytes(numbers)])\n"
        "        return result[0]\n"
    )
    role_folders.add_roles(tmp_path)
    roles = {"sums": lambda ident, data: (Status.OK, bytes([sum(data)]))}
    with FakeBoard(roles) as fake, Board(fake.address, **fake.options()) as board:
        assert board.sums.of(1, 2, 3) == 6
    (folder / "client.py").write_text("nothing = 1\n")
    monkeypatch.setattr("sys.modules", {})
    with pytest.raises(BoardError, match="must define one class derived from trebuchet.client.Ro"):
        Board("x").role("sums")


def test_two_calls_in_two_tasks_share_a_connection():
    """Neither is answered before the board has both messages."""

    held = []

    def hold(connection, message, answer):
        held.append(answer)
        return b"" if len(held) < 2 else b"".join(reversed(held))

    async def do(fake):
        async with AsyncBoard(fake.address, **fake.options()) as board:
            return await asyncio.gather(board.role().call(b"a"), board.role().call(b"b"))

    with FakeBoard(tamper=hold) as fake:
        assert asyncio.run(do(fake)) == [b"a", b"b"]
        assert fake.connections == 1


def test_the_largest_result_is_a_message_s():
    assert Batch(None, []).largest + 4 == MAX_PAYLOAD
