"""The whole simulated board's management service: SMP on port 80 beside HTTP, by its firmware."""

import json
import re
import socket
import struct
import sys

import pytest
from e2e_board import (
    assert_drained,
    board_in_simulation,
    quiet_counters,
    status_counters,
)
from e2e_clients import read_all, read_message, reset
from patience import wait_until
from sim_tops import needs_network
from trebuchet import __version__
from trebuchet.client.smp import (
    Configuration,
    Core,
    Message,
    MessageType,
    data_message,
    parse_reply,
    parse_response,
)
from trebuchet.models.ecg import model
from trebuchet.models.ecg.synthetic import synthesise
from trebuchet.models.status import Status
from trebuchet.soc.build import build_sim

pytestmark = [pytest.mark.slow, needs_network]

PORT = 80
SAMPLES, _, _ = synthesise(3.0, seed=7)


@pytest.fixture(scope="module")
def board():
    """After all tests every session, segment and descriptor is free again.

    Not after each: the firmware takes more than a second of processor time to write its counters.
    """
    with board_in_simulation("--seed", "60") as board:
        fresh = quiet_counters(board)
        yield board
        assert_drained(lambda: quiet_counters(board), fresh)


@pytest.fixture(scope="module")
def ecg_base():
    registers = json.loads((build_sim().folder / ".." / "registers.json").read_text())
    return registers["blocks"]["ecg"]["base"]


def command(line):
    return Message(MessageType.COMMAND, line).pack()


def configuration(*controls, image=b"", sizes=(0, 0)):
    cores = tuple(Core(control, 0, 0) for control in controls)
    return Configuration(*sizes, cores, image).message().pack()


def block(count):
    return SAMPLES[:count].astype("<i2")


def ask(connection, request):
    connection.sendall(request)
    return read_message(connection)


def refusal(answer):
    kind, payload = answer
    assert kind == MessageType.RESPONSE
    response = parse_response(payload)
    return response.status, response.id


def assert_reachable(board):
    """A command and a request of HTTP are answered, each on a new connection."""
    with board.connect(PORT) as connection:
        kind, payload = ask(connection, command(b"version"))
    assert kind == MessageType.REPLY
    assert parse_reply(payload)[0] == Status.OK
    with board.connect(PORT) as connection:
        connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: board\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 404 ")


def wait_log(board, text):
    wait_until(lambda: text in board.uart_text(), 20, f"{text!r} on the console")


def test_a_command_and_one_that_is_unknown(board):
    with board.connect(PORT) as connection:
        kind, payload = ask(connection, command(b"version"))
        code, text = parse_reply(payload)
        assert (kind, code) == (MessageType.REPLY, Status.OK)
        assert __version__ in text
        code, text = parse_reply(ask(connection, command(b"fly away"))[1])
        assert code == Status.UNKNOWN_COMMAND
        assert text.startswith("error: UNKNOWN_COMMAND")
    said = r"warn smp: session \d+: UNKNOWN_COMMAND\n"
    wait_until(lambda: re.search(said, board.uart_text()), 20, "the line in the log")


def test_the_sessions_of_the_board(board):
    """Its own, that of another client with bytes on their way, and the names as a table."""
    tool = [sys.executable, "-m", "trebuchet.host.cli", "sessions", board.ip]
    with board.connect(7) as client:
        client.sendall(bytes(1000))
        assert len(client.recv(1000, socket.MSG_WAITALL)) == 1000
        port = client.getsockname()[1]
        done = board.run([*tool, "--json"])
        assert (done.returncode, done.stderr) == (0, "")
        found = {row["peer"].partition(":")[2]: row for row in json.loads(done.stdout)}
        row = found[str(port)]
        assert (row["state"], row["port"], row["unread"], row["queue"]) == ("ESTABLISHED", 7, 0, 0)
        assert row["snd.una"] == row["snd.nxt"]
        assert row["window"] > 1000
        assert row["rto"] > 0
        assert any(other["port"] == PORT for other in found.values())
        done = board.run(tool)
        assert "SND.UNA" in done.stdout


def test_the_command_line_tool(board):
    tool = [sys.executable, "-m", "trebuchet.host.cli", "manage", board.ip]
    done = board.run([*tool, "version"])
    assert (done.returncode, done.stderr) == (0, "")
    assert __version__ in done.stdout
    done = board.run([*tool, "fly"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("trebuchet: 192.0.2.2:80 answered UNKNOWN_COMMAND: ")
    assert len(done.stderr.splitlines()) == 1


def test_twenty_requests_on_one_connection(board):
    """In one go and in segments of every size; text of HTTP at the end."""
    stream = command(b"version") * 19
    with board.connect(PORT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(command(b"version"))
        first = read_message(connection)
        for at in range(0, 60, 7):
            connection.sendall(stream[at : min(at + 7, 60)])
            board.sleep(0.002)
        connection.sendall(stream[60:])
        assert [read_message(connection) for _ in range(19)] == [first] * 19
        connection.sendall(b"GET /status HTTP/1.1\r\nHost: board\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_ecg_windows_give_the_golden_models_bytes(board):
    with board.connect(PORT) as connection:
        for count in (model.MIN_SAMPLES, 501, 510):
            data = block(count)
            kind, payload = ask(connection, data_message(count, data.tobytes()).pack())
            assert kind == MessageType.DATA
            assert payload == struct.pack("<I", count) + model.classify_block(data)
        # What the role refuses has the message's ID, and the connection goes on.
        assert refusal(ask(connection, data_message(9, b"abc").pack())) == (Status.BAD_LENGTH, 9)
        assert ask(connection, command(b"version"))[0] == MessageType.REPLY


def test_a_configuration_and_what_it_asks_of_operands(board, ecg_base):
    with board.connect(PORT) as connection:
        size = 2 * 501
        good = configuration(ecg_base, sizes=(size, model.MAX_RESULT))
        assert refusal(ask(connection, good)) == (Status.OK, 0)
        wait_log(board, f"configured: ecg, operands {size}, results {model.MAX_RESULT}, image 0")
        assert ask(connection, data_message(1, block(501).tobytes()).pack())[0] == MessageType.DATA
        other = data_message(2, block(500).tobytes()).pack()
        assert refusal(ask(connection, other)) == (Status.BAD_LENGTH, 2)
        # One that is refused changes nothing; then one that names no sizes.
        assert refusal(ask(connection, configuration(ecg_base + 4)))[0] == Status.BAD_DATA
        assert refusal(ask(connection, other)) == (Status.BAD_LENGTH, 2)
        assert refusal(ask(connection, configuration(ecg_base)))[0] == Status.OK
        assert ask(connection, other)[0] == MessageType.DATA


def test_an_image_that_is_none(board, ecg_base):
    """The whole of it is taken, piece by piece, and judged."""
    image = bytes(range(256)) * 80
    with board.connect(PORT) as connection:
        answer = refusal(ask(connection, configuration(ecg_base, image=image)))
        assert answer[0] in (Status.BAD_DATA, Status.NOT_BUILT_IN)
        assert ask(connection, command(b"version"))[0] == MessageType.REPLY


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (struct.pack("<B3xI", 4, 8) + bytes(8), Status.BAD_TYPE),
        (struct.pack("<B3xI", 7, 0), Status.BAD_TYPE),
        (struct.pack("<B3xI", 0, 1 << 31), Status.BAD_TYPE),
        (struct.pack("<B3xI", 1, (1 << 32) - 1), Status.TOO_LARGE),
        (struct.pack("<B3xI", 3, 1025) + bytes(1025), Status.TOO_LARGE),
        (struct.pack("<B3xI", 5, 128) + b"x" * 128, Status.TOO_LARGE),
    ],
)
def test_what_is_refused_ends_the_connection(board, request_bytes, code):
    with board.connect(PORT) as connection:
        assert refusal(ask(connection, request_bytes)) == (code, 0)
        assert read_all(connection) == b""
    wait_log(board, f": {code.name}")
    assert_reachable(board)


@pytest.mark.parametrize(
    "cut", [44, 3000, *(pytest.param(n, marks=pytest.mark.nightly) for n in (3, 8, 15, 1032))]
)
def test_a_truncated_configuration(board, ecg_base, cut):
    """The node says so, and a whole one is taken right after."""
    with board.connect(PORT) as connection:
        connection.sendall(configuration(ecg_base, image=bytes(5000))[:cut])
        connection.shutdown(socket.SHUT_WR)
        assert refusal(read_message(connection)) == (Status.TRUNCATED, 0)
        assert read_all(connection) == b""
    with board.connect(PORT) as connection:
        assert refusal(ask(connection, configuration(ecg_base)))[0] == Status.OK
    assert_reachable(board)


def test_two_connections_at_a_time(board, ecg_base):
    """One configures slowly: another one's configuration waits not, commands and jobs go on."""
    message = configuration(ecg_base, image=bytes(3000))
    before = status_counters(board)
    with board.connect(PORT) as slow:
        slow.sendall(message[:2000])
        wait_until(
            lambda: status_counters(board)["mailbox.requests"] >= before["mailbox.requests"] + 3,
            20,
            "header and a piece of the configuration",
        )
        with board.connect(PORT) as other:
            assert ask(other, command(b"version"))[0] == MessageType.REPLY
            data = block(500)
            answer = ask(other, data_message(5, data.tobytes()).pack())
            assert answer[1][4:] == model.classify_block(data)
            assert refusal(ask(other, configuration(ecg_base))) == (Status.BUSY, 0)
            assert read_all(other) == b""
        slow.sendall(message[2000:])
        assert refusal(read_message(slow))[0] in (Status.BAD_DATA, Status.NOT_BUILT_IN)
    with board.connect(PORT) as connection:
        assert refusal(ask(connection, configuration(ecg_base)))[0] == Status.OK


@pytest.mark.parametrize(
    "after", [500, *(pytest.param(n, marks=pytest.mark.nightly) for n in (8, 1500))]
)
def test_a_client_that_vanishes_in_mid_configuration(board, ecg_base, after):
    """By RST: nobody is told. Its session's number, or patience's end, frees the node."""
    connection = board.connect(PORT)
    connection.sendall(configuration(ecg_base, image=bytes(3000))[:after])
    board.sleep(0.2)
    reset(connection)
    assert_reachable(board)

    def configured():
        with board.connect(PORT) as again:
            return refusal(ask(again, configuration(ecg_base)))[0] == Status.OK

    wait_until(configured, 15, "a configuration after the lost one")


@pytest.mark.nightly
def test_commands_and_pages_side_by_side(board):
    """Many clients of both kinds at once."""
    connections = [board.connect(PORT) for _ in range(12)]
    try:
        for number, connection in enumerate(connections):
            half = command(b"version") if number % 2 else b"GET /status HTTP/1.1\r\nHost: b\r\n\r\n"
            connection.sendall(half[:5])
        for number, connection in reversed(list(enumerate(connections))):
            half = command(b"version") if number % 2 else b"GET /status HTTP/1.1\r\nHost: b\r\n\r\n"
            connection.sendall(half[5:])
        for number, connection in enumerate(connections):
            if number % 2:
                assert read_message(connection)[0] == MessageType.REPLY
            else:
                assert read_all(connection).startswith(b"HTTP/1.1 200 ")
    finally:
        for connection in connections:
            connection.close()
