"""LTL's receiver by itself: what it knows of connections after a reset."""

import pytest
from amaranth.hdl import ResetInserter, Signal
from streams import run
from trebuchet.cores.ltl.config import Kind, LtlConfig
from trebuchet.cores.ltl.receive import Receiver

CONFIG = LtlConfig()
LAST = CONFIG.connections - 1
#: Cycles from a frame's lookup to its first beat, from that to its end: as the parser takes.
HEAD, BODY = 8, 3


async def _open(ctx, dut, connection):
    port = dut.command
    ctx.set(port.payload, {"connection": connection, "open": 1, "credit": 1, "incarnation": 1})
    ctx.set(port.valid, 1)
    await ctx.tick().until(port.ready)
    ctx.set(port.valid, 0)


async def _frame(ctx, dut, connection, seq):
    """A data frame of two beats; return, of each beat that goes on, whether it commits."""
    n, beats = CONFIG.bytes, []
    ctx.set(dut.about, connection)
    ctx.set(dut.header.connection, connection)
    ctx.set(dut.header.kind, Kind.DATA)
    ctx.set(dut.header.incarnation, 1)
    ctx.set(dut.header.seq, seq)
    ctx.set(dut.header.length, 2 * n)
    for cycle in range(HEAD + BODY + 1):
        ctx.set(dut.lookup, cycle == 0)
        ctx.set(dut.body, cycle in (HEAD, HEAD + 1))
        ctx.set(dut.end, cycle == HEAD + BODY)
        ctx.set(dut.good, cycle == HEAD + BODY)
        _, _, valid, commit = await ctx.tick().sample(dut.valid, dut.commit)
        beats += [commit] if valid else []
    ctx.set(dut.end, 0)
    ctx.set(dut.good, 0)
    return beats


@pytest.mark.parametrize("wait", [1, 2, LAST - 1, LAST, LAST + 1])
def test_a_frame_right_after_a_reset_finds_no_connection_of_before(wait):
    """Entries are cleared one a cycle, the last one last; a frame may be looked up meanwhile."""
    dut, reset = Receiver(CONFIG), Signal()

    async def bench(ctx):
        await _open(ctx, dut, LAST)
        assert await _frame(ctx, dut, LAST, 0) == [0, 1], "an open connection takes it"
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        await ctx.tick().repeat(wait)
        assert await _frame(ctx, dut, LAST, 1) == []

    run(ResetInserter(reset)(dut), bench, limit=1000)
