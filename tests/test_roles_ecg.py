"""The ECG role against its golden model, bit for bit."""

import dataclasses
import itertools

import numpy as np
import pytest
from streams import MemoryResponder, make_rng, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.roles.ecg.network import Network
from trebuchet.cores.roles.ecg.pipeline import EcgPipeline
from trebuchet.cores.roles.ecg.role import EcgRole
from trebuchet.cores.roles.ecg.window import FEATURE_ORDER
from trebuchet.models.ecg import model
from trebuchet.models.ecg.second import SECOND
from trebuchet.models.ecg.words import weight_words
from trebuchet.models.status import Status


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


@pytest.mark.parametrize(
    "width", [64, *(pytest.param(n, marks=pytest.mark.nightly) for n in (32, 128))]
)
@seeds(2)
def test_role_answers_jobs(width, seed):
    rng = make_rng(seed, "jobs")
    dut = EcgRole(width=width)
    memory = bytearray(rng.randbytes(1 << 16))
    cases = [("heart", 2048, None), ("flat", 2048, None), ("short", 16, None)]
    cases += [("heart", 0, None), ("heart", 2048, 126), ("heart", 2048, 8194), ("heart", 2048, 201)]
    plan = []
    for number, (kind, room, length) in enumerate(cases):
        samples = heart(rng, 800) if kind == "heart" else block(kind, rng)
        raw = samples.astype("<i2").tobytes()
        ring_log2, base = 14, 0x4000 * rng.randint(0, 1)
        offset = rng.randrange(1 << ring_log2)
        expected = model.classify_block(samples) if length is None else b""
        status = Status.OK if length is None else Status.BAD_LENGTH
        if len(expected) > room:
            expected, status = b"", Status.NO_ROOM
        job = {
            "source": rng.randrange(16),
            "session": rng.randrange(1 << 17),
            "id": rng.getrandbits(32),
            "base": base,
            "offset": offset,
            "ring_log2": ring_log2,
            "length": len(raw) if length is None else length,
            "result": 0x8000 + 0x1000 * number,
            "room": room,
        }
        plan.append((job, raw, expected, status))

    async def bench(ctx):
        for job, raw, expected, status in plan:
            for i, byte in enumerate(raw):
                memory[job["base"] + (job["offset"] + i) % (1 << 14)] = byte
            before = bytes(memory)
            await stream_put(ctx, dut.job, job, rng=rng)
            answer = await stream_get(ctx, dut.answer, rng=rng)
            for name in ("source", "session", "id"):
                assert answer[name] == job[name]
            assert answer.status == status
            assert answer.length == len(expected)
            at = job["result"]
            assert memory[at : at + len(expected)] == expected
            room = at + job["room"]
            assert memory[:at] == before[:at], "wrote before the result"
            assert memory[room:] == before[room:], "wrote past its room"

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))
    checkers = [stream_checker(s) for s in (dut.answer, dut.mem.cmd, dut.mem.wdata)]
    run(dut, bench, responder, *checkers, limit=60_000, seed=seed)


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
