"""FrameGuard: only whole, undamaged frames of legal length pass, each counted once."""

import pytest
from streams import make_rng, packet_get, packet_put, run, seeds, stream_checker
from trebuchet.cores.net.guard import GUARD_BLOCK, FrameGuard

LENGTHS = [1, 3, 4, 42, 59, 60, 61, 64, 1513, 1514, 1515, 1518, 2047, 2048, 2049, 5000]


def _counter_of(length, error):
    if length > 1514:
        return "long"
    if error:
        return "damaged"
    return "short" if length < 60 else "frames"


@seeds(2)
@pytest.mark.parametrize("width", [32, 64])
def test_passes_good_frames_in_order_and_counts_the_others(width, seed):
    rng = make_rng(seed, "frames")
    dut = FrameGuard(width)
    lengths = LENGTHS + [rng.randint(1, 1600) for _ in range(8)]
    rng.shuffle(lengths)
    frames = [(rng.randbytes(n), rng.random() < 0.3) for n in lengths]
    good = [data for data, error in frames if _counter_of(len(data), error) == "frames"]
    expected = {name: 0 for name in ("frames", "short", "long", "damaged")}
    for data, error in frames:
        expected[_counter_of(len(data), error)] += 1

    async def put(ctx):
        pauses = make_rng(seed, "put")
        for data, error in frames:
            await packet_put(ctx, dut.i, data, error=error, rng=pauses, idle=0.1)
        await ctx.tick().repeat(4)
        assert {
            r.name: ctx.get(getattr(dut.csr, r.name)) for r in GUARD_BLOCK.registers
        } == expected

    async def get(ctx):
        pauses = make_rng(seed, "get")
        for data in good:
            assert await packet_get(ctx, dut.o, rng=pauses, stall=0.2) == (data, False)

    run(dut, put, get, stream_checker(dut.o, "o"), limit=40_000, seed=seed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shortest": 0}, "^Shortest frame must be at least 1 byte, not 0$"),
        ({"longest": 59}, "^Longest frame must be from 60 to 2044 bytes, not 59$"),
        ({"longest": 9000}, "^Longest frame must be from 60 to 2044 bytes, not 9000$"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FrameGuard(**arguments)
