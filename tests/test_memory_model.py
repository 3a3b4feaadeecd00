"""The on-chip memory model against a bytearray; latency, throughput, order; the Verilog RAM."""

import pytest
from amaranth.back import rtlil
from streams import MemoryRequester, make_rng, run, seeds, stream_checker
from trebuchet.cores.memory_model import EXTERNAL_RAM_VERILOG, MemoryModel

SIZE = 4096


def random_traffic(requester, reference, rng, *, rounds, tags, region):
    """Bursts in rounds; those of one round touch disjoint blocks of ``region`` (start, size).

    Reads may be in flight with writes of other blocks; contents are checked at each round's end.
    """
    start, size = region
    n = requester.n
    block = 16 * n

    async def bench(ctx):
        for _ in range(rounds):
            blocks = rng.sample(range(start, start + size, block), k=6)
            bursts = [_one(requester, reference, rng, at, rng.randrange(tags)) for at in blocks]
            await requester.wait(ctx, *bursts)
            for b in bursts:
                if not b.write:
                    assert requester.content(b) == reference[b.addr : b.addr + b.beats * n]
        assert requester.idle

    return bench


def _one(requester, reference, rng, at, tag):
    n, beats = requester.n, rng.randint(1, 16)
    if rng.random() < 0.5:
        return requester.start_read(at, beats, tag)
    content = rng.randbytes(beats * n)
    strb = [rng.choice([(1 << n) - 1, rng.getrandbits(n)]) for _ in range(beats)]
    for k, byte in enumerate(content):
        if strb[k // n] >> (k % n) & 1:
            reference[at + k] = byte
    return requester.start_write(at, content, tag, strb)


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("reorder", [False, True])
@seeds(2)
def test_contents(width, reorder, seed):
    rng = make_rng(seed, "traffic")
    reference = bytearray(rng.randbytes(SIZE))
    dut = MemoryModel(
        SIZE, width, 2, latency=12, outstanding=4, reorder=reorder, seed=seed + 1, init=reference
    )
    requester = MemoryRequester(dut.port, rng=make_rng(seed, "requester"))
    bench = random_traffic(requester, reference, rng, rounds=12, tags=4, region=(0, SIZE))
    checks = [stream_checker(dut.port.rdata), stream_checker(dut.port.wdone)]
    run(dut, bench, requester, *checks, limit=6_000, seed=seed)


@pytest.mark.parametrize("latency", [4, 5, 20, 60])
def test_latency(latency):
    dut = MemoryModel(SIZE, latency=latency, reorder=False, init=bytes(range(64)))
    port = dut.port
    times = {}

    async def bench(ctx):
        for write in (0, 1):
            ctx.set(port.cmd.payload, {"write": write, "addr": 8, "beats": 0, "tag": 3})
            ctx.set(port.cmd.valid, 1)
            ctx.set(port.wdata.payload, {"data": 1, "strb": 15, "last": 1})
            ctx.set(port.wdata.valid, write)
            response = port.wdone if write else port.rdata
            ctx.set(response.ready, 1)
            moved = None
            for cycle in range(200):
                _, _, c, w, r = await ctx.tick().sample(
                    port.cmd.ready & port.cmd.valid,
                    port.wdata.ready & port.wdata.valid,
                    response.valid,
                )
                if c:
                    ctx.set(port.cmd.valid, 0)
                    moved = cycle if not write else moved
                if w:
                    ctx.set(port.wdata.valid, 0)
                    moved = cycle
                if r:
                    times[write] = cycle - moved
                    break

    run(dut, bench, limit=500)
    assert times == {0: latency, 1: latency}


def test_reads_stream_at_one_beat_a_cycle():
    dut = MemoryModel(SIZE, latency=40, outstanding=8, reorder=False)
    requester = MemoryRequester(dut.port)

    async def bench(ctx):
        await requester.wait(ctx, *(requester.start_read(64 * k, 16, k) for k in range(16)))

    assert run(dut, bench, requester, limit=1000) <= 16 * 16 + 40 + 4


def test_writes_stream_at_one_beat_a_cycle():
    dut = MemoryModel(SIZE, latency=10, outstanding=8)
    requester = MemoryRequester(dut.port)

    async def bench(ctx):
        bursts = [requester.start_write(64 * k, bytes(64), k) for k in range(16)]
        await requester.wait(ctx, *bursts)

    assert run(dut, bench, requester, limit=1000) <= 16 * 16 + 10 + 6


@pytest.mark.parametrize("reorder", [False, True])
def test_order_of_tags(reorder):
    """Different tags overtake if and only if asked to; the same tag never does."""
    dut = MemoryModel(SIZE, tag_width=3, latency=8, outstanding=8, reorder=reorder)
    requester = MemoryRequester(dut.port)
    order = []

    async def watch(ctx):
        while True:
            _, _, moved, tag = await ctx.tick().sample(
                dut.port.rdata.valid & dut.port.rdata.ready, dut.port.rdata.payload.tag
            )
            if moved:
                order.append(tag)

    async def bench(ctx):
        bursts = [requester.start_read(4 * k, 1, k % 8) for k in range(64)]
        await requester.wait(ctx, *bursts)

    watch.background = True
    run(dut, watch, bench, requester, limit=2000)
    assert sorted(order) == sorted(k % 8 for k in range(64))
    assert (order == [k % 8 for k in range(64)]) is not reorder


def test_addresses_wrap():
    dut = MemoryModel(256, latency=4, init=bytes(range(256)))
    requester = MemoryRequester(dut.port)

    async def bench(ctx):
        assert await requester.read(ctx, 0xFFFF_FF00 - 4, 2) == bytes(
            [252, 253, 254, 255, 0, 1, 2, 3]
        )

    run(dut, bench, requester, limit=100)


def test_big_memory_needs_no_contents_in_the_netlist():
    text = rtlil.convert(MemoryModel(1 << 24, external=True))
    assert "cell \\trebuchet_ram" in text
    assert len(text) < 200_000
    assert "module trebuchet_ram" in EXTERNAL_RAM_VERILOG


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 100}, "must be a power of two >= 8 bytes, not 100"),
        ({"size": 64, "latency": 0}, "Latency must be 1 to 4095 cycles, not 0"),
        ({"size": 64, "outstanding": 1}, "must be an integer >= 2, not 1"),
        ({"size": 64, "seed": 0}, "Seed must be 1 to 65535, not 0"),
        ({"size": 64, "init": bytes(65)}, "must fit 64 bytes"),
        ({"size": 64, "init": b"x", "external": True}, "empty when external"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        MemoryModel(**arguments)
