"""``TapListener``: frames for the station come out whole, the others pass; who sends is learnt."""

import pytest
from streams import beats_of, make_rng, packet_get, run, seeds, stream_checker
from trebuchet.cores.bridge.listener import TapListener

MAC = bytes.fromhex("02aabbccdd01")
GROUP = b"\x01\x00\x5e\x00\x00\x01"


def put(dut, frames, rng, done):
    """A bench at the place of a tap of latency 1; ``done(ctx, number)`` behind each frame."""

    async def bench(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        for number, (frame, error) in enumerate(frames):
            drops = []
            for beat in beats_of(frame, dut.width, error=error, rng=rng):
                while rng.random() < 0.3:
                    ctx.set(dut.tap.valid, rng.getrandbits(1))
                    ctx.set(dut.tap.step, 0)
                    if not ctx.get(dut.tap.valid):
                        ctx.set(dut.tap.step, rng.getrandbits(1))
                    await ctx.tick()
                ctx.set(dut.tap.beat, beat)
                ctx.set(dut.tap.valid, 1)
                ctx.set(dut.tap.step, 1)
                await ctx.tick()
                ctx.set(dut.tap.valid, 0)
                ctx.set(dut.tap.step, 0)
                drops.append(ctx.get(dut.tap.drop))
            await done(ctx, number, any(drops))
        await ctx.tick().repeat(100)

    return bench


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(2)
def test_takes_what_is_for_the_station(width, seed):
    dut, rng, n = TapListener(width), make_rng(seed, f"frames {width}"), width // 8
    near = [bytes(b ^ (2 << rng.randrange(7) if k == at else 0) for k, b in enumerate(MAC))
            for at in range(6)]  # fmt: skip
    frames, wanted, sources, drops = [], [], [], []
    source = bytes(6)
    for _ in range(60):
        to = rng.choice([MAC, MAC, GROUP, *near])
        origin = rng.choice([b"\x00", b"\x00", b"\x01"]) + rng.randbytes(5)
        frame = to + origin + rng.randbytes(rng.choice([0, 1, 5, 30]))
        error = rng.random() < 0.15
        frames.append((frame, error))
        # The last beat must not be that in which the destination ends.
        if to in (MAC, GROUP) and not error and len(frame) > -(-6 // n) * n:
            wanted.append((frame, False))
        if not origin[0] & 1 and not error and len(frame) > -(-12 // n) * n:
            source = origin
        sources.append(source)
        drops.append(to == MAC)
    got, lost = [], []

    async def done(ctx, number, dropped):
        assert ctx.get(dut.source).to_bytes(6, "little") == sources[number]
        assert dropped == drops[number]

    async def get(ctx):
        for _ in wanted:
            got.append(await packet_get(ctx, dut.o, rng=make_rng(seed, len(got))))

    async def watch(ctx):
        async for _, _, one in ctx.tick().sample(dut.lost):
            lost.append(one)

    watch.background = True
    benches = put(dut, frames, rng, done), get, watch, stream_checker(dut.o)
    run(dut, *benches, limit=6000, seed=seed)
    assert got == wanted
    assert not any(lost)


def test_a_frame_without_room_is_lost_whole():
    """Said once for each that was for the station; others cost nothing."""
    dut, rng, lost = TapListener(32, depth=16), make_rng(0, "room"), []
    mine, other = MAC + bytes(34), bytes(40)
    frames = [(mine, False)] + [(frame, False) for frame in (mine, other, mine, other)]

    async def done(ctx, number, _):
        await ctx.tick()

    async def watch(ctx):
        async for _, _, one in ctx.tick().sample(dut.lost):
            lost.append(one)

    async def get(ctx):
        await ctx.tick().repeat(120)
        assert await packet_get(ctx, dut.o) == (mine, False)
        for _ in range(20):
            assert not ctx.get(dut.o.valid)
            await ctx.tick()

    watch.background = True
    run(dut, put(dut, frames, rng, done), watch, get, limit=1000)
    assert sum(lost) == 2
