"""``FrameTap`` at the sizes that boards have."""

from part_sizes import at_sizes
from streams import packet_get, packet_put, run
from test_sizes_net import LENGTHS, _frames
from trebuchet.cores.bridge.tap import FrameTap


@at_sizes("bridge.tap.FrameTap", width=32, latency=2)
def test_tap(size):
    """Frames of legal lengths pass; the next shorter and the next longer one end with an error."""
    dut, frames = FrameTap(**size), _frames(LENGTHS)

    async def put(ctx):
        ctx.set(dut.enable, 1)
        for frame in frames:
            await packet_put(ctx, dut.i, frame)

    async def get(ctx):
        for frame, good in zip(frames, LENGTHS.values(), strict=True):
            got, error = await packet_get(ctx, dut.o)
            assert error == (not good), len(frame)
            assert not good or got == frame

    run(dut, put, get, limit=10_000)
