"""What lies between front ends and the network they share."""

import pytest
from streams import make_rng, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.roles.ecg.bank import VectorStore


def vectors(rng, inputs, count):
    for number in range(count):
        for i in range(inputs):
            last = i == inputs - 1
            yield {"value": rng.randrange(-(1 << 15), 1 << 15), "last": last, "index": number}


def plain(payload):
    return {"value": payload.value, "last": payload.last, "index": payload.index}


@pytest.mark.parametrize("inputs", [1, 2, 11, 40])
@seeds(2)
def test_contents(inputs, seed):
    rng = make_rng(seed, f"store {inputs}")
    dut = VectorStore(inputs)
    expected = list(vectors(rng, inputs, 12))
    slow = rng.random()

    async def put(ctx):
        for value in expected:
            await stream_put(ctx, dut.i, {**value, "tag": 0})
            while rng.random() < slow:
                await ctx.tick()

    async def get(ctx):
        for value in expected:
            while rng.random() < 0.3:
                await ctx.tick()
            assert plain(await stream_get(ctx, dut.o)) == value

    run(dut, put, get, stream_checker(dut.o), limit=20_000, seed=seed)


def test_a_vector_comes_without_gap_when_it_is_whole():
    dut = VectorStore(11)
    expected = list(vectors(make_rng(1, "gap"), 11, 2))
    times = []

    async def put(ctx):
        for value in expected:
            await stream_put(ctx, dut.i, {**value, "tag": 0})
            await ctx.tick().repeat(9)

    async def get(ctx):
        ctx.set(dut.o.ready, 1)
        cycle = 0
        while len(times) < len(expected):
            _, _, valid = await ctx.tick().sample(dut.o.valid)
            cycle += 1
            if valid:
                times.append(cycle)

    run(dut, put, get, limit=2000)
    for start in (0, 11):
        assert times[start] > 10 * (start + 10)
        assert times[start : start + 11] == list(range(times[start], times[start] + 11))
