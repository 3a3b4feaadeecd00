"""HostServices against scapy and a naive model: who is answered, with what, and what is counted."""

import pytest
from net_frames import MAC, OUR_IP, PEER_IP, PEER_MAC, ip_text, mac_text, scapy_checksum
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw
from streams import make_rng, packet_get, packet_put, run, seeds, stream_checker
from trebuchet.cores.net.hosts.registers import DISCARD_BLOCK, ECHO_BLOCK
from trebuchet.cores.net.hosts.services import HostServices

WIDTHS = pytest.mark.parametrize("width", [32, 64])
ALL = b"\xff" * 6
NOTHING = {
    ("echo", "datagrams"): 0,
    ("echo", "errors"): 0,
    ("echo", "overlong"): 0,
    ("echo", "overflow"): 0,
    ("discard", "datagrams"): 0,
    ("discard", "octets"): 0,
    ("discard", "errors"): 0,
}


# --- the model ------------------------------------------------------------------------------------


def _number(frame, at, size=2):
    return int.from_bytes(frame[at : at + size], "big")


def _arp_reply(frame, mac, ip):
    if frame[14:22] != bytes.fromhex("0001080006040001") or _number(frame, 38, 4) != ip:
        return None
    sender = frame[22:32]
    return frame[12:20] + b"\0\x02" + mac + ip.to_bytes(4, "big") + sender + frame[42:]


def _ip_header_is_good(frame, ip):
    source, length = frame[26:30], _number(frame, 16)
    return (
        frame[14] == 0x45
        and scapy_checksum(frame[14:34]) == 0
        and not _number(frame, 20) & 0x3FFF
        and length >= 28
        and _number(frame, 30, 4) == ip
        and source != frame[30:34]
        and source[0] not in (0, 127)
        and source[0] < 224
    )


def _turned(frame):
    """The IPv4 frame with addresses swapped and a new TTL, from its Ethertype on."""
    header = bytearray(frame[14:26] + frame[30:34] + frame[26:30])
    header[8] = 64
    header[10:12] = b"\0\0"
    header[10:12] = scapy_checksum(bytes(header)).to_bytes(2, "big")
    return frame[12:14] + bytes(header) + frame[34:]


def answer(frame, mac=MAC, ip=OUR_IP, udp=True, shortest=53):
    """What is sent, or None; and what is counted, as ``{(service, counter): number}``."""
    if len(frame) < shortest or frame[6] & 1 or ip >> 24 == 0:
        return None, {}
    head = frame[6:12] + mac
    if frame[12:14] == b"\x08\x06" and frame[:6] in (mac, ALL):
        reply = _arp_reply(frame, mac, ip)
        return reply and head + reply, {}
    if frame[:6] != mac or frame[12:14] != b"\x08\0" or not _ip_header_is_good(frame, ip):
        return None, {}
    end = 14 + _number(frame, 16)
    complete, message = end <= len(frame), frame[34:end]
    turned = head + _turned(frame)
    if frame[23] == 1 and frame[34:36] == b"\x08\0" and complete:
        if scapy_checksum(message) != 0:
            return None, {}
        # Only the type of the message is less by eight.
        total = 0xFFFF - _number(frame, 36) + 0xFFFF - 0x0800
        total = (total & 0xFFFF) + (total >> 16)
        return turned[:34] + b"\0\0" + (0xFFFF - total).to_bytes(2, "big") + frame[38:], {}
    if frame[23] != 17 or not udp:
        return None, {}
    pseudo = frame[26:34] + b"\0\x11" + frame[38:40]
    right = frame[40:42] == b"\0\0" or scapy_checksum(pseudo + message) == 0
    return _datagram(frame, turned, complete and right)


def _datagram(frame, turned, good):
    length = _number(frame, 38)
    good &= length == _number(frame, 16) - 20
    if frame[36:38] == b"\0\x09":
        if not good:
            return None, {("discard", "errors"): 1}
        return None, {("discard", "datagrams"): 1, ("discard", "octets"): length - 8}
    if frame[36:38] != b"\0\x07":
        return None, {}
    if not good or _number(frame, 34) < 1024:
        return None, {("echo", "errors"): 1}
    return turned[:34] + frame[36:38] + frame[34:36] + frame[38:], {("echo", "datagrams"): 1}


# --- frames ---------------------------------------------------------------------------------------


def ether(rest, *, dst=MAC, src=PEER_MAC, padding=b"\0" * 60, **fields):
    frame = bytes(Ether(src=mac_text(src), dst=mac_text(dst), **fields) / rest)
    return frame + padding[: max(0, 60 - len(frame))]


def arp(*, dst=ALL, target=OUR_IP, sender=PEER_IP, **fields):
    fields = {"op": 1, "hwsrc": mac_text(PEER_MAC), "psrc": ip_text(sender)} | fields
    return ether(ARP(pdst=ip_text(target), **fields), dst=dst)


def ping(payload=b"hello", *, src=PEER_IP, ip=OUR_IP, dst=MAC, fields=None, **icmp):
    header = IP(src=ip_text(src), dst=ip_text(ip), **(fields or {}))
    message = ICMP(**({"type": 8, "id": 0x1234, "seq": 7} | icmp)) / Raw(payload)
    return ether(header / message, dst=dst)


def datagram(payload=b"hello", port=7, *, sport=40000, src=PEER_IP, fields=None, **udp):
    header = IP(src=ip_text(src), dst=ip_text(OUR_IP), **(fields or {}))
    return ether(header / UDP(sport=sport, dport=port, **udp) / Raw(payload))


def _mended(frame):
    """The frame with the right IPv4 header checksum."""
    header = frame[14:24] + b"\0\0" + frame[26:34]
    return frame[:24] + scapy_checksum(header).to_bytes(2, "big") + frame[26:]


def _with(frame, at, octets):
    return frame[:at] + octets + frame[at + len(octets) :]


def every_field_wrong(rng):
    """Requests of each kind with each header byte changed in turn, with and without a new sum."""
    for frame, end in ((arp(), 42), (ping(), 40), (datagram(), 42), (datagram(port=9), 42)):
        for at in range(end):
            changed = _with(frame, at, bytes([frame[at] ^ 1 << rng.randrange(8)]))
            yield changed
            if 14 <= at < 34 and frame[12:14] == b"\x08\0":
                yield _mended(changed)


def hostile(rng):
    for frame in (ping(b"x" * 30), datagram(b"x" * 30), datagram(b"x" * 30, 9)):
        for length in (0, 1, 19, 20, 27, 28, 29, 57, 58, 59, 60, 1500, 0xFFF2, 0xFFF3, 0xFFFF):
            yield _mended(_with(frame, 16, length.to_bytes(2, "big")))
        for length in (0, 7, 8, 9, 37, 39, 0xFFFF):
            yield _with(frame, 38, length.to_bytes(2, "big"))
        for source in (0, 0x00010203, 0x7F000001, 0xE0000001, 0xF0000000, 0xFFFFFFFF, OUR_IP):
            yield _mended(_with(frame, 26, source.to_bytes(4, "big")))
        for source in (0x01000000, 0x7E000001, 0x80000000, OUR_IP ^ 0x10000, 0xDFFFFFFF):
            yield _mended(_with(frame, 26, source.to_bytes(4, "big")))
        yield _with(frame, 0, ALL)
        yield _with(frame, 6, b"\x01\x00\x5e\x00\x00\x01")  # from a group of stations
        yield _mended(_with(frame, 30, b"\xff\xff\xff\xff"))
        yield frame[: rng.randint(40, len(frame))]
    yield from (datagram(sport=port) for port in (0, 7, 9, 53, 1023, 1024, 0x8000, 65535))
    yield from (datagram(b"", port) for port in (7, 9))
    yield from (ping(type=kind, code=code) for kind, code in ((0, 0), (8, 1), (13, 0)))
    yield ether(Dot1Q(vlan=5) / IP(src=ip_text(PEER_IP), dst=ip_text(OUR_IP)) / ICMP())
    yield from (arp(op=2), arp(dst=MAC), arp(sender=0), arp(target=PEER_IP), arp(dst=PEER_MAC))
    yield from (rng.randbytes(rng.randint(1, 90)) for _ in range(10))


def checksums(rng):
    """All that the two differences can do: times to live, and checksums near their ends."""
    for ttl in (0, 1, 63, 64, 65, 66, 255, rng.randrange(256)):
        yield ping(fields={"ttl": ttl, "id": rng.getrandbits(16)})
    for value in (0, 1, 7, 8, 0xF7FF, 0xF7FE, 0xF800, 0xFFFE, 0xFFFF, rng.getrandbits(16)):
        yield _with(ping(), 36, value.to_bytes(2, "big"))  # most are wrong
        for size in range(4):
            frame = _with(ping(rng.randbytes(size)), 38, b"\0\0")
            frame = _with(frame, 36, b"\0\0")
            change = (scapy_checksum(frame[34 : 42 + size]) - value) % 0xFFFF
            yield _with(_with(frame, 36, value.to_bytes(2, "big")), 38, change.to_bytes(2, "big"))
    for ttl in (0, 63, 64, 65, 255):
        for wanted in (0, 1, 63, 64, 0xBF00, 0xC000, 0xFEFF, 0xFFFE):
            frame = _mended(_with(ping(fields={"ttl": ttl}), 18, b"\0\0"))
            change = (_number(frame, 24) - wanted) % 0xFFFF
            yield _mended(_with(frame, 18, change.to_bytes(2, "big")))


def damaged(rng):
    """One bit of the payload, or of its checksum, is another; and UDP without a checksum."""
    for size in (0, 1, 2, 3, 7, 8, 33, 200):
        for port in (None, 7, 9):
            make = ping if port is None else lambda data, port=port: datagram(data, port)
            frame = make(rng.randbytes(size))
            at = rng.randrange(36 if port is None else 40, 42 + size)
            yield _with(frame, at, bytes([frame[at] ^ 1 << rng.randrange(8)]))
            yield frame
        for port in (7, 9):
            yield _with(datagram(rng.randbytes(size), port), 40, b"\0\0")
        # Behind the datagram there may be anything.
        yield from (make(rng.randbytes(size)) + rng.randbytes(9) for make in (ping, datagram))


def good(rng, largest=90):
    """One request of any kind."""
    size = rng.randint(0, largest - 42)
    ttl = {"ttl": rng.randint(0, 255)}
    return rng.choice(
        (
            lambda: arp(sender=rng.getrandbits(32)),
            lambda: ping(rng.randbytes(size), fields=ttl),
            lambda: datagram(rng.randbytes(size), sport=rng.randint(1024, 65535), fields=ttl),
            lambda: datagram(rng.randbytes(size), 9, fields=ttl),
        )
    )()


# --- tests ----------------------------------------------------------------------------------------


def _counts(ctx, dut):
    blocks = (("echo", ECHO_BLOCK), ("discard", DISCARD_BLOCK))
    return {
        (service, r.name): ctx.get(getattr(getattr(dut, service), r.name))
        for service, block in blocks
        for r in block.registers
    }


def _compare(width, frames, seed, *, udp=True, pressure=True, mac=MAC, ip=OUR_IP):
    """Send frames, with room for each answer, and compare answers and counters with the model."""
    dut = HostServices(width, udp)
    answers, expected = [], dict(NOTHING)
    shortest = {32: 53, 64: 57}[width]
    for frame in frames:
        reply, counted = answer(frame, mac, ip, udp, shortest)
        answers += [] if reply is None else [reply]
        for key, number in counted.items():
            expected[key] += number
    got = []

    async def put(ctx):
        rng = make_rng(seed, "put") if pressure else None
        ctx.set(dut.mac, int.from_bytes(mac, "little"))
        ctx.set(dut.ip, ip)
        sent = 0
        for frame in frames:
            await packet_put(ctx, dut.i, frame, rng=rng, idle=0.1)
            sent += answer(frame, mac, ip, udp, shortest)[0] is not None
            while sent > len(got) + 1:
                await ctx.tick()
        while len(got) < len(answers):
            await ctx.tick()
        await ctx.tick().repeat(12)
        assert not ctx.get(dut.o.valid)
        if udp:
            assert _counts(ctx, dut) == expected

    async def get(ctx):
        rng = make_rng(seed, "get") if pressure else None
        for k, reply in enumerate(answers):
            assert await packet_get(ctx, dut.o, rng=rng, stall=0.1) == (reply, False), f"answer {k}"
            got.append(k)

    limit = 4 * sum(map(len, frames)) // (width // 32) + 40 * len(frames) + 1000
    run(dut, put, get, stream_checker(dut.o, "o"), limit=limit, seed=seed)


def test_model_is_what_scapy_says():
    reply = Ether(answer(ping(b"abc", fields={"ttl": 3}))[0])
    assert (reply.src, reply.dst) == (mac_text(MAC), mac_text(PEER_MAC))
    assert (reply[IP].src, reply[IP].dst, reply[IP].ttl) == (ip_text(OUR_IP), ip_text(PEER_IP), 64)
    assert (reply[ICMP].type, reply[ICMP].id, reply[ICMP].seq) == (0, 0x1234, 7)
    echoed = Ether(answer(datagram(b"abc"))[0])
    assert (echoed[UDP].sport, echoed[UDP].dport, echoed[UDP].load) == (7, 40000, b"abc")
    for packet, layer in ((reply, ICMP), (echoed, UDP)):
        again = packet.copy()
        del again[IP].chksum
        del again[layer].chksum
        assert bytes(again) == bytes(packet)
    told = Ether(answer(arp())[0])[ARP]
    assert (told.op, told.hwsrc, told.psrc) == (2, mac_text(MAC), ip_text(OUR_IP))
    assert (told.hwdst, told.pdst) == (mac_text(PEER_MAC), ip_text(PEER_IP))


@WIDTHS
@seeds(2)
def test_requests_are_answered(width, seed):
    rng = make_rng(seed, "good")
    _compare(width, [good(rng) for _ in range(80)], seed)


@WIDTHS
@pytest.mark.parametrize("kind", [every_field_wrong, hostile, checksums, damaged])
@seeds(1)
def test_frames_that_are_not_as_they_should_be(width, kind, seed):
    _compare(width, list(kind(make_rng(seed, "frames"))), seed, pressure=False)


@WIDTHS
@seeds(2)
def test_damaged_ones_between_good_and_short_ones(width, seed):
    """Whatever pauses there are, each frame is judged by its own sum."""
    rng, frames = make_rng(seed, "between"), []
    for frame in damaged(rng):
        frames += [frame, *(rng.randbytes(rng.randint(1, 12)) for _ in range(rng.randrange(3)))]
    _compare(width, frames, seed)


@WIDTHS
@seeds(1)
def test_the_largest_frames_and_those_of_every_length(width, seed):
    rng = make_rng(seed, "large")
    frames = [ping(rng.randbytes(1472)), datagram(rng.randbytes(1472))]
    frames += [datagram(rng.randbytes(1472), 9), arp()]
    frames += [make(rng.randbytes(n)) for n in range(24) for make in (ping, datagram)]
    # The datagram ends before the frame does, in the same beat or in one before.
    frames += [ping(b"abc") + rng.randbytes(n) for n in range(1, 12)]
    assert max(map(len, frames)) == 1514
    _compare(width, frames, seed)


@WIDTHS
@seeds(1)
def test_a_burst_takes_a_beat_a_cycle(width, seed):
    rng = make_rng(seed, "burst")
    frames = [good(rng) for _ in range(40)]
    answers = [reply for reply in (answer(frame)[0] for frame in frames) if reply]
    dut = HostServices(width)

    async def put(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, OUR_IP)
        for frame in frames:
            await packet_put(ctx, dut.i, frame)

    async def get(ctx):
        for reply in answers:
            assert await packet_get(ctx, dut.o) == (reply, False)

    beats = sum(-(-len(frame) * 8 // width) for frame in frames)
    longest = max(-(-len(frame) * 8 // width) for frame in frames)
    run(dut, put, get, limit=beats + longest + 10, seed=seed)


@WIDTHS
@seeds(1)
def test_what_has_no_room_is_dropped_whole_and_nobody_waits(width, seed):
    rng = make_rng(seed, "full")
    dut = HostServices(width)
    echoes = [datagram(rng.randbytes(rng.randint(1, 600))) for _ in range(30)]
    thrown = [datagram(rng.randbytes(rng.randint(1, 600)), 9) for _ in range(30)]
    frames = [frame for pair in zip(echoes, thrown, strict=True) for frame in pair]
    beats = sum(-(-len(frame) * 8 // width) for frame in frames)
    got = []

    async def put(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, OUR_IP)
        for frame in frames:
            await packet_put(ctx, dut.i, frame)
        await ctx.tick().repeat(12)
        counts = _counts(ctx, dut)
        kept = counts["echo", "datagrams"]
        assert 3 <= kept < len(echoes)
        assert counts["echo", "overflow"] == len(echoes) - kept
        assert counts["discard", "datagrams"] == len(thrown)
        assert counts["discard", "octets"] == sum(_number(frame, 38) - 8 for frame in thrown)
        for _ in range(kept):
            got.append((await packet_get(ctx, dut.o))[0])
        await packet_put(ctx, dut.i, arp())
        assert await packet_get(ctx, dut.o) == (answer(arp())[0], False)

    run(dut, put, stream_checker(dut.o, "o"), limit=beats + 1500, seed=seed)
    expected = iter(answer(frame)[0] for frame in echoes)
    assert all(reply in expected for reply in got), "in order, and each whole"


@WIDTHS
def test_damaged_frames_are_not_answered(width):
    dut = HostServices(width)

    async def bench(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, OUR_IP)
        for frame in (ping(), arp(), datagram(), datagram(port=9)):
            await packet_put(ctx, dut.i, frame, error=True)
        await packet_put(ctx, dut.i, arp())
        assert await packet_get(ctx, dut.o) == (answer(arp())[0], False)
        assert _counts(ctx, dut) == NOTHING

    run(dut, bench, limit=500)


@WIDTHS
@seeds(1)
def test_without_udp_it_is_as_if_nobody_were_there(width, seed):
    rng = make_rng(seed, "plain")
    frames = [good(rng) for _ in range(30)] + list(checksums(rng))
    _compare(width, frames, seed, udp=False)


@WIDTHS
def test_without_an_address_nothing_is_answered(width):
    frames = [arp(target=0), ping(ip=0), ping(), arp()]
    _compare(width, frames, 0, ip=0, pressure=False)
    _compare(width, [arp(target=5), ping(ip=5)], 0, ip=5, pressure=False)


def test_constructor_says_what_it_wants():
    message = "^HostServices data path width must be 32 or 64 bits, not 128$"
    with pytest.raises(ValueError, match=message):
        HostServices(128)
