"""A TCP peer made by hand: frames of any kind from addresses that no kernel answers for."""

import socket
import struct
from dataclasses import dataclass

from e2e_board import raw_socket
from trebuchet.models.net import checksum
from trebuchet.sim.defaults import MAC

__all__ = ["ACK", "FIN", "PSH", "RST", "SYN", "RawPeer", "Segment", "tcp_frame"]

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
_BOARD_MAC = bytes.fromhex(MAC.replace(":", ""))


@dataclass(frozen=True)
class Segment:
    """What a received frame says."""

    source_port: int
    port: int
    seq: int
    ack: int
    flags: int
    window: int
    payload: bytes


def tcp_frame(
    source, ip, source_port, port, flags, *, seq=0, ack=0, window=65535, payload=b"", options=b""
):
    """A frame to the board from IPv4 address ``source``; all checksums are right."""
    offset = 5 + len(options) // 4
    tcp = struct.pack("!HHIIBBHHH", source_port, port, seq, ack, offset << 4, flags, window, 0, 0)
    tcp += options + payload
    addresses = socket.inet_aton(source) + socket.inet_aton(ip)
    check = checksum(addresses + struct.pack("!HH", 6, len(tcp)) + tcp)
    tcp = tcp[:16] + struct.pack("!H", check) + tcp[18:]
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0) + addresses
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    mac = b"\x02\0\0\1" + socket.inet_aton(source)[2:]
    return _BOARD_MAC + mac + b"\x08\0" + header + tcp


def _parse(frame, source):
    """The :class:`Segment` in a frame for address ``source``; None if it is for another."""
    if frame[23] != 6 or frame[30:34] != source:
        return None
    start = 14 + 4 * (frame[14] & 15)
    fields = struct.unpack_from("!HHIIBBH", frame, start)
    end = 14 + struct.unpack_from("!H", frame, 16)[0]
    payload = frame[start + 4 * (fields[4] >> 4) : end]
    return Segment(*fields[:4], fields[5], fields[6], payload)


class RawPeer:
    """Sends what it likes from ``address``; nobody answers what comes back. A context manager.

    The kernel has another address, so nothing resets what happens here.
    """

    def __init__(self, board, address="192.0.2.77"):
        self.board, self.address, self.ip = board, address, board.ip
        self.socket = raw_socket(board)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def frame(self, source_port, port, flags, **fields):
        """A frame that :meth:`send` takes."""
        return tcp_frame(self.address, self.ip, source_port, port, flags, **fields)

    def send(self, source_port, port, flags, **fields):
        """Send one segment."""
        self.socket.send(self.frame(source_port, port, flags, **fields))

    def receive(self, source_port, seconds=20, wanted=lambda segment: True):
        """The next segment to that port that is ``wanted``."""
        end = self.board.deadline(seconds)
        mine = socket.inet_aton(self.address)
        while True:
            left = end.left()
            assert left > 0, f"no answer to {self.address}:{source_port} within {end}"
            self.socket.settimeout(left)
            try:
                segment = _parse(self.socket.recv(2000), mine)
            except TimeoutError:
                continue
            if segment and segment.port == source_port and wanted(segment):
                return segment

    def open(self, source_port, port, seq=1000, window=65535):
        """Three-way handshake; returns ``(seq, ack)`` for what follows."""
        self.send(source_port, port, SYN, seq=seq, window=window)
        answer = self.receive(source_port, wanted=lambda s: s.flags & SYN)
        assert answer.flags == SYN | ACK
        assert answer.ack == seq + 1
        place = {"seq": seq + 1, "ack": (answer.seq + 1) % (1 << 32)}
        self.send(source_port, port, ACK, window=window, **place)
        return place
