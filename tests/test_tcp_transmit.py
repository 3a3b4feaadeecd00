"""``TransmitEngine`` sends from a session's descriptors, at all sizes."""

from part_sizes import at_sizes
from streams import run
from test_sizes_tcp import _lend, chosen, config_of
from trebuchet.cores.tcp.record import Phase
from trebuchet.cores.tcp.transmit import TransmitEngine


@at_sizes("tcp.transmit.TransmitEngine", but=("width",))
def test_transmit(size):
    """The session at the list's head is sent from its last descriptor."""
    config = config_of(size)
    dut = TransmitEngine(config)
    record = {"phase": Phase.OPEN, "count": 1, "first": 3, "snd_wnd": 4096, "mss": 1460}
    record |= {"snd_end": 100, "cwnd": 10_000}
    asked = set()

    async def watch(ctx):
        async for _, _, grant, address in ctx.tick().sample(dut.port.grant, dut.address):
            if grant:
                asked.add(address)

    watch.background = True

    async def bench(ctx):
        ctx.set(dut.tx_segment.ready, 1)
        for session in chosen(config):
            asked.clear()
            ctx.set(dut.active_session, session)
            ctx.set(dut.active_valid, 1)
            assert await _lend(ctx, dut.port, record) == session
            ctx.set(dut.active_valid, 0)
            assert ctx.get(dut.session) == session
            assert session << 2 | 3 in asked
            await ctx.tick().repeat(3)

    run(dut, bench, watch, limit=1000)
