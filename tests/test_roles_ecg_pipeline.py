"""The ECG role against its golden model, bit for bit."""

import numpy as np
import pytest
from streams import make_rng, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.roles.ecg.pipeline import EcgPipeline
from trebuchet.models.ecg import model
from trebuchet.models.ecg.second import SECOND


def heart(rng, count, *, beats=None, noise=8, scale=250):
    """A crude trace: ``beats`` QRS complexes of random height, width and polarity on noise."""
    x = np.array([rng.gauss(0, noise) for _ in range(count)])
    x += 60 * np.sin(np.arange(count) * rng.uniform(0.002, 0.02))
    beats = count // 300 if beats is None else beats
    for i in range(beats):
        centre = (i + 0.5) * count / beats + rng.uniform(-60, 60)
        width, height = rng.uniform(3, 9), scale * rng.uniform(0.5, 2) * rng.choice((1, 1, 1, -1))
        t = np.arange(count) - centre
        x += height * np.exp(-((t / width) ** 2)) - 0.4 * height * np.exp(
            -(((t - 3 * width) / width) ** 2)
        )
    return np.clip(np.rint(x), -32768, 32767).astype(np.int16)


def block(kind, rng):
    """A block of samples of one kind that the role must survive."""
    if kind == "heart":
        return heart(rng, rng.randint(600, 1500))
    if kind == "noise":
        return np.array([rng.randint(-32768, 32767) for _ in range(rng.randint(64, 700))], np.int16)
    if kind == "square":
        half = rng.randint(8, 200)
        return np.array(
            [32767 if (i // half) & 1 else -32768 for i in range(rng.randint(64, 900))], np.int16
        )
    if kind == "coarse":  # equal extrema, and plateaus, wherever one is searched for
        return heart(rng, rng.randint(600, 1500), noise=0) // 256 * 256
    if kind == "short":
        return heart(rng, rng.randint(64, 140), beats=1)
    return np.full(rng.randint(64, 400), rng.choice((-32768, 0, 32767)), np.int16)


def plain_block(samples):
    """The block that says: report every beat."""
    return {"samples": len(samples), "low": 8, "high": len(samples) // 4 - 7}


async def feed(ctx, dut, blocks, rng=None):
    """Blocks and their samples into a pipeline."""
    for samples in blocks:
        await stream_put(ctx, dut.block, plain_block(samples), rng=rng)
        even, odd = samples[0::2], samples[1::2]
        pairs = (len(samples) + 1) // 2
        for i in range(pairs):
            last = i == pairs - 1
            value = {"even": int(even[i]), "odd": int(odd[i]) if i < len(odd) else 0}
            await stream_put(ctx, dut.pair, value | {"last": last}, rng=rng, idle=0.1)


async def collect(ctx, dut, results, rng, stall=0.3):
    """The records of as many blocks as there are expected ``results``."""
    for number, expected in enumerate(results):
        for at in range(0, len(expected), 16):
            record = await stream_get(ctx, dut.record, rng=rng, stall=stall)
            raw = record.as_bits().to_bytes(16, "little")
            assert raw == expected[at : at + 16], f"record {at // 16} of block {number}"
        await stream_get(ctx, dut.end, rng=rng)


CASES = [
    ("heart", 2, model.FAITHFUL),
    ("heart", 1, model.FAITHFUL),
    ("noise", 1, model.FAITHFUL),
    ("square", 2, model.FAITHFUL),
    ("flat", 2, model.FAITHFUL),
    ("coarse", 1, model.FAITHFUL),
    ("coarse", 2, SECOND),
    ("heart", 2, SECOND),
    ("short", 1, SECOND),
]


@pytest.mark.parametrize(("kind", "buffers", "preset"), CASES)
@seeds(1)
def test_pipeline_equals_model(kind, buffers, preset, seed):
    rng = make_rng(seed, kind)
    weights = random_weights(preset.inputs, preset.hidden, rng)
    dut = EcgPipeline(weights, preset=preset, buffers=buffers, max_samples=1504)
    blocks = [block(kind, rng) for _ in range(3)]

    async def put(ctx):
        await feed(ctx, dut, blocks, make_rng(seed, "put"))

    async def take(ctx):
        results = [model.classify_block(samples, weights, preset) for samples in blocks]
        await collect(ctx, dut, results, make_rng(seed, "take"), 0.9)
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.busy)

    run(dut, put, take, stream_checker(dut.record), limit=60_000, seed=seed)


def random_weights(inputs, hidden, rng):
    """Weights of a network of any size that use their whole range."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    return model.Weights(
        numbers.integers(-32768, 32768, (hidden, inputs)),
        numbers.integers(-(1 << 33), 1 << 33, hidden),
        numbers.integers(-32768, 32768, (model.OUTPUTS, hidden)),
        numbers.integers(-(1 << 33), 1 << 33, model.OUTPUTS),
        numbers.integers(0, 65536, 1 << model.TABLE_LOG2),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_samples": 4094}, "^Samples of a block must be a multiple of 4, not 4094$"),
        ({"buffers": 3}, "^Buffers must be 1 or 2, not 3$"),
    ],
)
def test_pipeline_rejects(arguments, message):
    with pytest.raises(ValueError, match=message):
        EcgPipeline(**arguments)


@pytest.mark.nightly
def test_a_block_takes_no_longer_than_its_beats():
    samples = heart(make_rng(0, "cycles"), 4096, beats=12)
    expected = model.classify_block(samples)
    assert len(expected) == 12 * 16
    dut = EcgPipeline()
    ends = []

    async def put(ctx):
        await feed(ctx, dut, [samples] * 3)

    async def take(ctx):
        await collect(ctx, dut, [expected] * 3, None)

    async def watch(ctx):
        cycle = 0
        async for _, _, end in ctx.tick().sample(dut.end.valid & dut.end.ready):
            cycle += 1
            if end:
                ends.append(cycle)

    watch.background = True
    run(dut, put, take, watch, limit=20_000)
    assert ends[2] - ends[1] <= 4300
