"""Sessions that have places at their services only while there is work (cores/tcp/places.py)."""

import random
from collections import deque
from dataclasses import replace

import pytest
from storm_bench import Client, storm
from streams import make_rng, run, seeds
from tcp_bench import ACK, M32, RST, SMALL, SYN, Peer, Service, World
from trebuchet.cores.tcp.places import PlacePools
from trebuchet.cores.tcp.service import EventKind

CONFIG = replace(SMALL, places=2)


class Guest(Service):
    """A service that has rows for ``config.places`` sessions only, and says ``rest``.

    ``rests``: as soon as it may. ``told`` counts the OPENs that came with bytes consumed before.
    """

    def __init__(self, echo=True, rests=True, **more):
        super().__init__(echo=echo, **more)
        self.rests, self.told, self.rested = rests, 0, 0

    def event(self, event):
        kind, place = EventKind(event["kind"]), event["session"]
        assert place < self.world.config.places, f"{place} is no place"
        if kind == EventKind.OPEN:
            old = self.state.pop(place, None)
            assert old is None or old["resting"], "OPEN of a place that is not free"
            super().event(event)
            self.state[place] |= {"read": event["position"], "resting": False}
            self.state[place] |= {"freed": event["position"], "close": not event["ok"]}
            self.told += event["position"] != 0
            return
        self.state[place]["resting"] = False
        super().event(event)
        row = self.state.get(place)
        if row is not None:
            assert kind == EventKind.DATA or event["position"] == row["read"]
            self._rest(place, row)

    def _rest(self, place, s):
        busy = s["tags"] or s["backlog"] or s["eof"] or s["closed"] is not None
        if self.rests and not busy and s["freed"] == s["read"]:
            s["resting"] = True
            self.rested += 1
            self._free(place, s["read"], False, rest=True)

    def _free(self, session, position, release, rest=False):
        word = session | position << 17 | release << 49 | rest << 50
        self.free.queue.append(word)


class Talker(Client):
    """A client that says its text in pieces, with pauses in which it has no place."""

    def __init__(self, net, rport, text, isn, window, **options):
        super().__init__(net, rport, b"", isn, window, **options)
        self.rng = random.Random(f"{rport} {len(text)}")
        cuts = sorted(self.rng.randrange(len(text) + 1) for _ in range(3))
        ends = zip((0, *cuts), (*cuts, len(text)), strict=True)
        self.pieces = deque(text[a:b] for a, b in ends)
        self.pause = 0

    @property
    def closing(self):
        return not self.pieces and super().closing

    def tick(self, now):
        if self.rcv is not None and self.pieces and len(self.got) == len(self.text):
            self.pause -= 1
            if self.pause < 0:
                self.text += self.pieces.popleft()
                self.pause = self.rng.randint(0, 12)
        super().tick(now)


def crowd(seed, count, size, loss, limit, **more):
    """As many talk at once with a service that has two rows."""
    services = [Guest(), Guest(), Guest()]
    world = storm(
        seed, count, size, loss, limit, most=count, kind=Talker, services=services, places=2, **more
    )
    assert world.short, "nobody ever waited for a place"
    assert services[0].told > 2, "places were never left"
    assert services[0].rested >= services[0].told


@seeds(1)
def test_more_sessions_than_places(seed):
    crowd(seed, 5, 100, 0, 400)


@pytest.mark.slow
@seeds(1)
def test_more_sessions_than_places_on_a_bad_link(seed):
    crowd(seed, 7, 250, 0.05, 1500)


@pytest.mark.nightly
@pytest.mark.parametrize("cache", [8, 16])
@seeds(1)
def test_more_sessions_than_places_or_lines_of_the_cache(cache, seed):
    more = {"sessions": 16, "cache": cache, "wheel": 128, "tick": 90}
    crowd(seed, 12, 400, 0.03, 1500, **more)


@seeds(2)
def test_a_service_that_keeps_its_places(seed):
    """It leaves its own sessions waiting, and no others; a place that is free again is used."""

    async def script(ctx, world):
        busy, keeper, _ = world.services
        peers = [Peer(world, rport=100 + k, port=9, isn=k * 1000) for k in range(4)]
        for peer in peers:
            await _connect(ctx, peer)
            peer.send(b"hold this")
        await world.pause(ctx, 15)
        assert len(keeper.state) == 2
        assert world.csr(ctx, "places_free_1") == 0
        assert world.csr(ctx, "places_short") > 0
        world.out.clear()
        other = Peer(world, rport=7, port=7)
        await _connect(ctx, other)
        other.send(b"echo this")
        await world.until(ctx, lambda: any(s["data"] == b"echo this" for s in world.out))
        assert world.csr(ctx, "places_free_0") == 1
        other.ack = (other.iss + 10) & M32
        other.send()
        await world.until(ctx, lambda: world.csr(ctx, "places_free_0") == 2)
        assert not busy.finished
        # Those that wait get a place as others end, and so the last one does.
        for peer in peers:
            peer.raw(peer.seq, flags=RST)
        await world.until(ctx, lambda: len(keeper.finished) == 4)
        assert {s["data"] for s in keeper.finished} <= {b"hold this", b""}
        other.raw(other.seq, flags=RST)
        await world.drained(ctx)
        assert [world.csr(ctx, f"places_free_{k}") for k in range(3)] == [2, 2, 2]
        assert busy.finished[0]["closed"] == 0

    services = [Guest(), Guest(echo=False, rests=False), Guest()]
    World(CONFIG, seed=seed, services=services).run(script)


def _synack(peer):
    to = [s for s in peer.world.out if s["remote_port"] == peer.rport and s["flags"] & SYN]
    return to[0] if to else None


async def _connect(ctx, peer):
    """Handshake; the service is not told."""
    world = peer.world
    peer.syn()
    await world.until(ctx, lambda: _synack(peer))
    peer.iss = _synack(peer)["seq"]
    peer.ack = (peer.iss + 1) & M32
    world.out.clear()
    peer.send(flags=ACK)


@seeds(1)
def test_idle_sessions_have_no_place(seed):
    """One that ends without a word gets a place for its end; bad requests are counted."""

    async def script(ctx, world):
        service = world.services[0]
        peers = [Peer(world, rport=100 + k) for k in range(4)]
        for peer in peers:
            await _connect(ctx, peer)
        await world.pause(ctx, 5)
        assert service.log == []
        assert world.csr(ctx, "places_free_0") == 2
        service.state[1] = {"tag": 0, "close": False, "tags": deque()}
        service.send(1, b"unasked")  # a place that nobody has
        service._free(1, 0, False)
        service._free(0, 0, True)
        service._free(5, 0, False, rest=True)
        await world.until(ctx, lambda: world.csr(ctx, "service_errors") == 4)
        del service.state[1]
        for peer in peers:
            peer.raw(peer.seq, flags=RST)
        await world.drained(ctx)
        kinds = [entry[0] for entry in service.log]
        assert sorted(kinds) == ["CLOSED"] * 4 + ["OPEN"] * 4
        assert world.csr(ctx, "places_free_0") == 2

    World(CONFIG, seed=seed, services=[Guest(), Guest(), Guest()]).run(script)


@pytest.mark.parametrize(("places", "services"), [(2, 1), (4, 3), (64, 5), (1024, 2)])
@seeds(1)
def test_pools(places, services, seed):
    """Against sets: what is taken is free, what is free is offered; whose each place is."""
    dut, rng = PlacePools(places, services, 17), make_rng(seed, "pools")
    bits = dut.bits
    free = [set(range(places)) for _ in range(services)]
    holders = {}

    async def bench(ctx):
        await ctx.tick().repeat(places << dut.service_bits)
        for turn in range(3 * places + 100):
            k = rng.randrange(services)
            ctx.set(dut.pick, k)
            await ctx.tick().repeat(2)
            assert ctx.get(dut.valid) == bool(free[k])
            assert [ctx.get(n) for n in dut.free] == [len(f) for f in free]
            fills = turn // (places + 20) % 2 == 0
            if free[k] and rng.random() < (0.9 if fills else 0.2):
                number, session = ctx.get(dut.number), rng.randrange(1 << 17)
                free[k].remove(number)
                holders[k << bits | number] = session
                ctx.set(dut.session, session)
                ctx.set(dut.take, 1)
                await ctx.tick()
                ctx.set(dut.take, 0)
            elif holders:
                place = rng.choice(list(holders))
                ctx.set(dut.asked, place)
                await ctx.tick()
                assert ctx.get(dut.holder) == holders.pop(place)
                free[place >> bits].add(place & (places - 1))
                ctx.set(dut.given, place)
                ctx.set(dut.give, 1)
                await ctx.tick()
                ctx.set(dut.give, 0)

    run(dut, bench, limit=30 * places + 5000, seed=seed)


@pytest.mark.parametrize("places", [0, 1, 3, 2.0, None])
def test_number_of_places_is_checked(places):
    with pytest.raises(ValueError, match=r"^Places must be a power of two of at least 2, not "):
        PlacePools(places, 2, 4)


@pytest.mark.parametrize("places", [1, 3, 16])
def test_configuration_is_checked(places):
    message = f"^Number of places must be a power of two from 2 to 8, or None, not {places}$"
    with pytest.raises(ValueError, match=message):
        replace(SMALL, places=places)
