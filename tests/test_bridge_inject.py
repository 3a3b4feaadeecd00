"""``Injector`` at the sizes that boards have."""

from part_sizes import at_sizes
from streams import packet_get, packet_put, run
from test_sizes_net import LENGTHS, _frames
from trebuchet.cores.bridge.inject import Injector


@at_sizes("bridge.inject.Injector", width=32)
def test_injector(size):
    dut, frames = Injector(**size), _frames(LENGTHS)
    legal = range(size["shortest"], size["longest"] + 1)

    async def put(ctx):
        ctx.set(dut.enable, 1)
        for frame in frames:
            await packet_put(ctx, dut.i, frame)

    async def get(ctx):
        for frame in (frame for frame in frames if len(frame) in legal):
            got, error = await packet_get(ctx, dut.o)
            assert (len(got), error) == (len(frame), False)
            assert got == frame

    run(dut, put, get, limit=10_000)
