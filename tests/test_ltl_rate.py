"""DC-QCN's rate algorithm, bandwidth limiter and PFC of LTL against their models."""

import pytest
from amaranth.hdl import Elaboratable, Module
from streams import make_rng, packet_get, run, seeds, stream_checker
from trebuchet.cores.ltl.config import LtlConfig
from trebuchet.cores.ltl.limiter import Limiter
from trebuchet.cores.ltl.pfc import PfcReceiver, PfcSender
from trebuchet.cores.ltl.rate import RateControl
from trebuchet.models.ltl_rate import Parameters
from trebuchet.models.ltl_rate import RateControl as Model

CONFIG = LtlConfig(connections=3, slots=8)
SETTLE = 12 * CONFIG.connections + 12


async def query(ctx, dut, connection, beats):
    """Ask, and send if that is allowed; returns whether it was."""
    ctx.set(dut.connection, connection)
    ctx.set(dut.start, 1)
    ctx.set(dut.spend, 0)
    ctx.set(dut.beats, beats)
    await ctx.tick()
    ctx.set(dut.start, 0)
    for _ in range(40):
        if ctx.get(dut.done):
            allow = ctx.get(dut.allow)
            ctx.set(dut.spend, allow)
            await ctx.tick()
            ctx.set(dut.spend, 0)
            return bool(allow)
        await ctx.tick()
    raise AssertionError("no answer")


@seeds(3)
def test_rates_are_those_of_the_model(seed):
    """Random notifications, ticks and frames of three connections: R_C and alpha bit for bit."""
    rng = make_rng(seed, "events")
    p = Parameters(
        line=rng.choice([65535, 40000]),
        minimum=rng.choice([65, 2000]),
        additive=900,
        hyper=2500,
        gain=rng.choice([4, 8]),
        alpha_ticks=3,
        rate_ticks=4,
        rate_beats=600,
        recovery=rng.choice([1, 5]),
    )
    dut, models = RateControl(CONFIG), [Model(p) for _ in range(3)]
    slowest = []

    async def main(ctx):
        for name in vars(p):
            ctx.set(dut.parameters[name], getattr(p, name))
        ctx.set(dut.enable, 1)
        for c in range(3):
            await strobe(ctx, dut.opened, c)
        for step in range(110):
            connection = rng.randrange(3)
            model = models[connection]
            kind = rng.choices(("tick", "cnp", "send"), (6, 1 if step < 60 else 0, 5))[0]
            if kind == "tick":
                ctx.set(dut.now, (ctx.get(dut.now) + 1) % 65536)
                for each in models:
                    each.tick()
            elif kind == "cnp":
                await strobe(ctx, dut.cnp, connection)
                model.notified()
            elif await query(ctx, dut, connection, 150):
                model.sent(150)
            await ctx.tick().repeat(SETTLE)
            ctx.set(dut.view, connection)
            await ctx.tick().repeat(SETTLE)
            assert (ctx.get(dut.rate), ctx.get(dut.alpha)) == (model.current, model.alpha), kind
            slowest.append(model.current / p.line)

    async def strobe(ctx, signal, connection):
        ctx.set(dut.connection, connection)
        ctx.set(signal, 1)
        await ctx.tick()
        ctx.set(signal, 0)
        await ctx.tick().repeat(SETTLE)

    run(dut, main, limit=40_000, seed=seed)
    assert min(slowest) < 0.7


def test_a_limited_connection_keeps_its_rate():
    """Frames of 20 beats at a rate of 1/8 beat a cycle: one in 160 cycles, less the burst."""
    dut = RateControl(CONFIG)
    sent = []

    async def main(ctx):
        for name, value in vars(Parameters(line=65535, minimum=8192, rate_beats=1 << 23)).items():
            ctx.set(dut.parameters[name], value)
        ctx.set(dut.enable, 1)
        ctx.set(dut.connection, 1)
        for signal, times in ((dut.opened, 1), (dut.cnp, 8)):
            for _ in range(times):
                ctx.set(signal, 1)
                await ctx.tick()
                ctx.set(signal, 0)
                await ctx.tick().repeat(SETTLE)
        for _ in range(400):
            sent.append(await query(ctx, dut, 1, 20))
        assert await query(ctx, dut, 0, 20)  # others are not slowed down

    cycles = run(dut, main, limit=20_000) - 9 * SETTLE
    assert cycles / 160 - 2 <= sum(sent) <= cycles / 160 + 4


@pytest.mark.parametrize("rate", [0, 16384])
def test_limiter_drops_what_exceeds_the_rate(rate):
    dut = Limiter()
    passed = []

    async def main(ctx):
        ctx.set(dut.rate, rate)
        ctx.set(dut.minimum, 100)
        ctx.set(dut.slope, 6)
        ctx.set(dut.beats, 25)
        for _ in range(800):  # 25 beats in 25 cycles: the whole line
            await ctx.tick().repeat(24)
            ctx.set(dut.spend, 1)
            passed.append(not ctx.get(dut.drop))
            await ctx.tick()
            ctx.set(dut.spend, 0)

    run(dut, main, limit=25_000)
    if not rate:
        assert all(passed)
        return
    assert all(passed[:3])  # the queue has to build up first
    share = sum(passed[200:]) / 600
    assert 0.22 <= share <= 0.28
    runs = "".join("01"[p] for p in passed[200:])
    assert "0000000000000000000000000" not in runs  # early and random, not all or nothing


class PfcPair(Elaboratable):
    """A sender of PFC and a receiver, wired together."""

    def __init__(self, width):
        self.tx, self.rx = PfcSender(width), PfcReceiver(width)

    def elaborate(self, platform):
        m = Module()
        m.submodules.tx, m.submodules.rx = self.tx, self.rx
        m.d.comb += [
            self.rx.valid.eq(self.tx.o.valid & self.tx.o.ready),
            self.rx.beat.eq(self.tx.o.payload),
        ]
        return m


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_pfc_pauses_its_class_only(seed, width):
    dut = PfcPair(width)
    rng = make_rng(seed, "pfc")
    frames = []
    mac = bytes.fromhex("02112233445a")
    klass = rng.randrange(8)

    async def main(ctx):
        ctx.set(dut.tx.mac, int.from_bytes(mac, "little"))
        for part in (dut.tx, dut.rx):
            ctx.set(part.priority, klass)
            ctx.set(part.quantum, 8)
        for xoff in (1, 0, 1):
            ctx.set(dut.tx.xoff, xoff)
            await ctx.tick().repeat(60)
            assert ctx.get(dut.rx.paused) == xoff
        ctx.set(dut.tx.xoff, 0)
        ctx.set(dut.rx.priority, (klass + 1) % 8)  # the XON is now for another class
        await ctx.tick().repeat(60)
        assert ctx.get(dut.rx.paused) == 1

    async def collect(ctx):
        r = make_rng(seed, "stall")
        while True:
            frames.append((await packet_get(ctx, dut.tx.o, rng=r))[0])

    collect.background = True
    run(dut, main, collect, stream_checker(dut.tx.o), limit=2_000, seed=seed)
    times = b"".join(b"\xff\xff" if p == klass else bytes(2) for p in range(8))
    head = bytes.fromhex("0180c2000001") + mac + bytes.fromhex("88080101") + bytes([0, 1 << klass])
    assert frames == [(head + (times if on else bytes(16))).ljust(60, b"\0") for on in (1, 0, 1, 0)]


def test_a_pause_ends_by_itself():
    dut = PfcPair(64)

    async def main(ctx):
        for part in (dut.tx, dut.rx):
            ctx.set(part.quantum, 1)
        ctx.set(dut.tx.o.ready, 1)
        ctx.set(dut.tx.xoff, 1)
        await ctx.tick().repeat(30)
        assert ctx.get(dut.rx.paused)
        ctx.set(dut.tx.o.ready, 0)  # the link is cut: no refresh
        await ctx.tick().repeat(65_500 - 30)
        assert ctx.get(dut.rx.paused)
        await ctx.tick().repeat(100)
        assert not ctx.get(dut.rx.paused)

    run(dut, main, limit=70_000)
