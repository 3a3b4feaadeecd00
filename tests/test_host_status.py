"""`trebuchet status` against an HTTP server that behaves, and against some that do not."""

import http.server
import json
import socket
import threading
from contextlib import contextmanager

import pytest
from trebuchet.client.status import MAX_BYTES
from trebuchet.host.status import fetch_status, flatten, status
from trebuchet.models.errors import TrebuchetError

STATE = {"version": "0.1.0", "board": "sim", "uptime_ms": 12, "tcp": {"segments": 3, "rst": 0}}


@contextmanager
def serving(body, code=200):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(code if self.path == "/status" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_returns_what_the_board_says():
    with serving(json.dumps(STATE).encode()) as board:
        assert fetch_status(board) == STATE


def test_prints_json_or_a_table(capsys):
    with serving(json.dumps(STATE).encode()) as board:
        status(board, as_json=True)
        assert json.loads(capsys.readouterr().out) == STATE
        status(board, as_json=False)
        lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["tcp.segments", "3"] for line in lines)
    assert any(line.split() == ["board", "sim"] for line in lines)


def test_flatten_keeps_order_and_nesting():
    assert flatten(STATE) == [
        ("version", "0.1.0"),
        ("board", "sim"),
        ("uptime_ms", "12"),
        ("tcp.segments", "3"),
        ("tcp.rst", "0"),
    ]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b"{", 200, "sent a status that is not JSON"),
        (b"\xff\xfe", 200, "sent a status that is not JSON"),
        (b"[1]", 200, "must be a JSON object, not list"),
        (b"{}", 503, "answered HTTP 503"),
        (b'{"a":' + b"[" * 100_000, 200, "must be at most 16 objects deep"),
        (b'{"a":' * 16 + b"{}" + b"}" * 16, 200, "must be at most 16 objects deep"),
        (b'{"a":' + b"9" * 5000 + b"}", 200, "sent a status that is not JSON"),
        (b"{}", 302, "answered HTTP 302 Found; is it a Trebuchet board"),
        (b" " * (MAX_BYTES + 1), 200, f"sent more than {MAX_BYTES} bytes"),
    ],
)
def test_bad_answers_are_named(body, code, message):
    with serving(body, code) as board, pytest.raises(TrebuchetError, match=message):
        fetch_status(board)


def test_nobody_listens():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        board = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(TrebuchetError, match=f"cannot connect to {board}: .*refused"):
            fetch_status(board)


def test_a_silent_board_times_out():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        board = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TrebuchetError, match=f"{board} sent nothing for 0.2 s"):
            fetch_status(board, timeout=0.2)


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_drop_of_data_now_and_then_does_not_keep_a_client(begin):
    """Neither in the headers nor in the body."""
    done = threading.Event()

    def drip(server):
        peer, _ = server.accept()
        with peer:
            peer.sendall(begin)
            for _ in range(600):
                if done.wait(0.05):
                    return
                peer.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        board = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(TrebuchetError, match=f"^{board} sent no whole message within 2 s$"):
            fetch_status(board, timeout=2)
        done.set()
        thread.join()


@pytest.mark.parametrize(
    ("board", "message"),
    [
        ("127.0.0.1:99999", "^the board must be HOST or HOST:PORT, not '127.0.0.1:99999'$"),
        ("127.0.0.1:x", "^the board must be HOST or HOST:PORT, not '127.0.0.1:x'$"),
        ("a..b", "^cannot connect to a..b:80: "),
    ],
)
def test_bad_addresses(board, message):
    with pytest.raises(TrebuchetError, match=message):
        fetch_status(board, timeout=600)


def test_what_a_board_says_is_no_markup(capsys):
    state = {"a": "[/b]", "x [/i]": "1", "name": "[red]hi", "\x1b[2J": "\ud800\\"}
    with serving(json.dumps(state).encode()) as board:
        status(board)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [["a", "[/b]"], ["x", "[/i]", "1"], ["name", "[red]hi"], ["�[2J", "�\\"]]


def test_a_peer_that_speaks_no_http():
    def talk(server):
        peer, _ = server.accept()
        with peer:
            peer.recv(4096)
            peer.sendall(b"220 ready\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=talk, args=(server,), daemon=True)
        thread.start()
        board = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(TrebuchetError, match="cannot read http://"):
            fetch_status(board, timeout=600)
        thread.join()


def test_no_board_is_named():
    with pytest.raises(TrebuchetError, match="^the board must be HOST or HOST:PORT, not ''$"):
        fetch_status("")
