"""``FairMux``: each input gets half of the line, and no cycle is lost."""

import pytest
from streams import packet_put, run
from trebuchet.cores.bridge.fair import FairMux


@pytest.mark.parametrize(("lengths", "quantum"), [((1, 24), 24), ((24, 1), 24), ((7, 8), 8)])
def test_each_gets_half_of_the_line(lengths, quantum):
    """Short frames beside long ones, both without a pause: equal numbers of beats."""
    dut = FairMux(32, quantum)
    beats, waits = [0, 0], [[0], [0]]

    def source(k):
        async def put(ctx):
            while True:
                await packet_put(ctx, dut.i[k], bytes(4 * lengths[k]))

        put.background = True
        return put

    async def get(ctx):
        ctx.set(dut.o.ready, 1)
        for _ in range(1500):
            _, _, valid, index = await ctx.tick().sample(dut.o.valid, dut.index)
            assert valid, "a cycle is lost"
            beats[index] += 1
            waits[index].append(0)
            waits[1 - index][-1] += 1

    async def begin(ctx):
        await ctx.tick()
        await get(ctx)

    run(dut, source(0), source(1), begin, limit=5000)
    assert abs(beats[0] - beats[1]) <= 2 * quantum + max(lengths)
    for k in range(2):
        assert max(waits[k]) < quantum + lengths[1 - k]
