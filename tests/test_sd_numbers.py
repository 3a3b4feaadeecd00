"""``SdNumbers`` counts bit by bit: against sums."""

import pytest
from sd_bench import pulse
from streams import make_rng, run, seeds
from trebuchet.cores.sd.numbers import PASS, SdNumbers

pytestmark = pytest.mark.slow


@seeds(2)
def test_numbers(seed):
    """Counting, comparison, bits to send and the size, at carries and at both ends."""
    rng, dut = make_rng(seed, "sd numbers"), SdNumbers()
    cases = [(2**32 - 1, 2**16 - 1), (2**16 - 1, 2**15), (7, 0), (2**31 - 1, 2)]
    cases += [(rng.getrandbits(32) >> rng.randrange(32), rng.getrandbits(16))]

    async def clock(ctx):
        time = rng.getrandbits(10)
        while True:
            ctx.set(dut.time, time)
            time = (time + 1) % 1024
            await ctx.tick()

    async def settle(ctx, limit):
        for _ in range(limit):
            if not ctx.get(dut.busy):
                return
            await ctx.tick()
        raise AssertionError(f"busy for more than {limit} cycles")

    async def check(ctx, lba, count, size):
        assert ctx.get(dut.past) == (lba >= size)
        assert ctx.get(dut.none) == (count == 0)
        assert ctx.get(dut.one) == (count == 1)
        assert ctx.get(dut.size) == size
        sent = [0, 0, 0]
        ctx.set(dut.rotate, 1)
        for _ in range(32):
            for i, bit in enumerate((dut.bit, dut.byte_bit, dut.left_bit)):
                sent[i] = sent[i] << 1 | ctx.get(bit)
            await ctx.tick()
        ctx.set(dut.rotate, 0)
        assert sent[0] == lba
        assert sent[2] == count << 16 | count
        if lba < 1 << 23:
            assert sent[1] == lba << 9

    async def bench(ctx):
        for lba, count in cases:
            size = rng.choice([lba, lba + 1, max(lba, 1) - 1, rng.getrandbits(32)]) % 2**32
            await pulse(ctx, dut.size_clear)
            ctx.set(dut.size_shift, 1)
            for i in reversed(range(32)):
                ctx.set(dut.size_bit, (size - 1) % 2**32 >> i & 1)
                await ctx.tick()
            ctx.set(dut.size_shift, 0)
            await pulse(ctx, dut.grow)
            await settle(ctx, 2 * PASS)
            ctx.set(dut.lba, lba)
            ctx.set(dut.count, count)
            await pulse(ctx, dut.load)
            await pulse(ctx, dut.compare)
            await settle(ctx, 64)
            await check(ctx, lba, count, size)
            for _ in range(2):
                await pulse(ctx, dut.advance)
                await settle(ctx, 2 * PASS)
                lba, count = (lba + 1) % 2**32, (count - 1) % 2**16
                await check(ctx, lba, count, size)

    clock.background = True
    run(dut, bench, clock, limit=200_000, seed=seed)
