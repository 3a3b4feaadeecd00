"""The role slot around a small role, and the empty slot."""

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from streams import make_rng, plain, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.csr import Register, RegisterBlock
from trebuchet.cores.roles.contract import SOURCE_CPU, RoleSignature
from trebuchet.cores.roles.slot import RoleSlot
from trebuchet.models.status import Status

OWN = RegisterBlock(
    "own",
    (
        Register("key", "rw", 8, reset=5),
        Register("count", "ro", 16),
        Register("flags", "w1c", 2),
    ),
)


class AddressRole(wiring.Component):
    """Answers after ``id mod 8`` cycles: length = operand length + key; BAD_LENGTH if it is 0."""

    def __init__(self):
        super().__init__(RoleSignature(OWN, 64, 3))

    def elaborate(self, platform):
        m = Module()
        wait = Signal(3)
        job, answer = self.job.payload, self.answer.payload
        m.d.sync += self.csr.flags.eq(self.csr.flags & ~self.csr.flags_clear)
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.job.ready.eq(1)
                m.d.sync += [
                    wait.eq(job.id),
                    answer.source.eq(job.source),
                    answer.session.eq(job.session),
                    answer.id.eq(job.id),
                    answer.status.eq(0),
                    answer.length.eq(job.length + self.csr.key),
                ]
                with m.If(self.job.valid):
                    m.d.sync += self.csr.count.eq(self.csr.count + 1)
                    m.next = "WORK"
                    with m.If(job.length == 0):
                        m.d.sync += [answer.status.eq(Status.BAD_LENGTH), answer.length.eq(0)]
                        m.d.sync += self.csr.flags.eq(3)
            with m.State("WORK"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.answer.valid.eq(1)
                with m.If(self.answer.ready):
                    m.next = "TAKE"
        return m


def job_of(rng, length):
    return {
        "source": rng.randrange(SOURCE_CPU),
        "session": rng.getrandbits(17),
        "id": rng.getrandbits(32),
        "length": length,
    }


def answer_of(job, status, length):
    return {**{k: job[k] for k in ("source", "session", "id")}, "status": status, "length": length}


async def strobe(ctx, signal, value):
    ctx.set(signal, value)
    await ctx.tick()
    ctx.set(signal, 0)


async def cpu_job(ctx, csr, addr, length, result=0x100, room=64):
    """Run one job as firmware does; return (status, length)."""
    ctx.set(csr.operand_addr, addr)
    ctx.set(csr.operand_length, length)
    ctx.set(csr.result_addr, result)
    ctx.set(csr.result_room, room)
    await strobe(ctx, csr.start, 1)
    assert ctx.get(csr.busy) == 1
    while ctx.get(csr.busy):
        await ctx.tick()
    assert ctx.get(csr.interrupt_status) & 1
    return ctx.get(csr.result_status), ctx.get(csr.result_length)


@seeds(4)
def test_network_and_cpu_jobs(seed):
    """Jobs of both kinds at once: each is answered once, in the right place."""
    dut = RoleSlot(AddressRole(), "role0", 64, 3)
    rng = make_rng(seed, "jobs")
    jobs = [job_of(rng, rng.choice([0, 1, 100])) for _ in range(40)]

    async def put(ctx):
        rng = make_rng(seed, "put")
        for job in jobs:
            await stream_put(ctx, dut.job, job, rng=rng)

    async def get(ctx):
        rng = make_rng(seed, "get")
        for job in jobs:
            bad = job["length"] == 0
            want = answer_of(job, Status.BAD_LENGTH if bad else 0, 0 if bad else job["length"] + 9)
            assert plain(await stream_get(ctx, dut.answer, rng=rng)) == want

    async def cpu(ctx):
        rng = make_rng(seed, "cpu")
        ctx.set(dut.csr.key, 9)
        for i in range(10):
            ctx.set(dut.csr.interrupt_enable, i & 1)
            assert await cpu_job(ctx, dut.csr, rng.getrandbits(19), 1 + i) == (Status.OK, 10 + i)
            assert ctx.get(dut.irq) == i & 1
            assert ctx.get(dut.csr.interrupt_status) == 1 | (i & 1) << 1
            await strobe(ctx, dut.csr.interrupt_status_clear, 3)
            assert ctx.get(dut.csr.interrupt_status) == 0
            assert ctx.get(dut.irq) == 0

    async def main(ctx):
        await cpu(ctx)
        while ctx.get(dut.csr.jobs) < len(jobs) + 10:
            await ctx.tick()
        assert ctx.get(dut.csr.count) == len(jobs) + 10

    checkers = [stream_checker(dut.answer), stream_checker(dut.role.job)]
    run(dut, put, get, main, *checkers, limit=6000, seed=seed)


def test_cpu_job_reaches_the_role():
    """Where the operand and the result are, as the role sees it."""
    dut = RoleSlot(AddressRole(), "role0", 64, 3)
    seen = []

    async def watch(ctx):
        while not seen:
            _, _, valid, job = await ctx.tick().sample(dut.role.job.valid, dut.role.job.payload)
            if valid:
                seen.append(plain(job))

    async def main(ctx):
        assert await cpu_job(ctx, dut.csr, 0x8765_4321, 300, 0xABC0, 77) == (Status.OK, 305)

    run(dut, main, watch, limit=200)
    job = seen[0]
    assert job["source"] == SOURCE_CPU
    assert job["ring_log2"] == 20
    assert job["base"] % (1 << 20) == 0
    assert job["base"] + job["offset"] == 0x8765_4321
    assert (job["length"], job["result"], job["room"]) == (300, 0xABC0, 77)


def test_cpu_job_refused():
    """An unaligned result; nothing reaches the role."""
    dut = RoleSlot(AddressRole(), "role0", 64, 3)

    async def main(ctx):
        bad = Status.BAD_LENGTH, 0
        assert await cpu_job(ctx, dut.csr, 0x0FFFFE, 2, result=4) == bad
        assert await cpu_job(ctx, dut.csr, 0x0FFFFE, 2, result=8) == bad
        assert ctx.get(dut.csr.count) == 0
        assert await cpu_job(ctx, dut.csr, 0x0FFFFE, 2) == (Status.OK, 7)
        assert (ctx.get(dut.csr.jobs), ctx.get(dut.csr.errors)) == (3, 2)
        assert 0 < ctx.get(dut.csr.cycles) < 30

    run(dut, main, limit=300)


@seeds(2)
def test_switched_off(seed):
    """Jobs come while the role is switched off and on: STOPPED or done, never lost."""
    dut = RoleSlot(AddressRole(), "role0", 64, 3)
    rng = make_rng(seed, "jobs")
    jobs = [job_of(rng, 4) for _ in range(60)]
    statuses = []
    pending = {job["id"]: job for job in jobs}

    async def put(ctx):
        for job in jobs:
            await stream_put(ctx, dut.job, job, rng=make_rng(seed, job["id"]))

    async def get(ctx):
        for _ in jobs:
            answer = plain(await stream_get(ctx, dut.answer, rng=rng))
            stopped = answer["status"] == Status.STOPPED
            want = answer_of(pending.pop(answer["id"]), answer["status"], 0 if stopped else 9)
            assert answer == want
            statuses.append(answer["status"])

    async def switch(ctx):
        rng = make_rng(seed, "switch")
        for _ in range(10):
            ctx.set(dut.csr.enable, rng.getrandbits(1))
            await ctx.tick().repeat(rng.randint(1, 60))
        ctx.set(dut.csr.enable, 0)
        await ctx.tick().repeat(100)

    async def cpu(ctx):
        await switch(ctx)
        assert await cpu_job(ctx, dut.csr, 0, 4) == (Status.STOPPED, 0)

    run(dut, put, get, cpu, stream_checker(dut.answer), limit=4000, seed=seed)
    assert set(statuses) == {Status.OK, Status.STOPPED}


def test_empty_slot():
    dut = RoleSlot(None, "role1")
    jobs = [job_of(make_rng(i, "job"), 8) for i in range(5)]

    async def put(ctx):
        for job in jobs:
            await stream_put(ctx, dut.job, job)

    async def main(ctx):
        rng = make_rng(0, "get")
        for job in jobs:
            want = answer_of(job, Status.NO_ROLE, 0)
            assert plain(await stream_get(ctx, dut.answer, rng=rng)) == want
        assert await cpu_job(ctx, dut.csr, 0, 4) == (Status.NO_ROLE, 0)
        assert ctx.get(dut.csr.errors) == 6
        assert ctx.get(dut.csr.cycles) == 0

    run(dut, put, main, limit=500)


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"Memory port of role 'role0' must be MemorySignature"):
        RoleSlot(AddressRole(), "role0", 32)
