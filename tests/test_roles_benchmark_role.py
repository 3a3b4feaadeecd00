"""The benchmark role against its model, through :class:`RoleBench`."""

import pytest
from role_bench import Job, RoleBench, Write
from streams import make_rng, seeds
from trebuchet.cores.roles.benchmark.role import BenchmarkRole
from trebuchet.models import roles


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(1)
def test_benchmark(width, seed):
    rng = make_rng(seed, "jobs")
    operations, expected = [], []
    for output in (0, 16, 33, 5, 200):
        operations += [Write("output_length", output), Write("delay", rng.randrange(50))]
        for size in (3, 16, 90):
            job = Job(rng.randbytes(size), room=rng.choice([16, 33, 300]))
            operations.append(job)
            expected.append(roles.benchmark(job.operand, job.room, output))
    answers = RoleBench(BenchmarkRole(width), seed=seed).run(operations, limit=30_000)
    assert [(a.status, a.result) for a in answers] == expected


def test_benchmark_takes_as_long_as_it_is_told():
    """64 bytes in and out; memory answers after 4 cycles."""
    times = []
    for delay in (0, 500):
        bench = RoleBench(BenchmarkRole(64), seed=None)
        (answer,) = bench.run([Write("delay", delay), Job(bytes(64))], limit=2000)
        times.append(answer.answered - answer.taken)
    assert times[0] < 70
    assert times[1] == times[0] + 500
