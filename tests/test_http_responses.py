"""The golden model's responses: linted, as they lie in memory, and behind a socket."""

import http.client
import shutil
import socket
import subprocess
import threading

import http_vectors
import httplint
import pytest
from trebuchet.models.http import LIMITS, PREPARED, Connection, Object, Verdict, prepared
from trebuchet.models.http.response import HEADER_ROOM

CONTENT = bytes(range(256)) * 10
SITE = {name: Object(content, b"text/plain", 0xAA) for name, content in http_vectors.site()}
SITE[b"/large"] = Object(CONTENT, b"application/octet-stream", 1 << 63)

#: What httplint warns of, and why it stays so.
KNOWN = {
    "DATE_CLOCKLESS",  # there is no clock, and RFC 9110, 6.6.1 forbids Date then
    "FRESHNESS_HEURISTIC",  # no Last-Modified: no cache has a heuristic to apply
    "NO_DATE_304",  # the same
}


def lint(response):
    """Names of the notes of httplint at level WARN or BAD."""
    first, *lines = response.header.decode().split("\r\n")[:-2]
    version, status, reason = first.split(" ", 2)
    linter = httplint.HttpResponseLinter()
    linter.process_response_topline(version.encode(), status.encode(), reason.encode())
    linter.process_headers([tuple(line.encode().split(b": ", 1)) for line in lines])
    linter.feed_content(response.content)
    linter.finish_content(True)
    bad = [note for note in linter.notes if note.level.name in ("WARN", "BAD")]
    names = {type(note).__name__ for note in bad}
    return {name for name in names if not name.startswith("STATUS_")}  # which explain the status


def responses():
    for verdict, response in PREPARED.items():
        yield verdict.name, response
    yield "NOT_FOUND open", prepared(Verdict.NOT_FOUND, close=False)
    found = SITE[b"/large"]
    for close in (False, True):
        yield f"200 close={close}", found.found(close)
        yield f"304 close={close}", found.not_modified(close)


@pytest.mark.parametrize("response", [pytest.param(r, id=name) for name, r in responses()])
def test_lint(response):
    assert lint(response) <= KNOWN


def test_the_linter_sees_faults():
    wrong = SITE[b"/large"].found()
    wrong = wrong._replace(header=wrong.header.replace(b"2560", b"2561"))
    assert lint(wrong) - KNOWN


def test_an_object_is_one_piece_whose_content_begins_at_a_sector():
    found = SITE[b"/large"]
    stored, begin = found.stored()
    assert stored[begin:] == found.found().sent()
    assert stored[HEADER_ROOM:] == CONTENT
    wide = found._replace(media_type=b"a" * HEADER_ROOM)
    with pytest.raises(ValueError, match="shorten the media type"):
        wide.stored()


def test_every_rejection_is_prepared_and_closes():
    assert set(PREPARED) == set(Verdict) - {Verdict.OK, Verdict.FIRMWARE}
    assert all(b"\r\nConnection: close\r\n" in r.header for r in PREPARED.values())


def test_a_time_out_answers_what_was_begun():
    silent, begun, body = (Connection(SITE) for _ in range(3))
    begun.receive(b"GET /")
    body.receive(b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc")
    assert silent.expire() == b""
    assert begun.expire() == body.expire() == PREPARED[Verdict.TIMEOUT].sent()
    assert begun.expire() == b""
    ended = Connection(SITE)
    ended.receive(b"GET / HTTP/1.1\r\n")
    assert ended.end() == b""


def _serve(peer):
    connection = Connection(SITE, LIMITS)
    with peer:
        while not connection.closed and (data := peer.recv(1000)):
            peer.sendall(connection.receive(data))
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(1000):  # or what is unread would reset the connection
            pass


@pytest.fixture(scope="module")
def port():
    """TCP port of the model behind a socket of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=_serve, args=(peer,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def over_tcp(port):
    """An ``exchange`` of :mod:`http_vectors` over TCP; not closed: it answers a marked request."""
    marked = b"HEAD /marked HTTP/1.1\r\nHost: h\r\n\r\n"
    mark = prepared(Verdict.NOT_FOUND, close=False).header

    def exchange(data, cuts):
        bounds = [0, *cuts, len(data)]
        with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for begin, end in zip(bounds, bounds[1:], strict=False):
                peer.sendall(data[begin:end])
            peer.sendall(marked)
            peer.shutdown(socket.SHUT_WR)
            got = b"".join(iter(lambda: peer.recv(65536), b""))
        closed = not got.endswith(mark)
        return (got if closed else got[: -len(mark)]), closed

    return exchange


def test_vectors_over_tcp(port):
    exchange = over_tcp(port)
    for vector in http_vectors.load():
        if vector.request.endswith("\r\n") and not vector.request.startswith("\r\n\r\n"):
            http_vectors.run(vector, exchange)
    http_vectors.run(http_vectors.load()[0], exchange, cuts=range(1, 20))


def test_http_client(port):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    for path, status in (("/large", 200), ("/none", 404), ("/%C3%BC.txt", 200), ("/large", 200)):
        client.request("GET", path)
        response = client.getresponse()
        content = response.read()
        assert response.status == status
    assert content == CONTENT
    client.request("GET", "/large", headers={"If-None-Match": response.headers["ETag"]})
    assert client.getresponse().status == 304


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(port):
    def curl(*words):
        command = ["curl", "-sS", "--max-time", "20", *words]
        return subprocess.run(command, capture_output=True, check=True).stdout

    url = f"http://127.0.0.1:{port}"
    assert curl(f"{url}/large") == curl("-0", f"{url}/large") == CONTENT
    assert curl("-r", "10-19", f"{url}/large") == CONTENT[10:20]
    code = ("-o", "/dev/null", "-w", "%{http_code} %{num_connects};")
    two = curl(*code, f"{url}/a.txt", "--next", *code, "-I", f"{url}/a%20b.txt")
    assert two == b"200 1;200 0;"
    assert curl(*code, "-d", "x", f"{url}/").startswith(b"405")
    assert curl(*code, "-X", "BREW", f"{url}/").startswith(b"501")
