"""The web service (``cores/web/service.py``) answers as the golden model does."""

import http_fuzz
import pytest
from service_model import Connection, EngineModel
from streams import make_rng, seeds
from trebuchet.models.http.request import Verdict
from trebuchet.models.http.response import prepared
from web_bench import OBJECTS, WebBench, expected


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


@seeds(2)
def test_objects_that_are_not_in_memory(seed):
    """They are the firmware's, of whom there is none: 503, but 404 for what does not exist."""
    bench = WebBench(seed, lanes=2, cold={b"/one", b"/big"})
    conns = [Connection(get(path)) for path in (b"/", b"/one", b"/none", b"/big", b"/empty")]
    conns += [Connection(page(f"{seed}/{k}")) for k in range(8)]
    bench.run(conns)
    for conn in conns:
        bench.check(conn)
    assert conns[1].received == prepared(Verdict.UNAVAILABLE).sent()
    assert conns[2].received == prepared(Verdict.NOT_FOUND, False).sent()
    assert bench.counters["unusual"] >= 2


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


LATE = prepared(Verdict.TIMEOUT).sent(False)


def until_told(conn):
    """For a client that sends FIN only when the board has."""
    return conn.got_fin


def sweeper(dut, rng, period, conns):
    """Sweeps, about ``period`` cycles apart, until all connections are over."""

    async def bench(ctx):
        while not all(conn.released for conn in conns):
            await ctx.tick().repeat(rng.randint(period // 2, period))
            ctx.set(dut.sweep, 1)
            await ctx.tick()
            ctx.set(dut.sweep, 0)

    return bench


@pytest.mark.parametrize("rest", [False, True])
def test_late_at_the_second_sweep(rest):
    """Not at the first, whatever else the session did; once, and nothing behind it is parsed."""
    bench = WebBench(2, rest=rest, sessions=3)
    half = b"GET /one HTTP/1.1\r\nHo"
    late = Connection(half, fin=until_told)
    served = Connection(get(b"/one") + half, fin=until_told)
    idle = Connection(get(b"/one"), fin=lambda conn: late.got_fin and served.got_fin)
    seen = []

    async def sweeps(ctx):
        while served.delivered < len(served.payload) or late.delivered < len(half):
            await ctx.tick()
        for _ in range(2):
            await ctx.tick().repeat(3000)
            seen.append((late.received, served.received, idle.got_fin))
            ctx.set(bench.dut.sweep, 1)
            await ctx.tick()
            ctx.set(bench.dut.sweep, 0)

    bench.run([late, served, idle], sweeps)
    one, _ = expected(get(b"/one"))
    assert seen == [(b"", one, False)] * 2
    assert late.received == LATE
    assert served.received == one + LATE
    assert idle.received == one
    assert bench.counters["timeouts"] == 2
    assert bench.counters["requests"] == 2


def is_permitted(conn):
    """All answers; or those to the heads before one that was late, whose rest is not looked at."""
    if conn.received == expected(conn.payload)[0]:
        return True
    before = conn.received.removesuffix(LATE)
    cuts = (conn.payload[:k] for k in range(conn.delivered + 1))
    return conn.received.endswith(LATE) and any(expected(cut) == (before, False) for cut in cuts)


@pytest.mark.parametrize("rest", [False, True])
@seeds(3)
def test_sweeps_while_heads_come_in_pieces(rest, seed):
    """A head is answered or late, never both; FIN within a head draws no answer."""
    bench = WebBench(seed, lanes=2, rest=rest, sessions=3)
    rng, conns = bench.rng, []
    for k in range(6):
        payload = b"".join(get(rng.choice(list(OBJECTS))) for _ in range(rng.randint(1, 2)))
        if k % 2:  # it ends within a head
            payload += get(b"/one")[: rng.randint(1, 20)]
        fin = {"fin": until_told} if k % 4 == 1 else {}
        conns.append(Connection(payload, chunk=rng.choice([2, 7, 40]), **fin))
    bench.run(conns, sweeper(bench.dut, make_rng(seed, "sweep"), 700, conns), limit=1_000_000)
    for conn in conns:
        assert conn.ok
        assert conn.got_fin
        assert is_permitted(conn), (conn.payload, conn.received)
    assert bench.counters["timeouts"] == sum(conn.received.endswith(LATE) for conn in conns) > 0


@pytest.mark.parametrize("rest", [False, True])
@pytest.mark.parametrize("size", [1, 9000])
@seeds(2)
def test_what_comes_behind_a_close_is_consumed(rest, size, seed):
    """Requests, too, and more than a ring of them; sweeps find nothing late."""
    bench = WebBench(seed, rest=rest, stall=0.5)
    behind = (get(b"/big") * 200)[:size]
    conns = [
        Connection(get(b"/one", b"Connection: close") + behind, chunk=1500),
        Connection(b"GET / HTTP/1.1\r\n\r\n" + behind, chunk=700),
        Connection(get(b"/big", b"Connection: close") + behind, chunk=40),
    ]
    bench.run(conns, sweeper(bench.dut, make_rng(seed, "sweep"), 2000, conns), limit=1_000_000)
    for conn in conns:
        bench.check(conn)
    assert bench.counters["requests"] == 3
    assert bench.counters["timeouts"] == 0


class Refusing(EngineModel):
    """Takes what the service sends once in a hundred cycles."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.refuse = 0.99


@seeds(3)
def test_memory_never_waits_for_the_engine(seed):
    """The engine waits for the same memory: data that was asked for is taken whatever it does."""
    bench = WebBench(seed, sessions=12, lanes=4, latency=(60, 100), stall=0.1)
    bench.model, longest = Refusing, 0

    async def watch(ctx):
        nonlocal longest
        waits, rdata = 0, bench.dut.mem.rdata
        async for _, _, valid, ready in ctx.tick().sample(rdata.valid, rdata.ready):
            waits = waits + 1 if valid and not ready else 0
            longest = max(longest, waits)

    watch.background = True
    conns = [Connection(get(b"/one", b"X: " + b"y" * 60) * 2, chunk=9) for _ in range(24)]
    bench.run(conns, watch, limit=2_000_000)
    for conn in conns:
        bench.check(conn)
    assert longest < 8, "cycles"
