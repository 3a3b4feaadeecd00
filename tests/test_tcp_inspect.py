"""A look at sessions: every state and figure, beside traffic, of sessions that there are not."""

from dataclasses import replace

import pytest
from streams import seeds
from tcp_bench import ACK, FIN, M32, SMALL, Peer, Service, World
from test_tcp_active import connect, syn_ack, syn_of
from test_tcp_close import fin_of
from trebuchet.cores.tcp.inspect import SessionState
from trebuchet.cores.tcp.registers import tcp_block

CONFIG = replace(SMALL, active=True, inspect=True)
STATE, PEER, PORTS, UNACKNOWLEDGED, UNREAD, SND_UNA, RCV_NXT, RTO = range(8)
SND_NXT, THEIRS, OURS, RTT, CWND, QUEUE = range(8, 14)
S = SessionState


async def look(ctx, world, session, word):
    csr = world.dut.csr
    ctx.set(csr.inspect, session | word << 17 | 1 << 21)
    await ctx.tick()
    ctx.set(csr.inspect, 0)
    for _ in range(600):
        await ctx.tick()
        if not world.csr(ctx, "inspect_busy"):
            return world.csr(ctx, "inspect_value")
    raise AssertionError("still busy")


async def becomes(ctx, world, state, session=0):
    for _ in range(400):
        found = S(await look(ctx, world, session, STATE))
        if found == state:
            return
        await world.pause(ctx, 1)
    raise AssertionError(f"{found}, not {state}")


def world_of(seed=None, **service):
    return World(CONFIG, seed=seed, services=[Service(**service) for _ in range(3)])


@seeds(2)
def test_figures_of_a_session(seed):
    async def script(ctx, world):
        service = world.services[0]
        peer = Peer(world)
        await peer.open(ctx)
        await becomes(ctx, world, S.ESTABLISHED)
        assert await look(ctx, world, 0, PEER) == peer.ip
        assert await look(ctx, world, 0, PORTS) == peer.rport | 7 << 16
        peer.send(bytes(100))
        await peer.expect(ctx)
        assert await look(ctx, world, 0, UNREAD) == 100
        assert await look(ctx, world, 0, RCV_NXT) == peer.seq
        service.send(0, bytes(300))
        await peer.get(ctx)
        assert await look(ctx, world, 0, UNACKNOWLEDGED) == 300
        assert await look(ctx, world, 0, SND_UNA) == (peer.iss + 1) & M32
        assert await look(ctx, world, 0, RTO) >= CONFIG.rto_min
        assert await look(ctx, world, 0, SND_NXT) == (peer.iss + 301) & M32
        assert await look(ctx, world, 0, THEIRS) == peer.window
        assert await look(ctx, world, 0, OURS) == CONFIG.window - 100
        assert await look(ctx, world, 0, CWND) >= 10 * 1460
        assert await look(ctx, world, 0, QUEUE) == 1
        await world.pause(ctx, 7)
        peer.ack = (peer.ack + 300) & M32
        peer.send()
        await world.until(ctx, lambda: "SENT" in [entry[0] for entry in service.log])
        assert await look(ctx, world, 0, UNACKNOWLEDGED) == 0
        assert await look(ctx, world, 0, QUEUE) == 0
        assert 1 <= await look(ctx, world, 0, RTT) <= 14
        service.consume(0)
        await world.pause(ctx, 5)
        assert await look(ctx, world, 0, UNREAD) == 0
        # The peer's session is the only one; others, and numbers that there cannot be, are free.
        for session in (1, CONFIG.sessions - 1, CONFIG.sessions, (1 << 17) - 1):
            for word in range(16):
                assert await look(ctx, world, session, word) == 0

    world_of(seed, free=False).run(script)


def test_states_when_the_peer_closes_first():
    async def script(ctx, world):
        peer = Peer(world)
        peer.syn()
        await peer.get(ctx)
        await becomes(ctx, world, S.SYN_RECEIVED)
        await peer.open(ctx)
        peer.send(flags=ACK | FIN)
        await becomes(ctx, world, S.CLOSE_WAIT)
        world.services[0].send(0, b"", close=True)
        await becomes(ctx, world, S.LAST_ACK)
        segment = await fin_of(ctx, peer)
        peer.ack = (segment["seq"] + 1) & M32
        peer.send()
        service = world.services[0]
        await world.until(ctx, lambda: "CLOSED" in [entry[0] for entry in service.log])
        assert await look(ctx, world, 0, STATE) == S.CLOSED.value
        service.release(0)
        await becomes(ctx, world, S.FREE)
        await world.drained(ctx)

    World(CONFIG, services=[Service(release=False) for _ in range(3)]).run(script)


def test_states_when_we_close_first():
    async def script(ctx, world):
        peer = Peer(world)
        await peer.open(ctx)
        world.services[0].send(0, b"", close=True)
        await becomes(ctx, world, S.FIN_WAIT_1)
        segment = await fin_of(ctx, peer)
        peer.ack = (segment["seq"] + 1) & M32
        peer.send()
        await becomes(ctx, world, S.FIN_WAIT_2)
        peer.send(flags=ACK | FIN)
        await becomes(ctx, world, S.TIME_WAIT)
        await world.drained(ctx)

    World(CONFIG).run(script)


def test_both_close_and_we_open():
    async def script(ctx, world):
        peer = await connect(ctx, world)
        syn = await syn_of(ctx, peer)
        await becomes(ctx, world, S.SYN_SENT)
        syn_ack(peer, syn)
        await becomes(ctx, world, S.ESTABLISHED)
        world.services[1].send(0, b"", close=True)
        await becomes(ctx, world, S.FIN_WAIT_1)
        segment = await fin_of(ctx, peer)
        peer.send(flags=ACK | FIN)  # does not acknowledge ours
        await becomes(ctx, world, S.CLOSING)
        peer.ack = (segment["seq"] + 1) & M32
        peer.send()
        await becomes(ctx, world, S.TIME_WAIT)
        await world.drained(ctx)

    World(CONFIG).run(script)


@pytest.mark.parametrize("segments", [12, pytest.param(40, marks=pytest.mark.nightly)])
@seeds(2)
def test_looking_disturbs_nobody(seed, segments):
    """Echo of segments, each longer than the last, while one process does nothing but look."""
    done = []

    async def talk(ctx, world):
        peer = Peer(world)
        await peer.open(ctx)
        for k in range(segments):
            data = bytes([k]) * (1 + 30 * k)
            peer.send(data)
            got = b""
            while len(got) < len(data):
                got += (await peer.get(ctx))["data"]
            assert got == data
            peer.ack = (peer.ack + len(data)) & M32
            peer.send()
        peer.send(flags=ACK | FIN)
        segment = await fin_of(ctx, peer)
        peer.ack = (segment["seq"] + 1) & M32
        peer.send()
        await world.drained(ctx)
        done.append(True)

    async def watch(ctx, world):
        seen = set()
        while not done:
            seen.add(S(await look(ctx, world, 0, STATE)))
        assert S.ESTABLISHED in seen

    world_of(seed, echo=True).run(talk, watch)


def test_without_inspect_there_are_no_registers():
    names = {register.name for register in tcp_block(SMALL).registers}
    assert not [name for name in names if name.startswith("inspect")]
