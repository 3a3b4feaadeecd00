"""The golden server model against the vectors of tests/http: whole, fragmented, pipelined."""

import random
import re
import zlib

import http_vectors
import pytest
from http_vectors import PLAIN, Vector, check, outcome, parse, request_bytes, run, run_pipelined
from trebuchet.models.http import Object, respond_to

VECTORS = http_vectors.load()
SITE = {
    name: Object(content, b"text/plain", zlib.crc32(name) << 32 | 0xAA)
    for name, content in http_vectors.site()
}
#: Vectors whose last request waits for more: nothing is sent until it is complete.
LONG = 600


def exchange(data, cuts):
    return respond_to(data, SITE, cuts)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v.id)
def test_vector(vector):
    """Whole, byte by byte and cut at every byte; the bytes that are sent are the same."""
    data = request_bytes(vector, http_vectors.tags(exchange))
    whole = exchange(data, ())
    check(vector, *whole)
    assert exchange(data, range(1, len(data))) == whole
    cuts = range(1, len(data))
    if len(data) > LONG:
        cuts = random.Random(vector.id).sample(cuts, 20)
    for cut in cuts:
        assert exchange(data, [cut]) == whole


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v.id)
def test_vector_in_a_pipeline(vector):
    if vector.request.startswith("\r\n\r\n"):
        pytest.skip(reason="its second empty line is the first before the request after it")
    run_pipelined(vector, exchange)


def test_vectors_are_complete():
    assert len(VECTORS) >= 200
    assert len({v.id for v in VECTORS}) == len(VECTORS)
    assert {v.level for v in VECTORS} == {"MUST", "SHOULD", "MAY"}
    for vector in VECTORS:
        assert re.fullmatch(r"\d{4} \d+(\.\d+)*", vector.section), vector.id
        assert all(re.fullmatch(r"(\d{3} )+(open|close)", text) for text in vector.expect)


def test_the_preferred_outcome_is_the_models():
    """The first of the permitted outcomes is what docs/web.md says of this server."""
    other = {}
    for vector in VECTORS:
        found = run(vector, exchange)
        if found != vector.expect[0]:
            other[vector.id] = found
    assert other == {}


class Lenient:
    """A server with one fault, which some vector must see."""

    def __init__(self, fault):
        self.fault = fault

    def __call__(self, data, cuts):
        return exchange(self.fault(data), cuts)


FAULTS = {
    "ignores a fold": lambda data: data.replace(b"\r\n ", b" "),
    "takes space before a colon": lambda data: re.sub(rb"[ \t]+:", b":", data),
    "takes the first of two lengths": lambda d: d.replace(b"Content-Length: 2\r\n", b""),
    "does not look at the coding": lambda data: re.sub(rb"Transfer-Encoding:[^\r]*\r\n", b"", data),
    "decodes twice": lambda data: data.replace(b"%25", b"%"),
    "does not close": lambda data: data.replace(b"close", b"other"),
    "ignores tags": lambda data: data.replace(b"If-None-Match", b"X"),
    "takes a second host": lambda data: data.replace(b"Host: evil\r\n", b""),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_vectors_see_faults(fault):
    found = 0
    for vector in VECTORS:
        try:
            run(vector, Lenient(fault))
        except AssertionError:
            found += 1
    assert found > 0


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA : b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: b\r\na: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
    ],
)
def test_responses_are_parsed_strictly(data):
    with pytest.raises(AssertionError):
        parse(data)


def test_a_close_must_be_announced():
    vector = Vector("x", "9112 9.6", "SHOULD", "", ["200 close"])
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
    assert check(vector, data + b"Connection: close\r\n\r\n", True) == "200 close"
    with pytest.raises(AssertionError, match="close is not told"):
        check(vector, data + b"\r\n", True)


def test_requests_that_are_not_complete_get_no_answer():
    for end in range(len(PLAIN)):
        assert exchange(PLAIN[:end], ()) == (b"", False)
    assert outcome(parse(exchange(PLAIN, ())[0]), False) == "200 open"
