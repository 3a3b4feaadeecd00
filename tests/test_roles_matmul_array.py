"""``MacArray``: rows of the product of what is in its stores, at the pace of its steps."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.roles.matmul.array import MacArray, Shape


def rows_of(matrix, words):
    """Beats of a matrix, row by row: ``(row, beat of the row, value)``."""
    for row, values in enumerate(matrix):
        for beat in range(0, len(values), words):
            part = values[beat : beat + words]
            yield row, beat // words, sum(v << 32 * k for k, v in enumerate(part))


@pytest.mark.parametrize(("n", "macs", "width"), [(4, 4, 32), (8, 4, 64), (8, 8, 32), (16, 8, 128)])
@seeds(2)
def test_products(n, macs, width, seed):
    """Two pairs, one in each half; the second is stored while the first is worked on."""
    shape = Shape(n, macs, width)
    dut, rng = MacArray(shape), make_rng(seed, f"array {n}")
    pairs = [[[[rng.getrandbits(32) for _ in range(n)] for _ in range(n)] for _ in "ab"]
             for _ in range(2)]  # fmt: skip
    got = []

    def stores(half):
        for b, matrix in enumerate(pairs[half]):
            for row, beat, value in rows_of(matrix, shape.words):
                yield {"data": value, "half": half, "b": b, "row": row, "beat": beat}

    async def store(ctx, beats, most):
        for _ in range(most):
            beat = next(beats, None)
            ctx.set(dut.store_en, beat is not None)
            if beat is not None:
                ctx.set(dut.store, beat)
            await ctx.tick()
        ctx.set(dut.store_en, 0)

    async def bench(ctx):
        await store(ctx, stores(0), shape.pair_beats)
        later = stores(1)
        for half in range(2):
            if half:
                await store(ctx, later, shape.pair_beats)
            for row in range(n):
                for tile in range(shape.tiles):
                    for k in range(shape.sweep):
                        ctx.set(dut.step_en, k < n)
                        ctx.set(dut.step, {"k": k % n, "tile": tile, "row": row, "half": half})
                        await store(ctx, later if rng.random() < 0.5 else iter(()), 1)
                        ctx.set(dut.step_en, 0)
                    await ctx.tick().repeat(rng.randrange(1, 4))
        await ctx.tick().repeat(4 * n + 20)

    async def get(ctx):
        async for _, _, enable, value in ctx.tick().sample(dut.o_en, dut.o):
            if enable:
                got.append(value)

    get.background = True
    run(dut, bench, get, limit=8000, seed=seed)
    expected = []
    for a, b in pairs:
        rows = [[sum(x * y for x, y in zip(row, column, strict=True)) % (1 << 32)
                 for column in zip(*b, strict=True)] for row in a]  # fmt: skip
        expected += [value for _, _, value in rows_of(rows, shape.words)]
    assert got == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5,), "^Order of the matrices must be 4, 8, 16, 32 or 64, not 5$"),
        ((8, 16), "^Number of MACs must be a power of two from 4 to 8, not 16$"),
    ],
)
def test_bad_shapes(arguments, message):
    with pytest.raises(ValueError, match=message):
        Shape(*arguments)
