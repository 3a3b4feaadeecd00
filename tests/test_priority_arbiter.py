"""``PriorityArbiter``: nothing lost, class 0 first, and every wait bounded."""

import pytest
from streams import make_rng, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.priority_arbiter import PriorityArbiter


@pytest.mark.parametrize(("priority", "patience"), [((0, 1), 1), ((1, 0, 1), 4), ((0, 0, 1, 0), 2)])
@seeds(2)
def test_every_beat_passes_within_its_bound(priority, patience, seed):
    """``index`` names the input; each one's beats stay in order; no wait exceeds its bound."""
    dut = PriorityArbiter(16, priority, patience)
    n, count = len(priority), 40
    got = [[] for _ in range(n)]
    passed, worst = [0] * n, [0] * n

    def source(k):
        async def put(ctx):
            rng = make_rng(seed, f"source {k}")
            for number in range(count):
                idle = 0.9 if rng.random() < 0.1 else 0.0
                await stream_put(ctx, dut.i[k], k << 12 | number, rng=rng, idle=idle)

        return put

    async def sink(ctx):
        rng = make_rng(seed, "sink")
        for _ in range(n * count):
            word = await stream_get(ctx, dut.o, rng=rng)
            got[word >> 12].append(word & 0xFFF)

    async def watch(ctx):
        offered = [port.valid for port in dut.i]
        samples = (dut.o.valid, dut.o.ready, dut.index, dut.o.payload, *offered)
        async for _, _, valid, ready, index, payload, *waits in ctx.tick().sample(*samples):
            assert not valid or index == payload >> 12
            for k in range(n):
                if not waits[k] or (valid and ready and index == k):
                    passed[k] = 0
                elif valid and ready:
                    passed[k] += 1
                    worst[k] = max(worst[k], passed[k])

    watch.background = True
    benches = [source(k) for k in range(n)]
    run(dut, *benches, sink, watch, stream_checker(dut.o), limit=4000, seed=seed)
    assert got == [list(range(count))] * n
    for k in range(n):
        assert worst[k] <= dut.waiting_bound(k), f"input {k}"


def test_class_1_goes_after_as_many_as_its_patience():
    """Both classes always wait: ``patience`` beats of class 0, then one of class 1."""
    dut, order = PriorityArbiter(1, (0, 1), 3), []

    async def bench(ctx):
        for port in dut.i:
            ctx.set(port.valid, 1)
        ctx.set(dut.o.ready, 1)
        await ctx.tick().repeat(4)
        for _ in range(12):
            _, _, valid, index = await ctx.tick().sample(dut.o.valid, dut.index)
            assert valid
            order.append(index)

    run(dut, bench, limit=30)
    assert "".join(map(str, order)) in "0001" * 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0, 0),), r"^Priority must be 0 and 1, each at least once, not \(0, 0\)$"),
        (((0, 1), 0), "^Patience must be an integer >= 1, not 0$"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        PriorityArbiter(8, *arguments)
