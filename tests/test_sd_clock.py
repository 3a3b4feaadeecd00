"""``SdClock``: periods, strobes at edges, samples after their delay, and no glitch when stopped."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.sd.clock import SdClock


@pytest.mark.parametrize(("half", "delay"), [(0, 0), (0, 3), (1, 1), (4, 2)])
@seeds(1)
def test_edges_strobes_and_samples(half, delay, seed):
    dut, rng = SdClock(), make_rng(seed, f"clock {half}")
    trace = []

    async def bench(ctx):
        ctx.set(dut.half, half)
        ctx.set(dut.delay, delay)
        for _ in range(400):
            if rng.random() < 0.1:
                ctx.set(dut.run, rng.random() < 0.7)
                ctx.set(dut.cmd_driven, rng.random() < 0.5)
                ctx.set(dut.dat_driven, rng.random() < 0.5)
            names = (
                "sd_clk",
                "fall",
                "cmd_sample",
                "dat_sample",
                "cmd_driven",
                "dat_driven",
                "run",
            )
            trace.append([ctx.get(getattr(dut, name)) for name in names])
            await ctx.tick()

    run(dut, bench, limit=500, seed=seed)
    level = [row[0] for row in trace]
    edges = [t for t in range(len(trace) - 1) if level[t] != level[t + 1]]
    rises = [t for t in edges if not level[t]]
    assert len(rises) > 10
    assert [t for t in range(len(trace) - 1) if trace[t][1]] == [t for t in edges if level[t]]
    assert all(trace[t][6] for t in rises), "a rising edge while it may not run"
    for a, b in zip(edges, edges[1:], strict=False):
        assert b - a == half + 1 if level[b] else b - a >= half + 1
    for column in (2, 3):  # a sample for each rising edge at which the host did not drive
        due = {t + 1 + delay for t in rises if not trace[t][column + 2]}
        due = {t for t in due if t < len(trace) - 1}
        assert {t for t in range(len(trace) - 1) if trace[t][column]} == due
