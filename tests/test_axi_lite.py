"""Registers behind AXI4-Lite: access by byte, strobes, errors, the address map."""

import re

import pytest
from axi_bench import axi_lite_read, axi_lite_write
from soc_placeholder import SHELL_BLOCK
from streams import (
    run,
    stream_checker,
)
from trebuchet.cores.axi_lite import AxiLiteRegisters, register_map
from trebuchet.cores.csr import Register, RegisterBlock
from trebuchet.cores.csr_map import register_offsets

OTHER = RegisterBlock("other", (Register("level", "rw", 16, reset=5),))


def _registers(script, *more):
    """Run ``script(ctx, write, read)``: coroutines that write and read by block and name."""
    dut = AxiLiteRegisters([SHELL_BLOCK, OTHER])
    bus = dut.bus
    at = {
        (block.name, name): base + offset
        for block, base in dut.regions
        for name, offset in register_offsets(block).items()
    }

    async def bench(ctx):
        async def write(block, name, value, high=0, strb=15):
            addr = at[block, name] + 4 * high if name is not None else block
            return await axi_lite_write(ctx, bus, addr, value, strb)

        async def read(block, name, high=0):
            addr = at[block, name] + 4 * high if name is not None else block
            return await axi_lite_read(ctx, bus, addr)

        await script(ctx, write, read)

    checkers = [stream_checker(bus.b, "b"), stream_checker(bus.r, "r")]
    run(dut, bench, *checkers, *(make(dut) for make in more), limit=2_000)


def test_stored_registers_read_back_byte_by_byte():
    async def script(ctx, write, read):
        assert await read("other", "level") == (5, 0)
        assert await write("shell", "mac", 0x03020100) == 0
        await write("shell", "mac", 0xFFFF0504, high=1)
        assert await read("shell", "mac") == (0x03020100, 0)
        assert await read("shell", "mac", 1) == (0x0504, 0)
        await write("shell", "mac", 0xAABBCCDD, strb=0b0101)
        assert await read("shell", "mac") == (0x03BB01DD, 0)
        assert await read("other", "level") == (5, 0)

    _registers(script)


def test_strobes_last_a_cycle_and_take_effect_with_the_high_word():
    seen = []

    def watch(dut):
        async def bench(ctx):
            port = dut.csr_shell
            async for _, _, start, clear in ctx.tick().sample(port.start, port.alarm_clear):
                if start or clear:
                    seen.append((start, clear))

        bench.background = True
        return bench

    async def script(ctx, write, read):
        await write("shell", "start", 9)
        assert seen == []
        await write("shell", "start", 1 << 31, high=1)
        await write("shell", "alarm", 8)
        await write("shell", "alarm", 0x100, high=1, strb=1)
        assert await read("shell", "start") == (0, 0)
        assert await write("shell", "ticks", 7) == 0

    _registers(script, watch)
    assert seen == [(1 << 63 | 9, 0), (0, 8)]


def test_what_is_not_there_is_an_error():
    async def script(ctx, write, read):
        assert await read(0x24, None) == (0, 2)
        assert await write(0x3C, None, 1) == 2
        assert await read("shell", "ticks") == (0, 0)

    _registers(script)


def test_the_map_aligns_blocks_to_their_size():
    blocks = [OTHER, SHELL_BLOCK]
    assert [base for _, base in register_map(blocks)] == [0, 64]
    names = "['other', 'other']"
    with pytest.raises(
        ValueError, match=f"^Register blocks must have different names, not {re.escape(names)}$"
    ):
        AxiLiteRegisters([OTHER, OTHER])
