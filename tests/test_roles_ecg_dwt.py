"""Wavelet levels against the golden model: blocks of every short length, with pauses."""

import numpy as np
import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.roles.ecg.dwt import DwtLevel, TwoLevelDwt
from trebuchet.models.ecg import model

BITS = 12


def blocks_of(rng, lengths):
    """Samples of blocks, corners of the range among them."""
    corners = [-(1 << BITS - 1), (1 << BITS - 1) - 1, 0]
    span = 1 << BITS - 1
    return [[rng.choice([*corners, rng.randrange(-span, span)]) for _ in range(n)] for n in lengths]


def feed(dut, blocks, rng, pause, busy):
    async def bench(ctx):
        for block in blocks:
            for at in range(0, len(block), 2):
                while busy and rng.random() < 0.3:
                    ctx.set(dut.i_even, rng.randrange(100))
                    await ctx.tick()
                ctx.set(dut.i_even, block[at])
                ctx.set(dut.i_odd, block[at + 1])
                ctx.set(dut.i_last, at + 2 == len(block))
                ctx.set(dut.i_valid, 1)
                await ctx.tick()
                ctx.set(dut.i_valid, 0)
                ctx.set(dut.i_last, 0)
            await ctx.tick().repeat(pause)
        await ctx.tick().repeat(12)

    return bench


@pytest.mark.parametrize("gap", [1, 3])
@pytest.mark.parametrize("busy", [True, False])
@seeds(2)
def test_a_level(gap, busy, seed):
    dut, rng = DwtLevel(BITS, gap), make_rng(seed, f"level {gap}")
    blocks = blocks_of(rng, [2, 4, 2, 6, *(2 * rng.randrange(1, 20) for _ in range(12))])
    got, block = [], []

    async def get(ctx):
        samples = dut.o_valid, dut.o_last, dut.o_a, dut.o_d
        async for _, _, valid, last, a, d in ctx.tick().sample(*samples):
            if valid:
                block.append((a, d))
                if last:
                    got.append(block.copy())
                    block.clear()

    get.background = True
    run(dut, feed(dut, blocks, rng, gap, busy), get, limit=3000, seed=seed)
    expected = [list(zip(*map(np.ndarray.tolist, model.dwt_level(b)), strict=True)) for b in blocks]
    assert got == expected


@pytest.mark.parametrize("gap", [1, 3])
@seeds(2)
def test_two_levels(gap, seed):
    dut, rng = TwoLevelDwt(BITS, gap), make_rng(seed, f"two {gap}")
    blocks = blocks_of(rng, [4, 8, *(4 * rng.randrange(1, 10) for _ in range(12))])
    first, second, lasts = [], [], []

    async def get(ctx):
        samples = dut.valid1, dut.a1, dut.d1, dut.valid2, dut.last2, dut.a2, dut.d2
        async for _, _, v1, a1, d1, v2, last2, a2, d2 in ctx.tick().sample(*samples):
            if v1:
                first.append((a1, d1))
            if v2:
                second.append((a2, d2))
                lasts.append(last2)

    get.background = True
    run(dut, feed(dut, blocks, rng, 8 + gap, True), get, limit=3000, seed=seed)
    expected = [[], [], []]
    for block in blocks:
        a1, d1 = model.dwt_level(block)
        a2, d2 = model.dwt_level(a1)
        expected[0] += zip(a1.tolist(), d1.tolist(), strict=True)
        expected[1] += zip(a2.tolist(), d2.tolist(), strict=True)
        expected[2] += [0] * (len(a2) - 1) + [1]
    assert [first, second, lasts] == expected
