"""SYN cookies: the component against its model, and the engine when too many handshakes go on."""

from dataclasses import replace

import pytest
from streams import make_rng, seeds
from tcp_bench import ACK, M32, RST, SMALL, SYN, Peer, Service, World
from trebuchet.cores.tcp.cookie import SIZES
from trebuchet.cores.tcp.registers import COOKIE_COUNTERS, tcp_block
from trebuchet.models.tcp import COOKIE_SIZES, syn_cookie

#: Nothing is sent again while a test looks on.
COOKIES = replace(SMALL, cookies=True, half_open=2, rto_initial=2000)
EXTERNAL = replace(COOKIES, cache=4, wheel=128)
KINDS = pytest.mark.parametrize("config", [COOKIES, EXTERNAL], ids=["ram", "cache"])
#: The second takes three times as long.
KINDS_BY_TIER = pytest.mark.parametrize(
    "config",
    [
        pytest.param(COOKIES, id="ram"),
        pytest.param(EXTERNAL, id="cache", marks=pytest.mark.nightly),
    ],
)
KEY = SMALL.isn_key


def counts(ctx, world):
    names = [*COOKIE_COUNTERS, "refused_half_open", "accepted", "established"]
    return {name: world.csr(ctx, name) for name in names}


async def crowd(ctx, world, count=2):
    """Handshakes that nobody completes, as many as may be."""
    peers = [Peer(world, rport=9000 + k, isn=77 * k) for k in range(count)]
    for peer in peers:
        peer.syn()
        peer.ack = ((await peer.get(ctx))["seq"] + 1) & M32
    return peers


async def gone(ctx, peers):
    """They leave."""
    for peer in peers:
        peer.raw(peer.seq, flags=RST)
    await peers[0].world.drained(ctx)


@KINDS
@seeds(2)
def test_a_handshake_without_a_session(config, seed):
    """Nothing is kept of the SYN; the ACK makes the session, and what comes with it is taken."""
    world = World(config, seed=seed, services=[Service(echo=True), Service(), Service()])

    async def script(ctx, world):
        others = await crowd(ctx, world)
        rng = make_rng(seed, "peer")
        peer = Peer(world, isn=rng.getrandbits(32), rport=rng.getrandbits(16), mss=1300)
        peer.syn()
        syn_ack = await peer.get(ctx)
        assert (syn_ack["flags"], syn_ack["ack"]) == (SYN | ACK, peer.seq)
        assert (syn_ack["mss"], syn_ack["length"]) == (config.mss, 0)
        assert syn_ack["window"] == config.window
        want = syn_cookie(KEY, peer.ip, peer.rport, 0, 0, 1300, peer.seq)
        assert syn_ack["seq"] == want
        assert (world.csr(ctx, "sessions_used"), world.csr(ctx, "half_open")) == (2, 2)
        peer.syn()  # again, as if that had been lost
        assert (await peer.get(ctx))["seq"] == want
        peer.ack = (want + 1) & M32
        text = rng.randbytes(700)
        peer.send(text)  # the ACK by itself was lost, too
        data = b""
        while len(data) < len(text):
            s = await peer.get(ctx)
            assert s["flags"] & ACK
            data += s["data"]
            peer.ack = (want + 1 + len(data)) & M32
        assert data == text
        assert counts(ctx, world) == {
            "cookies_sent": 2, "cookies_taken": 1, "refused_half_open": 0,
            "accepted": 3, "established": 1,
        }  # fmt: skip
        peer.send()
        peer.raw(peer.seq, flags=RST)
        await gone(ctx, others)

    world.run(script, limit=200_000)


@KINDS_BY_TIER
def test_what_is_no_cookie_makes_no_session(config):
    """Guesses, cookies of others, and ACKs when none was sent: a RST, if it cannot be one."""

    async def script(ctx, world):
        peer = Peer(world)
        guess = (syn_cookie(KEY, peer.ip, peer.rport, 0, 0, 1460, 5000) + 1) & M32
        peer.raw(5000, ack=guess)
        s = await peer.get(ctx)
        assert (s["flags"], s["seq"]) == (RST, guess)
        others = await crowd(ctx, world)
        peer.syn()
        cookie = (await peer.get(ctx))["seq"]
        for ack in (cookie, cookie + 2, cookie + 1 ^ 8):  # even, or of another time
            peer.raw(peer.seq, ack=ack & M32)
            s = await peer.get(ctx)
            assert (s["flags"], s["seq"]) == (RST, ack & M32)
        stranger = Peer(world, rport=peer.rport + 1)
        stranger.raw(peer.seq, ack=(cookie + 1) & M32)
        for ack in (cookie + 1 ^ 1 << 31, cookie + 1 ^ 1 << 5):
            peer.raw(peer.seq, ack=ack & M32)
        await world.until(ctx, lambda: world.csr(ctx, "unknown") == 7)
        await world.quiet(ctx, 5)
        for flags in (ACK | SYN, ACK | RST):  # neither is the ACK of one
            peer.raw(peer.seq, ack=(cookie + 1) & M32, flags=flags)
        assert (await peer.get(ctx))["flags"] == RST
        await world.quiet(ctx, 5)
        closed = Peer(world, port=81)
        closed.raw(peer.seq, ack=(cookie + 1) & M32)
        assert (await closed.get(ctx))["flags"] == RST
        assert counts(ctx, world)["cookies_taken"] == 0
        assert world.csr(ctx, "sessions_used") == 2
        await gone(ctx, others)

    World(config).run(script)


@KINDS_BY_TIER
@pytest.mark.parametrize("lost", [1, 5, 32, 700])
def test_the_first_bytes_are_lost(config, lost):
    """The ACK, too: what comes behind them makes no session, or they would never be missed."""
    world = World(config, services=[Service(echo=True), Service(), Service()])

    async def script(ctx, world):
        others = await crowd(ctx, world)
        peer = Peer(world, rport=5000, isn=0xFFFF_FFF0)
        peer.syn()
        peer.ack = ((await peer.get(ctx))["seq"] + 1) & M32
        text = bytes(range(256)) * 4
        peer.raw(peer.seq + lost, data=text[lost:])
        await world.quiet(ctx, 10)
        assert counts(ctx, world)["cookies_taken"] == 0
        peer.raw(peer.seq, data=text[:lost])
        peer.raw(peer.seq + lost, data=text[lost:])
        session = world.services[0].state
        await world.until(ctx, lambda: session and next(iter(session.values()))["data"] == text)
        peer.raw(peer.seq + len(text), flags=RST)
        await gone(ctx, others)

    world.run(script)


@KINDS_BY_TIER
@seeds(2)
def test_a_crowd_gets_in(config, seed):
    """With room for one handshake, more peers than that all get their answers."""
    config = replace(config, half_open=1)
    world = World(config, seed=seed, services=[Service(echo=True) for _ in config.ports])

    async def script(ctx, world):
        rng = make_rng(seed, "crowd")
        peers = [Peer(world, rport=4000 + k, isn=rng.getrandbits(32)) for k in range(6)]
        for peer in peers:
            peer.syn()
        answers, got = {}, {peer.rport: b"" for peer in peers}
        while len(answers) < len(peers):
            s = await world.get(ctx)
            assert s["flags"] == SYN | ACK
            answers[s["remote_port"]] = s["seq"]
        rng.shuffle(peers)
        for peer in peers:
            peer.ack = (answers[peer.rport] + 1) & M32
            peer.send(b"%d" % peer.rport)
        while any(len(text) < 4 for text in got.values()):
            s = await world.get(ctx)
            got[s["remote_port"]] += s["data"] if s["seq"] == answers[s["remote_port"]] + 1 else b""
        assert got == {peer.rport: b"%d" % peer.rport for peer in peers}
        assert world.csr(ctx, "cookies_taken") >= 1
        for peer in peers:
            peer.ack = (answers[peer.rport] + 5) & M32
            peer.send()
            peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    world.run(script, limit=200_000)


@KINDS_BY_TIER
def test_no_slot_no_session(config):
    """A good cookie, but every session is taken: as if the ACK had been lost, then it is served."""

    async def script(ctx, world):
        others = await crowd(ctx, world)
        peer = Peer(world, rport=5000)
        peer.syn()
        cookie = (await peer.get(ctx))["seq"]
        rest = [Peer(world, rport=6000 + k) for k in range(config.sessions - 2)]
        for other in rest:
            await other.open(ctx)
        peer.ack = (cookie + 1) & M32
        peer.raw(peer.seq)
        await world.until(ctx, lambda: world.csr(ctx, "refused_full") == 1)
        await world.quiet(ctx, 10)
        others[0].raw(others[0].seq, flags=RST)
        await world.until(ctx, lambda: world.csr(ctx, "sessions_used") < config.sessions)
        peer.send(b"now")
        await peer.expect(ctx, ack=peer.seq)
        for other in (peer, *rest):
            other.raw(other.seq, flags=RST)
        await gone(ctx, others[1:])

    World(config).run(script, limit=200_000)


def test_a_small_mss_and_a_scaled_window():
    """Who takes less than 536 bytes gets no cookie; a window scale option is forgotten."""
    config = replace(COOKIES, scaling=True)

    async def script(ctx, world):
        others = await crowd(ctx, world)
        small = Peer(world, rport=5000, mss=535)
        small.syn()
        await world.quiet(ctx, 5)
        assert counts(ctx, world)["refused_half_open"] == 1
        peer = Peer(world, rport=5001, mss=536, scale=4)
        peer.syn()
        s = await peer.get(ctx)
        assert not s["scaled"]
        peer.ack = (s["seq"] + 1) & M32
        peer.window = 1072
        peer.raw(peer.seq, scale=9)  # not a SYN's: to be ignored
        await world.until(ctx, lambda: world.services[0].log)
        session = world.services[0].log[-1][1]
        world.services[0].send(session, bytes(3000))
        for _ in range(2):
            assert (await peer.get(ctx))["length"] == 536
        await world.quiet(ctx, 5)
        peer.raw(peer.seq, flags=RST)
        await gone(ctx, others)

    World(config).run(script)


def test_without_cookies_nothing_is_different():
    """Their counters are not there, and SYNs above the limit are refused."""
    names = {r.name for r in tcp_block(SMALL).registers}
    assert not names & set(COOKIE_COUNTERS)
    assert {r.name for r in tcp_block(COOKIES).registers} - names == set(COOKIE_COUNTERS)

    async def script(ctx, world):
        others = await crowd(ctx, world)
        Peer(world, rport=5000).syn()
        await world.quiet(ctx, 5)
        assert world.csr(ctx, "refused_half_open") == 1
        await gone(ctx, others)

    World(replace(COOKIES, cookies=False)).run(script)


def test_sizes_are_the_models():
    assert SIZES == COOKIE_SIZES


@KINDS_BY_TIER
def test_the_next_segment_is_looked_up_as_what_it_is(config):
    """Right behind a SYN that gets a cookie, and behind the ACK of one, comes another's data."""

    async def script(ctx, world):
        peer = Peer(world)
        await peer.open(ctx)
        others = await crowd(ctx, world)
        new = Peer(world, rport=5000)
        new.syn()
        peer.send(b"one")
        cookie = (await new.get(ctx))["seq"]
        await peer.expect(ctx)
        new.ack = (cookie + 1) & M32
        wrong = Peer(world, rport=5001)
        wrong.raw(new.seq, ack=new.ack)
        peer.send(b"two")
        await peer.expect(ctx)
        new.raw(new.seq)
        peer.send(b"three")
        await peer.expect(ctx)
        for other in (peer, new):
            other.raw(other.seq, flags=RST)
        await gone(ctx, others)

    World(config).run(script)
