"""Services, and what moves operands and results, at their default and boards' sizes.

The first, the last and the middle sessions at a time, which share their low or their high bits; one
of them has more bytes than its segment.
"""

from part_sizes import at_sizes
from service_model import Connection, EngineModel
from streams import MemoryResponder, make_rng, packet_get, run, stream_get, stream_put
from test_services_mailbox import Firmware
from trebuchet.cores.roles.fetch import OperandReader, ResultWriter
from trebuchet.cores.services.discard import Discard
from trebuchet.cores.services.echo import Echo
from trebuchet.cores.services.framer import SmpFramer
from trebuchet.cores.services.mailbox import Mailbox
from trebuchet.cores.services.responder import Responder
from trebuchet.models.smp_framing import data_message, frame
from trebuchet.models.status import Status

CHUNK = 9000
#: Of the memory that models have; regions begin at multiples of it.
REGION = 1 << 22


def chosen(sessions):
    return sorted({0, sessions // 2 - 1, sessions // 2, sessions - 1})


class Bench:
    """An engine's model in front of a service that has many sessions, of which some are used."""

    def __init__(self, dut, payloads, *, sessions, segment_log2=15, writable=range(0)):
        self.dut, self.rng = dut, make_rng(sessions, "sizes")
        self.memory = bytearray(2 * REGION)
        self.conns = [Connection(payload, chunk=CHUNK) for payload in payloads]
        self.responders = []
        if hasattr(dut, "mem"):
            self.responders.append(MemoryResponder(dut.mem, self.memory, latency=(2, 6)))
        self.engine = EngineModel(
            dut.service, self.memory, self.conns, rng=self.rng, sessions=sessions,
            segment_log2=segment_log2, writable=writable, latency=(5, 20), stall=0.1,
            responder=(self.responders or [None])[0],
        )  # fmt: skip
        self.engine.numbers = chosen(sessions)

    def run(self, *others, limit=40_000):
        run(self.dut, self.engine, *self.responders, *others, limit=limit)
        assert all(conn.ok for conn in self.conns)


def _payloads(sessions, longest):
    rng = make_rng(sessions, "payloads")
    lengths = [longest, *(40 + k for k in range(2 * len(chosen(sessions))))]
    return [rng.randbytes(length) for length in lengths]


@at_sizes("services.echo.Echo", sessions=64, segment_log2=15)
def test_echo(size):
    segment = 1 << size["segment_log2"]
    bench = Bench(Echo(**size), _payloads(size["sessions"], segment + 5000), **size)
    bench.run()
    for conn in bench.conns:
        assert conn.received == conn.payload
        assert conn.freed == len(conn.payload)


@at_sizes("services.discard.Discard", sessions=64)
def test_discard(size):
    bench = Bench(Discard(**size), _payloads(size["sessions"], 70_000), **size)
    bench.run()
    assert all(conn.freed == len(conn.payload) for conn in bench.conns)


@at_sizes("services.responder.Responder", sessions=64)
def test_responder(size):
    """The longest page, at the end of the memory's low 4 MiB."""
    bench = Bench(Responder(**size), _payloads(size["sessions"], 40), **size)
    page = make_rng(0, "page").randbytes(0xFFFF)
    addr = 2 * REGION - len(page)
    bench.memory[addr:] = page

    async def setup(ctx):
        ctx.set(bench.dut.addr, addr)
        ctx.set(bench.dut.length, len(page))

    bench.run(setup)
    assert all(conn.received == page for conn in bench.conns)


@at_sizes("services.mailbox.Mailbox", sessions=64, segment_log2=15)
def test_mailbox(size):
    """Each request to firmware, each response from the slot of its session."""
    sessions = size["sessions"]
    payloads = [b"GET %d " % k + b"x" * k + b"\r\n\r\n" for k in range(2 * len(chosen(sessions)))]
    payloads[1] = b"GET big\r\n\r\n" * 2  # answers of the slot's size
    dut = Mailbox(**{"slots_base": REGION, **size})
    slots = range(REGION, REGION + 4096 * sessions)
    bench = Bench(
        dut, payloads, sessions=sessions, segment_log2=size["segment_log2"], writable=slots
    )
    cpu = _ManySessions(dut.csr, make_rng(sessions, "cpu"), sessions)
    bench.run(cpu, limit=150_000)
    assert cpu.sessions == set(chosen(sessions))
    for conn in bench.conns:
        big = conn.payload.startswith(b"GET big")
        wanted = 4096 if big else len(b"%d" % conn.number)
        assert len(conn.received) == wanted * conn.payload.count(b"GET")


class _ManySessions(Firmware):
    """Firmware that answers a request with its session and length, or 4,096 bytes."""

    def __init__(self, csr, rng, sessions):
        super().__init__(csr, rng)
        self.most, self.sessions = sessions, set()

    async def __call__(self, ctx):
        while True:
            await self.pause(ctx, 3)
            if not ctx.get(self.csr.status) & 1:
                continue
            session = ctx.get(self.csr.session)
            assert session < self.most
            self.sessions.add(session)
            length = ctx.get(self.csr.request_length)
            assert 9 < length < 30
            if length == 11:
                await self.write(ctx, "send", 1 << 31 | 4096, strobe=True)
            else:
                await self.respond(ctx, b"%d" % session, False, False)


class _Role:
    """Takes a job, checks where its result goes, and answers with its length."""

    background = True

    def __init__(self, dut, memory, size):
        self.dut, self.memory, self.size, self.sessions = dut, memory, size, set()

    async def __call__(self, ctx):
        dut, slot = self.dut, self.size["slot_bytes"]
        while True:
            job = await stream_get(ctx, dut.job)
            assert job.session in chosen(self.size["sessions"])
            self.sessions.add(job.session)
            assert (job.result - 16 - REGION) // slot // 2 == job.session
            assert (job.result - 16) % slot == 0
            assert job.room == slot - 16
            assert job.ring_log2 == self.size["segment_log2"]
            result = job.length.to_bytes(4, "little")
            self.memory[job.result : job.result + 4] = result
            answer = {n: job[n] for n in ("source", "session", "id")}
            await stream_put(ctx, dut.answer, answer | {"status": 0, "length": 4})


@at_sizes("services.framer.SmpFramer", width=32, sessions=64, segment_log2=15, slot_bytes=2048)
def test_framer(size):
    """The longest message that the engine can hold; one of all sizes around the ring."""
    sessions, segment = size["sessions"], 1 << size["segment_log2"]
    longest = size.get("largest", segment) - 12
    payloads = [data_message(7 + k, bytes(40 + k)) for k in range(2 * len(chosen(sessions)))]
    payloads.insert(1, data_message(1, bytes(longest)) + data_message(2, bytes(longest)))
    dut = SmpFramer(**{"source": 0, "slots_base": REGION, "kinds": (), **size})
    slots = range(REGION, REGION + 2 * sessions * size["slot_bytes"])
    bench = Bench(
        dut, payloads, sessions=sessions, segment_log2=size["segment_log2"], writable=slots
    )
    role = _Role(dut, bench.memory, size)
    bench.run(role, limit=60_000)
    for conn in bench.conns:
        answers = frame(
            conn.payload, segment, lambda ident, op: (Status.OK, len(op).to_bytes(4, "little"))
        )
        assert conn.received == answers[0]
    assert role.sessions == set(chosen(sessions))


@at_sizes("roles.fetch.OperandReader", but=("tag_width",))
def test_operand_reader(size):
    """An operand as long as the largest ring of a board, from its last byte on."""
    dut, log2 = OperandReader(**size), 15
    base = REGION + (3 << log2)
    memory = bytearray(2 * REGION)
    memory[base : base + (1 << log2)] = make_rng(0, "ring").randbytes(1 << log2)
    at = (1 << log2) - 1
    operand = {"base": base, "offset": at, "ring_log2": log2, "length": 1 << log2}

    async def main(ctx):
        await stream_put(ctx, dut.request, operand)
        got, error = await packet_get(ctx, dut.packet)
        ring = bytes(memory[base : base + (1 << log2)])
        assert not error
        assert got == ring[at:] + ring[:at]

    run(dut, main, MemoryResponder(dut.mem, memory, latency=(4, 4)), limit=30_000)


@at_sizes("roles.fetch.ResultWriter", but=("tag_width",))
def test_result_writer(size):
    """A result that fills the longest slot to its last byte; and one that is too long by a byte."""
    dut, room = ResultWriter(**size), (1 << 13) - 16
    addr, n = REGION + (1 << 13) + 16, size["width"] // 8
    memory = bytearray(2 * REGION)

    async def main(ctx):
        for length, fits in ((room, True), (2 * n + 1, False)):
            places = {"addr": addr, "room": room if fits else 2 * n}
            await stream_put(ctx, dut.request, places)
            beats = -(-length // n)
            for k in range(beats):
                last = k == beats - 1
                beat = {"data": k + 1, "first": k == 0, "last": last, "error": 0}
                beat["empty"] = beats * n - length if last else 0
                await stream_put(ctx, dut.packet, beat)
            while not ctx.get(dut.done):
                await ctx.tick()
            assert ctx.get(dut.overflow) != fits
            await ctx.tick()
        for k in range(room // n):
            at = addr + k * n
            assert int.from_bytes(memory[at : at + n], "little") == k + 1
        assert not any(memory[addr + room :])
        assert not any(memory[:addr])

    run(dut, main, MemoryResponder(dut.mem, memory, latency=(4, 4)), limit=20_000)
