"""``SpiFlash`` reads a flash, at the speed that its data sheet says."""

import zlib

import pytest
from nor_model import NorModel
from streams import make_rng, run, seeds
from test_spi_controller import exchange, slave
from test_word_reader import LIMIT, take
from trebuchet.cores.spi_flash import SpiFlash

READ = 0x03


@pytest.mark.parametrize("half_period", [1, 2])
@seeds(1)
def test_reads_a_flash(half_period, seed):
    """As firmware does it, with bytes that it sends meanwhile ignored; then by bytes again."""
    rng = make_rng(seed, "flash")
    dut, flash = SpiFlash(half_period), NorModel(1 << 16)
    contents = rng.randbytes(30)
    flash.data[0x1234 : 0x1234 + 30] = contents

    async def start(ctx):
        ctx.set(dut.csr.control, 1)
        await ctx.tick()
        for byte in (READ, 0, 0x12, 0x34):
            await exchange(ctx, dut, byte, None)

    async def firmware(ctx):
        for count in (30, 7):
            await start(ctx)
            ctx.set(dut.words.count, count)
            await ctx.tick()
            ctx.set(dut.words.count, 0)
            ctx.set(dut.csr.send, 0x155)
            words = await take(ctx, dut.words, count, rng)
            ctx.set(dut.csr.send, 0)
            while ctx.get(dut.csr.received) >> 8:  # the byte sent after the read
                await ctx.tick()
            ctx.set(dut.csr.control, 0)
            await ctx.tick()
            assert words[:count] == contents[:count]
            assert not any(words[count:])
            assert ctx.get(dut.words.crc) == zlib.crc32(contents[:count])
        await start(ctx)
        assert (await exchange(ctx, dut, 0, None))[0] == contents[0]

    run(dut, firmware, slave(dut, flash), limit=LIMIT, seed=seed)


@pytest.mark.parametrize("half_period", [1, 3])
def test_a_byte_takes_a_cycle_more_than_the_controller_needs(half_period):
    dut = SpiFlash(half_period)

    async def firmware(ctx):
        ctx.set(dut.words.count, 400)
        await ctx.tick()
        ctx.set(dut.words.count, 0)
        cycles = 0
        for _ in range(100):
            while not ctx.get(dut.words.valid):
                await ctx.tick()
                cycles += 1
            ctx.set(dut.words.next, 1)
            await ctx.tick()
            cycles += 1
            ctx.set(dut.words.next, 0)
        assert cycles <= 400 * (16 * half_period + 1) + 8

    run(dut, firmware, limit=LIMIT)
