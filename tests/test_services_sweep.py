"""Clocks that find late requests, and the order in which sessions are visited."""

import pytest
from part_sizes import at_sizes
from streams import Simulation
from trebuchet.cores.services.sweep import RequestClock, Sweeper


@pytest.mark.parametrize("period", [1, 2, 7])
def test_request_clock(period):
    dut, sweeps = RequestClock(), []

    async def script(ctx):
        ctx.set(dut.period, period)
        for k in range(60):
            ctx.set(dut.tick, k % 2)
            if ctx.get(dut.sweep):
                sweeps.append(k // 2)
            await ctx.tick()
        ctx.set(dut.period, 0)
        for _ in range(20):
            assert ctx.get(dut.sweep) == 0
            await ctx.tick()

    Simulation(dut).run(script, limit=200)
    assert sweeps == list(range(period - 1, 30, period))


@at_sizes("services.sweep.Sweeper", sessions=1)
@pytest.mark.parametrize("other", [0, 1])
def test_sweeper_visits_all_and_lets_others_in(size, other):
    sessions = size["sessions"]
    dut, seen, others = Sweeper(sessions), [], 0

    async def script(ctx):
        nonlocal others
        ctx.set(dut.other, other)
        ctx.set(dut.sweep, 1)
        await ctx.tick()
        ctx.set(dut.sweep, 0)
        ctx.set(dut.idle, 1)
        for _ in range(2 * sessions):
            if ctx.get(dut.turn):
                seen.append(ctx.get(dut.session))
            else:
                others += 1
            await ctx.tick()
        assert not ctx.get(dut.turn)

    Simulation(dut).run(script, limit=3 * sessions + 20)
    assert seen == list(range(sessions))
    assert others == sessions
