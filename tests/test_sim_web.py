"""A simulated board serves a folder to real clients through the kernel (``sim --web``)."""

import http.client
import random
import socket
import threading

import pytest
from patience import join
from sim_tops import needs_network
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.build import build
from trebuchet.sim.cli import _web_top
from trebuchet.sim.run import Board
from trebuchet.sim.web import web_folder, web_source

# Compiling the top takes half a minute.
pytestmark = pytest.mark.slow

SIZES = (0, 1, 511, 1460, 100_000, 1_500_000)
BAD_LINK = ["--loss", "2%", "--reorder", "3%", "--duplicate", "2%", "--corrupt", "1%"]


@pytest.fixture(scope="module")
def binary():
    return build(web_source())


@pytest.fixture
def folder(tmp_path):
    rng = random.Random(7)
    (tmp_path / "index.html").write_text("<p>front page</p>")
    for size in SIZES:
        (tmp_path / f"{size}.bin").write_bytes(rng.randbytes(size))
    return tmp_path


def answer(connection, *request, headers=None):
    connection.request(*request, headers=headers or {})
    response = connection.getresponse()
    return response, response.read()


def fetch_all(board, folder, failures):
    try:
        with board.connect(80) as s:
            connection = http.client.HTTPConnection(board.ip)
            connection.sock = s
            for path in sorted(folder.iterdir()):
                response, content = answer(connection, "GET", f"/{path.name}")
                assert (response.status, content) == (200, path.read_bytes()), path
                tag = response.getheader("ETag")
                again = {"If-None-Match": tag}
                response, content = answer(connection, "GET", f"/{path.name}", headers=again)
                assert (response.status, content, response.getheader("ETag")) == (304, b"", tag)
                response, content = answer(connection, "HEAD", f"/{path.name}")
                assert int(response.getheader("Content-Length")) == path.stat().st_size
            response, content = answer(connection, "GET", "/", headers={"Connection": "close"})
            assert (response.status, content) == (200, b"<p>front page</p>")
            assert connection.sock is None  # it was told that the board closes
    except BaseException as error:
        failures.append(error)


@needs_network
@pytest.mark.parametrize("link", [[], BAD_LINK], ids=["good", "bad"])
def test_clients_get_every_byte(binary, folder, link):
    failures = []
    with (
        web_folder(folder) as (where, _),
        Board(binary, ["--seed", "5", *link], cwd=where) as board,
    ):
        clients = [
            threading.Thread(target=fetch_all, args=(board, folder, failures)) for _ in range(3)
        ]
        for client in clients:
            client.start()
        for client in clients:
            join(client, 300)
        assert not failures, failures


@needs_network
@pytest.mark.parametrize("size", [(1 << 19) - 1, 1 << 19, (1 << 19) + 1, 1 << 20])
def test_objects_in_pieces_close_behind_the_last(binary, tmp_path, size):
    """Of whole pieces, too: nothing behind a close is answered."""
    content = random.Random(size).randbytes(size)
    (tmp_path / "x").write_bytes(content)
    with web_folder(tmp_path) as (where, _), Board(binary, [], cwd=where) as board:
        first = b"GET /x HTTP/1.1\r\nHost: h\r\n"
        out = converse(board, first + b"\r\n" + first + b"Connection: close\r\n\r\n" + first)
        assert out.count(b"HTTP/1.1 200 OK\r\n") == 2
        assert out.endswith(b"\r\n\r\n" + content)
        assert len(out) < 2 * size + 400
        with board.connect(80) as s:
            s.sendall(first + b"Connection: close\r\n\r\n")
            while s.recv(1 << 16):
                pass


def converse(board, data):
    """Send ``data`` in one go; returns all that comes until the board closes."""
    with board.connect(80) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        out = b""
        while block := s.recv(1 << 16):
            out += block
    return out


@needs_network
def test_pipelines_and_what_is_refused(binary, folder):
    with web_folder(folder) as (where, _), Board(binary, [], cwd=where) as board:
        request = b"GET /1.bin HTTP/1.1\r\nHost: h\r\n\r\n"
        assert converse(board, 20 * request).count(b"HTTP/1.1 200 OK\r\n") == 20
        for first, status in (
            (b"GET / HTTP/1.1\r\n\r\n", b"400"),
            (b"GET /none HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", b"404"),
            (b"POST / HTTP/1.1\r\nHost: h\r\n\r\n", b"405"),
            (b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", b"505"),
            (b"GET /%31.bin HTTP/1.1\r\nHost: h\r\n\r\n", b"503"),
        ):
            out = converse(board, first + request)
            assert out.startswith(b"HTTP/1.1 " + status), first
            assert out.count(b"Content-Length: ") == 1
            assert b"\r\nConnection: close\r\n" in out


@needs_network
def test_a_head_that_does_not_end_is_late(binary, folder):
    with web_folder(folder) as (where, _), Board(binary, [], cwd=where) as board:
        with board.connect(80) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHos")
            assert s.recv(1000).startswith(b"HTTP/1.1 408 ")
            assert s.recv(1) == b""


@needs_network
def test_late_behind_what_was_answered(binary, folder):
    """A pipeline that ends within a head: its requests are answered, then 408, and FIN."""
    whole = b"GET /1.bin HTTP/1.1\r\nHost: h\r\n\r\n"
    with web_folder(folder) as (where, _), Board(binary, [], cwd=where) as board:
        with board.connect(80) as s:
            s.sendall(3 * whole + whole[:-1])
            out = b""
            while block := s.recv(1 << 16):
                out += block
        assert out.count(b"HTTP/1.1 ") == 4
        assert out.count(b"HTTP/1.1 200 OK\r\n") == 3
        assert out.partition(b"HTTP/1.1 408 ")[2].count(b"\r\nConnection: close\r\n") == 1


@needs_network
def test_what_comes_behind_a_close_is_not_answered(binary, folder):
    """More of it than a ring holds, before and after the board's FIN; the board serves on."""
    request = b"GET /1460.bin HTTP/1.1\r\nHost: h\r\n"
    closing = request + b"Connection: close\r\n\r\n"
    with web_folder(folder) as (where, _), Board(binary, [], cwd=where) as board:
        with board.connect(80) as s:
            s.sendall(closing + 4000 * (request + b"\r\n"))
            out = b""
            while block := s.recv(1 << 16):
                out += block
            assert out.count(b"HTTP/1.1 ") == 1
            assert out.endswith((folder / "1460.bin").read_bytes())
            s.sendall(request + b"\r\n")  # behind the board's FIN
            s.shutdown(socket.SHUT_WR)
            assert s.recv(1) == b""
        assert converse(board, request + b"\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("top", "web", "message"),
    [("web", None, "name it with --web"), ("fabric", "x", "--web is for the top web, not fabric")],
)
def test_wrong_tops(top, web, message):
    with pytest.raises(TrebuchetError, match=message):
        _web_top(top, web)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(TrebuchetError, match="is no folder"):  # noqa: SIM117
        with web_folder(tmp_path / "none"):
            pass
