"""Both harnesses for roles find every breach of the contract, and none in a role that keeps it."""

import pytest
from role_bench import Job, RoleBench, Write
from role_saboteur import FAULTS, Saboteur
from trebuchet.cores.roles.loopback.role import LoopbackRole
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.build import build
from trebuchet.sim.roles import RoleFault, place_jobs, role_source, run_jobs


def jobs_with(fault):
    return [Write("fault", fault), *(Job(bytes(12), room=64, ring_log2=10) for _ in range(12))]


def test_bench_accepts_a_good_role():
    answers = RoleBench(Saboteur(), seed=3).run(jobs_with(0), limit=10_000)
    assert [(a.status, a.result) for a in answers] == [(0, bytes(8))] * 12


@pytest.mark.parametrize("name", FAULTS)
def test_bench_finds(name):
    number, message = FAULTS[name]
    with pytest.raises(AssertionError, match=message):
        RoleBench(Saboteur(), seed=3).run(jobs_with(number), limit=3000)


@pytest.fixture(scope="module")
def saboteur():
    return build(role_source(Saboteur()))


#: Awkward on every side.
HARD = {"stall": 0.3, "memory_stall": 0.3, "latency": (3, 50), "reorder": True}


@pytest.mark.slow
def test_verilator_accepts_a_good_role(saboteur):
    run = run_jobs(saboteur, jobs_with(0) * 20, seed=3, **HARD)
    assert [(a.status, a.result) for a in run.answers] == [(0, bytes(8))] * 240
    assert all(a.taken < a.answered <= run.cycles for a in run.answers)
    # A quiet memory and no stalls: faster, and the same each time.
    quick = run_jobs(saboteur, jobs_with(0) * 20, latency=(3, 3))
    assert quick.cycles < run.cycles
    assert quick == run_jobs(saboteur, jobs_with(0) * 20, latency=(3, 3))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_verilator_finds(saboteur, name):
    number, message = FAULTS[name]
    with pytest.raises(RoleFault, match=f"with seed 3: cycle [0-9]+: .*{message}"):
        run_jobs(saboteur, jobs_with(number), seed=3, limit=2000, **HARD)


@pytest.mark.slow
def test_unknown_register(saboteur):
    with pytest.raises(TrebuchetError, match="the register must be one of fault, not 'speed'"):
        run_jobs(saboteur, [Write("speed", 3)])


def test_jobs_do_not_overlap():
    jobs = [Job(bytes(n), room=n) for n in (0, 5, 3000, 1024, 1025)]
    placed, size = place_jobs(jobs, seed=1, regions=3, base=100)
    spans = []
    for fields, region in placed[:3]:
        ring = 1 << fields["ring_log2"]
        assert fields["base"] % ring == 0
        assert fields["result"] % 16 == 0
        spans += [(fields["base"], fields["base"] + ring)]
        spans += [(fields["result"], fields["result"] + fields["room"])]
        assert region == placed.index((fields, region))
    spans.sort()
    assert spans[0][0] >= 100
    assert spans[-1][1] <= size
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))


def test_ring_too_small():
    with pytest.raises(TrebuchetError, match="the ring's log2 must be 11 to 20, not 10"):
        place_jobs([Job(bytes(1025), ring_log2=10)], 1, 1)


def test_bench_measures_without_stalls():
    bench = RoleBench(LoopbackRole(32), seed=None)
    bench.run([Job(bytes(400))], limit=1000)
    assert bench.cycles < 400
