"""Boards that are wrong, slow, or go away, and what a client makes of them, by both drivers."""

import random
import socket
import struct
import threading
import time

import pytest
from fake_board import BOARDS, HANG_UP, HOST, FakeBoard
from simulated_time import Simulator
from trebuchet.client import Batch, Board, ConnectionLost, ProtocolError, Refused, smp
from trebuchet.client.session import Numbers, SmpSession
from trebuchet.models.progress import VARIABLE
from trebuchet.models.smp_framing import data_message, error_message, frame
from trebuchet.models.status import Status


@pytest.fixture(params=BOARDS)
def connect(request):
    return BOARDS[request.param]


def only_first(answer_to_first):
    """Tampers with the first answer of the first connection alone."""

    def tamper(connection, message, answer):
        return answer_to_first(answer) if (connection, message) == (0, 0) else answer

    return tamper


WRONG = {
    "wrong id": (
        lambda a: data_message(77, b"x"),
        "it answered message 77, which is not under way",
    ),
    "a refusal of another": (
        lambda a: error_message(Status.BUSY, 77),
        "it answered message 77, which is not under way",
    ),
    "garbage": (
        lambda a: b"HTTP/1.1 400 Bad Request\r\n\r\n",
        "must be 1 to 6, not 72; is it a Tr",
    ),
    "a flood": (lambda a: struct.pack("<B3xI", 3, 1 << 30), "payload must be at most 67108864 by"),
    "a command": (lambda a: struct.pack("<B3xI", 5, 0), "it sent a COMMAND message"),
    "a reply": (lambda a: struct.pack("<B3xI", 6, 4) + bytes(4), "it sent a REPLY message"),
    "a short answer": (lambda a: struct.pack("<B3xI", 3, 2) + b"xy", "at least 4 bytes, not 2"),
    "a response of 3 bytes": (lambda a: struct.pack("<B3xI", 2, 3) + b"xyz", "1 or 8 bytes, not 3"),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("pure", [False, True])
def test_what_no_board_sends_is_one_line(connect, kind, pure):
    """A board is not asked again for what it answered so; the next call connects anew."""
    wrong, says = WRONG[kind]
    with FakeBoard(tamper=only_first(wrong)) as fake:
        with connect(fake.address, **fake.options()) as board:
            with pytest.raises(ProtocolError) as caught:
                board.role().call(b"one", pure=pure)
            assert says in str(caught.value)
            assert "\n" not in str(caught.value)
            assert board.role().call(b"two", pure=pure) == b"two"
        assert fake.connections == 2


def test_a_truncated_answer_is_no_answer(connect):
    def truncate(connection, message, answer):
        if message == 1:
            return HANG_UP
        return answer[:-1] if connection == 0 else answer

    with FakeBoard(tamper=truncate) as fake, connect(fake.address, **fake.options()) as board:
        with pytest.raises(ProtocolError, match="closed the connection inside a message, after 14"):
            list(board.map(board.role().call, [b"abc", b"def"]))


@pytest.mark.parametrize("pure", [False, True])
def test_a_board_that_hangs_up(connect, pure):
    """Pure jobs are done again; of others nobody knows whether they were done."""
    with FakeBoard(tamper=only_first(lambda answer: HANG_UP)) as fake:
        with connect(fake.address, **fake.options()) as board:
            if pure:
                assert board.role().call(b"x", pure=True) == b"x"
            else:
                with pytest.raises(ConnectionLost, match="closed the connection with 1 message un"):
                    board.role().call(b"x")
        assert len(fake.jobs) == 1 + pure


def test_a_board_that_always_hangs_up_is_given_up(connect):
    with FakeBoard(tamper=lambda *_: HANG_UP) as fake:
        with connect(fake.address, **fake.options(retries=3)) as board:
            with pytest.raises(ConnectionLost, match="closed the connection with 1 message unansw"):
                board.role().call(b"x", pure=True)
        assert len(fake.jobs) == 4


@pytest.mark.parametrize("status", [Status.ABORTED, Status.NO_ANSWER])
@pytest.mark.parametrize("pure", [False, True])
def test_an_aborted_job(connect, status, pure):
    def abort(ident, data):
        aborted.append(data)
        return (status, b"") if len(aborted) < 3 else (Status.OK, data)

    aborted = []
    with FakeBoard({"echo": abort}) as fake, connect(fake.address, **fake.options()) as board:
        if pure:
            assert board.role().call(b"x", pure=True) == b"x"
            assert fake.connections == 1
        else:
            with pytest.raises(Refused, match=status.name):
                board.role().call(b"x")
    assert len(aborted) == (3 if pure else 1)


@pytest.mark.parametrize("twice", [2, 3])
def test_duplicates_are_dropped(connect, twice):
    with FakeBoard(tamper=lambda c, m, answer: answer * twice) as fake:
        with connect(fake.address, **fake.options()) as board:
            operands = [bytes([k]) for k in range(20)]
            assert list(board.map(board.role().call, operands)) == operands
            assert board.role().call(b"last") == b"last"
            assert board.dropped >= 20 * (twice - 1)


def test_a_late_answer_is_not_taken_for_another(connect):
    """After a time-out nothing that comes on that connection counts."""
    late = threading.Event()

    def wait(connection, message, answer):
        if connection == 0:
            late.wait(20)
        return answer

    with FakeBoard(tamper=wait) as fake:
        with connect(fake.address, **fake.options(timeout=0.2)) as board:
            with pytest.raises(ConnectionLost, match="sent nothing for 0.2 s$"):
                board.role().call(b"one", pure=True)
            late.set()
            assert board.role().call(b"two") == b"two"
        assert fake.connections == 2


def test_a_reconnect_between_calls_loses_nothing(connect):
    """What was not sent yet is sent on the next connection, pure or not."""
    with FakeBoard() as fake, connect(fake.address, **fake.options()) as board:
        for number in range(5):
            assert board.role().call(bytes([number])) == bytes([number])
            fake.cut()
            time.sleep(0.05)
        assert len(fake.jobs) == 5


def test_a_record_is_begun_again(connect):
    """Parts that go together are sent from the first on when their connection is lost."""
    seen = []

    def lose(connection, message, answer):
        seen.append((connection, message))
        return HANG_UP if (connection, message) == (0, 3) else answer

    def call(pure):
        parts = [bytes([k]) for k in range(6)]
        kind = smp.MessageType.STREAM
        return (yield Batch(None, parts, kind, pure=pure, together=True))

    with FakeBoard(tamper=lose) as fake, connect(fake.address, **fake.options()) as board:
        assert board.run(call(True)) == [bytes([k]) for k in range(6)]
    assert [message for connection, message in seen if connection == 1] == list(range(6))
    with FakeBoard(tamper=lose) as fake, connect(fake.address, **fake.options()) as board:
        with pytest.raises(ConnectionLost):
            board.run(call(False))


def serve_once(behave):
    """A TCP server whose one connection is handled by ``behave(socket)``; its port."""
    server = socket.create_server((HOST, 0))

    def serve():
        connection, _ = server.accept()
        with server, connection:
            behave(connection)

    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


def test_a_drop_of_data_now_and_then_does_not_keep_a_client(connect):
    """The time-out is for a whole answer, not for each piece of it."""
    done = threading.Event()

    def drip(connection):
        connection.sendall(struct.pack("<B3xI", 3, 60000))
        while not done.wait(0.05):
            connection.sendall(b"x")

    with connect(HOST, port=serve_once(drip), timeout=1) as board:
        with pytest.raises(ConnectionLost, match="sent no whole message within 1 s$"):
            board.role().call(b"")
        done.set()


def test_a_peer_that_takes_nothing_is_named(connect):
    done = threading.Event()
    with connect(HOST, port=serve_once(lambda c: done.wait(20)), timeout=0.3) as board:
        with pytest.raises(ConnectionLost, match="took no data for 0.3 s$"):
            board.role().call(bytes(1 << 25))
        done.set()


def test_a_refusal_is_received_though_the_peer_takes_no_more(connect):
    done = threading.Event()

    def refuse(connection):
        connection.recv(8)
        connection.sendall(error_message(Status.TOO_LARGE))
        done.wait(20)

    with connect(HOST, port=serve_once(refuse), timeout=10) as board:
        with pytest.raises(Refused, match="TOO_LARGE"):
            board.role().call(bytes(1 << 24))
        done.set()


def test_a_refusal_is_received_though_the_peer_hung_up_while_it_was_sent_to(connect):
    """A board refuses by the header, and closes with the payload unread: that is a reset."""

    def refuse(connection):
        connection.recv(8)
        connection.sendall(error_message(Status.TOO_LARGE))

    with connect(HOST, port=serve_once(refuse), timeout=10) as board:
        with pytest.raises(Refused, match="TOO_LARGE"):
            board.role().call(bytes(1 << 16))


def test_a_slow_board_in_simulation_is_waited_for(connect, tmp_path, monkeypatch):
    """Only what the simulation has advanced counts, not what the clock on the wall says."""
    simulator = Simulator(tmp_path / "progress")
    monkeypatch.setenv(VARIABLE, str(simulator.path))

    def slow(connection, message, answer):
        time.sleep(0.4)
        simulator.advance(0.1)
        return answer

    with FakeBoard(tamper=slow) as fake:
        with connect(fake.address, **fake.options(timeout=0.2)) as board:
            assert board.role().call(b"x") == b"x"
    over = threading.Event()

    def silent(connection, message, answer):
        while not over.wait(0.02):  # as a simulator does: not once, maybe before the wait begins
            simulator.advance(0.1)
        return answer

    with FakeBoard(tamper=silent) as fake:
        with connect(fake.address, **fake.options(timeout=0.2)) as board:
            with pytest.raises(ConnectionLost, match="nothing for 0.2 s of simulated time$"):
                board.role().call(b"x")
        over.set()


def test_a_peer_that_takes_data_slowly_but_steadily_is_waited_for(connect, tmp_path, monkeypatch):
    simulator = Simulator(tmp_path / "progress")
    monkeypatch.setenv(VARIABLE, str(simulator.path))
    message = data_message(1, bytes(3 << 20))
    taken = []

    def sip(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        while sum(taken) < len(message):
            taken.append(len(connection.recv(1 << 16)))
            time.sleep(0.002)
            simulator.advance(0.05)
        connection.sendall(data_message(1, b"all"))

    with connect(HOST, port=serve_once(sip), timeout=2) as board:
        assert board.role().call(bytes(3 << 20)) == b"all"
    assert simulator.seconds > 2, "the peer is too quick for this test"


class Ticket:
    def __init__(self, operand):
        self.batch, self.operand = Batch(None, [operand]), operand


@pytest.mark.parametrize("seed", range(8))
def test_a_session_is_the_model_s_other_side(seed):
    """Whatever the pieces in which bytes go and come: each job has its result, in order."""
    rng = random.Random(seed)
    session = SmpSession("b", Numbers())
    tickets = [Ticket(rng.randbytes(rng.choice([0, 1, 3, 200, 70000]))) for _ in range(30)]
    for ticket in tickets:
        session.submit(ticket, rng.choice([None, 0, 5]))
    sent = b""
    while session.outgoing:
        piece = bytes(session.outgoing[0][: rng.choice([1, 7, 5000, 1 << 17])])
        session.sent(len(piece))
        sent += piece
    assert session.unsent() == 0

    def reverse(ident, data):
        return (Status.OK, data[::-1]) if len(data) != 3 else (Status.BAD_LENGTH, b"")

    answers, _, _ = frame(sent, 1 << 20, reverse)
    outcomes = []
    while answers:
        size = rng.choice([1, 2, 8, 100, 100000])
        outcomes += session.received(answers[:size])
        answers = answers[size:]
    assert [ticket for ticket, _ in outcomes] == tickets
    for ticket, result in outcomes:
        if len(ticket.operand) == 3:
            assert result.status == Status.BAD_LENGTH
        else:
            assert result == ticket.operand[::-1]
    assert list(session.ended()) == []


@pytest.mark.parametrize("seed", range(20))
def test_bytes_of_chance_never_break_a_session(seed):
    """They are outcomes, drops or a ProtocolError, and each job has one outcome at most."""
    rng = random.Random(seed)
    for _ in range(200):
        session = SmpSession("b", Numbers())
        tickets = [Ticket(b"x") for _ in range(3)]
        for ticket in tickets:
            session.submit(ticket, None)
        good = [data_message(rng.randint(0, 5), rng.randbytes(rng.randint(0, 9))) for _ in range(3)]
        good += [error_message(rng.randint(0, 30), rng.randint(0, 4)), rng.randbytes(12)]
        stream = bytearray(b"".join(rng.sample(good, rng.randint(1, 5))))
        if rng.random() < 0.5:
            stream[rng.randrange(len(stream))] ^= 1 << rng.randrange(8)
        found = []
        try:
            for at in range(0, len(stream), 5):
                found += session.received(bytes(stream[at : at + 5]))
            found += session.ended()
        except (ProtocolError, ConnectionLost):
            pass
        answered = [ticket for ticket, _ in found]
        assert len(set(map(id, answered))) == len(answered)
        assert len(answered) + len(session.lost()) == 3


@pytest.mark.parametrize("answer", [data_message(2, b""), error_message(Status.BUSY, 2)])
def test_an_answer_to_what_was_never_asked_ends_a_session(answer):
    session = SmpSession("b", Numbers())
    session.submit(Ticket(b"x"), None)
    with pytest.raises(ProtocolError, match="^b: it answered message 2, which is not under way"):
        list(session.received(answer))


@pytest.mark.parametrize("start", [0, 0xFFFFFFFD])
def test_numbers_wrap_and_leave_out_0(start):
    numbers = Numbers()
    numbers.last = start
    taken = [numbers.take() for _ in range(6)]
    assert 0 not in taken
    assert len(set(taken)) == 6
    assert all(number < 1 << 32 for number in taken)
    assert numbers.given(taken[0])
    assert numbers.given(taken[-1])
    assert not numbers.given(taken[-1] + 1)
    assert not numbers.given(0)


def test_numbers_that_were_never_given_are_not_late():
    assert not Numbers().given(1)
    assert Board("x").dropped == 0
