"""Arbiters and demultiplexer: nothing lost, no interleaving, fairness, throughput."""

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
from trebuchet.cores.arbiter import PacketArbiter, StreamArbiter, StreamDemux

SHAPE = data.StructLayout({"source": 4, "number": 12})


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@seeds(2)
def test_stream_arbiter_loses_nothing(n, seed):
    dut = StreamArbiter(SHAPE, n)
    count = 40
    order = [[] for _ in range(n)]

    def put(k):
        async def bench(ctx):
            rng = make_rng(seed, f"put{k}")
            for number in range(count):
                beat = {"source": k, "number": number}
                await stream_put(ctx, dut.i[k], beat, rng=rng, idle=0.5)

        return bench

    async def get(ctx):
        rng = make_rng(seed, "get")
        for _ in range(n * count):
            beat = plain(await stream_get(ctx, dut.o, rng=rng))
            order[beat["source"]].append(beat["number"])

    run(dut, *map(put, range(n)), get, stream_checker(dut.o), limit=3_000, seed=seed)
    assert order == [list(range(count))] * n


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("width", [32, 128])
@seeds(2)
def test_packet_arbiter_keeps_packets_whole(width, n, seed):
    dut = PacketArbiter(width, n)
    rng = make_rng(seed, "packets")
    sent = [[bytes([k]) + random_bytes(rng, 0, 60) for _ in range(12)] for k in range(n)]
    errors = [[rng.random() < 0.3 for _ in range(12)] for k in range(n)]
    received = [[] for _ in range(n)]

    def put(k):
        async def bench(ctx):
            r = make_rng(seed, f"put{k}")
            for packet, error in zip(sent[k], errors[k], strict=True):
                await packet_put(ctx, dut.i[k], packet, error=error, rng=r)

        return bench

    async def get(ctx):
        r = make_rng(seed, "get")
        for _ in range(12 * n):
            packet, error = await packet_get(ctx, dut.o, rng=r)
            received[packet[0]].append((packet, error))

    run(dut, *map(put, range(n)), get, stream_checker(dut.o), limit=4_000, seed=seed)
    for k in range(n):
        assert received[k] == list(zip(sent[k], errors[k], strict=True))


@pytest.mark.parametrize("busy", [(0,), (0, 1, 2), (1, 2)])
def test_packet_arbiter_is_fair_and_fast(busy):
    """No idle cycle whichever inputs are busy, and a strict rotation among those that wait."""
    dut = PacketArbiter(32, 3)
    order = []

    def put(k):
        async def bench(ctx):
            for _ in range(8):
                await packet_put(ctx, dut.i[k], bytes([k] * 12))

        return bench

    async def get(ctx):
        for _ in range(8 * len(busy)):
            packet, _ = await packet_get(ctx, dut.o)
            order.append(packet[0])

    cycles = run(dut, *map(put, busy), get, limit=200)
    assert cycles <= 24 * len(busy) + 1
    assert all(set(order[i : i + len(busy)]) == set(busy) for i in range(0, len(order), len(busy)))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@seeds(2)
def test_demux_routes_and_swallows(n, seed):
    dut = StreamDemux(SHAPE, n)
    rng = make_rng(seed, "beats")
    limit = 1 << (n - 1).bit_length()  # what `select` can say, existing output or not
    sent = [(rng.randrange(limit), number) for number in range(120)]

    async def put(ctx):
        r = make_rng(seed, "put")
        for target, number in sent:
            ctx.set(dut.select, target)
            await stream_put(ctx, dut.i, {"source": target, "number": number}, rng=r)

    def get(k):
        async def bench(ctx):
            r = make_rng(seed, f"get{k}")
            for target, number in sent:
                if target == k:
                    got = plain(await stream_get(ctx, dut.o[k], rng=r))
                    assert got == {"source": k, "number": number}

        return bench

    run(dut, put, *map(get, range(n)), limit=2_000, seed=seed)


def test_bad_parameters():
    with pytest.raises(ValueError, match="inputs must be an integer >= 1, not 0"):
        StreamArbiter(8, 0)
    with pytest.raises(ValueError, match="Field 'last' must be a member of the payload"):
        StreamArbiter(SHAPE, 2, last="last")
    with pytest.raises(ValueError, match="outputs must be an integer >= 1, not -1"):
        StreamDemux(8, -1)
