"""Caller and server: jobs that another board's role does, without the network between them."""

import pytest
from amaranth import Module
from cluster_bench import OPERAND_LOG2, RING, Direct, call
from streams import make_rng, packet_put, run, seeds, stream_checker
from trebuchet.cores.cluster.caller import Caller
from trebuchet.cores.cluster.contract import CHUNK
from trebuchet.cores.cluster.server import ServerMemory
from trebuchet.cores.roles.contract import JobKind
from trebuchet.models.status import Status

pytestmark = pytest.mark.slow


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
