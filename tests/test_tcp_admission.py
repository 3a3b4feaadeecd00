"""Slots reserved for each service, and the session that is ended when there is none left."""

from dataclasses import replace

import pytest
from part_sizes import at_sizes
from streams import make_rng, run, seeds
from tcp_bench import ACK, RST, SMALL, Peer, Service, World
from test_sizes_tcp import config_of
from trebuchet.cores.tcp.admission import Admission
from trebuchet.cores.tcp.config import FULL, TINY, TcpConfig
from trebuchet.cores.tcp.config import SMALL as BLOCK_RAM

#: 8 slots, of which two are reserved for each of three services: one of them can have 4.
RESERVED = replace(SMALL, reserve=2, evict_idle=0, keepalive_idle=20_000)
EVICTING = replace(RESERVED, evict_idle=100)
#: A scan of records in external memory takes its time.
CACHED = replace(EVICTING, cache=4, state_base=1 << 20, half_open=8, evict_idle=200)
PORTS = SMALL.ports


def used(ctx, world):
    return [world.csr(ctx, f"used_{k}") for k in range(len(world.config.ports))]


async def refused(ctx, world, peer):
    """A SYN that nobody answers."""
    before = world.csr(ctx, "refused_full")
    peer.syn()
    await world.until(ctx, lambda: world.csr(ctx, "refused_full") > before)
    assert world.out == []


async def fill(ctx, world, port, count, first=100):
    peers = [Peer(world, rport=first + k, port=port) for k in range(count)]
    for peer in peers:
        await peer.open(ctx)
    return peers


async def close_all(ctx, world):
    ctx.set(world.dut.csr.abort_all, 1)
    await world.drained(ctx)
    ctx.set(world.dut.csr.abort_all, 0)
    assert used(ctx, world) == [0] * len(world.config.ports)


@seeds(2)
@pytest.mark.parametrize("port", PORTS)
def test_no_service_takes_what_is_reserved_for_another(seed, port):
    async def script(ctx, world):
        await fill(ctx, world, port, 4)
        await refused(ctx, world, Peer(world, rport=200, port=port))
        for other in PORTS:
            if other != port:
                await fill(ctx, world, other, 2, first=300)
                await refused(ctx, world, Peer(world, rport=400, port=other))
        assert used(ctx, world) == [4 if p == port else 2 for p in PORTS]
        assert world.csr(ctx, "sessions_used") == 8
        await close_all(ctx, world)

    World(RESERVED, seed=seed).run(script, limit=200_000)


def test_a_slot_that_becomes_free_goes_to_whoever_may_have_it():
    async def script(ctx, world):
        peers = await fill(ctx, world, 7, 4)
        await fill(ctx, world, 9, 2)
        late = Peer(world, rport=500, port=9)
        await refused(ctx, world, late)
        peers[0].send(flags=RST)
        await world.until(ctx, lambda: used(ctx, world) == [3, 2, 0])
        await late.open(ctx)  # the two of the third service are still there
        await refused(ctx, world, Peer(world, rport=501, port=7))
        await fill(ctx, world, 80, 2)
        await close_all(ctx, world)

    World(RESERVED).run(script)


def test_handshakes_of_one_service_do_not_stop_another():
    async def script(ctx, world):
        flood = [Peer(world, rport=100 + k, port=7) for k in range(4)]
        for peer in flood[:3]:
            peer.syn()
            await peer.get(ctx)
        flood[3].syn()
        await world.until(ctx, lambda: world.csr(ctx, "refused_half_open") == 1)
        for port in (9, 80):
            await fill(ctx, world, port, 2)
        await world.pause(ctx, 2)
        await close_all(ctx, world)

    World(replace(RESERVED, half_open=3, rto_initial=5000, rto_max=20_000)).run(script)


@pytest.mark.parametrize("config", [EVICTING, CACHED], ids=["block_ram", "cached"])
@seeds(2)
def test_the_longest_idle_session_makes_room(seed, config):
    most = config.sessions - 2 * config.reserve

    async def script(ctx, world):
        peers = await fill(ctx, world, 7, most)
        await world.pause(ctx, config.evict_idle + 50)
        rng = make_rng(seed, "who")
        oldest, refresher = rng.sample(range(most), 2)
        for k in rng.sample(range(most), most):  # all but one say something
            if k != oldest:
                peers[k].send(b"x")
                await peers[k].expect(ctx)
                await world.pause(ctx, rng.randint(1, 5))
        late = Peer(world, rport=500, port=7)
        await refused(ctx, world, late)
        gone = await peers[oldest].get(ctx)
        assert gone["flags"] & RST
        assert world.csr(ctx, "evicted") == 1
        await world.until(ctx, lambda: used(ctx, world)[0] == most - 1)
        await late.open(ctx)
        # Nobody else has been idle for long enough, whoever asks.
        await refused(ctx, world, Peer(world, rport=501, port=7))
        await world.pause(ctx, config.evict_idle // 5)
        assert world.csr(ctx, "evicted") == 1
        assert world.out == []
        peers[refresher].send(b"still there")
        await peers[refresher].expect(ctx)
        await close_all(ctx, world)

    World(config, seed=seed, services=[Service() for _ in PORTS]).run(script, limit=400_000)


def test_keep_alive_answers_are_no_progress_and_replies_are():
    """A peer that only answers probes is idle; one that acknowledges data is not."""

    async def script(ctx, world):
        peers = await fill(ctx, world, 7, 4)
        for k in range(12):
            probe = await world.get(ctx)
            if k == 8:  # the next four answers are the last for long
                ctx.set(world.dut.csr.keepalive_idle, 20_000)
            by = next(p for p in peers if p.rport == probe["remote_port"])
            by.send()
        assert world.csr(ctx, "keepalive_probes") == 12
        session = next(s for s in world.services[0].state)
        world.services[0].send(session, b"news")
        segment = await world.get(ctx)
        told = next(p for p in peers if p.rport == segment["remote_port"])
        told.ack = (segment["seq"] + 4) & 0xFFFF_FFFF
        told.send()
        for k in range(3):  # everybody else goes
            Peer(world, rport=500 + k, port=7).syn()
            await world.until(ctx, lambda k=k: world.csr(ctx, "evicted") == k + 1)
            await world.until(ctx, lambda: world.out and world.out[-1]["flags"] & RST)
            assert world.out[-1]["remote_port"] != told.rport
            await world.until(ctx, lambda: used(ctx, world)[0] == 3)
            world.out.clear()
            await fill(ctx, world, 7, 1, first=600 + k)
        await close_all(ctx, world)

    config = replace(EVICTING, keepalive_idle=150, keepalive_interval=60)
    World(config).run(script)


def test_a_service_within_its_reserve_keeps_its_sessions():
    """However old they are: what is ended is a session of a service that has more."""

    async def script(ctx, world):
        old = await fill(ctx, world, 80, 2)
        await world.pause(ctx, 200)
        many = await fill(ctx, world, 7, 4)
        await fill(ctx, world, 9, 2)
        await world.pause(ctx, 200)
        await refused(ctx, world, Peer(world, rport=500, port=9))
        gone = await world.get(ctx)
        assert gone["flags"] & RST
        assert gone["remote_port"] == many[0].rport
        for peer in old:
            peer.send(b"hello")
            await peer.expect(ctx)
        await fill(ctx, world, 9, 1, first=600)
        assert used(ctx, world) == [3, 3, 2]
        await close_all(ctx, world)

    World(EVICTING).run(script)


def test_half_finished_handshakes_make_room():
    async def script(ctx, world):
        for k in range(4):
            peer = Peer(world, rport=100 + k, port=7)
            peer.syn()
            await peer.get(ctx)
        await world.pause(ctx, 150)
        late = Peer(world, rport=500, port=7)
        await refused(ctx, world, late)
        await world.until(ctx, lambda: used(ctx, world)[0] == 3)
        assert world.out == []  # no RST for a handshake
        await late.open(ctx)
        await close_all(ctx, world)

    World(replace(EVICTING, half_open=8, rto_initial=5000, rto_max=20_000)).run(script)


def test_time_wait_makes_room_before_anybody_is_refused():
    async def script(ctx, world):
        peers = await fill(ctx, world, 7, 4)
        session = next(iter(world.services[0].state))
        world.services[0].send(session, b"", close=True)
        fin = await world.get(ctx)
        peer = next(p for p in peers if p.rport == fin["remote_port"])
        peer.ack = (fin["seq"] + 1) & 0xFFFF_FFFF
        peer.send(flags=ACK | 1)
        await world.until(ctx, lambda: len(world.services[0].state) == 3)
        await world.pause(ctx, 3)
        world.out.clear()
        await world.until(ctx, lambda: used(ctx, world)[0] == 3)
        assert world.csr(ctx, "time_wait_reused") == 1
        late = Peer(world, rport=500, port=7)
        await late.open(ctx)
        assert world.csr(ctx, "evicted") == world.csr(ctx, "refused_full") == 0
        await close_all(ctx, world)

    World(replace(EVICTING, time_wait=10_000, evict_idle=5000)).run(script)


def test_silent_peers_on_every_slot_stop_nobody():
    """Every slot is with a peer that says nothing; a client of each service gets in by its SYN's
    repetition."""

    async def script(ctx, world):
        for port, count in ((7, 4), (9, 2), (80, 2)):
            await fill(ctx, world, port, count)
        await world.pause(ctx, 120)
        for k, port in enumerate(PORTS):
            client = Peer(world, rport=700 + k, port=port)
            await refused(ctx, world, client)
            gone = await world.get(ctx)
            assert gone["flags"] & RST
            await world.pause(ctx, 5)
            await client.open(ctx)
            client.send(b"a request")
            await client.expect(ctx)
        await close_all(ctx, world)

    World(EVICTING).run(script)


def test_registers_change_reserves_while_running():
    async def script(ctx, world):
        await fill(ctx, world, 7, 4)
        await refused(ctx, world, Peer(world, rport=500, port=7))
        ctx.set(world.dut.csr.reserve_1, 0)
        await world.pause(ctx, 1)
        await fill(ctx, world, 7, 2, first=600)
        await refused(ctx, world, Peer(world, rport=501, port=7))
        await refused(ctx, world, Peer(world, rport=502, port=9))
        await fill(ctx, world, 80, 2)
        await close_all(ctx, world)

    World(RESERVED).run(script)


@pytest.mark.parametrize(
    ("config", "reserve"),
    [(TINY, 4), (BLOCK_RAM, 8), (FULL, 8), (replace(TINY, sessions=2), 0), (SMALL, 0)],
)
def test_default_reserve(config, reserve):
    assert config.reserved == reserve
    assert config.reserved * len(config.ports) <= config.sessions // 4 or reserve == 0


@pytest.mark.parametrize("reserve", [-1, 17])
def test_a_reserve_that_cannot_be_is_refused(reserve):
    with pytest.raises(ValueError, match="Reserve of a service must be 0 to 16"):
        TcpConfig(reserve=reserve)


@at_sizes("tcp.admission.Admission")
def test_admission(size):
    filled(config_of(size))


@pytest.mark.parametrize("config", [BLOCK_RAM, pytest.param(FULL, marks=pytest.mark.nightly)])
def test_admission_of_many(config):
    filled(config)


def filled(config):
    """All slots but the reserves of others are taken by one service, and one is given back."""
    dut = Admission(config)
    n = len(config.ports)
    most = config.usable - 3 * (n - 1)
    everybody, others = (1 << n) - 1, (1 << n) - 2

    async def script(ctx):
        for k in range(n):
            ctx.set(dut.settings[f"reserve_{k}"], 3)
        await ctx.tick().repeat(8)
        assert ctx.get(dut.admits) == everybody
        ctx.set(dut.taken, 1)
        await ctx.tick().repeat(most)
        ctx.set(dut.taken, 0)
        await ctx.tick().repeat(8)
        assert ctx.get(dut.used[0]) == most
        assert (ctx.get(dut.admits), ctx.get(dut.below)) == (others, others)
        assert ctx.get(dut.above) == 1
        ctx.set(dut.freed, 1)
        await ctx.tick()
        ctx.set(dut.freed, 0)
        await ctx.tick().repeat(8)
        assert ctx.get(dut.admits) == everybody

    run(dut, script, limit=config.sessions + 100)
