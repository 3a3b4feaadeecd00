"""``TimerEngine`` visits sessions when they are due, at all sizes."""

from part_sizes import at_sizes
from streams import run
from test_sizes_tcp import chosen, config_of
from trebuchet.cores.tcp.record import Phase
from trebuchet.cores.tcp.timer import TimerEngine


@at_sizes("tcp.timer.TimerEngine", but=("width",))
def test_timer(size):
    """Sessions wait for times around the wheel's turn, and are visited in the tick of each."""
    config = config_of(size)
    dut, port = TimerEngine(config), None
    due = dict(
        zip(chosen(config), (config.wheel, config.wheel - 1, 1, 2 * config.wheel + 1), strict=True)
    )
    visits = {}

    async def store(ctx):
        while True:
            while not ctx.get(port.request):
                await ctx.tick()
            session, now = ctx.get(port.session), ctx.get(dut.now)
            later = 1000 if session in visits else 0
            record = {"phase": Phase.OPEN, "deadline": due[session] + later, "on_wheel": 1}
            for name, value in record.items():
                ctx.set(port.record[name], value)
            ctx.set(port.grant, 1)
            while not ctx.get(port.commit):
                await ctx.tick()
            if now >= due[session]:
                visits.setdefault(session, now)
            await ctx.tick()
            ctx.set(port.grant, 0)
            await ctx.tick()

    store.background = True
    port = dut.port

    async def bench(ctx):
        ctx.set(dut.free_valid, 1)
        await ctx.tick().repeat(config.wheel + 4)
        for session in due:
            ctx.set(dut.place_session, session)
            ctx.set(dut.place, 1)
            await ctx.tick()
            ctx.set(dut.place, 0)
        await ctx.tick().repeat(80)
        for _ in range(max(due.values()) + 2):
            ctx.set(dut.tick, 1)
            await ctx.tick()
            ctx.set(dut.tick, 0)
            await ctx.tick().repeat(14)
        assert visits == due

    run(dut, bench, store, limit=8_000)
