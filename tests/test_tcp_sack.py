"""Segments out of order: what is kept beyond gaps, and what ACKs tell of it (RFC 2018)."""

from dataclasses import replace

import pytest
from streams import make_rng, seeds
from tcp_bench import ACK, FIN, M32, RST, SMALL, SYN, Peer, Service, World
from trebuchet.models.tcp import join_runs

SACK = replace(SMALL, runs=4, sack=True)
EXTERNAL = replace(SACK, cache=4, wheel=128)
KINDS = pytest.mark.parametrize(
    "config",
    [pytest.param(SACK, id="ram"), pytest.param(EXTERNAL, id="cache", marks=pytest.mark.nightly)],
)


def blocks(config, segment):
    """The SACK blocks of a segment, as 32-bit edges."""
    bits, edges = config.place_bits, []
    for k in range(2 * segment["blocks"]):
        place = segment["places"] >> bits * k & ((1 << bits) - 1)
        edges.append((segment["ack"] + ((place - segment["ack"]) % (1 << bits))) & M32)
    return list(zip(edges[::2], edges[1::2], strict=True))


async def answer(ctx, peer, runs):
    """The ACK of what has just been sent says: so much, and these runs, as distances."""
    while True:
        s = await peer.get(ctx)
        assert (s["flags"], s["length"]) == (ACK, 0)
        base = peer.seq
        if s["ack"] == base and blocks(peer.world.config, s) == [
            ((base + a) & M32, (base + b) & M32) for a, b in runs
        ]:
            return


async def told(ctx, world, text):
    """The service is told of all of it, and of nothing else."""
    session = world.services[0].state[0]
    await world.until(ctx, lambda: len(session["data"]) >= len(text))
    assert session["data"] == text


@KINDS
@seeds(2)
def test_acks_tell_what_is_kept(config, seed):
    """Random segments around random gaps; every ACK has the blocks of the model, in its order."""

    async def script(ctx, world):
        rng = make_rng(seed, "gaps")
        start = rng.choice([rng.getrandbits(32), (1 << 32) - rng.randrange(2000)])
        peer = Peer(world, isn=start, permits=True)
        syn_ack = await peer.open(ctx)
        assert syn_ack["permits"]
        text = rng.randbytes(3800)
        done, runs = 0, []  # bytes received in order; runs, as distances from there
        while done < len(text):
            begin = rng.choice([0, rng.randrange(len(text) - done)])
            end = min(len(text) - done, begin + rng.randint(1, 500))
            peer.raw(peer.seq + begin, data=text[done + begin : done + end])
            after, edge = join_runs(runs, begin, end, begin > 0, config.runs)
            if begin == 0:
                peer.seq, done = (peer.seq + edge) & M32, done + edge
                runs = [(a - edge, b - edge) for a, b in after]
            elif after is not None:
                runs = after
            await answer(ctx, peer, runs)
        await told(ctx, world, text)
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    World(config, seed=seed).run(script, limit=200_000)


def test_a_fifth_run_is_not_kept():
    """It is dropped and counted, and comes again."""

    async def script(ctx, world):
        peer = Peer(world, permits=True)
        await peer.open(ctx)
        text = bytes(range(200))
        for k in (1, 3, 5, 7, 9):
            peer.raw(peer.seq + 10 * k, data=text[10 * k : 10 * k + 10])
        await answer(ctx, peer, [(70, 80), (50, 60), (30, 40), (10, 20)])
        await world.pause(ctx, 5)
        world.out.clear()
        assert (world.csr(ctx, "kept"), world.csr(ctx, "out_of_order")) == (4, 1)
        peer.raw(peer.seq + 20, data=text[20:30])  # joins two
        await answer(ctx, peer, [(10, 40), (70, 80), (50, 60)])
        peer.raw(peer.seq + 90, data=text[90:100])
        await answer(ctx, peer, [(90, 100), (10, 40), (70, 80), (50, 60)])
        peer.raw(peer.seq + 5, data=text[5:95])  # takes all in
        await answer(ctx, peer, [(5, 100)])
        peer.send(text[:5])
        peer.seq = (peer.seq + 95) & M32
        await answer(ctx, peer, [])
        await told(ctx, world, text[:100])
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    World(SACK).run(script)


def test_who_does_not_permit_is_told_nothing():
    """Runs are kept all the same; our SYN-ACK does not permit what the SYN did not."""

    async def script(ctx, world):
        peer = Peer(world)
        syn_ack = await peer.open(ctx)
        assert not syn_ack["permits"]
        peer.raw(peer.seq + 3, data=b"def")
        assert (await peer.get(ctx))["blocks"] == 0
        peer.send(b"abc")
        peer.seq += 3
        await peer.expect(ctx)
        await told(ctx, world, b"abcdef")
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    World(SACK).run(script)


def test_a_fin_ends_all_runs():
    """What lies behind a FIN in its order is nobody's; the FIN itself is told as ever."""

    async def script(ctx, world):
        peer = Peer(world, permits=True)
        await peer.open(ctx)
        peer.raw(peer.seq + 20, data=b"behind")
        await answer(ctx, peer, [(20, 26)])
        peer.raw(peer.seq, data=b"the end", flags=ACK | FIN)
        peer.seq += 8
        s = await peer.expect(ctx)
        assert s["blocks"] == 0
        await told(ctx, world, b"the end")
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    World(SACK).run(script)


def test_data_and_syns_carry_no_blocks():
    """Blocks go with pure ACKs alone: there is room for all of them there."""

    async def script(ctx, world):
        peer = Peer(world, permits=True)
        syn_ack = await peer.open(ctx)
        assert (syn_ack["flags"], syn_ack["blocks"]) == (SYN | ACK, 0)
        peer.raw(peer.seq + 3, data=b"def")
        await answer(ctx, peer, [(3, 6)])
        world.services[0].send(0, b"data")
        s = await peer.get(ctx)
        assert (s["data"], s["blocks"]) == (b"data", 0)
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    World(SACK, services=[Service(), Service(), Service()]).run(script)
