"""Window scaling (RFC 7323): announced windows of more than 64 KiB, and those of the peer."""

from dataclasses import replace

import pytest
from streams import make_rng, run, seeds
from tcp_bench import ACK, M32, SMALL, SYN, Peer, World
from test_tcp_active import connect
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.window import WindowEdge

#: Segments of 1 MiB, of which 15 bits tell 32 bytes each.
LARGE = replace(SMALL, sessions=4, scaling=True, segment_log2=20, active=True)
#: Windows that need no shift, of peers that do.
PLAIN = replace(SMALL, scaling=True)


def test_sizes():
    assert (LARGE.shift, LARGE.window, LARGE.sliding) == (5, 65535, True)
    assert (PLAIN.shift, PLAIN.window, PLAIN.sliding) == (0, 4096, False)
    assert LARGE.segment_size >> LARGE.shift <= 65535
    assert LARGE.unread == LARGE.segment_size - 31
    message = r"^Segment size must be 2\*\*9 to 2\*\*20, not 21$"
    with pytest.raises(ValueError, match=message):
        TcpConfig(segment_log2=21, scaling=True)


@seeds(1)
def test_edge_of_a_scaled_window_is_the_rings_end(seed):
    rng = make_rng(seed, "edge")
    dut = WindowEdge(LARGE)
    size = LARGE.segment_size

    async def bench(ctx):
        for _ in range(60):
            cons, unread, scaled = rng.getrandbits(32), rng.randint(0, size), rng.random() < 0.5
            ctx.set(dut.cons, cons)
            ctx.set(dut.pub, (cons + unread) & M32)
            ctx.set(dut.scaled, scaled)
            await ctx.tick().repeat(WindowEdge.LATENCY)
            reach = size if scaled else min(size, unread + 65535)
            assert ctx.get(dut.edge) == (cons + reach) & M32

    run(dut, bench, limit=1000, seed=seed)


@pytest.mark.parametrize("scale", [None, 0, 7, 14])
@seeds(1)
def test_the_whole_segment_is_announced_if_both_scale(seed, scale):
    """A SYN's window is never shifted; without the peer's option nothing else is, either."""

    async def script(ctx, world):
        peer = Peer(world, scale=scale)
        synack = await peer.open(ctx)
        assert (synack["window"], synack["scaled"]) == (65535, scale is not None)
        service = world.services[0]
        service.auto_free = False
        peer.send(b"x" * 1000)
        s = await peer.expect(ctx)
        assert s["scaled"] == 0
        if scale is None:
            assert s["window"] == 65535
        else:  # what is left of the ring, in units of 32 bytes, rounded down
            assert s["window"] == (LARGE.segment_size - 1000) >> 5
            # Beyond what 16 bits can say, and kept: it lies in the window.
            peer.raw(peer.seq + 900_000, data=b"far")
            await peer.expect(ctx)
            assert world.csr(ctx, "kept") == 1

    World(LARGE, seed=seed).run(script)


@seeds(1)
def test_beyond_an_unscaled_window_nothing_is_kept(seed):
    async def script(ctx, world):
        peer = Peer(world)
        await peer.open(ctx)
        peer.raw(peer.seq + 65_535, data=b"far")
        await peer.expect(ctx)
        peer.raw(peer.seq + 65_536, data=b"far")
        await peer.expect(ctx)
        assert world.csr(ctx, "kept") == 0
        assert world.csr(ctx, "out_of_window") == 1

    World(LARGE, seed=seed).run(script)


@pytest.mark.parametrize(
    ("scale", "window", "used"), [(None, 100, 100), (0, 100, 100), (3, 100, 800), (14, 1, 1000)]
)
def test_the_peers_window_is_shifted(scale, window, used):
    """But not that of its SYN, which would be eight times as large; and only if it said so."""

    async def script(ctx, world):
        peer = Peer(world, scale=scale, mss=100)
        peer.window = window
        await peer.open(ctx)
        world.services[0].send(0, bytes(1000))
        got = 0
        while got < used:
            segment = await peer.get(ctx)
            got += segment["length"]
        assert got == used
        assert segment["window"] == 4096  # our own shift is 0
        await world.quiet(ctx, 3)

    World(PLAIN, tick=100).run(script)


def test_a_window_of_the_same_digits_is_another_one():
    """A SYN's 8 are 8 bytes, the next segment's 8 are 128: what was stuck goes on at once."""

    async def script(ctx, world):
        peer = await connect(ctx, world)
        syn = await peer.get(ctx)
        assert (syn["flags"], syn["scaled"], syn["window"]) == (SYN, 1, 4096)
        peer.ack, peer.seq = (syn["seq"] + 1) & M32, (peer.isn + 1) & M32
        await world.until(ctx, lambda: world.services[1].state)
        world.services[1].send(0, bytes(range(200)))
        peer.raw(peer.isn, flags=SYN | ACK, mss=64, scale=4, window=8)
        got = (await peer.expect(ctx, ack=peer.seq))["data"]
        while not got:
            got = (await peer.get(ctx))["data"]
        assert got == bytes(range(8))
        peer.raw(peer.seq, window=8)  # a duplicate ACK, but for the window that it means
        while len(got) < 72:
            got += (await peer.get(ctx))["data"]
        assert got == bytes(range(72))

    World(replace(PLAIN, active=True)).run(script)


@pytest.mark.parametrize("scale", [None, 2])
@seeds(1)
def test_active_open(seed, scale):
    """Our SYN offers scaling; what its answer says counts, for both directions."""

    async def script(ctx, world):
        peer = await connect(ctx, world)
        syn = await peer.get(ctx)
        assert (syn["flags"], syn["scaled"], syn["window"]) == (SYN, 1, 65535)
        peer.ack, peer.seq = (syn["seq"] + 1) & M32, (peer.isn + 1) & M32
        peer.raw(peer.isn, flags=SYN | ACK, mss=1460, scale=scale)
        await peer.expect(ctx, ack=peer.seq)
        peer.send(b"y" * 64)
        s = await peer.expect(ctx)
        left = LARGE.segment_size - (0 if s["window"] == 1 << 15 else 64)  # consumed already?
        assert s["window"] == (65535 if scale is None else left >> LARGE.shift)

    World(LARGE, seed=seed).run(script)


@seeds(1)
def test_a_repeated_syn_ack_says_the_same(seed):
    async def script(ctx, world):
        peer = Peer(world, scale=9)
        peer.syn()
        first = await peer.get(ctx)
        peer.raw(peer.isn, ack=0, flags=SYN, mss=1460, scale=2)  # not the same SYN: ignored
        for _ in range(2):
            s = await peer.get(ctx)
            assert (s["seq"], s["scaled"], s["window"]) == (first["seq"], 1, 65535)

    World(LARGE, seed=seed).run(script)


@seeds(1)
def test_a_scaled_window_is_the_whole_ring(seed):
    """As much as the ring holds comes in without a byte being consumed; then it is."""

    async def script(ctx, world):
        peer = Peer(world, scale=7)
        await peer.open(ctx)
        service = world.services[0]
        service.auto_free = False
        text, size = make_rng(seed, "text").randbytes(4096), config.segment_size
        sent, edge = 0, 1024
        while edge > sent:
            peer.send(text[sent:edge])
            sent = edge
            s = await peer.expect(ctx)
            edge = sent + s["window"]
            assert edge == size
        await world.until(ctx, lambda: service.state[0]["read"] == size)
        assert service.state[0]["data"] == text
        service.consume(0)
        s = await peer.get(ctx)
        assert s["window"] == size

    config = replace(PLAIN, max_window=1024)
    World(config, seed=seed).run(script)
