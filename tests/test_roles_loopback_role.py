"""The loopback role against its model, through :class:`RoleBench`."""

import pytest
from role_bench import Job, RoleBench
from streams import make_rng, seeds
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.roles.loopback.role import LoopbackRole
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


def test_other_kinds_of_jobs_are_refused():
    jobs = [Job(b"x", kind=kind) for kind in JobKind]
    answers = RoleBench(LoopbackRole(), seed=0).run(jobs, limit=2000)
    assert [a.status for a in answers] == [Status.OK, Status.BAD_TYPE, Status.BAD_TYPE]
