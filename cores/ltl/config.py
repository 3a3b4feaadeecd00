"""Parameters, frame layout and internal messages of the LTL engine (docs/network.md, LTL).

A frame has a header of 56 bytes (Ethernet 14, IPv4 20, UDP 8, LTL 14), the payload padded with
zeros to a multiple of 8 bytes, and a trailer of 8 bytes: the CRC-32 of everything from byte
:data:`CRC_FROM` on, least significant byte first, and four zero bytes. A frame without payload has
64 bytes, so that no frame needs Ethernet's padding, and the payload lies on a beat.
"""

from dataclasses import dataclass
from enum import IntEnum

from amaranth import unsigned
from amaranth.lib import data

from ..stream import check_data_width

__all__ = [
    "COUNT_BITS",
    "CRC_FROM",
    "HEADER_BYTES",
    "TIME_BITS",
    "TRAILER_BYTES",
    "UDP_PORT",
    "VERSION",
    "Kind",
    "LtlConfig",
]

#: Of the whole frame, Ethernet to LTL.
HEADER_BYTES = 56
TRAILER_BYTES = 8
#: The CRC covers the UDP checksum (0: none, RFC 768), the LTL header, payload and padding.
CRC_FROM = 40
VERSION = 1
#: Messages of a receive connection, delivered or gone, are counted modulo ``2 ** COUNT_BITS``.
COUNT_BITS = 8
#: In IANA's private range; a register changes it.
UDP_PORT = 0xC17A
#: Time stamps and time-outs count timer ticks modulo ``2 ** TIME_BITS``.
TIME_BITS = 16


class Kind(IntEnum):
    """Type of a frame, the low half of the LTL header's first byte."""

    DATA = 1
    ACK = 2
    PROBE = 3


@dataclass(frozen=True)
class LtlConfig:
    """Sizes of one LTL engine.

    Attributes
    ----------
    width : int
        Data path in bits, 32 or 64.
    connections : int
        Entries of the send table and of the receive table, 1 to 1024.
    vcs : int
        Virtual channels: message inputs, and message outputs.
    slots : int
        Messages that the unacknowledged-frame store holds, of all connections together.
    window : int
        Frames of one connection that may be queued or unacknowledged, a power of two of at least 2.
    max_message : int
        Bytes of the longest message; at most 1448, which fill an Ethernet frame.
    buffer_beats : int
        Beats of each output's buffer, a power of two that holds at least one message.
    reserve : int
        Slots that each virtual channel has for itself, at least 1.
    seq_bits : int
        Sequence numbers are kept modulo ``2 ** seq_bits``; less than 32 for proofs only.
    """

    width: int = 64
    connections: int = 64
    vcs: int = 2
    slots: int = 32
    window: int = 8
    max_message: int = 1448
    buffer_beats: int = 2048
    reserve: int = 2
    seq_bits: int = 32

    def __post_init__(self):
        check_data_width(self.width)
        if self.width == 128:
            raise ValueError("Data path width of LTL must be 32 or 64 bits, not 128")
        for name, low, high in (
            ("connections", 1, 1024),
            ("vcs", 1, 8),
            ("window", 2, 64),
            ("max_message", 1, 1448),
            ("reserve", 1, self.slots),
            ("seq_bits", 3, 32),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"LTL {name} must be {low} to {high}, not {value!r}")
        for name in ("window", "buffer_beats"):
            value = getattr(self, name)
            if value & (value - 1):
                raise ValueError(f"LTL {name} must be a power of two, not {value!r}")
        if self.window > 1 << (self.seq_bits - 1):
            raise ValueError(
                f"LTL window must be at most half the sequence space, not {self.window}"
            )
        if not self.reserve * self.vcs <= self.slots <= 256:
            raise ValueError(
                f"LTL slots must be {self.reserve * self.vcs} (the reserve) to 256, "
                f"not {self.slots!r}"
            )
        if self.buffer_beats < self.message_beats:
            raise ValueError(
                f"LTL buffer_beats must hold a message of {self.message_beats} beats, "
                f"not {self.buffer_beats!r}"
            )

    @property
    def bytes(self):
        """Bytes of a beat."""
        return self.width // 8

    @property
    def message_beats(self):
        return -(-self.max_message // self.bytes)

    @property
    def slot_bits(self):
        """Address bits within a slot of the store."""
        return max(1, (self.message_beats - 1).bit_length())

    @property
    def connection_layout(self):
        return unsigned(max(1, (self.connections - 1).bit_length()))

    @property
    def slot_layout(self):
        return unsigned(max(1, (self.slots - 1).bit_length()))

    @property
    def count_layout(self):
        """A number of frames within the window."""
        return unsigned(self.window.bit_length())

    @property
    def vc_layout(self):
        return unsigned(max(1, (self.vcs - 1).bit_length()))

    @property
    def total_layout(self):
        """A count of messages; less than :data:`COUNT_BITS` for proofs only."""
        return unsigned(min(COUNT_BITS, self.seq_bits))

    @property
    def seq_layout(self):
        return unsigned(self.seq_bits)

    @property
    def message_layout(self):
        """A beat of a message: that of a packet stream, and the connection, the same in each."""
        n = self.bytes
        return data.StructLayout(
            {
                "data": unsigned(self.width),
                "empty": unsigned((n - 1).bit_length()),
                "first": unsigned(1),
                "last": unsigned(1),
                "error": unsigned(1),
                "connection": self.connection_layout,
            }
        )

    @property
    def stored_layout(self):
        """Where a stored message lies."""
        return data.StructLayout(
            {"slot": self.slot_layout, "vc": self.vc_layout, "length": unsigned(11)}
        )

    @property
    def commit_layout(self):
        """A message that has been stored, for the sender."""
        return data.StructLayout(
            {"connection": self.connection_layout, "stored": self.stored_layout}
        )

    @property
    def response_layout(self):
        """What an ACK frame says, for the sender."""
        return data.StructLayout(
            {
                "connection": self.connection_layout,
                "incarnation": unsigned(16),
                "seq": self.seq_layout,
                "credit": unsigned(8),
                "nack": unsigned(1),
                "cnp": unsigned(1),
            }
        )

    @property
    def request_layout(self):
        """A receive connection that owes its peer an ACK."""
        return data.StructLayout(
            {"connection": self.connection_layout, "nack": unsigned(1), "cnp": unsigned(1)}
        )

    @property
    def frame_layout(self):
        """A frame for the framer to send; what its kind does not have is 0."""
        return data.StructLayout(
            {
                "kind": unsigned(2),
                "connection": self.connection_layout,
                "seq": self.seq_layout,
                "slot": self.slot_layout,
                "length": unsigned(11),
                "credit": unsigned(8),
                "nack": unsigned(1),
                "cnp": unsigned(1),
            }
        )

    @property
    def peer_layout(self):
        """The other end of a connection, as its frames need it; ``mac`` in wire order."""
        return data.StructLayout(
            {
                "mac": unsigned(48),
                "ip": unsigned(32),
                "port": unsigned(16),
                "remote": unsigned(16),
                "incarnation": unsigned(16),
            }
        )

    @property
    def command_layout(self):
        """Opens or closes an entry of a table."""
        return data.StructLayout(
            {
                "open": unsigned(1),
                "connection": self.connection_layout,
                "incarnation": unsigned(16),
                "rto": unsigned(TIME_BITS),
                "vc": self.vc_layout,
                "credit": unsigned(8),
            }
        )
