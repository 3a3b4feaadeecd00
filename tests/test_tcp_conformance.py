"""What RFC 9293 and RFC 5961 demand, seen from outside, segment by segment.

docs/tcp-tests.md has the whole list of MUSTs with a test for each, or why there is none. Here are
those that no other file tests; a name says which.
"""

from dataclasses import replace

import pytest
from streams import seeds
from tcp_bench import ACK, FIN, M32, RST, SMALL, SYN, Peer, Service, World
from test_tcp_close import fin_of, kinds, opened
from test_tcp_flow import noise, until_data

pytestmark = pytest.mark.slow

URG = 32


def test_must_1_window_is_unsigned():
    """A window with its highest bit set is a large one."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        for window in (0x8000, 0xFFFF):
            peer.send(window=window)
            service.send(0, noise(3000))
            got = 0
            while got < 3000:
                s = await until_data(ctx, peer)
                got += s["length"]
            peer.ack += 3000
            peer.send(window=window)
        await world.until(ctx, lambda: not service.state[0]["tags"])
        assert world.csr(ctx, "zero_window_probes") == 0

    World().run(script)


def test_must_8_isn_is_driven_by_a_clock():
    """The same addresses later: the number has moved on, by the cycles that have passed."""

    async def script(ctx, world):
        seen = []
        for _ in range(2):
            peer = Peer(world)
            start = world.cycle
            peer.syn()
            seen.append(((await peer.get(ctx))["seq"], start))
            peer.raw(peer.seq, flags=RST)
            await world.drained(ctx)
            await world.pause(ctx, 100)
        (first, then), (second, now) = seen
        assert abs(((second - first) & M32) - (now - then) / 256) <= 2

    World().run(script)


@seeds(1)
def test_must_11_syn_received_remembers_that_it_was_listening(seed):
    """A reset of a half-open session that came from LISTEN is told to nobody; the port listens."""

    async def script(ctx, world):
        peer = Peer(world)
        peer.syn()
        await peer.get(ctx)
        peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)
        assert (world.services[0].log, world.out) == ([], [])
        await peer.open(ctx)

    World(seed=seed).run(script)


def test_must_13_time_wait_lasts_as_long_as_it_is_set():
    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.send(0, b"", close=True)
        s = await fin_of(ctx, peer)
        peer.ack = (s["seq"] + 1) & M32
        peer.send(flags=ACK | FIN)
        await peer.expect(ctx)
        start = world.now
        await world.until(ctx, lambda: not world.csr(ctx, "sessions_used"))
        assert abs(world.now - start - 70) <= 2

    World(replace(SMALL, time_wait=70)).run(script)


def test_must_17_small_segments_do_not_wait_for_acknowledgements():
    """There is no Nagle algorithm to be switched off."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        for k in range(4):
            service.send(0, bytes([k]) * 10)
        for k in range(4):
            assert (await until_data(ctx, peer))["data"] == bytes([k]) * 10
        assert world.csr(ctx, "retransmits") == 0

    World().run(script)


def test_must_18_a_segment_sent_twice_is_no_sample():
    """Karn: the answer comes 60 ticks after the first of two copies; the time-out stays short."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)

        async def time_out():
            service.send(0, noise(100))
            times = []
            for _ in range(2):
                await until_data(ctx, peer)
                times.append(world.now)
            return times[1] - times[0]

        first = await time_out()
        await world.pause(ctx, 60)
        peer.ack += 100
        peer.send()
        await world.until(ctx, lambda: not service.state[0]["tags"])
        world.out.clear()
        assert await time_out() <= first + 1

    World(replace(SMALL, retries=9)).run(script)


def test_must_26_keep_alive_only_when_idle():
    """No probe while segments come or while data are unacknowledged."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        for _ in range(5):
            await world.pause(ctx, 25)
            peer.send(b"x")
            await peer.expect(ctx)
        service.send(0, b"outstanding")
        await world.pause(ctx, 60)
        assert world.csr(ctx, "keepalive_probes") == 0
        assert all(s["length"] for s in world.out)

    World(replace(SMALL, keepalive_idle=40)).run(script)


def test_must_30_urgent_data_are_delivered_in_line():
    """No urgent mode: the pointer is ignored, no byte is lost or doubled, nobody is reset."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        peer.send(b"before ")
        peer.send(b"urgent ", flags=ACK | URG)
        peer.send(b"after")
        await world.until(ctx, lambda: service.state[0]["data"] == b"before urgent after")
        assert world.csr(ctx, "sessions_used") == 1

    World().run(script)


def test_must_37_a_window_may_stay_closed():
    """Many more probes than retransmissions are allowed, each answered: the session stays."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        peer.window = 0
        peer.send()
        await world.pause(ctx, 3)
        service.send(0, b"waiting")
        for _ in range(5):
            s = await until_data(ctx, peer)
            assert s["data"] == b"w"
            peer.send()
        assert world.csr(ctx, "timeouts") == 0
        peer.window = 100
        peer.send()
        while (s := await until_data(ctx, peer))["data"] != b"waiting":
            pass

    World(replace(SMALL, retries=2, rto_max=24)).run(script)


def test_must_38_no_small_segment_into_a_window_that_opens_a_little():
    """Sender's silly window: with data on the way, a rest of the window is left unused."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        peer.window = 1460
        peer.send()
        await world.pause(ctx, 3)
        service.send(0, noise(1460 * 3))
        s = await until_data(ctx, peer)
        assert s["length"] == 1460
        peer.ack += 100
        peer.send(window=1460)  # 100 more bytes may be sent
        await world.quiet(ctx, 5)
        peer.ack += 1360
        peer.send(window=1460)
        s = await until_data(ctx, peer)
        assert (s["seq"], s["length"]) == (peer.ack & M32, 1460)

    World(replace(SMALL, rto_min=30)).run(script)


def test_must_40_acknowledgements_are_not_delayed():
    async def script(ctx, world):
        peer, _ = await opened(ctx, world)
        for k in range(3):
            start = world.now
            peer.send(noise(200 + k))
            await peer.expect(ctx)
            assert world.now - start <= 8  # ticks of 20 cycles

    World().run(script)


def test_must_58_acknowledgements_are_aggregated():
    """What has come while the line was busy is acknowledged once."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        read, world._read = world._read, lambda ctx: None  # the sender is stuck
        other, _ = await opened_more(ctx, world)
        for _ in range(12):
            peer.send(noise(100))
        await world.until(ctx, lambda: len(service.state[0]["data"]) == 1200)
        world._read = read
        await world.pause(ctx, 10)
        acks = [s for s in world.out if s["remote_port"] == peer.rport]
        assert acks[-1]["ack"] == peer.seq
        assert len(acks) <= 6

    async def opened_more(ctx, world):
        # RSTs to nobody fill what the sender takes ahead.
        stranger = Peer(world, rport=9)
        for _ in range(6):
            stranger.raw(1, ack=5)
        await world.until(ctx, lambda: len(world.reading) >= 5)
        return stranger, None

    World().run(script)


@seeds(1)
def test_must_65_mss_option_only_on_syns(seed):
    async def script(ctx, world):
        peer = Peer(world)
        synack = await peer.open(ctx)
        assert synack["mss"] == 1460
        peer.send(b"some text")
        seen = []
        while len(seen) < 2:
            seen.append(await peer.get(ctx))
        peer.ack = (peer.ack + 9) & M32
        peer.send(flags=ACK | FIN)
        seen.append(await fin_of(ctx, peer))
        assert all(s["mss"] == 0 for s in seen)

    World(seed=seed, services=[Service(echo=True), Service(), Service()]).run(script)


@pytest.mark.parametrize("flags", [RST, ACK | RST])
def test_must_66_reset_and_ack_are_processed_with_a_closed_window(flags):
    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.auto_free = False
        for size in (1460, 1460, 4096 - 2920):
            peer.send(noise(size))
            s = await peer.expect(ctx)
        assert s["window"] == 0
        service.send(0, b"our data")
        await until_data(ctx, peer)
        peer.ack += 8
        peer.send(b"y" * 10)  # no room for the text, but the ACK counts
        peer.seq -= 10
        await world.until(ctx, lambda: "SENT" in kinds(service))
        await world.until(ctx, lambda: service.state[0]["read"] == 4096)
        assert len(service.state[0]["data"]) == 4096
        peer.raw(peer.seq, flags=flags)
        await world.drained(ctx)
        assert service.finished[0]["closed"] == 0

    World().run(script)


# --- RFC 5961 ------------------------------------------------------------------------------------


def test_rfc5961_4_a_syn_anywhere_draws_a_challenge():
    """In every synchronised state, whatever its sequence number: an ACK, and nothing changes."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        for offset in (0, 10, 1 << 30):
            peer.raw(peer.seq + offset, flags=SYN, ack=0, mss=1460)
            await peer.expect(ctx, seq=peer.ack)
        await world.pause(ctx, 130)  # no more than three in 128 ticks
        peer.raw(peer.seq, flags=SYN | ACK)
        await peer.expect(ctx, seq=peer.ack)
        peer.send(b"still here")
        await peer.expect(ctx)
        await world.until(ctx, lambda: service.state[0]["data"] == b"still here")

    World().run(script)


@pytest.mark.parametrize("behind", [65536, (1 << 31) - 1])
def test_rfc5961_5_an_acknowledgement_of_long_ago_is_refused(behind):
    """Below SND.UNA - MAX.SND.WND: the segment is dropped, its data too, and an ACK is sent."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        peer.raw(peer.seq, ack=peer.ack - behind - 1, data=b"injected")
        await peer.expect(ctx)
        await world.pause(ctx, 3)
        assert service.state[0]["data"] == b""
        peer.raw(peer.seq, ack=peer.ack - 1, data=b"true")
        await peer.expect(ctx, ack=peer.seq + 4)

    World().run(script)
