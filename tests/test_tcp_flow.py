"""TcpEngine: windows, retransmission, congestion control, the receive pool."""

from dataclasses import replace

from streams import seeds
from tcp_bench import ACK, FIN, M32, RST, SMALL, Peer, World


async def opened(ctx, world, **more):
    window = more.pop("window", 65535)
    peer = Peer(world, **more)
    peer.window = window
    await peer.open(ctx)
    return peer, world.services[world.config.ports.index(peer.port)]


async def until_data(ctx, peer):
    while not (s := await peer.get(ctx))["length"]:
        pass
    return s


def noise(count, seed=1):
    return bytes((k * 7 + seed + (k >> 8)) & 0xFF for k in range(count))


@seeds(1)
def test_receive_window_closes_and_opens(seed):
    """A.6: nothing is taken beyond the edge, the edge never goes back, and freeing announces it."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.auto_free = False
        text = noise(4096 + 1000)
        edge = 0
        start = peer.seq
        for at in range(0, 5000, 1000):
            peer.raw(start + at, data=text[at : at + 1000])
            s = await peer.get(ctx)
            now = ((s["ack"] - start) & M32) + s["window"]
            assert now >= edge
            edge = now
        assert (s["ack"] - start, s["window"]) == (4096, 0)
        await world.until(ctx, lambda: service.state[0]["read"] == 4096)
        service.consume(0, 100)  # too little to announce
        await world.quiet(ctx, 4)
        service.consume(0, 4096)
        s = await peer.get(ctx)
        assert s["window"] == 4096
        assert world.csr(ctx, "segments_free") == 8
        peer.raw(start + 4096, data=text[4096:])
        await peer.get(ctx)
        await world.until(ctx, lambda: service.state[0]["data"] == text[:5096])

    World(seed=seed).run(script)


@seeds(1)
def test_ring_wraps_at_odd_offsets(seed):
    """A.1, A.12: payloads of odd sizes go round the ring of a session other than 0."""

    async def script(ctx, world):
        blocker, _ = await opened(ctx, world, rport=1)
        blocker.send(b"x")
        await blocker.expect(ctx)
        world.services[0].auto_free = True
        peer = Peer(world, rport=2, port=80)
        await peer.open(ctx)
        service, text = world.services[2], b""
        for k in range(8):
            piece = noise(1101 + 37 * k % 300, k)
            peer.send(piece)
            text += piece
            await peer.expect(ctx)
        await world.until(ctx, lambda: service.state[1]["data"] == text)
        assert len(text) > 2 * 4096

    World(seed=seed).run(script)


def test_ack_only_after_the_write():
    """A.12: while the memory holds the write back there is neither ACK nor event."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        world.responder.write_latency = (900, 900)
        start = world.cycle
        peer.send(noise(100))
        await peer.expect(ctx)
        assert world.cycle - start >= 900
        await world.until(ctx, lambda: service.state[0]["data"])
        assert service.state[0]["data"] == noise(100)

    World(replace(SMALL, rto_min=100)).run(script)


@seeds(1)
def test_pool_dry(seed):
    """A session without a segment is dropped without ACK; it gets on when one is given back."""

    async def script(ctx, world):
        service = world.services[0]
        service.auto_free = False
        peers = []
        for k in range(2):
            peers.append((await opened(ctx, world, rport=100 + k))[0])
        peers[0].send(b"takes the only segment")
        await peers[0].expect(ctx)
        peers[1].raw(peers[1].seq, data=b"no room")
        await world.quiet(ctx, 4)
        assert world.csr(ctx, "pool_dry") == 1
        await world.until(ctx, lambda: service.state[0]["read"])
        service.consume(0)
        await world.until(ctx, lambda: world.csr(ctx, "segments_free") == 1)
        peers[1].send(b"no room")
        await peers[1].expect(ctx)

    World(replace(SMALL, segments=1), seed=seed).run(script)


@seeds(2)
def test_segmentation_and_flow(seed):
    """A.6: MSS and window larger and smaller than each other; unaligned, split descriptors."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=600, window=1000)
        text = noise(2500)
        service.send(0, text[:1999])
        service.send(0, text[1999:])
        got = b""
        while len(got) < len(text):
            s = await until_data(ctx, peer)
            assert s["length"] <= 600
            assert (s["seq"] + s["length"] - peer.ack) & M32 <= 1000
            if s["seq"] == peer.ack:
                got += s["data"]
                peer.ack = (peer.ack + s["length"]) & M32
                peer.send()
        assert got == text
        await world.until(ctx, lambda: not service.state[0]["tags"])
        assert world.csr(ctx, "descriptors_free") == 32

    World(seed=seed).run(script)


@seeds(2)
def test_zero_window_probes(seed):
    """A.6: the probe carries the right byte; a lost update does no harm; FIN at window zero."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, window=0)
        service.send(0, b"ABC", close=True)
        for _ in range(2):
            s = await until_data(ctx, peer)
            assert (s["seq"], s["data"]) == (peer.ack, b"A")
            peer.send()  # the peer does not take it, and says window 0
        s = await until_data(ctx, peer)
        peer.ack = (peer.ack + 1) & M32  # now it takes the byte
        peer.send()
        s = await until_data(ctx, peer)
        assert (s["seq"], s["data"]) == (peer.ack, b"B")
        peer.window = 2
        peer.send()  # opens: the rest goes at once, but the FIN needs window too
        s = await until_data(ctx, peer)
        assert (s["seq"], s["data"], s["flags"] & FIN) == (peer.ack, b"BC", 0)
        peer.ack, peer.window = (peer.ack + 2) & M32, 0
        peer.send()
        while not (s := await peer.get(ctx))["flags"] & FIN:
            pass
        assert (s["seq"], s["data"]) == (peer.ack, b"")
        assert world.csr(ctx, "zero_window_probes") >= 4
        assert world.csr(ctx, "timeouts") == 0

    World(seed=seed).run(script)


def test_window_shrinks_below_what_was_sent():
    """A.6: no underflow, nothing beyond the new edge, and it goes on when it opens again."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=500, window=2000)
        text = noise(3000)
        service.send(0, text)
        for _ in range(4):
            await until_data(ctx, peer)
        peer.window = 300
        peer.ack += 500
        peer.send()
        for _ in range(2):
            s = await until_data(ctx, peer)
            assert (s["seq"] + s["length"] - peer.ack) & M32 <= 300
        got = text[:500]
        peer.window = 2000
        peer.send()
        while len(got) < 3000:
            s = await until_data(ctx, peer)
            if s["seq"] == peer.ack:
                got += s["data"]
                peer.ack = (peer.ack + s["length"]) & M32
                peer.send()
        assert got == text

    World().run(script)


def test_ack_in_mid_segment():
    """A.13: the rest is sent again from there, byte-exact."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        text = noise(1460)
        service.send(0, text)
        s = await until_data(ctx, peer)
        peer.ack += 1447
        peer.send()
        s = await until_data(ctx, peer)
        assert (s["seq"], s["data"]) == (peer.ack & M32, text[1447:])
        peer.ack += 13
        peer.send()
        await world.until(ctx, lambda: not service.state[0]["tags"])

    World().run(script)


def test_fast_retransmit_and_partial_ack():
    """RFC 6582: three duplicate ACKs bring the first hole, a partial ACK the next; no time-out."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=536)
        text = noise(536 * 8)
        service.send(0, text)
        for _ in range(8):
            await until_data(ctx, peer)
        for _ in range(3):
            peer.send()
        s = await until_data(ctx, peer)
        assert (s["seq"], s["data"]) == (peer.ack & M32, text[:536])
        assert world.csr(ctx, "fast_retransmits") == 1
        assert world.csr(ctx, "rto") == 0
        peer.ack += 536 * 3
        peer.send()
        s = await until_data(ctx, peer)
        assert (s["seq"], s["data"]) == (peer.ack & M32, text[536 * 3 : 536 * 4])
        peer.ack += 536 * 5
        peer.send()
        await world.until(ctx, lambda: not service.state[0]["tags"])
        assert world.csr(ctx, "rto") == 0

    World(replace(SMALL, rto_min=60)).run(script)


def test_duplicate_acks_do_not_rearm_the_timer():
    """A.4: the RTO fires although duplicate ACKs keep coming, after a lost fast retransmission."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=536)
        service.send(0, noise(536 * 2))
        await until_data(ctx, peer)
        start = world.now

        def duplicate(now):
            if now % 3 == 0:
                peer.send()

        world.timers.append(duplicate)
        await world.until(ctx, lambda: world.csr(ctx, "rto") == 1, ticks=40)
        assert world.now - start <= 20

    World().run(script)


@seeds(1)
def test_loss_burst(seed):
    """A.5: a whole window is lost several times; all of it arrives in the end."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=536)
        text = noise(6000)
        service.send(0, text[:4000])
        service.send(0, text[4000:])
        for _ in range(3):  # the first flight and two time-outs' retransmissions are lost
            world.out.clear()
            await world.until(ctx, lambda: world.out)
        got = b""
        while len(got) < len(text):
            s = await until_data(ctx, peer)
            if s["seq"] == peer.ack:
                got += s["data"]
                peer.ack = (peer.ack + s["length"]) & M32
                peer.send()
        assert got == text
        await world.until(ctx, lambda: not service.state[0]["tags"])

    World(seed=seed).run(script)


@seeds(2)
def test_full_window_and_time_out_do_not_lock_both_ends_out(seed):
    """Each end must look at the other's pure ACKs: ours from SND.MAX, theirs from our edge."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=536)
        service.send(0, noise(536 * 3))
        await world.until(ctx, lambda: world.csr(ctx, "rto") == 1)
        await world.pause(ctx, 5)
        world.out.clear()
        peer.raw(peer.seq, data=b"x")
        s = await peer.get(ctx)
        while s["length"]:
            s = await peer.get(ctx)
        assert s["seq"] == (peer.ack + 536 * 3) & M32  # SND.NXT has gone back to one segment
        peer.raw(s["ack"] + s["window"], ack=peer.ack + 536 * 3)
        await world.until(ctx, lambda: not service.state[0]["tags"], ticks=20)

    World(seed=seed).run(script)


@seeds(2)
def test_acks_from_beyond_a_closed_window_count(seed):
    """RFC 9293, 3.10.7.4: with a window of nothing valid ACKs are still taken, wherever they begin.

    A peer that has sent a byte beyond our window, to probe it (as lwIP does), sends all its ACKs
    from behind that byte. Were they dropped, we would never learn that its own window is open, and
    if the service reads only as it may write, both ends would wait for ever.
    """

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.auto_free = False
        text = noise(4096)
        for at in range(0, 4096, 1024):
            peer.send(text[at : at + 1024])
        while (s := await peer.get(ctx))["ack"] != peer.seq:
            pass
        assert s["window"] == 0
        service.send(0, b"for you")
        sent = await until_data(ctx, peer)
        behind = peer.seq + 1 + seed % 1000
        # What was never sent is not acknowledged from there, nor is a FIN taken or a session ended.
        peer.raw(behind, ack=peer.ack + 8)
        peer.raw(behind, flags=ACK | FIN)
        peer.raw(behind, flags=RST)
        peer.raw(behind, ack=peer.ack + sent["length"], window=3)
        await world.until(ctx, lambda: not service.state[0]["tags"])
        service.send(0, b"more")  # the window that went with it holds, too
        assert (await until_data(ctx, peer))["data"] == b"mor"
        assert world.csr(ctx, "rst_rx") == 0
        service.consume(0)
        while (s := await peer.get(ctx))["window"] != 4096:
            assert s["ack"] == peer.seq

    World(seed=seed).run(script)


def test_slow_start_and_avoidance():
    """RFC 5681: after a time-out one segment, then two; beyond ssthresh one more a round trip."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=536)
        service.send(0, noise(536 * 15))
        await world.until(ctx, lambda: len(world.out) == 10)  # initial window (RFC 6928)
        await world.until(ctx, lambda: world.csr(ctx, "rto") == 1)
        world.out.clear()
        flights = []
        for _ in range(4):
            await world.until(ctx, lambda: world.out)
            await world.pause(ctx, 12)
            flights.append(len(world.out))
            for s in world.out:
                peer.ack = (s["seq"] + s["length"]) & M32
                peer.send()
            world.out.clear()
        assert flights[:3] == [1, 2, 4]
        assert flights[3] in (5, 6)
        assert world.csr(ctx, "rto") == 1

    World(replace(SMALL, rto_min=60), tick=25).run(script)


@seeds(2)
def test_descriptor_waits_for_reads_in_flight(seed):
    """Retransmission still queued when the ACK comes: SENT only after its memory was read."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.send(0, noise(1000))
        await until_data(ctx, peer)
        held = world.reading
        world._read = lambda ctx: None  # the sender takes segments but does not read
        await world.until(ctx, lambda: held)
        peer.ack += 1000
        peer.send()
        await world.pause(ctx, 10)
        assert service.state[0]["tags"]
        del world._read
        s = await until_data(ctx, peer)
        assert s["data"] == noise(1000)
        await world.until(ctx, lambda: not service.state[0]["tags"])

    World(seed=seed).run(script)


def test_user_timeout():
    """A peer whose window stays closed is given up after the user time-out."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, window=0)
        service.send(0, b"stuck")
        world.timers.append(lambda now: now % 5 == 0 and not service.finished and peer.send())
        await world.until(ctx, lambda: service.finished, ticks=500)
        assert 200 <= world.now <= 450
        assert service.finished[0]["closed"] == 0

    World(replace(SMALL, user_timeout=200, rto_max=50), tick=15).run(script)


@seeds(2)
def test_many_descriptors_reuse_slots(seed):
    """Fourteen small descriptors go round the four slots; ACKs cover one, two or three of them."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        text = b"".join(noise(30 + k, k) for k in range(14))
        got, posted, unacknowledged = b"", 0, 0
        while len(got) < len(text):
            while posted < 14 and len(service.state[0]["tags"]) < 4:
                service.send(0, noise(30 + posted, posted))
                posted += 1
            if not world.out:
                await ctx.tick()
                continue
            s = world.out.pop(0)
            if s["length"] and s["seq"] == (peer.ack + unacknowledged) & M32:
                got += s["data"]
                unacknowledged += s["length"]
            if unacknowledged > 80 or len(got) == len(text):
                peer.ack, unacknowledged = (peer.ack + unacknowledged) & M32, 0
                peer.send()
        assert got == text
        await world.until(ctx, lambda: not service.state[0]["tags"])
        assert [e[3] for e in service.log if e[0] == "SENT"] == list(range(1, 15))

    World(seed=seed).run(script)


def test_flags():
    """PSH only on the last segment of a descriptor; ACK on all."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world, mss=536)
        service.send(0, noise(700))
        first, second = await until_data(ctx, peer), await until_data(ctx, peer)
        assert first["flags"] == ACK
        assert second["flags"] == ACK | 8

    World().run(script)
