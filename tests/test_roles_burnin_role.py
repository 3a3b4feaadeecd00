"""The burn-in role against its golden model: alone, in a slot that resets it, in Verilator."""

import pytest
from role_bench import Job, RoleBench, Write
from streams import make_rng, seeds
from trebuchet.cores.roles.burnin.lane import BurninLane
from trebuchet.cores.roles.burnin.role import BurninBody, BurninConfig, BurninRole
from trebuchet.cores.roles.slot import RoleSlot
from trebuchet.models import burnin
from trebuchet.models.status import Status
from trebuchet.sim.build import build
from trebuchet.sim.roles import role_source, run_jobs

DEPTH = 16


def wrong_headers(rng):
    """Operands that the role refuses, and those whose length it refuses."""
    good = burnin.operand(rng.randrange(1 << 32), 3, 32)
    word = lambda k, value: good[: 4 * k] + value.to_bytes(4, "little") + good[4 * k + 4 :]  # noqa: E731
    yield word(1, 1 << 24)
    yield word(2, 8)
    yield word(2, 1 << 20)
    yield word(3, 8)
    yield b""
    yield good[:12]
    yield good[:-4]


def batch(rng, count, longest, most_cycles):
    """Operands: right ones, damaged ones, faults that are asked for, wrong headers."""
    found = list(wrong_headers(rng))
    for _ in range(count):
        data = bytearray(
            burnin.operand(
                rng.getrandbits(32),
                rng.choice([0, 1, rng.randrange(most_cycles)]),
                16 * rng.randrange(longest // 16 + 1),
                16 * rng.randrange(longest // 16 + 1),
                rng.choice([0, 0, *range(8)]),
            )
        )
        if len(data) > burnin.HEADER_BYTES and rng.random() < 0.4:
            data[rng.randrange(burnin.HEADER_BYTES, len(data))] ^= 1 << rng.randrange(8)
        found.append(bytes(data))
    rng.shuffle(found)
    return [Job(data, room=rng.choice([longest + 32, longest + 32, 40])) for data in found]


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(1)
def test_role_equals_model(width, seed):
    jobs = batch(make_rng(seed, "jobs"), 8, 96, 40)
    dut = BurninRole(width, lanes=2, depth=DEPTH)
    answers = RoleBench(dut, seed=seed).run(jobs, limit=20_000)
    expected = [burnin.result(job.operand, job.room, 2, DEPTH) for job in jobs]
    assert [(a.status, a.result) for a in answers] == expected


def test_each_fault_is_found_where_it_is():
    """At the first step: logic in every cycle since, a product and a word once."""
    jobs = [Job(burnin.operand(7, 64, 16, 0, 1 << k)) for k in range(3)]
    answers = RoleBench(BurninRole(lanes=1, depth=DEPTH), seed=None).run(jobs, limit=2000)
    reports = [burnin.Report.of(answer.result) for answer in answers]
    assert [(r.logic, r.multiplier, r.ram) for r in reports] == [(64, 0, 0), (0, 1, 0), (0, 0, 1)]
    assert all(r.wrong == 0 and r.checked == 4 for r in reports)


def test_registers_count():
    data = bytearray(burnin.operand(3, 20, 64, 0, 7))
    data[20] ^= 0x80
    dut = RoleSlot(BurninRole(lanes=1, depth=DEPTH), "burnin")
    names = ("messages", "wrong_words", "logic_faults", "multiplier_faults", "ram_faults")
    seen = []

    async def watch(ctx):
        registers = [getattr(dut.csr, name) for name in names]
        async for _, _, *values in ctx.tick().sample(*registers):
            if values not in seen[-1:]:
                seen.append(values)

    watch.background = True
    jobs = [Job(bytes(data)), Job(burnin.operand(3, 20, 64)), Job(bytes(data))]
    RoleBench(dut, seed=None).run(jobs, limit=2000, more=[watch])
    assert seen == [[0] * 5, [1, 1, 20, 1, 1], [2, 1, 20, 1, 1], [3, 2, 40, 2, 2]]


@seeds(1)
def test_reset_alone(seed):
    rng = make_rng(seed, "jobs")
    operations = []
    jobs = batch(rng, 5, 64, 30)
    for job in jobs:
        operations += [job, Write("reset", wait=rng.randrange(120), idle=False)]
    dut = RoleSlot(BurninRole(lanes=1, depth=DEPTH), "burnin")
    answers = RoleBench(dut, seed=seed).run(operations, limit=20_000)
    for job, answer in zip(jobs, answers, strict=True):
        if answer.status != Status.ABORTED:
            assert (answer.status, answer.result) == burnin.result(job.operand, job.room, 1, DEPTH)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BurninLane(12), "Depth must be a power of two >= 4, not 12"),
        (lambda: BurninBody(lanes=0), "Lanes must be 1 to 1024, not 0"),
        (lambda: BurninBody(256), "must be .*256"),
        (lambda: BurninConfig(lanes=2000), "option lanes must be 1 to 1024, not 2000"),
        (lambda: BurninConfig(result_bytes=8), "option result_bytes must be 32 to .*, not 8"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("data", [b"", bytes(31), bytes(32)])
def test_what_is_no_report(data):
    with pytest.raises(ValueError, match="a report must"):
        burnin.Report.of(data)


@pytest.mark.slow
@seeds(1)
def test_verilator(seed):
    jobs = batch(make_rng(seed, "jobs"), 200, 2000, 3000)
    binary = build(role_source(BurninRole(64)))
    hard = {"stall": 0.2, "memory_stall": 0.2, "latency": (3, 60), "reorder": True}
    run = run_jobs(binary, jobs, seed=seed, **hard)
    expected = [burnin.result(job.operand, job.room, 4) for job in jobs]
    assert [(a.status, a.result) for a in run.answers] == expected
