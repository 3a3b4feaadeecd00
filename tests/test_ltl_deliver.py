"""``Deliver`` at the sizes that boards have."""

from part_sizes import at_sizes
from streams import run, stream_get
from test_sizes_net import config_of
from trebuchet.cores.ltl.deliver import Deliver


@at_sizes("ltl.deliver.Deliver")
def test_deliver(size):
    """A channel's buffer takes as many beats as it has places; the last connection is told."""
    config = config_of(size)
    dut = Deliver(config)
    most = config.max_message // config.bytes
    sizes = [most] * (config.buffer_beats // most)
    sizes += [config.buffer_beats - sum(sizes)]
    beats = [(k, n) for n in sizes for k in range(n)]

    async def bench(ctx):
        vc, connection = config.vcs - 1, config.connections - 1
        ctx.set(dut.vc, vc)
        ctx.set(dut.connection, connection)
        for number, (k, n) in enumerate(beats):
            ctx.set(dut.beat, {"data": number, "first": k == 0, "last": k == n - 1})
            ctx.set(dut.valid, 1)
            ctx.set(dut.commit, k == n - 1)
            ctx.set(dut.words, n)
            await ctx.tick()
            assert not ctx.get(dut.overflow)
        ctx.set(dut.valid, 0)
        ctx.set(dut.commit, 0)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.level[vc]) == config.buffer_beats
        ctx.set(dut.done.ready, 1)
        for number in range(config.buffer_beats):
            got = await stream_get(ctx, dut.o[vc])
            assert (got.data, got.connection) == (number, connection)
        assert ctx.get(dut.level[vc]) == 0

    run(dut, bench, limit=4 * config.buffer_beats + 1000)
