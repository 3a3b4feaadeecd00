"""The MAC's crossing between two clocks, in Migen's simulator, at many ratios of them."""

import random

import pytest
from litex.gen import LiteXModule
from migen import ClockDomain, If, Module, Signal, passive, run_simulation
from migen.genlib.cdc import MultiReg
from trebuchet.soc import crossing
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
@pytest.mark.parametrize(
    "clocks",
    [
        (24, 8),
        (14, 18),
        *(pytest.param(n, marks=pytest.mark.nightly) for n in ((8, 8), (8, 24), (20, 14))),
    ],
)
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


def _changes(pointer, seen):
    """The values of a pointer, a cycle apart."""
    while True:
        value = yield pointer
        if not seen or seen[-1] != value:
            seen.append(value)
        yield


class _Unsettled(MultiReg):
    """A synchroniser whose first register takes any mix of what changes as it looks.

    A bit that has changed in the source's last cycle, and since it was looked at, is by chance as
    it was before. So that happens once to a change, and nothing goes back.
    """

    made = []

    @staticmethod
    def lower(dr):
        made = Module()
        was, looked, chance, first = (Signal.like(dr.i) for _ in range(4))
        changes = (dr.i ^ was) & (dr.i ^ looked)
        source = {"here": "there", "there": "here"}[dr.odomain]
        getattr(made.sync, source).__iadd__(was.eq(dr.i))
        getattr(made.sync, dr.odomain).__iadd__(
            [looked.eq(dr.i), first.eq(dr.i ^ (changes & chance)), dr.o.eq(first)]
        )
        _Unsettled.made.append((dr.odomain, chance))
        return made


def _run_unsettled(monkeypatch, clocks, pauses, seed):
    """Items through a crossing of unsettled synchronisers; what was sent, got, and the pointers."""
    monkeypatch.setattr(crossing, "MultiReg", _Unsettled)
    monkeypatch.setattr(_Unsettled, "made", [])
    rng = random.Random(seed)
    items = [(rng.getrandbits(16), rng.getrandbits(1), rng.getrandbits(1)) for _ in range(150)]
    top, got, pointers = _Top(4), [], ([], [])

    def resolve(domain):
        """Another mix in each cycle; the synchronisers are made when the simulation begins."""
        while True:
            for where, chance in _Unsettled.made:
                if where == domain:
                    yield chance.eq(rng.getrandbits(len(chance)))
            yield

    inner = top.crossing
    run_simulation(
        top,
        {
            "here": [
                _put(inner.sink, items, random.Random(seed), pauses[0], []),
                passive(_changes)(inner.produce.q, pointers[0]),
                passive(resolve)("here"),
            ],
            "there": [
                _get(inner.source, len(items), random.Random(seed), pauses[1], got),
                passive(_changes)(inner.consume.q, pointers[1]),
                passive(resolve)("there"),
            ],
        },
        clocks=dict(zip(("here", "there"), clocks, strict=True)),
    )
    return items, got, pointers


def _changing_bits(pointers):
    """Bits of a pointer that change at a time, at most."""
    steps = [step for seen in pointers for step in zip(seen, seen[1:], strict=False)]
    return max((before ^ after).bit_count() for before, after in steps)


UNSETTLED = [((8, 8), (0, 0)), ((24, 8), (0.3, 0.3)), ((8, 24), (0, 0.8)), ((14, 18), (0.8, 0))]


@pytest.mark.parametrize(("clocks", "pauses"), UNSETTLED)
def test_bits_that_change_as_they_are_looked_at_do_no_harm(monkeypatch, clocks, pauses):
    """Pointers change a bit at a time, so that any mix of two is one of them."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    items, got, pointers = _run_unsettled(monkeypatch, clocks, pauses, seed)
    assert got == items
    assert min(map(len, pointers)) > 20
    assert _changing_bits(pointers) == 1


class _Binary(crossing._Pointer):
    """A pointer that counts."""

    def __init__(self, bits):
        super().__init__(bits)
        self.sync += If(self.ce, self.following.eq(self.following + 1))


def test_pointers_that_count_are_found(monkeypatch):
    """No simulation tells them, as a mix is wrong for a cycle only; but wires differ in length."""
    monkeypatch.setattr(crossing, "_Pointer", _Binary)
    monkeypatch.setattr(crossing, "_round_ahead", lambda pointer, bits: pointer ^ (1 << (bits - 1)))
    items, got, pointers = _run_unsettled(monkeypatch, (14, 18), (0.3, 0.3), 0)
    assert got == items
    assert _changing_bits(pointers) == 3


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
