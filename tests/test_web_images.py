"""The web service changes its image between requests (``cores/web/images.py``)."""

import pytest
from service_model import Connection
from streams import run, seeds
from trebuchet.cores.web.answer import PIECE
from trebuchet.cores.web.images import Images
from trebuchet.models.http.image import Image
from trebuchet.models.http.response import Object
from trebuchet.models.http.server import Connection as Server
from web_bench import BASE, WebBench

HALF = 0x10000


def version(number, size=900):
    """The files of an image: each has its number in it."""
    page = Object(b"%04d" % number * (size // 4), b"text/plain", number)
    return {
        b"/": page,
        b"/%d" % number: page,
        b"/small": Object(b"%d" % number, b"x/y", ~number % 99),
    }


class Loader:
    """Loads one image after the other into the half that is not served, as firmware does."""

    def __init__(self, bench, versions=8):
        self.bench, self.versions = bench, versions
        self.objects = [version(0)]
        self.half = 0

    async def __call__(self, ctx):
        bench, csr = self.bench, self.bench.dut.csr
        for number in range(1, self.versions):
            await ctx.tick().repeat(bench.rng.randint(1, 1500))
            self.half ^= 1
            base = BASE + self.half * HALF
            image = Image(version(number), base)
            assert len(image.bytes) <= HALF
            bench.memory[base : base + HALF] = image.bytes.ljust(HALF, b"\xaa")
            # They may change at any time before the switch.
            for name, value in (
                ("base", base),
                ("index", image.index),
                ("mask", image.buckets - 1),
            ):
                ctx.set(getattr(csr, name), value)
                await ctx.tick().repeat(bench.rng.randint(1, 5))
            self.objects.append(version(number))
            ctx.set(csr.switch, 1)
            await ctx.tick()
            ctx.set(csr.switch, 0)
            await ctx.tick()
            while ctx.get(csr.switching) or ctx.get(csr.held):
                await ctx.tick()
            other = BASE + (self.half ^ 1) * HALF
            bench.memory[other : other + HALF] = bench.rng.randbytes(HALF)


def matches(received, requests, versions):
    """Whether the responses are those of images, none of which is older than the one before."""
    possible = {(0, 0)}  # bytes that were received, image
    for request in requests:
        following = set()
        for at, oldest in possible:
            for number in range(oldest, len(versions)):
                out = Server(versions[number]).receive(request)
                if received.startswith(out, at):
                    following.add((at + len(out), number))
        possible = following
    return any(at == len(received) for at, _ in possible)


def get(path, *fields):
    return b"\r\n".join([b"GET " + path + b" HTTP/1.1", b"Host: h", *fields]) + b"\r\n\r\n"


@pytest.mark.parametrize(("lanes", "rest"), [(1, False), (3, True)])
@seeds(2)
def test_each_response_is_of_one_image(lanes, rest, seed):
    """The memory of the image before is overwritten as soon as nobody needs it."""
    bench = WebBench(seed, lanes=lanes, rest=rest, objects=version(0))
    bench.memory = bench.memory.ljust(BASE + 2 * HALF, b"\0")
    bench.responder.memory = bench.memory
    loader, rng = Loader(bench), bench.rng
    conns = []
    for _ in range(12):
        paths = (b"/", b"/small", b"/none", b"/%d" % rng.randrange(8))
        conn = Connection(b"")
        conn.requests = [get(rng.choice(paths)) for _ in range(rng.randint(1, 12))]
        conn.payload = b"".join(conn.requests)
        conns.append(conn)
    bench.run(conns, loader)
    for conn in conns:
        assert matches(conn.received, conn.requests, loader.objects), conn.received
    assert len(loader.objects) == loader.versions


@seeds(2)
def test_pieces_come_from_the_first_ones_image(seed):
    """An object in pieces, and a switch between them; the peer may vanish."""
    objects = version(0, PIECE + 4000)
    bench = WebBench(seed, objects=objects, stall=0, latency=(2, 4))
    end = len(bench.memory) + HALF & -HALF
    bench.memory = bench.memory.ljust(end + HALF, b"\0")
    bench.responder.memory = bench.memory
    image = Image(version(1), end)
    bench.memory[end : end + len(image.bytes)] = image.bytes
    csr = bench.dut.csr

    async def switch(ctx):
        while not ctx.get(csr.requests):
            await ctx.tick()
        for name, value in (("base", end), ("index", image.index), ("mask", image.buckets - 1)):
            ctx.set(getattr(csr, name), value)
        ctx.set(csr.switch, 1)
        await ctx.tick()
        ctx.set(csr.switch, 0)
        await ctx.tick()
        while ctx.get(csr.switching):
            await ctx.tick()
        assert ctx.get(csr.held)
        while ctx.get(csr.held):
            await ctx.tick()
        bench.memory[BASE : BASE + len(bench.image.bytes)] = bytes(len(bench.image.bytes))

    first = Connection(get(b"/"))
    gone = Connection(get(b"/"), vanish=lambda conn: bool(conn.received))
    bench.run([first, gone], switch)
    assert first.received == Server(objects).receive(get(b"/"))


def test_without_an_image_connections_are_closed():
    bench = WebBench(1, stall=0)
    csr = bench.dut.csr

    async def disable(ctx):
        ctx.set(csr.enable, 0)
        while ctx.get(csr.refused) < 3:
            await ctx.tick()
        ctx.set(csr.enable, 1)

    disable.background = True
    silent = [Connection(get(b"/one") * 3), Connection(b"\x00"), Connection(b"GET / HTTP/1.1\r\n")]
    served = Connection(get(b"/one"))
    bench.run([*silent, served], disable)
    for conn in silent:
        assert conn.received == b""
        assert conn.got_fin
    bench.check(served)
    assert bench.counters["refused"] == 3
    assert bench.counters["requests"] == 1


def test_switch_waits_for_requests():
    dut = Images(4, (0x1000, 0x2000, 4))

    async def bench(ctx):
        assert (ctx.get(dut.now_base), ctx.get(dut.now_index), ctx.get(dut.now_mask)) == (
            0x1000,
            0x2000,
            3,
        )
        for name in ("began", "hold"):
            ctx.set(getattr(dut, name), 1)
        await ctx.tick()
        ctx.set(dut.began, 0)
        ctx.set(dut.hold, 0)
        ctx.set(dut.base, 0x5000)
        ctx.set(dut.switch, 1)
        await ctx.tick()
        ctx.set(dut.switch, 0)
        for _ in range(5):
            await ctx.tick()
            assert ctx.get(dut.switching)
            assert ctx.get(dut.now_base) == 0x1000
            assert ctx.get(dut.held) == 0
        ctx.set(dut.ended, 1)
        await ctx.tick()
        ctx.set(dut.ended, 0)
        await ctx.tick()
        assert not ctx.get(dut.switching)
        assert (ctx.get(dut.now_base), ctx.get(dut.epoch), ctx.get(dut.held)) == (0x5000, 1, 1)
        ctx.set(dut.drop, 1)
        await ctx.tick()
        assert ctx.get(dut.held) == 0

    run(dut, bench, limit=100)
