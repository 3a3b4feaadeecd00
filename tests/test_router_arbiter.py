"""``RoundRobin``: one grant a cycle to those that ask, in turn."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.router.arbiter import RoundRobin


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
@seeds(2)
def test_grants_are_the_models(n, seed):
    """Requests come and go; the next behind the last grant comes first."""
    dut, rng, last = RoundRobin(n), make_rng(seed, f"requests {n}"), n - 1

    async def bench(ctx):
        nonlocal last
        for _ in range(300):
            asking = rng.getrandbits(n) & rng.getrandbits(n) if rng.random() < 0.6 else 2**n - 1
            ctx.set(dut.i, asking)
            turn = [k % n for k in range(last + 1, last + 1 + n) if asking >> k % n & 1]
            assert ctx.get(dut.o) == (1 << turn[0] if turn else 0)
            last = turn[0] if turn else last
            await ctx.tick()

    run(dut, bench, limit=400, seed=seed)


@pytest.mark.parametrize("n", [0, "2"])
def test_bad_parameters(n):
    with pytest.raises(
        ValueError, match=f"^Number of requesters must be an integer >= 1, not {n!r}"
    ):
        RoundRobin(n)
