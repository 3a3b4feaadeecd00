"""TcpEngine and ICMP errors: a smaller MSS, attempts that are refused, and what is not believed."""

from dataclasses import replace

import pytest
from streams import make_rng, seeds
from tcp_bench import ACK, FIN, M32, RST, SMALL, Peer, Service, World
from test_tcp_active import connect, state, syn_ack, syn_of
from test_tcp_close import fin_of
from trebuchet.cores.tcp.connect import ConnectState
from trebuchet.cores.tcp.icmp_error import MSS_FLOOR
from trebuchet.cores.tcp.registers import ICMP_COUNTERS, tcp_block

ICMP = replace(SMALL, icmp=True)
ACTIVE = replace(ICMP, active=True)
EXTERNAL = replace(ICMP, cache=4, wheel=128)
NOTHING = dict.fromkeys(ICMP_COUNTERS, 0)


def counts(ctx, world):
    return {name: world.csr(ctx, name) for name in ICMP_COUNTERS}


async def counted(ctx, world, **wanted):
    """Wait until so many notices are done with; what they did must be this."""
    total = sum(wanted.values())
    await world.until(ctx, lambda: sum(counts(ctx, world).values()) == total)
    assert counts(ctx, world) == NOTHING | wanted


def notice(peer, seq, code=4, mtu=1000, **more):
    peer.world.notice(seq, code, mtu, rport=peer.rport, port=peer.port, ip=peer.ip, **more)


async def sending(ctx, world, length=4000, **more):
    """A session with ``length`` bytes, or the first ten segments of them, on their way."""
    peer = Peer(world, **more)
    await peer.open(ctx)
    text = make_rng(world.seed, "text").randbytes(length)
    world.services[0].send(0, text)
    sent = [await peer.get(ctx)]
    while sum(s["length"] for s in sent) < length:
        sent.append(await peer.get(ctx))
    return peer, text, sent


async def take(ctx, peer, text, most, end=True):
    """Take all of ``text`` from ``peer.ack`` on, in segments of at most ``most`` bytes; close."""
    got, first = b"", peer.ack
    while len(got) < len(text):
        s = await peer.get(ctx)
        assert s["length"] <= most
        if s["seq"] == peer.ack and s["length"]:
            got += s["data"]
            peer.ack = (first + len(got)) & M32
            peer.send()
    assert got == text
    if end:
        peer.raw(peer.seq, flags=RST)
        await peer.world.drained(ctx)


@pytest.mark.parametrize(
    "config",
    [pytest.param(ICMP, id="ram"), pytest.param(EXTERNAL, id="cache", marks=pytest.mark.nightly)],
)
@seeds(2)
def test_a_smaller_mtu_lowers_the_mss(seed, config):
    """All from the first lost byte on goes out again at once, in smaller ones, the first alone."""

    async def script(ctx, world):
        peer, text, sent = await sending(ctx, world)
        assert [s["length"] for s in sent] == [1460, 1460, 1080]
        before = world.now
        for s in sent:  # the router says it of each
            notice(peer, s["seq"], mtu=1000)
        first = await peer.get(ctx)
        assert (first["seq"], first["data"]) == (peer.ack, text[:960])
        await counted(ctx, world, icmp_mss=1, icmp_soft=2)
        assert world.now - before < world.config.rto_min
        assert (world.csr(ctx, "rto"), world.csr(ctx, "fast_retransmits")) == (0, 0)
        peer.ack = (peer.ack + 960) & M32
        peer.send()
        await take(ctx, peer, text[960:], 960)

    World(config, seed=seed, tick=100).run(script, limit=200_000)


@pytest.mark.parametrize(
    ("mtu", "mss"),
    [(1499, 1459), (577, 537), (576, 536), (575, 536), (68, 536), (39, 536), (0, 536)],
)
def test_the_mss_has_a_floor(mtu, mss):
    """RFC 5927, 7; a router that does not say (RFC 1191, 5) gets the floor."""
    assert MSS_FLOOR == 536

    async def script(ctx, world):
        peer, text, _ = await sending(ctx, world, 1460)
        notice(peer, peer.ack, mtu=mtu)
        assert (await peer.get(ctx))["data"] == text[:mss]
        await counted(ctx, world, icmp_mss=1)
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    World(ICMP, tick=100).run(script)


@pytest.mark.parametrize("mtu", [1500, 1501, 9000, 65535])
def test_a_notice_never_raises_the_mss(mtu):
    async def script(ctx, world):
        peer, _, _ = await sending(ctx, world, 1460)
        notice(peer, peer.ack, mtu=mtu)
        await counted(ctx, world, icmp_soft=1)
        assert world.out == []
        small = Peer(world, mss=100, rport=4001)
        await small.open(ctx)
        world.services[0].send(1, bytes(100))
        await small.get(ctx)
        notice(small, small.ack, mtu=0)  # its MSS is below the floor
        await counted(ctx, world, icmp_soft=2)
        for one in (peer, small):
            one.raw(one.seq, flags=RST)
        await world.drained(ctx)

    World(ICMP, tick=100).run(script)


@seeds(2)
def test_what_is_not_under_way_is_not_believed(seed):
    """RFC 5927, 4.1: exactly the numbers from SND.UNA to SND.MAX - 1 are."""

    async def script(ctx, world):
        peer, text, sent = await sending(ctx, world, 2920)
        base, top = peer.ack, (peer.ack + 2920) & M32
        wrong = [base - 1, top, top + 1, base - 5000, base + (1 << 31), base ^ (1 << 31), 0]
        for seq in wrong:
            notice(peer, seq)
        await counted(ctx, world, icmp_ignored=len(wrong))
        peer.ack = (base + 1460) & M32
        peer.send()
        await world.pause(ctx, 2)
        notice(peer, base)  # acknowledged meanwhile
        await counted(ctx, world, icmp_ignored=len(wrong) + 1)
        assert world.out == []
        notice(peer, top - 1)  # the last byte
        assert (await peer.get(ctx))["data"] == text[1460:2420]
        await counted(ctx, world, icmp_ignored=len(wrong) + 1, icmp_mss=1)
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    World(ICMP, seed=seed, tick=100).run(script)


@seeds(2)
def test_notices_of_nobody(seed):
    """No session, one that is idle, another port or host: nothing is made, sent or changed."""

    async def script(ctx, world):
        for code in (2, 3, 4):
            world.notice(5, code, 600)
        peer = Peer(world)
        await peer.open(ctx)
        notice(peer, peer.ack)  # idle: nothing is under way
        notice(peer, peer.iss)
        for more in ({"rport": 4001}, {"port": 9}, {"ip": peer.ip + 1}):
            world.notice(peer.ack, 4, 600, **more)
        await counted(ctx, world, icmp_ignored=8)
        await world.quiet(ctx, 3)
        assert (world.csr(ctx, "unknown"), world.csr(ctx, "accepted")) == (0, 1)
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)
        notice(peer, peer.ack)  # freed since
        await counted(ctx, world, icmp_ignored=9)
        assert world.csr(ctx, "sessions_used") == 0

    World(ICMP, seed=seed).run(script)


@pytest.mark.parametrize(
    "code", [2, 13, *(pytest.param(n, marks=pytest.mark.nightly) for n in (0, 1, 3, 5, 255))]
)
def test_soft_errors_change_nothing(code):
    """RFC 9293, MUST-56; RFC 5927, 5: hard ones are soft once there is a connection, and before."""

    async def script(ctx, world):
        half = Peer(world, rport=4001)
        half.syn()
        synack = await half.get(ctx)
        notice(half, synack["seq"], code=code)  # SYN-RECEIVED
        half.ack, half.iss = (synack["seq"] + 1) & M32, synack["seq"]
        await counted(ctx, world, icmp_soft=1)
        half.send()
        await world.until(ctx, lambda: world.services[0].state)
        world.services[0].send(0, b"text", close=True)
        assert (await fin_of(ctx, half))["seq"] == half.ack
        notice(half, half.ack, code=code)  # FIN-WAIT-1
        await counted(ctx, world, icmp_soft=2)
        assert world.out == []
        half.ack = (half.ack + 5) & M32
        half.send(flags=ACK | FIN)
        await world.drained(ctx)
        assert world.services[0].finished[0]["closed"] == 1

    World(ICMP, tick=100).run(script)


@pytest.mark.parametrize("code", [2, 3])
@seeds(2)
def test_an_unreachable_port_ends_an_attempt(seed, code):
    async def script(ctx, world):
        peer = await connect(ctx, world)
        syn = await syn_of(ctx, peer)
        service = world.services[1]
        await world.until(ctx, lambda: service.log)
        service.send(world.csr(ctx, "connect_session"), b"never")
        for seq in (syn["seq"] - 1, syn["seq"] + 1):  # forged
            notice(peer, seq, code=code)
        await counted(ctx, world, icmp_ignored=2)
        assert state(ctx, world) == ConnectState.OPENING
        notice(peer, syn["seq"], code=code)
        await world.until(ctx, lambda: state(ctx, world) == ConnectState.CLOSED, ticks=8)
        await counted(ctx, world, icmp_ignored=2, icmp_aborts=1)
        await world.drained(ctx)
        assert service.finished[0]["closed"] == 0
        assert [entry[:3] for entry in service.log] == [
            ("OPEN", 0, 1), ("SENT", 0, 0), ("CLOSED", 0, 0)
        ]  # fmt: skip
        assert (world.out, world.csr(ctx, "timeouts")) == ([], 0)

    World(ACTIVE, seed=seed).run(script)


@pytest.mark.parametrize("code", [0, 1, 4, 5, 13])
def test_other_errors_do_not_end_an_attempt(code):
    """Nor does one of the connection that came of it."""

    async def script(ctx, world):
        peer = await connect(ctx, world)
        syn = await syn_of(ctx, peer)
        notice(peer, syn["seq"], code=code)
        await counted(ctx, world, icmp_soft=1)
        assert state(ctx, world) == ConnectState.OPENING
        syn_ack(peer, syn)
        await peer.expect(ctx, flags=ACK, seq=peer.ack, ack=peer.seq)
        world.services[1].send(world.csr(ctx, "connect_session"), bytes(1460))
        assert (await peer.get(ctx))["length"] == 1460
        notice(peer, peer.ack, code=3)
        await counted(ctx, world, icmp_soft=2)
        assert state(ctx, world) == ConnectState.OPEN
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    World(ACTIVE).run(script)


@seeds(2)
def test_a_request_and_a_notice_at_once(seed):
    """The request is none of the notices between which it comes."""

    async def script(ctx, world):
        for _ in range(6):
            world.notice(7, 3, rport=4000, port=50_000)
        peer = await connect(ctx, world)
        for _ in range(6):
            world.notice(7, 3, rport=4000, port=50_000)
        syn = await syn_of(ctx, peer)
        await counted(ctx, world, icmp_ignored=12)
        notice(peer, syn["seq"], code=3)
        await world.drained(ctx)
        assert world.csr(ctx, "icmp_aborts") == 1

    World(ACTIVE, seed=seed).run(script)


def test_the_round_trip_of_what_is_sent_again_is_no_sample():
    """Karn; and the time-out neither begins anew nor is backed off by a notice."""

    async def script(ctx, world):
        peer, text, _ = await sending(ctx, world, 2920)
        start = world.now
        await world.pause(ctx, 8)
        notice(peer, peer.ack)
        assert (await peer.get(ctx))["length"] == 960
        again = await peer.get(ctx)  # the time-out counts from when it was first sent
        assert abs(world.now - start - world.config.rto_min) <= 2
        assert (again["seq"], again["length"]) == (peer.ack, 960)
        assert world.csr(ctx, "rto") == 1
        await take(ctx, peer, text, 960)

    World(ICMP, tick=100).run(script)


@seeds(2)
def test_a_path_with_a_small_mtu(seed):
    """A router that drops what is too large and says so, among loss: the bytes arrive."""

    async def script(ctx, world):
        rng = make_rng(seed, "path")
        text = rng.randbytes(7000)
        peer = Peer(world)
        await peer.open(ctx)
        world.services[0].send(0, text)
        got, first, mtu = b"", peer.ack, 1400
        while len(got) < len(text):
            s = await peer.get(ctx, ticks=2000)
            mtu = 900 if len(got) > 3000 else mtu
            if s["length"] + 40 > mtu:
                notice(peer, s["seq"], mtu=mtu)
                continue
            if rng.random() < 0.1 or not s["length"]:
                continue
            at = (s["seq"] - first) & M32
            if at <= len(got) < at + s["length"]:
                got += s["data"][len(got) - at :]
            peer.ack = (first + len(got)) & M32
            peer.send()
        assert got == text
        assert world.csr(ctx, "icmp_mss") == 2
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)

    World(ICMP, seed=seed).run(script, limit=200_000)


@pytest.mark.nightly
@seeds(2)
def test_a_storm_of_forged_notices(seed):
    """They change nothing of a session in use, and it goes on between them."""

    async def script(ctx, world):
        rng = make_rng(seed, "storm")
        peer = Peer(world)
        await peer.open(ctx)
        text, got = rng.randbytes(3000), b""
        for at in range(0, len(text), 300):
            for _ in range(8):
                world.notice(rng.getrandbits(32), rng.randrange(6), rng.getrandbits(16))
            peer.send(text[at : at + 300])
            while len(got) < at + 300:
                s = await peer.get(ctx)
                got += s["data"] if s["seq"] == peer.ack else b""
                peer.ack = (peer.ack + s["length"]) & M32
            peer.send()
        assert got == text
        peer.send(flags=ACK | FIN)
        s = await fin_of(ctx, peer)
        peer.ack = (s["seq"] + 1) & M32
        peer.send()
        await world.drained(ctx)
        assert world.services[0].finished[0]["closed"] == 1
        seen = counts(ctx, world)
        assert (seen["icmp_aborts"], sum(seen.values())) == (0, 80)
        assert seen["icmp_ignored"] >= 78

    World(ICMP, seed=seed, services=[Service(echo=True), Service(), Service()]).run(script)


def test_without_icmp_there_are_no_registers():
    for config in (SMALL, ICMP):
        names = {r.name for r in tcp_block(config).registers}
        assert (set(ICMP_COUNTERS) <= names) == config.icmp
        assert config.icmp or not set(ICMP_COUNTERS) & names
