"""The SMP framer between the engine's model and a role's model, against the naive framing model."""

import struct

import pytest
import smp_streams
from memory_bench import Driven, plainly, raw
from placed_model import PlacedModel
from service_model import Connection, EngineModel
from streams import MemoryResponder, make_rng, run, seeds, stream_checker
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.services.framer import SmpFramer
from trebuchet.models.smp_framing import (
    TYPE_CONFIGURATION,
    TYPE_DATA,
    TYPE_STREAM,
    data_message,
    error_message,
    frame,
)
from trebuchet.models.status import Status

SEGMENT_LOG2 = 9
SEGMENT = 1 << SEGMENT_LOG2
SLOT = 256
ROOM = SLOT - 16
POOL, SLOTS, SIZE = 0, 0x2000, 0x4000


def work(ident, operand):
    """What the test's role does: a result that depends on every byte, or an error."""
    if ident % 7 == 3:
        return Status.BAD_LENGTH, b""
    if ident % 7 == 5:
        return Status.STOPPED, b""
    return Status.OK, bytes(byte ^ (ident & 0xFF) for byte in operand[:ROOM])


class RoleModel:
    """Takes several jobs, reads operands at two random moments, answers in any order."""

    background = True

    def __init__(self, dut, memory, rng, source=2, delay=(1, 200)):
        self.dut, self.memory, self.rng = dut, memory, rng
        self.source, self.delay = source, delay
        self.jobs = []
        self.now = 0
        self.seen = []
        self.kinds = []
        self.roles = {}
        self.blocked = False

    def operand(self, job):
        ring = 1 << job.ring_log2
        assert ring == SEGMENT
        assert job.base % ring == 0
        assert job.offset < ring
        return bytes(self.memory[job.base + (job.offset + i) % ring] for i in range(job.length))

    def take(self, job):
        assert job.source == self.source
        assert job.room == ROOM
        slot = job.result - 16 - SLOTS
        assert slot % SLOT == 0
        assert slot // SLOT // 2 == job.session
        assert all(other.session != job.session for other, *_ in self.jobs), "two jobs in flight"
        operand = self.operand(job)
        self.seen.append((job.id, operand))
        self.kinds.append((job.id, JobKind(job.kind), job.first))
        self.roles[job.id] = job.role
        self.jobs.append((job, operand, self.now + self.rng.randint(*self.delay)))

    def finish(self):
        due = [entry for entry in self.jobs if entry[2] <= self.now]
        if not due:
            return None
        entry = self.rng.choice(due)
        self.jobs.remove(entry)
        job, operand, _ = entry
        assert self.operand(job) == operand, "the ring changed under the role"
        status, result = work(job.id, operand)
        self.memory[job.result : job.result + len(result)] = result
        return {
            "source": job.source,
            "session": job.session,
            "id": job.id,
            "status": int(status),
            "length": len(result),
        }

    def offer(self, ctx):
        self.ready = not self.blocked and len(self.jobs) < 3 and self.rng.random() < 0.5
        self.job_ready.set(ctx, self.ready)
        if self.answer is None and self.rng.random() < 0.5:
            self.answer = self.finish()
        self.answer_valid.set(ctx, self.answer is not None)
        if self.answer is not None:
            self.answer_payload.set(ctx, self.answer)

    async def __call__(self, ctx):
        dut, self.answer = self.dut, None
        self.job_ready, self.answer_valid = Driven(dut.job.ready), Driven(dut.answer.valid)
        self.answer_payload = Driven(dut.answer.payload)
        self.offer(ctx)
        samples = dut.job.valid, raw(dut.job.payload), dut.answer.ready
        async for _, _, job_valid, job, answer_ready in ctx.tick().sample(*samples):
            self.now += 1
            if job_valid and self.ready:
                self.take(plainly(dut.job.payload, job))
            if self.answer is not None and answer_ready:
                self.answer = None
            self.offer(ctx)


class Bench:
    """A framer with everything around it."""

    def __init__(
        self, seed, *, width=32, sessions=4, kinds=(), roles=(0,), count=1, rest=False, **role
    ):
        self.rng = make_rng(seed, "bench")
        self.seed = seed
        self.sessions = sessions
        self.memory = bytearray(self.rng.randbytes(SIZE))
        self.dut = SmpFramer(
            width, sessions, 2, SEGMENT_LOG2, SLOTS, SLOT, kinds, None, roles, count, rest
        )
        self.model = PlacedModel if rest else EngineModel
        self.responder = MemoryResponder(
            self.dut.mem, self.memory, rng=make_rng(seed, "memory"), latency=(2, 30)
        )
        self.role = RoleModel(self.dut, self.memory, make_rng(seed, "role"), **role)
        self.counters = {}

    def run(self, conns, *others, limit=80_000, latency=(5, 100)):
        engine = self.engine = self.model(
            self.dut.service,
            self.memory,
            conns,
            rng=self.rng,
            sessions=self.sessions,
            segment_log2=SEGMENT_LOG2,
            pool=POOL,
            responder=self.responder,
            writable=range(SLOTS, SLOTS + 2 * self.sessions * SLOT),
            latency=latency,
        )

        async def main(ctx):
            await engine(ctx)
            for register in self.dut.csr.signature.block.registers:
                self.counters[register.name] = ctx.get(getattr(self.dut.csr, register.name))

        run(
            self.dut,
            main,
            self.responder,
            self.role,
            stream_checker(self.dut.job),
            *others,
            limit=limit,
            seed=self.seed,
        )


def random_stream(rng, messages):
    return smp_streams.random_stream(rng, messages, SEGMENT, 0.03, (0, 1, 2, 4, 255))


def check(conn):
    want, jobs, lost = frame(conn.payload, SEGMENT, work)
    if conn.ok:
        assert conn.received == want
        assert conn.got_fin
        assert lost or conn.freed >= sum(12 + len(operand) for _, operand in jobs)
    else:
        assert conn.gone
        assert want.startswith(conn.received)


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(3)
def test_random(width, seed):
    bench = Bench(seed, width=width)
    rng = bench.rng
    conns = []
    for _ in range(16):
        payload = random_stream(rng, rng.randint(0, 5))
        conn = Connection(payload, chunk=rng.choice([11, 200, 600]))
        if rng.random() < 0.25:
            conn.vanish = vanish_after(rng, rng.randint(0, len(payload)))
        conns.append(conn)
    bench.run(conns)
    assert not bench.responder.busy
    for conn in conns:
        check(conn)
    assert any(conn.ok for conn in conns)
    assert bench.counters["messages"] == len(bench.role.seen)


def vanish_after(rng, count):
    return lambda conn: conn.delivered >= count and rng.random() < 0.02


def test_counters_and_jobs():
    """Every counter, with connections that are known; the operands are the messages' data."""
    bench = Bench(1)
    rng = bench.rng
    good = [data_message(7 * i, rng.randbytes(20)) for i in range(5)]
    conns = [
        Connection(b"".join(good)),
        Connection(data_message(3, b"x")),
        Connection(data_message(5, b"x")),
        Connection(struct.pack("<B3xI", 1, 4) + b"abcd" * 30),
        Connection(struct.pack("<B3xI", 3, SEGMENT - 7) + bytes(700)),
        Connection(struct.pack("<B3xI", 3, 2) + b"ab" + good[0]),
        Connection(good[0][:15], fin=lambda c: False, vanish=lambda c: c.delivered == 15),
    ]
    bench.run(conns)
    assert conns[3].received == error_message(Status.BAD_TYPE)
    assert conns[4].received == error_message(Status.TOO_LARGE)
    assert bench.counters == {
        "messages": 8,
        "answers": 6,
        "bad_type": 1,
        "bad_length": 2,
        "too_large": 1,
        "no_role": 0,
        "stopped": 1,
        "no_room": 0,
        "timed_out": 0,
        "stale": 0,
        "aborted": 1,
        "lease": 0,
        "guard": 0,
    }
    for conn in conns[:6]:
        check(conn)
    for ident, operand in frame(conns[0].payload, SEGMENT, work)[1]:
        assert (ident, operand) in bench.role.seen


def test_blocked_role_stops_nobody_else():
    """While the role takes no job, other connections still get errors, close, and are released."""
    bench = Bench(2)
    bench.role.blocked = True
    stuck = [Connection(data_message(i, b"abc")) for i in range(2)]
    bad = [Connection(bytes(8)) for _ in range(1)]
    others = [Connection(b"", chunk=9) for _ in range(6)]
    gone = [Connection(data_message(1, b"ab"), vanish=lambda c: c.delivered == 14)]

    async def release(ctx):
        # A bad header is only read when the job register is free, so `bad` may wait for it too.
        while not all(conn.released for conn in others):
            await ctx.tick()
        assert bench.role.seen == []
        bench.role.blocked = False

    bench.run(stuck + others + gone + bad, release)
    for conn in stuck + bad:
        check(conn)


def test_client_vanishes_while_the_role_works():
    """The session's number and ring stay reserved until the role has answered."""
    bench = Bench(3, sessions=2, delay=(400, 600))
    lost = [
        Connection(data_message(i, b"payload"), fin=lambda c: False, vanish=lambda c: c.freed == 0)
        for i in range(6)
    ]
    for conn in lost:
        conn.vanish = lambda c: c.delivered == len(c.payload) and bench.role.jobs
    kept = [Connection(data_message(i, b"payload")) for i in range(4)]
    bench.run(lost + kept)
    assert bench.counters["aborted"] >= 1
    assert all(conn.released for conn in lost)
    for conn in kept:
        check(conn)


def mixed_stream(rng, numbers, messages):
    """Messages of every type; also what kind of job each becomes and whether a record begins."""
    stream, jobs, going = b"", [], False
    for _ in range(messages):
        ident = next(numbers)
        kind, job = rng.choice(
            [
                (TYPE_DATA, JobKind.DATA),
                (TYPE_STREAM, JobKind.STREAM),
                (TYPE_STREAM, JobKind.STREAM),
                (TYPE_CONFIGURATION, JobKind.CONFIGURE),
            ]
        )
        stream += data_message(ident, rng.randbytes(rng.randint(0, 40)), kind)
        jobs.append((ident, job, not going if kind == TYPE_STREAM else None))
        if kind == TYPE_STREAM:
            going = work(ident, b"")[0] == Status.OK
    return stream, jobs


@seeds(2)
def test_kinds(seed):
    """Stream and configuration messages; session numbers are used again by new connections."""
    bench = Bench(seed, kinds=(JobKind.STREAM, JobKind.CONFIGURE))
    numbers = iter(range(1000))
    conns, wanted = [], []
    for _ in range(10):
        payload, jobs = mixed_stream(bench.rng, numbers, bench.rng.randint(1, 6))
        conns.append(Connection(payload, chunk=bench.rng.choice([11, 200])))
        wanted += jobs
    bench.run(conns)
    for conn in conns:
        types = (TYPE_DATA, TYPE_STREAM, TYPE_CONFIGURATION)
        assert conn.ok
        assert conn.received == frame(conn.payload, SEGMENT, work, types)[0]
    seen = {ident: (kind, first) for ident, kind, first in bench.role.kinds}
    assert len(seen) == len(wanted)
    for ident, kind, first in wanted:
        assert seen[ident][0] == kind
        assert first is None or seen[ident][1] == first
    assert {first for _, _, first in wanted} == {None, True, False}


@pytest.mark.parametrize("asked", [None, 0, 1, 2, 30, 31, 254])
@pytest.mark.parametrize("width", [32, 64])
def test_a_message_names_its_role(asked, width):
    """With one port and role too; what a job's field cannot hold is no role."""
    bench = Bench(7, width=width, roles=(0,))
    conn = Connection(data_message(1, b"abc", role=asked))
    bench.run([conn])
    check(conn)
    assert bench.role.roles == {1: 0 if asked is None else min(asked, 31)}


@seeds(3)
def test_ports_have_roles(seed):
    """Each connection's messages go to its port's role; what it sends leaves by its port."""
    bench = Bench(seed, roles=(2, 0, 31), count=3)
    dut, rng, numbers = bench.dut, bench.rng, iter(range(1000))
    ports, wanted = {}, {}
    conns = [Connection(b"") for _ in range(12)]
    for conn in conns:
        conn.port = rng.randrange(3)
        for _ in range(rng.randint(0, 4)):
            ident, named = next(numbers), rng.choice([None, None, 0, 1, 2, 9])
            conn.payload += data_message(ident, rng.randbytes(rng.randint(0, 40)), role=named)
            wanted[ident] = (2, 0, 31)[conn.port] if named is None else named

    async def origin(ctx):
        ctx.set(dut.doors, 7)
        event = dut.service.event
        async for _ in ctx.tick():  # the engine, which is before it, has offered what it will
            session = ctx.get(event.payload.session)
            if session in bench.engine.live:
                ports[session] = bench.engine.live[session].port
                ctx.set(dut.origin, ports[session])

    async def watch(ctx):
        samples = [dut.to]
        for port in (dut.service.tx, dut.service.free):
            samples += [port.valid & port.ready, port.payload.session]
        async for _, _, to, *moved in ctx.tick().sample(*samples):
            for moves, session in zip(moved[::2], moved[1::2], strict=True):
                assert not moves or to == ports[session]

    origin.background = watch.background = True
    bench.run(conns, watch, origin)  # in this order: a number may be given anew at once
    for conn in conns:
        check(conn)
    assert bench.role.roles == wanted


def test_a_closed_door_is_in_nobodys_way():
    """Messages for a role that takes none wait; those for the other are worked on meanwhile."""
    bench = Bench(8, roles=(0,), count=2)
    stuck = [Connection(data_message(i, b"abc", role=0)) for i in range(2)]
    others = [Connection(data_message(10 + i, b"abc", role=1)) for i in range(8)]

    async def doors(ctx):
        ctx.set(bench.dut.doors, 2)
        while not all(conn.released for conn in others):
            await ctx.tick()
        assert {role for role in bench.role.roles.values()} == {1}
        ctx.set(bench.dut.doors, 3)

    bench.run(stuck + others, doors)
    for conn in stuck + others:
        check(conn)


def test_kinds_the_role_does_not_have():
    bench = Bench(5)
    conns = [Connection(data_message(1, bytes(8), kind)) for kind in (TYPE_STREAM, 1)]
    bench.run(conns)
    assert [conn.received for conn in conns] == 2 * [error_message(Status.BAD_TYPE)]


@pytest.mark.parametrize("sessions", [1, 3])
def test_table_sizes(sessions):
    bench = Bench(sessions, sessions=sessions)
    conns = [Connection(random_stream(bench.rng, 3)) for _ in range(6)]
    bench.run(conns)
    for conn in conns:
        check(conn)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [*range(100, 105), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(105, 130))],
)
def test_random_long(seed):
    test_random(32, seed)


def test_bad_parameters():
    for args, message in [
        ((33, 4, 0, 12, 0, 256), "Data path width must be one of"),
        ((32, 0, 0, 12, 0, 256), "Number of sessions must be"),
        ((32, 4, 15, 12, 0, 256), "Job source must be 0 to 14, not 15"),
        ((32, 4, 0, 21, 0, 256), "Segment size must be"),
        ((32, 4, 0, 12, 8, 256), "Base of the slots must be a multiple of 16, not 8"),
        ((32, 4, 0, 12, 0, 200), "Bytes of a slot must be a power of two from 32"),
        ((32, 4, 0, 12, 0, 256, (), 4097), "Largest message must be 9 to 4096 bytes, not 4097"),
        ((32, 4, 0, 12, 0, 256, (), 8), "Largest message must be 9 to 4096 bytes, not 8"),
        ((32, 4, 0, 12, 0, 256, (), None, ()), "Roles by port must be numbers 0 to 31, not"),
        ((32, 4, 0, 12, 0, 256, (JobKind.DATA,)), "Kinds must be STREAM or CONFIGURE, not"),
    ]:
        with pytest.raises(ValueError, match=message):
            SmpFramer(*args)
