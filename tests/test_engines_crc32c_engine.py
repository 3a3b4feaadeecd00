"""The CRC-32C engine against its model, and the known value."""

import pytest
from streams import make_rng, run, seeds, stream_checker
from test_engines_stage import drain, feed, packets
from trebuchet.cores.engines.crc32c.engine import Crc32cEngine
from trebuchet.models import crc32c


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("check", [False, True])
@seeds(2)
def test_crc32c_equals_its_model(width, check, seed):
    dut, rng, got = Crc32cEngine(width, check), make_rng(seed, "packets"), []
    given = packets(rng, 60)
    expected = [crc32c.result(*packet, check=check) for packet in given]
    wrong = sum(bad and not error for (_, bad), (_, error) in zip(expected, given, strict=True))

    async def count(ctx):
        while len(got) < len(given):
            await ctx.tick()
        assert ctx.get(dut.csr.wrong) == (wrong if check else 0)

    async def mode(ctx):
        ctx.set(dut.csr.check, check)

    put, get = feed(dut.i, given, make_rng(seed, "put")), drain(dut.o, got, 60, make_rng(seed, "o"))
    run(dut, mode, put, get, count, stream_checker(dut.o), limit=20_000, seed=seed)
    assert got == expected
    assert not check or 0 < wrong < len(given)


def test_crc32c_has_the_known_value():
    """RFC 3720, B.4, and the usual one."""
    assert crc32c.crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c.crc32c(bytes([0xFF] * 32)) == 0x62A8AB43
    assert crc32c.crc32c(b"123456789") == 0xE3069283
