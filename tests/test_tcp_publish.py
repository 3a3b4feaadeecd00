"""``PublishEngine`` publishes what is written, at all sizes."""

from part_sizes import at_sizes
from streams import run
from test_sizes_tcp import _lend, chosen, config_of
from trebuchet.cores.tcp.publish import PublishEngine
from trebuchet.cores.tcp.record import Phase


@at_sizes("tcp.publish.PublishEngine", but=("width",))
def test_publish(size):
    config = config_of(size)
    dut = PublishEngine(config)

    async def bench(ctx):
        for session in chosen(config):
            ctx.set(dut.written.payload, {"session": session, "end": 0x8000, "text": 1})
            ctx.set(dut.written.valid, 1)
            assert await _lend(ctx, dut.port, {"phase": Phase.OPEN}) == session
            ctx.set(dut.written.valid, 0)
            await ctx.tick()

    run(dut, bench, limit=500)
