"""Jobs to the roles that they name: each once, whole, in order; a role that stands still alone."""

import pytest
from streams import make_rng, plain, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.roles.contract import NO_ROLE, JobKind, JobLayout
from trebuchet.cores.roles.demux import RoleDemux
from trebuchet.models.status import Status

KINDS = [(), (JobKind.STREAM,), (JobKind.STREAM, JobKind.CONFIGURE)]


def job_of(rng, number, roles):
    job = {name: rng.getrandbits(f.width) for name, f in JobLayout if f.shape is not JobKind}
    role = rng.choice([*range(roles + 1), NO_ROLE])
    return job | {"id": number, "role": role, "kind": rng.choice(list(JobKind))}


def expected(kinds, job):
    """The naive model: status of a refusal, or None for a job that its role gets."""
    if job["role"] >= len(kinds):
        return Status.NO_ROLE
    good = job["kind"] == JobKind.DATA or JobKind(job["kind"]) in kinds[job["role"]]
    return None if good else Status.BAD_TYPE


def identity(what):
    return tuple(what[name] for name in ("source", "session", "id"))


@pytest.mark.parametrize("kinds", [[], KINDS[:1], KINDS[2:], KINDS, KINDS * 5])
@seeds(3)
def test_random(kinds, seed):
    dut = RoleDemux(kinds)
    rng = make_rng(seed, "jobs")
    jobs = [job_of(rng, number, len(kinds)) for number in range(150)]
    got = [[] for _ in kinds]
    answers = []

    async def put(ctx):
        rng = make_rng(seed, "put")
        for job in jobs:
            await stream_put(ctx, dut.job, job, rng=rng)

    async def take(ctx):
        rng = make_rng(seed, "take")
        for _ in jobs:
            answers.append(plain(await stream_get(ctx, dut.answer, rng=rng)))

    def role(k):
        async def work(ctx):
            rng = make_rng(seed, f"role{k}")
            while True:
                job = plain(await stream_get(ctx, dut.jobs[k], rng=rng, stall=0.6))
                got[k].append(job)
                answer = {name: job[name] for name in ("source", "session", "id")}
                answer |= {"status": Status.OK, "length": k}
                await stream_put(ctx, dut.answers[k], answer, rng=rng)

        work.background = True
        return work

    checkers = [stream_checker(dut.jobs[k]) for k in range(len(kinds))]
    roles = [role(k) for k in range(len(kinds))]
    run(dut, put, take, *roles, *checkers, stream_checker(dut.answer), limit=30_000, seed=seed)
    refused = {identity(job): expected(kinds, job) for job in jobs if expected(kinds, job)}
    for k in range(len(kinds)):
        want = [job for job in jobs if job["role"] == k and not expected(kinds, job)]
        assert [job | {"kind": JobKind(job["kind"])} for job in got[k]] == want
    assert sorted(map(identity, answers)) == sorted(map(identity, jobs))
    for answer in answers:
        assert answer["status"] == refused.get(identity(answer), Status.OK)
        assert answer["status"] == Status.OK or answer["length"] == 0


@seeds(2)
def test_a_role_that_takes_nothing_is_in_nobodys_way(seed):
    """As long as no second job for it is offered while its door is closed."""
    dut = RoleDemux([(), (), ()])
    rng = make_rng(seed, "jobs")
    base = job_of(rng, 0, 3) | {"kind": JobKind.DATA}

    async def main(ctx):
        await stream_put(ctx, dut.job, base | {"role": 1})  # nobody takes it
        assert ctx.get(dut.doors) == 0b101
        for number in range(20):
            role = rng.choice((0, 2))
            await stream_put(ctx, dut.job, base | {"role": role, "id": number})
            job = plain(await stream_get(ctx, dut.jobs[role], rng=rng))
            assert (job["role"], job["id"]) == (role, number)
        await ctx.tick()
        assert ctx.get(dut.doors) == 0b101
        assert ctx.get(dut.jobs[1].valid)

    run(dut, main, stream_checker(dut.jobs[1]), limit=2000, seed=seed)


def test_numbers_that_do_not_fit():
    with pytest.raises(ValueError, match="^Number of roles must be 0 to 31, not 32$"):
        RoleDemux([()] * 32)
    with pytest.raises(ValueError, match="^Kinds must be STREAM or CONFIGURE, not "):
        RoleDemux([(JobKind.DATA,)])
