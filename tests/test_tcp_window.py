"""Segments of the pool that are larger than a window: its edge moves with what arrives."""

from dataclasses import replace

import pytest
from streams import make_rng, run, seeds
from tcp_bench import ACK, M32, SMALL, Peer, World
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.window import WindowEdge

#: Four windows to a segment.
CONFIG = replace(SMALL, max_window=1024)
SIZE, WINDOW = CONFIG.segment_size, CONFIG.window


def noise(count, seed=1):
    return bytes((k * 7 + seed + (k >> 8)) & 0xFF for k in range(count))


def test_sizes():
    assert not TcpConfig().sliding
    large = TcpConfig(segment_log2=17)
    assert (large.sliding, large.window, large.update) == (True, 65535, 1460)
    assert (SIZE, WINDOW, CONFIG.update, CONFIG.sliding) == (4096, 1024, 512, True)
    for log2 in (8, 18):
        with pytest.raises(
            ValueError, match=rf"^Segment size must be 2\*\*9 to 2\*\*17, not {log2}"
        ):
            TcpConfig(segment_log2=log2)
    for value in (1023, 65536):
        with pytest.raises(ValueError, match=f"^Largest window must be 1024 to 65535, not {value}"):
            TcpConfig(max_window=value)


@seeds(2)
@pytest.mark.parametrize("config", [CONFIG, TcpConfig(segment_log2=16), TcpConfig(segment_log2=17)])
def test_edge_is_the_models(seed, config):
    rng = make_rng(seed, "edge")
    dut = WindowEdge(config)
    size, window = config.segment_size, config.window

    async def bench(ctx):
        for _ in range(100):
            limit = size - window
            unread = rng.choice([0, 1, limit - 1, limit, limit + 1, size - 1, size])
            cons = rng.choice([rng.getrandbits(32), M32 - rng.randrange(size)])
            ctx.set(dut.cons, cons)
            ctx.set(dut.pub, (cons + unread) & M32)
            await ctx.tick().repeat(WindowEdge.LATENCY)
            assert ctx.get(dut.edge) == (cons + min(size, unread + window)) & M32

    run(dut, bench, limit=1000, seed=seed)


async def opened(ctx, world):
    peer = Peer(world)
    await peer.open(ctx)
    service = world.services[world.config.ports.index(peer.port)]
    service.auto_free = False
    return peer, service


@seeds(2)
def test_a_segment_fills_though_nothing_is_consumed(seed):
    """The edge is the ring's end or a window after what was acknowledged, and never goes back."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        text, start, edge = noise(SIZE), peer.seq, WINDOW
        sent = 0
        while sent < SIZE:
            count = min(world.rng.randint(1, 700), edge - sent, SIZE - sent)
            peer.send(text[sent : sent + count])
            sent += count
            s = await peer.expect(ctx)
            now = ((s["ack"] - start) & M32) + s["window"]
            assert edge <= now == min(SIZE, sent + WINDOW)
            edge = now
        assert s["window"] == 0
        await world.until(ctx, lambda: service.state[0]["data"] == text)
        peer.raw(start + SIZE, data=b"more")  # beyond the edge: nothing of it is taken
        s = await peer.get(ctx)
        assert (s["ack"], s["window"]) == (peer.seq, 0)
        service.consume(0)
        s = await peer.get(ctx)
        assert (s["ack"], s["window"]) == (peer.seq, WINDOW)
        peer.send(b"more")
        await peer.expect(ctx)
        await world.until(ctx, lambda: service.state[0]["data"] == text + b"more")

    World(CONFIG, seed=seed).run(script)


@seeds(1)
def test_what_is_too_little_for_an_ack_is_there_when_asked_for(seed):
    """A full ring of which a few bytes are consumed: the peer's probe finds room for as many."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        text = noise(SIZE + 20)
        for at in range(0, SIZE, 512):
            peer.send(text[at : at + 512])
            s = await peer.expect(ctx)
        assert s["window"] == 0
        await world.until(ctx, lambda: service.state[0]["read"] == SIZE)
        service.consume(0, 20)
        await world.quiet(ctx, 4)
        peer.raw(peer.seq - 1, data=b"?")  # as a peer probes a closed window
        s = await peer.get(ctx)
        assert (s["ack"], s["window"]) == (peer.seq, 20)
        peer.send(text[SIZE:])
        await peer.expect(ctx)
        await world.until(ctx, lambda: service.state[0]["data"] == text)
        service.consume(0)
        s = await peer.expect(ctx)
        assert s["window"] == WINDOW
        await world.until(ctx, lambda: world.csr(ctx, "segments_free") == CONFIG.sessions)

    World(CONFIG, seed=seed).run(script)


@seeds(1)
def test_what_comes_in_the_wrong_order_is_kept(seed):
    """The gap closes far behind the first window; the edge jumps with it."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        text, start = noise(3000), peer.seq
        peer.send(text[:900])
        await peer.expect(ctx)
        peer.raw(start + 1400, data=text[1400:1900])
        s = await peer.get(ctx)
        assert (s["ack"] - start) & M32 == 900
        peer.raw(start + 900, data=text[900:1400], flags=ACK)
        s = await peer.get(ctx)
        assert ((s["ack"] - start) & M32, s["window"]) == (1900, WINDOW)
        peer.seq = start + 1900
        for at in (1900, 2800):
            peer.send(text[at : min(at + 900, 3000)])
            await peer.expect(ctx)
        await world.until(ctx, lambda: service.state[0]["data"] == text)

    World(CONFIG, seed=seed).run(script)
