"""Estimator of the round trip, congestion window: against the models."""

from dataclasses import replace

import pytest
from streams import (
    make_rng,
    run,
    seeds,
)
from tcp_bench import SMALL, Peer, World
from trebuchet.cores.tcp.estimator import CongestionWindow, RttEstimator
from trebuchet.models.tcp import RttState, rtt_update


@seeds(2)
def test_rtt_estimator(seed):
    dut, rng = RttEstimator(60_000), make_rng(seed, "rtt")

    async def bench(ctx):
        state = RttState()
        for _ in range(60):
            sampled = rng.random() < 0.8
            sample = rng.choice((0, 1, rng.randrange(300), rng.randrange(65536)))
            start = rng.getrandbits(16)
            low, initial = rng.choice(((200, 1000), (1, 3)))
            ctx.set(dut.srtt8, state.srtt8 or 0)
            ctx.set(dut.rttvar4, state.rttvar4 or 0)
            ctx.set(dut.valid, state.srtt8 is not None)
            ctx.set(dut.sample, sampled)
            ctx.set(dut.start, start)
            ctx.set(dut.now, (start + sample) & 0xFFFF)
            ctx.set(dut.rto_min, low)
            ctx.set(dut.rto_initial, initial)
            await ctx.tick().repeat(5)
            if sampled:
                state = rtt_update(state, sample)
                assert ctx.get(dut.srtt8_new) == state.srtt8
                assert ctx.get(dut.rttvar4_new) == state.rttvar4
            assert ctx.get(dut.rto) == state.rto(low, initial, 60_000)

    run(dut, bench, limit=1000, seed=seed)


@seeds(1)
@pytest.mark.parametrize("bits", [17, 22])
def test_congestion_window(bits, seed):
    dut, rng = CongestionWindow(bits), make_rng(seed, "cwnd")
    top = 1 << bits - 1

    async def bench(ctx):
        for _ in range(80):
            mss = rng.randint(64, 1460)
            cwnd = rng.choice((mss, rng.randint(mss, top - 1), top + rng.randrange(mss)))
            ssthresh = rng.choice((2 * mss, rng.randrange(top), top - 1))
            acked, out = rng.randint(1, top - 1), rng.randrange(top)
            credit = rng.randrange(cwnd)
            values = {"mss": mss, "cwnd": cwnd, "ssthresh": ssthresh, "acked": acked}
            for name, value in (values | {"out": out, "credit": credit}).items():
                ctx.set(getattr(dut, name), value)
            await ctx.tick().repeat(3)
            if cwnd >= top:
                expected = (cwnd, 0)
            elif cwnd < ssthresh:
                expected = (cwnd + min(acked, mss), 0)
            elif credit + acked >= cwnd:
                expected = (cwnd + mss, credit + acked - cwnd)
            else:
                expected = (cwnd, credit + acked)
            assert (ctx.get(dut.grown), ctx.get(dut.credit_new)) == expected
            assert ctx.get(dut.half) == max(out // 2, 2 * mss)

    run(dut, bench, limit=1000, seed=seed)


def test_a_fixed_window_is_limited_by_the_peer_alone():
    """Many segments after the handshake's ACK, and after a loss that ACKs have told of."""

    async def script(ctx, world):
        peer = Peer(world, mss=100)
        await peer.open(ctx)
        world.services[0].send(0, bytes(8000))
        assert await sent_at_once(ctx, world) == 8000
        peer.raw(peer.seq, ack=peer.iss + 101)
        for _ in range(4):  # duplicates: the second segment was lost
            peer.raw(peer.seq, ack=peer.iss + 101)
        assert await sent_at_once(ctx, world) == 100
        assert world.csr(ctx, "fast_retransmits") == 1
        peer.raw(peer.seq, ack=peer.iss + 8001)
        world.services[0].send(0, bytes(6000))
        assert await sent_at_once(ctx, world) == 6000

    async def sent_at_once(ctx, world):
        await world.pause(ctx, 8)
        count = sum(s["length"] for s in world.out)
        world.out.clear()
        return count

    World(replace(SMALL, congestion="fixed"), tick=250).run(script)
