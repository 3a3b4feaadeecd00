"""``Detector`` against the golden model, on values of D2 that only just are beats, or not."""

import numpy as np
import pytest
from streams import make_rng, run, seeds, stream_checker, stream_get
from trebuchet.cores.roles.ecg.detect import Detector
from trebuchet.models.ecg import model


def block_of(rng, count, size):
    """Values of D2 with peaks of about a size, at distances where something is decided."""
    values = [rng.randint(-2, 2) for _ in range(count)]
    at, scale = rng.randrange(30), 1.0
    while at < count - 8:
        for k in range(4):  # the sign changes at at + 4
            values[at + k] += int(size * scale)
            values[at + 4 + k] -= int(size * scale)
        if rng.random() < 0.4:  # somewhat larger, around the refractory period
            at, scale = at + rng.choice([27, 28, 29]), scale * 1.1
        else:  # or of another size, around the period of T waves
            at += rng.choice([9, 20, 33, 34, 35, 36, 60, 90, 140])
            scale = rng.choice([0.28, 0.35, 0.5, 0.55, 1, 1, 1])
    return values


def beats_of(values, low, high):
    """``(index, rr)`` of the beats that are reported, and all, by the model."""
    d2 = np.array(values)
    crossings, score = model.scores(d2)
    beats, previous = [], None
    for m in model.detect(crossings, score, model.signal_level(crossings, score, len(d2))):
        rr = model.RR_MAX if previous is None else min(4 * (m - previous), model.RR_MAX)
        beats.append((m, rr, low <= m < high))
        previous = m
    return beats


@pytest.mark.parametrize("report_all", [False, True])
@seeds(2)
def test_beats_are_the_models(report_all, seed):
    """Blocks of several sizes, one after the other, with a slow taker."""
    dut, rng = Detector(2048, report_all), make_rng(seed, f"blocks {report_all}")
    blocks = []
    kinds = (16, 99), (127, 12), (128, 15), (255, 640), (400, 640), (511, 20_000), (511, 300)
    for count, size in kinds:
        low = rng.choice([0, 8, count // 4])
        blocks.append((block_of(rng, count, size), low, rng.choice([count, count - 8])))
    seen = set()

    async def bench(ctx):
        for values, low, high in blocks:
            ctx.set(dut.low, low)
            ctx.set(dut.high, high)
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            for k, value in enumerate(values):
                ctx.set(dut.i_d2, value)
                ctx.set(dut.i_last, k == len(values) - 1)
                ctx.set(dut.i_valid, 1)
                await ctx.tick()
                ctx.set(dut.i_valid, 0)
                await ctx.tick().repeat(rng.choice([1, 1, 1, 3]))
            beats = beats_of(values, low, high)
            shown = [beat for beat in beats if beat[2] or report_all]
            waits = make_rng(seed, len(values))
            for beat in shown:
                got = await stream_get(ctx, dut.beat, rng=waits)
                assert (got.index, got.rr, got.inside, got.end) == (*beat, 0)
            assert (await stream_get(ctx, dut.beat, rng=waits)).end
            while not ctx.get(dut.done):
                await ctx.tick()
            assert ctx.get(dut.found) == sum(inside for *_, inside in beats)
            assert not ctx.get(dut.beat.valid)
            seen.update(inside for *_, inside in beats)

    run(dut, bench, stream_checker(dut.beat), limit=30_000, seed=seed)
    assert seen == {True, False}


@pytest.mark.parametrize("samples", [63, "64"])
def test_bad_parameters(samples):
    with pytest.raises(
        ValueError, match=f"^Samples of a block must be at least 64, not {samples!r}"
    ):
        Detector(samples)
