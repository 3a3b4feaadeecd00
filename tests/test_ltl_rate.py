"""DC-QCN's rate algorithm, bandwidth limiter and PFC of LTL against their models."""

from streams import make_rng, run, seeds
from trebuchet.cores.ltl.config import LtlConfig
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
