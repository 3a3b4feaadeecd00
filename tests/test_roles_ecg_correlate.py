"""``Correlator``: autocorrelations of the bands in its RAM, against the golden model."""

import numpy as np
from streams import make_rng, run, seeds
from trebuchet.cores.roles.ecg.correlate import BANDS, Correlator
from trebuchet.models.ecg import model


@seeds(3)
def test_equals_the_model(seed):
    """Twice without a reset between; the largest values among others; as fast as is stated."""
    dut, rng = Correlator(), make_rng(seed, "bands")
    extremes = [-4096, 4095]
    rams = [
        [rng.randrange(-4096, 4096) for _ in range(64)],
        [rng.choice(extremes) for _ in range(64)],
    ]
    ram, values, found, busy = list(rams[0]), [], [], []

    async def memory(ctx):
        samples = dut.a_addr, dut.b_addr
        async for _, _, a, b in ctx.tick().sample(*samples):
            ctx.set(dut.a_data, ram[a])
            ctx.set(dut.b_data, ram[b])

    async def get(ctx):
        samples = dut.x_valid, dut.x, dut.r_valid, dut.r, dut.r_first, dut.r_last, dut.busy
        async for _, _, x_valid, x, r_valid, r, first, last, works in ctx.tick().sample(*samples):
            busy.append(works)
            if x_valid:
                values.append(x)
            if r_valid:
                found.append((r, first, last))

    async def bench(ctx):
        for content in rams:
            ram[:] = content
            values.clear()
            found.clear()
            busy.clear()
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            await ctx.tick().repeat(240)
            assert sum(busy) == 144 + 40 + 40
            expected = []
            for _, at, log2 in BANDS:
                n = 1 << log2
                band = model.autocorrelation(np.array(content[at : at + n])).tolist()
                expected += [(r, k == 0, k == n - 1) for k, r in enumerate(band)]
            assert found == expected
            assert values == content

    memory.background = get.background = True
    run(dut, bench, memory, get, limit=600, seed=seed)
