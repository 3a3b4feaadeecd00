"""The SPI controller, with a flash at its pins."""

import pytest
from amaranth.hdl import Module, Signal
from nor_model import NorModel
from streams import make_rng, run, seeds
from trebuchet.boards.flash import Flash
from trebuchet.cores.spi_controller import SpiController

GO = BUSY = 1 << 8
LIMIT = 60_000


@pytest.mark.parametrize("half_period", [0, 257, 1.5, True])
def test_refuses_wrong_periods(half_period):
    with pytest.raises(ValueError, match=rf"^SPI half_period must be 1 to 256, not {half_period}$"):
        SpiController(half_period)


def slave(dut, flash):
    """Background bench: the flash's side of mode 0. Its output changes after the clock fell."""

    async def run_slave(ctx):
        clk, bits, byte, out = 0, 0, 0, 0xFF
        while True:
            cs_n, new, mosi = ctx.get(dut.cs_n), ctx.get(dut.sck), ctx.get(dut.mosi)
            if cs_n and flash.selected:
                assert bits == 0, "deselected within a byte"
            if not cs_n and not flash.selected:
                clk = new
                out = 0xFF
            flash.select(not cs_n)
            if new and not clk:
                byte = (byte << 1 | mosi) & 0xFF
                bits += 1
                if bits == 8:
                    flash.take(byte)
                    bits = 0
            if clk and not new:
                out = flash.answer() if bits == 0 else out << 1
            clk = new
            ctx.set(dut.miso, out >> 7 & 1)
            await ctx.tick()

    run_slave.background = True
    return run_slave


async def exchange(ctx, dut, byte, rng):
    """Send a byte as firmware does; returns the one that came and the cycles that it took."""
    ctx.set(dut.csr.send, GO | byte)
    await ctx.tick()
    ctx.set(dut.csr.send, 0)
    cycles = 0
    while ctx.get(dut.csr.received) & BUSY:
        if rng and rng.random() < 0.3:  # refused: a byte is under way
            ctx.set(dut.csr.send, GO | rng.randrange(256))
        await ctx.tick()
        ctx.set(dut.csr.send, 0)
        cycles += 1
    for _ in range(rng.randrange(4) if rng else 0):
        await ctx.tick()
    return ctx.get(dut.csr.received), cycles


async def command(ctx, dut, sent, answers, rng):
    ctx.set(dut.csr.control, 1)
    await ctx.tick()
    for byte in sent:
        await exchange(ctx, dut, byte, rng)
    came = [(await exchange(ctx, dut, 0, rng))[0] for _ in range(answers)]
    ctx.set(dut.csr.control, 0)
    await ctx.tick()
    return bytes(came)


@pytest.mark.parametrize("half_period", [1, 2, 5])
@seeds(2)
def test_reads_and_writes_a_flash(half_period, seed):
    rng = make_rng(seed, "flash") if seed else None
    dut, flash = SpiController(half_period), NorModel(1 << 16)
    contents = bytes(make_rng(seed, "contents").randbytes(20))
    flash.data[0x1234 : 0x1234 + 20] = contents

    async def firmware(ctx):
        assert await command(ctx, dut, [0x9F], 3, rng) == NorModel.ID
        assert await command(ctx, dut, [0x03, 0, 0x12, 0x34], 20, rng) == contents
        await command(ctx, dut, [0x06], 0, rng)
        assert await command(ctx, dut, [0x05], 1, rng) == b"\x02"
        await command(ctx, dut, [0x02, 0, 0x20, 0x00, *contents], 0, rng)
        while (await command(ctx, dut, [0x05], 1, rng))[0] & 1:
            pass
        assert flash.data[0x2000 : 0x2000 + 20] == contents

    run(dut, firmware, slave(dut, flash), limit=LIMIT, seed=seed)


@pytest.mark.parametrize("half_period", [1, 4])
def test_a_byte_takes_eight_clocks(half_period):
    dut = SpiController(half_period)

    async def firmware(ctx):
        _, cycles = await exchange(ctx, dut, 0x5A, None)
        assert cycles == 16 * half_period

    run(dut, firmware, limit=LIMIT)


def test_miso_is_taken_a_whole_clock_after_it_was_asked_for():
    """The flash may answer as late as just before the clock falls again."""
    dut = SpiController(2)
    m, late = Module(), Signal(3)
    m.submodules.dut = dut
    m.d.sync += late.eq(dut.mosi << 2 | late >> 1)  # three cycles late: it still counts
    m.d.comb += dut.miso.eq(late[0])

    async def firmware(ctx):
        received, _ = await exchange(ctx, dut, 0xC5, None)
        assert received == 0xC5

    run(m, firmware, limit=LIMIT)


@pytest.mark.parametrize(
    ("clock", "max_hz", "half_period"),
    [(50e6, 25e6, 1), (50e6, 24e6, 2), (125e6, 25e6, 3), (1e6, 25e6, 1)],
)
def test_the_clock_is_no_faster_than_the_flash(clock, max_hz, half_period):
    flash = Flash(size=1 << 20, max_hz=int(max_hz))
    assert flash.half_period(int(clock)) == half_period
