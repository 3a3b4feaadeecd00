"""``Speck`` against its model, and that against the published vector."""

from streams import (
    make_rng,
    run,
    seeds,
)
from trebuchet.cores.tcp.speck import ROUNDS, Speck
from trebuchet.models.tcp import speck64_128


def test_speck_model_matches_published_vector():
    """ePrint 2013/404, appendix C."""
    key = 0x1B1A1918_13121110_0B0A0908_03020100
    assert speck64_128(0x3B726574_7475432D, key) == 0x8C6FA548_454E028B


@seeds(2)
def test_speck(seed):
    dut, rng = Speck(), make_rng(seed, "speck")

    async def bench(ctx):
        for _ in range(5):
            block, key = rng.getrandbits(64), rng.getrandbits(128)
            ctx.set(dut.block, block)
            ctx.set(dut.key, key)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for rounds in range(ROUNDS + 1):
                assert ctx.get(dut.rounds) == rounds
                assert ctx.get(dut.result) == speck64_128(block, key, rounds)
                await ctx.tick()
            assert ctx.get(dut.result) == speck64_128(block, key)

    run(dut, bench, limit=500, seed=seed)
