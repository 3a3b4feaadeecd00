"""Request heads for tests of the head parser, what the golden model says of them, and a fuzzer.

``make fuzz ARGS=head_parser`` compares the parser in Verilator with the model on mutated and
composed heads (:func:`fuzz`). The same seed and number give the same heads.
"""

import random

import http_fuzz
import http_vectors
from trebuchet.cores.web.finder import End as Follows
from trebuchet.cores.web.parser import HeadParser
from trebuchet.models.http import LIMITS, START, End, Limits, Verdict, parse_head, scan
from trebuchet.sim.build import build
from trebuchet.sim.heads import head_source, parse_heads

#: Limits that short heads reach.
SMALL = Limits(head=300, target=60, path=24)
#: Cycles from a head's last byte to its verdict, at most.
BOUND = 3
#: Heads in one run of the simulator.
CHUNK = 50_000


def heads_of(data, limits=LIMITS):
    """The first head in ``data`` with the empty line before it, and how it ends."""
    found = scan(START, data, limits.head)
    if found.end is None:
        return data, Follows.CUT
    ends = {End.COMPLETE: Follows.HEAD, End.BROKEN: Follows.HEAD, End.LONG: Follows.LONG}
    return data[: found.used], ends[found.end]


def expected(data, end, limits):
    """What the parser says of a head, by the model."""
    empty = 2 * (data[:2] == b"\r\n")
    request = parse_head(data[empty:], limits)
    answer = {"verdict": request.verdict, "head": request.head, "length": len(data)}
    if request.verdict is Verdict.OK:
        answer |= {
            "close": request.close,
            "http10": request.http10,
            "any_tag": request.any_tag,
            "tagged": request.tag is not None,
            "path_offset": request.path_offset + empty,
            "path_length": request.path_length,
            "path_crc": request.path_crc,
        }
        if request.tag is not None:
            answer["tag"] = request.tag
        at = request.path_offset + empty
        answer["path"] = data[at : at + request.path_length]
    return answer


FIELDS = [
    b"Host: h",
    b"Host: [::1]:80",
    b"HOST:\th%20 ",
    b"Host: a b",
    b"Host:",
    b"Host: [",
    b"Host: a:b",
    b"Host: [a]b",
    b"Host: %4",
    b"Host: h:8 0",
    b"Host: a,b",
    b"Connection: close",
    b"Connection: keep-alive , cLose\t",
    b"Connection: close d",
    b"Connection: ,close,",
    b"Connection: closed",
    b"Connection: chunked",
    b"Connection:close,x",
    b"Content-Length: 0",
    b"Content-Length: 5",
    b"Content-Length: 000000000000000000",
    b"Content-Length: 1000000000000000000",
    b"Content-Length: 1, 1",
    b"Content-Length:",
    b"Content-Length: 1 1",
    b"Content-Length: -1",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"transfer-encoding: Chunked ",
    b"Transfer-Encoding: chunked, chunked",
    b"Transfer-Encoding: ,chunked",
    b"Transfer-Encoding: close",
    b"Transfer-Encoding: chunked,",
    b"Transfer-Encoding: x chunked",
    b"Transfer-Encoding:",
    b"Expect: 100-continue",
    b"Expect: 100-Continue ",
    b"Expect: 100-continue, x",
    b"Expect:",
    b"If-None-Match: *",
    b'If-None-Match: "0123456789abcdef"',
    b'If-None-Match: "0123456789abcdeF"',
    b'If-None-Match: "0123456789abcde"',
    b'If-None-Match: "fedcba98765432101"',
    b"If-None-Match: * *",
    b'If-None-Match: W/"0123456789abcdef"',
    b'If-None-Match: "fedcba9876543210" ',
    b"If-None-Match:",
    b"If-Match: *",
    b"If-Matches: x",
    b"Range: bytes=0-1",
    b"If-Range: x",
    b"If-None: x",
    b"R: x",
    b"Connectio: close",
    b"Content-Lengt: 1",
    b"Content: x",
    b"Con: x",
    b"Contention: close",
    b"a:b",
    b"a : b",
    b" a: b",
    b"a",
    b":",
    b"a:\x01",
    b"a:\x7f",
    b"a:\xff\x80",
    b"A!#$%&'*+-.^_`|~9: x",
    b"If: x",
]
LINES = [
    b"GET / HTTP/1.1",
    b"GET /a/b/c HTTP/1.1",
    b"HEAD /x?y HTTP/1.1",
    b"GET /?%41/? HTTP/1.0",
    b"GET /a%20b HTTP/1.1",
    b"GET //a HTTP/1.1",
    b"GET /a/. HTTP/1.1",
    b"GET /a.b HTTP/1.1",
    b"GET /a%2 HTTP/1.1",
    b"GET http://h/ HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"GET * HTTP/1.1",
    b"OPTIONS ** HTTP/1.1",
    b"CONNECT h:80 HTTP/1.1",
    b"CONNECT 1.2:80 HTTP/1.1",
    b"GET 1.2 HTTP/1.1",
    b"CONNECT [::1]:1 HTTP/1.1",
    b"GET [a] HTTP/1.1",
    b"POST / HTTP/1.1",
    b"PUT /a HTTP/1.1",
    b"PATCH / HTTP/1.1",
    b"DELETE / HTTP/1.1",
    b"TRACE / HTTP/1.1",
    b"PATC / HTTP/1.1",
    b"get / HTTP/1.1",
    b"GETS / HTTP/1.1",
    b"P / HTTP/1.1",
    b"HEADS / HTTP/1.1",
    b"GET / HTTP/2.0",
    b"GET / HTTP/1.2",
    b"GET / HTTP/0.9",
    b"GET / http/1.1",
    b"GET / HTTP/1.1 ",
    b"GET  / HTTP/1.1",
    b" GET / HTTP/1.1",
    b"GET / HTTP/11",
    b"GET /#a HTTP/1.1",
    b"GET / HTTP/1.",
    b"GET /",
    b"HEAD / HTTP/3.1",
    b"GET /" + b"p" * 22 + b" HTTP/1.1",
    b"GET /" + b"p" * 23 + b" HTTP/1.1",
    b"GET /" + b"p" * 24 + b" HTTP/1.1",
    b"GET /" + b"q" * 59 + b" HTTP/1.1",
    b"GET /" + b"q" * 60 + b" HTTP/1.1",
    b"GET /?" + b"q" * 58 + b" HTTP/1.1",
    b"GET /?" + b"q" * 59 + b" HTTP/1.1",
    b"",
]


def composed(rng):
    """A head of request lines and fields that are chosen at random, most of them with a Host."""
    lines = [rng.choice(LINES if rng.random() < 0.6 else LINES[:4])]
    lines += [b"Host: h"] * (rng.random() < 0.7)
    lines += rng.choices(FIELDS, k=rng.choice((0, 1, 1, 2, 3)))
    data = b"\r\n" * (rng.random() < 0.1) + b"\r\n".join(lines) + b"\r\n\r\n"
    return data if rng.random() < 0.9 else data[: rng.randrange(len(data))] or b"G"


def vectors():
    """Bytes of all vectors, with the heads of their pipelines, each from its first byte on."""
    tag = '"0123456789abcdef"'
    streams = [http_vectors.request_bytes(v, lambda path: tag) for v in http_vectors.load()]
    out = []
    for data in streams:
        while data:
            out.append(data)
            data = data[scan(START, data).used :]
    return out


def differences(reports, heads, limits, timed=True):
    """Lines that say where reports of ``heads``, (bytes, end), differ from the model.

    ``timed``: no pause was made, so that a verdict has its bound.
    """
    for report, (data, end) in zip(reports, heads, strict=True):
        if end is Follows.CUT:
            continue
        if timed and report.cycles > len(data) + BOUND:
            yield f"{report.cycles} cycles for {data!r}"
        for name, value in expected(data, end, limits).items():
            if getattr(report, name) != value:
                yield f"{name} is {getattr(report, name)!r}, the model's {value!r}: {data!r}"


def compiled(limits=SMALL):
    """The parser in Verilator, with these limits."""
    return build(head_source(HeadParser(limits.head, limits.target, limits.path)))


def fuzz(inputs, seed, limits=SMALL, binary=None):
    """Compare the parser with the model on ``inputs`` heads, half of them mutated, half composed.

    Returns (number accepted, first difference or None).
    """
    binary = binary or compiled(limits)
    rng = random.Random(seed)
    corpus = [data for data in http_fuzz.seeds() if data]
    accepted = 0
    for first in range(0, inputs, CHUNK):
        heads = []
        while len(heads) < min(CHUNK, inputs - first):
            data = http_fuzz.mutate(rng, corpus) if rng.random() < 0.5 else composed(rng)
            if data:
                heads.append(heads_of(data, limits))
        reports = parse_heads(binary, heads, seed=seed + first)
        fault = next(differences(reports, heads, limits), None)
        if fault is not None:
            return accepted, fault
        accepted += sum(r is not None and r.verdict in http_fuzz.ACCEPTED for r in reports)
    return accepted, None
