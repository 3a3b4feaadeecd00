"""Serial Messaging Protocol: messages, and a decoder of a byte stream; no I/O.

Source: distributed-fpga-framework, section 3.2. A message is a header of 8 bytes (type, three
reserved bytes, payload size as u32) and the payload; all numbers are little-endian.

=====  ======================  ==============================================================
type   name                    payload
=====  ======================  ==============================================================
1      configuration           u32 input size, output size, number of cores; for each core u32
                               control, input and output base address; then the bitstream
2      configuration response  u8 status, 0 is good
3      data                    u32 ID, then any bytes; the answer carries the same ID
4      stream                  as data, but part of a record; ours, not of the source. The answer
                               is a data message. A board without it says ``BAD_TYPE``
5      command                 a line of text, as on the board's console; ours
6      reply                   u8 status, three zero bytes, then text: the answer to a command
=====  ======================  ==============================================================

A board answers a message that it cannot work on with a type 2 message of 8 bytes: u8 status
(:class:`trebuchet.models.status.Status`), three zero bytes, u32 ID of the message in question.
Of the reserved bytes of a message to a board the first names its role: n is role n - 1 of the
board, 0 the TCP port's. The other two are the epoch of the sender's lease
(:mod:`..models.epoch`), or 0.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ..models.epoch import NO_EPOCH
from ..models.plan import MAX_ROLES
from .errors import ProtocolError, describe_status

__all__ = [
    "MAX_PAYLOAD",
    "PORT",
    "Configuration",
    "Core",
    "Decoder",
    "Header",
    "Message",
    "MessageType",
    "ProtocolError",
    "Response",
    "data_message",
    "describe_status",
    "parse_configuration",
    "parse_data",
    "parse_reply",
    "parse_response",
    "response_message",
]

#: TCP port on which a board's SMP framer listens.
PORT = 4000
#: Largest payload a decoder takes unless told otherwise; stops a bad size from eating memory.
MAX_PAYLOAD = 1 << 26

HEADER = struct.Struct("<BBHI")
RESPONSE = struct.Struct("<B3xI")
REPLY = struct.Struct("<B3x")
WORD = struct.Struct("<I")
SIZES = struct.Struct("<III")


class Header(NamedTuple):
    """What the first 8 bytes of a message say."""

    kind: int
    #: Number of the role that it is for, plus 1; 0: the TCP port's.
    named: int
    epoch: int
    #: Bytes of the payload.
    size: int

    @classmethod
    def of(cls, data: bytes | bytearray) -> "Header":
        """Return the header at the beginning of ``data``, at least 8 bytes."""
        return cls(*HEADER.unpack_from(data))


class MessageType(IntEnum):
    CONFIGURATION = 1
    RESPONSE = 2
    DATA = 3
    STREAM = 4
    COMMAND = 5
    REPLY = 6


@dataclass(frozen=True)
class Message:
    """One message as it is on the wire."""

    kind: MessageType
    payload: bytes
    #: Number of the role that it is for; None: the TCP port's.
    role: int | None = None
    #: Epoch of the sender's lease.
    epoch: int = NO_EPOCH

    def pack(self) -> bytes:
        named = 0 if self.role is None else self.role + 1
        return HEADER.pack(self.kind, named, self.epoch, len(self.payload)) + self.payload


@dataclass(frozen=True)
class Core:
    """Base addresses of one hardware core."""

    control: int
    input: int
    output: int


@dataclass(frozen=True)
class Configuration:
    """Contents of a configuration message."""

    input_size: int
    output_size: int
    cores: tuple[Core, ...]
    bitstream: bytes

    def message(self) -> Message:
        head = SIZES.pack(self.input_size, self.output_size, len(self.cores))
        blocks = b"".join(SIZES.pack(core.control, core.input, core.output) for core in self.cores)
        return Message(MessageType.CONFIGURATION, head + blocks + self.bitstream)


@dataclass(frozen=True)
class Response:
    """Contents of a response message; ``id`` is None in the one-byte form of the source."""

    status: int
    id: int | None


def data_message(
    id: int,
    data: bytes,
    kind: MessageType = MessageType.DATA,
    role: int | None = None,
    epoch: int = NO_EPOCH,
) -> Message:
    """A data message, or one of another type that begins with an ID; ``role``: for which role."""
    if not 0 <= id < 1 << 32:
        raise ValueError(f"id must be 32 bit unsigned, not {id}")
    if role is not None and not 0 <= role < MAX_ROLES:
        raise ValueError(f"role must be 0 to {MAX_ROLES - 1}, not {role}")
    return Message(kind, WORD.pack(id) + data, role, epoch)


def response_message(status: int, id: int | None = None) -> Message:
    payload = bytes((status,)) if id is None else RESPONSE.pack(status, id)
    return Message(MessageType.RESPONSE, payload)


def parse_configuration(payload: bytes) -> Configuration:
    if len(payload) < SIZES.size:
        raise ProtocolError(
            f"a configuration message must have at least {SIZES.size} bytes, not {len(payload)}"
        )
    input_size, output_size, count = SIZES.unpack_from(payload)
    end = SIZES.size * (1 + count)
    if len(payload) < end:
        raise ProtocolError(
            f"a configuration of {count} cores must have at least {end} bytes, not {len(payload)}"
        )
    cores = tuple(Core(*fields) for fields in SIZES.iter_unpack(payload[SIZES.size : end]))
    return Configuration(input_size, output_size, cores, payload[end:])


def parse_response(payload: bytes) -> Response:
    if len(payload) == 1:
        return Response(payload[0], None)
    if len(payload) != RESPONSE.size:
        raise ProtocolError(f"a response must have 1 or 8 bytes, not {len(payload)}")
    status, id = RESPONSE.unpack(payload)
    return Response(status, id)


def parse_data(payload: bytes) -> tuple[int, bytes]:
    """``(id, data)`` of a data message's payload."""
    if len(payload) < WORD.size:
        raise ProtocolError(f"a data message must have at least 4 bytes, not {len(payload)}")
    return WORD.unpack_from(payload)[0], payload[WORD.size :]


def parse_reply(payload: bytes) -> tuple[int, str]:
    """``(status, text)`` of a reply message's payload."""
    if len(payload) < REPLY.size:
        raise ProtocolError(f"a reply must have at least 4 bytes, not {len(payload)}")
    return REPLY.unpack_from(payload)[0], payload[REPLY.size :].decode("utf-8", "replace")


class Decoder:
    """Cuts a byte stream into messages, however the bytes were split on their way.

    ``feed`` takes any number of bytes, or none, and returns the messages that they complete. A
    message of unknown type or of more than ``max_payload`` bytes raises at its header, or at the
    next call if messages before it are to be returned: after it there is no way to find the next
    message, so the decoder stays failed.
    """

    def __init__(self, max_payload: int = MAX_PAYLOAD) -> None:
        self.max_payload = max_payload
        self.buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        self.buffer += data
        messages: list[Message] = []
        try:
            messages.extend(self._messages())
        except ProtocolError:
            # The header in question is now what the buffer begins with: the next call raises.
            if not messages:
                raise
        return messages

    def finish(self) -> None:
        """Tell the decoder that the stream has ended."""
        self.feed(b"")
        if self.buffer:
            raise ProtocolError(
                f"the connection ended inside a message, after {len(self.buffer)} bytes of it"
            )

    def _messages(self) -> Iterator[Message]:
        while len(self.buffer) >= HEADER.size:
            number, _, epoch, size = Header.of(self.buffer)
            try:
                kind = MessageType(number)
            except ValueError:
                raise ProtocolError(f"an SMP message type must be 1 to 6, not {number}") from None
            if size > self.max_payload:
                raise ProtocolError(
                    f"an SMP payload must be at most {self.max_payload} bytes, not {size}"
                )
            end = HEADER.size + size
            if len(self.buffer) < end:
                return
            payload = bytes(self.buffer[HEADER.size : end])
            del self.buffer[:end]
            yield Message(kind, payload, epoch=epoch)
