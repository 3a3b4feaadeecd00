"""A simulated board with firmware serves what `trebuchet web load` has put into its memory."""

import http.client
import json
import random
import select
import sys
import threading

import pytest
from e2e_board import board_in_simulation, status
from e2e_web import PORT, connection, fetch, web_plan
from patience import PATIENCE, join
from sim_tops import needs_network
from trebuchet.boards.presets import TcpChoice
from trebuchet.models.http.folder import objects_of
from trebuchet.models.http.image import Image
from trebuchet.models.http.load import HEADER_BYTES, pack
from trebuchet.models.http.server import Connection as Server

pytestmark = [pytest.mark.slow, needs_network]

HALF = 1 << 16
PLACES = 16
#: Sessions are in memory, and places fewer than connections.
STORE = TcpChoice("tiny", {"sessions": 1024, "cache": 16, "segments": 64, "places": PLACES})
TREBUCHET = [sys.executable, "-m", "trebuchet.host.cli"]
_SEND = """
import sys
from trebuchet.client import Board
from trebuchet.client.smp import Configuration
from trebuchet.models.errors import TrebuchetError
with Board(sys.argv[1], timeout=200) as board:
    try:
        board.configure(Configuration(0, 0, (), open(sys.argv[2], "rb").read()))
    except TrebuchetError as error:
        print(error)
    else:
        print("OK")
"""


@pytest.fixture(scope="module")
def board():
    with board_in_simulation("--seed", "8", plan=web_plan(HALF), tcp=STORE) as board:
        yield board


def trebuchet(board, *words, seconds=300):
    done = board.run([*TREBUCHET, *map(str, words)], seconds * PATIENCE)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path):
    """A folder of another random content in each test."""
    (tmp_path / "files" / "below").mkdir(parents=True)
    rng = random.Random(str(tmp_path))
    (tmp_path / "files" / "index.html").write_bytes(b"<p>%d</p>" % rng.randrange(1000))
    for name, size in (("empty", 0), ("a.css", 1461), ("below/b.png", 3000)):
        (tmp_path / "files" / name).write_bytes(rng.randbytes(size))
    return tmp_path / "files"


def check_files(board, folder):
    made = connection(board)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = f"/{path.relative_to(folder)}"
        response, content = fetch(made, name)
        assert (response.status, content) == (200, path.read_bytes()), name
        tag = {"If-None-Match": response.getheader("ETag")}
        response, content = fetch(made, name, **tag)
        assert (response.status, content) == (304, b""), name
    response, content = fetch(made, "/")
    assert content == (folder / "index.html").read_bytes()
    assert fetch(made, "/none")[0].status == 404
    response, content = fetch(made, "/a.css", "HEAD")
    assert (response.getheader("Content-Length"), content) == ("1461", b"")
    made.close()


def test_load_and_serve(board, folder, tmp_path):
    with pytest.raises(http.client.RemoteDisconnected):
        fetch(connection(board), "/")
    code, out, err = trebuchet(board, "web", "load", board.ip, folder)
    assert code == 0, err
    assert out.startswith(f"{board.ip} serves 5 paths (")
    check_files(board, folder)
    curl = ["curl", "-sS", "-i", "--max-time", "60", f"http://{board.ip}:{PORT}/below/b.png"]
    done = board.run([*curl, "-o", str(tmp_path / "out")], 100)
    assert done.returncode == 0, done.stderr
    head, _, content = (tmp_path / "out").read_bytes().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n")
    assert content == (folder / "below/b.png").read_bytes()
    code, out, err = trebuchet(board, "web", "status", board.ip, "--json")
    state = json.loads(out)
    assert (state["port"], state["enabled"], state["paths"], state["room"]) == (PORT, 1, 5, HALF)
    assert state["found"] >= 5
    assert state["held"] == 0
    web = status(board)["engines"]["web"]
    assert web["not_modified"] == 4
    assert web["not_found"] == 1
    code, out, _ = trebuchet(board, "web", "status", board.ip)
    assert f"port {PORT}" in [" ".join(line.split()) for line in out.splitlines()]
    assert trebuchet(board, "manage", board.ip, "web", "off")[0] == 0
    with pytest.raises(http.client.RemoteDisconnected):
        fetch(connection(board), "/")
    assert trebuchet(board, "manage", board.ip, "web", "on")[0] == 0
    check_files(board, folder)


def test_replaced_under_load(board, folder, tmp_path):
    """Each response is whole, of the files before or of the new ones, and never goes back."""
    pages = [bytes([65 + k]) * 2000 for k in range(3)]
    for page in pages:
        (folder / "page").write_bytes(page)
        if page is pages[0]:
            assert trebuchet(board, "web", "load", board.ip, folder)[0] == 0
            failures, over = [], threading.Event()
            clients = [
                threading.Thread(target=watch, args=(board, pages, over, failures))
                for _ in range(3)
            ]
            for client in clients:
                client.start()
        else:
            code, _, err = trebuchet(board, "web", "load", board.ip, folder)
            assert code == 0, err
            assert fetch(connection(board), "/page")[1] == page
    over.set()
    for client in clients:
        join(client, 100)
    assert not failures, failures


def watch(board, pages, over, failures):
    try:
        at, made = 0, connection(board)
        while not over.is_set():
            found = pages.index(fetch(made, "/page")[1])
            assert found >= at
            at = found
        made.close()
    except BaseException as error:
        failures.append(error)


def converse(board, data):
    """Send ``data`` in one go; returns all that comes until the board closes."""
    with board.connect(PORT) as s:
        s.sendall(data)
        out = b""
        while block := s.recv(1 << 16):
            out += block
    return out


def test_unusual_requests(board, folder):
    """Firmware answers what gateware does not, in its turn, as the model does."""
    (folder / "a b ä%.txt").write_bytes(b"a name with spaces")
    assert trebuchet(board, "web", "load", board.ip, folder)[0] == 0
    host, last = b"Host: h\r\n", b"Connection: close\r\n\r\n"
    tag = objects_of(folder)[b"/a.css"].etag
    requests = [
        b"GET /a%20b%20%C3%A4%25.txt HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /a.css HTTP/1.1\r\n" + host + b"\r\n",
        b"GET http://h:1/below/.././below/b.png HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /a.css HTTP/1.1\r\n" + host + b"Range: bytes=-100\r\n\r\n",
        b"GET /a.css HTTP/1.1\r\n" + host + b"Range: bytes=1461-\r\n\r\n",
        b"HEAD /%61.css HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /a.css HTTP/1.1\r\n" + host + b'If-None-Match: "x", W/' + tag + b"\r\n\r\n",
        b"GET /a.css HTTP/1.1\r\n" + host + b'If-Match: "x"\r\n\r\n',
        b"GET / HTTP/1.1\r\n" + host + b"Content-Length: 3000\r\n\r\n" + b"GET" * 1000,
        b"GET / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n"
        b"3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
        b"GET /%6Eone HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /b%2Fc HTTP/1.1\r\n" + host + last,
    ]
    together = b"".join(requests)
    assert converse(board, together) == Server(objects_of(folder)).receive(together)
    for request in (
        b"GET /%00 HTTP/1.1\r\n" + host + b"\r\n",
        b"POST /a.css HTTP/1.1\r\n" + host + b"Content-Length: 2\r\n\r\nxy",
        b"GET /a.css HTTP/1.1\r\n" + host + b"Content-Length: 65537\r\n\r\n",
        b"GET /a.css HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ):
        assert converse(board, request) == Server(objects_of(folder)).receive(request)
    with board.connect(PORT) as s:  # content that does not come, and a late one in pieces
        s.sendall(b"GET / HTTP/1.1\r\n" + host + b"Content-Length: 9\r\n\r\n12345")
        board.sleep(0.5)
        s.sendall(b"6789" + requests[-1])
        out = b""
        while block := s.recv(1 << 16):
            out += block
    assert out.startswith(b"HTTP/1.1 200 OK\r\n")
    assert out.count(b"HTTP/1.1 404 ") == 1
    curl = ["curl", "-sS", "--max-time", "60", "-r", "0-99", f"http://{board.ip}:{PORT}/a.css"]
    assert board.run([*curl, "-o", str(folder / "out")], 100).returncode == 0
    assert (folder / "out").read_bytes() == (folder / "a.css").read_bytes()[:100]
    web = status(board)["engines"]["web"]
    assert web["by_firmware"] >= 16
    assert web["unusual"] == 0


def send(board, path, contents):
    path.write_bytes(contents)
    return board.run([sys.executable, "-c", _SEND, board.ip, str(path)], 300 * PATIENCE).stdout


def test_what_is_refused_changes_nothing(board, folder, tmp_path):
    assert trebuchet(board, "web", "load", board.ip, folder)[0] == 0
    state = dict(
        line.split() for line in trebuchet(board, "manage", board.ip, "web")[1].splitlines()
    )
    base = int(state["next"])
    good = pack(Image({}, base, HALF))
    damaged = good[:-1] + bytes([good[-1] ^ 1])
    elsewhere = pack(Image({}, int(state["address"]), HALF))
    assert "BAD_CHECKSUM" in send(board, tmp_path / "x", damaged)
    assert "STALE" in send(board, tmp_path / "x", elsewhere)
    assert "WRONG_BOARD" in send(board, tmp_path / "x", good[:4] + b"\0" + good[5:])
    assert "TRUNCATED" in send(board, tmp_path / "x", good[:-1])
    large = pack(Image({}, base, HALF))[:HEADER_BYTES] + bytes(HALF + 4)
    large = large[:12] + (HALF + 4).to_bytes(4, "little") + large[16:]
    assert "TOO_LARGE" in send(board, tmp_path / "x", large)
    check_files(board, folder)
    (folder / "large").write_bytes(bytes(HALF))
    code, _, err = trebuchet(board, "web", "load", board.ip, folder)
    assert code == 1
    assert f"more than the {HALF} bytes" in " ".join(err.split())
    code, _, err = trebuchet(board, "web", "load", board.ip, folder / "none")
    assert code == 1
    assert "is no folder" in " ".join(err.split())
    (folder / "large").unlink()
    check_files(board, folder)


def test_heads_that_never_end_keep_nobody_out(board, folder):
    """They take all places, and are answered although the request clock waits for an hour."""
    assert trebuchet(board, "web", "load", board.ip, folder)[0] == 0
    timeout = (board.ip, "shell.request_timeout")
    usual = json.loads(trebuchet(board, "registers", *timeout, "--json")[1])[timeout[1]]["value"]
    assert trebuchet(board, "registers", *timeout, "4000000")[0] == 0
    stalled = [board.connect(PORT) for _ in range(PLACES + 4)]
    for s in stalled:
        s.sendall(b"GET / HTTP/1.1\r\nHo")
    check_files(board, folder)
    late = select.select(stalled, [], [], 0)[0]
    for s in late:
        assert s.recv(1 << 16).startswith(b"HTTP/1.1 408 ")
    for s in stalled:
        s.close()
    check_files(board, folder)
    assert status(board)["engines"]["web"]["timeouts"] == len(late) > PLACES // 2
    assert trebuchet(board, "registers", *timeout, usual)[0] == 0
