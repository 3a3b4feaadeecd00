"""Life of a role in its slot: on, off, reset alone; nothing is lost, neighbours go on."""

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hung.role import HungRole
from role_bench import Job, RoleBench, Write
from streams import MemoryRequester, MemoryResponder, make_rng, run, seeds, stream_checker
from trebuchet.cores.memory import MemorySignature
from trebuchet.cores.memory_arbiter import MemoryArbiter
from trebuchet.cores.roles.loopback.role import LoopbackRole
from trebuchet.cores.roles.slot import RoleSlot
from trebuchet.models.status import Status


def check(jobs, answers, allowed):
    for job, answer in zip(jobs, answers, strict=True):
        assert answer.status in allowed
        assert answer.result == (job.operand if answer.status == Status.OK else b"")


@seeds(3)
def test_reset_at_any_time(seed):
    """Jobs in the role are answered ABORTED, after their last access to memory; the next runs."""
    rng = make_rng(seed, "operations")
    operations = []
    for _ in range(20):
        operations.append(Job(rng.randbytes(rng.choice([1, 20, 200])), room=200))
        if rng.random() < 0.5:
            operations.append(Write("reset", wait=rng.randrange(60), idle=False))
    last = Job(rng.randbytes(40))
    dut = RoleSlot(LoopbackRole(), "role0")
    answers = RoleBench(dut, seed=seed).run([*operations, last], limit=30_000)
    jobs = [op for op in operations if isinstance(op, Job)]
    check([*jobs, last], answers, {Status.OK, Status.ABORTED})
    assert {a.status for a in answers} == {Status.OK, Status.ABORTED}
    assert answers[-1].result == last.operand


@seeds(2)
def test_hung_role_is_reset(seed):
    """It never answers, and its memory traffic never ends by itself; nor does it end its bursts."""
    dut = RoleSlot(HungRole(), "role0")
    reset = Write("reset", wait=150, idle=False)
    operations = [Job(bytes(64)), Job(bytes(64)), reset, Job(bytes(64)), reset]
    states = []

    async def watch(ctx):
        async for _, _, state in ctx.tick().sample(dut.csr.state):
            if state not in states[-1:]:
                states.append(state)

    watch.background = True
    answers = RoleBench(dut, seed=seed).run(operations, limit=5000, more=[watch])
    assert [a.status for a in answers] == [Status.ABORTED] * 3
    # active, active and resetting, resetting, idle
    assert states == [0, 1, 3, 2, 0, 1, 3, 2, 0]


def ticking(dut, every):
    """A tick in one of ``every`` cycles."""

    async def tick(ctx):
        while True:
            await ctx.tick().repeat(every - 1)
            ctx.set(dut.tick, 1)
            await ctx.tick()
            ctx.set(dut.tick, 0)

    tick.background = True
    return tick


@seeds(2)
def test_the_watchdog_resets_a_hung_role_and_bars_it_after_three(seed):
    """Each of three jobs is answered ``ABORTED`` within twice the time; the others ``STOPPED``."""
    dut = RoleSlot(HungRole(), "role0")
    jobs = [Job(bytes(64)) for _ in range(5)]
    operations = [Write("watchdog", 10), *jobs]
    times = {}

    async def ends(ctx):
        samples = dut.csr.hangs, dut.csr.state, dut.on
        cycle = 0
        async for _, _, hangs, state, on in ctx.tick().sample(*samples):
            cycle += 1
            times.setdefault(hangs, cycle)
            assert on == ((state >> 2) ^ 1)

    ends.background = True
    bench = RoleBench(dut, seed=seed, in_flight=1)
    answers = bench.run(operations, limit=10_000, more=[ticking(dut, 8), ends])
    assert [a.status for a in answers] == [Status.ABORTED] * 3 + [Status.STOPPED] * 2
    assert set(times) == {0, 1, 2, 3}
    for before, after in zip((times[1], times[2]), (times[2], times[3]), strict=True):
        assert 80 <= after - before <= 160 + 150  # the reset, and what the memory owes


@pytest.mark.parametrize("wake", ["reset", "enable"])
def test_a_barred_role_runs_again(wake):
    """After a reset by hand, or switched off and on; what was refused meanwhile is ``STOPPED``."""
    dut = RoleSlot(HungRole(), "role0")
    operations = [Write("watchdog", 4), *(Job(b"x") for _ in range(4))]
    operations += [Write("reset")] if wake == "reset" else [Write("enable", 0), Write("enable", 1)]
    operations += [Job(b"y")]
    answers = RoleBench(dut, seed=2, in_flight=1).run(
        operations, limit=10_000, more=[ticking(dut, 8)]
    )
    assert [a.status for a in answers] == [Status.ABORTED] * 3 + [Status.STOPPED, Status.ABORTED]


@seeds(2)
def test_the_watchdog_leaves_a_role_alone_that_answers(seed):
    """Though it always has a job, each is younger than the limit; 0 is no limit."""
    dut = RoleSlot(LoopbackRole(), "role0")
    rng = make_rng(seed, "jobs")
    jobs = [Job(rng.randbytes(60)) for _ in range(40)]
    answers = RoleBench(dut, seed=seed, in_flight=4).run(
        [Write("watchdog", 60), *jobs], limit=20_000, more=[ticking(dut, 8)]
    )
    assert {a.status for a in answers} == {Status.OK}
    dut = RoleSlot(HungRole(), "role0")
    operations = [Write("watchdog", 0), Job(b"x"), Write("reset", wait=2000, idle=False)]
    answers = RoleBench(dut, seed=seed).run(operations, limit=6000, more=[ticking(dut, 1 + 1)])
    assert [a.status for a in answers] == [Status.ABORTED]
    assert answers[0].answered >= 2000


@seeds(2)
def test_switched_off_and_on(seed):
    dut = RoleSlot(LoopbackRole(), "role0")
    rng = make_rng(seed, "operations")
    operations, expected = [], []
    for on in (1, 0, 1, 0, 1):
        operations.append(Write("enable", on))
        for _ in range(3):
            operations.append(Job(rng.randbytes(30)))
            expected.append(Status.OK if on else Status.STOPPED)
        if rng.random() < 0.5:
            operations.append(Write("reset"))  # changes nothing about being on or off
    answers = RoleBench(dut, seed=seed).run(operations, limit=10_000)
    assert [a.status for a in answers] == expected


def test_a_stopped_hung_role_refuses_and_still_resets():
    dut = RoleSlot(HungRole(), "role0")
    operations = [
        Job(b"x"),
        Job(b"x"),
        Write("enable", 0, wait=50, idle=False),
        Job(b"y"),
        Job(b"y"),
    ]
    operations.append(Write("reset", wait=100, idle=False))
    answers = RoleBench(dut, seed=1, in_flight=6).run(operations, limit=3000)
    stopped, aborted = Status.STOPPED, Status.ABORTED
    assert [a.status for a in answers] == [aborted, aborted, stopped, stopped]


def test_a_job_of_the_cpu_is_aborted():
    dut = RoleSlot(HungRole(), "role0")
    memory = bytearray(1024)

    async def cpu(ctx):
        ctx.set(dut.csr.operand_length, 5)
        ctx.set(dut.csr.start, 1)
        await ctx.tick()
        ctx.set(dut.csr.start, 0)
        await ctx.tick().repeat(50)
        assert ctx.get(dut.csr.busy) == 1
        ctx.set(dut.csr.reset, 1)
        await ctx.tick()
        ctx.set(dut.csr.reset, 0)
        while ctx.get(dut.csr.busy):
            await ctx.tick()
        assert ctx.get(dut.csr.result_status) == Status.ABORTED
        assert ctx.get(dut.csr.errors) == 1

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(0, "memory"))
    run(dut, cpu, responder, limit=1000)


@pytest.mark.parametrize("operation", ["job", "reset"])
def test_absent_role(operation):
    dut = RoleSlot(None, "role1")
    operations = [Job(b"abc"), *([Write("reset")] if operation == "reset" else []), Job(b"")]
    answers = RoleBench(dut, seed=0).run(operations, limit=1000)
    assert [a.status for a in answers] == [Status.NO_ROLE] * 2


@seeds(1)
def test_neighbour_on_the_same_memory(seed):
    """A role is reset again and again; another requester's bursts all come back right."""

    class Pair(wiring.Component):
        def __init__(self):
            self.slot = RoleSlot(LoopbackRole(), "role0")
            self.arbiter = MemoryArbiter(2, 32, 2)
            super().__init__({"mem": Out(MemorySignature(32, 3)), "other": In(MemorySignature())})
            self.job, self.answer, self.csr = self.slot.job, self.slot.answer, self.slot.csr

        def elaborate(self, platform):
            m = Module()
            m.submodules.slot, m.submodules.arbiter = self.slot, self.arbiter
            wiring.connect(m, self.slot.mem, self.arbiter.ports[0])
            wiring.connect(m, wiring.flipped(self.other), self.arbiter.ports[1])
            wiring.connect(m, self.arbiter.mem, wiring.flipped(self.mem))
            return m

    dut = Pair()
    rng = make_rng(seed, "pair")
    memory = bytearray(1 << 12)
    other = MemoryRequester(dut.other, rng=make_rng(seed, "other"))
    finished = []

    async def neighbour(ctx):
        for i in range(12):
            content = rng.randbytes(4 * rng.randint(1, 16))
            at = 0x800 + 64 * (i % 8)
            await other.write(ctx, at, content, tag=i % 4)
            assert await other.read(ctx, at, len(content) // 4, tag=i % 3) == content
        finished.append(True)

    async def jobs(ctx):
        gaps = make_rng(seed, "jobs")
        ctx.set(dut.answer.ready, 1)
        ctx.set(dut.job.payload, {"ring_log2": 10, "length": 200, "result": 0x400, "room": 256})
        ctx.set(dut.job.valid, 1)
        while not finished:
            for _ in range(gaps.randint(1, 150)):
                await ctx.tick()
            ctx.set(dut.csr.reset, 1)
            await ctx.tick()
            ctx.set(dut.csr.reset, 0)

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))
    run(dut, neighbour, jobs, other, responder, stream_checker(dut.answer), limit=20_000, seed=seed)
