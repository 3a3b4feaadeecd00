"""Two boards do each other's jobs, over LTL and through their routers."""

import pytest
from cluster_bench import Boards, call, join
from streams import make_rng, random_bytes, run, seeds
from trebuchet.cores.roles.contract import JobKind
from trebuchet.models.status import Status

pytestmark = pytest.mark.slow

PEER, OWN = 0b10, 0b01


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly)])
@seeds(1)
def test_jobs_go_to_the_peer_and_come_back(width, seed):
    """Both ways at once."""
    boards = Boards(width)
    lengths = [0, 1030]
    open_ends, done = [], []

    def client(which):
        async def bench(ctx):
            rng = make_rng(seed, f"client{which}")
            await join(ctx, boards, which)
            open_ends.append(which)
            while len(open_ends) < 2:
                await ctx.tick()
            node, memory = boards.nodes[which], boards.memories[which]
            for ident, length in enumerate(rng.sample(lengths, len(lengths))):
                operand = rng.randbytes(length)
                assert await call(ctx, node, memory, ident, operand, rng=rng) == (0, operand)
            done.append(which)
            while len(done) < 2:
                await ctx.tick()
            assert ctx.get(node.csr_peer1.jobs) == len(lengths)
            assert ctx.get(node.csr_peer1.errors) == 0
            assert ctx.get(boards.slots[which].csr.jobs) == len(lengths)
            assert ctx.get(node.csr_cluster.calls) == len(lengths)
            assert ctx.get(node.csr_cluster.dropped) == 0

        return bench

    run(boards, client(0), client(1), *boards.responders(seed), limit=8_000, seed=seed)


@pytest.mark.nightly
@seeds(1)
def test_jobs_are_shared(seed):
    """With both enabled, each does some; another kind than DATA stays here."""
    boards = Boards()

    async def main(ctx):
        rng = make_rng(seed, "client")
        await join(ctx, boards, 1)
        await join(ctx, boards, 0, enable=PEER | OWN)
        node, memory = boards.nodes[0], boards.memories[0]
        for ident in range(4):
            operand = random_bytes(rng, 1, 50)
            assert await call(ctx, node, memory, ident, operand) == (0, operand)
        here, there = (ctx.get(slot.csr.jobs) for slot in boards.slots)
        assert (here, there) == (2, 2), "in turn"
        for kind in (JobKind.STREAM, JobKind.CONFIGURE):
            answer = await call(ctx, node, memory, 99, b"1234", kind=kind)
            assert answer == (Status.BAD_TYPE, b"")
        assert ctx.get(boards.slots[0].csr.jobs) == here + 2
        ctx.set(node.csr_cluster.enable, 0)
        await ctx.tick().repeat(3)
        assert await call(ctx, node, memory, 100, b"1234") == (Status.STOPPED, b"")

    run(boards, main, *boards.responders(seed), limit=6_000, seed=seed)
