"""Faults that other TCP engines had: sending, windows, timers (docs/tcp-tests.md, A1 to A6).

What is tested elsewhere has no twin here: the table in docs/tcp-tests.md names a test for each.
"""

from dataclasses import replace

import pytest
from streams import seeds
from tcp_bench import ACK, FIN, M32, SMALL, Peer, World
from test_tcp_flow import noise, opened, until_data

pytestmark = pytest.mark.slow

# --- A1: retransmission reads the session's own memory -------------------------------------------


@seeds(1)
def test_a01_retransmission_across_the_buffer_end_of_session_3(seed):
    """Two descriptors of session 3 lie far apart; a retransmission goes from one into the other."""

    async def script(ctx, world):
        for k in range(3):
            await opened(ctx, world, rport=100 + k)
        peer = Peer(world, rport=103, mss=536)
        await peer.open(ctx)
        for k in range(3):
            world.services[0].send(k, noise(50, k))
        text, service = noise(1400, 9), world.services[0]
        service.send(3, text[:700])
        world.heap += 3000
        service.send(3, text[700:])
        await world.until(ctx, lambda: world.csr(ctx, "rto") >= 4)  # everything was lost
        world.out.clear()
        got = b""
        while len(got) < len(text):
            s = await world.get(ctx)
            if s["remote_port"] != 103 or s["seq"] != peer.ack & M32:
                continue
            got += s["data"]
            peer.ack += s["length"]
            peer.send()
        assert got == text

    World(replace(SMALL, user_timeout=9000), seed=seed).run(script)


# --- A3: sequence comparisons --------------------------------------------------------------------


def test_a03_segment_beyond_the_wrap_is_ahead():
    """RCV.NXT = 0xFFFFFF00, a segment at 0x100: ahead, kept, and joined when the gap is filled."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, isn=0xFFFFFEFF)
        peer.raw(0x100, data=b"ahead")
        await peer.expect(ctx, ack=0xFFFFFF00)
        assert world.csr(ctx, "kept") == 1
        peer.raw(0xFFFFFF00, data=noise(0x200))
        await peer.expect(ctx, ack=0x105)
        await world.until(ctx, lambda: service.state[0]["data"] == noise(0x200) + b"ahead")

    World().run(script)


def test_a03_stale_segment_before_the_wrap_is_old():
    """RCV.NXT = 0x100, nothing is stored: 256 bytes at 0xFFFFFE00 are no future."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, isn=0xFF)
        peer.raw(0xFFFFFE00, data=bytes(256))
        await peer.expect(ctx, ack=0x100)
        assert (world.csr(ctx, "kept"), world.csr(ctx, "dup")) == (0, 1)
        peer.send(b"fresh")
        await peer.expect(ctx)
        await world.until(ctx, lambda: service.state[0]["data"] == b"fresh")

    World().run(script)


def test_a03_segment_a_power_of_two_beyond_the_window_is_outside():
    """RCV.NXT + 2**k + 10 does not pass for RCV.NXT + 10, for any k."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        for k in range(12, 32):
            peer.raw(peer.seq + (1 << k) + 10, data=b"far away")
        await world.pause(ctx, 40)
        assert world.csr(ctx, "kept") == 0
        world.out.clear()
        peer.send(noise(40))
        await peer.expect(ctx)
        await world.until(ctx, lambda: service.state[0]["data"] == noise(40))

    World(tick=60).run(script)


# --- A4: the retransmission timer ----------------------------------------------------------------


def test_a04_lost_fast_retransmission_is_followed_by_a_time_out():
    """Duplicates faster than the RTO; the fast retransmission is lost; the timer still fires."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=536)
        text = noise(536 * 4)
        service.send(0, text)
        for _ in range(4):
            await until_data(ctx, peer)
        world.timers.append(lambda now: peer.send())
        await world.until(ctx, lambda: world.csr(ctx, "fast_retransmits") == 1, ticks=10)
        await world.until(ctx, lambda: world.csr(ctx, "rto") == 1, ticks=40)
        world.timers.clear()
        peer.ack += len(text)
        peer.send()
        await world.until(ctx, lambda: not service.state[0]["tags"])

    World().run(script)


def test_a04_timer_stops_only_when_all_is_acknowledged():
    """After an ACK of a part the rest is sent again by time-out; after one of all, nothing."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=536)
        service.send(0, noise(536 * 2))
        await until_data(ctx, peer)
        await until_data(ctx, peer)
        peer.ack += 536
        peer.send()
        s = await until_data(ctx, peer)
        assert (s["seq"], s["data"]) == (peer.ack & M32, noise(536 * 2)[536:])
        assert world.csr(ctx, "rto") == 1
        peer.ack += 536
        peer.send()
        await world.pause(ctx, 3)
        world.out.clear()
        await world.quiet(ctx, 60)

    World().run(script)


# --- A6: windows ---------------------------------------------------------------------------------


def test_a06_no_packet_is_skipped_after_a_closed_window():
    """eth_vlg #4: the window closes behind every segment and opens again."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=500, window=1000)
        text, got = noise(4000), b""
        service.send(0, text)
        while len(got) < len(text):
            s = await until_data(ctx, peer)
            if s["seq"] != peer.ack & M32:
                continue  # sent before the window was closed, and sent again
            got += s["data"]
            peer.ack += s["length"]
            peer.send(window=0)
            await world.pause(ctx, 2)
            world.out.clear()
            peer.send(window=1000)
        assert got == text

    World().run(script)


@seeds(1)
def test_a06_probe_while_data_are_unacknowledged_is_the_first_of_them(seed):
    """lwIP #34426: the window closes on data in flight, and all of them were lost."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=536)
        text = noise(1000)
        service.send(0, text)
        await until_data(ctx, peer)
        peer.window = 0
        peer.send()
        await world.pause(ctx, 3)
        world.out.clear()
        for _ in range(2):
            s = await until_data(ctx, peer)
            assert (s["seq"], s["data"]) == (peer.ack & M32, text[:1])
        peer.window = 65535
        peer.send()
        got = b""
        while len(got) < len(text):
            s = await until_data(ctx, peer)
            if s["seq"] == peer.ack & M32:
                got += s["data"]
                peer.ack += s["length"]
                peer.send()
        assert got == text

    World(seed=seed).run(script)


def test_a06_segment_size_larger_than_the_window():
    """lwIP #25882: the MSS is 1,460, the window never more than 100; data flow without probes."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, window=100)
        text = noise(1000)
        service.send(0, text)
        got = b""
        while len(got) < len(text):
            s = await until_data(ctx, peer)
            assert s["length"] <= 100
            assert s["seq"] == peer.ack & M32
            got += s["data"]
            peer.ack += s["length"]
            peer.send()
        assert got == text
        assert world.csr(ctx, "zero_window_probes") == world.csr(ctx, "rto") == 0

    World().run(script)


def test_a06_no_loop_of_retransmissions_at_a_closed_window():
    """smoltcp #538: probes back off; with every answer "still closed" none comes at once."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, window=0)
        service.send(0, noise(500))
        times = []
        while len(times) < 4:
            s = await until_data(ctx, peer)
            assert s["length"] == 1
            times.append(world.now)
            peer.send()
        gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
        assert all(b >= a for a, b in zip(gaps, gaps[1:], strict=False))
        assert gaps[0] >= world.config.rto_min
        assert gaps[-1] >= 2 * gaps[0]

    World(tick=12).run(script)


# --- A2, A15: what is kept from beyond a gap -----------------------------------------------------


@seeds(2)
def test_a02_each_payload_has_one_verdict(seed):
    """SYN, RST and a filler over what is kept, each with data: the next payload is not mistaken."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        text = noise(300)
        start = peer.seq
        peer.raw(start + 100, data=text[100:200])  # kept
        await peer.expect(ctx, ack=start)
        peer.raw(start + 5, flags=2, data=b"SYN with data", ack=0)
        await peer.expect(ctx, ack=start)
        peer.raw(start + 7, flags=4, data=b"RST with data")
        await peer.expect(ctx, ack=start)
        peer.raw(start, data=text[:150])  # reaches into what is kept
        await peer.expect(ctx, ack=start + 200)
        peer.raw(start + 180, data=text[180:300])
        peer.seq = start + 300
        await peer.expect(ctx)
        await world.until(ctx, lambda: service.state[0]["data"] == text)
        peer.raw(peer.seq, flags=4, data=b"the end")
        await world.drained(ctx)

    World(seed=seed).run(script)


def test_a15_full_reassembly_store_takes_what_comes_next():
    """smoltcp #735: one run is kept, a second one is refused, the segment at RCV.NXT is taken."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        text, start = noise(600), peer.seq
        peer.raw(start + 200, data=text[200:300])
        await peer.expect(ctx, ack=start)
        peer.raw(start + 400, data=text[400:500])
        await peer.expect(ctx, ack=start)
        assert (world.csr(ctx, "kept"), world.csr(ctx, "out_of_order")) == (1, 1)
        peer.raw(start, data=text[:100])
        await peer.expect(ctx, ack=start + 100)
        peer.raw(start + 100, data=text[100:200])
        await peer.expect(ctx, ack=start + 300)
        peer.raw(start + 300, data=text[300:])
        await peer.expect(ctx, ack=start + 600)
        await world.until(ctx, lambda: service.state[0]["data"] == text)

    World().run(script)


# --- rules from CVEs -----------------------------------------------------------------------------


def test_cve_2019_11477_segments_in_flight_do_not_overflow_a_counter():
    """The smallest MSS, hundreds of segments that the sender still has to read: it waits, then goes
    on. A counter that wrapped would answer descriptors whose memory is still being read."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=64)
        read, world._read = world._read, lambda ctx: None
        text = noise(64 * 40)
        for at in range(0, len(text), 640):
            service.send(0, text[at : at + 640])
        for _ in range(4):  # time-outs send all of it again and again
            await world.pause(ctx, 12)
            peer.send()
        held = len(world.reading)
        await world.pause(ctx, 30)
        assert len(world.reading) <= held + 4
        assert len(service.state[0]["tags"]) == 4, "answered though nothing was read"
        world._read = read
        got = b""
        while len(got) < len(text):
            s = await until_data(ctx, peer)
            if s["seq"] == peer.ack & M32:
                got += s["data"]
                peer.ack += s["length"]
                peer.send()
        assert got == text
        await world.until(ctx, lambda: not service.state[0]["tags"])

    World(replace(SMALL, user_timeout=9000, retries=15)).run(script)


def test_cve_2019_11478_work_per_segment_does_not_grow_with_holes():
    """Segments with holes between them: the last takes as long as the first."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        took = []
        for k in range(12):
            start = world.cycle
            peer.raw(peer.seq + 100 + 200 * k, data=bytes(50))
            await peer.get(ctx)
            took.append(world.cycle - start)
        assert max(took[1:]) <= min(took[1:]) + 8
        assert world.csr(ctx, "kept") == 1

    World().run(script)


def test_cve_2016_5696_challenge_acks_are_limited_per_session():
    """One session's challenges tell nothing of another's."""

    async def script(ctx, world):
        first, _ = await opened(ctx, world, rport=1)
        second, _ = await opened(ctx, world, rport=2)
        for _ in range(6):
            first.raw(first.seq + 9, flags=4)
        await world.pause(ctx, 5)
        assert len(world.out) == 3
        world.out.clear()
        second.raw(second.seq + 9, flags=4)
        await second.expect(ctx)

    World(tick=60).run(script)


def test_a13_ack_inside_a_segment_that_carries_the_fin():
    """mbed-os #4140, at the end: the rest of the last segment and its FIN, byte-exact."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        text = noise(1000)
        service.send(0, text, close=True)
        await until_data(ctx, peer)
        peer.ack += 987
        peer.send()
        s = await until_data(ctx, peer)
        assert (s["seq"], s["data"], s["flags"] & FIN) == (peer.ack & M32, text[987:], FIN)
        peer.ack += 14
        peer.send(flags=ACK | FIN)
        await world.drained(ctx)

    World().run(script)
