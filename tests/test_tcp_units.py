"""The TCP engine's parts on their own, against naive models."""

from dataclasses import replace

import pytest
from amaranth.hdl import Value
from streams import (
    MemoryResponder,
    make_rng,
    packet_put,
    run,
    seeds,
    stream_checker,
    stream_get,
    stream_put,
)
from table_bench import look_up
from tcp_bench import SMALL, Peer, World
from trebuchet.cores.tcp import application, receive, timer, transmit
from trebuchet.cores.tcp.classifier import DEPTH, SegmentClassifier
from trebuchet.cores.tcp.config import FULL, TINY, TcpConfig
from trebuchet.cores.tcp.config import SMALL as SMALL_PRESET
from trebuchet.cores.tcp.dma import ReceiveDma
from trebuchet.cores.tcp.engine import TcpEngine
from trebuchet.cores.tcp.estimator import CongestionWindow, RttEstimator
from trebuchet.cores.tcp.registers import programmable
from trebuchet.cores.tcp.speck import ROUNDS, Speck
from trebuchet.cores.tcp.table import SessionTable
from trebuchet.models.tcp import RttState, after, rtt_update, speck64_128

M32 = (1 << 32) - 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sessions": 48}, r"Number of sessions must be a power of two from 2 to 65536, not 48"),
        (
            {"cache": 3},
            r"Number of cached sessions must be a power of two from 2 to 8, of .*, not 3",
        ),
        ({"cache": 2, "state_base": 64}, r"State base must be a multiple of 128 .*, not 64"),
        ({"ports": ()}, r"Number of services must be 1 to 8, not 0"),
        ({"segments": 9}, r"Number of segments must be 1 to 8, not 9"),
        ({"pool_base": 100}, r"Pool base must be a multiple of 4096 .*, not 100"),
        ({"mss": 9000}, r"MSS must be 536 to 1460, not 9000"),
        (
            {"rx_buffer": 3000},
            r"Receive buffer must be a power of two from 2048 to 32768, not 3000",
        ),
        ({"wheel": 10}, r"Wheel size must be a power of two from 4 to 4096, not 10"),
        ({"rto_min": 0}, r"rto_min must be 1 to 65535, not 0"),
        ({"width": 8}, r"Data path width must be one of .*, not 8"),
    ],
)
def test_configuration_is_checked(change, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        replace(SMALL, **change)


def test_engine_wants_a_configuration():
    with pytest.raises(TypeError, match="^Configuration must be a TcpConfig, not 64$"):
        TcpEngine(64)


def test_presets():
    sizes = {preset.sessions: preset.state_size for preset in (TINY, SMALL_PRESET, FULL)}
    assert sizes == {64: 0, 1024: 0, 131072: 33 << 20}
    assert (FULL.session_bits, FULL.cache) == (17, 1024)


def test_derived_sizes_follow_replace():
    config = replace(TcpConfig(), sessions=4)
    assert (config.pool_segments, config.half_open_limit, config.session_bits) == (4, 3, 2)


def test_speck_model_matches_published_vector():
    """ePrint 2013/404, appendix C."""
    key = 0x1B1A1918_13121110_0B0A0908_03020100
    assert speck64_128(0x3B726574_7475432D, key) == 0x8C6FA548_454E028B


@seeds(2)
def test_speck(seed):
    dut, rng = Speck(), make_rng(seed, "speck")

    async def bench(ctx):
        for _ in range(5):
            block, key = rng.getrandbits(64), rng.getrandbits(128)
            ctx.set(dut.block, block)
            ctx.set(dut.key, key)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for rounds in range(ROUNDS + 1):
                assert ctx.get(dut.rounds) == rounds
                assert ctx.get(dut.result) == speck64_128(block, key, rounds)
                await ctx.tick()
            assert ctx.get(dut.result) == speck64_128(block, key)

    run(dut, bench, limit=500, seed=seed)


@seeds(2)
def test_rtt_estimator(seed):
    dut, rng = RttEstimator(60_000), make_rng(seed, "rtt")

    async def bench(ctx):
        state = RttState()
        for _ in range(60):
            sampled = rng.random() < 0.8
            sample = rng.choice((0, 1, rng.randrange(300), rng.randrange(65536)))
            start = rng.getrandbits(16)
            low, initial = rng.choice(((200, 1000), (1, 3)))
            ctx.set(dut.srtt8, state.srtt8 or 0)
            ctx.set(dut.rttvar4, state.rttvar4 or 0)
            ctx.set(dut.valid, state.srtt8 is not None)
            ctx.set(dut.sample, sampled)
            ctx.set(dut.start, start)
            ctx.set(dut.now, (start + sample) & 0xFFFF)
            ctx.set(dut.rto_min, low)
            ctx.set(dut.rto_initial, initial)
            await ctx.tick().repeat(5)
            if sampled:
                state = rtt_update(state, sample)
                assert ctx.get(dut.srtt8_new) == state.srtt8
                assert ctx.get(dut.rttvar4_new) == state.rttvar4
            assert ctx.get(dut.rto) == state.rto(low, initial, 60_000)

    run(dut, bench, limit=1000, seed=seed)


@seeds(1)
@pytest.mark.parametrize("bits", [17, 22])
def test_congestion_window(bits, seed):
    dut, rng = CongestionWindow(bits), make_rng(seed, "cwnd")
    top = 1 << bits - 1

    async def bench(ctx):
        for _ in range(80):
            mss = rng.randint(64, 1460)
            cwnd = rng.choice((mss, rng.randint(mss, top - 1), top + rng.randrange(mss)))
            ssthresh = rng.choice((2 * mss, rng.randrange(top), top - 1))
            acked, out = rng.randint(1, top - 1), rng.randrange(top)
            credit = rng.randrange(cwnd)
            values = {"mss": mss, "cwnd": cwnd, "ssthresh": ssthresh, "acked": acked}
            for name, value in (values | {"out": out, "credit": credit}).items():
                ctx.set(getattr(dut, name), value)
            await ctx.tick().repeat(3)
            if cwnd >= top:
                expected = (cwnd, 0)
            elif cwnd < ssthresh:
                expected = (cwnd + min(acked, mss), 0)
            elif credit + acked >= cwnd:
                expected = (cwnd + mss, credit + acked - cwnd)
            else:
                expected = (cwnd, credit + acked)
            assert (ctx.get(dut.grown), ctx.get(dut.credit_new)) == expected
            assert ctx.get(dut.half) == max(out // 2, 2 * mss)

    run(dut, bench, limit=1000, seed=seed)


def test_congestion_control_by_name():
    assert TcpConfig().congestion == "newreno"
    message = r"^Congestion control must be newreno or fixed, not 'cubic'$"
    with pytest.raises(ValueError, match=message):
        TcpConfig(congestion="cubic")


def test_a_fixed_window_is_limited_by_the_peer_alone():
    """Many segments after the handshake's ACK, and after a loss that ACKs have told of."""

    async def script(ctx, world):
        peer = Peer(world, mss=100)
        await peer.open(ctx)
        world.services[0].send(0, bytes(8000))
        assert await sent_at_once(ctx, world) == 8000
        peer.raw(peer.seq, ack=peer.iss + 101)
        for _ in range(4):  # duplicates: the second segment was lost
            peer.raw(peer.seq, ack=peer.iss + 101)
        assert await sent_at_once(ctx, world) == 100
        assert world.csr(ctx, "fast_retransmits") == 1
        peer.raw(peer.seq, ack=peer.iss + 8001)
        world.services[0].send(0, bytes(6000))
        assert await sent_at_once(ctx, world) == 6000

    async def sent_at_once(ctx, world):
        await world.pause(ctx, 8)
        count = sum(s["length"] for s in world.out)
        world.out.clear()
        return count

    World(replace(SMALL, congestion="fixed"), tick=250).run(script)


@seeds(2)
def test_judge(seed):
    """A.3: all comparisons modulo 2**32, near every edge and across the wrap."""
    dut, rng = SegmentClassifier(SMALL), make_rng(seed, "judge")

    async def bench(ctx):
        for _ in range(400):
            nxt, una = (rng.choice((0, 0x100, 0xFFFFFF00, rng.getrandbits(32))) for _ in "ab")
            room, out = rng.choice((0, 1, 4096, 65535)), rng.choice((0, 1, 1460, 65535))
            length, fin = rng.choice((0, 1, 2, 536, 1460)), rng.random() < 0.3
            off = rng.choice((0, -1, 1, -length, 1 - length, -length - 1, room, room - 1, room + 1))
            off = rng.choice((off, off, off, 1 << 31, rng.randint(-70000, 70000), 0x20000 + 10))
            gained = rng.choice((0, 1, -1, out, out + 1, -65536, -65537, 1 << 30, out // 2))
            record, seg = dut.record, dut.segment
            ctx.set(record.rcv_nxt, nxt)
            ctx.set(record.rcv_edge, (nxt + room) & M32)
            ctx.set(record.snd_una, una)
            ctx.set(record.snd_max, (una + out) & M32)
            ctx.set(seg.seq, (nxt + off) & M32)
            ctx.set(seg.ack, (una + gained) & M32)
            ctx.set(seg.length, length)
            ctx.set(seg.flags.fin, fin)
            await ctx.tick().repeat(DEPTH)
            j = ctx.get(dut.judgement)
            off = (off + (1 << 31) & M32) - (1 << 31)
            ends = off < 0 and off + length + fin > 0 and off > -65536
            assert j.exact == (off == 0)
            assert j.ahead == after(nxt + off, nxt)
            assert j.in_window == (off == 0 or 0 < off < room)
            assert j.valid == (0 <= off <= room or ends)
            if j.valid and not j.ahead:
                assert j.skip == -off
                assert j.take == min(room, length + off)
                assert j.next == (nxt + min(room, length + off)) & M32
                assert j.whole == (length + off <= room)
            assert j.keep == (length > 0 and 0 < off < off + length <= room)
            assert j.ack_new == (0 < gained <= out)
            assert j.ack_same == (gained == 0)
            assert j.ack_bad == (gained > out or gained < -65536)

    run(dut, bench, limit=4000, seed=seed)


@seeds(2)
def test_table_under_churn(seed):
    """No tuple is lost or confused, no number given twice, none refused while one is free."""
    config = replace(SMALL, sessions=16, half_open=16)
    dut, rng = SessionTable(config), make_rng(seed, "table")
    tuples = [rng.getrandbits(64) for _ in range(24)]

    async def bench(ctx):
        model = {}
        for _ in range(250):
            key = rng.choice(tuples)
            if rng.random() < 0.4 and model:
                key = rng.choice(list(model))
                ctx.set(dut.reap, 1)
                ctx.set(dut.reap_session, model.pop(key))
                await ctx.tick()
                ctx.set(dut.reap, 0)
                for _ in range(rng.choice((0, 60))):
                    await ctx.tick()
                while ctx.get(dut.in_use) != len(model):
                    await ctx.tick()
            found, session, number = await look_up(ctx, dut, key, insert=rng.random() < 0.7)
            assert found == (key in model)
            if found:
                assert session == model[key]
            elif number is not None:
                assert number not in model.values()
                model[key] = number
            else:
                assert ctx.get(dut.lookup.free_valid) == (len(model) < 16)

    run(dut, bench, limit=40_000, seed=seed)


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_receive_dma(width, seed):
    """Each byte at its place and no other touched; drops, trims, ring ends, FINs; in order."""
    config = replace(SMALL, width=width, segment_log2=10, sessions=4, half_open=4)
    dut, rng = ReceiveDma(config), make_rng(seed, "dma")
    memory = bytearray(rng.randbytes(config.pool_size))
    expected = bytearray(memory)
    verdicts, payloads, notes, put_all = [], [], [], []
    for k in range(25):
        arrived = rng.choice((0, 1, 2, 5, rng.randint(1, 700)))
        packet = rng.randbytes(arrived)
        commit = rng.random() < 0.8 or arrived == 0
        skip = rng.choice((0, 0, rng.randint(0, arrived)))
        length = rng.choice((arrived - skip, rng.randint(0, arrived - skip)))
        base, offset = 1024 * rng.randrange(4), rng.randrange(1024)
        ahead = commit and length != 0 and rng.random() < 0.3
        if commit:
            for i in range(length):
                expected[base + (offset + i) % 1024] = packet[skip + i]
            if not ahead:
                notes.append({"session": k % 4, "end": k, "fin": k % 2, "text": length != 0})
        else:
            skip = length = 0
        verdicts.append(
            {
                "session": k % 4, "addr": base + offset, "arrived": arrived, "skip": skip,
                "length": length, "fin": k % 2, "end": k, "commit": commit, "ahead": ahead,
            }
        )  # fmt: skip
        if arrived:
            payloads.append(packet)
    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))

    async def put(ctx):
        for verdict in verdicts:
            await stream_put(ctx, dut.verdict, verdict, rng=make_rng(seed, verdict["end"]))
        put_all.append(True)

    async def feed(ctx):
        own = make_rng(seed, "feed")
        for packet in payloads:
            await packet_put(ctx, dut.payload, packet, rng=own)

    async def get(ctx):
        own = make_rng(seed, "get")
        for note in notes:
            got = await stream_get(ctx, dut.written, rng=own)
            assert {name: got[name] for name in note} == note
        for _ in range(2000):
            await ctx.tick()
            if put_all and ctx.get(dut.idle):
                break
        assert ctx.get(dut.idle)

    checks = [stream_checker(dut.mem.cmd), stream_checker(dut.mem.wdata)]
    run(dut, put, feed, get, responder, *checks, limit=40_000, seed=seed)
    assert memory == expected


def test_dma_throughput():
    """A full payload moves one beat a cycle, and costs few cycles beside."""
    dut = ReceiveDma(TcpConfig())
    memory = bytearray(1 << 16)
    verdict = {
        "session": 0, "addr": 0x101, "arrived": 1460, "skip": 0, "length": 1460,
        "fin": 0, "end": 0, "commit": 1, "ahead": 0,
    }  # fmt: skip

    async def put(ctx):
        for _ in range(4):
            await stream_put(ctx, dut.verdict, verdict)

    async def feed(ctx):
        for _ in range(4):
            await packet_put(ctx, dut.payload, bytes(1460))

    async def get(ctx):
        for _ in range(4):
            await stream_get(ctx, dut.written)

    cycles = run(dut, put, feed, get, MemoryResponder(dut.mem, memory), limit=4000)
    assert cycles <= 4 * (366 + 8)


def test_registers_are_complete():
    """Every counter that an engine raises is in the register block."""
    dut = TcpEngine(SMALL)
    names = {r.name for r in dut.block.registers}
    for source in (receive, transmit, timer, application):
        assert set(source.COUNTS) <= names
    assert len(Value.cast(dut.csr.unknown)) == 32


def test_fixed_settings_are_told_and_cannot_be_written():
    """`programmable=False`: the registers tell what was built in; the engine works by that."""
    config = replace(SMALL, programmable=False, time_wait=77)
    dut = TcpEngine(config)
    access = {r.name: r.access for r in dut.block.registers}
    told = programmable(config)
    assert {access[name] for name in told} == {"ro"}
    assert access["listen"] == "rw"

    async def look(ctx):
        await ctx.tick()
        for name, (_, value, _) in told.items():
            assert ctx.get(getattr(dut.csr, name)) == value
            assert ctx.get(dut.receive.settings[name]) == value

    run(dut, look, limit=10)
    assert told["time_wait"][1] == 77
