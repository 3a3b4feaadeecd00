"""TcpEngine: every way a connection ends, and that its slot comes back."""

from dataclasses import replace

import pytest
from streams import seeds
from tcp_bench import ACK, FIN, M32, RST, SMALL, SYN, Peer, Service, World


def kinds(service):
    return [entry[0] for entry in service.log]


async def fin_of(ctx, peer):
    """Wait for the engine's FIN; ignore what comes before."""
    while not (s := await peer.get(ctx))["flags"] & FIN:
        pass
    return s


async def opened(ctx, world, **more):
    peer = Peer(world, **more)
    await peer.open(ctx)
    return peer, world.services[world.config.ports.index(peer.port)]


@seeds(1)
def test_we_close_first(seed):
    """FIN-WAIT-1, FIN-WAIT-2 (data still come), TIME-WAIT with its ACK of a repeated FIN."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.send(0, b"last words", close=True)
        s = await fin_of(ctx, peer)
        assert s["data"] == b"last words"
        peer.ack = (s["seq"] + 11) & M32
        peer.send()
        await world.until(ctx, lambda: "SENT" in kinds(service))
        peer.send(b"more from the peer")
        await peer.expect(ctx)
        peer.send(flags=ACK | FIN)
        await peer.expect(ctx)
        await world.until(ctx, lambda: "CLOSED" in kinds(service))
        assert service.finished[0]["data"] == b"more from the peer"
        assert service.finished[0]["closed"] == 1
        peer.raw(peer.seq - 1, flags=ACK | FIN)  # our ACK was lost
        await peer.expect(ctx)
        peer.raw(peer.seq, flags=RST)  # RFC 1337
        await world.pause(ctx, 2)
        assert world.csr(ctx, "sessions_used") == 1
        await world.drained(ctx)

    World(seed=seed).run(script)


@seeds(2)
def test_simultaneous_close(seed):
    """A.8: CLOSING; our FIN is retransmitted in it; then TIME-WAIT."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.send(0, b"", close=True)
        s = await fin_of(ctx, peer)
        peer.send(flags=ACK | FIN)  # does not acknowledge our FIN
        await peer.expect(ctx)
        again = await fin_of(ctx, peer)
        assert again["seq"] == s["seq"]
        peer.ack = (s["seq"] + 1) & M32
        peer.send()
        await world.drained(ctx)
        assert service.finished[0]["closed"] == 1
        assert kinds(service) == ["OPEN", "EOF", "SENT", "CLOSED"]

    World(seed=seed).run(script)


@seeds(2)
def test_last_ack_needs_the_ack_of_the_fin(seed):
    """A.8: data with FIN in one segment; LAST-ACK survives an ACK that does not cover the FIN."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        peer.send(b"all in one", flags=ACK | FIN)
        await world.until(ctx, lambda: "EOF" in kinds(service))
        assert service.state[0]["data"] == b"all in one"
        await peer.expect(ctx)
        service.send(0, b"answer", close=True)
        s = await fin_of(ctx, peer)
        peer.ack = (s["seq"] + 6) & M32  # the data only
        peer.send()
        again = await fin_of(ctx, peer)
        assert (again["seq"], again["data"]) == (peer.ack, b"")
        assert "CLOSED" not in kinds(service)
        peer.ack += 1
        peer.send()
        await world.drained(ctx)
        assert service.finished[0]["closed"] == 1

    World(seed=seed).run(script)


def test_fin_behind_a_gap_and_beyond_the_window():
    """A.8: FIN out of order is not taken; FIN of a segment cut by the window is not either."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.auto_free = False
        peer.raw(peer.seq + 5, flags=ACK | FIN, data=b"later")
        await peer.expect(ctx)
        peer.send(bytes(1460))
        await peer.expect(ctx)
        peer.send(bytes(1460))
        await peer.expect(ctx)
        rest = 4096 - 2920
        peer.raw(peer.seq, flags=ACK | FIN, data=bytes(rest + 100))
        peer.seq += rest
        s = await peer.expect(ctx)
        assert s["window"] == 0
        assert "EOF" not in kinds(service)
        await world.until(ctx, lambda: service.state[0]["read"] == 4096)
        service.consume(0)
        s = await peer.expect(ctx)  # window update
        assert s["window"] == 4096
        peer.send(bytes(100), flags=ACK | FIN)
        await world.until(ctx, lambda: "EOF" in kinds(service))

    World().run(script)


def test_fin_into_a_full_window():
    """A FIN alone is taken even when the window is closed; the window never wraps."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.auto_free = False
        for size in (1460, 1460, 4096 - 2920):
            peer.send(bytes(size))
            s = await peer.expect(ctx)
        assert s["window"] == 0
        peer.send(flags=ACK | FIN)
        s = await peer.expect(ctx)
        assert s["window"] == 0
        await world.until(ctx, lambda: "EOF" in kinds(service))

    World().run(script)


@seeds(1)
def test_abort_by_the_service(seed):
    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.send(0, bytes(3000))
        service.send(0, b"never sent")
        service.send(0, b"", abort=True)
        while not (s := await peer.get(ctx))["flags"] & RST:
            pass
        assert s["ack"] == peer.seq
        await world.drained(ctx)
        assert [(e[0], e[2]) for e in service.log] == [
            ("OPEN", 1), ("SENT", 0), ("SENT", 0), ("SENT", 0), ("CLOSED", 0)
        ]  # fmt: skip
        peer.send(b"too late")
        assert (await peer.get(ctx))["flags"] == RST

    World(seed=seed).run(script)


def test_data_after_the_end_draws_rst():
    """The session is over but not yet released: still RST, and the payload is swallowed."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.auto_release = False
        peer.raw(peer.seq, flags=RST)
        await world.until(ctx, lambda: "CLOSED" in kinds(service))
        peer.raw(peer.seq, data=b"too late")
        assert (await peer.get(ctx))["flags"] == RST
        service.send(0, b"so is this")  # came before release: answered
        await world.until(ctx, lambda: kinds(service)[-1] == "SENT")
        assert service.log[-1][2] == 0
        assert world.csr(ctx, "sessions_used") == 1
        service.release(0)
        await world.drained(ctx)

    World().run(script)


def test_a_syn_before_the_release_is_answered_when_it_comes_again():
    """The same ports at once after LAST-ACK: no RST, so the client asks once more."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.auto_release = False
        peer.send(flags=ACK | FIN)
        await world.until(ctx, lambda: "EOF" in kinds(service))
        service.send(0, b"", close=True)
        s = await fin_of(ctx, peer)
        peer.ack = (s["seq"] + 1) & M32
        peer.send()
        await world.until(ctx, lambda: "CLOSED" in kinds(service))
        again = Peer(world, isn=peer.seq + 500)
        again.syn()
        await world.quiet(ctx, 10)
        again.raw(again.isn + 1, ack=0, flags=ACK)
        assert (await again.get(ctx))["flags"] == RST  # that is no new connection
        service.release(0)
        await world.until(ctx, lambda: not world.csr(ctx, "sessions_used"))
        service.auto_release = True
        await again.open(ctx)
        again.raw(again.seq, flags=RST)
        await world.drained(ctx)

    World().run(script)


def test_overrun_aborts():
    """A fifth unanswered descriptor breaks the contract."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        for k in range(4):
            service.send(0, bytes([k]))
        service.post(0, service.world.heap, 1, tag=99)
        while not (await peer.get(ctx))["flags"] & RST:
            pass
        await world.drained(ctx)
        assert world.csr(ctx, "tx_overrun") == 1
        assert sum(e[0] == "SENT" for e in service.log) == 4

    World().run(script)


def test_bad_requests_of_a_service_are_counted():
    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        other = world.services[1]
        other.post(0, 0, 10)  # not its session
        other.post(5, 0, 10)  # nobody's session
        other.post(100_000, 0, 10)  # no session at all
        service.state[0]["read"] = 0
        service.consume(0, position=1)  # nothing has arrived
        service._free(0, 0, True)  # not closed
        await world.until(ctx, lambda: world.csr(ctx, "service_errors") == 5)
        assert world.out == []
        service.send(0, b"still fine")
        assert (await peer.get(ctx))["data"] == b"still fine"

    World().run(script)


def test_vanished_peer_with_data_outstanding():
    """Retransmissions back off, then the session is reset and everything comes back."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.send(0, b"anybody there?")
        times = []
        while not (s := await peer.get(ctx, ticks=3000))["flags"] & RST:
            assert s["data"] == b"anybody there?"
            times.append(world.now)
        assert len(times) == 1 + world.config.retries
        gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
        for gap, following in zip(gaps, gaps[1:], strict=False):
            assert abs(following - min(2 * gap, 200)) <= 2
        await world.drained(ctx)
        assert [(e[0], e[2]) for e in service.log] == [("OPEN", 1), ("SENT", 0), ("CLOSED", 0)]
        assert world.csr(ctx, "timeouts") == 1

    World(replace(SMALL, retries=3), tick=25).run(script)


def test_vanished_idle_peer():
    """Keep-alive probes, then a reset; a peer that answers stays."""

    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        s = await peer.expect(ctx, seq=peer.ack - 1)
        assert world.now >= 100
        peer.send()
        await world.pause(ctx, 20)
        assert world.out == []
        for _ in range(3):
            await peer.expect(ctx, seq=peer.ack - 1)
        s = await peer.get(ctx)
        assert s["flags"] & RST
        await world.drained(ctx)
        assert service.finished[0]["closed"] == 0

    World(replace(SMALL, keepalive_idle=100), tick=12).run(script)


def test_vanished_in_fin_wait_2_and_last_ack():
    """A.8: the peer acknowledges our FIN, then vanishes; or never acknowledges it."""

    async def script(ctx, world):
        first, service = await opened(ctx, world)
        second = Peer(world, rport=5000, port=80)
        await second.open(ctx)
        service.send(0, b"", close=True)
        s = await fin_of(ctx, first)
        first.ack = (s["seq"] + 1) & M32
        first.send()
        second.send(flags=ACK | FIN)
        await world.until(ctx, lambda: "EOF" in kinds(world.services[2]))
        world.services[2].send(1, b"", close=True)
        await world.drained(ctx, ticks=1500)

    World(replace(SMALL, keepalive_idle=100, retries=3), tick=12).run(script)


@seeds(1)
def test_time_wait_is_replaced_by_a_newer_syn(seed):
    async def script(ctx, world):
        peer, service = await opened(ctx, world)
        service.send(0, b"", close=True)
        s = await fin_of(ctx, peer)
        peer.ack = (s["seq"] + 1) & M32
        peer.send(flags=ACK | FIN)
        await peer.expect(ctx)
        await world.until(ctx, lambda: service.finished)
        old = Peer(world, isn=peer.seq - 500)
        old.syn()
        s = await old.get(ctx)
        assert s["flags"] == ACK  # not newer: the old connection is still what counts
        new = Peer(world, isn=peer.seq + 500)
        new.syn()
        s = await new.get(ctx)
        assert s["flags"] == SYN | ACK
        new.ack = (s["seq"] + 1) & M32
        new.send(b"second life")
        await world.until(ctx, lambda: kinds(service).count("OPEN") == 2)
        await world.until(ctx, lambda: service.state[0]["data"] == b"second life")
        assert world.csr(ctx, "time_wait_reused") == 1
        new.raw(new.seq, flags=RST)
        await world.drained(ctx)

    World(replace(SMALL, time_wait=200), seed=seed).run(script)


@seeds(1)
def test_table_full_and_reuse(seed):
    """No SYN is refused while a slot is free; refused ones are counted; slots are reused."""

    async def script(ctx, world):
        peers = [Peer(world, rport=100 + 7 * k, isn=k << 20) for k in range(9)]
        for peer in peers:
            peer.syn()
        await world.until(ctx, lambda: len(world.out) >= 8)
        await world.until(ctx, lambda: world.csr(ctx, "refused_full") == 1)
        assert world.csr(ctx, "accepted") == 8
        world.out.clear()
        for peer in peers[:8]:
            peer.raw(peer.seq, flags=RST, ack=0)
        await world.drained(ctx)
        world.out.clear()
        for round_ in range(2):
            for k, peer in enumerate(peers[:8]):
                peer.isn = (round_ << 24) + k
                await peer.open(ctx)
                peer.raw(peer.seq, flags=RST)
            await world.drained(ctx)

    World(replace(SMALL, half_open=8), seed=seed).run(script)


def test_full_table_recycles_time_wait():
    async def script(ctx, world):
        for k in range(4):
            peer = Peer(world, rport=100 + k)
            await peer.open(ctx)
            session = next(iter(world.services[0].state))
            world.services[0].send(session, b"", close=True)
            s = await fin_of(ctx, peer)
            peer.ack = (s["seq"] + 1) & M32
            peer.send(flags=ACK | FIN)
            await world.until(ctx, lambda: not world.services[0].state)
            world.out.clear()
            await world.pause(ctx, 3)
        assert world.csr(ctx, "refused_full") == 0
        assert world.csr(ctx, "time_wait_reused") == 3

    World(replace(SMALL, sessions=2, time_wait=2000)).run(script)


def test_sleeping_service_blocks_nobody():
    """A service that takes no events: others go on, its tx is taken, no event is lost."""

    async def script(ctx, world):
        lazy, busy = world.services[0], world.services[2]
        first = Peer(world)
        await first.open(ctx)
        lazy.asleep = True
        second = Peer(world, rport=5000, port=80)
        await second.open(ctx)
        for k in range(5):
            first.send(bytes([k]) * 100)
            await first.expect(ctx)
            second.send(bytes([k]) * 100)
            await second.expect(ctx)
        lazy.send(0, b"sent in my sleep")
        s = await first.get(ctx)
        assert s["data"] == b"sent in my sleep"
        first.ack = (first.ack + 16) & M32
        first.send(flags=ACK | FIN)
        second.raw(second.seq, flags=RST)
        await world.until(ctx, lambda: "CLOSED" in kinds(busy))
        assert len(lazy.log) <= 2  # OPEN, and one event in the port's register
        lazy.asleep = False
        await world.until(ctx, lambda: "EOF" in kinds(lazy))
        assert lazy.state[0]["data"] == b"".join(bytes([k]) * 100 for k in range(5))
        assert kinds(lazy).count("DATA") <= 2  # merged

    World().run(script)


def test_abort_all_drains():
    async def script(ctx, world):
        peers = [Peer(world, rport=100 + k) for k in range(3)]
        for peer in peers:
            await peer.open(ctx)
        Peer(world, rport=200).syn()
        world.services[0].send(0, bytes(2000))
        ctx.set(world.dut.csr.enable, 0)
        ctx.set(world.dut.csr.abort_all, 1)
        await world.drained(ctx)
        assert sum(bool(s["flags"] & RST) for s in world.out) == 4
        assert sum(s["closed"] == 0 for s in world.services[0].finished) == 3

    World(services=[Service(), Service(), Service()]).run(script)


@pytest.mark.nightly
@seeds(1)
def test_abort_all_waits_for_no_wheel(seed):
    """With a cache, visits are far ahead: the engine goes through all sessions instead."""

    async def script(ctx, world):
        for k in range(6):
            await opened(ctx, world, rport=100 + k)
        await world.pause(ctx, 50)
        world.out.clear()
        ctx.set(world.dut.csr.enable, 0)
        ctx.set(world.dut.csr.abort_all, 1)
        await world.drained(ctx, ticks=100)
        assert sum(bool(s["flags"] & RST) for s in world.out) == 6
        assert world.csr(ctx, "aborts") == 6
        ctx.set(world.dut.csr.abort_all, 0)
        ctx.set(world.dut.csr.enable, 1)
        world.out.clear()
        for k in range(8):  # numbers that were on a wheel, and those that never were
            await opened(ctx, world, rport=200 + k)

    config = replace(SMALL, cache=2, keepalive_idle=30_000, ports=(7,))
    World(config, seed=seed, tick=40, services=[Service()]).run(script)
