"""Differential fuzzing of the HTTP parser's golden model: ``make fuzz ARGS=http_model``.

Heads are mutations of the vectors' heads. Two independent strict parsers are the oracles: h11, and
llhttp through httptools. A head that the model accepts, by the fast path or for the firmware, must
be accepted by at least one of them, with the same method and target. The same seed and number give
the same heads.
"""

import random

import h11
import http_vectors
import httptools
from trebuchet.models.http import LIMITS, START, End, Verdict, parse_head, scan
from trebuchet.models.http.request import Content, parse_fields

WORDS = [
    b"\r\n", b"\r", b"\n", b" ", b"\t", b":", b"%", b"%2e", b"//", b"/.", b"?", b"#", b"*", b"\0",
    b"\x7f", b"\x80", b"\xff", b"GET ", b"HEAD ", b"POST ", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0",
    b"Host: h\r\n", b"Content-Length: 0\r\n", b"Content-Length: 5\r\n", b"chunked", b",", b"close",
    b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n",
    b"If-None-Match: *\r\n", b'"', b"Range: bytes=0-1\r\n", b"http://", b"@", b"[", b"]", b"\r\n ",
    b"-", b"+", b"0", b"9", b"_", b"\x0b", b"\xa0", b";",
]  # fmt: skip
ACCEPTED = (Verdict.OK, Verdict.FIRMWARE)


def seeds():
    """Heads to mutate: those of the vectors, without the very long ones."""
    tag = '"0123456789abcdef"'
    requests = [http_vectors.request_bytes(v, lambda path: tag) for v in http_vectors.load()]
    return [data for data in requests if len(data) < 400]


def mutate(rng, corpus):
    """A new head: insertions, removals, replacements and splices of a known one."""
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            data[at:at] = rng.choice(WORDS)
        elif kind == 1:
            del data[at : at + rng.choice((1, 1, 2, 5, 20))]
        elif kind == 2:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 3:
            data[at : at + rng.choice((1, 3))] = rng.choice(WORDS)
        elif kind == 4:
            other = rng.choice(corpus)
            begin = rng.randrange(len(other) + 1)
            data[at:at] = other[begin : begin + rng.randrange(40)]
        else:
            end = rng.randrange(len(data) + 1)
            data[at:at] = data[min(at, end) : max(at, end)][:40]
    return bytes(data)


class _Sink:
    def __init__(self):
        self.target = b""
        self.complete = False

    def on_url(self, url):
        self.target += url

    def on_headers_complete(self):
        self.complete = True


def llhttp(head):
    """(method, target) as llhttp parses them, or None if it rejects the head."""
    sink = _Sink()
    parser = httptools.HttpRequestParser(sink)
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        pass
    except httptools.HttpParserError:
        return None
    return (parser.get_method(), sink.target) if sink.complete else None


def h11_parse(head):
    """(method, target) as h11 parses them, or None if it rejects the head."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=LIMITS.head)
    connection.receive_data(head)
    try:
        event = connection.next_event()
    except h11.RemoteProtocolError:
        return None
    return (event.method, event.target) if isinstance(event, h11.Request) else None


def first_head(data):
    """The first head of a stream, or None if it has no end."""
    found = scan(START, data)
    if found.end is None:
        return None
    return data[: found.used][-found.scan.length :], found.end


def judge(data):
    """Hold the model against the oracles; returns (accepted, what is wrong or None)."""
    first = first_head(data)
    if first is None:
        return False, None
    head, end = first
    request = parse_head(head)
    if request.verdict not in ACCEPTED:
        return False, None
    if end is not End.COMPLETE:
        return True, "a head without an end is accepted"
    method, target, _ = head.split(b"\r\n")[0].split(b" ")
    views = [view for view in (llhttp(head), h11_parse(head)) if view is not None]
    if not views:
        return True, "both oracles reject a head that is accepted"
    if any(view != (method, target) for view in views):
        return True, f"oracles see {views}, the model {method, target}"
    if request.verdict is Verdict.OK:
        path = target.partition(b"?")[0]
        if head[request.path_offset :][: request.path_length] != path:
            return True, "the path is another one"
        content = parse_fields(head.split(b"\r\n")[1:-2]).content
        if content not in (Content.NONE, Content.ZERO):
            return True, "the fast path takes content"
    return True, None


def fuzz(inputs, seed, parse=judge):
    """Judge ``inputs`` heads; returns (number accepted, first fault or None)."""
    rng = random.Random(seed)
    corpus = seeds()
    accepted = 0
    for number in range(inputs):
        data = corpus[number] if number < len(corpus) else mutate(rng, corpus)
        taken, fault = parse(data)
        accepted += taken
        if fault is not None:
            return accepted, f"{fault}: {data!r}"
    return accepted, None
