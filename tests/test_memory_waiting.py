"""Slow and dead writers at the memory arbiter, classes, and the bounds on waiting."""

import pytest
from streams import MemoryRequester, MemoryResponder, make_rng, run, seeds
from test_memory_model import random_traffic
from trebuchet.cores.memory_arbiter import MemoryArbiter
from trebuchet.cores.shell import Shell
from trebuchet.cores.shell_config import ShellConfig
from trebuchet.models.plan import Plan

REGION = 2048


class SlowWriter(MemoryRequester):
    """Offers a beat of write data every ``pace`` cycles, and none after ``beats``."""

    def __init__(self, port, *, pace=100, beats=None, **kwargs):
        super().__init__(port, **kwargs)
        self.pace, self.beats_left, self.since = pace, beats, 0

    def _supplies(self):
        self.since += 1
        if self.beats_left == 0 or self.since < self.pace:
            return False
        self.since = 0
        if self.beats_left is not None:
            self.beats_left -= 1
        return True


def _cycles(beats, *, prompt, other=None, n=3):
    """Cycles of 12 bursts of 64 beats at port 0, beside ``other(port)`` at the last port."""
    dut = MemoryArbiter(n, 32, 2, priority=(0,) + (1,) * (n - 1), prompt=prompt)
    responder = MemoryResponder(dut.mem, bytearray(1 << 14), latency=(10, 10))
    dma = MemoryRequester(dut.ports[0])
    benches = [dma, responder]
    if other is not None:
        slow = other(dut.ports[n - 1])
        for k in range(12):
            slow.start_write(4096 + 256 * k, bytes(256), k % 4)
        benches.append(slow)

    async def bench(ctx):
        await ctx.tick().repeat(400)  # so the slow one has begun
        bursts = [dma.start_write(256 * k, bytes(range(beats)) * 4, k % 4) for k in range(12)]
        await dma.wait(ctx, *bursts)

    return run(dut, bench, *benches, limit=20_000)


@pytest.mark.parametrize("stop", [None, 3, 40])
def test_a_slow_or_dead_writer_takes_no_bandwidth(stop):
    alone = _cycles(64, prompt=(0, 1)) - 400
    beside = _cycles(64, prompt=(0, 1), other=lambda port: SlowWriter(port, beats=stop), n=3) - 400
    assert alone < 12 * 64 + 60
    assert beside <= alone / 0.95


@seeds(2)
def test_dead_writers_and_readers_beside_them(seed):
    """Two ports stop in the middle of a burst; the others' traffic, and one's own reads, go on."""
    dut = MemoryArbiter(4, 64, 1, write_bursts=2, priority=(1, 0, 1, 0))
    memory = bytearray(make_rng(seed, "memory").randbytes(4 * REGION))
    reference = bytearray(memory)
    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "responder"))
    dead = [SlowWriter(dut.ports[k], pace=2, beats=stop) for k, stop in ((0, 5), (1, 0))]
    live = [MemoryRequester(dut.ports[k], rng=make_rng(seed, f"live{k}")) for k in (2, 3)]
    traffic = [
        random_traffic(
            requester,
            reference,
            make_rng(seed, f"traffic{k}"),
            rounds=4,
            tags=2,
            region=((k + 2) * REGION, REGION),
        )
        for k, requester in enumerate(live)
    ]

    async def stopping(ctx):
        for k, port in enumerate(dead):
            port.start_write(k * REGION, bytes(64 * 8), 0)
        await ctx.tick().repeat(50)
        for k, port in enumerate(dead):  # reads pass the writes that never come
            assert await port.read(ctx, k * REGION, 2) == reference[k * REGION :][:16]

    run(dut, stopping, *traffic, *dead, *live, responder, limit=8_000, seed=seed)
    assert memory == reference
    assert all(burst.addr >= 2 * REGION for burst in responder.log if burst.write)


class _Asker:
    """Asks at a port again and again, by chance; writes' data are at hand. Takes no answers."""

    background = True

    def __init__(self, port, rng, busy):
        self.port, self.rng, self.busy = port, rng, busy

    async def __call__(self, ctx):
        port, rng, owed, shown = self.port, self.rng, [], False
        while True:
            if not shown and rng.random() < self.busy:
                shown = True
                command = {"write": rng.random() < 0.7, "addr": 0, "tag": 0}
                command["beats"] = rng.choice((0, 1, rng.randrange(64), 63))
                ctx.set(port.cmd.payload, command)
            ctx.set(port.cmd.valid, shown)
            ctx.set(port.wdata.valid, bool(owed))
            ctx.set(port.wdata.payload.last, bool(owed) and owed[0] == 0)
            _, _, cr, wr = await ctx.tick().sample(port.cmd.ready, port.wdata.ready)
            if owed and wr:
                owed[0] -= 1
                if owed[0] < 0:
                    owed.pop(0)
            if shown and cr:
                shown = False
                if command["write"]:
                    owed.append(command["beats"])


def _slow_memory(mem, command, beat):
    """Takes a command every ``command`` cycles and a beat every ``beat`` ones; answers nothing."""

    async def bench(ctx):
        now = 0
        while True:
            ctx.set(mem.cmd.ready, now % command == 0)
            ctx.set(mem.wdata.ready, now % beat == 0)
            now += 1
            await ctx.tick()

    bench.background = True
    return bench


def _watch(dut, k, worst):
    """Commands of others, and cycles, that port ``k`` waits for: the most in ``worst``."""
    port, mem = dut.ports[k], dut.mem

    async def bench(ctx):
        others = cycles = 0
        async for _, _, valid, ready, moves in ctx.tick().sample(
            port.cmd.valid, port.cmd.ready, mem.cmd.valid & mem.cmd.ready
        ):
            cycles += valid
            if valid and ready:
                worst[k] = [max(a, b) for a, b in zip(worst[k], (others, cycles), strict=True)]
            if not valid or ready:
                others = cycles = 0
            elif moves:
                others += 1

    bench.background = True
    return bench


@pytest.mark.parametrize(
    ("n", "priority", "patience", "command", "beat", "busy"),
    [
        (1, None, 1, 1, 1, 1),
        (2, (1, 0), 1, 1, 1, 1),
        (4, None, 4, 3, 2, 0.7),
        (5, (0, 1, 1, 1, 1), 4, 1, 3, 1),
        (5, (0, 1, 1, 0, 0), 2, 5, 1, 0.3),
        pytest.param(10, (0,) + (1,) * 9, 4, 2, 1, 1, marks=pytest.mark.slow),
    ],
)
@seeds(1)
def test_bounds_on_waiting(n, priority, patience, command, beat, busy, seed):
    """No wait is longer than the bounds, with memories whose writes are slow, or commands."""
    dut = MemoryArbiter(
        n, 32, 1, write_bursts=2, priority=priority, patience=patience, prompt=range(n)
    )
    worst = [[0, 0] for _ in range(n)]
    askers = [_Asker(dut.ports[k], make_rng(seed, f"asker{k}"), busy) for k in range(n)]
    watches = [_watch(dut, k, worst) for k in range(n)]

    async def bench(ctx):
        await ctx.tick().repeat(400 * n)

    run(
        dut,
        bench,
        *askers,
        *watches,
        _slow_memory(dut.mem, command, beat),
        limit=400 * n + 10,
        seed=seed,
    )
    for k, (others, cycles) in enumerate(worst):
        assert 0 < cycles <= dut.waiting_cycles(k, command, beat)
        assert others <= dut.waiting_bound(k)
    if busy == 1 and n > 1:  # where all ask all the time, the bounds are nearly reached
        for k, (others, _) in enumerate(worst):
            assert others >= dut.waiting_bound(k) - 2


def test_class_0_goes_first():
    """Of ports that always ask, class 0 gets ``patience`` commands for each one of class 1."""
    dut = MemoryArbiter(3, 32, 2, priority=(1, 0, 1), patience=4, prompt=range(3))
    responder = MemoryResponder(dut.mem, bytearray(1024), latency=(4, 4))
    requesters = [MemoryRequester(dut.ports[k]) for k in range(3)]

    async def bench(ctx):
        bursts = [r.start_read(0, 2, k % 4) for k in range(60) for r in requesters]
        await requesters[1].wait(ctx, *bursts[1::3])

    run(dut, bench, *requesters, responder, limit=1000)
    owners = [burst.tag >> 2 for burst in responder.log][4:]
    assert set(owners[4::5]) | set(owners[3::5]) >= {0, 2}
    for k in range(0, 50, 5):
        assert owners[k : k + 5].count(1) == 4


@pytest.mark.parametrize("managed", [True, False])
def test_ports_of_the_shell(managed):
    """Receive DMA is first; only a role that does not promise prompt writes has a buffer."""
    for role, buffered in (("loopback", set()), ("verilog_example", {3 + managed})):
        arbiter = Shell(ShellConfig(plan=Plan.of_roles(role), managed=managed))._arbiter
        assert arbiter.priority == (0,) + (1,) * (arbiter.n - 1)
        assert set(range(arbiter.n)) - arbiter.prompt == buffered


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 2, "priority": (0,)}, r"Priority must be 0 or 1 for each of 2 ports, not \(0,\)"),
        ({"n": 2, "priority": (0, 2)}, r"Priority must be 0 or 1 for each of 2 ports"),
        ({"n": 2, "prompt": (2,)}, r"Prompt ports must be among 2 ports, not \(2,\)"),
        ({"n": 2, "priority": (0, 1), "patience": 0}, "Patience must be an integer >= 1, not 0"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        MemoryArbiter(**arguments)
