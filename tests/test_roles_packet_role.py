"""``PacketRole``: lengths that it accepts, and its parameters."""

import pytest
from role_bench import Job, RoleBench
from streams import make_rng, random_bytes, seeds
from trebuchet.cores.roles.loopback.role import Wire
from trebuchet.cores.roles.packet_role import PacketRole
from trebuchet.models.status import Status


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
