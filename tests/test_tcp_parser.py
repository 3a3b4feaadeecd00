"""Receive parser against the naive model, with frames that scapy made."""

from ipaddress import IPv4Address

import pytest
from net_frames import tag_of, tcp_frame
from streams import (
    make_rng,
    packet_get,
    packet_put,
    plain,
    run,
    seeds,
    stream_checker,
    stream_get,
)
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.parser import PARSER_BLOCK, Parser
from trebuchet.models.net import FLAG_NAMES, Drop, parse_segment, with_tag

COUNTERS = [r.name for r in PARSER_BLOCK.registers]
#: First bytes of an address that a host may have.
HOSTS = [k for k in range(1, 224) if k != 127]
ALL_OPTIONS = TcpConfig(scaling=True, sack=True, vlan=True)


def expected(frames, vlan=False):
    """What the model says: (segments, counts)."""
    good, counts = [], dict.fromkeys(COUNTERS, 0)
    for frame, error in frames:
        try:
            good.append(parse_segment(frame, error, vlan=vlan))
            counts["segments"] += 1
        except Drop as drop:
            counts[drop.reason] += 1
    return good, counts


def as_dict(segment, config=None):
    """A model segment as the gateware's layout shows it."""
    more = {}
    if config is not None and config.scaling:
        more = {"scaled": segment.scale is not None, "scale": segment.scale or 0}
    if config is not None and config.sack:
        more |= {"permits": segment.permits}
    if config is not None and config.vlan:
        more |= {"vlan": tag_of(segment.vlan)}
    flags = {name: segment.flags >> i & 1 for i, name in enumerate(FLAG_NAMES)}
    return {
        "mac": int.from_bytes(segment.mac, "little"),
        "ip": segment.ip,
        "remote_port": segment.remote_port,
        "local_port": segment.local_port,
        "seq": segment.seq,
        "ack": segment.ack,
        "flags": flags,
        "window": segment.window,
        "mss": segment.mss,
        "length": len(segment.payload),
        **more,
    }


def check(frames, seed, *, width=32, pressure=True, idle=0.3, limit=60_000, **parameters):
    """Send frames, compare segments, payloads and counters with the model; return the cycles."""
    dut = Parser(width, **parameters)
    config = parameters.get("config")
    good, counts = expected(frames, config is not None and config.vlan)
    end = 0

    def rng_for(name):
        return make_rng(seed, name) if pressure else None

    async def put(ctx):
        rng = rng_for("put")
        for frame, error in frames:
            await packet_put(ctx, dut.frame, frame, error, rng=rng, idle=idle)
        nonlocal end
        for _ in range(12):
            await ctx.tick()
        seen = {name: ctx.get(getattr(dut.csr, name)) for name in COUNTERS}
        assert seen == counts

    async def get_segments(ctx):
        rng = rng_for("segments")
        for segment in good:
            got = await stream_get(ctx, dut.segment, rng=rng)
            assert plain(got) == as_dict(segment, config)

    async def get_payloads(ctx):
        rng = rng_for("payloads")
        for segment in good:
            if segment.payload:
                got = await packet_get(ctx, dut.payload, rng=rng)
                assert got == (segment.payload, False)

    async def nothing_more(ctx):
        await put(ctx)
        await ctx.tick().repeat(40)

    return run(
        dut,
        nothing_more,
        get_segments,
        get_payloads,
        stream_checker(dut.segment, "segment"),
        stream_checker(dut.payload, "payload"),
        limit=limit,
        seed=seed,
    )


def random_frame(rng, biggest=120):
    size = rng.choice([0, 0, 1, 2, 3, 4, 5, 6, 7, 8, rng.randint(0, biggest)])
    return tcp_frame(
        rng.randbytes(size),
        flags=rng.randrange(256),
        seq=rng.getrandbits(32),
        ack=rng.getrandbits(32),
        window=rng.getrandbits(16),
        sport=rng.getrandbits(16),
        dport=rng.getrandbits(16),
        src_ip=rng.choice(HOSTS) << 24 | rng.getrandbits(24),
        src_mac=rng.randbytes(6),
        tcp_options=random_options(rng),
        ip_options=rng.randbytes(4 * rng.choice([0, 0, 0, 1, 2, 5, 10])),
        pad=rng.random() < 0.7,
        padding=rng.randbytes(rng.choice([0, 0, 1, 2, 3, 4, 9])),
    )


def random_options(rng):
    """Proper options mostly, evil ones at times, garbage at others; 40 bytes at most."""
    style = rng.randrange(4)
    if style == 0:
        return b""
    if style == 1:
        return rng.randbytes(rng.randint(1, 40))
    octets = b""
    while len(octets) < 40 and rng.random() < 0.8:
        octets += rng.choice(
            [
                b"\x01",
                b"\x02\x04" + rng.randbytes(2),
                b"\x03\x03\x07",
                bytes([3, 3, rng.randrange(256)]),
                bytes([3, rng.randrange(5)]),
                b"\x04\x02",
                b"\x08\x0a" + rng.randbytes(8),
                bytes([rng.randrange(3, 256), rng.randrange(2, 12)]),
                bytes([2, rng.randrange(8)]) + rng.randbytes(2),
                bytes([rng.choice([0, 2, 8]), rng.choice([0, 1, 255])]) if style == 3 else b"\x01",
            ]
        )
    return octets[:40]


def damage(rng, frame):
    """One of the many ways in which a frame can be wrong."""
    octets = bytearray(frame)
    kind = rng.randrange(7)
    if kind == 0:
        octets[rng.randrange(14, len(octets))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        octets = octets[: rng.randint(1, len(octets))]
    elif kind == 2:
        octets = bytearray(rng.randbytes(rng.randint(1, 80)))
    elif kind == 3:
        octets[rng.choice([12, 13, 14, 16, 17, 20, 21, 23])] = rng.randrange(256)
    elif kind == 4:
        octets[14 + 4 * (octets[14] & 15) + 12] = rng.randrange(256)
    elif kind == 5:
        octets[14] = 0x40 | rng.randrange(16)
    else:
        octets[16:18] = rng.randrange(0, 100).to_bytes(2, "big")
    return bytes(octets), rng.random() < 0.2


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_good_frames(width, seed):
    rng = make_rng(seed, f"frames/{width}")
    frames = [(random_frame(rng), False) for _ in range(25)]
    assert all(parse_segment(f) for f, _ in frames)
    check(frames, seed, width=width, buffer_bytes=16384, segments=64)


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_all_options(width, seed):
    """The options that a richer engine looks at, among evil ones, at every place."""
    rng = make_rng(seed, f"options/{width}")
    frames = [(random_frame(rng, 8), False) for _ in range(60)]
    found = [parse_segment(f) for f, _ in frames]
    assert {s.scale is None for s in found} == {True, False}
    check(frames, seed, width=width, buffer_bytes=16384, segments=64, config=ALL_OPTIONS)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("pressure", [True, False])
@seeds(2)
def test_vlan_tags(width, pressure, seed):
    """Frames with tags and without, whole and damaged; without pauses each keeps its own tag."""
    rng = make_rng(seed, f"tags/{width}")
    frames = []
    for _ in range(60):
        frame, error = random_frame(rng, 20), False
        if rng.random() < 0.4:
            frame, error = damage(rng, frame)
        if rng.random() < 0.7:
            frame = with_tag(frame, rng.getrandbits(16))
        frames.append((frame[:12] + frame[16:] if rng.random() < 0.05 else frame, error))
    config = TcpConfig(vlan=True)
    assert len({s.vlan for s in expected(frames, True)[0]}) > 10
    more = {"buffer_bytes": 16384, "segments": 64, "config": config, "pressure": pressure}
    check(frames, seed, width=width, **more)


@pytest.mark.parametrize("width", [32, 64])
@seeds(3)
def test_bad_frames_between_good_ones(width, seed):
    rng = make_rng(seed, f"bad/{width}")
    frames = []
    for _ in range(45):
        frame = random_frame(rng, 40)
        frames.append(damage(rng, frame) if rng.random() < 0.7 else (frame, False))
    check(frames, seed, width=width, buffer_bytes=16384, segments=64)


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_line_rate_without_gaps(width, seed):
    """No idle cycle at the input: frames of all kinds keep their own fields and verdicts."""
    rng = make_rng(seed, f"line/{width}")
    frames = []
    for _ in range(60):
        frame = random_frame(rng, 30)
        frames.append(damage(rng, frame) if rng.random() < 0.5 else (frame, rng.random() < 0.1))
    cycles = check(frames, seed, width=width, pressure=False, buffer_bytes=16384, segments=64)
    beats = sum(-(-len(f) * 8 // width) for f, _ in frames)
    assert cycles <= beats + 12 + 40 + 4


def test_large_frames_sustain_one_beat_a_cycle():
    rng = make_rng(0, "large")
    frames = [(tcp_frame(rng.randbytes(1460), flags=0x18), False) for _ in range(4)]
    cycles = check(frames, None, pressure=False)
    drain = 1460 // 4  # the last payload comes out after its frame is in
    assert cycles <= sum(-(-len(f) // 4) for f, _ in frames) + drain + 60


@pytest.mark.parametrize("width", [32, 64])
def test_a_source_that_no_host_has(width):
    """RFC 9293, MUST-63: multicast and broadcast are no source; nor this network, nor ourselves."""
    hosts = ["1.0.0.0", "126.255.255.255", "128.0.0.1", "191.0.127.224", "223.255.255.255"]
    others = ["0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.255", "224.0.0.0", "239.1.2.3"]
    others += ["240.0.0.1", "255.255.255.255"]

    def frame(address):
        return tcp_frame(b"data", flags=2, src_ip=int.from_bytes(IPv4Address(address).packed))

    frames = [(frame(address), False) for address in (*hosts, *others, hosts[0])]
    assert expected(frames)[1] == dict.fromkeys(COUNTERS, 0) | {"segments": 6, "malformed": 8}
    check(frames, 0, width=width)


@pytest.mark.parametrize("width", [32, 64])
def test_each_reason_has_its_counter(width):
    good = tcp_frame(b"0123456789")

    def with_bytes(at, octets):
        return good[:at] + octets + good[at + len(octets) :]

    short = tcp_frame(b"0123456789" * 9)
    cases = [
        (good, {"segments": 1}),
        (short[:-1], {"errors": 1}),
        (good[:33], {"errors": 1}),
        (good[:1], {"errors": 1}),
        (with_bytes(12, b"\x81\x00"), {"malformed": 1}),
        (with_bytes(14, b"\x65"), {"malformed": 1}),
        (with_bytes(14, b"\x44"), {"malformed": 1}),
        (with_bytes(20, b"\x20\x00"), {"malformed": 1}),
        (with_bytes(20, b"\x00\x01"), {"malformed": 1}),
        (with_bytes(23, b"\x11"), {"malformed": 1}),
        (with_bytes(46, b"\x40"), {"malformed": 1}),
        (with_bytes(46, b"\xf0"), {"malformed": 1}),
        (with_bytes(16, b"\x00\x27"), {"malformed": 1}),
        (with_bytes(16, b"\x00\x00"), {"malformed": 1}),
        (with_bytes(16, b"\xff\xff"), {"errors": 1}),
        (with_bytes(24, b"\x12\x34"), {"ip_checksum": 1}),
        (with_bytes(50, b"\x12\x34"), {"tcp_checksum": 1}),
        (with_bytes(60, b"!"), {"tcp_checksum": 1}),
    ]
    for frame, counts in cases:
        _, all_counts = expected([(frame, False)])
        assert {k: v for k, v in all_counts.items() if v} == counts, frame.hex()
    check([(f, False) for f, _ in cases], 0, width=width)


@pytest.mark.parametrize(
    ("options", "mss"),
    [
        (b"\x02\x04\x05\xb4", 1460),
        (b"\x01\x02\x04\x05\xb4\x01\x01\x01", 1460),
        (b"\x01\x01\x02\x04\x05\xb4", 1460),
        (b"\x01\x01\x01\x02\x04\x05\xb4", 1460),
        (b"\x00\x02\x04\x05\xb4", 0),
        (b"\x02\x00\x02\x04\x05\xb4", 0),
        (b"\x05\x01\x02\x04\x05\xb4", 0),
        (b"\x02\x04\x02\x00\x02\x04\x02\x18", 536),
        (b"\x02\x03\x07\x02\x04\x05\xb4", 1460),
        (b"\x08\xff\x02\x04\x05\xb4", 0),
        (b"\x01\x01\x01\x02", 0),
        (b"\x01\x01\x02\x04", 0),
        (b"\x22\x22" + bytes(32) + b"\x02\x04\x05\xb4", 1460),
        (b"\x02\x04\x05\xb4\x04\x02\x08\x0a" + bytes(8) + b"\x01\x03\x03\x07", 1460),
    ],
)
@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly)])
def test_mss_option(options, mss, width):
    frame = tcp_frame(b"xyz", flags=2, tcp_options=options)
    assert parse_segment(frame).mss == mss
    check([(frame, False), (tcp_frame(b"q"), False)], 0, width=width)


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_overflow_drops_whole_frames(width, seed):
    """With the outputs stalled, what fits comes out later and the rest is counted."""
    rng = make_rng(seed, "overflow")
    frames = [tcp_frame(rng.randbytes(rng.randint(1, 60)), seq=i) for i in range(30)]
    dut = Parser(width, buffer_bytes=256, segments=8)
    taken = []

    async def bench(ctx):
        for frame in frames:
            await packet_put(ctx, dut.frame, frame, rng=rng)
        await ctx.tick().repeat(12)
        kept, lost = ctx.get(dut.csr.segments), ctx.get(dut.csr.overflow)
        assert kept + lost == len(frames)
        assert kept >= 3
        assert lost >= 10
        for _ in range(kept):
            segment = plain(await stream_get(ctx, dut.segment, rng=rng))
            payload, error = await packet_get(ctx, dut.payload, rng=rng)
            assert not error
            assert as_dict(parse_segment(frames[segment["seq"]])) == segment
            assert payload == parse_segment(frames[segment["seq"]]).payload
            taken.append(segment["seq"])
        assert taken == sorted(taken)
        # And it goes on as if nothing had been.
        await packet_put(ctx, dut.frame, frames[0])
        assert (await stream_get(ctx, dut.segment)).seq == 0
        assert (await packet_get(ctx, dut.payload))[0] == parse_segment(frames[0]).payload

    run(
        dut,
        bench,
        stream_checker(dut.segment, "segment"),
        stream_checker(dut.payload, "payload"),
        limit=20_000,
        seed=seed,
    )


def test_constructor_says_what_it_wants():
    with pytest.raises(ValueError, match=r"^Parser data path width must be 32 or 64 bits, not 16$"):
        Parser(16)
    with pytest.raises(ValueError, match=r"^Parser buffer_bytes must be a power of two, not 100$"):
        Parser(32, buffer_bytes=100)
    with pytest.raises(ValueError, match=r"^Parser segments must be a power of two, not 0$"):
        Parser(32, segments=0)
    with pytest.raises(
        ValueError, match=r"^Parser buffer_bytes must hold at least 4 beats, not 8$"
    ):
        Parser(64, buffer_bytes=8)
