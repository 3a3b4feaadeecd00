"""``MssOption``: the walk through a header's options, against one byte by byte."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.tcp.options import MssOption
from trebuchet.models.net import find_options


def random_options(rng):
    """Up to 40 bytes of options that are right, cut, of a wrong length or noise."""
    parts = [
        lambda: b"\x02\x04" + rng.randbytes(2),
        lambda: bytes([3, 3, rng.randrange(20)]),
        lambda: b"\x04\x02",
        lambda: b"\x01",
        lambda: b"\x08\x0a" + rng.randbytes(8),
        lambda: bytes([rng.randrange(6), rng.randrange(7)]) + rng.randbytes(2),
        lambda: bytes([rng.choice([0, 1, 2, 3, 4, 255])]),
    ]
    size, text = 4 * rng.randrange(11), b""
    weights = [5, 4, 4, 4, 2, 2, 1]
    while len(text) < size:
        text += rng.choices(parts, weights)[0]()
    return text[:size]


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("more", [False, True])
@seeds(2)
def test_equals_a_walk_byte_by_byte(lanes, more, seed):
    """Headers with and without gaps between their words; nothing is left of the one before."""
    dut, rng = MssOption(lanes, scaling=more, sack=more), make_rng(seed, f"options {lanes}")
    found = set()

    async def bench(ctx):
        for _ in range(150):
            options = random_options(rng)
            words = [
                int.from_bytes(options[k : k + 4], "little") for k in range(0, len(options), 4)
            ]
            skipped = rng.randrange(lanes)  # lanes before the first word of options
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            at = -skipped
            while at < len(words):
                here = [words[k] if 0 <= k < len(words) else None for k in range(at, at + lanes)]
                ctx.set(dut.en, sum((w is not None) << k for k, w in enumerate(here)))
                after = [0 <= k + 1 < len(words) for k in range(at, at + lanes)]
                ctx.set(dut.more, sum(bit << k for k, bit in enumerate(after)))
                noise = [rng.getrandbits(32) if w is None else w for w in here]
                ctx.set(dut.data, sum(w << 32 * k for k, w in enumerate(noise)))
                following = words[at + lanes] if 0 <= at + lanes < len(words) else 0
                ctx.set(dut.next, following)
                await ctx.tick()
                at += lanes
                if rng.random() < 0.3:
                    ctx.set(dut.en, 0)
                    await ctx.tick()
            ctx.set(dut.en, 0)
            await ctx.tick().repeat(2)
            fields = find_options(options)
            mss, scale = fields["mss"], fields.get("scale")
            permits = fields.get("permits", False)
            assert ctx.get(dut.mss) == mss, options.hex()
            if more:
                assert ctx.get(dut.scaled) == (scale is not None), options.hex()
                assert ctx.get(dut.permits) == permits, options.hex()
                if scale is not None:
                    assert ctx.get(dut.scale) == scale, options.hex()
            found.add((mss != 0, scale is not None, permits))

    run(dut, bench, limit=5000, seed=seed)
    assert len(found) == 8
