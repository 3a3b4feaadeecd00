"""``ReceiveDma``: payload goes to the ring's place, at any alignment, at full rate."""

from dataclasses import replace

import pytest
from part_sizes import at_sizes
from streams import (
    MemoryResponder,
    make_rng,
    packet_put,
    run,
    seeds,
    stream_checker,
    stream_get,
    stream_put,
)
from tcp_bench import SMALL
from test_sizes_tcp import BASE, config_of
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.dma import ReceiveDma


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_receive_dma(width, seed):
    """Each byte at its place and no other touched; drops, trims, ring ends, FINs; in order."""
    config = replace(SMALL, width=width, segment_log2=10, sessions=4, half_open=4)
    dut, rng = ReceiveDma(config), make_rng(seed, "dma")
    memory = bytearray(rng.randbytes(config.pool_size))
    expected = bytearray(memory)
    verdicts, payloads, notes, put_all = [], [], [], []
    for k in range(25):
        arrived = rng.choice((0, 1, 2, 5, rng.randint(1, 700)))
        packet = rng.randbytes(arrived)
        commit = rng.random() < 0.8 or arrived == 0
        skip = rng.choice((0, 0, rng.randint(0, arrived)))
        length = rng.choice((arrived - skip, rng.randint(0, arrived - skip)))
        base, offset = 1024 * rng.randrange(4), rng.randrange(1024)
        ahead = commit and length != 0 and rng.random() < 0.3
        if commit:
            for i in range(length):
                expected[base + (offset + i) % 1024] = packet[skip + i]
            if not ahead:
                notes.append({"session": k % 4, "end": k, "fin": k % 2, "text": length != 0})
        else:
            skip = length = 0
        verdicts.append(
            {
                "session": k % 4, "addr": base + offset, "arrived": arrived, "skip": skip,
                "length": length, "fin": k % 2, "end": k, "commit": commit, "ahead": ahead,
            }
        )  # fmt: skip
        if arrived:
            payloads.append(packet)
    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))

    async def put(ctx):
        for verdict in verdicts:
            await stream_put(ctx, dut.verdict, verdict, rng=make_rng(seed, verdict["end"]))
        put_all.append(True)

    async def feed(ctx):
        own = make_rng(seed, "feed")
        for packet in payloads:
            await packet_put(ctx, dut.payload, packet, rng=own)

    async def get(ctx):
        own = make_rng(seed, "get")
        for note in notes:
            got = await stream_get(ctx, dut.written, rng=own)
            assert {name: got[name] for name in note} == note
        for _ in range(2000):
            await ctx.tick()
            if put_all and ctx.get(dut.idle):
                break
        assert ctx.get(dut.idle)

    checks = [stream_checker(dut.mem.cmd), stream_checker(dut.mem.wdata)]
    run(dut, put, feed, get, responder, *checks, limit=40_000, seed=seed)
    assert memory == expected


def test_dma_throughput():
    """A full payload moves one beat a cycle, and costs few cycles beside."""
    dut = ReceiveDma(TcpConfig())
    memory = bytearray(1 << 16)
    verdict = {
        "session": 0, "addr": 0x101, "arrived": 1460, "skip": 0, "length": 1460,
        "fin": 0, "end": 0, "commit": 1, "ahead": 0,
    }  # fmt: skip

    async def put(ctx):
        for _ in range(4):
            await stream_put(ctx, dut.verdict, verdict)

    async def feed(ctx):
        for _ in range(4):
            await packet_put(ctx, dut.payload, bytes(1460))

    async def get(ctx):
        for _ in range(4):
            await stream_get(ctx, dut.written)

    cycles = run(dut, put, feed, get, MemoryResponder(dut.mem, memory), limit=4000)
    assert cycles <= 4 * (366 + 8)


@at_sizes("tcp.dma.ReceiveDma")
def test_sizes(size):
    """A payload as long as the buffer around the last ring's end; and all skipped but one byte."""
    config = config_of(size)
    dut, ring, length = ReceiveDma(config), config.segment_size, config.rx_buffer
    memory = bytearray(config.pool_size)
    packet = make_rng(0, "payload").randbytes(length)
    base = (config.pool_segments - 1) * ring
    start, last = base + ring - 5, config.sessions - 1

    async def put(ctx):
        common = {"session": last, "arrived": length, "commit": 1}
        await stream_put(ctx, dut.verdict, common | {"addr": BASE + start, "length": length})
        lone = {"addr": BASE + base + ring // 2, "skip": length - 1, "length": 1}
        await stream_put(ctx, dut.verdict, common | lone)

    async def feed(ctx):
        for _ in range(2):
            await packet_put(ctx, dut.payload, packet)

    async def get(ctx):
        for _ in range(2):
            assert (await stream_get(ctx, dut.written)).session == last

    responder = MemoryResponder(dut.mem, memory, latency=(4, 4))
    run(dut, put, feed, get, responder, limit=8 * length)
    wanted = bytearray(len(memory))
    for k, byte in enumerate(packet):
        wanted[base + (ring - 5 + k) % ring] = byte
    wanted[base + ring // 2] = packet[-1]
    assert memory == wanted
