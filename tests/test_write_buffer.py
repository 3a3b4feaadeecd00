"""The write buffer: data before their command goes on, at the default size; slow requesters."""

import pytest
from part_sizes import at_sizes
from streams import MemoryRequester, MemoryResponder, make_rng, run, seeds, stream_checker
from test_memory_model import random_traffic
from trebuchet.cores.write_buffer import WriteBuffer

SIZE = 4096


def _prompt(port):
    """Once a write command has gone, its data are on offer in every cycle, and never else."""

    async def bench(ctx):
        owed = 0
        async for _, _, taken, beats, valid, ready, last in ctx.tick().sample(
            port.cmd.valid & port.cmd.ready & port.cmd.payload.write,
            port.cmd.payload.beats,
            port.wdata.valid,
            port.wdata.ready,
            port.wdata.payload.last,
        ):
            assert valid == (owed != 0)
            assert not valid or last == (owed == 1)
            owed += (beats + 1 if taken else 0) - (valid & ready)

    bench.background = True
    return bench


@pytest.mark.parametrize(("width", "beats"), [(32, 16), (64, 16), (32, 64)])
@seeds(2)
def test_contents(width, beats, seed):
    dut = WriteBuffer(width, 1, beats)
    memory = bytearray(make_rng(seed, "memory").randbytes(SIZE))
    reference = bytearray(memory)
    responder = MemoryResponder(dut.o, memory, rng=make_rng(seed, "responder"))
    requester = MemoryRequester(dut.i, rng=make_rng(seed, "requester"))
    rng = make_rng(seed, "traffic")
    traffic = random_traffic(requester, reference, rng, rounds=8, tags=2, region=(0, SIZE))
    checks = [stream_checker(dut.o.cmd), stream_checker(dut.o.wdata), _prompt(dut.o)]
    run(dut, traffic, requester, responder, *checks, limit=6_000, seed=seed)
    assert memory == reference


@at_sizes("write_buffer.WriteBuffer")
def test_longest_bursts_at_full_rate(size):
    """Bursts of as many beats as there are, back to back: three cycles each beside their data."""
    dut = WriteBuffer(**size)
    n, beats, count = size["width"] // 8, size["beats"], 6
    memory = bytearray(1 << 14)
    responder = MemoryResponder(dut.o, memory, latency=(4, 4))
    requester = MemoryRequester(dut.i)
    content = make_rng(0, "content").randbytes(count * beats * n)

    async def bench(ctx):
        step = beats * n
        bursts = [
            requester.start_write(at, content[at : at + step], 0)
            for at in range(0, len(content), step)
        ]
        await requester.wait(ctx, *bursts)

    cycles = run(dut, bench, requester, responder, _prompt(dut.o), limit=2000)
    assert memory[: len(content)] == content
    assert cycles <= (count + 1) * beats + 4 * count + 20


def test_a_write_whose_data_stop_is_never_offered():
    """It takes no room at the memory; reads pass it."""
    dut = WriteBuffer(32, 2)
    responder = MemoryResponder(dut.o, bytearray(b"abcd" * 16), latency=(4, 4))
    requester = MemoryRequester(dut.i)
    requester._supplies = lambda: len(requester._data[0]) > 1  # all but the last beat

    async def bench(ctx):
        requester.start_write(0, bytes(32), 0)
        await ctx.tick().repeat(40)
        assert await requester.read(ctx, 4, 2, 1) == b"abcd" * 2
        assert [burst.write for burst in responder.log] == [0]

    run(dut, bench, requester, responder, limit=200)


@pytest.mark.parametrize("beats", [0, 1, 65, None])
def test_bad_parameters(beats):
    with pytest.raises(ValueError, match=f"Beats must be 2 to 64, not {beats}"):
        WriteBuffer(32, 2, beats)
