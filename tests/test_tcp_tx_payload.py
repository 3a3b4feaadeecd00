"""``PayloadReader``: payloads of any place and length, aligned as asked for, and their sums."""

import pytest
from streams import MemoryResponder, make_rng, run, seeds, stream_put
from trebuchet.cores.tcp.tx_payload import PayloadReader


def ones_sum(octets):
    """The one's complement sum of the bytes as they lie in the beats, in little-endian words."""
    total = sum(int.from_bytes(octets[k : k + 2], "little") for k in range(0, len(octets), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_payloads_and_sums(width, seed):
    """More jobs than the buffer has room for; the reader takes beats when it pleases."""
    dut, n = PayloadReader(width, 32, 2, 2), width // 8
    rng = make_rng(seed, f"jobs {width}")
    memory = bytearray(rng.randbytes(1024))
    jobs = []
    for _ in range(60):
        length = rng.choice([0, 1, n - 1, n, rng.randrange(16 * n), 31 * n - 1])
        jobs.append((rng.randrange(700), length, rng.randrange(n)))
    sums, beats = [], 0

    async def put(ctx):
        for addr, length, offset in jobs:
            job = {"addr": addr, "length": length, "offset": offset}
            await stream_put(ctx, dut.job, job, rng=rng)

    async def watch(ctx):
        async for _, _, done, value in ctx.tick().sample(dut.done, dut.sum):
            if done:
                sums.append(value)

    async def get(ctx):
        nonlocal beats
        waits = make_rng(seed, "waits")
        for number, (addr, length, offset) in enumerate(jobs):
            while len(sums) <= number:
                await ctx.tick()
            if waits.random() < 0.3:
                await ctx.tick().repeat(waits.randrange(1, 40))
            count = -(-(offset + length) // n) if length else 0
            found = b""
            for _ in range(count):
                while waits.random() < 0.3:
                    await ctx.tick()
                ctx.set(dut.r_en, 1)
                await ctx.tick()
                ctx.set(dut.r_en, 0)
                found += ctx.get(dut.r_data).to_bytes(n, "little")
            text = bytes(offset) + memory[addr : addr + length] if length else b""
            text += bytes(n * count - len(text))
            assert found == text, (addr, length, offset)
            # 0 and 0xFFFF are the same number.
            assert sums[number] % 0xFFFF == ones_sum(text) % 0xFFFF, (addr, length, offset)
            beats += count

    watch.background = True
    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))
    run(dut, put, get, watch, responder, limit=10_000, seed=seed)
    assert len(sums) == len(jobs)
    assert beats > 5 * 32


def test_a_beat_a_cycle():
    """One long payload, from a memory that never pauses."""
    dut, n = PayloadReader(64, 128, 2, 2), 8

    async def bench(ctx):
        await stream_put(ctx, dut.job, {"addr": 3, "length": 100 * n, "offset": 1})
        while not ctx.get(dut.done):
            await ctx.tick()

    responder = MemoryResponder(dut.mem, bytearray(2048), rng=None)
    assert run(dut, bench, responder, limit=500) < 101 + 30
