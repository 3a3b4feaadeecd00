"""Requests that the web service hands to firmware (``cores/web/desk.py``)."""

from typing import NamedTuple

import pytest
from service_model import Connection
from streams import make_rng, seeds
from trebuchet.cores.web.desk import BUFFERS, DEPTH
from trebuchet.models.http.body import Chunked, Progress, Sized
from trebuchet.models.http.limits import LIMITS
from trebuchet.models.http.request import Content, Verdict, parse_fields
from trebuchet.models.http.response import prepared
from trebuchet.models.http.slow import Response, respond
from web_bench import OBJECTS, SEGMENT_LOG2, WebBench, expected

BUFFER = 1 << 13
SMALL = LIMITS._replace(content=3000)


class Firmware:
    """What firmware does: shows the model what the desk shows, and replies with what it says."""

    background = True

    def __init__(self, bench, delay=0.3):
        self.bench, self.delay = bench, delay
        self.base = len(bench.memory)
        bench.memory += bytes(BUFFERS * BUFFER)
        self.bodies, self.contents = {}, {}  # contents stay where they are, as in an image
        self.seen = self.most = 0

    async def __call__(self, ctx):
        csr, rng = self.bench.dut.csr, self.bench.rng
        ctx.set(csr.slow, 1)
        while True:
            await ctx.tick()
            request = ctx.get(csr.request)
            assert ctx.get(self.bench.dut.irq) == request & 1
            if not request & 1 or rng.random() < self.delay:
                continue
            self.seen += 1
            self.most = max(self.most, ctx.get(self.bench.dut.desk.queue.level))
            session, address = ctx.get(csr.request_session), ctx.get(csr.request_address)
            data = self._read(address, request >> 8)
            used, response = self._take(session, data, request >> 1 & 1)
            await self._reply(ctx, used, response)

    def _read(self, address, length):
        mask = (1 << SEGMENT_LOG2) - 1
        return bytes(self.bench.memory[address & ~mask | address + k & mask] for k in range(length))

    def _take(self, session, data, first):
        """How many bytes are used, and a Response; None: more is needed."""
        if not first:
            body, head = self.bodies.pop(session)
            for used, byte in enumerate(data, 1):
                progress = body.feed(byte)
                if progress is not Progress.MORE:
                    return used, self._progress(session, body, head, progress)
            return len(data), self._progress(session, body, head, Progress.MORE)
        head = data.removeprefix(b"\r\n")
        fields = parse_fields(head.split(b"\r\n")[1:-2])
        if not fields.has_content:
            return len(data), self._respond(head)
        chunked = fields.content is Content.CHUNKED
        limits = self.bench.limits
        body = Chunked(limits) if chunked else Sized(fields.length, limits)
        return len(data), self._progress(session, body, head, body.first)

    def _respond(self, head):
        found = respond(head, self.bench.objects.get)
        return Response(self._cut(found.prepared, head), found.close)

    def _cut(self, response, head):
        return response._replace(content=b"") if head.startswith(b"HEAD ") else response

    def _progress(self, session, body, head, progress):
        if progress is Progress.MORE:
            self.bodies[session] = body, head
            return None
        if progress is Progress.DONE:
            return self._respond(head)
        invalid = progress is Progress.INVALID
        verdict = Verdict.BAD_REQUEST if invalid else Verdict.CONTENT_TOO_LARGE
        return Response(self._cut(prepared(verdict), head), True)

    async def _reply(self, ctx, used, response):
        bench, csr = self.bench, self.bench.dut.csr
        reply = 1 | used << 8
        if response is None:
            reply |= 4
        else:
            while (free := ~ctx.get(csr.buffers) & (1 << BUFFERS) - 1) == 0:
                await ctx.tick()
            k = bench.rng.choice([k for k in range(BUFFERS) if free >> k & 1])
            header, content = response.prepared
            at = self.base + k * BUFFER
            bench.memory[at : at + BUFFER] = header.ljust(BUFFER, b"\xee")
            place = self.contents.setdefault(content, len(bench.memory))
            if place == len(bench.memory):
                bench.memory += content
            reply |= k + 1 << 4 | response.close << 1
            ctx.set(csr.reply_address, at)
            ctx.set(csr.reply_length, len(header))
            ctx.set(csr.reply_rest_address, place)
            ctx.set(csr.reply_rest, len(content))
        ctx.set(csr.reply, reply)
        await ctx.tick()
        ctx.set(csr.reply, 0)


class Part(NamedTuple):
    """Bytes of a response; ``more``: it is not the last part."""

    data: bytes
    close: bool
    more: bool


class PartsFirmware(Firmware):
    """Sends each response in parts, out of buffers that it writes again when they are free.

    The last byte of a request is left unread until the last part; ``cut`` of the responses end
    early, and with a close.
    """

    def __init__(self, bench, cut=0.0):
        super().__init__(bench)
        self.left, self.cut, self.was_cut = {}, cut, 0

    def _take(self, session, data, first):
        rng = self.bench.rng
        if first or session in self.bodies:
            used, response = super()._take(session, data, first)
            if response is None:
                return used, None
            header, content = response.prepared
            self.left[session] = header + content, response.close
            if rng.random() < 0.3:  # it is shown again, without a part so far
                return used - 1, None
        else:
            used = 1
        sent, close = self.left.pop(session)
        if rng.random() < self.cut and sent:
            self.was_cut += 1
            return used, Part(b"", True, False)
        count = rng.choice([1, 100, 1460, 3000, BUFFER])
        if count >= len(sent):
            return used, Part(sent, close, False)
        self.left[session] = sent[count:], close
        return used - 1, Part(sent[:count], False, True)

    async def _reply(self, ctx, used, response):
        if response is None:
            await super()._reply(ctx, used, None)
            return
        bench, csr = self.bench, self.bench.dut.csr
        while (free := ~ctx.get(csr.buffers) & (1 << BUFFERS) - 1) == 0:
            await ctx.tick()
        k = bench.rng.choice([k for k in range(BUFFERS) if free >> k & 1])
        at = self.base + k * BUFFER
        bench.memory[at : at + BUFFER] = response.data.ljust(BUFFER, b"\xee")
        ctx.set(csr.reply_address, at)
        ctx.set(csr.reply_length, len(response.data))
        ctx.set(csr.reply_rest, 0)
        reply = 1 | used << 8 | k + 1 << 4 | response.close << 1 | 12 * response.more
        ctx.set(csr.reply, reply)
        await ctx.tick()
        ctx.set(csr.reply, 0)


TAG = b'"%016x"' % OBJECTS[b"/big"].tag
UNUSUAL = [
    b"GET /%6Fne HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET http://h/a/../one HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /big HTTP/1.1\r\nHost: h\r\nRange: bytes=5-9\r\n\r\n",
    b"HEAD /big HTTP/1.1\r\nHost: h\r\nRange: bytes=5-9\r\n\r\n",
    b'GET /big HTTP/1.1\r\nHost: h\r\nIf-None-Match: "a", ' + TAG + b"\r\n\r\n",
    b"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n",
    b"\r\nGET /one HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\n\r\n"
    + b"GET / HTTP/1.1\r\n" * 2
    + b"1234",
    b"GET /one HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;x=y\r\nabcde\r\n3e8\r\n" + b"z" * 1000 + b"\r\n0\r\nA: b\r\n\r\n",
    b"GET /none HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n!",
]
LAST = [
    b"POST /one HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n12345",
    b"GET /one HTTP/1.1\r\nHost: h\r\nContent-Length: 3001\r\n\r\n123",
    b"GET /one HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    b"GET /one HTTP/1.0\r\nContent-Length: 2500\r\n\r\n" + b"y" * 2500,
]
USUAL = [
    b"GET /one HTTP/1.1\r\nHost: h\r\n\r\n",
    b"HEAD /big HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /none HTTP/1.1\r\nHost: h\r\n\r\n",
]


@pytest.mark.parametrize(("width", "lanes", "rest"), [(64, 2, False), (32, 1, True)])
@seeds(3)
def test_random_requests(width, lanes, rest, seed):
    """All that a connection gets is what the model sends, in order, with any mixture."""
    bench = WebBench(seed, width=width, lanes=lanes, rest=rest, limits=SMALL, desk=True)
    firmware = Firmware(bench)
    rng, conns = make_rng(seed, "desk"), []
    for _ in range(14):
        requests = [rng.choice(rng.choice([UNUSUAL, USUAL])) for _ in range(rng.randint(1, 6))]
        payload = b"".join(requests) + rng.choice([b"", *LAST])
        if rng.random() < 0.25:
            payload = payload[: rng.randrange(len(payload) + 1)]
        conn = Connection(payload, chunk=rng.choice([1, 40, 1500]))
        if rng.random() < 0.25:
            limit = rng.randint(0, len(payload))
            conn.vanish = lambda c, limit=limit: c.delivered >= limit and rng.random() < 0.02
        conns.append(conn)
    bench.run(conns, firmware)
    for conn in conns:
        bench.check(conn)
    kinds = ("found", "not_modified", "not_found", "rejected", "unusual", "by_firmware")
    assert bench.counters["requests"] == sum(bench.counters[kind] for kind in kinds)
    assert bench.counters["by_firmware"]
    assert bench.counters["unusual"] == 0
    assert bench.counters["buffers"] == 0


@pytest.mark.parametrize(("width", "lanes", "rest"), [(64, 2, False), (32, 1, True)])
@pytest.mark.parametrize("cut", [0, 0.4])
@seeds(2)
def test_responses_in_parts(width, lanes, rest, cut, seed):
    """They follow each other in the session's order; a response that is cut ends there."""
    bench = WebBench(seed, width=width, lanes=lanes, rest=rest, limits=SMALL, desk=True)
    firmware = PartsFirmware(bench, cut)
    rng, conns = make_rng(seed, "parts"), []
    for _ in range(10):
        payload = b"".join(rng.choice(rng.choice([UNUSUAL, USUAL])) for _ in range(5))
        conn = Connection(payload + rng.choice([b"", *LAST]), chunk=rng.choice([40, 1500]))
        if rng.random() < 0.25:
            limit = rng.randint(0, len(payload))
            conn.vanish = lambda c, limit=limit: c.delivered >= limit and rng.random() < 0.02
        conns.append(conn)
    bench.run(conns, firmware)
    for conn in conns:
        if cut and conn.ok:
            whole, _ = expected(conn.payload, bench.objects, bench.limits, bench.server, ())
            assert whole.startswith(conn.received)
            assert conn.got_fin
        else:
            bench.check(conn)
    kinds = ("found", "not_modified", "not_found", "rejected", "unusual", "by_firmware")
    assert bench.counters["requests"] == sum(bench.counters[kind] for kind in kinds)
    assert bench.counters["buffers"] == bench.counters["held"] == 0
    if cut:
        assert firmware.was_cut
    elif all(conn.ok for conn in conns):  # a response counts once
        assert bench.counters["by_firmware"] == sum(
            conn.received.count(b"HTTP/1.1 ") for conn in conns
        ) - sum(bench.counters[kind] for kind in kinds[:-1])


def test_more_than_wait():
    """Beyond the queue requests are answered with 503, and so they are without firmware."""
    count = DEPTH + 6
    bench = WebBench(5, sessions=count, stall=0, desk=True)
    firmware = Firmware(bench, delay=0.9995)
    conns = [Connection(UNUSUAL[0]) for _ in range(count)]
    bench.run(conns, firmware)
    busy = [conn for conn in conns if conn.received.startswith(b"HTTP/1.1 503 ")]
    assert len(busy) == bench.counters["unusual"] > 0
    for conn in conns:
        if conn not in busy:
            bench.check(conn)
    bench = WebBench(5, desk=True)
    conn = Connection(UNUSUAL[0])
    bench.run([conn])
    assert conn.received.startswith(b"HTTP/1.1 503 ")
