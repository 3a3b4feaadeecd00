"""Sums, extrema and sums of squares: of values, and of autocorrelations by their scale."""

from streams import make_rng, run, seeds
from trebuchet.cores.roles.ecg.moments import BandSums, ScaledSums
from trebuchet.models.ecg import model


@seeds(2)
def test_sum_and_extrema_of_bands(seed):
    dut, rng = BandSums(), make_rng(seed, "bands")

    async def bench(ctx):
        for span in (range(-4096, 4096), range(1, 50), range(-50, 0), [4095], [-4096]):
            values = [rng.choice(span) for _ in range(32)]
            for value in values:
                if rng.random() < 0.2:
                    ctx.set(dut.x, rng.choice([-4096, 4095]))
                    await ctx.tick()
                ctx.set(dut.x, value)
                ctx.set(dut.x_valid, 1)
                await ctx.tick()
                ctx.set(dut.x_valid, 0)
            found = ctx.get(dut.total), ctx.get(dut.most), ctx.get(dut.least)
            assert found == (sum(values), max(0, *values), min(0, *values))
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            assert (ctx.get(dut.total), ctx.get(dut.most), ctx.get(dut.least)) == (0, 0, 0)

    run(dut, bench, limit=300, seed=seed)


@seeds(2)
def test_sums_of_values_and_of_autocorrelations(seed):
    """r[0] of every length; the others are of its size, of either sign."""
    dut, rng = ScaledSums(), make_rng(seed, "scaled")

    async def clear(ctx):
        ctx.set(dut.clear, 1)
        await ctx.tick()
        ctx.set(dut.clear, 0)

    async def window(ctx):
        values = [rng.choice([-2048, 2047, rng.randrange(-2048, 2048)]) for _ in range(64)]
        for value in values:
            ctx.set(dut.value, value)
            ctx.set(dut.value_valid, 1)
            await ctx.tick()
            ctx.set(dut.value_valid, 0)
            if rng.random() < 0.2:
                await ctx.tick()
        await ctx.tick()
        found = ctx.get(dut.total), ctx.get(dut.squares)
        assert found == (sum(values), sum(value * value for value in values))

    async def correlation(ctx, bits):
        first = (1 << bits - 1) | rng.getrandbits(bits - 1) if bits else 0
        rest = [rng.randint(-first, first) for _ in range(15)]
        for k, r in enumerate([first, *rest]):
            ctx.set(dut.r, r)
            ctx.set(dut.r_valid, 1)
            ctx.set(dut.r_first, k == 0)
            ctx.set(dut.r_last, k == 15)
            await ctx.tick()
            assert not ctx.get(dut.done)
            ctx.set(dut.r_valid, 0)
            ctx.set(dut.r_last, 0)
        cycles = 0
        while not ctx.get(dut.done):
            await ctx.tick()
            cycles += 1
        assert cycles == 4
        shift = max(bits - model.CORRELATION_BITS, 0)
        scaled = [r >> shift for r in (first, *rest)]
        assert ctx.get(dut.shift) == shift
        found = ctx.get(dut.total), ctx.get(dut.squares)
        assert found == (sum(scaled), sum(q * q for q in scaled))

    async def bench(ctx):
        for bits in range(0, 31, 2) if seed else range(1, 31, 2):
            await clear(ctx)
            await correlation(ctx, bits)
            if rng.random() < 0.3:
                await clear(ctx)
                await window(ctx)

    run(dut, bench, limit=3000, seed=seed)
