"""VLAN tags: off frames and onto them, against scapy's view and the naive model."""

import pytest
from net_frames import MAC, OUR_IP, PEER_MAC, mac_text, tag_of, tcp_frame
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw
from streams import make_rng, packet_get, packet_put, run, seeds, stream_checker
from trebuchet.cores.net.classify import Classifier
from trebuchet.cores.net.vlan import VlanInsert, VlanStrip
from trebuchet.models.net import is_for_toe, with_tag, without_tag

WIDTHS = pytest.mark.parametrize("width", [32, 64])
PRESSURE = pytest.mark.parametrize("pressure", [True, False])


def random_tag(rng):
    return rng.getrandbits(16) if rng.random() < 0.6 else None


def rng_of(seed, name, pressure=True):
    """For one side of a stream; None: it never pauses."""
    return make_rng(seed, name) if pressure else None


def random_frame(rng):
    """Of any length, with one tag, with two or without; what looks like a tag elsewhere is none."""
    size = rng.choice([1, 4, 11, 12, 13, 15, 16, 17, 18, 20, 21, 24, 25, rng.randint(26, 90)])
    frame = bytearray(rng.randbytes(size))
    for at in (12, rng.choice([8, 10, 14, 16, 20])):
        if rng.random() < 0.6:
            frame[at : at + 2] = b"\x81\x00"
    return bytes(frame[:size])


def test_model_is_what_scapy_says():
    rng = make_rng(0, "scapy")
    for _ in range(20):
        tci, body = rng.getrandbits(16), rng.randbytes(60)
        addresses = {"src": mac_text(PEER_MAC), "dst": mac_text(MAC)}
        plain = bytes(Ether(**addresses, type=0x0800) / Raw(body))
        tag = Dot1Q(prio=tci >> 13, dei=tci >> 12 & 1, vlan=tci & 0xFFF, type=0x0800)
        tagged = bytes(Ether(**addresses) / tag / Raw(body))
        assert with_tag(plain, tci) == tagged
        assert without_tag(tagged) == (plain, tci)
        assert without_tag(plain) == (plain, None)


def without_priority(frame):
    """The frame without its tag, if that is of VLAN 0; and the tag."""
    plain, tci = without_tag(frame)
    return (frame, None) if tci is None or tci & 0xFFF else (plain, tci)


@WIDTHS
@PRESSURE
@pytest.mark.parametrize("priority", [False, True])
@seeds(2)
def test_tags_come_off(width, pressure, priority, seed):
    dut = VlanStrip(width, priority)
    rng = make_rng(seed, f"strip/{width}")
    frames = [(random_frame(rng), rng.random() < 0.2) for _ in range(60)]
    for frame in [frame for frame, _ in frames if without_tag(frame)[1] is not None]:
        for vlan in (0, 1, 0x10, 0x100, 0x800):  # priority and DEI are any
            tci = rng.getrandbits(4) << 12 | vlan
            frames.append((frame[:14] + tci.to_bytes(2, "big") + frame[16:], False))
    rng.shuffle(frames)
    expected = without_priority if priority else without_tag

    async def put(ctx):
        rng = rng_of(seed, "put", pressure)
        for frame, error in frames:
            await packet_put(ctx, dut.i, frame, error, rng=rng)

    async def get(ctx):
        rng = rng_of(seed, "get", pressure)
        for frame, error in frames:
            plain, tci = expected(frame)
            got = await packet_get(ctx, dut.o, rng=rng)
            assert got == (plain, error)
            if len(frame) > 36:  # its end has gone out: the next one's tag is not there yet
                assert ctx.get(dut.tag) == tag_of(tci)

    cycles = run(dut, put, get, stream_checker(dut.o), limit=40_000, seed=seed)
    if not pressure:
        assert cycles <= sum(-(-8 * len(f) // width) for f, _ in frames) + 5


@WIDTHS
@PRESSURE
@seeds(2)
def test_tags_come_on(width, pressure, seed):
    dut = VlanInsert(width)
    rng = make_rng(seed, f"insert/{width}")
    items = []
    for _ in range(60):
        frame = rng.randbytes(rng.choice([17, 18, 20, 21, 24, 25, rng.randint(26, 90)]))
        items.append((frame, rng.random() < 0.2, random_tag(rng)))

    async def put(ctx):
        rng = rng_of(seed, "put", pressure)
        for frame, error, tci in items:
            ctx.set(dut.tag, tag_of(tci))
            await packet_put(ctx, dut.i, frame, error, rng=rng)

    async def get(ctx):
        rng = rng_of(seed, "get", pressure)
        for frame, error, tci in items:
            got = await packet_get(ctx, dut.o, rng=rng)
            assert got == (with_tag(frame, tci), error)

    cycles = run(dut, put, get, stream_checker(dut.o), limit=20_000, seed=seed)
    if not pressure:
        assert cycles <= sum(-(-8 * (len(f) + 4) // width) for f, _, _ in items) + 5


@WIDTHS
@seeds(2)
def test_classifier_sees_what_is_behind_a_tag(width, seed):
    dut = Classifier(width, vlan=True)
    rng = make_rng(seed, f"classify/{width}")
    frames = []
    for _ in range(40):
        frame = bytearray(tcp_frame(rng.randbytes(rng.randint(0, 40))))
        if rng.random() < 0.4:
            frame[rng.choice([0, 12, 13, 14, 20, 23, 30, 33])] ^= 1 << rng.randrange(8)
        if rng.random() < 0.2:
            frame = frame[: rng.randint(1, 50)]
        frame = with_tag(bytes(frame), random_tag(rng)) if len(frame) > 12 else bytes(frame)
        frames.append(with_tag(frame, 5) if rng.random() < 0.1 and len(frame) > 12 else frame)
    ours = [f for f in frames if is_for_toe(without_tag(f)[0], MAC, OUR_IP)]
    assert len({len(without_tag(f)[0]) == len(f) for f in ours}) == 2

    async def put(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, OUR_IP)
        ctx.set(dut.enable, 1)
        rng = rng_of(seed, "put")
        for frame in frames:
            await packet_put(ctx, dut.rx, frame, rng=rng)

    def getter(name, wanted):
        out = getattr(dut, name)

        async def get(ctx):
            rng = rng_of(seed, name)
            for frame in wanted:
                got = await packet_get(ctx, out, rng=rng)
                assert got == (frame, False)

        return get

    others = [f for f in frames if f not in ours]
    run(dut, put, getter("toe", ours), getter("other", others), limit=20_000, seed=seed)
