"""``Sequencer``: places of operands and order of steps, with both halves in use and little room."""

import pytest
from streams import make_rng, run, seeds, stream_put
from trebuchet.cores.roles.matmul.array import Shape
from trebuchet.cores.roles.matmul.sequencer import Sequencer


@pytest.mark.parametrize(("n", "macs", "width"), [(4, 4, 32), (8, 4, 64), (8, 8, 32)])
@seeds(2)
def test_each_half_is_filled_then_worked_on(n, macs, width, seed):
    """Every sweep fits the room there is; no half is filled before its last step is done."""
    shape = Shape(n, macs, width)
    dut, rng = Sequencer(shape, shape.sweep_beats + 1), make_rng(seed, f"sequencer {n}")
    pairs, per_row = 4, n // shape.words
    room = [dut.depth]
    stored, steps = [], []
    events = []  # ("full" or "empty", half), in order

    async def put(ctx):
        for number in range(pairs * shape.pair_beats):
            slow = 0.6 if number // shape.pair_beats % 2 else 0.0
            await stream_put(ctx, dut.i, number, rng=rng, idle=slow)

    async def watch(ctx):
        samples = dut.store_en, dut.store, dut.step_en, dut.step
        async for _, _, store_en, store, step_en, step in ctx.tick().sample(*samples):
            if step_en:
                at = len(steps) % (n * n * shape.tiles)
                assert at or ("full", step.half) in events, "a step before its half is full"
                if at == 0:
                    events.remove(("full", step.half))
                if step.k == 0:
                    room[0] -= shape.sweep_beats
                    assert room[0] >= 0, "a sweep whose beats have no room"
                steps.append((step.half, step.row, step.tile, step.k))
                if at == n * n * shape.tiles - 1:
                    events.append(("empty", step.half))
            if store_en:
                at = len(stored) % shape.pair_beats
                if at == 0 and len(stored) >= 2 * shape.pair_beats:
                    assert ("empty", store.half) in events, "a half that is still worked on"
                    events.remove(("empty", store.half))
                stored.append((store.data, store.half, store.b, store.row, store.beat))
                if at == shape.pair_beats - 1:
                    events.append(("full", store.half))

    async def take(ctx):
        waits = make_rng(seed, "taken")
        while len(steps) < pairs * n * n * shape.tiles:
            some = room[0] < dut.depth and waits.random() < 0.3
            ctx.set(dut.taken, some)
            await ctx.tick()
            room[0] += some
        ctx.set(dut.taken, 0)

    watch.background = True
    run(dut, put, take, watch, limit=20_000, seed=seed)
    halves = [stored[k * shape.pair_beats][1] for k in range(pairs)]
    assert halves in ([0, 1, 0, 1], [1, 0, 1, 0])
    expected = []
    for number in range(pairs * shape.pair_beats):
        pair, at = divmod(number, shape.pair_beats)
        b, place = divmod(at, n * per_row)
        expected.append((number, halves[pair], b, *divmod(place, per_row)))
    assert stored == expected
    assert steps == [
        (half, row, tile, k)
        for half in halves
        for row in range(n)
        for tile in range(shape.tiles)
        for k in range(n)
    ]


def test_bad_parameters():
    with pytest.raises(ValueError, match="^Depth must be at least the 4 beats of a sweep, not 3$"):
        Sequencer(Shape(4, 4, 32), 3)
