"""Configuration messages to the board's firmware: framer and window against the naive model."""

import struct

import pytest
from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from part_sizes import at_sizes
from placed_model import PlacedModel
from service_model import Connection, EngineModel
from streams import MemoryResponder, make_rng, run, seeds, stream_checker, stream_get, stream_put
from test_services_framer import POOL, SEGMENT, SEGMENT_LOG2, SIZE, SLOT, SLOTS, RoleModel, work
from test_services_late import sweeping
from trebuchet.cores.csr import CsrSignature
from trebuchet.cores.memory import MemorySignature
from trebuchet.cores.roles.contract import AnswerLayout, JobKind, JobLayout
from trebuchet.cores.services.framer import SmpFramer
from trebuchet.cores.services.smp_board import BOARD_BLOCK, BoardWindow
from trebuchet.cores.services.smp_registers import BOARD
from trebuchet.cores.tcp.service import ServiceSignature
from trebuchet.models.smp_framing import (
    TYPE_CONFIGURATION,
    TYPE_DATA,
    TYPE_STREAM,
    data_message,
    error_message,
    frame,
)
from trebuchet.models.status import Status

KINDS = (JobKind.STREAM, JobKind.CONFIGURE)
TYPES = (TYPE_DATA, TYPE_STREAM, TYPE_CONFIGURATION)
#: Payloads that are larger are refused by their header.
LARGEST = 3000
GO = 1 << 8


def judge(size, payload):
    """What the test's firmware answers to a message: status, and whether it closes."""
    if size > LARGEST:
        return Status.TOO_LARGE, True
    if len(payload) < size:
        return Status.TRUNCATED, True
    return (Status.OK, Status.BAD_DATA, Status.BAD_LENGTH)[sum(payload) % 3], False


def configuration(payload, named=0):
    return struct.pack("<BB2xI", TYPE_CONFIGURATION, named, len(payload)) + payload


class Both(wiring.Component):
    """Framer and window, as the shell connects them."""

    def __init__(self, sessions, kinds=KINDS, roles=(0,), count=1, rest=False):
        self.framer = SmpFramer(
            32, sessions, 2, SEGMENT_LOG2, SLOTS, SLOT, kinds, None, roles, count, rest, True
        )
        self.window = BoardWindow(sessions)
        super().__init__(
            {
                "service": In(ServiceSignature(rest)),
                "job": Out(stream.Signature(JobLayout)),
                "answer": In(stream.Signature(AnswerLayout)),
                "mem": Out(MemorySignature(32)),
                "board": In(CsrSignature(BOARD_BLOCK)),
                "sweep": In(1),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.framer = framer = self.framer
        m.submodules.window = window = self.window
        for name in ("service", "mem"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(framer, name))
        wiring.connect(m, wiring.flipped(self.board), window.csr)
        wiring.connect(m, framer.job, window.job)
        wiring.connect(m, window.answer, framer.answer)
        wiring.connect(m, window.jobs, wiring.flipped(self.job))
        wiring.connect(m, wiring.flipped(self.answer), window.answers)
        m.d.comb += [framer.sweep.eq(self.sweep), framer.door.eq(window.door)]
        m.d.comb += self.irq.eq(window.irq)
        if framer.count > 1:
            m.d.comb += framer.doors.eq(-1)
        return m


class Firmware:
    """Answers parts; keeps what came of each message under its session."""

    background = True

    def __init__(self, dut, memory, rng, most=200, delay=60):
        self.dut, self.memory, self.rng = dut, memory, rng
        self.most, self.delay = most, delay
        self.parts, self.done, self.gone, self.late = {}, [], 0, 0
        self.gives = lambda payload: 0

    def bytes_at(self, address, length):
        start = address & -SEGMENT
        return bytes(self.memory[start + (address + i) % SEGMENT] for i in range(length))

    def answer(self, session, header, late, gone, data):
        """Status, ``next`` and ``role``."""
        if header:
            assert session not in self.parts, "a message begins in the middle of another"
            _, named, size = struct.unpack("<BB2xI", data)
            assert named == 0
            self.parts[session] = [size, b""]
        size, payload = self.parts[session]
        payload += b"" if header else data
        self.parts[session][1] = payload
        refused = size > LARGEST
        if len(payload) < size and not refused and (header or data):
            return Status.OK, min(size - len(payload), self.rng.randint(1, self.most)), 0
        del self.parts[session]
        status, close = judge(size, payload)
        if not refused and not header and not data:
            self.late += late
            self.gone += gone
            status = Status.TIMED_OUT if late else Status.TRUNCATED
            close = True
        elif not refused:
            self.done.append(payload)
        role = self.gives(payload) if status == Status.OK else 0
        return status, int(close), role

    async def __call__(self, ctx):
        csr = self.dut.board
        ctx.set(csr.irq_enable, 1)
        while True:
            while not ctx.get(self.dut.irq):
                await ctx.tick()
            job = ctx.get(csr.job)
            assert job & 1
            session, address = ctx.get(csr.session), ctx.get(csr.address)
            data = self.bytes_at(address, job >> 4)
            flags = [bool(job & 1 << k) for k in (1, 2, 3)]
            status, following, role = self.answer(session, *flags, data)
            await ctx.tick().repeat(self.rng.randint(1, self.delay))
            assert ctx.get(csr.job) == job
            assert self.bytes_at(address, job >> 4) == data or ctx.get(csr.job) & 8
            ctx.set(csr.next, following)
            ctx.set(csr.role, role)
            ctx.set(csr.answer, GO | status)
            await ctx.tick()
            ctx.set(csr.answer, 0)
            # The next answer may be prepared at once.
            ctx.set(csr.next, self.rng.getrandbits(20))
            ctx.set(csr.role, self.rng.getrandbits(6))
            await ctx.tick()


class Bench:
    def __init__(self, seed, sessions=4, rest=False, **options):
        self.rng, self.seed, self.sessions = make_rng(seed, "bench"), seed, sessions
        self.memory = bytearray(self.rng.randbytes(SIZE))
        self.dut = Both(sessions, rest=rest, **options)
        self.model = PlacedModel if rest else EngineModel
        self.responder = MemoryResponder(
            self.dut.mem, self.memory, rng=make_rng(seed, "memory"), latency=(2, 30)
        )
        self.role = RoleModel(self.dut, self.memory, make_rng(seed, "role"))
        self.cpu = Firmware(self.dut, self.memory, make_rng(seed, "cpu"))

    def run(self, conns, *others, limit=120_000):
        self.engine = self.model(
            self.dut.service,
            self.memory,
            conns,
            rng=self.rng,
            sessions=self.sessions,
            segment_log2=SEGMENT_LOG2,
            pool=POOL,
            responder=self.responder,
            writable=range(SLOTS, SLOTS + 2 * self.sessions * SLOT),
            latency=(5, 100),
        )
        checker = stream_checker(self.dut.job)
        parts = (self.responder, self.role, self.cpu, checker, *others)
        run(self.dut, self.engine, *parts, limit=limit, seed=self.seed)
        assert not self.cpu.parts, "a message that the firmware waits for the rest of"


def random_messages(rng, count):
    out = b""
    for _ in range(count):
        ident, length = rng.getrandbits(32), rng.choice([0, 4, rng.randint(0, 60)])
        kind = rng.random()
        if kind < 0.35:
            size = rng.choice([0, 1, 3, 12, 16, SEGMENT - 8, SEGMENT, rng.randint(0, LARGEST)])
            out += configuration(rng.randbytes(size))
        elif kind < 0.4:
            out += struct.pack("<B3xI", 1, rng.choice([LARGEST + 1, 1 << 31])) + bytes(99)
        elif kind < 0.6:
            out += data_message(ident, rng.randbytes(length), TYPE_CONFIGURATION, role=0)
        else:
            out += data_message(ident, rng.randbytes(length), rng.choice((TYPE_DATA, TYPE_STREAM)))
    return out[: rng.randrange(len(out) + 1)] if rng.random() < 0.3 else out


@pytest.mark.parametrize("rest", [False, True])
@seeds(2)
def test_random(rest, seed):
    """All kinds of messages; some connections vanish. The response precedes what is behind it."""
    bench = Bench(seed, rest=rest)
    rng, conns = bench.rng, []
    for _ in range(10):
        conn = Connection(random_messages(rng, rng.randint(0, 4)), chunk=rng.choice([11, 200]))
        if rng.random() < 0.25:
            at = rng.randint(0, len(conn.payload))
            conn.vanish = lambda c, at=at: c.delivered >= at and rng.random() < 0.02
        conns.append(conn)
    bench.run(conns)
    for conn in conns:
        want = frame(conn.payload, SEGMENT, work, TYPES, judge)[0]
        assert (conn.received == want) if conn.ok else want.startswith(conn.received)
    assert any(conn.ok for conn in conns)


@seeds(2)
def test_a_message_larger_than_the_ring(seed):
    """It comes whole, whatever else goes on; the data message behind it is answered after it."""
    bench = Bench(seed)
    images = [bench.rng.randbytes(2500 + k) for k in range(3)]
    conns = [Connection(configuration(image) + data_message(1, b"abc")) for image in images]
    others = [Connection(data_message(k, b"abc") * 4) for k in (0, 1, 2)]
    bench.run(conns + others)
    assert sorted(bench.cpu.done) == sorted(images)
    for conn in conns + others:
        assert conn.received == frame(conn.payload, SEGMENT, work, TYPES, judge)[0]


@seeds(2)
def test_the_rest_does_not_come(seed):
    """Time, FIN and the connection's end are each told to the firmware, once."""
    bench = Bench(seed)
    half = configuration(bytes(900))[: bench.rng.choice([8, 9, 300, 907])]
    late = Connection(half, fin=lambda c: c.got_fin)
    fin = Connection(half)
    lost = Connection(half, fin=lambda c: False, vanish=lambda c: c.delivered == len(half))
    other = Connection(configuration(bytes(3)) + data_message(1, b"abc"))
    bench.run([late, fin, lost, other], sweeping(bench.dut, 4000))
    assert late.received == error_message(Status.TIMED_OUT)
    assert fin.received == error_message(Status.TRUNCATED)
    assert other.received == frame(other.payload, SEGMENT, work, TYPES, judge)[0]
    assert (bench.cpu.late, bench.cpu.gone) == (1, lost.freed > 0)


@pytest.mark.parametrize("roles", [(0,), (1, 0)])
def test_a_configuration_gives_a_role(roles):
    """Only to its connection, until it ends, and not if it is refused; named roles stay."""
    rest = len(roles) == 1
    bench = Bench(3, roles=roles[:1], count=3, rest=rest)
    bench.cpu.gives = lambda payload: 32 | payload[0]
    streams = {
        10: configuration(bytes([2, 1])) + data_message(10, b""),
        11: configuration(bytes([2])) + data_message(11, b""),  # BAD_LENGTH
        12: configuration(bytes([2, 1])) + data_message(12, b"", role=1),
        13: data_message(13, b""),
    }
    bench.run([Connection(payload) for payload in streams.values()])
    assert bench.role.roles == {10: 2, 11: roles[0], 12: 1, 13: roles[0]}


def test_no_message_names_the_board():
    bench = Bench(4)
    conns = [Connection(data_message(1, b"abc", role=n)) for n in (29, 30, 31)]
    for number, conn in enumerate(conns):
        conn.payload = data_message(10 + number, b"", role=29 + number)
    bench.run(conns)
    assert bench.role.roles == {10: 29, 11: 31, 12: 31}


@seeds(2)
@at_sizes("services.smp_board.BoardWindow", sessions=64)
def test_window(size, seed):
    """Jobs of roles pass by while the CPU has one; answers are its own."""
    dut, rng = BoardWindow(**size), make_rng(seed, "window")
    sessions = size["sessions"]
    jobs = [
        {
            "role": rng.choice([0, 1, 31, BOARD, BOARD]),
            "session": rng.choice([0, sessions - 1, rng.randrange(sessions)]),
            "id": rng.getrandbits(3),
            "base": rng.randrange(1 << 20) << 12,
            "offset": rng.randrange(1 << 12),
            "length": rng.randrange(1 << 12),
        }
        for _ in range(60)
    ]
    board = [job for job in jobs if job["role"] == BOARD]
    others = [job for job in jobs if job["role"] != BOARD]
    answered, passed = [], []

    async def put(ctx):
        for job in jobs:
            await stream_put(ctx, dut.job, job, rng=rng)

    async def roles(ctx):
        for job in others:
            got = await stream_get(ctx, dut.jobs, rng=rng)
            assert {name: got[name] for name in job} == job
            answer = {"session": job["session"], "id": job["id"], "status": 9, "length": 1}
            await stream_put(ctx, dut.answers, answer, rng=rng)

    async def cpu(ctx):
        for number, job in enumerate(board):
            while not ctx.get(dut.csr.job) & 1:
                ctx.set(dut.csr.answer, rng.choice([0, GO]))  # with nothing to answer
                await ctx.tick()
                ctx.set(dut.csr.answer, 0)
                await ctx.tick()
            shown = [ctx.get(dut.csr.job), ctx.get(dut.csr.session), ctx.get(dut.csr.address)]
            word = job["length"] << 4 | job["id"] << 1 | 1
            assert shown == [word, job["session"], job["base"] + job["offset"]]
            ctx.set(dut.csr.next, number)
            ctx.set(dut.csr.role, number % 64)
            ctx.set(dut.csr.answer, GO | number % 7)
            await ctx.tick()
            ctx.set(dut.csr.answer, 0)
            ctx.set(dut.csr.next, rng.getrandbits(20))

    async def take(ctx):
        for _ in jobs:
            got = await stream_get(ctx, dut.answer, rng=rng)
            (passed if got["status"] == 9 else answered).append(got)

    run(dut, put, roles, cpu, take, limit=20_000, seed=seed)
    assert [(a["session"], a["id"]) for a in passed] == [(j["session"], j["id"]) for j in others]
    for number, (job, answer) in enumerate(zip(board, answered, strict=True)):
        assert answer["session"] == job["session"]
        assert (answer["status"], answer["length"]) == (number % 7, number)
        assert answer["id"] == number % 64
