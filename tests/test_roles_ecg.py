"""The ECG role against its golden model, bit for bit."""

import numpy as np
import pytest
from streams import MemoryResponder, make_rng, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.roles.ecg.network import LANES, Network
from trebuchet.cores.roles.ecg.pipeline import EcgPipeline
from trebuchet.cores.roles.ecg.role import EcgRole
from trebuchet.cores.roles.ecg.window import FEATURE_ORDER
from trebuchet.models.ecg import model
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
    if kind == "short":
        return heart(rng, rng.randint(64, 140), beats=1)
    return np.full(rng.randint(64, 400), rng.choice((-32768, 0, 32767)), np.int16)


KINDS = ("heart", "noise", "square", "short", "flat")


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("buffers", [1, 2])
@seeds(1)
def test_pipeline_equals_model(kind, buffers, seed):
    rng = make_rng(seed, kind)
    dut = EcgPipeline(buffers=buffers, max_samples=1504, lanes=rng.choice((1, 2, 7, 11)))
    blocks = [block(kind, rng) for _ in range(4)]

    async def put(ctx):
        await feed(ctx, dut, blocks, make_rng(seed, "put"))

    async def take(ctx):
        results = [model.classify_block(samples) for samples in blocks]
        await collect(ctx, dut, results, make_rng(seed, "take"), 0.9)
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.busy)

    run(dut, put, take, stream_checker(dut.record), limit=60_000, seed=seed)


@pytest.mark.parametrize("lanes", [1, 2, 7, LANES])
@seeds(1)
def test_network_equals_model(lanes, seed):
    rng = make_rng(seed, "network")
    weights = model.load_weights()
    dut = Network(weights, lanes=lanes, order=FEATURE_ORDER)
    vectors = [[rng.randint(-32768, 32767) for _ in range(11)] for _ in range(6)]
    vectors += [
        [rng.randint(0, 9000) for _ in range(10)] + [rng.randint(0, 4088)] for _ in range(6)
    ]
    cycles = []

    async def bench(ctx):
        for i, vector in enumerate(vectors):
            for j in FEATURE_ORDER:
                value = {"value": vector[j], "last": j == FEATURE_ORDER[-1], "index": i}
                await stream_put(ctx, dut.vector, value, rng=rng, idle=0.8)

    async def measure(ctx):
        begun = []
        async for _, _, last, ready, valid in ctx.tick().sample(
            dut.vector.valid & dut.vector.payload.last,
            dut.vector.ready,
            dut.record.valid,
        ):
            begun = [count + 1 for count in begun]
            if valid and (len(cycles) < len(vectors)) and not measure.before:
                cycles.append(begun.pop(0))
            measure.before = valid
            if last and ready:
                begun.append(0)

    measure.background, measure.before = True, False

    async def take(ctx):
        for i, vector in enumerate(vectors):
            payload = await stream_get(ctx, dut.record)
            label, score, _ = model.network(np.array(vector), weights)
            expected = model.Beat(4 * i, int(label), tuple(int(s) for s in score)).pack()
            assert payload.record.as_bits().to_bytes(16, "little") == expected

    run(dut, bench, take, measure, limit=10_000, seed=seed)
    assert len(cycles) == len(vectors)
    if lanes == LANES:
        assert min(cycles) <= 61, "sopc-cloud-platform, 6.4"


@pytest.mark.parametrize("width", [32, 64, 128])
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
