"""``ElasticBuffer``: queues in one memory, against lists; with no place left, and all of one."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.router.buffer import ElasticBuffer


@pytest.mark.parametrize("through", [True, False])
@pytest.mark.parametrize(("queues", "depth"), [(1, 2), (2, 5), (3, 8)])
@seeds(2)
def test_queues_are_lists(queues, depth, through, seed):
    """Every queue may lose a word in a cycle; words that find no place are lost, and said to be."""
    dut, rng = ElasticBuffer(queues, depth, 8, 3, through), make_rng(seed, f"buffer {depth}")
    held, lost = [[] for _ in range(queues)], 0
    # Places that are free in the cycle, and those that will be one and two cycles later.
    free, soon, most = depth, [0, 0], 0

    async def bench(ctx):
        nonlocal free, lost, most
        for step in range(800):
            fills = step // 100 % 2
            put = rng.randrange(queues) if rng.random() < (0.9 if fills else 0.5) else None
            word, tag = rng.getrandbits(8), rng.getrandbits(3)
            ctx.set(dut.put, 0 if put is None else 1 << put)
            ctx.set(dut.word, word)
            ctx.set(dut.tag, tag)
            ctx.set(dut.take, 0)
            room = not ctx.get(dut.overflow) or put is None
            if put is not None and free > 0:
                assert room, "a place is free"
            if put is not None and free + sum(soon) <= 0:
                assert not room, "no place is free"
            taken = []
            for v in range(queues):
                fresh = through and not held[v] and put == v and room
                assert ctx.get(dut.valid) >> v & 1 == (bool(held[v]) or fresh)
                if held[v]:
                    assert not ctx.get(dut.fresh) >> v & 1
                    assert (ctx.get(dut.words[v]), ctx.get(dut.tags[v])) == held[v][0]
                elif fresh:
                    assert ctx.get(dut.fresh) >> v & 1
                    assert ctx.get(dut.tags[v]) == tag
                if (held[v] or fresh) and rng.random() < (0.2 if fills else 0.7):
                    taken.append(v)
            ctx.set(dut.take, sum(1 << v for v in taken))
            await ctx.tick()
            free += soon.pop(0)
            soon.append(0)
            if put is not None and room:
                held[put].append((word, tag))
                free -= 1
            elif put is not None:
                lost += 1
            for v in taken:
                if through and room and put == v and len(held[v]) == 1:
                    free += 1  # it came in this cycle and never had a place
                else:
                    soon[-1] += 1
                held[v].pop(0)
            most = max(most, sum(map(len, held)))

    run(dut, bench, limit=900, seed=seed)
    assert most == depth
    assert lost > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 4, 8, 1), "^Queues must be an integer >= 1, not 0$"),
        ((1, 1, 8, 1), "^Depth must be an integer >= 2, not 1$"),
        ((1, 4, "8", 1), "^Word must be an integer >= 1, not '8'$"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        ElasticBuffer(*arguments)
