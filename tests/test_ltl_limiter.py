"""``Limiter`` drops what exceeds a rate, early and at random."""

import pytest
from streams import run
from trebuchet.cores.ltl.limiter import Limiter


@pytest.mark.parametrize("rate", [0, 16384])
def test_limiter_drops_what_exceeds_the_rate(rate):
    dut = Limiter()
    passed = []

    async def main(ctx):
        ctx.set(dut.rate, rate)
        ctx.set(dut.minimum, 100)
        ctx.set(dut.slope, 6)
        ctx.set(dut.beats, 25)
        for _ in range(800):  # 25 beats in 25 cycles: the whole line
            await ctx.tick().repeat(24)
            ctx.set(dut.spend, 1)
            passed.append(not ctx.get(dut.drop))
            await ctx.tick()
            ctx.set(dut.spend, 0)

    run(dut, main, limit=25_000)
    if not rate:
        assert all(passed)
        return
    assert all(passed[:3])  # the queue has to build up first
    share = sum(passed[200:]) / 600
    assert 0.22 <= share <= 0.28
    runs = "".join("01"[p] for p in passed[200:])
    assert "0000000000000000000000000" not in runs  # early and random, not all or nothing
