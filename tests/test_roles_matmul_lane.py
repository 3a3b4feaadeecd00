"""``MacLane``: sums of products modulo 2**32, a product a cycle, at the delays that it states."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.roles.matmul.lane import A_DELAY, ACC_DELAY, LANE_DELAY, MacLane

CORNERS = (0, 1, 0xFFFF, 0x10000, 0xFFFF_0000, 0x8000_0000, 0xFFFF_FFFF)


@pytest.mark.parametrize("depth", [2, 5, 16])
@seeds(2)
def test_sums_are_the_models(depth, seed):
    dut, rng = MacLane(depth), make_rng(seed, f"lane {depth}")

    def number():
        return rng.choice(CORNERS) if rng.random() < 0.3 else rng.getrandbits(32)

    bank = [number() for _ in range(depth)]
    steps = [(rng.randrange(depth), number(), rng.random() < 0.2) for _ in range(200)]
    steps[0] = (*steps[0][:2], True)
    sums, total = [], 0
    for address, a, first in steps:
        total = ((0 if first else total) + a * bank[address]) % (1 << 32)
        sums.append(total)

    async def bench(ctx):
        for address, word in enumerate(bank):
            ctx.set(dut.w_en, 1)
            ctx.set(dut.w_addr, address)
            ctx.set(dut.w_data, word)
            await ctx.tick()
        ctx.set(dut.w_en, 0)
        for cycle in range(len(steps) + LANE_DELAY):
            if cycle < len(steps):
                ctx.set(dut.r_addr, steps[cycle][0])
            if 0 <= cycle - A_DELAY < len(steps):
                ctx.set(dut.a, steps[cycle - A_DELAY][1])
            if 0 <= cycle - ACC_DELAY < len(steps):
                ctx.set(dut.first, steps[cycle - ACC_DELAY][2])
            if cycle >= LANE_DELAY:
                assert ctx.get(dut.acc) == sums[cycle - LANE_DELAY], cycle
            await ctx.tick()

    run(dut, bench, limit=300, seed=seed)


def test_bad_parameters():
    with pytest.raises(ValueError, match="^Depth of a bank must be an integer >= 2, not 1$"):
        MacLane(1)
