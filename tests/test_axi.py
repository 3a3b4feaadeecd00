"""Memory ports on AXI4, and registers behind AXI4-Lite, against naive models of the other side."""

import re

import pytest
from axi_bench import PAGE, AxiMemory, axi_lite_read, axi_lite_write
from soc_placeholder import SHELL_BLOCK
from streams import (
    MemoryRequester,
    make_rng,
    run,
    seeds,
    stream_checker,
)
from trebuchet.cores.axi import AxiMaster, AxiSignature
from trebuchet.cores.axi_lite import AxiLiteRegisters, AxiLiteSignature, register_map
from trebuchet.cores.csr import Register, RegisterBlock
from trebuchet.cores.csr_map import register_offsets


def _make(width=32, tag_width=2, rng=None, size=4 * PAGE, bad=()):
    dut = AxiMaster(width, tag_width)
    memory = bytearray(range(256)) * (size // 256)
    return dut, memory, AxiMemory(dut.axi, memory, rng, bad=bad)


@seeds(3)
@pytest.mark.parametrize("width", [32, 64, 128])
def test_reads_and_writes_of_any_place_and_length(width, seed):
    """Regions of one round do not overlap; half of the bursts lie around a page's end."""
    rng = make_rng(seed, "script")
    dut, memory, model = _make(width, rng=make_rng(seed, "axi"))
    requester = MemoryRequester(dut.mem, rng=make_rng(seed, "requester"))
    expected, n = bytearray(memory), width // 8

    async def script(ctx):
        for _ in range(6):
            jobs = []
            for page in rng.sample(range(4), 3):
                near = page * PAGE - rng.randrange(64) * n
                addr = near % len(memory) if rng.random() < 0.5 else page * PAGE + 2048
                beats, tag = rng.choice((1, 2, 64, rng.randint(1, 64))), rng.randrange(4)
                if rng.random() < 0.5:
                    content = rng.randbytes(beats * n)
                    strb = [rng.randrange(1 << n) for _ in range(beats)]
                    for i, byte in enumerate(content):
                        if strb[i // n] >> i % n & 1:
                            expected[(addr + i) % len(memory)] = byte
                    jobs.append((requester.start_write(addr, content, tag, strb), None))
                else:
                    at = [(addr + i) % len(memory) for i in range(beats * n)]
                    jobs.append(
                        (
                            requester.start_read(addr, beats, tag),
                            bytes(map(expected.__getitem__, at)),
                        )
                    )
            await requester.wait(ctx, *(burst for burst, _ in jobs))
            for burst, want in jobs:
                assert want is None or requester.content(burst) == want
            assert memory == expected

    checkers = [stream_checker(getattr(dut.axi, name), name) for name in ("aw", "w", "ar")]
    checkers += [stream_checker(dut.mem.rdata, "rdata"), stream_checker(dut.mem.wdone, "wdone")]
    run(dut, script, requester, model, *checkers, limit=20_000, seed=seed)


def test_wdone_means_that_a_later_read_sees_the_data():
    rng = make_rng(0, "script")
    dut, memory, model = _make(rng=make_rng(0, "axi"))
    requester = MemoryRequester(dut.mem, rng=make_rng(0, "requester"))

    async def script(ctx):
        for _ in range(15):
            addr, beats = PAGE - 4 * rng.randrange(16), rng.randint(1, 16)
            content = rng.randbytes(4 * beats)
            await requester.write(ctx, addr, content, tag=rng.randrange(4))
            assert memory[addr : addr + len(content)] == content
            assert await requester.read(ctx, addr, beats, tag=rng.randrange(4)) == content

    run(dut, script, requester, model, limit=20_000)


def test_a_beat_a_cycle_each_way():
    dut, _, model = _make()
    requester = MemoryRequester(dut.mem)

    async def script(ctx):
        bursts = [requester.start_read(256 * i, 64) for i in range(8)]
        bursts += [requester.start_write(8192 + 256 * i, bytes(256)) for i in range(8)]
        await requester.wait(ctx, *bursts)

    cycles = run(dut, script, requester, model, limit=5_000)
    assert cycles < 8 * 64 * 2 + 60
    assert len(model.bursts) == 16


def test_bad_addresses_are_reported_and_answered():
    dut, _, model = _make(bad=(256, 512))
    requester = MemoryRequester(dut.mem)
    seen = [0, 0]

    async def script(ctx):
        await requester.read(ctx, 256, 2)
        await requester.write(ctx, 512, bytes(8))
        await requester.read(ctx, 1024, 2)
        await ctx.tick()

    async def watch(ctx):
        async for _, _, errors in ctx.tick().sample(dut.errors):
            seen[0] += errors & 1
            seen[1] += errors >> 1

    watch.background = True
    run(dut, script, requester, model, watch, limit=500)
    assert seen == [1, 1]


@pytest.mark.parametrize("count", [1, 65, "8"])
def test_bad_parameters_are_refused(count):
    with pytest.raises(
        ValueError, match=f"^Outstanding bursts must be 2 to 64, not {re.escape(repr(count))}$"
    ):
        AxiMaster(outstanding=count)


def test_signatures_compare_by_their_parameters():
    assert AxiSignature(64) == AxiSignature(64) != AxiSignature(32)
    assert AxiLiteSignature(8) == AxiLiteSignature(8) != AxiLiteSignature(9)


# --- registers ------------------------------------------------------------------------------------

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
