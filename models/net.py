"""Naive models of the network data path: bytes to fields, bytes to checksums, fields to frames.

They say what the gateware of ``cores/net`` and ``cores/tcp`` must do with each frame, as directly
as it can be said, one frame at a time. Numbers are in host order; MAC addresses are 6 bytes.
"""

from dataclasses import dataclass
from typing import Any

__all__ = [
    "Drop",
    "Notice",
    "Segment",
    "build_segment",
    "checksum",
    "find_options",
    "is_for_cpu",
    "is_for_toe",
    "parse_icmp_error",
    "parse_segment",
    "with_tag",
    "without_tag",
]

FLAG_NAMES = ("fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr")


class Drop(Exception):
    """A frame is not accepted; ``reason`` is the name of the parser's counter."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Segment:
    """The fields of a TCP segment; ``mac`` and ``ip`` are the peer's.

    No option: ``mss`` 0, ``scale`` (the shift of RFC 7323) None, ``permits`` (SACK) False,
    ``blocks`` (pairs of edges, RFC 2018) empty. ``vlan`` is the TCI of its frame's VLAN tag.
    """

    mac: bytes
    ip: int
    remote_port: int
    local_port: int
    seq: int
    ack: int
    flags: int
    window: int
    mss: int
    payload: bytes
    scale: int | None = None
    permits: bool = False
    blocks: tuple[tuple[int, int], ...] = ()
    vlan: int | None = None


@dataclass(frozen=True)
class Notice:
    """What an ICMP error says of a segment of ours; ``ip`` and ``remote_port`` are the peer's."""

    ip: int
    remote_port: int
    local_port: int
    seq: int
    code: int
    mtu: int


def checksum(octets):
    """The Internet checksum of some bytes (RFC 1071); 0 if they contain a right one."""
    octets += b"\0" * (len(octets) % 2)
    total = sum(int.from_bytes(octets[i : i + 2], "big") for i in range(0, len(octets), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def _number(octets):
    return int.from_bytes(octets, "big")


def is_for_cpu(frame, port, mac, ip, shortest=41, arp=False, served=()):
    """Does the frame filter select this frame for the CPU?

    A UDP datagram to ``port`` of any address, without options and whole; an ARP frame of a sender
    with our ``ip``, and with ``arp`` every reply; an IPv4 datagram to ``mac`` and ``ip`` but for
    TCP, and without options or fragments ICMP and UDP to the ports ``served``.

    ``shortest``: bytes of the shortest frame that it takes; at wider data paths than 32 bits more.
    """
    if len(frame) < shortest:
        return False
    address = ip.to_bytes(4, "big")
    if frame[12:14] == b"\x08\x06":
        return frame[28:32] == address or (arp and frame[20:22] == b"\x00\x02")
    if frame[12:14] != b"\x08\x00":
        return False
    plain = frame[14] == 0x45 and _number(frame[20:22]) & 0x3FFF == 0
    protocol, to = frame[23], _number(frame[36:38])
    if plain and protocol == 17 and to == port:
        return True
    if frame[:6] != mac or frame[14] >> 4 != 4 or frame[30:34] != address or protocol == 6:
        return False
    return not (plain and (protocol == 1 or (protocol == 17 and to in served)))


def is_for_toe(frame, mac, ip, enable=True):
    """Does the classifier hand this frame to the TCP engine?"""
    return bool(
        enable
        and len(frame) >= 34
        and frame[0:6] == mac
        and not frame[6] & 1
        and frame[6:12] != mac
        and frame[12:14] == b"\x08\x00"
        and frame[14] >> 4 == 4
        and _number(frame[20:22]) & 0x3FFF == 0
        and frame[23] == 6
        and _number(frame[26:30]) != ip
        and _number(frame[30:34]) == ip
    )


def find_options(options):
    """The fields of a :class:`Segment` that proper options give; the last of each kind counts."""
    found: dict[str, Any] = {"mss": 0}
    at = 0
    while at < len(options):
        kind = options[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if at + 1 >= len(options) or options[at + 1] < 2:
            break
        length = options[at + 1]
        if kind == 2 and length == 4 and at + 4 <= len(options):
            found["mss"] = _number(options[at + 2 : at + 4])
        if kind == 3 and length == 3 and at + 3 <= len(options):
            found["scale"] = min(14, options[at + 2])
        if kind == 4 and length == 2:
            found["permits"] = True
        if kind == 5 and length % 8 == 2 and at + length <= len(options):
            edges = [_number(options[k : k + 4]) for k in range(at + 2, at + length, 4)]
            found["blocks"] = tuple(zip(edges[::2], edges[1::2], strict=True))
        at += length
    return found


def without_tag(frame):
    """The frame without its first VLAN tag (IEEE 802.1Q), and the tag's TCI; None: it has none."""
    if frame[12:14] != b"\x81\x00" or len(frame) <= 16:
        return frame, None
    return frame[:12] + frame[16:], _number(frame[14:16])


def with_tag(frame, tci):
    """The frame with a VLAN tag, if ``tci`` is not None."""
    tag = b"" if tci is None else b"\x81\x00" + tci.to_bytes(2, "big")
    return frame[:12] + tag + frame[12:]


def parse_segment(frame, error=False, *, vlan=False):
    """Take a frame apart as the receive parser does; raise :class:`Drop` for one it drops.

    ``vlan``: it may have a VLAN tag.
    """
    frame, tci = without_tag(frame) if vlan else (frame, None)
    packet = frame[14:]
    if error or len(packet) < 20 or len(packet) < _number(packet[2:4]):
        raise Drop("errors")
    total, ihl = _number(packet[2:4]), 4 * (packet[0] & 15)
    wrong_kind = frame[12:14] != b"\x08\x00" or packet[0] >> 4 != 4 or packet[9] != 6
    wrong_source = packet[12] in (0, 127) or packet[12] >= 224
    cut = _number(packet[6:8]) & 0x3FFF or total < ihl + 20
    if wrong_kind or wrong_source or ihl < 20 or cut:
        raise Drop("malformed")
    packet = packet[:total]
    tcp = packet[ihl:]
    offset = 4 * (tcp[12] >> 4)
    if offset < 20 or offset > len(tcp):
        raise Drop("malformed")
    if checksum(packet[:ihl]):
        raise Drop("ip_checksum")
    if checksum(packet[12:20] + b"\0\x06" + len(tcp).to_bytes(2, "big") + tcp):
        raise Drop("tcp_checksum")
    return Segment(
        mac=frame[6:12],
        ip=_number(packet[12:16]),
        remote_port=_number(tcp[0:2]),
        local_port=_number(tcp[2:4]),
        seq=_number(tcp[4:8]),
        ack=_number(tcp[8:12]),
        flags=tcp[13],
        window=_number(tcp[14:16]),
        payload=tcp[offset:],
        vlan=tci,
        **find_options(tcp[20:offset]),
    )


def parse_icmp_error(frame, mac, ip, error=False):
    """What an ICMP error says, None if the frame is none; raise :class:`Drop` for one dropped."""
    packet = frame[14:]
    total, ihl = _number(packet[2:4]), 4 * (packet[0] & 15) if packet else 0
    message = packet[:total][ihl:]
    is_ip = frame[0:6] == mac and frame[12:14] == b"\x08\x00"
    if not (is_ip and message) or packet[0] >> 4 != 4 or ihl < 20:
        return None
    if packet[9] != 1 or _number(packet[16:20]) != ip or message[0] != 3:
        return None
    if error or len(packet) < total:
        raise Drop("errors")
    if _number(packet[6:8]) & 0x3FFF or len(message) < 36:
        raise Drop("malformed")
    if checksum(packet[:ihl]):
        raise Drop("ip_checksum")
    if checksum(message):
        raise Drop("icmp_checksum")
    quote = message[8:]
    fragment = _number(quote[6:8]) & 0x1FFF
    if quote[0] != 0x45 or fragment or quote[9] != 6 or _number(quote[12:16]) != ip:
        raise Drop("foreign")
    return Notice(
        ip=_number(quote[16:20]),
        remote_port=_number(quote[22:24]),
        local_port=_number(quote[20:22]),
        seq=_number(quote[24:28]),
        code=message[1],
        mtu=_number(message[6:8]),
    )


def build_segment(segment, mac, ip, ttl=64, *, scaling=False, sack=False):
    """The frame that the sender makes of a segment; ``mac`` and ``ip`` are this board's.

    ``scaling``, ``sack``: its SYNs have room for these options.
    """
    options = b"\x02\x04" + segment.mss.to_bytes(2, "big") if segment.mss else b""
    if scaling and segment.mss:
        options += b"\1" * 4 if segment.scale is None else bytes([1, 3, 3, segment.scale])
    if sack and segment.mss:
        options += bytes([1, 1, 4, 2]) if segment.permits else b"\1" * 4
    if segment.blocks:
        options += bytes([1, 1, 5, 2 + 8 * len(segment.blocks)])
        options += b"".join(e.to_bytes(4, "big") for edges in segment.blocks for e in edges)
    addresses = ip.to_bytes(4, "big") + segment.ip.to_bytes(4, "big")
    tcp = bytearray(
        segment.local_port.to_bytes(2, "big")
        + segment.remote_port.to_bytes(2, "big")
        + segment.seq.to_bytes(4, "big")
        + segment.ack.to_bytes(4, "big")
        + bytes([(5 + len(options) // 4) << 4, segment.flags])
        + segment.window.to_bytes(2, "big")
        + bytes(4)
        + options
        + segment.payload
    )
    pseudo = addresses + b"\0\x06" + len(tcp).to_bytes(2, "big")
    tcp[16:18] = checksum(pseudo + bytes(tcp)).to_bytes(2, "big")
    header = bytearray(
        b"\x45\0"
        + (20 + len(tcp)).to_bytes(2, "big")
        + b"\0\0\x40\0"
        + bytes([ttl, 6, 0, 0])
        + addresses
    )
    header[10:12] = checksum(bytes(header)).to_bytes(2, "big")
    frame = segment.mac + mac + b"\x08\0" + bytes(header) + bytes(tcp)
    return with_tag(frame.ljust(60, b"\0"), segment.vlan)
