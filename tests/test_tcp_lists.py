"""The list server against plain queues, under a memory as awkward as the rules allow."""

import re
from collections import deque

import pytest
from streams import MemoryResponder, make_rng, run, seeds, stream_checker
from trebuchet.cores.tcp.lists import ListServer

LISTS, SESSIONS = 3, 64
BASE = 256


def small(width=64, lists=LISTS, sessions=SESSIONS, **kwargs):
    """Ends of eight places, bursts of four entries: nearly all of a long list is in memory."""
    kwargs = {"base": BASE, "block": 4, "places": 16 << (lists - 1).bit_length(), **kwargs}
    return ListServer(lists, sessions, width, **kwargs)


class Lists:
    """Background test bench: one queue per list, and what may be pushed and popped at random.

    ``push`` and ``pop`` are chances in a cycle; ``only`` names the lists that are pushed to, None
    for all; ``many``: several lists at once. ``waits`` counts cycles in which a push waited.
    """

    background = True

    def __init__(self, dut, rng, *, push=0.0, pop=0.0, only=None, many=True):
        self.dut, self.rng, self.push, self.pop = dut, rng, push, pop
        self.only, self.many = only, many
        self.queues = [deque() for _ in range(dut.lists)]
        self.pushed = self.popped = self.waits = 0

    def _choose(self):
        """A session, and lists that it is not on yet."""
        start, lists = self.rng.randrange(self.dut.sessions), []
        for j in range(self.dut.sessions):
            session = (start + j) % self.dut.sessions
            lists = [k for k in self.only or range(self.dut.lists) if session not in self.queues[k]]
            if lists:
                break
        self.rng.shuffle(lists)
        lists = lists[: self.rng.randint(1, self.dut.lists) if self.many else 1]
        return (session, lists) if lists else None

    async def __call__(self, ctx):
        dut, offer = self.dut, None
        while True:
            if offer is None and self.rng.random() < self.push:
                offer = self._choose()
            ctx.set(dut.push.valid, offer is not None)
            if offer is not None:
                mask = sum(1 << k for k in offer[1])
                ctx.set(dut.push.payload, {"lists": mask, "session": offer[0]})
            valid, pops = ctx.get(dut.valid), 0
            for k in range(dut.lists):
                if valid >> k & 1:
                    assert self.queues[k], f"list {k} has a head, but must be empty"
                    assert ctx.get(dut.head[k]) == self.queues[k][0], f"wrong head of list {k}"
                    if self.rng.random() < self.pop:
                        pops |= 1 << k
                        self.queues[k].popleft()
                        self.popped += 1
            ctx.set(dut.pop, pops)
            _, _, ready, busy = await ctx.tick().sample(dut.push.ready, dut.busy)
            for k, queue in enumerate(self.queues):
                assert busy >> k & 1 or not queue, f"list {k} is not empty, and not busy"
            if offer is not None and ready:
                for k in offer[1]:
                    self.queues[k].append(offer[0])
                    self.pushed += 1
                offer = None
            elif offer is not None:
                self.waits += 1


def memory_of(dut, rng=None, **kwargs):
    memory = bytearray(1 << (BASE + dut.size - 1).bit_length())
    return MemoryResponder(dut.mem, memory, rng=rng, **kwargs)


async def settled(ctx, lists, limit=3000):
    """Drain all lists, and wait until none is busy."""
    lists.push, lists.pop = 0, 1.0
    for _ in range(limit):
        await ctx.tick()
        if not any(lists.queues) and not ctx.get(lists.dut.busy):
            return
    raise AssertionError(f"not drained: {[len(q) for q in lists.queues]}")


@pytest.mark.parametrize(
    ("width", "lists", "sessions"),
    [(32, 3, 64), (64, 1, 64), (64, 3, 64), (64, 5, 8), (128, 2, 64)],
)
@seeds(2)
def test_lists_are_queues(width, lists, sessions, seed):
    """Phases in which lists grow, shrink, or are pushed and popped as fast as they can."""
    dut = small(width, lists, sessions)
    responder = memory_of(dut, make_rng(seed, "memory"))
    model = Lists(dut, make_rng(seed, "lists"))

    async def bench(ctx):
        rng, longest = make_rng(seed, "phases"), 0
        for push, pop in [(1, 0), (0.1, 0.3), (1, 1), (0.3, 0.05), (0.5, 0.5), (0.3, 1)]:
            model.push, model.pop = push, pop
            model.only = rng.choice([None, [rng.randrange(lists)]])
            for _ in range(500):
                await ctx.tick()
                longest = max(longest, *(len(q) for q in model.queues))
        assert longest >= min(2 * dut.ring + 4, sessions)  # more than the ends hold, if there are
        await settled(ctx, model)
        assert model.pushed == model.popped > 120

    checks = [stream_checker(dut.mem.cmd, "cmd"), stream_checker(dut.mem.wdata, "wdata")]
    run(dut, model, responder, bench, *checks, limit=12_000, seed=seed)
    assert bool(responder.log) == (sessions > dut.ring)
    for burst in responder.log:
        assert BASE <= burst.addr <= BASE + dut.size - burst.beats * width // 8


def test_every_list_full_at_once():
    """All sessions on all lists, twice over; then out they come in order."""
    dut = small()
    responder = memory_of(dut, latency=(10, 10))
    model = Lists(dut, make_rng(0, "full"), push=1.0)

    async def bench(ctx):
        for _ in range(2):
            model.push, model.pop = 1.0, 0
            while any(len(q) < SESSIONS for q in model.queues):
                await ctx.tick()
            await settled(ctx, model)

    run(dut, bench, model, responder, limit=30_000)


def test_on_the_chip_a_push_a_cycle():
    """Short lists: a push each cycle is never refused, and the memory is not touched."""
    dut = ListServer(4, 1024, places=1024)
    responder = memory_of(dut)
    model = Lists(dut, make_rng(0, "chip"), push=1.0, pop=1.0, many=False)

    async def bench(ctx):
        await ctx.tick().repeat(10)
        model.waits = 0
        await ctx.tick().repeat(400)
        assert model.waits == 0
        assert model.pushed > 400
        assert sum(map(len, model.queues)) < 30  # pops keep up

    run(dut, bench, model, responder, limit=500)
    assert not responder.log


@pytest.mark.parametrize("lists", [1, 8])
def test_head_after_push_and_after_pop(lists):
    dut = ListServer(lists, 1024)
    k = lists - 1

    async def bench(ctx):
        await ctx.tick().repeat(20)
        ctx.set(dut.push.payload, {"lists": 1 << k, "session": 5})
        ctx.set(dut.push.valid, 1)
        await ctx.tick().repeat(2)  # twice the same: the server does not look
        ctx.set(dut.push.valid, 0)
        await ctx.tick()
        assert not ctx.get(dut.valid)
        await ctx.tick()
        assert ctx.get(dut.valid) == 1 << k
        ctx.set(dut.pop, 1 << k)
        await ctx.tick()
        ctx.set(dut.pop, 0)
        await ctx.tick()
        assert not ctx.get(dut.valid)
        await ctx.tick()
        assert ctx.get(dut.valid) == 1 << k

    run(dut, bench, limit=100)


@pytest.mark.parametrize("only", [[0], None])
def test_throughput_through_memory(only):
    """Lists longer than their ends: an entry in and one out each four cycles, or faster."""
    dut = ListServer(4, 1024, places=1024)
    responder = memory_of(dut, latency=(40, 40))
    model = Lists(dut, make_rng(1, "speed"), push=1.0, only=only, many=False)

    async def bench(ctx):
        grown = 500 if only else 320
        while min(len(model.queues[k]) for k in only or range(4)) < grown:
            await ctx.tick()
        model.pop, model.pushed, model.popped = 1.0, 0, 0
        await ctx.tick().repeat(1600)
        assert min(model.pushed, model.popped) >= 400

    run(dut, bench, model, responder, limit=20_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lists": 0}, "Number of lists must be 1 to 16, not 0"),
        ({"lists": 17}, "Number of lists must be 1 to 16, not 17"),
        ({"block": 48}, "Block must be a power of two >= 2, not 48"),
        ({"block": 128, "width": 32}, "Block must be 1 to 64 beats of 32 bits, not 128"),
        ({"places": 1000}, "Number of places must be a power of two, not 1000"),
        (
            {"places": 256},
            "Number of places must be at least 512, two blocks for each end of a list, not 256",
        ),
        ({"sessions": 32}, "Number of sessions must be a power of two >= 64, two blocks, not 32"),
        ({"sessions": 100}, "Number of sessions must be a power of two >= 64, two blocks, not 100"),
        (
            {"base": 64},
            "Base must be a multiple of 128 with 16384 bytes inside the memory, not 64",
        ),
        ({"width": 16}, "Data path width must be one of (32, 64, 128) bits, not 16"),
    ],
)
def test_parameters(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ListServer(**{"lists": 4, "sessions": 1024, **arguments})
