"""Caller: peers that are gone, links that stand still, resets, replies from before."""

import pytest
from amaranth import Signal
from cluster_bench import Direct, call
from streams import make_rng, seeds
from test_cluster_server import run_direct
from trebuchet.cores.cluster.contract import CHUNK
from trebuchet.models.status import Status

pytestmark = pytest.mark.slow

#: Cycles of a millisecond here.
TICK = 100


def ticking(dut):
    async def tick(ctx):
        while True:
            for _ in range(TICK - 1):  # `repeat` cannot be given up in the middle
                await ctx.tick()
            ctx.set(dut.caller.tick, 1)
            await ctx.tick()
            ctx.set(dut.caller.tick, 0)

    tick.background = True
    return tick


@seeds(1)
def test_a_peer_that_is_gone(seed):
    """Its jobs are answered NO_ANSWER in time, again and again; when it is back, all is well."""
    dut = Direct()

    async def main(ctx):
        async def ask(*arguments):
            return await call(ctx, dut, dut.memories[0], *arguments)

        ctx.set(dut.slot.csr.patience, 15)
        assert await ask(1, b"before") == (0, b"before")
        ctx.set(dut.cut, 1)
        for ident in range(2, 5):
            assert await ask(ident, bytes(1500)) == (Status.NO_ANSWER, b"")
        assert ctx.get(dut.slot.csr.timeouts) == ctx.get(dut.slot.csr.errors) == 3
        ctx.set(dut.cut, 0)
        for ident in range(5, 9):
            assert await ask(ident, b"after") == (0, b"after")

    run_direct(dut, main, ticking(dut), seed=seed, limit=60_000)


@seeds(1)
def test_a_link_that_stands_still(seed):
    """What the caller cannot get rid of does not keep it: the call is given up, its message cut."""
    dut = Direct()

    async def main(ctx):
        async def ask(ident, operand):
            return await call(ctx, dut, dut.memories[0], ident, operand)

        ctx.set(dut.slot.csr.patience, 10)
        ctx.set(dut.hold, 1)
        for ident in range(2):
            assert await ask(ident, bytes(1500)) == (Status.NO_ANSWER, b"")
        ctx.set(dut.hold, 0)
        for ident in range(2, 5):
            assert await ask(ident, b"again") == (0, b"again")

    run_direct(dut, main, ticking(dut), seed=seed, limit=30_000)


@pytest.mark.nightly
@seeds(1)
def test_a_callers_reset_in_the_middle(seed):
    """The job is answered ABORTED; what was on its way disturbs nobody."""
    dut, rng = Direct(), make_rng(seed, "reset")
    left, seen = Signal(16), set()

    async def main(ctx):
        async def ask(ident, operand):
            return await call(ctx, dut, dut.memories[0], ident, operand)

        ctx.set(dut.slot.csr.patience, 60)
        for ident in range(6):
            operand = rng.randbytes(1100)
            ctx.set(left, rng.randrange(20, 2200))
            status, result = await ask(ident, operand)
            good = ((Status.ABORTED, b""), (Status.OK, operand), (Status.NO_ANSWER, b""))
            assert (status, result) in good
            seen.add(status)
        ctx.set(left, 0)
        await ctx.tick().repeat(1500)
        operand = rng.randbytes(1200)
        assert await ask(9, operand) == (0, operand)
        assert await ask(10, b"") == (0, b"")

    async def resetter(ctx):
        while True:
            value = ctx.get(left)
            ctx.set(dut.slot.csr.reset, value == 1)
            if value:
                ctx.set(left, value - 1)
            await ctx.tick()

    resetter.background = True
    run_direct(dut, main, resetter, ticking(dut), seed=seed, limit=100_000)
    assert Status.ABORTED in seen


@pytest.mark.parametrize("size", [3, CHUNK + 1])
def test_a_reply_from_before_the_reset_is_not_the_next_calls(size):
    """The call that it belongs to is the first after power-up, and so is the next after the reset
    but for the number, which goes on. With more than a message the peer takes nothing of the next
    call before its reply was taken."""
    dut = Direct()
    old, new = b"o" * size, b"n" * size

    async def main(ctx):
        async def ask(ident, operand):
            return await call(ctx, dut, dut.memories[0], ident, operand)

        assert await ask(1, old) == (Status.ABORTED, b"")
        assert await ask(2, new) == (0, new)
        assert ctx.get(dut.slot.csr.strays) == -(-size // CHUNK)

    async def reset_while_the_reply_waits(ctx):
        while not ctx.get(dut.server.o.valid):
            await ctx.tick()
        ctx.set(dut.hold, 1)
        ctx.set(dut.slot.csr.reset, 1)
        await ctx.tick()
        ctx.set(dut.slot.csr.reset, 0)
        while not ctx.get(dut.fuse.o.valid):  # the next call's message
            await ctx.tick()
        ctx.set(dut.hold, 0)

    run_direct(dut, main, reset_while_the_reply_waits, seed=0, limit=10_000)
