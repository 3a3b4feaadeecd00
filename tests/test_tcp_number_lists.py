"""The lists of the TCP engine (cores/tcp/number_lists.py), against a queue."""

import random
import re
from collections import deque

import pytest
from amaranth.sim import Simulator
from trebuchet.cores.tcp.number_lists import NumberList


def _run(dut, bench):
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run_until(5e-3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("width", "depth"), [(1, 2), (2, 3), (3, 8), (6, 64)])
def test_numbers_come_out_as_they_went_in(width, depth, seed):
    """Random puts and gets, also as full as it gets and with one put in every cycle."""
    rng = random.Random(f"{width} {depth} {seed}")
    dut = NumberList(width=width, depth=depth)
    inside, seen = deque(), {"full": 0, "empty": 0}

    async def bench(ctx):
        since = 0  # cycles since there was something to show
        for cycle in range(2500):
            eager = (cycle // 300) % 3
            put = len(inside) < depth and rng.random() < (0.5, 1.0, 0.2)[eager]
            get = rng.random() < (0.5, 0.1, 0.9)[eager]
            number = rng.randrange(1 << width)
            ctx.set(dut.w_en, put)
            ctx.set(dut.w_data, number)
            ctx.set(dut.r_en, get)
            shows = ctx.get(dut.r_rdy)
            assert ctx.get(dut.level) == len(inside), f"seed {seed}, cycle {cycle}"
            assert ctx.get(dut.w_rdy) == (len(inside) < depth)
            if shows:
                assert ctx.get(dut.r_data) == inside[0], f"seed {seed}, cycle {cycle}"
            assert shows or since < 2, f"seed {seed}, cycle {cycle}: nothing to be seen"
            seen["full"] += len(inside) == depth
            seen["empty"] += not inside
            if shows and get:
                inside.popleft()
            since = 0 if shows or not inside else since + 1
            if put:
                inside.append(number)
            await ctx.tick()

    _run(dut, bench)
    assert seen["full"]
    assert seen["empty"]


@pytest.mark.parametrize("depth", [1, 0, 2.0])
def test_depth_is_checked(depth):
    message = f"List depth must be an integer of at least 2, not {depth!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        NumberList(width=3, depth=depth)
