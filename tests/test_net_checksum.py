"""Running Internet checksum against the naive model and RFC 1071."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.net.checksum import Checksum
from trebuchet.models.net import checksum


def model_sum(octets):
    """The one's complement sum as the gateware gives it: not inverted, low byte first."""
    return int.from_bytes((checksum(octets) ^ 0xFFFF).to_bytes(2, "big"), "little")


def test_model_gives_the_example_of_rfc_1071():
    assert checksum(bytes.fromhex("0001f203f4f5f6f7")) ^ 0xFFFF == 0xDDF2


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(3)
def test_sums_of_back_to_back_blocks(width, seed):
    """Blocks follow each other with random gaps and masks; every sum is right at its own time."""
    rng = make_rng(seed, f"blocks/{width}")
    n = width // 8
    dut = Checksum(width)
    wanted = {}  # cycle -> sum

    async def bench(ctx):
        cycle, octets = 0, b""
        while cycle < 400 or wanted:
            start, en = rng.random() < 0.1, rng.random() < 0.7
            keep = rng.getrandbits(n // 2)
            beat = rng.choice([rng.randbytes(n), b"\xff" * n])
            ctx.set(dut.start, start)
            ctx.set(dut.en, en)
            ctx.set(dut.keep, keep)
            ctx.set(dut.data, int.from_bytes(beat, "little"))
            octets = b"" if start else octets
            if en:
                halves = (beat[2 * i : 2 * i + 2] for i in range(n // 2) if keep >> i & 1)
                octets += b"".join(halves)
            if cycle < 400:
                wanted[cycle + 4] = model_sum(octets)
            if cycle in wanted:
                assert ctx.get(dut.sum) == wanted.pop(cycle), f"cycle {cycle}"
            await ctx.tick()
            cycle += 1

    run(dut, bench, limit=600, seed=seed)


@seeds(2)
def test_total_tells_right_from_wrong(seed):
    """``total`` is 0xFFFF exactly over data with their own checksum; ``extra`` counts in."""
    rng = make_rng(seed, "total")
    dut = Checksum(32)

    async def bench(ctx):
        for number in range(40):
            octets = rng.choice([rng.randbytes(38), b"\xff" * 38, b"\0" * 37 + b"\x01"])
            octets += checksum(octets).to_bytes(2, "big")
            right = number % 2 == 0
            if not right:
                octets = octets[:7] + bytes([octets[7] ^ 0x10]) + octets[8:]
            # The last half word comes in as `extra`.
            ctx.set(dut.extra, int.from_bytes(octets[38:], "little"))
            ctx.set(dut.en, 1)
            for at in range(0, 40, 4):
                ctx.set(dut.start, at == 0)
                ctx.set(dut.keep, 1 if at == 36 else 3)
                ctx.set(dut.data, int.from_bytes(octets[at : at + 4], "little"))
                await ctx.tick()
            ctx.set(dut.en, 0)
            await ctx.tick().repeat(2)
            assert (ctx.get(dut.total) == 0xFFFF) == right

    run(dut, bench, limit=1000, seed=seed)
