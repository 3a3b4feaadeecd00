"""Engines in-line in the bridge: what passes, what is dropped, and who waits for whom."""

import pytest
from amaranth import Module
from bridge_bench import Frame, counters, drain, expected, feed
from streams import make_rng, run, seeds, stream_checker
from trebuchet.cores.bridge.bridge import DIRECTIONS, Bridge
from trebuchet.cores.bridge.inline import InlineEngine
from trebuchet.cores.bridge.station import BridgeStation
from trebuchet.cores.engines.crc32c.engine import Crc32cEngine
from trebuchet.cores.roles.loopback.role import Wire
from trebuchet.models import crc32c

SHORTEST, LONGEST = 20, 80


def engines(width, check=(False, True)):
    """CRC-32C both ways: appended or checked."""
    return {
        direction: (f"{direction}_crc32c", Crc32cEngine(width, how))
        for direction, how in zip(DIRECTIONS, check, strict=True)
    }


def random_frames(rng, count):
    """Frames of every kind, the first byte of each even; half of them with a CRC behind them."""
    frames = []
    for _ in range(count):
        size = rng.choice([SHORTEST - 1, SHORTEST, LONGEST - 4, LONGEST - 3, LONGEST])
        size = rng.choice([size, rng.randint(5, LONGEST + 8)])
        data = bytes([2 * rng.randrange(128)]) + rng.randbytes(size - 1)
        if rng.random() < 0.5:
            data, _ = crc32c.result(data[: max(1, len(data) - 4)])
        frames.append((data, rng.random() < 0.1))
    return frames


def sent(frames, check, shortest=SHORTEST):
    """Those of the frames that leave the engine's exit, and how many do not."""
    made = [crc32c.result(data, error, check) for data, error in frames]
    good = [(d, False) for d, error in made if not error and shortest <= len(d) <= LONGEST]
    return good, len(made) - len(good)


@pytest.mark.parametrize(("width", "store"), [(32, True), (64, False), (128, True)])
@seeds(2)
def test_both_ways_at_once(width, store, seed):
    """Each direction as its model says, under back-pressure, with frames of a role between them."""
    bodies = engines(width)
    dut = Bridge(width, store_and_forward=store, shortest=SHORTEST, longest=LONGEST, engines=bodies)
    benches, ways = [], []
    for d, check in enumerate((False, True)):
        rng = make_rng(seed, f"frames{d}")
        frames = random_frames(rng, 40)
        own = [(b"\1" + rng.randbytes(rng.randint(SHORTEST, LONGEST - 1)), False) for _ in range(9)]
        said = [Frame(data, error) for data, error in frames]
        passed, counts = expected(said, width // 8, SHORTEST, LONGEST, store)
        good, refused = sent(passed, check)
        got = []
        ways.append((got, good, refused, own, counts, len(passed)))
        benches += [
            feed(dut.rx[d], frames, make_rng(seed, f"put{d}")),
            feed(dut.inject[d], own, make_rng(seed, f"inject{d}"), idle=0.7),
            drain(dut.tx[1 - d], got, len(good) + len(own), make_rng(seed, f"get{d}")),
            stream_checker(dut.tx[1 - d], f"tx{1 - d}"),
        ]

    async def check_end(ctx):
        ctx.set(dut.csr.enable, 1)
        while any(len(w[0]) < len(w[1]) + len(w[3]) for w in ways):
            await ctx.tick()
        await ctx.tick().repeat(300)
        told = counters(ctx, dut.csr)
        for d, name in enumerate(DIRECTIONS):
            assert not ctx.get(dut.tx[1 - d].valid), "a frame too many"
            _, _, refused, own, counts, passed = ways[d]
            csr = getattr(dut, f"csr_{name}")
            assert ctx.get(csr.packets) == passed
            assert ctx.get(csr.refused) == refused
            assert ctx.get(csr.faults) == ctx.get(csr.aborted) == 0
            assert told[f"{name}_passed"] == counts["passed"]
            assert told[f"{name}_injected"] == len(own)

    run(dut, check_end, *benches, limit=30_000, seed=seed)
    for got, good, refused, own, _, _ in ways:
        assert [g for g in got if not g[0][0] & 1] == good
        assert [g for g in got if g[0][0] & 1] == own
        assert good
        assert refused


@pytest.mark.parametrize("which", ["bridge", "engine"])
@seeds(1)
def test_bypass(which, seed):
    """The bridge's switch and the engine's own both make the direction a wire."""
    bodies = engines(32, (False, False))
    dut = Bridge(32, store_and_forward=True, shortest=SHORTEST, longest=LONGEST, engines=bodies)
    frames = [(d, False) for d, _ in random_frames(make_rng(seed, "frames"), 30)]
    frames = [(d, e) for d, e in frames if SHORTEST <= len(d) <= LONGEST]
    got = []

    async def switch(ctx):
        ctx.set(dut.csr.enable, which == "engine")
        ctx.set(dut.csr_inbound.enable, which == "bridge")

    put = feed(dut.rx[0], frames, make_rng(seed, "put"))
    get = drain(dut.tx[1], got, len(frames), make_rng(seed, "get"))
    run(dut, switch, put, get, limit=10_000, seed=seed)
    assert got == frames


@seeds(2)
def test_a_station_with_engines(seed):
    """Frames to and from the board are none of the engines' business; all others are."""
    dut = BridgeStation(32, shortest=SHORTEST, longest=LONGEST, engines=engines(32))
    ours, host = bytes.fromhex("02a1b2c3d4e5"), bytes.fromhex("5433221100fe")
    rng, got, wanted = make_rng(seed, "frames"), ([], [], []), ([], [], [])
    rx, tx, benches = (dut.network_rx, dut.host_rx), (dut.network_tx, dut.host_tx), []
    for d, check in enumerate((False, True)):
        frames = []
        for _ in range(40):
            to = rng.choice([ours, host, b"\xff" * 6, bytes.fromhex("52aa0b0c0d0e")])
            data = to + host + rng.randbytes(rng.randint(8, LONGEST - 12))
            if rng.random() < 0.6:
                data, _ = crc32c.result(data[:-4])
            frames.append((data, False))
        passing = [(f, e) for f, e in frames if f[:6] != ours]
        wanted[1 - d].extend(sent(passing, check, shortest=1)[0])
        wanted[2].extend(f for f, _ in frames if f[:6] == ours or f[0] & 1)
        benches.append(feed(rx[d], frames, make_rng(seed, f"put{d}")))
    own = [(bytes.fromhex("52aa0b0c0d0e") + ours + rng.randbytes(30), False) for _ in range(10)]
    for port in (0, 1):
        count = len(wanted[port]) + (0 if port else len(own))
        benches.append(drain(tx[port], got[port], count, make_rng(seed, f"get{port}")))
        benches.append(stream_checker(tx[port], f"tx{port}"))
    benches.append(feed(dut.tx, own, make_rng(seed, "own")))
    benches.append(drain(dut.rx, got[2], len(wanted[2]), make_rng(seed, "rx"), 0.0))

    async def enable(ctx):
        ctx.set(dut.csr.enable, 1)
        ctx.set(dut.mac, int.from_bytes(ours, "little"))

    run(dut, enable, *benches, limit=30_000, seed=seed)
    assert got[1] == wanted[1]
    assert [g for g in got[0] if g not in own] == wanted[0]
    assert [g for g in got[0] if g in own] == own
    assert sorted(f for f, _ in got[2]) == sorted(wanted[2])


@pytest.mark.parametrize("why", ["hangs", "port waits"])
@seeds(2)
def test_the_other_direction_never_waits(why, seed):
    """Of direction 0 nothing moves on: its body hangs, or its port takes nothing; 1 is as ever."""
    body = Wire(32)
    bodies = {"inbound": ("inbound_any", body), "outbound": ("outbound_any", Wire(32))}
    dut = Bridge(32, store_and_forward=True, shortest=SHORTEST, longest=LONGEST, engines=bodies)
    if why == "hangs":
        body.elaborate = lambda platform: Module()
    rng, got, stopped = make_rng(seed, "frames"), [], []
    frames = [(rng.randbytes(rng.randint(SHORTEST, LONGEST)), False) for _ in range(60)]
    put = feed(dut.rx[0], frames, make_rng(seed, "put0"))
    put.background = True

    async def watch(ctx):
        ctx.set(dut.csr.enable, 1)
        while len(got) < len(frames):
            _, _, taken, ready = await ctx.tick().sample(dut.tx[1].valid, dut.rx[0].ready)
            stopped.append(not ready)
            assert not taken or why == "port waits"

    other = feed(dut.rx[1], frames, None)
    cycles = run(dut, watch, put, other, drain(dut.tx[0], got, 60, None), limit=4000, seed=seed)
    assert got == frames
    assert cycles < sum(-(-len(f) // 4) for f, _ in frames) + 150
    assert any(stopped)


@seeds(1)
def test_a_frame_that_never_ends_is_not_sent(seed):
    """A body that goes on for ever: nothing of it leaves; a reset frees the direction."""
    body = Endless()
    dut, got = InlineEngine(body, 32, shortest=SHORTEST, longest=LONGEST), []
    frame = (bytes(range(40)), False)

    async def rescue(ctx):
        ctx.set(dut.enable, 1)
        for _ in range(1000):
            _, _, valid = await ctx.tick().sample(dut.o.valid)
            assert not valid
        ctx.set(dut.csr.enable, 0)
        ctx.set(dut.csr.reset, 1)
        await ctx.tick()
        ctx.set(dut.csr.reset, 0)
        await feed(dut.i, [frame], None)(ctx)
        while not got:
            await ctx.tick()
        assert ctx.get(dut.csr.refused) == 2

    puts, gets = feed(dut.i, [frame] * 2, None), drain(dut.o, got, 1, None)
    run(dut, rescue, puts, gets, limit=2000, seed=seed)
    assert got == [frame]


class Endless(Wire):
    """Takes all, and gives beats without an end from the first one on."""

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(1)
        with m.If(self.i.valid):
            m.d.sync += self.o.valid.eq(1)
        return m


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Bridge(engines={"up": ("x", Wire(64))}),
            r"Engines must be of \('inbound', 'outbound'\), not \['up'\]",
        ),
        (
            lambda: Bridge(64, engines={"inbound": ("x", Wire(32))}),
            "Stream 'i' of the body must have 64 bits, not 32",
        ),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
