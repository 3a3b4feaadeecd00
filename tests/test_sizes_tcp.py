"""Parts of the TCP engine at their default and boards' sizes: the last session and place."""

from dataclasses import replace

import pytest
from memory_bench import MemoryResponder
from net_frames import tcp_frame
from part_sizes import at_sizes
from streams import make_rng, packet_get, packet_put, run, stream_get, stream_put
from table_bench import look_up
from trebuchet.cores.tcp.admission import Admission
from trebuchet.cores.tcp.application import ApplicationEngine
from trebuchet.cores.tcp.config import FULL, SMALL, TINY
from trebuchet.cores.tcp.dma import ReceiveDma
from trebuchet.cores.tcp.events import EventEngine
from trebuchet.cores.tcp.evict import Evictor
from trebuchet.cores.tcp.inspect import Inspector
from trebuchet.cores.tcp.parser import Parser
from trebuchet.cores.tcp.publish import PublishEngine
from trebuchet.cores.tcp.record import Phase
from trebuchet.cores.tcp.store import SessionStore
from trebuchet.cores.tcp.table import SessionTable
from trebuchet.cores.tcp.timer import TimerEngine
from trebuchet.cores.tcp.transmit import TransmitEngine

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


@at_sizes("tcp.store.SessionStore", but=("width",))
def test_store(size):
    """What is handed back of a session comes back, and of no other; in each field."""
    config = config_of(size)
    names = ("snd_una", "rcv_nxt", "rcv_base", "snd_nxt", "mss", "cwnd")
    writers = ("receive", "transmit", "timer", "events")
    dut = SessionStore(config, dict.fromkeys(writers, names))
    port = dut.receive

    async def checkout(ctx, session, fields):
        ctx.set(port.session, session)
        ctx.set(port.request, 1)
        while not ctx.get(port.grant):
            await ctx.tick()
        ctx.set(port.request, 0)
        found = {name: ctx.get(port.record[name]) for name in names}
        for name in names:
            ctx.set(port.result[name], fields.get(name, found[name]))
            ctx.set(port.changes[name], name in fields)
        ctx.set(port.commit, 1)
        await ctx.tick()
        ctx.set(port.commit, 0)
        await ctx.tick()
        return found

    def content(session):
        return {n: (session * 0x9E37 + k * 0x101 + 1) & 0x7FF for k, n in enumerate(names)}

    async def bench(ctx):
        while not ctx.get(dut.ready):
            await ctx.tick()
        for session in range(config.sessions):
            assert not any((await checkout(ctx, session, content(session))).values())
        for session in range(config.sessions):
            assert await checkout(ctx, session, {}) == content(session)

    run(dut, bench, limit=40 * config.sessions + 200)


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


@at_sizes("tcp.dma.ReceiveDma")
def test_receive_dma(size):
    """A payload as long as the buffer around the last ring's end; and all skipped but one byte."""
    config = config_of(size)
    dut, ring, length = ReceiveDma(config), config.segment_size, config.rx_buffer
    memory = bytearray(config.pool_size)
    packet = make_rng(0, "payload").randbytes(length)
    base = (config.pool_segments - 1) * ring
    start, last = base + ring - 5, config.sessions - 1

    async def put(ctx):
        common = {"session": last, "arrived": length, "commit": 1}
        await stream_put(ctx, dut.verdict, common | {"addr": BASE + start, "length": length})
        lone = {"addr": BASE + base + ring // 2, "skip": length - 1, "length": 1}
        await stream_put(ctx, dut.verdict, common | lone)

    async def feed(ctx):
        for _ in range(2):
            await packet_put(ctx, dut.payload, packet)

    async def get(ctx):
        for _ in range(2):
            assert (await stream_get(ctx, dut.written)).session == last

    responder = MemoryResponder(dut.mem, memory, latency=(4, 4))
    run(dut, put, feed, get, responder, limit=8 * length)
    wanted = bytearray(len(memory))
    for k, byte in enumerate(packet):
        wanted[base + (ring - 5 + k) % ring] = byte
    wanted[base + ring // 2] = packet[-1]
    assert memory == wanted


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


@at_sizes("tcp.admission.Admission")
def test_admission(size):
    fill(config_of(size))


@pytest.mark.parametrize("config", [SMALL, pytest.param(FULL, marks=pytest.mark.nightly)])
def test_admission_of_many(config):
    fill(config)


def fill(config):
    """All slots but the reserves of others are taken by one service, and one is given back."""
    dut = Admission(config)
    n = len(config.ports)
    most = config.usable - 3 * (n - 1)
    everybody, others = (1 << n) - 1, (1 << n) - 2

    async def script(ctx):
        for k in range(n):
            ctx.set(dut.settings[f"reserve_{k}"], 3)
        await ctx.tick().repeat(8)
        assert ctx.get(dut.admits) == everybody
        ctx.set(dut.taken, 1)
        await ctx.tick().repeat(most)
        ctx.set(dut.taken, 0)
        await ctx.tick().repeat(8)
        assert ctx.get(dut.used[0]) == most
        assert (ctx.get(dut.admits), ctx.get(dut.below)) == (others, others)
        assert ctx.get(dut.above) == 1
        ctx.set(dut.freed, 1)
        await ctx.tick()
        ctx.set(dut.freed, 0)
        await ctx.tick().repeat(8)
        assert ctx.get(dut.admits) == everybody

    run(dut, script, limit=config.sessions + 100)


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
