"""Parts of the TCP engine at their default and boards' sizes: the last session and place."""

from dataclasses import replace

from net_frames import tcp_frame
from part_sizes import at_sizes
from streams import make_rng, packet_get, packet_put, run, stream_get
from table_bench import look_up
from trebuchet.cores.tcp.config import TINY
from trebuchet.cores.tcp.inspect import Inspector
from trebuchet.cores.tcp.parser import Parser
from trebuchet.cores.tcp.record import Phase
from trebuchet.cores.tcp.table import SessionTable

BASE = 0x4000_0000


def config_of(size):
    return replace(TINY, segments=None, half_open=None, pool_base=BASE, **size)


def chosen(config):
    """Sessions that differ in their highest or in all lower bits."""
    n = config.sessions
    return (n - 1, 0, n // 2, n // 2 - 1)


async def _lend(ctx, port, fields):
    """The store's side of a checkout; return whose record was asked for, as the engine has it."""
    while not ctx.get(port.request):
        await ctx.tick()
    session = ctx.get(port.session)
    await ctx.tick().repeat(2)
    for name, value in fields.items():
        ctx.set(port.record[name], value)
    ctx.set(port.grant, 1)
    while not ctx.get(port.commit):
        await ctx.tick()
    await ctx.tick()
    ctx.set(port.grant, 0)
    return session


@at_sizes("tcp.table.SessionTable", but=("width",))
def test_table(size):
    """Each session has a number of its own, all are found, and one more has no place."""
    config = config_of(size)
    dut, rng = SessionTable(config), make_rng(0, "tuples")
    tuples = [rng.getrandbits(64) for _ in range(config.sessions + 1)]

    async def bench(ctx):
        numbers = [(await look_up(ctx, dut, key, insert=True))[2] for key in tuples]
        assert numbers.pop() is None
        assert sorted(numbers) == list(range(config.sessions))
        assert ctx.get(dut.in_use) == config.sessions
        for key, number in zip(tuples, numbers, strict=False):
            assert await look_up(ctx, dut, key) == (1, number, None)

    run(dut, bench, limit=200 * config.sessions)


@at_sizes("tcp.inspect.Inspector", but=("width",))
def test_inspect(size):
    config = config_of(size)
    dut = Inspector(config)

    async def bench(ctx):
        for session in chosen(config):
            ctx.set(dut.session, session)
            ctx.set(dut.ask, 1)
            await ctx.tick()
            ctx.set(dut.ask, 0)
            assert await _lend(ctx, dut.port, {"phase": Phase.OPEN}) == session
            await ctx.tick().repeat(3)

    run(dut, bench, limit=500)


@at_sizes("tcp.parser.Parser", width=32, buffer_bytes=4096)
def test_parser(size):
    """The buffer takes as many bytes as it has, and no more; so does the queue of segments."""
    dut = Parser(**{k: v for k, v in size.items() if k in ("width", "buffer_bytes", "segments")})
    queue = dut.segments
    n, room = size["width"] // 8, size["buffer_bytes"]
    lengths = [1460] * (room // 1460)
    lengths.append(room - sum(-(-k // n) * n for k in lengths))
    rng = make_rng(0, "payloads")
    payloads, more = [rng.randbytes(length) for length in lengths], b"one more"

    async def bench(ctx):
        for k, payload in enumerate([*payloads, more]):
            await packet_put(ctx, dut.frame, tcp_frame(payload, seq=k))
        await ctx.tick().repeat(12)
        kept = ctx.get(dut.csr.segments)
        assert kept + ctx.get(dut.csr.overflow) == len(payloads) + 1
        # A beat or two may have gone to the output before.
        assert kept >= len(payloads)
        for k, payload in enumerate([*payloads, more][:kept]):
            assert (await stream_get(ctx, dut.segment)).seq == k
            assert (await packet_get(ctx, dut.payload))[0] == payload
        before = [ctx.get(count) for count in (dut.csr.segments, dut.csr.overflow)]
        for k in range(queue + 4):
            await packet_put(ctx, dut.frame, tcp_frame(b"", seq=k))
        await ctx.tick().repeat(12)
        kept = ctx.get(dut.csr.segments) - before[0]
        assert queue <= kept <= queue + 2  # one is at the output
        assert kept + ctx.get(dut.csr.overflow) - before[1] == queue + 4
        for k in range(kept):
            assert (await stream_get(ctx, dut.segment)).seq == k

    run(dut, bench, limit=20_000)
