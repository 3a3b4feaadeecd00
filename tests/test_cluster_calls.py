"""Caller and server: jobs that another board's role does, without the network between them."""

import pytest
from amaranth import Module, Signal
from cluster_bench import OPERAND_LOG2, RING, Direct, call
from streams import make_rng, packet_put, run, seeds, stream_checker
from trebuchet.cores.cluster.caller import Caller
from trebuchet.cores.cluster.contract import CHUNK
from trebuchet.cores.cluster.server import ServerMemory
from trebuchet.cores.roles.contract import JobKind
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


def run_direct(dut, main, *benches, seed, limit):
    checks = [stream_checker(s) for s in (dut.fuse.o, dut.server.o)]
    run(dut, main, *benches, *dut.responders(seed), *checks, limit=limit, seed=seed)


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly)])
@seeds(1)
def test_operands_go_there_and_results_come_back(width, seed):
    dut, rng = Direct(width), make_rng(seed, "client")
    lengths = [0, 1, 63, CHUNK, CHUNK + 1]

    async def main(ctx):
        for ident, length in enumerate(rng.sample(lengths, len(lengths))):
            operand = rng.randbytes(length)
            assert await call(ctx, dut, dut.memories[0], ident, operand, rng=rng) == (0, operand)
        assert ctx.get(dut.role.csr.jobs) == ctx.get(dut.counts["calls"]) == len(lengths)
        assert ctx.get(dut.counts["dropped"]) == ctx.get(dut.slot.csr.strays) == 0

    run_direct(dut, main, seed=seed, limit=60_000)


@seeds(1)
def test_what_is_refused(seed):
    """A result that does not fit here, a role that is off, another kind, too large a call."""
    dut = Direct()

    async def main(ctx):
        async def ask(*arguments, **more):
            return await call(ctx, dut, dut.memories[0], *arguments, **more)

        assert await ask(2, b"x" * 100, room=99) == (Status.NO_ROOM, b"")
        assert await ask(3, b"x" * 2000, room=1100) == (Status.NO_ROOM, b"")
        ctx.set(dut.role.csr.enable, 0)
        await ctx.tick().repeat(3)
        assert await ask(4, b"abc") == (Status.STOPPED, b"")
        ctx.set(dut.role.csr.enable, 1)
        assert await ask(5, b"abc", kind=JobKind.STREAM) == (Status.BAD_TYPE, b"")
        assert await ask(6, b"abcd") == (0, b"abcd")
        # The server's buffer is as large as the client's ring here: more cannot be asked for but
        # by a length beyond the ring, which reads it twice.
        assert await ask(7, bytes(RING), length=RING + 1) == (Status.TOO_LARGE, b"")
        assert ctx.get(dut.counts["refused"]) == 1
        assert await ask(8, b"abcd") == (0, b"abcd")

    assert RING == 1 << OPERAND_LOG2
    run_direct(dut, main, seed=seed, limit=60_000)


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


def message(peer=1, last=1, number=9, offset=0, data=b""):
    return bytes([peer, last, 0, number]) + offset.to_bytes(4, "little") + data


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([message(last=0, number=5, data=b"a" * CHUNK)], message(offset=63, data=b"b")),
        ([message(number=5, data=b"a" * CHUNK)], message(number=5, offset=63, data=b"b")),
    ],
    ids=("another", "ended"),
)
def test_messages_of_two_calls_are_not_one(before, after):
    """In its place by the offset, but of another call, or behind the last message of its own."""
    dut = Direct()

    async def main(ctx):
        for packet in [*before, after]:
            await packet_put(ctx, dut.server.i, packet)
        await ctx.tick().repeat(200)
        assert ctx.get(dut.counts["dropped"]) == 1

    async def role(ctx):
        ctx.set(dut.server.job.ready, 1)
        while True:
            await ctx.tick()
            if ctx.get(dut.server.job.valid):  # answered at once
                ctx.set(dut.server.answer.payload.id, ctx.get(dut.server.job.payload.id))
                ctx.set(dut.server.answer.valid, 1)
                await ctx.tick()
                ctx.set(dut.server.answer.valid, 0)
                ctx.set(dut.server.o.ready, 1)

    role.background = True
    dut.elaborate = lambda platform: parts(dut)
    run(dut, main, role, *dut.responders(0), limit=3000)


def test_messages_that_belong_nowhere():
    """Of a peer that does not exist, out of place, with an error mark: dropped and counted."""
    dut = Direct()

    async def main(ctx):
        bad = [
            message(peer=0, data=b"1234"),
            message(peer=3, data=b"1234"),
            message(peer=255),
            message(offset=64, data=b"1234"),
            message(offset=7),
        ]
        for packet in bad:
            await packet_put(ctx, dut.server.i, packet)
        await packet_put(ctx, dut.server.i, message(data=b"1234"), error=True)
        await ctx.tick().repeat(200)
        assert ctx.get(dut.counts["dropped"]) == len(bad) + 1
        assert ctx.get(dut.counts["calls"]) == 0
        for packet in (message(number=7, data=b"stray"), message(number=0)):
            await packet_put(ctx, dut.caller.i, packet)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.slot.csr.strays) == 2

    dut.elaborate = lambda platform: parts(dut)
    run(dut, main, *dut.responders(0), limit=3000)


def parts(dut):
    """The ends alone: nothing joins them, so that a test can speak for the other."""
    m = Module()
    m.submodules += [dut.slot, dut.server, dut.role, dut.fuse]
    for name, count in dut.counts.items():
        m.d.sync += count.eq(count + getattr(dut.server, name))
    return m


def test_bad_parameters():
    for arguments, message in (
        ((0, 0, 13, 11), "Number of peers must be 1 to 15, not 0"),
        ((0, 3, 20, 11), "log2 of a peer's operand must be 8 to 19, not 20"),
        ((0, 3, 13, 7), "log2 of a peer's result must be 8 to 19, not 7"),
        ((64, 3, 13, 11), "Base of the server's memory must be a multiple of 8192"),
    ):
        with pytest.raises(ValueError, match=message):
            ServerMemory(*arguments)
    with pytest.raises(ValueError, match="Number of a peer must be 1 to 15, not 16"):
        Caller(16)
