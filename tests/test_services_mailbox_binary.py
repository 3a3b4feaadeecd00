"""The mailbox with binary requests: SMP headers, then as many bytes as the firmware expects."""

import pytest
from service_model import Connection
from streams import seeds
from test_services_mailbox import CLOSE, GO, PARTIAL, PENDING, SESSIONS, Bench, Firmware
from trebuchet.cores.services.mailbox import Mailbox

LIMIT = 1024
LENGTH_BITS = 11


def message(kind, payload):
    return bytes((kind, 0, 0, 0)) + len(payload).to_bytes(4, "little") + payload


def pieces(stream, limit=LIMIT):
    """Naive model: ``(request, partial, tag)`` as the firmware of this test is shown them.

    It asks for a message's payload in pieces: tag 1 for the last, 2 for those before it. A partial
    request is the last one, since every answer to one closes.
    """
    found, at, due, eof = [], 0, 0, len(stream)
    while at < eof or due:
        if due:
            want, tag = min(due, limit), 1 if due <= limit else 2
        elif stream[at] < 9:
            want, tag = 8, 0
        else:
            end = stream.find(b"\r\n\r\n", at, at + limit)
            want, tag = (end + 4 - at if end >= 0 else limit + 1), 0
        request = stream[at : min(at + want, at + limit)]
        found.append((request, len(request) < want, tag))
        at += len(request)
        if len(request) < want:
            break
        if due:
            due -= want
        elif request[0] < 9:
            due = int.from_bytes(request[4:8], "little")
    return found


def answer(request, tag):
    """A header and a piece in the middle get none, so what the client gets tells the messages."""
    if tag == 2 or (tag == 0 and request[:1] < b"\x09"):
        return b""
    return b"%d." % len(request) + request[-40:]


def expected(stream, limit=LIMIT):
    out = b""
    for request, partial, tag in pieces(stream, limit):
        if partial:
            return out + b"cut"
        out += answer(request, tag)
    return out


class NodeFirmware(Firmware):
    """Asks for payloads; remembers per session only how much is left of one."""

    def __init__(self, csr, rng, limit):
        super().__init__(csr, rng)
        self.limit, self.left = limit, [0] * SESSIONS

    async def take(self, ctx):
        status, session = ctx.get(self.csr.status), ctx.get(self.csr.session)
        request, tag = await self.request(ctx), status >> 4 & 3
        partial = bool(status & PARTIAL)
        if tag == 0:  # also when an earlier connection with this number ended in mid-message
            self.left[session] = 0
        self.served.append((request, partial, tag))
        body = b"cut" if partial else answer(request, tag)
        if partial:
            self.left[session] = 0
        elif tag:
            self.left[session] -= len(request)
        elif request[0] < 9:
            self.left[session] = int.from_bytes(request[4:8], "little")
        left = self.left[session]
        expect = min(left, self.limit) | (0 if not left else 1 if left <= self.limit else 2) << 11
        await self.write(ctx, "expect", expect)
        for i in range(0, len(body), 4):
            await self.write(ctx, "tx_data", int.from_bytes(body[i : i + 4], "little"))
            await self.write(ctx, "tx_write", 1, strobe=True)
        await self.write(ctx, "send", GO | CLOSE * partial | len(body), strobe=True)

    async def __call__(self, ctx):
        while True:
            await self.pause(ctx, self.rng.randint(1, 40))
            if ctx.get(self.csr.status) & PENDING:
                await self.take(ctx)


class BinaryBench(Bench):
    def __init__(self, seed, width=32, unread=None):
        super().__init__(seed, width)
        if unread is not None:
            self.dut = Mailbox(width, SESSIONS, 11, 0x4000, unread)
            self.responder.__init__(
                self.dut.mem, self.memory, rng=self.responder.rng, latency=(2, 30)
            )
        self.cpu = NodeFirmware(self.dut.csr, self.cpu.rng, min(LIMIT, unread or LIMIT))


def random_stream(rng):
    stream = b""
    for _ in range(rng.randint(0, 3)):
        if rng.random() < 0.3:
            stream += b"GET " + b"x" * rng.randint(0, 30) + b"\r\n\r\n"
        else:
            size = rng.choice([0, 1, 2, 3, 4, 7, 8, 9, 60, 60, 200, 200, 1023, 1024, 1025])
            # Of bytes that look like empty lines and like headers.
            payload = bytes(rng.choice([0, 3, 8, 9, 10, 13, 10, 13]) for _ in range(size))
            stream += message(rng.randint(0, 8), payload)
    return stream


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_random_messages(width, seed):
    bench = BinaryBench(seed, width)
    rng, conns = bench.rng, []
    for _ in range(6):
        stream = random_stream(rng)
        if rng.random() < 0.3:
            stream = stream[: rng.randrange(len(stream) + 1)]
        conn = Connection(stream, chunk=rng.choice([5, 30, 600]))
        if rng.random() < 0.2:
            limit = rng.randint(0, len(stream))
            conn.vanish = lambda c, limit=limit: c.delivered >= limit and rng.random() < 0.01
        conns.append(conn)
    bench.run(conns, limit=300_000)
    for conn in conns:
        if conn.ok:
            assert conn.received == expected(conn.payload)
        else:
            assert conn.gone
            assert expected(conn.payload).startswith(conn.received)
    assert set(bench.cpu.served) <= {entry for c in conns for entry in pieces(c.payload)}


@pytest.mark.parametrize(
    "stream",
    [
        message(3, b""),
        message(3, b"abcd"),
        message(8, b"\r\n\r\n" * 3) + message(1, b"z"),
        message(5, b"x" * 1024) + b"GET\r\n\r\n",
        message(1, bytes(2500)),
        b"\x09" + b"tab\r\n\r\n",
    ],
)
def test_whole_messages(stream):
    bench = BinaryBench(1)
    conn = Connection(stream)
    bench.run([conn])
    assert bench.cpu.served == pieces(stream)
    assert not any(partial for _, partial, _ in bench.cpu.served)
    assert conn.ok
    assert conn.received == expected(stream)


@pytest.mark.parametrize(
    "cut",
    [
        1,
        7,
        8,
        9,
        15,
        1032,
        *(pytest.param(n, marks=pytest.mark.nightly) for n in (1031, 1033, 2000)),
    ],
)
def test_fin_in_mid_message_is_told(cut):
    """Also right behind the header, or between two pieces: an empty partial request."""
    stream = message(1, bytes(2500))[:cut]
    bench = BinaryBench(2)
    conn = Connection(stream)
    bench.run([conn])
    assert bench.cpu.served == pieces(stream)
    assert bench.cpu.served[-1][1]
    assert conn.ok
    assert conn.received == b"cut"


def test_a_new_connection_inherits_nothing():
    """Connections lost while bytes are awaited; text of those that get their numbers is text."""
    bench = BinaryBench(3)
    lost = [
        Connection(message(1, bytes(20))[:8], fin=lambda c: False, vanish=lambda c: c.freed == 8)
        for _ in range(SESSIONS)
    ]
    text = b"GET /\r\n\r\n"
    late = [Connection(text) for _ in range(SESSIONS)]
    bench.run(lost + late)
    for conn in late:
        assert conn.ok
        assert conn.received == answer(text, 0)
    assert bench.cpu.served.count((text, False, 0)) == SESSIONS


@pytest.mark.parametrize("text", [False, True])
def test_expecting_more_than_the_ring_holds(text):
    """A request ends at `unread` bytes when no more are certain to come."""
    bench = BinaryBench(4, unread=256)
    bench.cpu.limit = 2047  # the register's largest
    stream = b"y" * 300 if text else message(1, b"y" * 300)
    conn = Connection(stream, fin=lambda c: c.got_fin)
    bench.run([conn])
    request, partial, tag = bench.cpu.served[-1]
    assert (request, partial) == (b"y" * 256, True)
    assert tag == (0 if text else 1)
    assert conn.received == b"cut"


@pytest.mark.parametrize("unread", [7, 2049, "8"])
def test_bad_unread(unread):
    with pytest.raises(ValueError, match=f"^Bytes unread must be 8 to 2048, not {unread!r}$"):
        Mailbox(32, 2, 11, 0x4000, unread)
