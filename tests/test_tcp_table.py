"""``SessionTable`` against a dictionary."""

from dataclasses import replace

from streams import (
    make_rng,
    run,
    seeds,
)
from table_bench import look_up
from tcp_bench import SMALL
from trebuchet.cores.tcp.table import SessionTable


@seeds(2)
def test_table_under_churn(seed):
    """No tuple is lost or confused, no number given twice, none refused while one is free."""
    config = replace(SMALL, sessions=16, half_open=16)
    dut, rng = SessionTable(config), make_rng(seed, "table")
    tuples = [rng.getrandbits(64) for _ in range(24)]

    async def bench(ctx):
        model = {}
        for _ in range(250):
            key = rng.choice(tuples)
            if rng.random() < 0.4 and model:
                key = rng.choice(list(model))
                ctx.set(dut.reap, 1)
                ctx.set(dut.reap_session, model.pop(key))
                await ctx.tick()
                ctx.set(dut.reap, 0)
                for _ in range(rng.choice((0, 60))):
                    await ctx.tick()
                while ctx.get(dut.in_use) != len(model):
                    await ctx.tick()
            found, session, number = await look_up(ctx, dut, key, insert=rng.random() < 0.7)
            assert found == (key in model)
            if found:
                assert session == model[key]
            elif number is not None:
                assert number not in model.values()
                model[key] = number
            else:
                assert ctx.get(dut.lookup.free_valid) == (len(model) < 16)

    run(dut, bench, limit=40_000, seed=seed)
