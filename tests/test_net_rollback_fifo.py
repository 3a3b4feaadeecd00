"""FIFO with commit and rollback against a list."""

import pytest
from streams import make_rng, run, seeds, stream_checker, stream_get
from trebuchet.cores.net.rollback_fifo import RollbackFifo


@pytest.mark.parametrize("depth", [2, 4, 16])
@seeds(3)
def test_against_a_list(depth, seed):
    dut = RollbackFifo(8, depth)
    kept, ended = [], []

    async def write(ctx):
        rng = make_rng(seed, "write")
        pending = []
        for _ in range(600):
            w_en, item = rng.random() < 0.6, rng.randrange(256)
            commit, rollback = rng.random() < 0.3, rng.random() < 0.1
            ctx.set(dut.w_en, w_en)
            ctx.set(dut.w_data, item)
            ctx.set(dut.commit, commit)
            ctx.set(dut.rollback, rollback)
            if w_en and not ctx.get(dut.full):
                pending.append(item)
            if rollback or commit:
                kept.extend([] if rollback else pending)
                pending.clear()
            # What the reader has not taken yet and what is pending fit the FIFO's places.
            assert len(pending) <= depth
            await ctx.tick()
        ctx.set(dut.w_en, 0)
        ctx.set(dut.commit, 0)
        ended.append(True)

    async def read(ctx):
        rng = make_rng(seed, "read")
        at = 0
        while not ended or at < len(kept):
            if at == len(kept):
                assert not ctx.get(dut.output.valid)
                await ctx.tick()
                continue
            assert await stream_get(ctx, dut.output, rng=rng) == kept[at]
            at += 1
        assert at > 50
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.output.valid)

    run(dut, write, read, stream_checker(dut.output), limit=5000, seed=seed)


def test_full_after_depth_items_and_one_item_a_cycle():
    dut = RollbackFifo(16, 8)

    async def bench(ctx):
        ctx.set(dut.w_en, 1)
        for i in range(8):
            assert not ctx.get(dut.full)
            ctx.set(dut.w_data, i)
            await ctx.tick()
        assert ctx.get(dut.full)
        ctx.set(dut.commit, 1)
        await ctx.tick()
        ctx.set(dut.w_en, 0)
        ctx.set(dut.commit, 0)
        ctx.set(dut.output.ready, 1)
        await ctx.tick().repeat(2)
        for i in range(8):
            assert ctx.get(dut.output.valid)
            assert ctx.get(dut.output.payload) == i
            await ctx.tick()
        assert not ctx.get(dut.output.valid)

    run(dut, bench, limit=100)


def test_constructor_says_what_it_wants():
    message = r"^FIFO depth must be a power of two of at least 2, not 6$"
    with pytest.raises(ValueError, match=message):
        RollbackFifo(8, 6)
