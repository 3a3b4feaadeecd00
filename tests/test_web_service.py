"""The web service (``cores/web/service.py``) answers as the golden model does."""

import http_fuzz
import pytest
from service_model import Connection
from streams import make_rng, seeds
from web_bench import OBJECTS, WebBench


def get(path, *fields, method=b"GET", version=b"HTTP/1.1"):
    lines = [b" ".join((method, path, version)), b"Host: h", *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def test_one_request():
    bench = WebBench(1, stall=0.0)
    conn = Connection(get(b"/one"))
    bench.run([conn])
    bench.check(conn)
    assert conn.received.endswith(b"\r\n\r\n1")
    assert bench.counters["requests"] == bench.counters["found"] == 1


def page(seed):
    """Requests of many kinds in one connection, some of them not valid."""
    rng = make_rng(seed, "requests")
    paths = [
        *OBJECTS,
        b"/none",
        b"/onf",
        b"/big?x=1&y",
        b"/eight%2Beight",
        b"//one",
        b"/" + b"x" * 95,
    ]
    tags = [b'"%016x"' % found.tag for found in OBJECTS.values()] + [
        b"*",
        b'"0"',
        b'W/"1"',
        b'"a", "b"',
    ]
    fields = [b"If-None-Match: " + tag for tag in tags]
    fields += [b"Accept: */*", b"X: " + b"y" * rng.choice([1, 7, 64, 300])]
    rare = [b"Connection: close", b"Range: bytes=0-0", b"Content-Length: 1", b"Bad : 1", b"Host: i"]
    out = b""
    for _ in range(rng.randint(1, 6)):
        more = rng.sample(fields, rng.randint(0, 2)) + rng.sample(rare, rng.random() < 0.08)
        method = rng.choice([b"GET", b"GET", b"GET", b"HEAD"])
        version = b"HTTP/1.0" if rng.random() < 0.05 else b"HTTP/1.1"
        out += b"\r\n" * (rng.random() < 0.2)
        out += get(rng.choice(paths), *more, method=method, version=version)
    return out


@pytest.mark.parametrize(("width", "lanes", "rest"), [(64, 1, False), (64, 3, True), (32, 2, True)])
@seeds(4)
def test_random_requests(width, lanes, rest, seed):
    """Cuts, pipelines, slow memories, peers that vanish or stop in the middle of a head."""
    bench = WebBench(seed, width=width, lanes=lanes, rest=rest)
    rng, conns = bench.rng, []
    for k in range(16):
        payload = page(f"{seed}/{k}")
        if rng.random() < 0.3:
            payload = payload[: rng.randrange(len(payload) + 1)]
        conn = Connection(payload, chunk=rng.choice([1, 30, 1500]))
        if rng.random() < 0.25:
            limit = rng.randint(0, len(payload))
            conn.vanish = lambda c, limit=limit: c.delivered >= limit and rng.random() < 0.02
        conns.append(conn)
    bench.run(conns)
    for conn in conns:
        bench.check(conn)
    kinds = ("found", "not_modified", "not_found", "rejected", "unusual")
    assert bench.counters["requests"] == sum(bench.counters[kind] for kind in kinds)
    assert all(bench.counters[kind] for kind in kinds[:3])


@seeds(3)
def test_heads_of_the_vectors(seed):
    """Those of ``tests/http`` and mutations of them, each in a connection of its own."""
    bench = WebBench(seed, lanes=3, sessions=8, stall=0.1, latency=(2, 12))
    rng = make_rng(seed, "heads")
    corpus = http_fuzz.seeds()
    heads = corpus if seed == 0 else [http_fuzz.mutate(rng, corpus) for _ in range(400)]
    conns = [Connection(head, chunk=rng.choice([1, 40, 1500])) for head in heads]
    bench.run(conns, limit=1_000_000)
    for conn in conns:
        bench.check(conn)
