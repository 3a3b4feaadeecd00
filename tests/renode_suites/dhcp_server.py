"""Robot keyword of a DHCP server: answers as hexadecimal digits, as Renode's keywords want them.

It runs in the Python of Robot Framework, which knows nothing of Trebuchet, hence no more than the
standard library.
"""

import ipaddress
import struct

__all__ = ["dhcp_answer"]

_SERVER_MAC, _SERVER_IP = bytes.fromhex("020000000001"), bytes((192, 0, 2, 1))
_TYPES = {"offer": 2, "ack": 5, "nak": 6}


def _ipv4(payload: bytes, to: bytes) -> bytes:
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, 17, 0, _SERVER_IP, to)
    words = sum(struct.unpack(">10H", head))
    checksum = ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF
    return head[:10] + struct.pack(">H", checksum) + head[12:] + payload


def dhcp_answer(sent: bytes, kind: str, ip: str, seconds: int = 600) -> str:
    """The answer to a client's frame (RFC 2131, 4.3): ``offer``, ``ack`` or ``nak`` of ``ip``."""
    given = bytes(4) if kind == "nak" else ipaddress.IPv4Address(ip).packed
    to = b"\xff" * 4 if kind == "nak" else given
    bootp = b"\x02\x01\x06\x00" + sent[46:50] + bytes(8) + given + bytes(8) + sent[70:86]
    options = bytes((53, 1, _TYPES[kind], 54, 4)) + _SERVER_IP
    if kind != "nak":
        options += b"\x33\x04" + struct.pack(">I", int(seconds)) + b"\x01\x04\xff\xff\xff\x00"
        options += b"\x03\x04" + _SERVER_IP
    payload = bootp + bytes(192) + b"\x63\x82\x53\x63" + options + b"\xff"
    datagram = struct.pack(">HHHH", 67, 68, 8 + len(payload), 0) + payload
    return (sent[6:12] + _SERVER_MAC + b"\x08\x00" + _ipv4(datagram, to)).hex()
