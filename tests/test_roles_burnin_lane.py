"""``BurninLane``: the generator's words, and a report for each fault and for nothing else."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.roles.burnin.lane import DRAIN, BurninLane

REPORTS = ("lut_bad", "dsp_bad", "ram_bad")
#: Cycles from a step to the report of a fault in it; of the RAM, from the step that reads the word.
LATENCY = {"lut_bad": 2, "dsp_bad": 4, "ram_bad": 2}


def digest_of(word, steps):
    """The digest after some steps without a fault: Marsaglia's generator and rotated products."""
    total = 0
    for _ in range(steps):
        product = (word & 0x3FFFF) * (word >> 14)
        total = (total << 1 | total >> 31) & 0xFFFF_FFFF
        total ^= product & 0xFFFF_FFFF ^ product >> 32
        word ^= word << 13 & 0xFFFF_FFFF
        word ^= word >> 17
        word ^= word << 5 & 0xFFFF_FFFF
    return word ^ total


def play(depth, steps, faults, seed, word):
    """Run with pauses; return when each kind was reported, the steps' cycles, and the digest."""
    dut, rng = BurninLane(depth), make_rng(seed, "pauses")
    reports, at, end = {name: [] for name in REPORTS}, [], []
    cycle = 0

    async def tick(ctx):
        nonlocal cycle
        await ctx.tick()
        cycle += 1
        for name in REPORTS:
            if ctx.get(getattr(dut, name)):
                reports[name].append(cycle)

    async def bench(ctx):
        for _ in range(2):  # what was before a start is forgotten
            ctx.set(dut.init, word)
            ctx.set(dut.start, 1)
            ctx.set(dut.step, rng.getrandbits(1))
            await tick(ctx)
            ctx.set(dut.start, 0)
            at.clear()
            for number in range(steps):
                ctx.set(dut.step, 0)
                while rng.random() < 0.2:
                    await tick(ctx)
                ctx.set(dut.step, 1)
                ctx.set(dut.inject, faults.get(number, 0))
                at.append(cycle)
                await tick(ctx)
            ctx.set(dut.step, 0)
            ctx.set(dut.inject, 0)
            for _ in range(DRAIN):
                await tick(ctx)
            end.append(ctx.get(dut.digest))
            if len(end) == 1:
                for found in reports.values():
                    found.clear()

    run(dut, bench, limit=4000, seed=seed)
    return reports, at, end


@pytest.mark.parametrize("depth", [4, 16])
@seeds(2)
def test_without_a_fault_nothing_is_reported(depth, seed):
    word = make_rng(seed, "word").getrandbits(32) | 1
    reports, _, end = play(depth, 3 * depth + 5, {}, seed, word)
    assert reports == {name: [] for name in REPORTS}
    assert end == [digest_of(word, 3 * depth + 5)] * 2


@pytest.mark.parametrize("bit", [0, 1, 2])
@pytest.mark.parametrize("depth", [4, 16])
def test_each_fault_is_reported_in_its_time(bit, depth):
    """The copy that has a fault keeps it; a product or a stored word is wrong once."""
    steps, faulty = 3 * depth, depth + 2
    reports, at, _ = play(depth, steps, {faulty: 1 << bit}, bit, 0x1234_5677)
    name = REPORTS[bit]
    assert [n for n in REPORTS if reports[n]] == [name]
    step = faulty + depth - 1 if name == "ram_bad" else faulty
    assert reports[name][0] == at[step] + LATENCY[name]
    assert len(reports[name]) == (steps - faulty if name == "lut_bad" else 1)


@pytest.mark.parametrize("depth", [2, 12])
def test_bad_parameters(depth):
    with pytest.raises(ValueError, match=f"^Depth must be a power of two >= 4, not {depth}$"):
        BurninLane(depth)
