"""``EthernetStrip``: what follows the header, of frames of every length, without a gap between."""

import pytest
from streams import make_rng, packet_put, run, seeds
from trebuchet.cores.net.strip import EthernetStrip


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("prompt", [True, False])
@seeds(2)
def test_payload_is_the_frames(width, prompt, seed):
    dut, rng = EthernetStrip(width), make_rng(seed, f"frames {width}")
    n = width // 8
    sizes = [*range(1, 14 + 3 * n), *(rng.randrange(15, 90) for _ in range(10))]
    rng.shuffle(sizes)
    frames = [(rng.randbytes(size), rng.random() < 0.2) for size in sizes]
    head = 14 // n  # a frame yields beats if it goes on past this one
    expected = [(f[14:], bad, f[6:12], f[12:14]) for f, bad in frames if len(f) > n * (head + 1)]
    got, runts = [], 0

    async def put(ctx):
        for frame, bad in frames:
            await packet_put(ctx, dut.i, frame, error=bad, rng=None if prompt else rng)
        await ctx.tick().repeat(4)

    async def get(ctx):
        nonlocal runts
        data = b""
        names = ("data", "first", "last", "bytes", "error", "mac", "type", "runt", "valid")
        samples = [getattr(dut, name) for name in names]
        async for (
            _,
            _,
            word,
            first,
            last,
            count,
            error,
            mac,
            kind,
            runt,
            valid,
        ) in ctx.tick().sample(*samples):
            runts += runt
            if not valid:
                continue
            assert first == (not data)
            if first:
                address = mac.to_bytes(6, "little"), kind.to_bytes(2, "big")
            assert not last or 1 <= count <= n
            data += word.to_bytes(n, "little")[: count if last else n]
            if last:
                got.append((data, bool(error), *address))
                data = b""

    get.background = True
    run(dut, put, get, limit=6000, seed=seed)
    assert got == expected
    assert runts == len(frames) - len(expected) > 0
