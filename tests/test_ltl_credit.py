"""Credits of LTL, end to end: no frame is sent that has no room, whatever was opened anew."""

import pytest
from ltl_bench import SMALL, Pair, command, get_message, link, send_message, setup
from streams import run
from trebuchet.cores.ltl.config import LtlConfig

pytestmark = pytest.mark.slow


def test_an_output_that_stalls_stops_its_sender_and_nobody_else():
    """Credits end to end: no frame is sent that has no room; PROBEs; the other channel goes on."""
    pair = Pair(SMALL)
    a, b = pair.ends
    others = []

    async def main(ctx):
        for k, end in enumerate(pair.ends):
            await setup(ctx, end, k, rto=20, retries=2)
        await ctx.tick().repeat(20)
        for connection, vc in ((0, 0), (1, 1)):
            await command(ctx, b, connection, receive=True, peer=0, vc=vc, credit=2)
            await command(ctx, a, connection, peer=1, credit=2)
        for k in range(4):
            await send_message(ctx, a, 0, 0, bytes([k]) * 30)
        for k in range(6):
            await send_message(ctx, a, 1, 1, bytes([k]) * 30)
        await ctx.tick().repeat(1500)  # many time-outs, but the peer answers: no failure
        assert ctx.get(b.csr.messages_delivered) == 2 + 6
        assert ctx.get(a.csr.probes) >= 3
        assert (ctx.get(a.csr.failures), ctx.get(b.csr.no_room)) == (0, 0)
        assert others == [bytes([k]) * 30 for k in range(6)]
        for k in range(4):
            assert await get_message(ctx, b, 0) == (0, bytes([k]) * 30)
        await ctx.tick().repeat(200)
        assert ctx.get(a.csr.stored) == 0

    async def other(ctx):
        while True:
            others.append((await get_message(ctx, b, 1))[1])

    other.background = True
    run(pair, main, other, link(a, b), link(b, a), limit=8_000)


@pytest.mark.nightly
def test_messages_of_an_old_incarnation_count_until_they_have_left():
    """A connection is opened anew over a full output: neither it nor another finds too much."""
    config = LtlConfig(
        width=32, connections=4, slots=32, window=4, max_message=128, buffer_beats=256
    )
    pair = Pair(config)
    a, b = pair.ends

    def message(connection, k):
        return bytes([connection, k]) * 64

    async def main(ctx):
        for k, end in enumerate(pair.ends):
            await setup(ctx, end, k, rto=20, retries=7)
        await ctx.tick().repeat(20)
        for connection in (2, 3):  # 4 messages each fill the output's buffer
            await command(ctx, b, connection, receive=True, peer=0)
            await command(ctx, a, connection, peer=1)
        for k in range(4):
            await send_message(ctx, a, 0, 2, message(2, k))
        await ctx.tick().repeat(600)
        assert ctx.get(b.csr.messages_delivered) == 4
        await command(ctx, a, 2, peer=1, is_open=False)
        await command(ctx, b, 2, receive=True, peer=0, incarnation=2)
        await command(ctx, a, 2, peer=1, incarnation=2, credit=0)
        for k in range(4):
            await send_message(ctx, a, 0, 2, message(2, 4 + k))
        await ctx.tick().repeat(1500)
        assert ctx.get(b.csr.messages_delivered) == 4  # its room is still that of the old ones
        assert ctx.get(a.csr.probes) >= 2
        for k in range(4):
            assert await get_message(ctx, b, 0) == (2, message(2, k))
        for k in range(4):
            await send_message(ctx, a, 0, 2, message(2, 8 + k))
        await ctx.tick().repeat(1500)
        assert ctx.get(b.csr.messages_delivered) == 8
        for k in range(4):
            await send_message(ctx, a, 0, 3, message(3, k))
        await ctx.tick().repeat(1500)
        assert ctx.get(b.csr.messages_delivered) == 12
        expected = [(2, message(2, 4 + k)) for k in range(4)]
        expected += [(3, message(3, k)) for k in range(4)]
        expected += [(2, message(2, 8 + k)) for k in range(4)]
        for one in expected:
            assert await get_message(ctx, b, 0) == one
        await ctx.tick().repeat(300)
        assert (ctx.get(a.csr.stored), ctx.get(a.csr.failures), ctx.get(b.csr.no_room)) == (0, 0, 0)

    run(pair, main, link(a, b), link(b, a), limit=20_000)
