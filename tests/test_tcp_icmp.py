"""ICMP errors against the naive model, with frames that scapy made."""

import pytest
from net_frames import MAC, OUR_IP, icmp_error, scapy_checksum, tcp_frame
from scapy.layers.inet import ICMP, IP, IPerror, TCPerror
from scapy.layers.l2 import Ether
from streams import make_rng, packet_put, plain, run, seeds, stream_checker, stream_get
from trebuchet.cores.tcp.icmp import ICMP_BLOCK, IcmpErrors
from trebuchet.models.net import Drop, parse_icmp_error

COUNTERS = [r.name for r in ICMP_BLOCK.registers]
PEER = 0x0A000001


def expected(frames):
    """What the model says: (notices, counts)."""
    good, counts = [], dict.fromkeys(COUNTERS, 0)
    for frame, error in frames:
        try:
            if (notice := parse_icmp_error(frame, MAC, OUR_IP, error)) is not None:
                good.append(notice)
                counts["notices"] += 1
        except Drop as drop:
            counts[drop.reason] += 1
    return good, counts


def counters(ctx, dut):
    return {name: ctx.get(getattr(dut.csr, name)) for name in COUNTERS}


def check(frames, seed, *, width=32, pressure=True, idle=0.3):
    """Send frames, compare notices and counters with the model; return the cycles."""
    good, counts = expected(frames)
    dut = IcmpErrors(width, depth=max(2, len(good)))

    async def put(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, OUR_IP)
        rng = make_rng(seed, "put") if pressure else None
        for frame, error in frames:
            await packet_put(ctx, dut.frame, frame, error, rng=rng, idle=idle)
        await ctx.tick().repeat(8)
        assert counters(ctx, dut) == counts

    async def get(ctx):
        rng = make_rng(seed, "get") if pressure else None
        for notice in good:
            assert plain(await stream_get(ctx, dut.notice, rng=rng)) == vars(notice)
        await ctx.tick()
        assert not ctx.get(dut.notice.valid)

    return run(dut, put, get, stream_checker(dut.notice, "notice"), limit=60_000, seed=seed)


def random_error(rng):
    """A good one."""
    return icmp_error(
        rng.choice([0, 1, 2, 3, 4, 4, 4, 5, 13, rng.randrange(256)]),
        rng.choice([0, 68, 576, 1492, rng.getrandbits(16)]),
        seq=rng.getrandbits(32),
        sport=rng.getrandbits(16),
        dport=rng.getrandbits(16),
        dst=rng.getrandbits(32),
        router=rng.getrandbits(32),
        more=rng.randbytes(rng.choice([0, 0, 1, 2, 3, 4, 12, rng.randint(0, 500)])),
        ip_options=rng.randbytes(4 * rng.choice([0, 0, 0, 1, 2, 5, 10])),
        pad=rng.random() < 0.7,
        padding=rng.randbytes(rng.choice([0, 0, 1, 2, 3, 4, 9])),
    )


def strange(rng):
    """A well-formed frame that is no ICMP error of a segment of ours, or says so little of one."""
    quoted = bytes(IP(src="192.168.1.50", dst="10.0.0.1", proto=6)) + rng.randbytes(8)
    return rng.choice(
        [
            lambda: tcp_frame(rng.randbytes(30)),
            lambda: icmp_error(kind=rng.choice([0, 4, 5, 8, 11, 12])),
            lambda: icmp_error(mac=bytes([MAC[0] ^ 1]) + MAC[1:]),
            lambda: icmp_error(mac=MAC[:5] + bytes([MAC[5] ^ 0x80])),
            lambda: icmp_error(ip=OUR_IP ^ 1 << rng.randrange(32)),
            lambda: icmp_error(proto=rng.choice([0, 2, 6, 17])),
            lambda: icmp_error(flags="MF"),
            lambda: icmp_error(frag=rng.randint(1, 8191)),
            lambda: icmp_error(src=OUR_IP ^ 1 << rng.randrange(32)),
            lambda: icmp_error(quoted_options=b"\x01" * 4 * rng.randint(1, 3)),
            lambda: icmp_error(quote=quoted[: rng.randint(0, 27)]),
            lambda: icmp_error(quote=quoted[:9] + b"\x11" + quoted[10:]),
            lambda: icmp_error(quote=quoted[:6] + b"\x00\x01" + quoted[8:]),
            lambda: icmp_error(quote=quoted[:6] + b"\x20\x00" + quoted[8:]),
            lambda: icmp_error(quote=b"\x65" + quoted[1:]),
        ]
    )()


def damage(rng, frame):
    """One of the many ways in which a frame can be wrong."""
    octets = bytearray(frame)
    kind = rng.randrange(6)
    if kind == 0:
        octets[rng.randrange(len(octets))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        octets = octets[: rng.randint(1, len(octets))]
    elif kind == 2:
        octets = bytearray(rng.randbytes(rng.randint(1, 80)))
    elif kind == 3:
        octets[rng.choice([12, 13, 14, 16, 17, 20, 21, 23, 34])] = rng.randrange(256)
    elif kind == 4:
        octets[14] = 0x40 | rng.randrange(16)
    else:
        octets[16:18] = rng.randrange(0, 100).to_bytes(2, "big")
    return bytes(octets), rng.random() < 0.2


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_good_messages(width, seed):
    rng = make_rng(seed, f"good/{width}")
    frames = [(random_error(rng), False) for _ in range(25)]
    assert len(expected(frames)[0]) == 25
    check(frames, seed, width=width)


def test_the_model_is_what_scapy_says():
    frame = icmp_error(
        4, 1400, seq=0x12345678, sport=80, dport=50000, dst=PEER, ip_options=bytes(8)
    )
    packet = Ether(frame)
    assert (packet[ICMP].type, packet[ICMP].code, packet[ICMP].nexthopmtu) == (3, 4, 1400)
    assert (packet[IPerror].src, packet[IPerror].dst) == ("192.168.1.50", "10.0.0.1")
    quoted = packet[TCPerror]
    notice = parse_icmp_error(frame, MAC, OUR_IP)
    assert (notice.ip, notice.code, notice.mtu) == (PEER, 4, 1400)
    assert (notice.local_port, notice.remote_port) == (quoted.sport, quoted.dport)
    assert notice.seq == quoted.seq == 0x12345678


@pytest.mark.parametrize("width", [32, 64])
@seeds(4)
def test_bad_and_strange_frames_between_good_ones(width, seed):
    rng = make_rng(seed, f"bad/{width}")
    frames = []
    for _ in range(60):
        frame, kind = random_error(rng) if rng.random() < 0.6 else strange(rng), rng.random()
        frames.append(damage(rng, frame) if kind < 0.4 else (frame, kind > 0.97))
    check(frames, seed, width=width)


@pytest.mark.parametrize("width", [32, 64])
@seeds(3)
def test_line_rate_without_gaps(width, seed):
    """No idle cycle at the input: frames of all kinds keep their own fields and verdicts."""
    rng = make_rng(seed, f"line/{width}")
    frames = []
    for _ in range(80):
        frame = rng.choice([random_error, strange, lambda r: r.randbytes(r.randint(1, 24))])(rng)
        harm = len(frame) > 40 and rng.random() < 0.3
        frames.append(damage(rng, frame) if harm else (frame, rng.random() < 0.1))
    cycles = check(frames, seed, width=width, pressure=False)
    assert cycles <= sum(-(-len(f) * 8 // width) for f, _ in frames) + 12


@pytest.mark.parametrize("width", [32, 64])
def test_each_reason_has_its_counter(width):
    good = icmp_error(4, 1300, more=b"odd")

    def with_bytes(at, octets, frame=good):
        return frame[:at] + octets + frame[at + len(octets) :]

    def resummed(at, octets):
        frame = with_bytes(at, octets)
        message = frame[34:36] + b"\0\0" + frame[38:73]
        return with_bytes(36, scapy_checksum(message).to_bytes(2, "big"), frame)

    assert resummed(70, good[70:72]) == good
    bare = icmp_error(pad=False)
    cases = [
        (good, {"notices": 1}),
        (bare, {"notices": 1}),
        (good[:-1], {"errors": 1}),
        (good[:35], {"errors": 1}),
        (good[:34], {}),
        (good[:20], {}),
        (good[:1], {}),
        (with_bytes(0, b"\x11"), {}),
        (with_bytes(5, b"\x11"), {}),
        (with_bytes(12, b"\x81\x00"), {}),
        (with_bytes(14, b"\x65"), {}),
        (with_bytes(14, b"\x44"), {}),
        (with_bytes(23, b"\x06"), {}),
        (with_bytes(30, b"\xc1"), {}),
        (with_bytes(33, b"\x00"), {}),
        (with_bytes(34, b"\x0b"), {}),
        (with_bytes(16, b"\x00\x14"), {}),
        (with_bytes(16, b"\xff\xff"), {"errors": 1}),
        (with_bytes(16, b"\x00\x37"), {"malformed": 1}),
        (with_bytes(20, b"\x20\x00"), {"malformed": 1}),
        (with_bytes(20, b"\x00\x01"), {"malformed": 1}),
        (with_bytes(16, b"\x00\x38"), {"ip_checksum": 1}),
        (with_bytes(24, b"\x12\x34"), {"ip_checksum": 1}),
        (with_bytes(35, b"\x03"), {"icmp_checksum": 1}),
        (with_bytes(40, b"\x00\x00"), {"icmp_checksum": 1}),
        (with_bytes(72, b"D"), {"icmp_checksum": 1}),
        (resummed(42, b"\x46"), {"foreign": 1}),
        (resummed(42, b"\x65"), {"foreign": 1}),
        (resummed(48, b"\x00\x01"), {"foreign": 1}),
        (resummed(48, b"\x20\x00"), {"notices": 1}),
        (resummed(51, b"\x11"), {"foreign": 1}),
        (resummed(54, b"\xc1"), {"foreign": 1}),
        (resummed(57, b"\x33"), {"foreign": 1}),
    ]
    for frame, counts in cases:
        seen = {k: v for k, v in expected([(frame, False)])[1].items() if v}
        assert seen == counts, frame.hex()
    check([(f, False) for f, _ in cases] + [(good, True)], 0, width=width)


@pytest.mark.parametrize("width", [32, 64])
def test_what_does_not_fit_is_counted(width):
    """Nobody takes a notice: the first ones wait, and the frames go on at full speed."""
    frames = [icmp_error(seq=k) for k in range(20)]
    dut = IcmpErrors(width, depth=4)

    async def bench(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, OUR_IP)
        for frame in frames:
            await packet_put(ctx, dut.frame, frame)
        await ctx.tick().repeat(8)
        seen = counters(ctx, dut)
        assert seen["overflow"] == 20 - seen["notices"]
        assert seen["notices"] == 4
        for k in range(4):
            assert (await stream_get(ctx, dut.notice)).seq == k
        await packet_put(ctx, dut.frame, frames[19])
        assert (await stream_get(ctx, dut.notice)).seq == 19

    cycles = run(dut, bench, limit=2000)
    assert cycles <= 21 * -(-len(frames[0]) * 8 // width) + 30


def test_constructor_says_what_it_wants():
    message = r"^IcmpErrors data path width must be 32 or 64 bits, not 16$"
    with pytest.raises(ValueError, match=message):
        IcmpErrors(16)
    with pytest.raises(
        ValueError, match=r"^IcmpErrors depth must be an integer of at least 2, not 1$"
    ):
        IcmpErrors(32, depth=1)
