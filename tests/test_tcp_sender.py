"""Sender against the naive model and against scapy's view of its frames."""

from dataclasses import replace

import pytest
from net_frames import MAC, OUR_IP, recompute, tag_of
from streams import (
    MemoryResponder,
    make_rng,
    packet_get,
    run,
    seeds,
    stream_checker,
    stream_get,
    stream_put,
)
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.sender import Sender
from trebuchet.models.net import FLAG_NAMES, Segment, build_segment, parse_segment

SCALES = TcpConfig(scaling=True, segment_log2=20)
SACKS = TcpConfig(runs=2, sack=True)
ALL = replace(SCALES, runs=4, sack=True, vlan=True)


def random_segment(rng, length, memory, mss=None):
    """A model segment, and where in memory its payload lies."""
    addr = rng.randrange(len(memory) - length)
    if mss is None:
        mss = rng.choice([0, 0, 0, 1, 536, 1460, 65535])
    segment = Segment(
        mac=rng.randbytes(6),
        ip=rng.getrandbits(32),
        remote_port=rng.getrandbits(16),
        local_port=rng.getrandbits(16),
        seq=rng.getrandbits(32),
        ack=rng.getrandbits(32),
        flags=rng.getrandbits(8),
        window=rng.getrandbits(16),
        mss=mss,
        payload=bytes(memory[addr : addr + length]),
    )
    return segment, addr


def descriptor(segment, addr, session, length=None, config=None):
    """A model segment as the gateware's layout takes it."""
    more = {}
    if config is not None and config.scaling:
        more = {"scaled": segment.scale is not None}
    if config is not None and config.sack:
        edges = [e for edges in segment.blocks for e in edges]
        low = (1 << config.place_bits) - 1
        places = sum((e & low) << config.place_bits * k for k, e in enumerate(edges))
        more |= {"permits": segment.permits, "blocks": len(segment.blocks), "places": places}
    if config is not None and config.vlan:
        more |= {"vlan": tag_of(segment.vlan)}
    return {
        **more,
        "session": session,
        "mac": int.from_bytes(segment.mac, "little"),
        "ip": segment.ip,
        "remote_port": segment.remote_port,
        "local_port": segment.local_port,
        "seq": segment.seq,
        "ack": segment.ack,
        "flags": {name: segment.flags >> i & 1 for i, name in enumerate(FLAG_NAMES)},
        "window": segment.window,
        "mss": segment.mss,
        "addr": addr,
        "length": len(segment.payload) if length is None else length,
    }


def send(items, memory, seed, *, width=32, pressure=True, latency=(4, 40), limit=60_000, **kw):
    """Send (segment, addr) items; compare frames, ``sent`` and counters; return the cycles."""
    dut = Sender(width, **kw)
    config = kw.get("config")
    options = {n: config is not None and getattr(config, n) for n in ("scaling", "sack")}

    def rng_for(name):
        return make_rng(seed, name) if pressure else None

    async def put(ctx):
        rng = rng_for("put")
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, OUR_IP)
        for session, (segment, addr) in enumerate(items):
            put = descriptor(segment, addr, session, config=config)
            await stream_put(ctx, dut.segment, put, rng=rng)

    async def get(ctx):
        rng = rng_for("get")
        for segment, _ in items:
            frame = await packet_get(ctx, dut.frame, rng=rng)
            assert frame == (build_segment(segment, MAC, OUR_IP, **options), False)
        assert ctx.get(dut.csr.frames) == len(items)
        assert ctx.get(dut.csr.payload_bytes) == sum(len(s.payload) for s, _ in items)

    async def sent(ctx):
        rng = rng_for("sent")
        for session in range(len(items)):
            assert await stream_get(ctx, dut.sent, rng=rng) == session

    responder = MemoryResponder(dut.mem, memory, rng=rng_for("memory"), latency=latency)
    cycles = run(
        dut,
        put,
        get,
        sent,
        responder,
        stream_checker(dut.frame, "frame"),
        stream_checker(dut.sent, "sent"),
        limit=limit,
        seed=seed,
    )
    assert not any(burst.write for burst in responder.log)
    return cycles, responder


@seeds(2)
def test_model_is_what_scapy_says(seed):
    rng = make_rng(seed, "scapy")
    memory = rng.randbytes(4096)
    for _ in range(40):
        segment, _ = random_segment(rng, rng.choice([0, 1, 2, 3, rng.randint(0, 1460)]), memory)
        frame = build_segment(segment, MAC, OUR_IP)
        assert recompute(frame) == frame
        assert parse_segment(frame).payload == segment.payload
        assert len(frame) >= 60


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_random_segments(width, seed):
    rng = make_rng(seed, f"segments/{width}")
    memory = bytearray(rng.randbytes(2048))
    sizes = [rng.choice([0, 0, 1, 2, 5, 6, 7, rng.randint(0, 300)]) for _ in range(30)]
    items = [random_segment(rng, size, memory) for size in sizes]
    send(items, memory, seed, width=width, tag_width=seed)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("config", [SCALES, SACKS, ALL], ids=["scale", "sack", "all"])
@seeds(2)
def test_all_options(width, config, seed):
    rng = make_rng(seed, f"options/{width}")
    memory = bytearray(rng.randbytes(2048))
    items = []
    for _ in range(30):
        segment, addr = random_segment(rng, rng.choice([0, 0, 1, 5, 6, 50]), memory)
        syn = segment.mss != 0
        scale = config.shift if config.scaling and syn and rng.random() < 0.6 else None
        permits = config.sack and syn and rng.random() < 0.6
        blocks = ()
        if config.sack and not syn and not segment.payload and rng.random() < 0.8:
            edges = [(segment.ack + rng.randrange(60_000)) % (1 << 32) for _ in range(8)]
            blocks = tuple(zip(edges[::2], edges[1::2], strict=True))[: rng.randint(1, config.runs)]
        vlan = rng.getrandbits(16) if config.vlan and rng.random() < 0.6 else None
        more = {"scale": scale, "permits": permits, "blocks": blocks, "vlan": vlan}
        items.append((replace(segment, **more), addr))
    send(items, memory, seed, width=width, config=config)


@pytest.mark.parametrize("width", [32, 64])
def test_every_alignment(width):
    rng = make_rng(0, "alignment")
    memory = bytearray(rng.randbytes(512))
    n = width // 8
    items = []
    for start in range(n):
        for size in [*range(1, n + 2), 2 * n, 2 * n + 1]:
            segment, _ = random_segment(rng, 0, memory, mss=rng.choice([0, 1460]))
            addr = 64 + start
            payload = bytes(memory[addr : addr + size])
            items.append((Segment(**{**vars(segment), "payload": payload}), addr))
    send(items, memory, 0, width=width, pressure=False)


@pytest.mark.parametrize("width", [32, 64])
def test_full_segments_fill_the_data_path(width):
    """No pause between 1460-byte segments at 40 cycles of memory latency."""
    rng = make_rng(0, "full")
    memory = bytearray(rng.randbytes(8192))
    items = [random_segment(rng, 1460, memory, mss=0) for _ in range(8)]
    times = []
    for count in (2, 8):
        cycles, responder = send(
            items[:count], memory, None, width=width, pressure=False, latency=(40, 40)
        )
        times.append(cycles)
    beats = -(-(1460 + 54) * 8 // width)
    assert max(burst.beats for burst in responder.log) <= 64
    assert times[1] - times[0] == 6 * beats


def test_segments_without_payload_leave_memory_alone():
    rng = make_rng(0, "none")
    memory = bytearray(64)
    items = [random_segment(rng, 0, memory) for _ in range(12)]
    cycles, responder = send(items, memory, 0, pressure=False)
    assert responder.log == []
    assert cycles <= 12 * 42


def test_longer_segments_are_cut():
    rng = make_rng(0, "cut")
    memory = bytearray(rng.randbytes(4096))
    dut = Sender(32, buffer_bytes=256, max_payload=100)
    segment, addr = random_segment(rng, 100, memory)

    async def put(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, OUR_IP)
        for length in (101, 1461, 65535, 100):
            await stream_put(ctx, dut.segment, descriptor(segment, addr, 5, length))

    async def get(ctx):
        for _ in range(4):
            frame = await packet_get(ctx, dut.frame, rng=rng)
            assert frame == (build_segment(segment, MAC, OUR_IP), False)
            assert await stream_get(ctx, dut.sent, rng=rng) == 5
        assert ctx.get(dut.csr.cut) == 3

    run(dut, put, get, MemoryResponder(dut.mem, memory, rng=rng), limit=5000, seed=0)


@seeds(2)
def test_stalled_outputs_do_not_hold_memory_up(seed):
    """With ``frame`` and ``sent`` both stalled all read data asked for are still taken."""
    rng = make_rng(seed, "stall")
    memory = bytearray(rng.randbytes(4096))
    dut = Sender(32, buffer_bytes=1024, max_payload=400)
    items = [random_segment(rng, 300, memory) for _ in range(12)]
    responder = MemoryResponder(dut.mem, memory, rng=rng)

    async def put(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, OUR_IP)
        for session, (segment, addr) in enumerate(items):
            await stream_put(ctx, dut.segment, descriptor(segment, addr, session))

    async def get(ctx):
        await ctx.tick().repeat(1500)
        assert len(responder.log) >= 4
        assert not responder.busy
        for segment, _ in items:
            frame = await packet_get(ctx, dut.frame, rng=rng)
            assert frame == (build_segment(segment, MAC, OUR_IP), False)

    async def sent(ctx):
        await ctx.tick().repeat(1600)
        for session in range(len(items)):
            assert await stream_get(ctx, dut.sent, rng=rng) == session

    run(dut, put, get, sent, responder, limit=20_000, seed=seed)


def test_constructor_says_what_it_wants():
    with pytest.raises(ValueError, match=r"^Sender data path width must be 32 or 64 bits, not 8$"):
        Sender(8)
    message = r"^Sender buffer_bytes must be a power of two of at least 64, not 65$"
    with pytest.raises(ValueError, match=message):
        Sender(32, buffer_bytes=65)
    with pytest.raises(ValueError, match=r"^Sender max_payload must be 1 to 1460, not 1461$"):
        Sender(32, max_payload=1461)
    with pytest.raises(ValueError, match=r"^Sender max_payload must be 1 to 240, not 241$"):
        Sender(64, buffer_bytes=256, max_payload=241)
