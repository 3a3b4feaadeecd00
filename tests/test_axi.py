"""Memory ports on AXI4, and registers behind AXI4-Lite, against naive models of the other side."""

import re

import pytest
from axi_bench import PAGE, AxiMemory
from streams import (
    MemoryRequester,
    make_rng,
    run,
    seeds,
    stream_checker,
)
from trebuchet.cores.axi import AxiMaster, AxiSignature
from trebuchet.cores.axi_lite import AxiLiteSignature


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
