"""The simulated board in active mode: it connects to a server, whatever that does."""

import socket
import sys

import pytest
from e2e_board import assert_drained, quiet_counters
from e2e_clients import read_message, reset
from patience import wait_until
from sim_tops import needs_network
from trebuchet import __version__
from trebuchet.boards import load_board
from trebuchet.client.smp import Message, MessageType, parse_reply
from trebuchet.models import config_block
from trebuchet.models.status import Status
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

pytestmark = [pytest.mark.slow, needs_network]

PORT = 4321


@pytest.fixture
def board(tmp_path):
    layout = load_board("sim").flash
    block = config_block.pack(f"server=192.0.2.1:{PORT}/80\n")
    flash = bytearray(b"\xff" * layout.size)
    flash[layout.config[0] : layout.config[0] + len(block)] = block
    path = tmp_path / "flash.bin"
    path.write_bytes(flash)
    top = source("board")
    with Board(build(top), cwd=top.folder, ready="\nready\n", timeout=240, flash=path) as board:
        yield board


def listener(board):
    """A socket at the server's address, in the board's network."""
    server = board.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((board.host_ip, PORT))
    server.listen(4)
    server.settimeout(90)
    return server


def ask(connection, line):
    connection.sendall(Message(MessageType.COMMAND, line).pack())
    kind, payload = read_message(connection)
    assert kind == MessageType.REPLY
    return parse_reply(payload)


def accepted(server, board):
    connection, (peer, port) = server.accept()
    connection.settimeout(60)
    assert peer == board.ip
    assert 49152 <= port <= 65535
    return connection, port


def said(board, line):
    wait_until(lambda: line in board.uart_text(), 60, f"{line!r} on the console")


def test_servers_that_refuse_answer_close_and_reset(board):
    """Nobody listens; a server that asks and closes; one that resets; then the command line."""
    name = f"server: 192.0.2.1:{PORT}: "
    said(board, name + "NO_ANSWER\n")  # a RST
    ports = []
    with listener(board) as server:
        for ending in (socket.socket.close, reset):
            connection, port = accepted(server, board)
            ports.append(port)
            assert ask(connection, b"version")[0] == Status.OK
            assert ask(connection, b"fly")[0] == Status.UNKNOWN_COMMAND
            ending(connection)
            said(board, name + "ABORTED\n")
    assert len(set(ports)) == 2, "another port each time"
    assert board.uart_text().count(name + "OK\n") == 2
    tool = [sys.executable, "-m", "trebuchet.host.cli", "manage", board.ip]
    done = board.run([*tool, "--listen", str(PORT), "--timeout", "90", "version"])
    assert (done.returncode, done.stderr) == (0, "")
    assert __version__ in done.stdout


def test_both_ways_at_once_and_nothing_is_left(board):
    """Clients of the hardware path and of the CPU beside the server's connection; then drained."""
    fresh, host = quiet_counters(board), board.host_ip
    with listener(board) as server:
        connection, _ = accepted(server, board)
        for round in range(5):
            with board.connect(7) as echo, board.connect(80) as manager:
                echo.sendall(bytes([round]) * 3000)
                assert ask(connection, b"uptime")[0] == Status.OK
                assert ask(manager, b"uptime")[0] == Status.OK
                status, sessions = ask(manager, b"sessions 0")
                assert status == Status.OK
                states = [line.split()[1:] for line in sessions.splitlines()[1:]]
                mine = [["ESTABLISHED", f"{host}:{p}"] for p in (PORT, echo.getsockname()[1])]
                assert all(row in [state[:2] for state in states] for row in mine), sessions
                got = b""
                while len(got) < 3000:
                    got += echo.recv(3000)
                assert got == bytes([round]) * 3000
        connection.close()
    said(board, "ABORTED\n")
    said(board, "NO_ANSWER\n")
    assert_drained(lambda: quiet_counters(board), fresh)
