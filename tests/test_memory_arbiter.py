"""The memory arbiter: many requesters, one awkward responder, nobody's data mixed up."""

import pytest
from streams import MemoryRequester, MemoryResponder, make_rng, run, seeds, stream_checker
from test_memory_model import random_traffic
from trebuchet.cores.memory_arbiter import MemoryArbiter

REGION = 2048


def _checks(dut):
    mem = dut.mem
    checks = [stream_checker(mem.cmd, "mem.cmd"), stream_checker(mem.wdata, "mem.wdata")]
    for k in range(dut.n):
        checks.append(stream_checker(dut.ports[k].rdata, f"port {k} rdata"))
        checks.append(stream_checker(dut.ports[k].wdone, f"port {k} wdone"))
    return checks


@pytest.mark.parametrize(
    ("n", "width", "rdata_depth"), [(1, 32, 0), (2, 64, 0), (3, 32, 0), (3, 32, 16), (4, 128, 2)]
)
@seeds(2)
def test_every_requester_gets_its_own(n, width, rdata_depth, seed):
    dut = MemoryArbiter(n, width, 1, write_bursts=2, rdata_depth=rdata_depth)
    size = n * REGION
    memory = bytearray(make_rng(seed, "memory").randbytes(1 << (size - 1).bit_length()))
    reference = bytearray(memory)
    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "responder"))
    requesters = [
        MemoryRequester(dut.ports[k], rng=make_rng(seed, f"requester{k}")) for k in range(n)
    ]
    traffic = [
        random_traffic(
            requester,
            reference,
            make_rng(seed, f"traffic{k}"),
            rounds=4,
            tags=2,
            region=(k * REGION, REGION),
        )
        for k, requester in enumerate(requesters)
    ]
    run(dut, *traffic, *requesters, responder, *_checks(dut), limit=8_000, seed=seed)
    assert memory == reference
    assert not responder.busy


def test_reads_pass_write_commands_that_find_no_room():
    """Port 0 has filled the write queue and withholds its data; port 1 still reads."""
    dut = MemoryArbiter(2, 32, 1, write_bursts=2)
    responder = MemoryResponder(dut.mem, bytearray(b"abcdefgh"), latency=(4, 4))
    reader = MemoryRequester(dut.ports[1])

    async def bench(ctx):
        cmd = dut.ports[0].cmd
        ctx.set(cmd.payload, {"write": 1, "addr": 0, "beats": 0, "tag": 0})
        ctx.set(cmd.valid, 1)
        await ctx.tick().repeat(10)
        assert not ctx.get(cmd.ready)
        assert await reader.read(ctx, 4, 1) == b"efgh"

    run(dut, bench, reader, responder, limit=100)


def test_turns_are_fair():
    """Two ports that always ask get the same number of commands."""
    dut = MemoryArbiter(2, 32, 2)
    responder = MemoryResponder(dut.mem, bytearray(1024), latency=(4, 4))
    requesters = [MemoryRequester(dut.ports[k]) for k in range(2)]

    async def bench(ctx):
        first = [r.start_read(0, 1, k % 4) for k in range(40) for r in requesters]
        await requesters[0].wait(ctx, *first)

    run(dut, bench, *requesters, responder, limit=1000)
    owners = [burst.tag >> 2 for burst in responder.log]
    assert owners[2:] == owners[:-2]
    assert sorted(owners[:2]) == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "ports must be an integer >= 1, not 0"),
        ({"n": 2, "write_bursts": 1}, "Write bursts must be an integer >= 2, not 1"),
        ({"n": 2, "rdata_depth": 1}, "must be 0 or >= 2, not 1"),
        ({"n": 2, "width": 31}, "must be one of"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        MemoryArbiter(**arguments)
