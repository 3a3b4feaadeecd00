"""Byte realignment against slices of bytes."""

import pytest
from streams import (
    make_rng,
    packet_get,
    packet_put,
    random_bytes,
    run,
    seeds,
    stream_checker,
)
from trebuchet.cores.realign import PacketPrepend, PacketTrim


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("max_skip", [None, 0, 21, 54])
@seeds(2)
def test_trim(width, max_skip, seed):
    dut = PacketTrim(width, max_skip)
    rng = make_rng(seed, "packets")
    jobs = []
    for _ in range(100):
        skip = rng.randint(0, dut.max_skip)
        packet = random_bytes(rng, 1, rng.choice([dut.n, 3 * dut.n, skip + 1, skip + 40]))
        jobs.append((packet, skip, rng.random() < 0.2))
    swallowed = 0

    async def put(ctx):
        r = make_rng(seed, "put")
        for packet, skip, error in jobs:
            ctx.set(dut.skip, skip)
            await packet_put(ctx, dut.i, packet, error=error, rng=r, idle=r.choice([0, 0.3]))
        await ctx.tick().repeat(2)

    async def get(ctx):
        r = make_rng(seed, "get")
        for packet, skip, error in jobs:
            if len(packet) > skip:
                got = await packet_get(ctx, dut.o, rng=r, stall=r.choice([0, 0.4]))
                assert got == (packet[skip:], error)

    async def count(ctx):
        nonlocal swallowed
        while True:
            _, _, strobe = await ctx.tick().sample(dut.swallowed)
            swallowed += strobe

    count.background = True
    run(dut, put, get, count, stream_checker(dut.o), limit=9_000, seed=seed)
    assert swallowed == sum(len(packet) <= skip for packet, skip, _ in jobs)


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(3)
def test_prepend(width, seed):
    dut = PacketPrepend(width)
    rng = make_rng(seed, "packets")
    jobs = []
    for _ in range(100):
        head = random_bytes(rng, 0, dut.n - 1)
        packet = random_bytes(rng, 1, rng.choice([1, dut.n, 2 * dut.n, 40]))
        jobs.append((packet, head, rng.random() < 0.2))

    async def put(ctx):
        r = make_rng(seed, "put")
        for packet, head, error in jobs:
            noise = r.randbytes(dut.n - 1 - len(head))
            ctx.set(dut.head, int.from_bytes(head + noise, "little"))
            ctx.set(dut.count, len(head))
            await packet_put(ctx, dut.i, packet, error=error, rng=r, idle=r.choice([0, 0.3]))

    async def get(ctx):
        r = make_rng(seed, "get")
        for packet, head, error in jobs:
            got = await packet_get(ctx, dut.o, rng=r, stall=r.choice([0, 0.4]))
            assert got == (head + packet, error)

    run(dut, put, get, stream_checker(dut.o), limit=9_000, seed=seed)


@pytest.mark.parametrize("skip", range(4))
def test_trim_keeps_line_rate(skip):
    dut = PacketTrim(32)
    packet = bytes(range(64))

    async def put(ctx):
        ctx.set(dut.skip, skip)
        for _ in range(10):
            await packet_put(ctx, dut.i, packet)

    async def get(ctx):
        for _ in range(10):
            assert await packet_get(ctx, dut.o) == (packet[skip:], False)

    assert run(dut, put, get, limit=200) <= 10 * 16 + 3


def test_bad_parameters():
    with pytest.raises(ValueError, match="must be a non-negative integer, not -1"):
        PacketTrim(32, -1)
    with pytest.raises(ValueError, match="must be one of"):
        PacketPrepend(33)
