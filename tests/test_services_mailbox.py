"""The mailbox between the engine's model and a model of the firmware's loop."""

import pytest
from placed_model import PlacedModel
from service_model import Connection, EngineModel
from streams import MemoryResponder, make_rng, run, seeds
from trebuchet.cores.services.mailbox import Mailbox

SEGMENT_LOG2 = 11
SESSIONS = 3
SLOTS, SIZE = 0x4000, 0x8000
PENDING, PARTIAL, GONE, BUSY = 1, 2, 4, 8
GO, CLOSE = 1 << 31, 1 << 16
LIMIT = 1024


def requests_of(stream):
    """Naive model: the requests the CPU is shown for a connection's bytes; True = partial."""
    found = []
    while stream:
        end = stream.find(b"\r\n\r\n", 0, LIMIT)
        cut = end + 4 if 0 <= end <= LIMIT - 4 else min(LIMIT, len(stream))
        found.append((stream[:cut], end < 0 or end > LIMIT - 4))
        stream = stream[cut:]
    return found


def response_to(request):
    """What the test's firmware answers: (bytes, close, drop)."""
    body = b"%d:" % len(request) + bytes(b ^ 0x20 for b in request)
    if b"big" in request:
        body = (body * 400)[:4096]
    if b"odd" in request:
        body += b"!"
    if b"silent" in request:
        return b"", b"close" in request, False
    return body, b"close" in request, b"drop" in request


def expected(stream):
    """All a connection gets, and whether it ends by a reset."""
    out = b""
    for request, partial in requests_of(stream):
        body, close, drop = response_to(request)
        if drop:
            return out, True
        out += body
        if close or partial:
            break
    return out, False


class Firmware:
    """The loop in the docstring of Mailbox, with the bus's pauses."""

    background = True

    def __init__(self, csr, rng):
        self.csr, self.rng = csr, rng
        self.stuck = False
        self.served = []

    async def pause(self, ctx, cycles):
        for _ in range(cycles):  # `repeat` does not like to be cancelled with the simulation
            await ctx.tick()

    async def write(self, ctx, register, value, strobe=False):
        signal = getattr(self.csr, register)
        ctx.set(signal, value)
        await ctx.tick()
        if strobe:
            ctx.set(signal, 0)
        await self.pause(ctx, 2)

    async def request(self, ctx):
        length, content = ctx.get(self.csr.request_length), b""
        for i in range((length + 3) // 4):
            await self.write(ctx, "rx_index", i)
            content += ctx.get(self.csr.rx_data).to_bytes(4, "little")
        return content[:length]

    async def respond(self, ctx, body, close, drop):
        for i in range(0, len(body), 4):
            await self.write(ctx, "tx_data", int.from_bytes(body[i : i + 4], "little"))
            await self.write(ctx, "tx_write", 1, strobe=True)
        if drop:
            await self.write(ctx, "drop", 1, strobe=True)
        else:
            await self.write(ctx, "send", GO | CLOSE * close | len(body), strobe=True)

    async def __call__(self, ctx):
        while True:
            await self.pause(ctx, self.rng.randint(1, 40))
            # A strobe out of turn does nothing.
            if self.rng.random() < 0.2 and not ctx.get(self.csr.status) & PENDING:
                await self.write(ctx, "send", CLOSE | 3, strobe=True)
            status = ctx.get(self.csr.status)
            if self.stuck or not status & PENDING:
                continue
            assert ctx.get(self.csr.session) < SESSIONS
            request = await self.request(ctx)
            if not ctx.get(self.csr.status) & GONE:
                self.served.append((request, bool(status & PARTIAL)))
            body, close, drop = response_to(request)
            await self.respond(ctx, body, close or bool(status & PARTIAL), drop)


class Bench:
    def __init__(self, seed, width=32, rest=False):
        self.seed, self.rng = seed, make_rng(seed, "bench")
        self.memory = bytearray(self.rng.randbytes(SIZE))
        self.dut = Mailbox(width, SESSIONS, SEGMENT_LOG2, SLOTS, rest=rest)
        self.model = PlacedModel if rest else EngineModel
        self.responder = MemoryResponder(
            self.dut.mem, self.memory, rng=make_rng(seed, "memory"), latency=(2, 30)
        )
        self.cpu = Firmware(self.dut.csr, make_rng(seed, "cpu"))
        self.counters = {}

    def run(self, conns, *others, limit=150_000):
        engine = self.engine = self.model(
            self.dut.service,
            self.memory,
            conns,
            rng=self.rng,
            sessions=SESSIONS,
            segment_log2=SEGMENT_LOG2,
            responder=self.responder,
            writable=range(SLOTS, SLOTS + 4096 * SESSIONS),
        )

        async def main(ctx):
            await engine(ctx)
            for name in ("requests", "responses", "dropped"):
                self.counters[name] = ctx.get(getattr(self.dut.csr, name))

        run(self.dut, main, self.responder, self.cpu, *others, limit=limit, seed=self.seed)


def check(conn):
    out, reset = expected(conn.payload)
    if conn.aborted:
        assert reset
    if conn.ok:
        assert conn.received == out
        assert conn.got_fin
        assert not reset
    else:
        assert conn.gone
        assert out.startswith(conn.received)


def random_request(rng):
    words = [b"GET", rng.choice([b"odd", b"x", b"y", b"z"])]
    words += [rng.choice([b"close", b"\r\n\r", b"\n\r\n", b"\r\r\n", b"abc"])]
    if rng.random() < 0.1:
        words.append(rng.choice([b"drop", b"silent"]))
    words.append(rng.choice([b"", b"q" * rng.choice([1, 2, 3, 30, 200])]))
    return b" ".join(words) + b"\r\n\r\n"


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(2)
def test_random(width, seed):
    bench = Bench(seed, width)
    rng = bench.rng
    conns = []
    for _ in range(9):
        payload = b"".join(random_request(rng) for _ in range(rng.randint(0, 3)))
        if rng.random() < 0.3:
            payload = payload[: rng.randrange(len(payload) + 1)]
        conn = Connection(payload, chunk=rng.choice([30, 300]))
        if rng.random() < 0.2:
            limit = rng.randint(0, len(payload))
            conn.vanish = lambda c, limit=limit: c.delivered >= limit and rng.random() < 0.01
        conns.append(conn)
    bench.run(conns)
    for conn in conns:
        check(conn)
    shown = {entry for conn in conns for entry in requests_of(conn.payload)}
    assert set(bench.cpu.served) <= shown
    assert any(conn.ok and conn.received for conn in conns)


@pytest.mark.parametrize(
    ("payload", "want"),
    [
        (b"a" * 1020 + b"\r\n\r\n", [(b"a" * 1020 + b"\r\n\r\n", False)]),
        (b"b" * 1021 + b"\r\n\r\nx", [(b"b" * 1021 + b"\r\n\r", True)]),
        (b"c" * 2500, [(b"c" * 1024, True)]),
        (b"d", [(b"d", True)]),
        (b"\r\n\r\n\r\n\r\n", [(b"\r\n\r\n", False)] * 2),
        (b"\r\r\n\r\r\n\r\n", [(b"\r\r\n\r\r\n\r\n", False)]),
        (b"", []),
        (b"GET big\r\n\r\n", [(b"GET big\r\n\r\n", False)]),
    ],
)
def test_request_ends(payload, want):
    bench = Bench(1)
    conn = Connection(payload)
    bench.run([conn])
    assert bench.cpu.served == want
    check(conn)
    assert bench.counters == {"requests": len(want), "responses": len(want), "dropped": 0}


def test_slow_request_holds_up_nobody():
    """A connection with half a request waits; the others are served meanwhile."""
    bench = Bench(2)
    quick = [Connection(b"GET close\r\n\r\n") for _ in range(5)]
    slow = Connection(b"GET half", fin=lambda c: all(q.released for q in quick))
    bench.run([slow, *quick])
    for conn in [slow, *quick]:
        check(conn)
        assert conn.ok


def test_stuck_cpu():
    """The CPU does nothing: lost connections are released, the shown one too; then it goes on."""
    bench = Bench(3)
    bench.cpu.stuck = True
    lost = [
        Connection(b"GET /\r\n\r\n", fin=lambda c: False, vanish=lambda c: c.delivered == 9)
        for _ in range(6)
    ]
    idle = [Connection(b"") for _ in range(3)]
    late = [Connection(b"GET close\r\n\r\n") for _ in range(3)]

    async def wake(ctx):
        ctx.set(bench.dut.csr.irq_enable, 1)
        while not all(conn.released for conn in lost + idle) or not ctx.get(bench.dut.irq):
            await ctx.tick()
        await ctx.tick().repeat(100)
        assert ctx.get(bench.dut.irq) == 1
        assert bench.cpu.served == []
        bench.cpu.stuck = False

    bench.run(lost + idle + late, wake)
    for conn in idle + late:
        assert conn.ok
        check(conn)


def test_drop_resets():
    bench = Bench(4)
    conns = [Connection(b"GET drop\r\n\r\n", fin=lambda c: False) for _ in range(3)]
    bench.run(conns)
    assert all(conn.aborted and conn.received == b"" for conn in conns)
    assert bench.counters == {"requests": 3, "responses": 0, "dropped": 3}


def test_bad_parameters():
    with pytest.raises(ValueError, match="Base of the slots must be a multiple of 4096, not 8"):
        Mailbox(32, 4, 12, 8)
