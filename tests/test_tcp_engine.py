"""TcpEngine, segment by segment: opening, acceptability, resets, data in order."""

import random
from dataclasses import replace

import pytest
from streams import seeds
from tcp_bench import ACK, FIN, M32, RST, SMALL, SYN, Peer, Service, World
from trebuchet.models.tcp import join_runs


def echo_world(seed, **more):
    return World(seed=seed, services=[Service(echo=True), Service(), Service()], **more)


async def collect(ctx, world, count):
    """So many bytes of data from the engine, acknowledging nothing."""
    got = b""
    while len(got) < count:
        got += (await world.get(ctx))["data"]
    return got


@seeds(2)
def test_handshake_echo_close(seed):
    async def script(ctx, world):
        peer = Peer(world)
        synack = await peer.open(ctx)
        assert synack["mss"] == 1460
        assert synack["window"] == 4096
        peer.send(b"hello")
        assert await collect(ctx, world, 5) == b"hello"
        peer.ack = (peer.ack + 5) & M32
        peer.send(flags=ACK | FIN)
        while not (s := await peer.get(ctx))["flags"] & FIN:
            pass
        assert s["ack"] == peer.seq
        peer.ack = (s["seq"] + 1) & M32
        peer.send()
        await world.drained(ctx)
        kinds = [entry[0] for entry in world.services[0].log if entry[0] != "SENT"]
        assert kinds == ["OPEN", "DATA", "EOF", "CLOSED"]
        assert world.services[0].finished[0]["closed"] == 1
        assert world.csr(ctx, "accepted") == world.csr(ctx, "established") == 1

    echo_world(seed).run(script)


def test_reset_state():
    async def script(ctx, world):
        await world.pause(ctx, 3)
        assert world.csr(ctx, "idle")
        assert world.csr(ctx, "sessions") == 8
        await world.drained(ctx)

    World().run(script)


@seeds(2)
def test_syn_repeated_keeps_isn(seed):
    """A.16: a SYN retransmitted, and our SYN-ACK retransmitted, carry the same numbers."""

    async def script(ctx, world):
        peer = Peer(world)
        peer.syn()
        first = await peer.get(ctx)
        peer.syn()
        second = await peer.get(ctx)
        third = await peer.get(ctx)  # our own time-out
        assert first["seq"] == second["seq"] == third["seq"]
        assert first["flags"] == second["flags"] == third["flags"] == SYN | ACK
        peer.ack = first["seq"] + 1
        peer.send()
        await world.until(ctx, lambda: world.services[0].log)
        assert world.csr(ctx, "sessions_used") == 1

    World(seed=seed).run(script)


def test_half_open_times_out():
    async def script(ctx, world):
        peer = Peer(world)
        peer.syn()
        times = []
        for _ in range(1 + world.config.syn_retries):
            assert (await peer.get(ctx))["flags"] == SYN | ACK
            times.append(world.now)
        gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
        for gap, expected in zip(gaps, (16, 32, 64), strict=True):  # doubled each time
            assert abs(gap - expected) <= 1
        await world.drained(ctx)
        assert world.services[0].log == []  # it never heard of it
        assert world.csr(ctx, "timeouts") == 1

    World().run(script)


def test_half_open_limit():
    async def script(ctx, world):
        for k in range(3):
            Peer(world, rport=5000 + k).syn()
        await world.until(ctx, lambda: len(world.out) == 2)
        await world.pause(ctx, 5)
        assert len(world.out) == 2
        assert world.csr(ctx, "refused_half_open") == 1
        assert world.csr(ctx, "half_open") == 2

    World(replace(SMALL, half_open=2)).run(script)


@seeds(2)
def test_no_session_draws_rst(seed):
    """A.14: RST with the right sequence number; no RST to a RST; payloads are swallowed."""

    async def script(ctx, world):
        peer = Peer(world)
        peer.raw(500, ack=0x12345, flags=ACK, data=b"xyz")
        s = await peer.get(ctx)
        assert (s["flags"], s["seq"]) == (RST, 0x12345)
        closed = Peer(world, port=4242)
        closed.raw(500, ack=0, flags=SYN, data=b"abcdefg")
        s = await closed.get(ctx)
        assert (s["flags"], s["seq"], s["ack"]) == (RST | ACK, 0, 508)
        peer.raw(500, flags=RST, data=b"reset with data")
        await world.quiet(ctx, 5)
        assert world.csr(ctx, "unknown") == 3
        await world.drained(ctx)

    World(seed=seed).run(script)


@seeds(2)
def test_syn_with_data(seed):
    """A.2: the data of a SYN are dropped, the peer sends them again."""

    async def script(ctx, world):
        peer = Peer(world)
        peer.raw(peer.isn, ack=0, flags=SYN, data=b"early", mss=1460)
        s = await peer.get(ctx)
        assert s["ack"] == peer.isn + 1
        peer.seq, peer.ack = peer.isn + 1, (s["seq"] + 1) & M32
        peer.send(b"early")
        assert await collect(ctx, world, 5) == b"early"

    echo_world(seed).run(script)


def test_handshake_rejects_wrong_ack():
    async def script(ctx, world):
        peer = Peer(world)
        peer.syn()
        iss = (await peer.get(ctx))["seq"]
        peer.raw(peer.seq, ack=iss + 77, data=b"data")
        s = await peer.get(ctx)
        assert (s["flags"], s["seq"]) == (RST, (iss + 77) & M32)
        assert world.services[0].log == []
        peer.raw(peer.seq, ack=iss + 1)
        await world.until(ctx, lambda: world.services[0].log)

    World().run(script)


@seeds(2)
def test_reset_checks(seed):
    """RFC 5961: only the exact number resets; in the window a challenge ACK; else nothing."""

    async def script(ctx, world):
        peer = Peer(world)
        await peer.open(ctx)
        peer.raw(peer.seq - 1, flags=RST)
        await world.quiet(ctx, 3)
        peer.raw(peer.seq + 10, flags=RST, data=b"with data")
        await peer.expect(ctx)
        peer.raw(peer.seq + 5000, flags=RST)
        await world.quiet(ctx, 3)
        peer.raw(peer.seq, flags=SYN, ack=0)
        await peer.expect(ctx)
        assert world.csr(ctx, "challenge_acks") == 2
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)
        assert world.services[0].finished[0]["closed"] == 0
        assert world.csr(ctx, "rst_rx") == 1
        assert world.out == []

    World(seed=seed).run(script)


def test_challenge_acks_are_limited():
    """No ACK war: a stray sequence number draws a few ACKs in 128 ticks, not one each time."""

    async def script(ctx, world):
        peer = Peer(world)
        await peer.open(ctx)
        for _ in range(12):
            peer.raw(peer.seq, ack=peer.ack + 5000)
        await world.pause(ctx, 20)
        assert 1 <= len(world.out) <= 3
        assert world.csr(ctx, "out_of_window") == 12

    World(tick=60).run(script)


def test_ack_of_unsent_data_is_dropped():
    async def script(ctx, world):
        peer = Peer(world)
        await peer.open(ctx)
        peer.raw(peer.seq, ack=peer.ack + 1, data=b"not taken")
        await peer.expect(ctx)
        assert world.services[0].state[0]["data"] == b""

    World().run(script)


@seeds(2)
def test_peer_keepalive_is_answered(seed):
    """A.7: SEQ = RCV.NXT - 1, with and without a byte of garbage."""

    async def script(ctx, world):
        peer = Peer(world)
        await peer.open(ctx)
        peer.send(b"12345")
        await peer.expect(ctx)
        for data in (b"", b"\x00"):
            peer.raw(peer.seq - 1, data=data)
            await peer.expect(ctx)
        assert world.services[0].state[0]["data"] == b"12345"

    World(seed=seed).run(script)


@seeds(3)
def test_segments_in_any_order(seed):
    """What arrives beyond the first gap is kept; beyond a second one it must come again."""

    async def script(ctx, world):
        peer = Peer(world, isn=0xFFFFFF00 - 1)
        await peer.open(ctx)
        rng = random.Random(f"order {seed}")
        text, start = rng.randbytes(2000), peer.seq
        sent, kept = 0, []  # the naive model

        async def piece(a, b, flags=ACK):
            nonlocal sent, kept
            a, b = min(a, len(text)), min(b, len(text))
            peer.raw(start + a, data=text[a:b], flags=flags)
            after, edge = join_runs(kept, max(a, sent), b, a > sent, 1)
            if sent < a < b and after is not None:
                kept = after
            elif a <= sent < b:
                sent, kept = edge, after
            upto = None
            while upto != sent:  # announcements of the window may come before it
                upto = (await peer.get(ctx))["ack"] - start & M32
                assert upto <= sent

        # appended to, extended at the front, not extended by what leaves a gap; then filled
        for a, b in ((200, 250), (250, 300), (150, 200), (400, 450), (200, 250), (0, 150)):
            await piece(a, b)
        assert sent == 300
        assert world.csr(ctx, "kept") == 4
        assert world.csr(ctx, "out_of_order") == 1
        for a, b in ((400, 450), (300, 420), (500, 510), (450, 600), (700, 800)):
            await piece(a, b)
        await world.pause(ctx, 5)  # all before the gap is consumed; the segment is in use still
        assert world.csr(ctx, "segments_free") == SMALL.sessions - 1
        await piece(600, 700, ACK | FIN)  # this FIN cannot be: text follows
        assert sent == 800
        while sent < len(text):
            a = min(len(text) - 1, max(0, sent + rng.choice((0, 0, -7, 1, 30, 60))))
            await piece(a, a + rng.randint(1, 60))
        await world.pause(ctx, 5)
        assert world.services[0].state[0]["data"] == text

    World(seed=seed).run(script)


def test_a_tail_that_overtakes_the_rest():
    """What is nearer takes its place: only the tail has to come again."""

    async def script(ctx, world):
        peer = Peer(world)
        await peer.open(ctx)
        text = bytes(range(100))
        for a in (90, *range(10, 90, 10)):
            peer.raw(peer.seq + a, data=text[a : a + 10])
            await peer.expect(ctx, ack=peer.seq)
        peer.raw(peer.seq, data=text[:10])
        await peer.expect(ctx, ack=peer.seq + 90)
        peer.raw(peer.seq + 90, data=text[90:])
        await peer.expect(ctx, ack=peer.seq + 100)
        assert world.csr(ctx, "kept") == 9
        assert world.csr(ctx, "out_of_order") == 0
        await world.pause(ctx, 5)
        assert world.services[0].state[0]["data"] == text

    World(seed=1).run(script)


@seeds(2)
def test_overlap_is_trimmed(seed):
    """Retransmitted data that are partly new; stale data; data beyond a gap."""

    async def script(ctx, world):
        peer = Peer(world, isn=0xFFFFFF00 - 1)
        await peer.open(ctx)
        text = bytes(range(256)) * 4
        start = peer.seq
        sent = 0
        for a, b in ((0, 100), (50, 150), (100, 149), (0, 301), (300, 302), (200, 1024)):
            peer.raw(start + a, data=text[a:b])
            sent = max(sent, b)
            await peer.expect(ctx, ack=start + sent)
        peer.raw(start + sent + 10, data=b"beyond a gap")
        await peer.expect(ctx, ack=start + sent)
        assert world.csr(ctx, "kept") == 1
        await world.pause(ctx, 3)
        assert world.services[0].state[0]["data"] == text
        peer.raw(start + sent, data=b"fills it: ")
        await peer.expect(ctx, ack=start + sent + 22)
        await world.pause(ctx, 3)
        assert world.services[0].state[0]["data"] == text + b"fills it: beyond a gap"

    World(seed=seed).run(script)


@seeds(2)
def test_sequence_wrap_both_ways(seed):
    """A.3, A.11: both sequence spaces wrap in the middle of the data; the ISN is near 2**32."""

    async def script(ctx, world):
        probe = Peer(world, isn=5)
        first = await probe.open(ctx)
        probe.raw(probe.seq, flags=RST)
        await world.drained(ctx)
        return first["seq"]

    found = []

    async def measure(ctx, world):
        found.append(await script(ctx, world))

    World().run(measure)

    async def wrapped(ctx, world):
        peer = Peer(world, isn=0xFFFFFFE0)
        synack = await peer.open(ctx)
        assert synack["seq"] > 0xFFFFFF00
        text = bytes(range(200)) * 3
        peer.send(text)
        assert await collect(ctx, world, 600) == text
        peer.ack += 600
        peer.send(flags=ACK | FIN)
        while not (s := await peer.get(ctx))["flags"] & FIN:
            pass
        assert s["seq"] == peer.ack & M32
        peer.ack += 1
        peer.send()
        await world.drained(ctx)

    start = (0xFFFFFF80 - found[0]) & M32
    echo_world(seed, config=replace(SMALL, isn_start=start)).run(wrapped)


def test_isn_depends_on_key_and_tuple():
    seen = []

    def world(**more):
        async def script(ctx, world):
            peer = Peer(world, rport=more.pop("rport", 4000))
            peer.syn()
            seen.append((await peer.get(ctx))["seq"])

        return script

    World().run(world())
    World().run(world(rport=4001))
    World(replace(SMALL, isn_key=1)).run(world())
    gaps = [(seen[0] - other) & M32 for other in seen[1:]]
    assert all(1 << 20 < gap < M32 - (1 << 20) for gap in gaps)


@pytest.mark.parametrize(
    ("offered", "used"), [(0, 536), (48, 64), (100, 100), (1460, 1460), (9000, 1460)]
)
def test_mss_of_the_peer(offered, used):
    """A.9: absent means 536, tiny is raised to the floor, large is cut to what we send."""

    async def script(ctx, world):
        peer = Peer(world, mss=offered)
        await peer.open(ctx)
        world.services[0].send(0, bytes(range(256)) * 6)
        assert (await peer.get(ctx))["length"] == used

    World().run(script)


def test_disabled_and_closed_ports():
    async def script(ctx, world):
        ctx.set(world.dut.csr.listen, 0b101)
        Peer(world, port=9).syn()
        assert (await world.get(ctx))["flags"] == RST | ACK
        peer = Peer(world, port=80)
        peer.syn()
        assert (await peer.get(ctx))["flags"] == SYN | ACK
        ctx.set(world.dut.csr.enable, 0)
        Peer(world, rport=1, port=80).syn()
        assert (await world.get(ctx))["flags"] == RST | ACK
        ctx.set(world.dut.csr.abort_all, 1)
        await world.drained(ctx)
        assert world.csr(ctx, "aborts") == 1
        assert world.out[-1]["flags"] == RST | ACK

    World().run(script)
