"""The golden model of the web service's parser: ends of heads, verdicts and what they carry."""

import random
import zlib

import pytest
from trebuchet.models.http import LIMITS, START, End, Limits, Request, Verdict, parse_head, scan

HEAD = b"GET /a/b?c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


def request(*fields, line=b"GET / HTTP/1.1", host=b"Host: h"):
    return b"\r\n".join([line, *([host] if host else []), *fields, b"", b""])


def pieces(data, cuts):
    bounds = [0, *cuts, len(data)]
    return [data[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]


def ends(data, cuts=(), limit=LIMITS.head):
    """(position after the head, its length, end) of each head in ``data``."""
    found, state, at = [], START, 0
    for piece in pieces(data, cuts):
        while piece:
            step = scan(state, piece, limit)
            at, piece = at + step.used, piece[step.used :]
            state = step.scan
            if step.end is not None:
                found.append((at, state.length, step.end))
                state = START
    return found


def test_a_head_ends_at_the_first_empty_line():
    n = len(HEAD)
    assert ends(HEAD + HEAD) == [(n, n, End.COMPLETE), (2 * n, n, End.COMPLETE)]


def test_one_empty_line_before_a_head_is_skipped_and_a_second_is_a_head():
    n = len(HEAD)
    assert ends(b"\r\n" + HEAD) == [(n + 2, n, End.COMPLETE)]
    assert ends(b"\r\n\r\n" + HEAD) == [(4, 2, End.COMPLETE), (n + 4, n, End.COMPLETE)]
    assert parse_head(b"\r\n").verdict is Verdict.BAD_REQUEST


@pytest.mark.parametrize("start", [b"\n", b"\rG", b"GET / HTTP/1.1\n", b"a\r\r", b"a\r\n\r\r"])
def test_a_bare_cr_or_lf_ends_a_head(start):
    assert ends(start + b"rest")[0] == (len(start), len(start), End.BROKEN)
    assert parse_head(start).verdict is Verdict.BAD_REQUEST


def test_a_head_of_the_limit_is_whole_and_a_longer_one_is_cut():
    n = len(HEAD)
    assert ends(HEAD, limit=n) == [(n, n, End.COMPLETE)]
    assert ends(HEAD, limit=n - 1)[0] == (n - 1, n - 1, End.LONG)
    assert ends(b"\r\n" + HEAD, limit=n) == [(n + 2, n, End.COMPLETE)]


def test_fragments_do_not_matter():
    rng = random.Random(1)
    for _ in range(300):
        data = bytes(rng.choices(b"\r\n\r\nab", k=40))
        cuts = sorted(rng.sample(range(41), rng.randrange(10)))
        limit = rng.choice([4, 9, 100])
        assert ends(data, cuts, limit) == ends(data, range(41), limit) == ends(data, (), limit)


def test_a_usual_request():
    assert parse_head(HEAD) == Request(
        Verdict.OK, close=True, path_offset=4, path_length=4, path_crc=zlib.crc32(b"/a/b")
    )
    tag = parse_head(request(b'If-None-Match: "0123456789abcdef"', line=b"HEAD / HTTP/1.0"))
    assert tag[:7] == (Verdict.OK, True, True, True, 5, 1, zlib.crc32(b"/"))
    assert tag[7:] == (0x0123456789ABCDEF, False)
    assert parse_head(request(b"if-none-match:*")).any_tag


ORDER = [
    (Verdict.BAD_REQUEST, request(b"a b", line=b"BREW /% HTTP/2.0")),
    (Verdict.VERSION_NOT_SUPPORTED, request(host=b"", line=b"BREW /" + b"a" * 8000 + b" HTTP/2.0")),
    (Verdict.BAD_REQUEST, request(host=b"", line=b"BREW /" + b"a" * 8000 + b" HTTP/1.1")),
    (Verdict.URI_TOO_LONG, request(line=b"BREW /" + b"a" * 8000 + b" HTTP/1.1")),
    (Verdict.NOT_IMPLEMENTED, request(b"Expect: x", line=b"BREW / HTTP/1.1")),
    (Verdict.NOT_IMPLEMENTED, request(b"Transfer-Encoding: gzip, chunked", b"Expect: x")),
    (Verdict.OPTIONS, request(b"Expect: x", b"Content-Length: 3", line=b"OPTIONS /a HTTP/1.1")),
    (Verdict.METHOD_NOT_ALLOWED, request(b"Expect: 100-continue", line=b"PUT /a HTTP/1.1")),
    (Verdict.EXPECTATION_FAILED, request(b"Expect: 100-continue", b"Content-Length: 1")),
    (Verdict.OK, request(b"Expect: 100-continue", b"Content-Length: 000")),
    (Verdict.FIRMWARE, request(b"Content-Length: 01")),
    (Verdict.FIRMWARE, request(b"Content-Length: 1", line=b"POST / HTTP/1.1")),
    (Verdict.METHOD_NOT_ALLOWED, request(b"Content-Length: 0", line=b"POST / HTTP/1.1")),
]


@pytest.mark.parametrize(("verdict", "head"), ORDER, ids=range(len(ORDER)))
def test_the_order_of_verdicts(verdict, head):
    assert parse_head(head).verdict is verdict


def test_a_path_beyond_its_limit_is_the_firmwares():
    longest = b"/" + b"a" * (LIMITS.path - 1)
    assert parse_head(request(line=b"GET %s?q HTTP/1.1" % longest)).path_length == LIMITS.path
    assert parse_head(request(line=b"GET %sa HTTP/1.1" % longest)).verdict is Verdict.FIRMWARE


CUT = [
    (b"GET", Verdict.FIELDS_TOO_LARGE),
    (b"GE(", Verdict.BAD_REQUEST),
    (b"GET /aaaa%", Verdict.URI_TOO_LONG),
    (b"GET %", Verdict.BAD_REQUEST),
    (b"GET / HTTP/1.", Verdict.FIELDS_TOO_LARGE),
    (b"GET / HTTP/1.1\r", Verdict.FIELDS_TOO_LARGE),
    (b"GET / HTTQ", Verdict.BAD_REQUEST),
    (b"GET * HTTP/1.1\r\n", Verdict.BAD_REQUEST),
    (b"GET / HTTP/2.0\r\na: b\r\n\r", Verdict.FIELDS_TOO_LARGE),
    (b"GET / HTTP/1.1\r\nHost: /", Verdict.FIELDS_TOO_LARGE),
    (b"GET / HTTP/1.1\r\nHost: /\r\n", Verdict.BAD_REQUEST),
    (b"GET / HTTP/1.1\r\nHo st", Verdict.BAD_REQUEST),
    (b"GET /aaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\nHost", Verdict.URI_TOO_LONG),
]


@pytest.mark.parametrize(("head", "verdict"), CUT)
def test_a_head_that_the_limit_cuts(head, verdict):
    limits = Limits(head=len(head), target=20)
    assert ends(head, limit=limits.head)[-1][2] in (End.LONG, End.BROKEN)
    assert parse_head(head, limits).verdict is verdict


def test_only_accepted_heads_carry_anything_but_the_method():
    for _, head in ORDER:
        result = parse_head(head)
        if result.verdict is not Verdict.OK:
            assert result == Request(result.verdict, head=False)
    assert parse_head(request(host=b"", line=b"HEAD / HTTP/1.1")).head
