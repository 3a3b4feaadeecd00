"""Delayed acknowledgements (RFC 9293, 3.8.6.3; RFC 5681, 4.2)."""

from dataclasses import replace

import pytest
from streams import seeds
from tcp_bench import ACK, FIN, M32, SMALL, Peer, World
from trebuchet.cores.tcp.config import TcpConfig

DELAY = 5
CONFIG = replace(SMALL, ack_delay=DELAY, segment_log2=13, wheel=16)


def test_configuration():
    assert TcpConfig().ack_delay == 0
    with pytest.raises(ValueError, match=r"^ACK delay must be 0 to 500 ticks, not 501$"):
        TcpConfig(ack_delay=501)
    with pytest.raises(ValueError, match="ACK delay must be 0 with a cache, not 1"):
        TcpConfig(ack_delay=1, cache=16)


async def warm(ctx, world, **more):
    """A session whose next visit is near: one in which data have come."""
    peer = Peer(world, **more)
    await peer.open(ctx)
    peer.send(b"first")  # no visit is near yet: at once
    sent = world.now
    await peer.expect(ctx)
    assert world.now <= sent + 3
    await world.pause(ctx, CONFIG.wheel + 2)
    peer.send(b"warm")
    await peer.expect(ctx)
    await world.pause(ctx, 2)
    world.out.clear()
    return peer


async def busy(ctx, world, peer):
    """Data every few ticks, until the ACK of one waits."""
    for _ in range(12):
        peer.send(b"busy")
        sent = world.now
        await peer.expect(ctx)
        waited = world.now - sent
        assert waited <= DELAY + 1  # never longer
        if waited >= 2:
            return
    raise AssertionError("no ACK waited")


@seeds(2)
def test_an_ack_waits_at_most_so_long(seed):
    async def script(ctx, world):
        peer = await warm(ctx, world)
        await busy(ctx, world, peer)
        data = world.services[0].state[0]["data"]  # the service does not wait
        assert data.startswith(b"firstwarmbusy")

    World(CONFIG, seed=seed, tick=120).run(script)


@seeds(1)
def test_every_second_segment_is_acknowledged_at_once(seed):
    async def script(ctx, world):
        peer = await warm(ctx, world)
        await busy(ctx, world, peer)
        acks = 0
        for _ in range(12):
            peer.send(bytes(100))
        end = peer.seq
        while True:
            s = await peer.get(ctx)
            acks += 1
            if s["ack"] == end:
                break
        assert 6 <= acks <= 9

    World(CONFIG, seed=seed, tick=400).run(script)


@pytest.mark.nightly
@seeds(1)
def test_what_belongs_to_a_gap_is_acknowledged_at_once(seed):
    """Out of order, filling a part of a gap, filling it, and a FIN."""

    async def script(ctx, world):
        peer = await warm(ctx, world)
        await busy(ctx, world, peer)
        start = peer.seq
        for at, text, ack in ((20, b"cd", 0), (0, b"0" * 10, 10), (10, b"1" * 10, 22)):
            sent = world.now
            peer.raw(start + at, data=text)
            s = await peer.get(ctx)
            assert (s["ack"] - start) & M32 == ack
            assert world.now <= sent + 1
        peer.seq = start + 22
        sent = world.now
        peer.send(b"end", flags=ACK | FIN)
        while (await peer.get(ctx))["ack"] != peer.seq:
            pass
        assert world.now <= sent + 1

    World(CONFIG, seed=seed, tick=300).run(script)


@seeds(1)
def test_data_take_the_ack_along(seed):
    async def script(ctx, world):
        peer = await warm(ctx, world)
        await busy(ctx, world, peer)
        peer.send(b"question")
        await world.until(ctx, lambda: world.services[0].state[0]["data"].endswith(b"question"))
        world.services[0].send(0, b"answer")
        s = await peer.get(ctx)
        if not s["length"]:  # the visit came first
            s = await peer.get(ctx)
        assert (s["data"], s["ack"]) == (b"answer", peer.seq)
        peer.raw(peer.seq, ack=s["seq"] + 6)
        await world.quiet(ctx, DELAY + 2)  # nothing is left to acknowledge

    World(CONFIG, seed=seed, tick=120).run(script)


@pytest.mark.nightly
@seeds(1)
def test_a_window_that_was_closed_is_announced_at_once(seed):
    async def script(ctx, world):
        service = world.services[0]
        peer = await warm(ctx, world)
        service.auto_free = False
        await world.pause(ctx, 2)
        edge = 512
        while edge != 0:
            peer.send(bytes(min(edge, 1024)))
            s = await peer.expect(ctx)
            edge = s["window"]
        await world.until(ctx, lambda: service.state[0]["read"] == (peer.seq - peer.isn - 1) & M32)
        world.out.clear()
        sent = world.now
        service.consume(0)
        s = await peer.get(ctx)
        assert s["window"] == CONFIG.window
        assert world.now <= sent + 1

    config = replace(CONFIG, mss=536)
    World(config, seed=seed, tick=120).run(script)
