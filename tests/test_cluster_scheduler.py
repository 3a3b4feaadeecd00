"""``JobScheduler``: DATA jobs go to whoever is idle, others to this board; answers go back."""

import pytest
from streams import make_rng, plain, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.cluster.scheduler import FROM_PEERS, JobScheduler
from trebuchet.cores.roles.contract import JobKind, JobLayout
from trebuchet.models.status import Status


def job_of(rng, number, kind, source):
    job = {name: rng.getrandbits(f.width) for name, f in JobLayout if f.shape is not JobKind}
    return job | {"id": number, "kind": kind, "source": source}


def answered_by(job, where):
    same = {name: job[name] for name in ("source", "session", "id")}
    return same | {"status": Status.OK, "length": where}


@pytest.mark.parametrize(("peers", "enable"), [(1, 0b11), (2, 0b111), (2, 0b110), (1, 0)])
@seeds(2)
def test_each_job_is_answered_once_where_it_came_from(peers, enable, seed):
    dut, rng = JobScheduler(peers), make_rng(seed, "jobs")
    kinds = [JobKind.DATA, JobKind.DATA, JobKind.STREAM, JobKind.CONFIGURE]
    ours = [job_of(rng, k, rng.choice(kinds), 0) for k in range(40)]
    theirs = [job_of(rng, k, JobKind.DATA, FROM_PEERS) for k in range(12)]
    got, peers_got, held, data_jobs = {}, {}, [[] for _ in range(peers + 1)], [0] * (peers + 1)

    async def clients(ctx):
        ctx.set(dut.enable, enable)
        for job in ours:
            await stream_put(ctx, dut.job, job, rng=make_rng(seed, job["id"]))

    async def server(ctx):
        for job in theirs:
            await stream_put(ctx, dut.peers_job, job, rng=make_rng(seed, f"p{job['id']}"))

    def take(stream, count, into):
        async def bench(ctx):
            waits = make_rng(seed, f"take {count}")
            for _ in range(count):
                answer = plain(await stream_get(ctx, stream, rng=waits))
                assert answer["id"] not in into
                into[answer["id"]] = answer

        return bench

    def worker(k, jobs, answers):
        async def takes(ctx):
            waits = make_rng(seed, f"worker {k}")
            while True:
                job = plain(await stream_get(ctx, jobs, rng=waits))
                if job["kind"] == JobKind.DATA and job["source"] != FROM_PEERS:
                    assert enable >> k & 1, "a job for one that is not enabled"
                    same = [j for j in held[k] if j["kind"] == JobKind.DATA]
                    assert not [j for j in same if j["source"] != FROM_PEERS], "it has one already"
                    data_jobs[k] += 1
                held[k].append(job)

        async def gives(ctx):
            waits = make_rng(seed, f"answers {k}")
            while True:
                for _ in range(waits.randint(1, 12)):
                    await ctx.tick()
                if held[k]:
                    job = waits.choice(held[k])
                    await stream_put(ctx, answers, answered_by(job, k), rng=waits)
                    held[k].remove(job)

        takes.background = gives.background = True
        return takes, gives

    workers = [*worker(0, dut.role_job, dut.role_answer)]
    for k in range(peers):
        workers += worker(k + 1, dut.jobs[k], dut.answers[k])
    takers = take(dut.answer, len(ours), got), take(dut.peers_answer, len(theirs), peers_got)
    checks = [stream_checker(s) for s in (dut.answer, dut.role_job, dut.peers_answer)]
    run(dut, clients, server, *takers, *workers, *checks, limit=8000, seed=seed)
    for job in ours:
        answer = got[job["id"]]
        assert (answer["source"], answer["session"]) == (0, job["session"])
        if job["kind"] != JobKind.DATA:
            assert (answer["status"], answer["length"]) == (Status.OK, 0), (
                "not by this board's role"
            )
        else:
            assert answer["status"] == (Status.OK if enable else Status.STOPPED)
    for job in theirs:
        answer = peers_got[job["id"]]
        assert (answer["source"], answer["length"]) == (FROM_PEERS, 0)
        assert answer["session"] == job["session"]
    assert all(bool(jobs) == (enable >> k & 1) for k, jobs in enumerate(data_jobs))


@pytest.mark.parametrize("source", [3, 4, 5, 6, 15])
def test_an_answer_of_no_known_source_is_swallowed(source):
    dut = JobScheduler(1)

    async def bench(ctx):
        for port in (dut.answer, dut.peers_answer):
            ctx.set(port.ready, 1)
        ctx.set(dut.role_answer.payload.source, source)
        ctx.set(dut.role_answer.valid, 1)
        taken = 0
        for _ in range(6):
            samples = dut.role_answer.ready, dut.answer.valid, dut.peers_answer.valid
            _, _, ready, *shown = await ctx.tick().sample(*samples)
            taken += ready
            assert not any(shown)
            ctx.set(dut.role_answer.valid, taken == 0)
        assert taken

    run(dut, bench, limit=20)
