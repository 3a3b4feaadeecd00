"""``ApplicationEngine``: descriptors of services, at all sizes."""

from part_sizes import at_sizes
from streams import run
from test_sizes_tcp import BASE, _lend, chosen, config_of
from trebuchet.cores.tcp.application import ApplicationEngine
from trebuchet.cores.tcp.record import Phase


@at_sizes("tcp.application.ApplicationEngine", but=("width",))
def test_application(size):
    """The last service's descriptor lands at its session's last place, behind 32 KiB of ring."""
    config = config_of(size)
    dut = ApplicationEngine(config)
    tx = dut.tx[len(config.ports) - 1]
    record = {
        "phase": Phase.OPEN, "count": 3, "first": 0, "opened": 1,
        "service": len(config.ports) - 1, "snd_end": 0xFFFF_FF00,
    }  # fmt: skip
    writes = []

    async def watch(ctx):
        async for _, _, write, address in ctx.tick().sample(dut.write, dut.address):
            if write:
                writes.append(address)

    watch.background = True

    async def bench(ctx):
        for session in chosen(config):
            ctx.set(tx.payload, {"session": session, "addr": BASE, "length": 4096, "push": 1})
            ctx.set(tx.valid, 1)
            assert await _lend(ctx, dut.port, record) == session
            ctx.set(tx.valid, 0)
            await ctx.tick().repeat(3)
        assert writes == [session << 2 | 3 for session in chosen(config)]

    run(dut, bench, watch, limit=500)
