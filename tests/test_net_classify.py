"""Frame classifier against the naive model, with frames that scapy made."""

import pytest
from net_frames import MAC, OUR_IP, PEER_MAC, ip_text, mac_text, tcp_frame
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from streams import make_rng, packet_get, packet_put, run, seeds, stream_checker
from trebuchet.cores.net.classify import CLASSIFIER_BLOCK, Classifier
from trebuchet.models.net import is_for_toe

COUNTERS = [r.name for r in CLASSIFIER_BLOCK.registers]


def configure(ctx, dut, enable=1):
    ctx.set(dut.mac, int.from_bytes(MAC, "little"))
    ctx.set(dut.ip, OUR_IP)
    ctx.set(dut.enable, enable)


def counters(ctx, dut):
    return {name: ctx.get(getattr(dut.csr, name)) for name in COUNTERS}


def near(rng, address, size):
    """An address that differs in one byte; never that of a group."""
    place = rng.randrange(size)
    return bytes(b ^ (2 << rng.randrange(6) if k == place else 0) for k, b in enumerate(address))


def kinds(rng):
    """One frame of each kind that a network may bring."""
    here = Ether(src=mac_text(PEER_MAC), dst=mac_text(MAC))
    ip = IP(src="192.168.1.200", dst=ip_text(OUR_IP))
    data = rng.randbytes(rng.randint(0, 60))
    tcp = tcp_frame(data)
    yield tcp
    yield tcp_frame(data, ip_options=rng.randbytes(8), flags=2)
    yield tcp_frame(data, ip=OUR_IP ^ 1 << rng.randrange(32))
    yield tcp_frame(data, mac=bytes([MAC[0], *rng.randbytes(5)]))
    yield tcp_frame(data, mac=b"\xff" * 6)
    yield tcp_frame(data, src_mac=b"\xff" * 6)
    yield tcp_frame(data, src_mac=bytes([PEER_MAC[0] | 1, *PEER_MAC[1:]]))
    yield tcp_frame(data, src_mac=MAC)
    yield tcp_frame(data, src_mac=near(rng, MAC, 6))
    yield tcp_frame(data, src_ip=OUR_IP)
    yield tcp_frame(data, src_ip=int.from_bytes(near(rng, OUR_IP.to_bytes(4, "big"), 4), "big"))
    yield tcp_frame(data, frag=rng.randint(1, 8191))
    yield tcp[:20] + b"\x20\x00" + tcp[22:]
    yield tcp[:20] + b"\xc0\x00" + tcp[22:]
    yield bytes(here / ip / UDP(sport=5, dport=7) / data)
    yield bytes(here / ip / ICMP() / data)
    yield bytes(Ether(dst="ff:ff:ff:ff:ff:ff") / ARP(pdst=ip_text(OUR_IP)))
    yield bytes(here / Dot1Q(vlan=5)) + tcp[14:]
    yield tcp[:12] + b"\x86\xdd" + tcp[14:]
    yield tcp[:14] + b"\x65" + tcp[15:]
    yield tcp[: rng.randint(1, 36)]
    yield tcp[:33]
    yield tcp[:34]
    yield tcp[:35]
    yield rng.randbytes(rng.randint(1, 50))


def frames_for(rng, repeat=1):
    frames = [f for _ in range(repeat) for f in kinds(rng)]
    rng.shuffle(frames)
    return [(f, rng.random() < 0.15) for f in frames]


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("enable", [1, 0])
@seeds(2)
def test_each_frame_goes_where_it_should(width, enable, seed):
    frames = frames_for(make_rng(seed, f"frames/{width}"))
    to_toe = [(f, e) for f, e in frames if is_for_toe(f, MAC, OUR_IP, enable)]
    to_other = [(f, e) for f, e in frames if not is_for_toe(f, MAC, OUR_IP, enable)]
    assert not enable or len(to_toe) >= 6
    dut = Classifier(width)

    async def put(ctx):
        configure(ctx, dut, enable)
        rng = make_rng(seed, "put")
        for frame, error in frames:
            await packet_put(ctx, dut.rx, frame, error, rng=rng, idle=rng.choice([0, 0, 0.4]))

    def taker(port, wanted, name):
        async def take(ctx):
            rng = make_rng(seed, name)
            for item in wanted:
                assert await packet_get(ctx, port, rng=rng) == item

        return take

    async def count(ctx):
        await taker(dut.toe, to_toe, "toe")(ctx)
        while ctx.get(dut.csr.other_frames) < len(to_other):
            await ctx.tick()
        await ctx.tick().repeat(50)
        assert counters(ctx, dut) == {
            "toe_frames": len(to_toe),
            "other_frames": len(to_other),
            "errors": sum(e for _, e in frames),
            "drops": 0,
        }

    run(
        dut,
        put,
        count,
        taker(dut.other, to_other, "other"),
        stream_checker(dut.toe, "toe"),
        stream_checker(dut.other, "other"),
        limit=20_000,
        seed=seed,
    )


@pytest.mark.parametrize("width", [32, 64])
def test_one_beat_a_cycle(width):
    frames = [tcp_frame(bytes(50 + i)) for i in range(20)]
    dut = Classifier(width)

    async def put(ctx):
        configure(ctx, dut)
        for frame in frames:
            await packet_put(ctx, dut.rx, frame)

    async def get(ctx):
        for frame in frames:
            assert await packet_get(ctx, dut.toe) == (frame, False)

    cycles = run(dut, put, get, limit=2000)
    assert cycles <= sum(-(-len(f) * 8 // width) for f in frames) + 20


@seeds(3)
def test_a_dead_consumer_of_other_does_not_stop_toe(seed):
    rng = make_rng(seed, "frames")
    arp = bytes(Ether(dst="ff:ff:ff:ff:ff:ff") / ARP(pdst=ip_text(OUR_IP))).ljust(60, b"\0")
    frames = [rng.choice([arp, tcp_frame(rng.randbytes(20))]) for _ in range(30)] + [arp]
    to_toe = [f for f in frames if f != arp]
    dut = Classifier(32, patience=64)

    afterwards = [arp, arp[:42]]
    back = []

    async def put(ctx):
        configure(ctx, dut)
        for frame in frames:
            await packet_put(ctx, dut.rx, frame, rng=rng)
        while not back:
            await ctx.tick()
        for frame in afterwards:
            await packet_put(ctx, dut.rx, frame, rng=rng)

    async def get(ctx):
        rng = make_rng(seed, "get")
        for frame in to_toe:
            assert await packet_get(ctx, dut.toe, rng=rng) == (frame, False)

    async def other(ctx):
        # Takes a few beats of the first frame, then nothing until all is over.
        ctx.set(dut.other.ready, 1)
        await ctx.tick().until(dut.other.valid)
        await ctx.tick().repeat(3)
        ctx.set(dut.other.ready, 0)
        gone = {"toe_frames": len(to_toe), "drops": len(frames) - len(to_toe)}
        while gone.items() - counters(ctx, dut).items():
            await ctx.tick()
        assert counters(ctx, dut)["other_frames"] == 1
        # Coming back, it gets the cut frame's end with an error, and then whole frames again.
        ctx.set(dut.other.ready, 1)
        beat = None
        while beat is None or not beat.last:
            (beat,) = await ctx.tick().sample(dut.other.payload).until(dut.other.valid)
        assert beat.error == 1
        ctx.set(dut.other.ready, 0)
        await ctx.tick().repeat(20)
        back.append(True)
        for frame in afterwards:
            assert await packet_get(ctx, dut.other, rng=rng) == (frame, False)

    run(dut, put, get, other, stream_checker(dut.other, "other"), limit=20_000, seed=seed)


def test_constructor_says_what_it_wants():
    message = r"^Patience must be a power of two of at least 2, not 3$"
    with pytest.raises(ValueError, match=message):
        Classifier(32, patience=3)
