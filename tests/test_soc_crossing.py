"""The MAC's crossing between two clocks, in Migen's simulator, at many ratios of them."""

import random

import pytest
from litex.gen import LiteXModule
from migen import ClockDomain, run_simulation
from trebuchet.soc.crossing import Crossing

LAYOUT = [("data", 16), ("error", 1)]
#: Cycles until a test is given up.
LIMIT = 4_000


class _Top(LiteXModule):
    def __init__(self, depth, block=False):
        for name in ("here", "there"):
            self.clock_domains += ClockDomain(name, reset_less=True)
        self.crossing = Crossing(LAYOUT, "here", "there", depth, block)


def _put(sink, items, rng, pauses, full):
    for data, error, last in items:
        while rng.random() < pauses:
            yield
        yield sink.data.eq(data)
        yield sink.error.eq(error)
        yield sink.last.eq(last)
        yield sink.valid.eq(1)
        yield
        while not (yield sink.ready):
            full.append(1)
            yield
        yield sink.valid.eq(0)


def _get(source, count, rng, pauses, got):
    """Takes items; one that is offered stays until it is taken."""
    waiting = None
    for _ in range(LIMIT):
        item = None
        if (yield source.valid):
            item = (yield source.data), (yield source.error), (yield source.last)
        assert waiting is None or item == waiting
        waiting = item
        if item is not None and (yield source.ready):
            got.append(item)
            waiting = None
        if len(got) == count:
            return
        yield source.ready.eq(int(rng.random() >= pauses))
        yield
    raise AssertionError(f"{len(got)} of {count} items after {LIMIT} cycles")


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("depth", [4, 16])
@pytest.mark.parametrize("clocks", [(8, 8), (24, 8), (8, 24), (20, 14), (14, 18)])
@pytest.mark.parametrize("pauses", [(0, 0), (0.3, 0.3), (0, 0.8), (0.8, 0)])
def test_all_items_cross_in_order(block, depth, clocks, pauses):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    items = [(rng.getrandbits(16), rng.getrandbits(1), rng.getrandbits(1)) for _ in range(100)]
    top, got, full = _Top(depth, block), [], []
    run_simulation(
        top,
        {
            "here": _put(top.crossing.sink, items, random.Random(seed), pauses[0], full),
            "there": _get(top.crossing.source, len(items), random.Random(seed), pauses[1], got),
        },
        clocks=dict(zip(("here", "there"), clocks, strict=True)),
    )
    assert got == items
    if pauses == (0, 0.8) and clocks == (8, 24):
        assert full  # it was full at times, and nothing was lost


@pytest.mark.parametrize("block", [False, True])
def test_as_many_items_wait_as_it_says(block):
    top, taken = _Top(4, block), []

    def fill(sink):
        yield sink.valid.eq(1)
        for _ in range(40):
            yield
            taken.append((yield sink.ready))

    run_simulation(top, {"here": fill(top.crossing.sink)}, clocks={"here": 10, "there": 10})
    assert sum(taken) == 5  # four in the memory, one offered
    assert taken[-1] == 0


@pytest.mark.parametrize("depth", [0, 2, 12, "16"])
def test_an_impossible_depth_is_told(depth):
    with pytest.raises(
        ValueError, match=f"^Depth must be a power of two of at least 4, not {depth!r}$"
    ):
        Crossing(LAYOUT, "here", "there", depth)
