"""What the firmware answers as a host: IPv4 options, fragments, closed ports, ARP conflicts."""

import ctypes
import shutil

import pytest
from ip_bench import Board, compile_ip
from scapy.layers.inet import ICMP, IP, UDP, IPerror, UDPerror, fragment
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw
from streams import make_rng, seeds
from trebuchet.models.net import checksum

MAC, PEER_MAC = "02:00:00:00:00:02", "02:00:00:00:00:99"
US, PEER = "10.0.0.2", "10.0.0.1"
MASK = 0xFFFFFF00
LARGEST = 4096  # bytes of a datagram behind its header
SEND = 512
TIMEOUT_MS = 60_000
#: Options that are ignored: NOP, record route, timestamp, router alert, unknown ones, end.
OPTIONS = (
    b"\1\1\1\1",
    b"\x07\x27\x04" + bytes(37),
    b"\x44\x0c\x05\x00" + bytes(8),
    b"\x94\x04\x00\x00",
    b"\x1e\x04ab",
    b"\x9e\x08abcdef",
    b"\1\x94\x04\0\0\0\0\0",
    b"\0\xff\xff\xff",
)
#: Source routes (RFC 7126), and options that cannot be.
BAD_OPTIONS = (
    b"\x83\x07\x04" + bytes(5),
    b"\x89\x07\x08\x0a\0\0\1\0",
    b"\x94\0\0\0",
    b"\x94\1\0\0",
    b"\x94\5\0\0",
    b"\1\1\1\x94",
    b"\x07\xff\x04\0",
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_ip(tmp_path_factory.mktemp("host"))


@pytest.fixture
def board(compiled, tmp_path):
    board = Board(ctypes.CDLL(str(shutil.copy(compiled, tmp_path / "host.so"))))
    board.begin(dhcp=False, netmask=MASK)
    return board


def datagram(payload, options=b"", **fields):
    """A frame to the board with an IPv4 header with these options."""
    ip = IP(**{"src": PEER, "dst": US, **fields})
    header = bytearray(bytes(ip / payload)[:20])
    body = bytes(ip / payload)[20:]
    header[0] = 0x40 | (20 + len(options)) // 4
    header[2:4] = (20 + len(options) + len(body)).to_bytes(2, "big")
    header[10:12] = bytes(2)
    header += options
    header[10:12] = checksum(header).to_bytes(2, "big")
    return bytes(Ether(src=PEER_MAC, dst=MAC, type=0x0800)) + bytes(header) + body


def give(board, *frames):
    """Hand frames over, and return what is sent for them."""
    board.waiting += [frame.ljust(60, b"\0") for frame in frames]
    for _ in range(3 * len(frames) + 40):
        board.serve()
    assert board.waiting == []
    sent, board.sent = board.sent, []
    return sent


def parts(payload, size=1480, ident=77, **fields):
    """Frames with the fragments of a datagram, ``size`` bytes of payload in each."""
    whole = IP(src=PEER, dst=US, id=ident, **fields) / payload
    return [bytes(Ether(src=PEER_MAC, dst=MAC) / piece) for piece in fragment(whole, size)]


def whole(frames):
    """The IPv4 datagram of fragments in order, their headers checked."""
    data, last = b"", len(frames) - 1
    for number, frame in enumerate(frames):
        assert len(frame) <= SEND
        packet = Ether(frame)
        ip = packet[IP]
        assert (packet.dst, packet.src, ip.src, ip.dst) == (PEER_MAC, MAC, US, PEER)
        assert (ip.ttl, ip.ihl, ip.len) == (64, 5, len(frame) - 14)
        assert checksum(frame[14:34]) == 0
        assert ip.id == Ether(frames[0])[IP].id
        assert (8 * ip.frag, int(ip.flags)) == (len(data), int(number < last))
        data += frame[34:]
    return ip.proto, data


def ping(length=56, **fields):
    return ICMP(type=8, id=3, seq=9, **fields) / Raw(bytes(k & 0xFF for k in range(length)))


def echoed(frames, request):
    protocol, data = whole(frames)
    sent = bytes(request)
    assert protocol == 1
    assert data[:2] == b"\0\0"
    assert data[4:] == sent[4:]
    assert checksum(data + b"\0" * (len(data) % 2)) == 0


@pytest.mark.parametrize("options", OPTIONS)
def test_options_are_ignored(board, options):
    """RFC 1122, 3.2.1.8, also of UDP."""
    echoed(give(board, datagram(ping(), options)), ping())
    udp = UDP(sport=4000, dport=7) / Raw(b"hello")
    protocol, data = whole(give(board, datagram(udp, options)))
    assert (protocol, data[:4], data[8:]) == (17, b"\0\x07\x0f\xa0", b"hello")
    assert give(board, datagram(UDP(sport=4000, dport=9) / Raw(b"hello"), options)) == []


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_source_routes_and_malformed_options_are_dropped(board, options):
    assert give(board, datagram(ping(), options)) == []
    assert give(board, datagram(UDP(sport=4000, dport=4444) / Raw(b"hello"), options)) == []


@pytest.mark.parametrize("length", [1, 8, 1472, 1473, 2000, 2952, 4088])
def test_fragments_in_any_order_are_answered(board, length):
    """`ping -s 2000`, and the largest that there is room for."""
    request, ident = ping(length), 0
    for order in (1, -1):
        for size in (1480, 512, 8):
            for copies in (1, 2):
                ident += 1
                frames = parts(request, size, ident)[::order]
                if len(frames) > 1:
                    echoed(give(board, *[f for f in frames for _ in range(copies)]), request)


def test_a_fragmented_datagram_to_the_echo_service(board):
    udp = UDP(sport=4000, dport=7) / Raw(bytes(2000))
    protocol, data = whole(give(board, *parts(udp)))
    assert (protocol, data[:4], data[8:]) == (17, b"\0\x07\x0f\xa0", bytes(2000))
    raw = bytearray(b"".join(bytes(frame)[34:] for frame in parts(udp)))
    assert data[6:8] == raw[6:8], "the checksum is the same"


def test_too_large_a_datagram_is_dropped(board):
    assert give(board, *parts(ping(LARGEST - 7))) == []
    assert give(board, *parts(ping(9000))) == []
    echoed(give(board, *parts(ping(LARGEST - 8))), ping(LARGEST - 8))


def test_a_wrong_checksum_is_dropped(board):
    """RFC 1122, 4.1.3.4: of UDP, and of ICMP; 0 is no checksum."""
    options = OPTIONS[0]
    for spoil in (1, 0x8000):
        good = ping()
        frame = bytearray(datagram(good, options))
        frame[36 + 4] ^= spoil & 0xFF or spoil >> 8
        assert give(board, bytes(frame)) == []
    for port in (7, 4444):
        udp = UDP(sport=4000, dport=port) / Raw(b"hello")
        frame = bytearray(datagram(udp))
        if port == 7:
            frame = bytearray(datagram(udp, options))
        frame[-1] ^= 1
        assert give(board, bytes(frame)) == []
        udp.chksum = 0
        assert len(give(board, datagram(udp, options))) == 1
    two = parts(ping(2000))
    for at in (34 + 10, -1):
        spoilt = [bytearray(frame) for frame in two]
        spoilt[0 if at > 0 else 1][at] ^= 1
        assert give(board, *map(bytes, spoilt)) == []
    echoed(give(board, *two), ping(2000))


def test_a_closed_port_is_reported(board):
    """RFC 1122, 3.2.2.1: type 3, code 3, with the datagram's header and its beginning unchanged."""
    for options in (b"", OPTIONS[1]):
        request = datagram(UDP(sport=4000, dport=4444) / Raw(bytes(range(200))), options, tos=0x10)
        protocol, data = whole(give(board, request))
        assert (protocol, data[:2], data[4:8]) == (1, b"\x03\x03", bytes(4))
        assert checksum(data) == 0
        assert data[8:] == request[14 : 14 + len(data) - 8]
        assert len(data) - 8 >= 28 + len(options)
    error = ICMP(data)
    assert error[IPerror].dst == US
    # The shortest datagram has no more to quote, and the frame's padding is not of it.
    _, data = whole(give(board, datagram(UDP(sport=4000, dport=1))))
    assert len(data) == 8 + 28
    assert ICMP(data)[UDPerror].dport == 1


def test_an_unknown_protocol_is_reported(board):
    _, data = whole(give(board, datagram(Raw(bytes(20)), proto=132)))
    assert data[:2] == b"\x03\x02"
    assert give(board, datagram(Raw(bytes(20)), proto=6)) == []


def errors_for(board, **changes):
    frame = Ether(datagram(UDP(sport=4000, dport=4444) / Raw(b"hello")))
    for name, value in changes.items():
        layer, field = name.split("_")
        setattr(frame[{"ether": Ether, "ip": IP, "udp": UDP}[layer]], field, value)
    del frame[IP].chksum
    del frame[UDP].chksum
    return give(board, bytes(frame))


@pytest.mark.parametrize(
    "changes",
    [
        {"ether_dst": "ff:ff:ff:ff:ff:ff"},
        {"ether_dst": "01:00:5e:00:00:01"},
        {"ether_dst": "02:00:00:00:00:03"},
        {"ether_src": "ff:ff:ff:ff:ff:ff"},
        {"ether_src": "03:00:00:00:00:01"},
        {"ip_dst": "10.0.0.255"},
        {"ip_dst": "255.255.255.255"},
        {"ip_dst": "224.0.0.1"},
        {"ip_dst": "10.0.0.3"},
        {"ip_src": "10.0.0.255"},
        {"ip_src": "10.0.0.0"},
        {"ip_src": "255.255.255.255"},
        {"ip_src": "224.0.0.1"},
        {"ip_src": "240.0.0.1"},
        {"ip_src": "127.0.0.1"},
        {"ip_src": "0.0.0.0"},
        {"ip_src": US},
        {"udp_dport": 68},
        {"udp_dport": 9},
        {"ip_version": 5},
        {"ip_ihl": 4},
        {"ip_len": 27},
        {"ip_len": 100},
        {"udp_len": 7},
        {"udp_len": 12},
        {"udp_len": 14},
    ],
)
def test_no_error_is_sent(board, changes):
    """RFC 1122, 3.2.2: not about group addresses, nor to those that no host can have."""
    assert len(errors_for(board)) == 1
    assert errors_for(board, **changes) == []


def test_no_error_about_errors_and_fragments(board):
    inner = bytes(IP(src=US, dst=PEER) / UDP(sport=1, dport=2))
    for kind in (0, 3, 4, 5, 11, 12, 13, 14):
        for code in (0, 3):
            message = ICMP(type=kind, code=code) / Raw(inner)
            assert give(board, datagram(message, OPTIONS[0])) == []
            assert give(board, *parts(message / Raw(bytes(2000)))) == []
    assert give(board, datagram(ping(code=1), OPTIONS[0])) == []
    closed = parts(UDP(sport=4000, dport=4444) / Raw(bytes(2000)))
    assert give(board, *closed) == []
    assert give(board, *closed[1:]) == []
    assert give(board, *parts(Raw(bytes(2000)), proto=132)) == []


def test_errors_are_rate_limited(board):
    """Ten in a row, then one in 100 ms."""
    counts = []
    for wait in (0, 99, 1, 100, 450, 100_000):
        board.serve(wait)
        counts.append(sum(len(errors_for(board)) for _ in range(15)))
    assert counts == [10, 0, 1, 1, 4, 10]
    # What is no error is not limited.
    for _ in range(30):
        echoed(give(board, datagram(ping(), OPTIONS[0])), ping())


def test_a_datagram_whose_rest_does_not_come_is_given_up(board):
    """RFC 1122, 3.3.2: time exceeded, code 1, if the first fragment is there."""
    first, second = parts(ping(2000), ident=5)
    assert give(board, first) == []
    board.serve(TIMEOUT_MS - 1)
    assert board.sent == []
    board.serve(1)
    board.serve(0)
    protocol, data = whole(board.sent)
    board.sent = []
    assert (protocol, data[:2]) == (1, b"\x0b\x01")
    assert data[8:] == first[14 : 14 + 28]
    assert checksum(data) == 0
    assert give(board, second) == []
    board.serve(TIMEOUT_MS)
    for _ in range(3):
        board.serve(0)
    assert board.sent == [], "without the first fragment nothing is sent"
    # The time is that of the first fragment that came.
    assert give(board, second) == []
    board.serve(TIMEOUT_MS - 1)
    echoed(give(board, first), ping(2000))


def test_datagrams_do_not_mix(board):
    """They differ in identification, source or protocol; the oldest makes room for a fifth."""
    requests = [ping(1500 + k) for k in range(4)]
    pieces = [parts(request, ident=k) for k, request in enumerate(requests)]
    assert give(board, *[piece[0] for piece in pieces]) == []
    for request, piece in zip(requests, pieces, strict=True):
        echoed(give(board, *piece[1:]), request)
    assert give(board, *[piece[0] for piece in pieces]) == []
    board.serve(1)
    assert give(board, parts(ping(1500), ident=9)[0]) == []
    echoed(give(board, *pieces[3][1:]), requests[3])
    kept = sum(bool(give(board, *piece[1:])) for piece in pieces[:3])
    assert kept == 2


def raw_fragment(offset, data, more, ident=7, proto=1):
    flags = int(more)
    return datagram(Raw(data), id=ident, frag=offset // 8, flags=flags, proto=proto)


def hostile_after_the_first(ident):
    return {
        "overlap of the end": raw_fragment(16, bytes(16), True, ident),
        "overlap of all": raw_fragment(0, bytes(64), True, ident),
        "an odd length": raw_fragment(24, bytes(9), True, ident),
        "nothing": raw_fragment(24, b"", True, ident),
        "beyond the buffer": raw_fragment(4096, bytes(8), True, ident),
        "beyond 64 KiB": raw_fragment(65528, bytes(100), False, ident),
        "an end before what has come": raw_fragment(8, bytes(8), False, ident),
    }


def hostile_after_the_last(ident):
    return {
        "another end": raw_fragment(48, bytes(8), False, ident),
        "more behind the end": raw_fragment(48, bytes(8), True, ident),
        "more at the end": raw_fragment(24, bytes(24), True, ident),
        "a shorter end": raw_fragment(24, bytes(8), False, ident),
    }


def two_fragments(ident):
    data = bytes(ping(40))  # 48 bytes
    return raw_fragment(0, data[:24], True, ident), raw_fragment(24, data[24:], False, ident)


def test_overlapping_and_contradicting_fragments_are_never_joined(board):
    """A datagram that was touched by one is given up; one with its number begins anew."""
    for number, what in enumerate(hostile_after_the_first(0)):
        first, last = two_fragments(number)
        assert give(board, first, hostile_after_the_first(number)[what], last) == [], what
        echoed(give(board, first), ping(40))
    for number, what in enumerate(hostile_after_the_last(0), start=100):
        first, last = two_fragments(number)
        assert give(board, last, hostile_after_the_last(number)[what], first) == [], what
        echoed(give(board, last), ping(40))


def test_what_has_come_is_not_replaced(board):
    """By fragments that lie within it, with other bytes."""
    for ident, (at, length) in enumerate(((0, 24), (8, 8), (16, 8))):
        first, last = two_fragments(ident)
        other = raw_fragment(at, bytes(length), True, ident)
        echoed(give(board, first, other, last), ping(40))


@seeds(3)
def test_any_fragments_end_in_an_answer_or_none(board, seed):
    """Random fragments of few datagrams: answers are sound, and nothing breaks."""
    rng = make_rng(seed, "fragments")
    for _ in range(1500):
        offset = rng.choice((0, 0, 8, 16, 24, 1480, 4088, 4096, 65528))
        data = bytes(rng.choice((0, 0, 1, 8)) for _ in range(rng.choice((0, 1, 8, 16, 24, 1480))))
        frame = bytearray(
            raw_fragment(offset, data, rng.random() < 0.5, rng.randrange(6), rng.choice((1, 17)))
        )
        if rng.random() < 0.1:
            frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
        for answer in give(board, bytes(frame)):
            assert checksum(answer[14:34]) == 0
        board.serve(rng.choice((0, 1, 1000)))
    board.serve(TIMEOUT_MS)
    for _ in range(10):
        board.serve(1000)
    board.sent = []
    echoed(give(board, *parts(ping(2000), ident=1)), ping(2000))


def test_nothing_is_answered_without_an_address(compiled, tmp_path):
    board = Board(ctypes.CDLL(str(shutil.copy(compiled, tmp_path / "none.so"))))
    board.begin(dhcp=True)
    board.next_message()
    for source in (US, "0.0.0.0"):
        assert give(board, datagram(ping(), OPTIONS[0], dst=source)) == []


def conflict(sender=US, mac=PEER_MAC, operation=1, target=US):
    arp = ARP(op=operation, hwsrc=mac, psrc=sender, pdst=target)
    return bytes(Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / arp)


@pytest.mark.parametrize("operation", [1, 2])
@pytest.mark.parametrize("target", [US, PEER])
def test_the_address_is_defended(board, operation, target):
    """RFC 5227, 2.4 (c): announced once in ten seconds, and reported."""
    frame = conflict(operation=operation, target=target)
    (sent,) = give(board, frame)
    news = Ether(sent)
    assert (news.dst, news.src, len(sent)) == ("ff:ff:ff:ff:ff:ff", MAC, 42)
    arp = news[ARP]
    assert (arp.op, arp.hwsrc, arp.psrc, arp.pdst) == (1, MAC, US, US)
    assert board.told() == [f"1 ip: {US} is also used by {PEER_MAC}"]
    assert give(board, frame, frame) == []
    board.serve(9_999)
    assert give(board, frame) == []
    board.serve(1)
    assert len(give(board, frame)) == 1
    assert board.command()["address"] == US


def test_what_is_no_conflict_is_not_answered(board):
    assert give(board, conflict(sender=PEER), conflict(sender="0.0.0.0"), conflict(mac=MAC)) == []
    short = conflict()[:41]
    board.waiting.append(short)
    board.serve()
    assert board.sent == []
    for at in (14, 16, 18, 19):
        frame = bytearray(conflict())
        frame[at] ^= 1
        assert give(board, bytes(frame)) == []
    assert board.told() == []
