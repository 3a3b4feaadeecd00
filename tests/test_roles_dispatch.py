"""The dispatcher: jobs go to idle instances, each is answered once, stopped ones are skipped."""

import pytest
from streams import make_rng, plain, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.roles.contract import JobKind, JobLayout
from trebuchet.cores.roles.dispatch import Dispatcher
from trebuchet.models.status import Status


def job_of(rng, number):
    job = {name: rng.getrandbits(f.width) for name, f in JobLayout if f.shape is not JobKind}
    return job | {"id": number, "kind": rng.choice(list(JobKind))}


def answer_of(job, instance):
    """What instance number ``instance`` answers; the length tells who it was."""
    same = {name: job[name] for name in ("source", "session", "id")}
    return same | {"status": Status.OK, "length": 100 + instance}


class Instances:
    """Naive role instances: up to ``depth`` jobs each, answered in any order after a while."""

    def __init__(self, dut, seed, delay, limits=None):
        self.dut, self.seed, self.delay = dut, seed, delay
        self.limits = limits or [dut.depth] * dut.n
        self.held = [[] for _ in range(dut.n)]
        self.given = []  # (instance, number of jobs it had) of each job

    def benches(self):
        return [bench(k) for k in range(self.dut.n) for bench in (self._taker, self._answerer)]

    def _taker(self, k):
        async def take(ctx):
            rng = make_rng(self.seed, f"take{k}")
            while True:
                if len(self.held[k]) >= self.limits[k]:
                    await ctx.tick()
                    continue
                job = plain(await stream_get(ctx, self.dut.jobs[k], rng=rng))
                self.given.append((k, len(self.held[k])))
                assert len(self.held[k]) < self.dut.depth, f"instance {k} got one too many"
                self.held[k].append(job)

        take.background = True
        return take

    def _answerer(self, k):
        async def answer(ctx):
            rng = make_rng(self.seed, f"answer{k}")
            while True:
                for _ in range(rng.randint(1, self.delay(k))):
                    await ctx.tick()
                if self.held[k]:
                    job = rng.choice(self.held[k])
                    await stream_put(ctx, self.dut.answers[k], answer_of(job, k), rng=rng)
                    self.held[k].remove(job)

        answer.background = True
        return answer


def checkers(dut):
    ports = [dut.answer, *(dut.jobs[k] for k in range(dut.n))]
    return [stream_checker(port) for port in ports]


@pytest.mark.parametrize(("n", "depth"), [(1, 1), (1, 2), (2, 1), (3, 2), (4, 1), (5, 3)])
@seeds(2)
def test_every_job_is_answered_once(n, depth, seed):
    dut = Dispatcher(n, depth)
    rng = make_rng(seed, "jobs")
    jobs = {number: job_of(rng, number) for number in range(60)}
    instances = Instances(dut, seed, lambda k: 20 + 15 * k)

    async def put(ctx):
        rng = make_rng(seed, "put")
        for job in jobs.values():
            await stream_put(ctx, dut.job, job, rng=rng)

    async def get(ctx):
        rng = make_rng(seed, "get")
        left = dict(jobs)
        while left:
            answer = plain(await stream_get(ctx, dut.answer, rng=rng))
            assert answer == answer_of(left.pop(answer["id"]), answer["length"] - 100)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.busy) == 0

    run(dut, put, get, *instances.benches(), *checkers(dut), limit=20_000, seed=seed)
    assert {k for k, _ in instances.given} == set(range(n))
    assert {had for _, had in instances.given} == set(range(depth))


def test_a_slow_instance_does_not_hold_the_others():
    """Three quick instances and one that never answers: it keeps its job, the rest goes on."""
    dut = Dispatcher(4)
    rng = make_rng(0, "jobs")
    jobs = [job_of(rng, number) for number in range(41)]
    instances = Instances(dut, 0, lambda k: 4)
    dead = 2

    async def put(ctx):
        for job in jobs:
            await stream_put(ctx, dut.job, job)

    async def get(ctx):
        for _ in range(40):
            answer = plain(await stream_get(ctx, dut.answer))
            assert answer["length"] != 100 + dead
        await ctx.tick().repeat(20)
        assert ctx.get(dut.busy) == 1 << dead

    benches = instances.benches()
    del benches[2 * dead + 1]
    run(dut, put, get, *benches, *checkers(dut), limit=1500)
    assert [k for k, _ in instances.given].count(dead) == 1


def test_idle_instances_go_first_and_in_turn():
    """Depth 2, nobody answers: each gets one job, in turn, and only then a second one."""
    dut = Dispatcher(3, 2)
    rng = make_rng(1, "jobs")
    order = []

    async def put(ctx):
        for k in range(3):
            ctx.set(dut.jobs[k].ready, 1)
        await ctx.tick()
        for number in range(6):
            ctx.set(dut.job.payload, job_of(rng, number))
            ctx.set(dut.job.valid, 1)
            ready = 0
            while not ready:
                _, _, ready, *valids = await ctx.tick().sample(
                    dut.job.ready, *(dut.jobs[k].valid for k in range(3))
                )
            order.append(valids.index(1))
        await ctx.tick()
        assert ctx.get(dut.job.ready) == 0

    cycles = run(dut, put, limit=50)
    assert sorted(order[:3]) == sorted(order[3:]) == [0, 1, 2]
    assert [(b - a) % 3 for a, b in zip(order, order[1:], strict=False)] == [1] * 5
    assert cycles <= 9, "a job a cycle"


@seeds(3)
def test_instances_are_stopped_and_drained(seed):
    """Instances go off and on at random: an idle one that is off stays without jobs."""
    dut = Dispatcher(3)
    rng = make_rng(seed, "jobs")
    jobs = {number: job_of(rng, number) for number in range(80)}
    instances = Instances(dut, seed, lambda k: 25)
    statuses = []

    async def put(ctx):
        rng = make_rng(seed, "put")
        for job in jobs.values():
            await stream_put(ctx, dut.job, job, rng=rng)

    async def get(ctx):
        rng = make_rng(seed, "get")
        left = dict(jobs)
        while left:
            answer = plain(await stream_get(ctx, dut.answer, rng=rng))
            want = answer_of(left.pop(answer["id"]), answer["length"] - 100)
            if answer["status"] == Status.STOPPED:
                want |= {"status": Status.STOPPED, "length": 0}
            assert answer == want
            statuses.append(answer["status"])

    async def switch(ctx):
        rng = make_rng(seed, "switch")
        while True:
            mask = rng.choice([0, 1, 2, 4, 3, 5, 6, 7])
            ctx.set(dut.enable, mask)
            await ctx.tick()
            while ctx.get(dut.busy) & ~mask:
                await ctx.tick()
            # Drained: whatever comes now goes to the others.
            for _ in range(rng.randint(1, 60)):
                assert ctx.get(dut.busy) & ~mask == 0, "a stopped instance got a job"
                await ctx.tick()

    switch.background = True
    run(dut, put, get, switch, *instances.benches(), *checkers(dut), limit=20_000, seed=seed)
    assert set(statuses) == {Status.OK, Status.STOPPED}


@pytest.mark.parametrize(("n", "depth"), [(0, 1), (1, 0), ("2", 1), (2, 1.5)])
def test_bad_parameters(n, depth):
    with pytest.raises(ValueError, match=r"(Number of instances|Depth) must be an integer >= 1"):
        Dispatcher(n, depth)
