"""Loopback and benchmark roles against their models, through :class:`RoleBench`."""

import pytest
from role_bench import Job, RoleBench, Write
from streams import make_rng, random_bytes, seeds
from trebuchet.cores.roles.benchmark.role import BenchmarkRole
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.roles.loopback.role import LoopbackRole, Wire
from trebuchet.cores.roles.packet_role import PacketRole
from trebuchet.models import roles
from trebuchet.models.status import Status

SIZES = [0, 1, 15, 16, 17, 64, 100, 300]


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(2)
def test_loopback(width, seed):
    rng = make_rng(seed, "jobs")
    jobs = [Job(rng.randbytes(n), room=rng.choice([0, n, n, 400])) for n in SIZES]
    rng.shuffle(jobs)
    answers = RoleBench(LoopbackRole(width), seed=seed).run(jobs, limit=20_000)
    for job, answer in zip(jobs, answers, strict=True):
        assert (answer.status, answer.result) == roles.loopback(job.operand, job.room)


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


def test_other_kinds_of_jobs_are_refused():
    jobs = [Job(b"x", kind=kind) for kind in JobKind]
    answers = RoleBench(LoopbackRole(), seed=0).run(jobs, limit=2000)
    assert [a.status for a in answers] == [Status.OK, Status.BAD_TYPE, Status.BAD_TYPE]


@seeds(1)
def test_lengths_of_a_packet_role(seed):
    """Multiples of 8 from 16 to 40."""
    role = PacketRole(Wire(32), 32, lengths=range(16, 48, 8))
    rng = make_rng(seed, "jobs")
    jobs = [Job(random_bytes(rng, n, n)) for n in range(0, 60)]
    answers = RoleBench(role, seed=seed).run(jobs, limit=20_000)
    for job, answer in zip(jobs, answers, strict=True):
        ok = len(job.operand) in (16, 24, 32, 40)
        assert answer.status == (Status.OK if ok else Status.BAD_LENGTH)
        assert answer.result == (job.operand if ok else b"")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Wire(32), 64), "Stream 'i' of the body must have 64 bits, not 32"),
        ((Wire(32), 32, 2, range(5, 0)), "Lengths must be a rising range below 2"),
        ((Wire(32), 32, 2, range(0, 9, 3)), "Lengths must be multiples of a power of two"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        PacketRole(*arguments)
