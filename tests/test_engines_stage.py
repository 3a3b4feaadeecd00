"""Engines in a stream: packets against the model, under resets, new settings, and bad bodies."""

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from streams import make_rng, packet_get, packet_put, run, seeds, stream_checker
from trebuchet.cores.csr import Register, RegisterBlock
from trebuchet.cores.engines.contract import EngineLimits, StreamEngineSignature
from trebuchet.cores.engines.crc32c.engine import Crc32cEngine
from trebuchet.cores.engines.stage import EngineStage
from trebuchet.cores.roles.loopback.role import Wire
from trebuchet.models import crc32c

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 33, 100]


def packets(rng, count):
    """Packets of every kind; some with their CRC at the end, some damaged."""
    made = []
    for _ in range(count):
        data = rng.randbytes(rng.choice(SIZES))
        if rng.random() < 0.5:
            data, _ = crc32c.result(data)
        made.append((data, rng.random() < 0.15))
    return made


def feed(stream, given, rng, idle=0.3):
    async def put(ctx):
        for data, error in given:
            await packet_put(ctx, stream, data, error, rng=rng, idle=idle)

    return put


def drain(stream, got, count, rng, stall=0.3):
    async def get(ctx):
        while len(got) < count:
            got.append(await packet_get(ctx, stream, rng=rng, stall=stall))

    return get


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(2)
def test_stage_changes_nothing(width, seed):
    """With the switch thrown and the mode changed at any time: each packet as one mode has it."""
    dut, rng, got = EngineStage(Crc32cEngine(width), width), make_rng(seed, "packets"), []
    given = packets(rng, 80)

    async def switch(ctx):
        toggle = make_rng(seed, "switch")
        while len(got) < len(given):
            ctx.set(dut.csr.check, toggle.random() < 0.5)
            ctx.set(dut.csr.enable, toggle.random() < 0.7)
            ctx.set(dut.enable, toggle.random() < 0.9)
            await ctx.tick().repeat(toggle.randint(1, 80))
        await ctx.tick().repeat(3)
        assert ctx.get(dut.csr.packets) == len(given)
        assert ctx.get(dut.csr.errors) == sum(error for _, error in got)
        assert ctx.get(dut.csr.aborted) == ctx.get(dut.csr.faults) == 0
        assert ctx.get(dut.csr.state) & 1 == 0

    put, get = feed(dut.i, given, make_rng(seed, "put")), drain(dut.o, got, 80, make_rng(seed, "o"))
    run(dut, switch, put, get, stream_checker(dut.o), limit=30_000, seed=seed)
    seen = set()
    for packet, result in zip(given, got, strict=True):
        ways = [packet, crc32c.result(*packet), crc32c.result(*packet, check=True)]
        assert result in ways
        seen.add(ways.index(result))
    assert seen == {0, 1, 2}


@seeds(4)
def test_a_packet_is_worked_on_with_one_setting(seed):
    """A register that is written in the middle of a packet counts for the next one."""
    dut, got = EngineStage(Xor(), 32), []
    given = [(bytes([k] * 40), False) for k in range(60)]

    async def write(ctx):
        rng = make_rng(seed, "key")
        while len(got) < len(given):
            ctx.set(dut.csr.key, rng.randrange(256))
            await ctx.tick().repeat(rng.randint(1, 20))

    put, get = feed(dut.i, given, make_rng(seed, "put")), drain(dut.o, got, 60, make_rng(seed, "o"))
    run(dut, write, put, get, stream_checker(dut.o), limit=30_000, seed=seed)
    keys = set()
    for (data, _), (result, error) in zip(given, got, strict=True):
        assert not error
        (key,) = {a ^ b for a, b in zip(data, result, strict=True)}
        keys.add(key)
    assert len(keys) > 5


class Xor(wiring.Component):
    """XORs each byte with register ``key``, beat by beat, in the same cycle."""

    limits = EngineLimits(growth=0, latency=0)

    def __init__(self):
        block = RegisterBlock("xor", (Register("key", "rw", 8, "XORed with each byte"),))
        super().__init__(StreamEngineSignature(32, block))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
            self.o.p.eq(self.i.p),
            self.o.p.data.eq(self.i.p.data ^ self.csr.key.replicate(4)),
        ]
        return m


@pytest.mark.parametrize("enable", [0, 1])
@seeds(3)
def test_resets_cost_packets_and_nothing_else(enable, seed):
    """One packet leaves for each that comes; it is right, or has an error mark."""
    dut, rng, got = EngineStage(Crc32cEngine(), 32), make_rng(seed, "packets"), []
    given = packets(rng, 120)

    async def reset(ctx):
        ctx.set(dut.csr.enable, enable)
        await ctx.tick().repeat(2)
        times = make_rng(seed, "reset")
        while len(got) < len(given):
            await ctx.tick().repeat(times.randint(1, 60))
            ctx.set(dut.csr.reset, 1)
            await ctx.tick()
            ctx.set(dut.csr.reset, 0)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.csr.packets) == len(given)
        assert ctx.get(dut.csr.errors) == sum(error for _, error in got)
        assert ctx.get(dut.csr.aborted) > 10
        assert ctx.get(dut.csr.faults) == 0

    put, get = (
        feed(dut.i, given, make_rng(seed, "put")),
        drain(dut.o, got, 120, make_rng(seed, "o")),
    )
    run(dut, reset, put, get, stream_checker(dut.o), limit=60_000, seed=seed)
    good = 0
    for packet, result in zip(given[1:], got[1:], strict=True):
        if not result[1]:
            assert result == (crc32c.result(*packet) if enable else packet)
            good += 1
    assert good > 20


class Bad(wiring.Component):
    """A body that does anything: noise on both streams, unless it is told to hang."""

    def __init__(self):
        super().__init__(StreamEngineSignature(32))
        self.noise, self.hangs = Signal(48), Signal()

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.i.ready.eq(self.noise[0] & ~self.hangs),
            self.o.valid.eq(self.noise[1] & ~self.hangs),
            self.o.p.eq(self.noise[2:]),
        ]
        return m


@seeds(3)
def test_a_bad_body_breaks_no_rule(seed):
    """Noise: the streams keep their rules, and one packet leaves for each that comes."""
    body, got = Bad(), []
    dut, rng = EngineStage(body, 32, patience=20), make_rng(seed, "packets")
    given = packets(rng, 60)

    async def noise(ctx):
        while True:
            ctx.set(body.noise, rng.getrandbits(48))
            await ctx.tick()

    async def count(ctx):
        while len(got) < len(given):
            await ctx.tick()
        await ctx.tick().repeat(3)
        assert ctx.get(dut.csr.packets) == len(given)
        assert ctx.get(dut.csr.faults) > 10

    noise.background = True
    put, get = feed(dut.i, given, make_rng(seed, "put")), drain(dut.o, got, 60, make_rng(seed, "o"))
    run(dut, noise, put, get, count, stream_checker(dut.o), limit=30_000, seed=seed)


@pytest.mark.parametrize("patience", [1, 2, 20])
def test_a_hung_body_costs_its_packets(patience):
    """Each packet costs its time, and leaves with an error mark; after that the stage works."""
    body, got = Bad(), []
    dut = EngineStage(body, 32, patience=patience)
    given = [(bytes(40), False)] * 5

    async def hang(ctx):
        ctx.set(body.hangs, 1)
        while len(got) < len(given):
            await ctx.tick()
        await ctx.tick().repeat(3)
        assert ctx.get(dut.csr.faults) == ctx.get(dut.csr.aborted) == len(given)
        ctx.set(dut.csr.enable, 0)
        await ctx.tick().repeat(4)
        await packet_put(ctx, dut.i, b"through", False)

    feeds = feed(dut.i, given, None)
    cycles = run(dut, hang, feeds, drain(dut.o, got, 6, None), limit=5 * (patience + 30))
    assert [error for _, error in got] == [True] * 5 + [False]
    assert got[-1][0] == b"through"
    assert cycles >= 5 * patience


def test_throughput_of_the_stage():
    """A beat a cycle, without the packet's ends."""
    dut, got = EngineStage(Wire(64), 64), []
    cycles = run(
        dut, feed(dut.i, [(bytes(800), False)] * 5, None), drain(dut.o, got, 5, None), limit=2000
    )
    assert cycles <= 5 * 100 + 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EngineStage(Wire(32), 64), "Stream 'i' of the body must have 64 bits, not 32"),
        (lambda: EngineStage(Wire(), most=0), "Packets at work must be .* at least 1, not 0"),
        (lambda: EngineStage(Crc32cEngine(), patience=5), "above the body's latency of 5, not 5"),
        (lambda: EngineLimits(growth=-1), "An engine's growth must be an integer .*, not -1"),
        (lambda: Crc32cEngine(48), r"Data path width must be one of \(32, 64, 128\) bits, not 48"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
