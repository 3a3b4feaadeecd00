"""Packets of GDB's remote serial protocol (GDB manual, appendix E.1): framing, sums, escapes."""

import socket
from enum import Enum, auto

__all__ = ["MAX_PACKET", "Event", "PacketStream", "escape", "frame", "unescape"]

#: Characters of a packet between ``$`` and ``#`` that we take. GDB is told so.
MAX_PACKET = 0x2000
_ESCAPED = b"#$}*"


class Event(Enum):
    """What came instead of a packet."""

    INTERRUPT = auto()  # the user's Ctrl-C
    TOO_LONG = auto()  # a packet longer than MAX_PACKET, left out
    CLOSED = auto()


def escape(data: bytes) -> bytes:
    """Binary data as it may stand in a packet."""
    out = bytearray()
    for byte in data:
        out += bytes((0x7D, byte ^ 0x20)) if byte in _ESCAPED else bytes((byte,))
    return bytes(out)


def unescape(data: bytes) -> bytes:
    """The opposite of :func:`escape`."""
    out = bytearray()
    rest = iter(data)
    for byte in rest:
        out.append(next(rest, 0) ^ 0x20 if byte == 0x7D else byte)
    return bytes(out)


def frame(payload: bytes) -> bytes:
    """A whole packet."""
    return b"$%b#%02x" % (payload, sum(payload) & 0xFF)


class PacketStream:
    """One client: packets in and out.

    A packet with a wrong sum is asked for again, until :attr:`acknowledge` is off
    (``QStartNoAckMode``); bytes between packets are ignored.
    """

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.acknowledge = True
        self._buffer = bytearray()
        self._last = b""

    def fileno(self) -> int:
        """For ``select``."""
        return self.peer.fileno()

    def send(self, payload: bytes) -> None:
        """Send a packet."""
        self._last = frame(payload)
        self.peer.sendall(self._last)

    def feed(self) -> list[bytes | Event]:
        """Read once, and return what that completed."""
        try:
            chunk = self.peer.recv(65536)
        except OSError:
            chunk = b""
        if not chunk:
            return [Event.CLOSED]
        self._buffer += chunk
        events: list[bytes | Event] = []
        while (event := self._next()) is not None:
            events.append(event)
        return events

    def _next(self) -> bytes | Event | None:
        while self._buffer:
            first = self._buffer[0]
            if first == 0x24:  # $
                packet = self._packet()
                if packet is None:
                    return None
                if (event := self._judge(*packet)) is not None:
                    return event
                continue
            del self._buffer[0]
            if first == 0x03:
                return Event.INTERRUPT
            if first == 0x2D and self.acknowledge and self._last:  # -
                self.peer.sendall(self._last)
        return None

    def _packet(self) -> tuple[bytes, bytes] | None:
        """Cut the first packet off: its payload and the sum that it tells; None: not all there."""
        end = self._buffer.find(b"#")
        if end < 0 or len(self._buffer) < end + 3:
            # Of a packet that is too long, only so much is kept that its end can be told.
            surplus = len(self._buffer) - MAX_PACKET - 4
            if surplus > 0:
                del self._buffer[1 : 1 + surplus]
                self._too_long = True
            return None
        payload = bytes(self._buffer[1:end])
        told = bytes(self._buffer[end + 1 : end + 3])
        del self._buffer[: end + 3]
        return payload, told

    _too_long = False

    def _judge(self, payload: bytes, told: bytes) -> bytes | Event | None:
        """Acknowledge a packet; None if it has to come again."""
        too_long, self._too_long = self._too_long or len(payload) > MAX_PACKET, False
        if not self.acknowledge:
            return Event.TOO_LONG if too_long else payload
        if not too_long and told.lower() != b"%02x" % (sum(payload) & 0xFF):
            self.peer.sendall(b"-")
            return None
        self.peer.sendall(b"+")
        return Event.TOO_LONG if too_long else payload
