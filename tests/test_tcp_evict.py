"""``Evictor`` finds the longest idle session, at all sizes."""

from part_sizes import at_sizes
from streams import run
from test_sizes_tcp import chosen, config_of
from trebuchet.cores.tcp.evict import Evictor
from trebuchet.cores.tcp.record import Phase


@at_sizes("tcp.evict.Evictor")
def test_evictor(size):
    """The longest idle session is found wherever it is, up to the last number and age."""
    config = config_of(size)
    dut, n, ended = Evictor(config), config.sessions, []

    async def script(ctx):
        ctx.set(dut.least, 5)
        ctx.set(dut.high, n)
        ctx.set(dut.phase, Phase.OPEN)
        for oldest in chosen(config):
            ctx.set(dut.press, 1)
            await ctx.tick()
            ctx.set(dut.press, 0)
            while ctx.get(dut.want):
                session = ctx.get(dut.session)
                ctx.set(dut.age, (1 << 23) if session == oldest else (1 << 23) - 1 - session)
                ctx.set(dut.seen, 1)
                if ctx.get(dut.ends):
                    ended.append(session)
                await ctx.tick()
                ctx.set(dut.seen, 0)
                await ctx.tick()

    run(dut, script, limit=12 * n + 100)
    assert ended == list(chosen(config))
