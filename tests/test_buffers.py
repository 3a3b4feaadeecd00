"""Skid buffer, FIFOs: contents, order, drops, throughput, under random back-pressure."""

import pytest
from amaranth.lib import data
from streams import (
    make_rng,
    packet_get,
    packet_put,
    plain,
    random_bytes,
    run,
    seeds,
    stream_checker,
    stream_get,
    stream_put,
)
from trebuchet.cores.buffers import PacketFifo, SkidBuffer, StreamFifo

SHAPE = data.StructLayout({"a": 9, "b": 3})
BUFFERS = {
    "skid": lambda: SkidBuffer(SHAPE),
    **{f"fifo{d}": lambda d=d: StreamFifo(SHAPE, d) for d in (2, 3, 4, 5, 16)},
    **{f"fifo{d}r": lambda d=d: StreamFifo(SHAPE, d, registered=True) for d in (2, 3, 4, 17)},
}


@pytest.mark.parametrize("name", BUFFERS)
@seeds(2)
def test_buffer_keeps_content_and_order(name, seed):
    dut = BUFFERS[name]()
    rng = make_rng(seed, "content")
    beats = [{"a": rng.getrandbits(9), "b": rng.getrandbits(3)} for _ in range(150)]

    async def put(ctx):
        r = make_rng(seed, "put")
        for k, beat in enumerate(beats):
            await stream_put(ctx, dut.i, beat, rng=r, idle=0.1 if k < 75 else 0.6)

    async def get(ctx):
        r = make_rng(seed, "get")
        for k, beat in enumerate(beats):
            got = plain(await stream_get(ctx, dut.o, rng=r, stall=0.6 if k < 75 else 0.1))
            assert got == beat

    run(dut, put, get, stream_checker(dut.o), limit=2_000, seed=seed)


@pytest.mark.parametrize("name", ["skid", "fifo3", "fifo4", "fifo5", "fifo16", "fifo4r", "fifo17r"])
def test_buffer_moves_a_beat_every_cycle(name):
    dut = BUFFERS[name]()

    async def put(ctx):
        for k in range(100):
            await stream_put(ctx, dut.i, {"a": k, "b": 0})

    async def get(ctx):
        for k in range(100):
            assert plain(await stream_get(ctx, dut.o)) == {"a": k, "b": 0}

    assert run(dut, put, get, limit=110) <= 104


def test_fifo_level_and_capacity():
    dut = StreamFifo(8, 5)

    async def bench(ctx):
        for k in range(5):
            assert ctx.get(dut.level) == k
            await stream_put(ctx, dut.i, k)
        assert ctx.get(dut.level) == 5
        assert not ctx.get(dut.i.ready)
        for k in range(5):
            assert await stream_get(ctx, dut.o) == k
        assert ctx.get(dut.level) == 0

    run(dut, bench, limit=50)


@pytest.mark.parametrize("depth", [0, 1, "4", None])
def test_fifo_rejects_bad_depth(depth):
    with pytest.raises(ValueError, match=f"must be an integer of at least 2, not {depth!r}"):
        StreamFifo(8, depth)


@pytest.mark.parametrize("depth", [0, 1, 3, 12, "4"])
def test_packet_fifo_rejects_bad_depth(depth):
    with pytest.raises(ValueError, match=f"must be a power of two >= 2, not {depth!r}"):
        PacketFifo(32, depth)


def _packets(rng, count, width, depth):
    """Packets around the interesting sizes, some damaged, some longer than the storage."""
    n = width // 8
    for _ in range(count):
        longest = rng.choice([1, n, 2 * n, depth * n // 2, depth * n, (depth + 2) * n])
        yield random_bytes(rng, 1, longest), rng.random() < 0.2


def _strobes(dut, counts):
    async def count(ctx):
        while True:
            _, _, *strobes = await ctx.tick().sample(dut.dropped_error, dut.dropped_overflow)
            for k, strobe in enumerate(strobes):
                counts[k] += strobe

    count.background = True
    return count


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("depth", [2, 16])
@seeds(2)
def test_packet_fifo_with_back_pressure(width, depth, seed):
    """Without dropping when full, exactly the damaged and the too long packets are missing."""
    dut = PacketFifo(width, depth, drop_when_full=False)
    sent = list(_packets(make_rng(seed, "packets"), 60, width, depth))
    too_long = [p for p, _ in sent if len(p) > depth * width // 8]
    good = [p for p, error in sent if len(p) <= depth * width // 8 and not error]
    counts = [0, 0]

    async def put(ctx):
        rng = make_rng(seed, "put")
        for packet, error in sent:
            await packet_put(ctx, dut.i, packet, error=error, rng=rng)
        await ctx.tick().repeat(3)

    async def get(ctx):
        rng = make_rng(seed, "get")
        for packet in good:
            assert await packet_get(ctx, dut.o, rng=rng, stall=0.5) == (packet, False)

    run(dut, put, get, stream_checker(dut.o), _strobes(dut, counts), limit=9_000, seed=seed)
    assert counts == [len(sent) - len(too_long) - len(good), len(too_long)]


@pytest.mark.parametrize("width", [32, 128])
@seeds(3)
def test_packet_fifo_drops_when_full(width, seed):
    """Never waits; what comes out is a subsequence; every packet comes out or is counted."""
    depth = 8
    dut = PacketFifo(width, depth)
    sent = list(_packets(make_rng(seed, "packets"), 120, width, depth))
    received, counts = [], [0, 0]

    async def put(ctx):
        rng = make_rng(seed, "put")
        for packet, error in sent:
            await packet_put(ctx, dut.i, packet, error=error, rng=rng, idle=0.3)
            assert ctx.get(dut.i.ready)
        await ctx.tick().repeat(100)

    async def get(ctx):
        rng = make_rng(seed, "get")
        while True:
            packet, error = await packet_get(ctx, dut.o, rng=rng, stall=0.6)
            assert not error
            received.append(packet)

    get.background = True
    run(dut, put, get, stream_checker(dut.o), _strobes(dut, counts), limit=9_000, seed=seed)
    damaged = sum(error for _, error in sent)
    assert len(received) + sum(counts) == len(sent)
    assert 0 < counts[0] <= damaged
    assert counts[1] > 0
    candidates = iter(packet for packet, error in sent if not error)
    assert all(any(packet == c for c in candidates) for packet in received)
    assert len(received) > len(sent) // 4


def test_packet_fifo_line_rate_and_latency():
    dut = PacketFifo(32, 64)
    packet = bytes(range(64))
    arrival = []

    async def put(ctx):
        for _ in range(10):
            await packet_put(ctx, dut.i, packet)

    async def get(ctx):
        for _ in range(10):
            assert await packet_get(ctx, dut.o) == (packet, False)

    async def latency(ctx):
        count = 0
        while not arrival:
            _, _, valid = await ctx.tick().sample(dut.o.valid)
            count += 1
            if valid:
                arrival.append(count - 1)

    # 10 packets of 16 beats, then the last packet: 3 cycles of latency and its 16 beats.
    assert run(dut, put, get, latency, limit=200) <= 160 + 3 + 16
    assert arrival == [16 + 2]
