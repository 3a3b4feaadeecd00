"""TcpEngine, opened from this side: SYN-SENT, its ends, and two ends that open at once."""

from dataclasses import replace

import pytest
from streams import seeds
from tcp_bench import ACK, FIN, M32, RST, SMALL, SYN, Peer, Service, World
from test_tcp_close import fin_of
from trebuchet.cores.tcp.connect import ConnectState
from trebuchet.cores.tcp.registers import tcp_block

ACTIVE = replace(SMALL, active=True)
PORT, LOCAL = 4000, 50_000
MAC = 0x0605_0403_0201


def world_of(seed=None, echo=False, config=ACTIVE):
    return World(config, seed=seed, services=[Service(echo), Service(echo), Service(echo)])


def state(ctx, world):
    return ConnectState(world.csr(ctx, "connect_state"))


async def connect(ctx, world, port=PORT, local=LOCAL, service=1):
    """Ask, and wait for the answer; returns the peer by hand, which has sent nothing."""
    peer = Peer(world, rport=port, port=local)
    csr = world.dut.csr
    for name, value in (
        ("mac", MAC), ("ip", peer.ip), ("port", port), ("local", local), ("service", service)
    ):  # fmt: skip
        ctx.set(getattr(csr, f"connect_{name}"), value)
    ctx.set(csr.connect, 1)
    await ctx.tick()
    ctx.set(csr.connect, 0)
    await world.until(ctx, lambda: state(ctx, world) != ConnectState.ASKED)
    return peer


async def syn_of(ctx, peer):
    """The SYN of the engine."""
    syn = await peer.get(ctx)
    assert (syn["flags"], syn["ack"], syn["mss"], syn["window"]) == (SYN, 0, 1460, 4096)
    assert syn["mac"] == MAC
    return syn


def syn_ack(peer, syn, **more):
    peer.ack = (syn["seq"] + 1) & M32
    peer.seq = (peer.isn + 1) & M32
    peer.raw(peer.isn, flags=SYN | ACK, mss=peer.mss, **more)


async def opened(ctx, world, **more):
    peer = await connect(ctx, world, **more)
    syn = await syn_of(ctx, peer)
    syn_ack(peer, syn)
    await peer.expect(ctx, flags=ACK, seq=peer.ack, ack=peer.seq)
    assert state(ctx, world) == ConnectState.OPEN
    return peer


@seeds(3)
def test_open_talk_close(seed):
    async def script(ctx, world):
        service = world.services[1]
        peer = await opened(ctx, world)
        session = world.csr(ctx, "connect_session")
        assert service.log == [("OPEN", session, 1, 0, 0)]
        assert world.csr(ctx, "established") == world.csr(ctx, "accepted") == 1
        assert world.csr(ctx, "syn_rx") == world.csr(ctx, "half_open") == 0
        peer.send(b"hello")
        got = b""
        while len(got) < 5:
            segment = await peer.get(ctx)
            got += segment["data"]
        assert got == b"hello"
        peer.ack = (peer.ack + 5) & M32
        peer.send(flags=ACK | FIN)
        segment = await fin_of(ctx, peer)
        peer.ack = (segment["seq"] + 1) & M32
        peer.send()
        await world.drained(ctx)
        kinds = [entry[0] for entry in service.log if entry[0] != "SENT"]
        assert kinds == ["OPEN", "DATA", "EOF", "CLOSED"]
        assert service.finished[0]["closed"] == 1
        assert state(ctx, world) == ConnectState.CLOSED

    world_of(seed, echo=True).run(script)


@seeds(2)
def test_what_is_queued_before_goes_out_after(seed):
    async def script(ctx, world):
        peer = await connect(ctx, world)
        syn = await syn_of(ctx, peer)
        await world.until(ctx, lambda: world.services[1].log)
        session = world.csr(ctx, "connect_session")
        world.services[1].send(session, b"first words", close=True)
        await world.pause(ctx, 5)
        assert world.out == [], "nothing before the handshake"
        syn_ack(peer, syn)
        got = b""
        while not (segment := await peer.get(ctx))["flags"] & FIN:
            got += segment["data"]
        assert got + segment["data"] == b"first words"
        assert segment["ack"] == peer.seq
        peer.ack = (segment["seq"] + len(segment["data"]) + 1) & M32
        peer.send(flags=ACK | FIN)
        await world.drained(ctx)

    world_of(seed).run(script)


@pytest.mark.parametrize(
    ("flags", "off", "ends"), [(RST | ACK, 1, 1), (RST | ACK, 2, 0), (RST, 1, 0)]
)
def test_a_reset_counts_if_it_acknowledges_the_syn(flags, off, ends):
    async def script(ctx, world):
        peer = await connect(ctx, world)
        syn = await syn_of(ctx, peer)
        peer.raw(0, ack=syn["seq"] + off, flags=flags, window=0)
        await world.pause(ctx, 10)
        assert state(ctx, world) == (ConnectState.CLOSED if ends else ConnectState.OPENING)
        assert world.csr(ctx, "rst_rx") == ends
        assert world.out == []
        if not ends:
            world.services[1].send(world.csr(ctx, "connect_session"), b"", abort=True)
        await world.drained(ctx)
        assert world.services[1].finished[0]["closed"] == 0
        assert world.out == [], "a SYN that nobody has answered needs no RST (RFC 9293, 3.10.5)"

    world_of().run(script)


def test_an_answer_to_another_syn_draws_rst():
    async def script(ctx, world):
        peer = await connect(ctx, world)
        syn = await syn_of(ctx, peer)
        for ack in (syn["seq"], syn["seq"] + 2, syn["seq"] - 5000, syn["seq"] + (1 << 31)):
            peer.raw(77, ack=ack, flags=SYN | ACK)
            await peer.expect(ctx, flags=RST, seq=ack, ack=0)
        peer.raw(77, ack=syn["seq"] + 1, flags=ACK)  # neither SYN nor RST: dropped
        peer.raw(77, ack=syn["seq"] + 1, flags=ACK | FIN, data=b"text")
        await world.pause(ctx, 5)
        assert (world.out, state(ctx, world)) == ([], ConnectState.OPENING)
        syn_ack(peer, syn)
        await peer.expect(ctx, flags=ACK, seq=peer.ack, ack=peer.seq)
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    world_of().run(script)


@seeds(2)
def test_nobody_answers(seed):
    async def script(ctx, world):
        peer = await connect(ctx, world)
        first = await syn_of(ctx, peer)
        times = [world.now]
        for _ in range(world.config.syn_retries):
            assert (await syn_of(ctx, peer))["seq"] == first["seq"]
            times.append(world.now)
        gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
        for gap, expected in zip(gaps, (16, 32, 64), strict=True):
            assert abs(gap - expected) <= 2
        await world.drained(ctx)
        assert [entry[:3] for entry in world.services[1].log] == [("OPEN", 0, 1), ("CLOSED", 0, 0)]
        assert world.csr(ctx, "timeouts") == 1
        assert world.csr(ctx, "rst_tx") == 0
        assert state(ctx, world) == ConnectState.CLOSED

    world_of(seed).run(script)


@seeds(3)
def test_both_ends_open_at_once(seed):
    """RFC 9293, 3.5, figure 8."""

    async def script(ctx, world):
        peer = await connect(ctx, world)
        syn = await syn_of(ctx, peer)
        peer.syn()
        answer = await peer.get(ctx)
        assert answer["flags"] == SYN | ACK
        assert (answer["seq"], answer["ack"]) == (syn["seq"], peer.seq)
        assert (state(ctx, world), world.csr(ctx, "half_open")) == (ConnectState.OPENING, 1)
        peer.ack = (syn["seq"] + 1) & M32
        peer.send()
        await world.until(ctx, lambda: state(ctx, world) == ConnectState.OPEN)
        peer.send(b"abc")
        await world.until(ctx, lambda: len(world.services[1].log) > 1)
        assert [entry[0] for entry in world.services[1].log] == ["OPEN", "DATA"]
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    world_of(seed).run(script)


def test_both_ends_open_and_one_gives_up():
    async def script(ctx, world):
        peer = await connect(ctx, world)
        await syn_of(ctx, peer)
        peer.syn()
        await world.drained(ctx)
        kinds = [entry[0] for entry in world.services[1].log]
        assert kinds == ["OPEN", "CLOSED"]
        assert state(ctx, world) == ConnectState.CLOSED

    world_of().run(script)


def test_what_is_refused():
    async def script(ctx, world):
        first = await opened(ctx, world)
        assert state(ctx, world) == ConnectState.OPEN
        ctx.set(world.dut.csr.connect, 1)  # not before it is over
        await world.pause(ctx, 2)
        ctx.set(world.dut.csr.connect, 0)
        assert state(ctx, world) == ConnectState.OPEN
        first.raw(first.seq, flags=RST)
        await world.drained(ctx)
        # The addresses have a session.
        peer = Peer(world, rport=PORT, port=7)
        await peer.open(ctx)
        await connect(ctx, world, local=7)
        assert state(ctx, world) == ConnectState.REFUSED
        # No session is free.
        others = [Peer(world, rport=6000 + k) for k in range(7)]
        for other in others:
            await other.open(ctx)
        await connect(ctx, world, local=LOCAL + 1)
        assert state(ctx, world) == ConnectState.REFUSED
        assert world.csr(ctx, "refused_full") == 1
        for other in (peer, *others):
            other.raw(other.seq, flags=RST)
        await world.drained(ctx)
        # Drained.
        ctx.set(world.dut.csr.enable, 0)
        await connect(ctx, world, local=LOCAL + 2)
        assert state(ctx, world) == ConnectState.REFUSED
        # A service that is none.
        ctx.set(world.dut.csr.enable, 1)
        ctx.set(world.dut.csr.connect_service, 3)
        ctx.set(world.dut.csr.connect, 1)
        await world.pause(ctx, 3)
        assert state(ctx, world) == ConnectState.REFUSED
        assert (world.out, world.csr(ctx, "unknown")) == ([], 0)

    world_of().run(script)


@seeds(2)
def test_segments_and_requests_side_by_side(seed):
    """The stream of segments loses none and changes none while requests go between them."""

    async def script(ctx, world):
        peers = [Peer(world, rport=6000 + k) for k in range(4)]
        for peer in peers:
            peer.syn()
        server = await connect(ctx, world)
        answers = {}
        while len(answers) < 5:
            segment = await world.get(ctx)
            answers[segment["remote_port"], segment["local_port"]] = segment
        assert answers.pop((PORT, LOCAL))["flags"] == SYN
        assert {s["flags"] for s in answers.values()} == {SYN | ACK}
        for peer in peers:
            peer.raw(peer.seq, flags=RST)
        server.raw(0, ack=0, flags=RST | ACK)  # of no SYN of ours: dropped
        world.services[1].send(world.csr(ctx, "connect_session"), b"", abort=True)
        await world.drained(ctx)

    world_of(seed).run(script)


def test_without_active_there_are_no_registers():
    for config in (SMALL, ACTIVE):
        names = [r.name for r in tcp_block(config).registers if r.name.startswith("connect")]
        assert bool(names) == config.active
