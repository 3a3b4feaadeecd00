"""Faults that other TCP engines had: closing, options, slots (docs/tcp-tests.md, A8 to A16).

Beside :mod:`test_tcp_regressions`.
"""

from dataclasses import replace

import pytest
from net_frames import tcp_frame
from streams import seeds
from tcp_bench import ACK, FIN, M32, RST, SMALL, SYN, Peer, Service, World
from test_tcp_close import fin_of, kinds, opened
from test_tcp_parser import check
from trebuchet.models.net import parse_segment

pytestmark = pytest.mark.slow

# --- A8: closing ---------------------------------------------------------------------------------


@seeds(1)
def test_a08_half_closed_session_goes_on_sending(seed):
    """The peer's FIN leads to CLOSE-WAIT: much more than a window goes out before our FIN."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        peer.window = 700
        peer.send(b"ask", flags=ACK | FIN)
        await world.until(ctx, lambda: "EOF" in kinds(service))
        text = bytes(k * 5 & 0xFF for k in range(3000))
        service.send(0, text[:1500])
        service.send(0, text[1500:], close=True)
        got, over = b"", False
        while not over:
            s = await peer.get(ctx)
            if s["length"] and s["seq"] == peer.ack & M32:
                got += s["data"]
                over = bool(s["flags"] & FIN)
                peer.ack += s["length"] + over
                peer.send()
            over |= bool(s["flags"] & FIN) and s["seq"] == peer.ack & M32
        assert got == text
        peer.ack = (peer.iss + 1 + len(text) + 1) & M32
        peer.send()
        await world.drained(ctx)

    World(seed=seed).run(script)


def test_a08_acknowledgement_of_a_fin_is_checked():
    """A FIN whose ACK is of unsent data is not taken; its text is not either."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        for flags in (ACK | FIN, FIN):  # without ACK nothing of a segment is looked at
            peer.raw(peer.seq, ack=peer.ack + 9, flags=flags, data=b"no")
        await world.pause(ctx, 10)
        assert kinds(service) == ["OPEN"]
        assert all(s["ack"] == peer.seq for s in world.out)
        world.out.clear()
        peer.send(b"yes", flags=ACK | FIN)
        await world.until(ctx, lambda: "EOF" in kinds(service))
        assert service.state[0]["data"] == b"yes"

    World().run(script)


def test_a08_ack_in_time_wait_draws_nothing():
    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.send(0, b"", close=True)
        s = await fin_of(ctx, peer)
        peer.ack = (s["seq"] + 1) & M32
        peer.send(flags=ACK | FIN)
        await peer.expect(ctx)
        for _ in range(3):
            peer.send()
        await world.quiet(ctx, 10)
        assert world.csr(ctx, "sessions_used") == 1
        await world.drained(ctx)
        assert world.csr(ctx, "rst_tx") == 0

    World().run(script)


def test_a08_one_close_leaves_every_port_alive():
    """Limago #7: each port is opened and closed in turn, twice."""

    async def script(ctx, world):
        for round_ in range(2):
            for port in world.config.ports:
                peer, service = await opened(ctx, world, rport=3000 + round_, port=port)
                peer.send(flags=ACK | FIN)
                await world.until(ctx, lambda service=service: kinds(service)[-1] == "EOF")
                service.send(next(iter(service.state)), b"", close=True)
                s = await fin_of(ctx, peer)
                peer.ack = (s["seq"] + 1) & M32
                peer.send()
                await world.drained(ctx)
                world.out.clear()
        assert world.csr(ctx, "established") == 6

    World(replace(SMALL, sessions=2), services=[Service(), Service(), Service()]).run(script)


@seeds(1)
def test_a08_data_and_fin_acknowledged_together(seed):
    """lwIP #38468."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        peer.send(flags=ACK | FIN)
        await world.until(ctx, lambda: "EOF" in kinds(service))
        service.send(0, b"one")
        service.send(0, b"two", close=True)
        s = await fin_of(ctx, peer)
        peer.ack = (s["seq"] + len(s["data"]) + 1) & M32
        peer.send()
        await world.drained(ctx)
        assert [e[2] for e in service.log if e[0] in ("SENT", "CLOSED")] == [1, 1, 1]

    World(seed=seed).run(script)


def test_a08_data_kept_behind_a_fin_are_nothing():
    """lwIP #28288: what was kept lies behind the FIN that fills the gap; #51937: no block stays."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        start = peer.seq
        peer.raw(start + 11, data=b"behind the end")
        await peer.expect(ctx, ack=start)
        assert world.csr(ctx, "kept") == 1
        peer.send(b"the end is", flags=ACK | FIN)
        await world.until(ctx, lambda: "EOF" in kinds(service))
        assert service.state[0]["data"] == b"the end is"
        service.send(0, b"", close=True)
        s = await fin_of(ctx, peer)
        assert s["ack"] == start + 11
        peer.ack = (s["seq"] + 1) & M32
        peer.send()
        await world.drained(ctx)

    World().run(script)


def test_a08_kept_data_of_a_reset_session_are_given_back():
    """lwIP #51937."""

    async def script(ctx, world):
        for k in range(3):
            peer, service = await opened(ctx, world, rport=100 + k)
            peer.raw(peer.seq + 500, data=bytes(300))
            await peer.expect(ctx)
            peer.raw(peer.seq, flags=RST)
            await world.drained(ctx)
        assert world.csr(ctx, "kept") == 3

    World(replace(SMALL, segments=1)).run(script)


# --- A9: options ---------------------------------------------------------------------------------

_SCALES = [bytes([3, 3, scale]) for scale in (0, 7, 14, 15, 255)]


@pytest.mark.parametrize("scale", _SCALES, ids=[str(s[2]) for s in _SCALES])
def test_a09_window_scale_changes_nothing(scale):
    """ETH #42, Limago, lwIP #49717: no scaling is offered, so the window of a SYN and of what
    follows is what it says, whatever scale the peer names; the MSS behind the option is found."""
    syn = tcp_frame(flags=SYN, window=0x1234, tcp_options=scale + b"\x01\x02\x04\x05\x00")
    ack = tcp_frame(b"data", window=0x4321, tcp_options=scale)
    assert [parse_segment(f).window for f in (syn, ack)] == [0x1234, 0x4321]
    assert parse_segment(syn).mss == 0x500
    check([(syn, False), (ack, False)], 0)


# --- A10: slots ----------------------------------------------------------------------------------


def test_a10_timer_of_the_old_owner_does_not_hit_the_new_one():
    """A slot is freed with a deadline still on the wheel and given to another peer at once."""

    async def script(ctx, world):
        service = world.services[0]
        for k in range(4):
            peer = Peer(world, rport=100 + k)
            await peer.open(ctx)
            session = next(iter(service.state))
            service.send(session, b"unanswered")  # a retransmission is due in 12 ticks
            await peer.get(ctx)
            peer.raw(peer.seq, flags=RST)
            await world.until(ctx, lambda: not service.state)
            await world.until(ctx, lambda: world.csr(ctx, "idle"))
        world.out.clear()
        owners = [Peer(world, rport=200 + k) for k in range(2)]
        for owner in owners:
            await owner.open(ctx)
        await world.quiet(ctx, 60)
        assert world.csr(ctx, "sessions_used") == 2
        assert world.csr(ctx, "timeouts") == world.csr(ctx, "rto") == 0

    World(replace(SMALL, sessions=2)).run(script)


def test_a10_same_ports_of_another_host_are_another_session():
    """The key is the whole of remote address, remote port and local port."""

    async def script(ctx, world):
        peers = [
            Peer(world, ip=0x0A000001 + (k << s)) for k, s in ((0, 0), (1, 0), (1, 8), (1, 24))
        ]
        peers += [Peer(world, port=80), Peer(world, rport=4001)]
        for peer in peers:
            await peer.open(ctx)
        assert world.csr(ctx, "sessions_used") == 6
        for k, peer in enumerate(peers):
            peer.send(bytes([k]) * 20)
            await peer.expect(ctx)
        await world.pause(ctx, 5)
        data = [s["data"] for service in world.services for s in service.state.values()]
        assert sorted(data) == [bytes([k]) * 20 for k in range(6)]

    World(services=[Service(), Service(), Service()]).run(script)


# --- A11: initial sequence numbers ---------------------------------------------------------------


def synack_of(**more):
    """The SYN-ACK that a fresh engine answers a SYN with."""
    found = []

    async def script(ctx, world):
        peer = Peer(world)
        peer.syn()
        found.append(await peer.get(ctx))

    World(replace(SMALL, **more)).run(script)
    return found[0]


def test_a11_a_board_that_was_reset_begins_elsewhere():
    """Firmware writes a new key at each start: the old connection's numbers are far off, and what
    its peer still sends draws RST."""
    before, after = synack_of(), synack_of(isn_key=0x1234)
    assert (1 << 20) < (after["seq"] - before["seq"]) & M32 < M32 - (1 << 20)

    async def script(ctx, world):
        peer = Peer(world)
        peer.raw(5000, ack=before["seq"] + 100, data=b"of the life before")
        s = await peer.get(ctx)
        assert (s["flags"], s["seq"]) == (RST, (before["seq"] + 100) & M32)
        await peer.open(ctx)

    World(replace(SMALL, isn_key=0x1234)).run(script)


@pytest.mark.parametrize(("isn", "theirs"), [(0xFFFFFFFE, 0xFFFFFFFF), (0, 0)])
def test_a11_isn_at_the_wrap(isn, theirs):
    """smoltcp #538: our ISN is the last (they are even), the peer's 2**32 - 1; and just behind."""
    start = (isn - synack_of()["seq"]) & M32

    async def script(ctx, world):
        peer = Peer(world, isn=theirs)
        s = await peer.open(ctx)
        assert s["seq"] == isn
        peer.send(b"ping")
        got = b""
        while len(got) < 4:
            got += (await peer.get(ctx))["data"]
        assert got == b"ping"
        peer.ack = (peer.ack + 4) & M32
        peer.send(flags=ACK | FIN)
        s = await fin_of(ctx, peer)
        peer.ack = (s["seq"] + 1) & M32
        peer.send()
        await world.drained(ctx)

    World(replace(SMALL, isn_start=start), services=[Service(echo=True), Service(), Service()]).run(
        script
    )
