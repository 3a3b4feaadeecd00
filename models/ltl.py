"""Naive models of LTL (docs/network.md): frames from and to bytes, one end of a connection.

They say what ``cores/ltl`` must do, one frame at a time, without tables, slots or pipelines.
Numbers are in host order; MAC addresses are 6 bytes.
"""

import zlib
from dataclasses import dataclass, field, replace

from .net import checksum

__all__ = [
    "ACK",
    "DATA",
    "PROBE",
    "UDP_PORT",
    "BadFrame",
    "Frame",
    "Receiver",
    "Sender",
    "build_frame",
    "parse_frame",
]

DATA, ACK, PROBE = 1, 2, 3
VERSION = 1
UDP_PORT = 0xC17A
MAX_MESSAGE = 1448
CE = 3  # congestion experienced, RFC 3168


class BadFrame(Exception):
    """A frame is dropped; ``reason`` is the name of the engine's counter."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Frame:
    """What an LTL frame says. ``mac``, ``ip``, ``port`` are those of the end it is sent to."""

    kind: int
    connection: int
    incarnation: int
    seq: int
    payload: bytes = b""
    credit: int = 0
    nack: bool = False
    cnp: bool = False
    mac: bytes = bytes(6)
    ip: int = 0
    port: int = UDP_PORT
    src_mac: bytes = bytes(6)
    src_ip: int = 0
    src_port: int = UDP_PORT
    dscp: int = 0
    ecn: int | None = None


def build_frame(frame: Frame) -> bytes:
    """The bytes of a frame, Ethernet header first, without FCS."""
    body = frame.payload + bytes(-len(frame.payload) % 8)
    ecn = (2 if frame.kind == DATA else 0) if frame.ecn is None else frame.ecn
    ltl = bytes([VERSION << 4 | frame.kind, frame.nack | frame.cnp << 1])
    for value, size in (
        (frame.connection, 2),
        (frame.incarnation, 2),
        (frame.seq, 4),
        (len(frame.payload), 2),
        (frame.credit, 2),
    ):
        ltl += value.to_bytes(size, "big")
    covered = bytes(2) + ltl + body
    udp_length = 8 + len(ltl) + len(body) + 8
    udp = b"".join(v.to_bytes(2, "big") for v in (frame.src_port, frame.port, udp_length))
    ip = bytes([0x45, frame.dscp << 2 | ecn]) + (20 + udp_length).to_bytes(2, "big")
    ip += bytes([0, 0, 0x40, 0, 64, 17])
    addresses = frame.src_ip.to_bytes(4, "big") + frame.ip.to_bytes(4, "big")
    ip += checksum(ip + bytes(2) + addresses).to_bytes(2, "big") + addresses
    trailer = zlib.crc32(covered).to_bytes(4, "little") + bytes(4)
    return frame.mac + frame.src_mac + b"\x08\x00" + ip + udp + covered + trailer


def _number(octets: bytes) -> int:
    return int.from_bytes(octets, "big")


def parse_frame(
    octets: bytes, mac: bytes, ip: int, port: int = UDP_PORT, max_length: int = MAX_MESSAGE
) -> Frame:
    """What the frame says, if it is a good LTL frame for that address; else :class:`BadFrame`."""
    if (
        len(octets) <= 48
        or octets[:6] != mac
        or octets[12:15] != b"\x08\x00\x45"
        or _number(octets[20:22]) & 0x3FFF
        or octets[23] != 17
        or _number(octets[30:34]) != ip
        or _number(octets[36:38]) != port
    ):
        raise BadFrame("foreign")
    crc = zlib.crc32(octets[40:-8]).to_bytes(4, "little") + bytes(4)
    if len(octets) % 8 or checksum(octets[14:34]) or octets[-8:] != crc:
        raise BadFrame("corrupt")
    frame = Frame(
        kind=octets[42] & 15,
        connection=_number(octets[44:46]),
        incarnation=_number(octets[46:48]),
        seq=_number(octets[48:52]),
        credit=_number(octets[54:56]),
        nack=bool(octets[43] & 1),
        cnp=bool(octets[43] & 2),
        mac=octets[:6],
        ip=ip,
        port=port,
        src_mac=octets[6:12],
        src_ip=_number(octets[26:30]),
        src_port=_number(octets[34:36]),
        dscp=octets[15] >> 2,
        ecn=octets[15] & 3,
    )
    length = _number(octets[52:54])
    padded = -(-length // 8) * 8
    if (
        octets[42] >> 4 != VERSION
        or frame.kind not in (DATA, ACK, PROBE)
        or (frame.kind == DATA) != (length > 0)
        or length > max_length
        or _number(octets[16:18]) != padded + 50
        or _number(octets[38:40]) != padded + 30
        or len(octets) != padded + 64
        or octets[40:42] != bytes(2)
    ):
        raise BadFrame("malformed")
    return replace(frame, payload=octets[56 : 56 + length])


@dataclass
class Receiver:
    """The receiving end of one connection: order, ACKs, credits."""

    credit: int
    expected: int = 0
    consumed: int = 0
    nacked: bool = False
    ahead: int = 0
    delivered: list[bytes] = field(default_factory=list)

    def ack(self, nack: bool = False) -> tuple[int, int, bool]:
        """Sequence number, credit and NACK flag of an ACK that is sent now."""
        return self.expected, self.consumed + self.credit - self.expected, nack

    def data(self, seq: int, payload: bytes, room: bool = True) -> tuple[int, int, bool] | None:
        """A DATA frame comes: the ACK that answers it, if one does."""
        if seq == self.expected and room:
            self.delivered.append(payload)
            self.expected, self.nacked = seq + 1, False
            return self.ack()
        if seq < self.expected:
            return self.ack()
        if seq == self.expected:
            return None
        again = self.nacked and seq > self.ahead
        self.nacked, self.ahead = True, seq
        return None if again else self.ack(nack=True)


@dataclass
class Sender:
    """The sending end of one connection: what it may send, what an ACK does."""

    window: int
    limit: int
    una: int = 0
    next: int = 0
    peak: int = 0
    messages: list[bytes] = field(default_factory=list)

    def to_send(self) -> int | None:
        """The sequence number that may be sent now, which is then counted as sent."""
        seq = self.next
        if seq >= min(len(self.messages), self.una + self.window, self.limit):
            return None
        self.next += 1
        self.peak = max(self.peak, self.next)
        return seq

    def ack(self, seq: int, credit: int, nack: bool) -> None:
        if not self.una <= seq <= self.peak:
            return
        self.una = seq
        self.limit = max(self.limit, seq + min(credit, self.window))
        self.next = max(self.next, seq)
        if nack:
            self.next = seq

    def timeout(self) -> None:
        self.next = self.una
