"""``SdBuffer``, of verified blocks, against a queue."""

import pytest
from part_sizes import at_sizes
from sd_bench import pulse
from streams import make_rng, run, seeds
from trebuchet.cores.drive.port import SECTOR
from trebuchet.cores.sd.buffer import BLOCKS, SdBuffer

pytestmark = pytest.mark.slow


@at_sizes("sd.buffer.SdBuffer", width=32)
@seeds(2)
def test_buffer(size, seed):
    """Whole blocks come out in order; what was not kept does not; the flags are exact."""
    rng, dut = make_rng(seed, "sd buffer"), SdBuffer(**size)
    words = SECTOR * 8 // dut.width
    blocks = [[rng.getrandbits(dut.width) for _ in range(words)] for _ in range(9)]
    left = []

    async def write(ctx):
        for block in blocks:
            for damaged in (*[1] * rng.randrange(2), 0):
                while not ctx.get(dut.room):
                    await ctx.tick()
                for at, word in enumerate(block):
                    ctx.set(dut.w_en, 1)
                    ctx.set(dut.w_left, words - 1 - at)
                    ctx.set(dut.w_data, word ^ damaged)
                    await ctx.tick()
                ctx.set(dut.w_en, 0)
            await pulse(ctx, dut.keep)

    async def read(ctx):
        for number, block in enumerate(blocks):
            for at, word in enumerate(block):
                while True:
                    ready = rng.random() < 0.7
                    ctx.set(dut.output.ready, ready)
                    _, _, valid, got, final = await ctx.tick().sample(
                        dut.output.valid, dut.output.payload, dut.final
                    )
                    if valid and ready:
                        break
                assert (got, final) == (word, at == words - 1), f"block {number}, word {at}"
            left.append(number)
        ctx.set(dut.output.ready, 0)
        await ctx.tick()
        assert ctx.get(dut.empty)
        assert ctx.get(dut.room)

    run(dut, write, read, limit=20_000, seed=seed)
    assert len(left) == len(blocks) > BLOCKS


def test_parameters():
    with pytest.raises(ValueError, match="power of two"):
        SdBuffer(32, 24)
