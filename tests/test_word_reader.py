"""Words of a flash read ahead: the reader alone on bytes that come at random, and on a flash."""

import zlib

import pytest
from part_sizes import at_sizes
from streams import make_rng, run, seeds
from trebuchet.cores.word_reader import WordReader

LIMIT = 60_000


@pytest.mark.parametrize("width", [2, 33, 8.0, True])
def test_refuses_wrong_widths(width):
    with pytest.raises(ValueError, match=rf"^count_width must be 3 to 32, not {width}$"):
        WordReader(width)


def source_of(dut, data, rng):
    """Background bench: a byte after 1 to 5 cycles of ``busy``; at times one of somebody else."""

    async def run_source(ctx):
        left, coming, given = 0, None, iter(data)
        while True:
            starts = ctx.get(dut.start)
            assert not (starts and left), "started while one is under way"
            if starts:
                coming = next(given)
            elif not left and not ctx.get(dut.active) and rng.random() < 0.2:
                starts, coming = True, rng.randrange(256)
            await ctx.tick()
            left = rng.randint(1, 5) if starts else max(0, left - 1)
            ctx.set(dut.busy, left > 0)
            ctx.set(dut.byte, rng.randrange(256) if left else coming or 0)

    run_source.background = True
    return run_source


async def read(ctx, csr, count, rng=None):
    """Start a read of ``count`` bytes and take its words, as firmware does; returns them."""
    ctx.set(csr.count, count)
    await ctx.tick()
    ctx.set(csr.count, 0)
    return await take(ctx, csr, count, rng)


async def take(ctx, csr, count, rng):
    words = b""
    while len(words) < count:
        if ctx.get(csr.valid):
            words += ctx.get(csr.word).to_bytes(4, "little")
            ctx.set(csr.next, 1)
        await ctx.tick()
        ctx.set(csr.next, 0)
        for _ in range(rng.choice((0, 0, 1, 40)) if rng else 0):
            await ctx.tick()
    return words


@at_sizes("word_reader.WordReader")
@seeds(2)
def test_words_are_the_bytes_in_order(size, seed):
    """Reads of all small lengths, one after the other; some are given up for the next."""
    rng, dut = make_rng(seed, "words"), WordReader(**size)
    reads = [(count, rng.random() < 0.2) for count in [*range(1, 14), 5, 8]]
    sent = iter(rng.randbytes(4000))
    log = []

    def recorded():
        for byte in sent:
            log.append(byte)
            yield byte

    async def firmware(ctx):
        for count, broken in reads:
            if broken:
                ctx.set(dut.csr.count, count)
                await ctx.tick()
                ctx.set(dut.csr.count, 0)
                for _ in range(rng.randrange(30)):
                    await ctx.tick()
            ctx.set(dut.csr.count, count)
            await ctx.tick()
            ctx.set(dut.csr.count, 0)
            log.clear()
            words = await take(ctx, dut.csr, count, rng)
            data = bytes(log)
            assert words == data.ljust(-(-count // 4) * 4, b"\0")
            assert len(data) == count
            assert ctx.get(dut.csr.crc) == zlib.crc32(data)
            assert not ctx.get(dut.active)

    run(dut, firmware, source_of(dut, recorded(), rng), limit=LIMIT, seed=seed)
