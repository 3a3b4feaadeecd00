"""Vectors of HTTP as data, and their runner, which is independent of the server.

``tests/http/*.toml`` has the vectors, ``site.toml`` there what the server must serve:

========= =========================================================================================
id        its name, unique
section   RFC and section that it is about
level     MUST, SHOULD or MAY: how binding the section is
request   bytes that are sent, as Latin-1; ``«a*100»`` is 100 times "a", ``«etag /a.txt»`` the
          entity tag that the server gives to that file
expect    permitted outcomes, the preferred one first: statuses in order, and then ``open`` or
          ``close``
heads     optional: numbers of the responses that are to HEAD, from 0
content   optional: content of each response; ``«any»`` is not compared
has       optional: fields that every response must have
lacks     optional: fields that no response may have
========= =========================================================================================

A server is a function ``exchange(data, cuts) -> (bytes, closed)``: on a new connection it sends
``data``, cut into pieces at the positions ``cuts``, and returns all that the server sends, and
whether it closed the connection while the client's side was open.
"""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent / "http"
ANY = "«any»"


class Vector(NamedTuple):
    """A vector; its fields are described above."""

    id: str
    section: str
    level: str
    request: str
    expect: list[str]
    heads: list[int] = []
    content: list[str] | None = None
    has: list[str] = []
    lacks: list[str] = []


class Response(NamedTuple):
    """A response as it was parsed: names of fields in lower case."""

    status: int
    fields: dict[str, str]
    content: bytes


def load():
    """All vectors, in the order of the files."""
    paths = sorted(path for path in FOLDER.glob("*.toml") if path.name != "site.toml")
    return [Vector(**v) for path in paths for v in tomllib.loads(path.read_text())["vector"]]


def site():
    """(name, content) of each object that is served."""
    objects = tomllib.loads((FOLDER / "site.toml").read_text())["object"]
    return [(entry["name"].encode(), entry["content"].encode()) for entry in objects]


_FIELD = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ([\t\x20-\x7e]*)")


def parse(data, heads=()):
    """Parse a stream of responses, strictly; raises AssertionError for what is not valid."""
    out = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        assert end, f"a response without an end of its header: {head!r}"
        first, *lines = head.decode("ascii").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.1 ([1-5][0-9]{2}) [\x20-\x7e]*", first)
        assert match, f"not a status line: {first!r}"
        status = int(match[1])
        pairs = [_FIELD.fullmatch(line) for line in lines]
        assert all(pairs), f"not a field line in {lines}"
        fields = {pair[1].lower(): pair[2] for pair in pairs}
        assert len(fields) == len(pairs), f"a field is there twice: {lines}"
        bodiless = status in (204, 304) or status < 200
        assert not (bodiless and "content-length" in fields), f"{status} with Content-Length"
        assert bodiless or "content-length" in fields, f"{status} without Content-Length"
        empty = bodiless or len(out) in heads
        length = 0 if empty else int(fields["content-length"])
        assert len(data) >= length, f"{status}: {len(data)} of {length} bytes of content"
        out.append(Response(status, fields, data[:length]))
        data = data[length:]
    return out


def request_bytes(vector, etag):
    """The bytes of a vector; ``etag(path)`` gives the tag of a file, as text."""
    text = re.sub(r"«etag ([^»]*)»", lambda m: etag(m[1]), vector.request)
    text = re.sub(r"«([^»]*?)\*(\d+)»", lambda m: m[1] * int(m[2]), text, flags=re.DOTALL)
    return text.encode("latin-1")


def outcome(responses, closed):
    """Statuses and end of a connection, as vectors state them."""
    return " ".join([*(str(r.status) for r in responses), "close" if closed else "open"])


def check(vector, data, closed):
    """Hold what a server sent against a vector; returns the outcome."""
    responses = parse(data, vector.heads)
    found = outcome(responses, closed)
    assert found in vector.expect, f"{vector.id}: {found}, permitted are {vector.expect}"
    for response in responses:
        assert all(name.lower() in response.fields for name in vector.has), (vector.id, response)
        assert all(name.lower() not in response.fields for name in vector.lacks), vector.id
    if closed and responses:
        assert responses[-1].fields.get("connection") == "close", f"{vector.id}: close is not told"
    if vector.content is not None and len(responses) == len(vector.content):
        for response, content in zip(responses, vector.content, strict=True):
            if response.status < 300 and content != ANY:
                assert response.content == content.encode(), vector.id
    return found


def tags(exchange):
    """A function for :func:`request_bytes` that asks the server."""

    def etag(path):
        data, _ = exchange(f"HEAD {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode(), ())
        return parse(data, heads=[0])[0].fields["etag"]

    return etag


#: A request that opens or ends a pipeline around a vector.
PLAIN = b"GET /dir/b.txt HTTP/1.1\r\nHost: h\r\n\r\n"


def run(vector, exchange, cuts=()):
    """Run a vector alone."""
    return check(vector, *exchange(request_bytes(vector, tags(exchange)), cuts))


def run_pipelined(vector, exchange):
    """Run a vector between two usual requests: answers in order, none after a close."""
    before, closed = exchange(PLAIN, ())
    assert not closed
    data, closed = exchange(PLAIN + request_bytes(vector, tags(exchange)) + PLAIN, ())
    assert data.startswith(before)
    data = data[len(before) :]
    if not closed:
        assert data.endswith(before), vector.id
        data = data[: -len(before)]
    return check(vector, data, closed)
