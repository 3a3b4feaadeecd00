"""``EventEngine``: what services hear of sessions, at all sizes."""

from part_sizes import at_sizes
from streams import run, stream_get
from test_sizes_tcp import BASE, _lend, chosen, config_of
from trebuchet.cores.tcp.events import EventEngine
from trebuchet.cores.tcp.record import Phase


@at_sizes("tcp.events.EventEngine", but=("width",))
def test_events(size):
    """The last service hears of the session, and where the last segment lies."""
    config = config_of(size)
    dut, last = EventEngine(config), len(config.ports) - 1
    segment = config.pool_segments - 1
    record = {"phase": Phase.OPEN, "ev_data": 1, "segment": segment, "rcv_pub": 0x9000}

    async def bench(ctx):
        for session in chosen(config):
            ctx.set(dut.heads, session << last * config.session_bits)
            ctx.set(dut.event_valid, 1 << last)
            assert await _lend(ctx, dut.port, record) == session
            ctx.set(dut.event_valid, 0)
            event = await stream_get(ctx, dut.event[last])
            assert event.session == session
            assert event.base == BASE + segment * config.segment_size
            assert event.position == 0x9000

    run(dut, bench, limit=500)
