"""The bridge: what passes, what roles do to it, what becomes of bad frames, who waits for whom."""

import pytest
from bridge_bench import Frame, Role, counters, drain, expected, feed
from streams import make_rng, packet_get, packet_put, run, seeds, stream_checker
from trebuchet.cores.bridge.bridge import DIRECTIONS, Bridge, BridgeLane
from trebuchet.cores.bridge.fair import FairMux
from trebuchet.cores.bridge.inject import Injector
from trebuchet.cores.bridge.tap import FrameTap

SHORTEST, LONGEST = 9, 50


def random_frames(rng, count, n, verdicts=True):
    """Frames of every kind. The first byte is even, that of a role's frames is odd."""
    frames = []
    for _ in range(count):
        size = rng.choice([1, SHORTEST - 1, SHORTEST, LONGEST, LONGEST + 1, rng.randint(1, 80)])
        data = bytes([rng.randrange(128) * 2]) + rng.randbytes(size - 1)
        frame = Frame(data, error=rng.random() < 0.1)
        if verdicts and rng.random() < 0.3:
            frame.drop = rng.choice([0, 0, rng.randrange(6)])
        if verdicts and rng.random() < 0.4:
            frame.alter = {rng.randrange(6): bytes([0]) + rng.randbytes(n - 1) for _ in range(3)}
        frames.append(frame)
    return frames


def own_frames(rng, count):
    """Frames of a role, and those of them that are good."""
    frames = []
    for _ in range(count):
        size = rng.choice([SHORTEST - 1, SHORTEST, LONGEST, LONGEST + 1, rng.randint(1, 70)])
        frames.append((bytes([1]) + rng.randbytes(size - 1), rng.random() < 0.15))
    good = [f for f, error in frames if not error and SHORTEST <= len(f) <= LONGEST]
    return frames, good


@pytest.mark.parametrize(
    ("width", "store", "latency"),
    [(32, False, 1), (64, False, 8), (128, False, 3), (32, True, 3), (64, True, 1), (128, True, 2)],
)
@seeds(2)
def test_both_ways_at_once(width, store, latency, seed):
    """Every frame leaves as the model says, in order; a role's frames between them, whole."""
    dut = Bridge(
        width, store_and_forward=store, latency=latency, shortest=SHORTEST, longest=LONGEST
    )
    n = width // 8
    benches, ways, readings = [], [], {}
    for d in range(2):
        rng = make_rng(seed, f"frames{d}")
        frames = random_frames(rng, 40, n)
        own, good = own_frames(rng, 15)
        wanted, counts = expected(frames, n, SHORTEST, LONGEST, store)
        role, got = Role(dut.tap[d], frames, latency, make_rng(seed, f"role{d}")), []
        ways.append((frames, role, got, wanted, good, counts, len(own)))
        benches += [
            feed(dut.rx[d], [(f.data, f.error) for f in frames], make_rng(seed, f"put{d}")),
            feed(dut.inject[d], own, make_rng(seed, f"inject{d}"), idle=0.5),
            drain(dut.tx[1 - d], got, len(wanted) + len(good), make_rng(seed, f"get{d}")),
            stream_checker(dut.tx[1 - d], f"tx{1 - d}"),
            role,
        ]

    async def enable(ctx):
        ctx.set(dut.csr.enable, 1)

    async def read(ctx):
        while any(len(w[2]) < len(w[3]) + len(w[4]) for w in ways):
            await ctx.tick()
        await ctx.tick().repeat(150)
        for port in (0, 1):
            assert not ctx.get(dut.tx[port].valid), "a frame too many"
        readings.update(counters(ctx, dut.csr))

    run(dut, enable, *benches, read, limit=20_000, seed=seed)
    for name, (frames, role, got, wanted, good, counts, own) in zip(DIRECTIONS, ways, strict=True):
        assert [g for g in got if not g[0][0] & 1] == wanted
        assert [g for g, _ in got if g[0] & 1] == good
        assert role.seen == [f.data for f in frames]
        for event, count in counts.items():
            assert readings[f"{name}_{event}"] == count, event
        assert readings[f"{name}_injected"] == len(good)
        assert readings[f"{name}_refused"] == own - len(good)
        assert counts["dropped"]
        assert readings[f"{name}_altered"] <= counts["passed"]


@pytest.mark.parametrize("store", [False, True])
@seeds(2)
def test_bypass(store, seed):
    """After reset: what the role says does not count, it sees nothing, its frames are swallowed."""
    dut = BridgeLane(64, store_and_forward=store, latency=2, shortest=SHORTEST, longest=LONGEST)
    rng = make_rng(seed, "frames")
    frames = random_frames(rng, 60, 8, verdicts=False)
    own, _ = own_frames(rng, 30)
    wanted, _ = expected(frames, 8, SHORTEST, LONGEST, store)
    got, refused = [], []
    role = Role(dut.tap, [], 2, make_rng(seed, "role"))

    async def count(ctx):
        for _ in range(1500):
            _, _, strobe, shown = await ctx.tick().sample(dut.injects, dut.tap.valid)
            assert not strobe.injected
            assert not shown
            refused.append(strobe.refused)

    run(
        dut,
        feed(dut.rx, [(f.data, f.error) for f in frames], make_rng(seed, "put")),
        feed(dut.inject, own, make_rng(seed, "inject")),
        drain(dut.tx, got, len(wanted), make_rng(seed, "get")),
        role,
        count,
        limit=8000,
        seed=seed,
    )
    assert got == wanted
    assert sum(refused) == len(own)


@seeds(3)
def test_enable_holds_for_whole_frames(seed):
    """Switched in the middle of frames: each is shown from its first beat to its last, or never."""
    dut = FrameTap(32, 3, SHORTEST, LONGEST)
    rng = make_rng(seed, "frames")
    frames = [Frame(rng.randbytes(rng.randint(SHORTEST, LONGEST))) for _ in range(80)]
    marked = [Frame(f.data, alter={k: bytes(4) for k in range(20)}) for f in frames]
    role, got = Role(dut.tap, marked, 3, make_rng(seed, "role")), []

    async def switch(ctx):
        toggle = make_rng(seed, "switch")
        while len(got) < len(frames):
            ctx.set(dut.enable, toggle.random() < 0.5)
            await ctx.tick().repeat(toggle.randint(1, 30))

    # The role's list must hold the frames that it is shown, whichever they are: all are alike.
    run(
        dut,
        feed(dut.i, [(f.data, False) for f in frames], make_rng(seed, "put")),
        drain(dut.o, got, len(frames), make_rng(seed, "get")),
        switch,
        role,
        limit=12_000,
        seed=seed,
    )
    fates = []
    for frame, (data, error) in zip(frames, got, strict=True):
        assert not error
        assert data in (frame.data, bytes(len(frame.data)))
        fates.append(data == frame.data)
    assert True in fates
    assert False in fates
    assert len(role.seen) == fates.count(False)


@pytest.mark.parametrize("stop", [False, True])
@seeds(2)
def test_a_broken_frame_of_a_role_leaves_no_trace(stop, seed):
    """A role that is reset in the middle of a frame, with the shell stopped for that or not."""
    dut = Injector(32, SHORTEST, LONGEST)
    rng = make_rng(seed, "frames")
    good, got, events = [], [], []

    async def put(ctx):
        ctx.set(dut.enable, 1)
        for _ in range(30):
            frame = rng.randbytes(rng.randint(SHORTEST, LONGEST))
            good.append(frame)
            await packet_put(ctx, dut.i, frame, rng=rng)
            broken = {"data": 1, "empty": 0, "last": 0, "error": 0}
            for k in range(rng.randint(1, 15)):
                ctx.set(dut.i.p, {**broken, "first": k == 0})
                ctx.set(dut.i.valid, 1)
                while not (await ctx.tick().sample(dut.i.ready))[2]:
                    pass
            ctx.set(dut.i.valid, 0)
            if stop:
                ctx.set(dut.enable, 0)
                await ctx.tick().repeat(rng.randint(3, 20))
                ctx.set(dut.enable, 1)
        await ctx.tick().repeat(300)

    async def count(ctx):
        while True:
            events.append((await ctx.tick().sample(dut.events))[2])

    async def get(ctx):
        for _ in range(30):
            got.append(await packet_get(ctx, dut.o, rng=make_rng(seed, "get")))

    count.background = True
    run(dut, put, get, count, stream_checker(dut.o), limit=8000, seed=seed)
    assert got == [(frame, False) for frame in good]
    assert sum(e.injected for e in events) == 30
    # The last broken frame is still open unless the shell was stopped.
    assert sum(e.refused for e in events) == (30 if stop else 29)


@pytest.mark.parametrize("store", [False, True])
def test_a_role_and_the_wire_share_the_line(store):
    """Shortest frames through, longest ones from the role, both all the time: half each."""
    dut = BridgeLane(64, store_and_forward=store)
    beats = [0, 0]

    def flood(stream, byte, size):
        async def put(ctx):
            while True:
                await packet_put(ctx, stream, bytes([byte] * size))

        put.background = True
        return put

    async def get(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.tx.ready, 1)
        await ctx.tick().repeat(800)
        for _ in range(2500):
            _, _, valid, beat = await ctx.tick().sample(dut.tx.valid, dut.tx.p)
            assert valid, "a cycle is lost"
            beats[beat.data & 1] += 1

    run(dut, flood(dut.rx, 0, 60), flood(dut.inject, 1, 1514), get, limit=4000)
    assert min(beats) / sum(beats) > 0.42


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bridge(48), r"Data path width must be one of \(32, 64, 128\) bits, not 48"),
        (lambda: Bridge(latency=0), "Latency of the tap must be an integer >= 1, not 0"),
        (lambda: Bridge(shortest=0), "Shortest frame must be an integer of at least 1, not 0"),
        (lambda: Bridge(longest=59), "Longest frame must be .* at least 60 bytes, not 59"),
        (lambda: Bridge(depth=64), "Depth .* at least the 190 beats of the longest frame, not 64"),
        (lambda: Injector(depth=128), "Store must have at least the 190 beats .*, not 128"),
        (lambda: FairMux(quantum=0), "Quantum must be an integer of at least 1, not 0"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
