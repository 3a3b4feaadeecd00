"""``Network`` against its model: records, new weights, ties, speed."""

import dataclasses
import itertools

import numpy as np
import pytest
from streams import make_rng, run, seeds, stream_checker, stream_get, stream_put
from test_roles_ecg_pipeline import random_weights
from trebuchet.cores.roles.ecg.network import Network
from trebuchet.cores.roles.ecg.window import FEATURE_ORDER
from trebuchet.models.ecg import model
from trebuchet.models.ecg.words import weight_words


def record_of(vector, weights, place):
    label, score, _ = model.network(np.array(vector), weights)
    return model.Beat(4 * place, int(label), tuple(int(s) for s in score)).pack()


async def send(ctx, dut, vectors, order, rng=None, first=0):
    """Vectors into a network; ``index`` counts from ``first``."""
    for number, vector in enumerate(vectors, first):
        for j in order:
            value = {"value": vector[j], "last": j == order[-1], "index": number}
            await stream_put(ctx, dut.vector, value, rng=rng, idle=0.3)


async def expect(ctx, dut, expected, rng=None):
    for record in expected:
        payload = await stream_get(ctx, dut.record, rng=rng)
        assert payload.record.as_bits().to_bytes(16, "little") == record


@pytest.mark.parametrize(("inputs", "hidden", "lanes"), [(11, 20, 11), (5, 3, 1), (13, 6, 5)])
@seeds(1)
def test_network_equals_model_before_and_after_loading(inputs, hidden, lanes, seed):
    """Of any size, on any number of lanes, the inputs in any order."""
    rng = make_rng(seed, "network")
    order = list(range(inputs))
    rng.shuffle(order)
    order = tuple(order)
    old, new = (random_weights(inputs, hidden, rng) for _ in range(2))
    dut = Network(old, lanes=lanes, order=order, loadable=True)
    vectors = [[rng.randint(-32768, 32767) for _ in order] for _ in range(5)]

    async def load(ctx, words):
        ctx.set(dut.reload, 1)
        await ctx.tick()
        ctx.set(dut.reload, 0)
        for word in words:
            await stream_put(ctx, dut.load, word, rng=rng, idle=0.05)

    async def bench(ctx):
        await send(ctx, dut, vectors, order, rng)
        await ctx.tick().until(~dut.busy & ~dut.record.valid)
        words = weight_words(new, order)
        await load(ctx, words[: rng.randrange(len(words))])  # given up in the middle
        await load(ctx, [*words, 1, 2, 3])
        await send(ctx, dut, vectors, order, rng, first=5)

    async def take(ctx):
        gaps = make_rng(seed, "take")
        expected = [record_of(v, old, i) for i, v in enumerate(vectors)]
        expected += [record_of(v, new, i) for i, v in enumerate(vectors, 5)]
        await expect(ctx, dut, expected, gaps)

    run(dut, bench, take, stream_checker(dut.record), limit=20_000, seed=seed)


@seeds(1)
def test_of_equal_outputs_the_lowest_is_the_label(seed):
    """Each pair of classes equal and above the others, all of them equal, and the extremes."""
    rng = make_rng(seed, "equal")
    inputs, hidden = 5, 3
    order = tuple(range(inputs))
    vector = [rng.randint(-32768, 32767) for _ in order]
    groups = [*itertools.combinations(range(model.OUTPUTS), 2), tuple(range(model.OUTPUTS))]
    for high, low in ((1 << 32, 0), (0, 1 - (1 << 33)), (-1, -2), ((1 << 33) - 1, (1 << 33) - 2)):
        for group in groups:
            weights = random_weights(inputs, hidden, rng)
            bias = np.array([high if k in group else low for k in range(model.OUTPUTS)])
            weights = dataclasses.replace(weights, w2=weights.w2 * 0, b2=bias)
            label = model.network(np.array(vector), weights)[0]
            assert label == min(group)
            dut = Network(weights, lanes=inputs, order=order)

            async def bench(ctx, dut=dut, weights=weights):
                await send(ctx, dut, [vector], order)
                await expect(ctx, dut, [record_of(vector, weights, 0)])

            run(dut, bench, limit=1000, seed=seed)


def test_network_classifies_a_beat_in_61_cycles():
    """sopc-cloud-platform, 6.4: from the last feature to the record."""
    rng = make_rng(0, "cycles")
    weights = model.load_weights()
    dut = Network(weights, order=FEATURE_ORDER)
    vector = [rng.randint(0, 9000) for _ in range(11)]

    async def bench(ctx):
        await send(ctx, dut, [vector], FEATURE_ORDER)
        cycles = 0
        while not ctx.get(dut.record.valid):
            await ctx.tick()
            cycles += 1
        assert cycles <= 61
        await expect(ctx, dut, [record_of(vector, weights, 0)])

    run(dut, bench, limit=1000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lanes": 0}, "^Lanes must be an integer of at least 1, not 0$"),
        ({"order": (0, 1)}, "^Order must hold 0 to 10 once each, not \\(0, 1\\)$"),
    ],
)
def test_network_rejects(arguments, message):
    with pytest.raises(ValueError, match=message):
        Network(model.load_weights(), **arguments)
