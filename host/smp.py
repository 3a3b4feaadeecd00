"""Serial Messaging Protocol: packing, a stream decoder, and a connection over TCP.

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
Reserved bytes are sent as 0 and ignored when received, but for the first of a message to a board: n
names role n - 1 of the board, 0 the TCP port's.
"""

import contextlib
import socket
import struct
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from ..models import sockets
from ..models.errors import TrebuchetError
from ..models.plan import MAX_ROLES
from ..models.progress import Deadline, current_simulation
from ..models.status import DESCRIPTIONS, Status

__all__ = [
    "MAX_PAYLOAD",
    "PORT",
    "Configuration",
    "Connection",
    "Core",
    "Decoder",
    "Message",
    "MessageType",
    "ProtocolError",
    "Response",
    "connect",
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

HEADER = struct.Struct("<BB2xI")
RESPONSE = struct.Struct("<B3xI")
REPLY = struct.Struct("<B3x")
WORD = struct.Struct("<I")
SIZES = struct.Struct("<III")


class ProtocolError(TrebuchetError):
    """The peer sent something that is not SMP, or stopped in the middle of a message."""


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

    def pack(self) -> bytes:
        named = 0 if self.role is None else self.role + 1
        return HEADER.pack(self.kind, named, len(self.payload)) + self.payload


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
    id: int, data: bytes, kind: MessageType = MessageType.DATA, role: int | None = None
) -> Message:
    """A data message, or one of another type that begins with an ID; ``role``: for which role."""
    if not 0 <= id < 1 << 32:
        raise ValueError(f"id must be 32 bit unsigned, not {id}")
    if role is not None and not 0 <= role < MAX_ROLES:
        raise ValueError(f"role must be 0 to {MAX_ROLES - 1}, not {role}")
    return Message(kind, WORD.pack(id) + data, role)


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


def describe_status(status: int) -> str:
    """One line that names a status and says what to do."""
    try:
        known = Status(status)
    except ValueError:
        return f"status {status}, which this version does not know"
    return f"{known.name}: {DESCRIPTIONS[known]}"


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
            number, _, size = HEADER.unpack_from(self.buffer)
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
            yield Message(kind, payload)


def deadline(seconds: float) -> Deadline:
    """The end of a wait for a board: of simulated time where a simulator started this process."""
    return Deadline(seconds, current_simulation())


def connect(address: str, port: int, timeout: float) -> socket.socket:
    """A TCP connection, with one line for what can go wrong."""
    end = deadline(timeout)
    try:
        return sockets.connect(address, port, timeout)
    except TimeoutError as error:
        raise TrebuchetError(f"{address}:{port} did not answer within {end}") from error
    except (OSError, ValueError) as error:  # a name with an empty part is a ValueError
        raise TrebuchetError(f"cannot connect to {address}:{port}: {error}") from error


class Connection:
    """A TCP connection that carries SMP messages; failures are one clear line.

    Use it as a context manager. ``timeout`` (seconds, of simulated time if the peer is simulated:
    :mod:`trebuchet.models.progress`) bounds the wait for a whole message, and how long the peer may
    take nothing of one that is sent. After a failure the connection is closed,
    and says so when it is used again: what would come then could be an answer to an older message.

    A peer may answer and hang up while it is still being sent to, to refuse a message by its
    header, for one. What it said before is received before the failure is raised.
    """

    def __init__(
        self,
        address: str,
        port: int = PORT,
        timeout: float = 30.0,
        max_payload: int = MAX_PAYLOAD,
    ) -> None:
        self._take(connect(address, port, timeout), f"{address}:{port}", timeout, max_payload)

    def _take(
        self, connected: socket.socket, name: str, timeout: float, max_payload: int
    ) -> "Connection":
        self.name, self.timeout, self.socket = name, timeout, connected
        self.decoder = Decoder(max_payload)
        self.failure: str | None = None
        self.ready: deque[Message] = deque()
        connected.settimeout(timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self

    @classmethod
    def accepted_from(
        cls, address: str, port: int, timeout: float = 30.0, max_payload: int = MAX_PAYLOAD
    ) -> "Connection":
        """Wait at ``port`` of this machine until the peer ``address`` connects.

        Whoever else connects meanwhile is turned away. ``timeout`` bounds this wait as well.
        """
        end = deadline(timeout)
        try:
            wanted = socket.gethostbyname(address)
            with sockets.listen(port, timeout) as listener:
                while True:
                    listener.settimeout(end.left() or 1e-3)
                    connected, (peer, peer_port) = listener.accept()
                    if peer == wanted:
                        break
                    connected.close()
        except TimeoutError as error:
            raise TrebuchetError(
                f"{address} did not connect to port {port} within {end}"
            ) from error
        except OSError as error:
            raise TrebuchetError(f"cannot wait at port {port} for {address}: {error}") from error
        return cls.__new__(cls)._take(connected, f"{peer}:{peer_port}", timeout, max_payload)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, message: Message) -> None:
        self._check()
        if self.failure is not None:
            return  # the caller is to receive what the peer said before it failed
        end = deadline(self.timeout)
        try:
            self.socket.settimeout(self.timeout)
            # Not sendall(): its time-out is for the whole message, however steadily it is taken.
            rest = memoryview(message.pack())
            while rest:
                rest = rest[self._send_some(rest) :]
        except TimeoutError as error:
            self._fail_to_send(f"{self.name} took no data for {end}", error)
        except OSError as error:
            self._fail_to_send(f"the connection to {self.name} broke: {error}", error)

    def _send_some(self, data: memoryview) -> int:
        """How many bytes of ``data`` went; raises if the peer took nothing in the time-out."""
        while True:
            waiting = self._unacknowledged()
            try:
                return self.socket.send(data)
            except TimeoutError:
                # A kernel that has megabytes for a slow peer takes more only when a third is gone.
                if self._unacknowledged() >= waiting:
                    raise

    def _unacknowledged(self) -> int:
        """Bytes in the kernel that the peer has not taken; 0 where a kernel does not tell."""
        size = bytearray(4)
        with contextlib.suppress(ImportError, AttributeError, OSError):
            import fcntl  # noqa: PLC0415 - not every system has it
            import termios  # noqa: PLC0415 - as above

            fcntl.ioctl(self.socket, termios.TIOCOUTQ, size)
        return int.from_bytes(size, sys.byteorder)

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None when the peer has closed between two messages.

        ``timeout`` (seconds) bounds this wait in the place of the connection's.
        """
        self._check()
        timeout = self.timeout if timeout is None else timeout
        end = deadline(timeout)
        said = "nothing for"
        while not self.ready:
            self.decoder.feed(b"")  # raises if what came after the last message is none
            try:
                if not (left := end.left()):
                    raise TimeoutError
                self.socket.settimeout(left)
                data = self.socket.recv(1 << 16)
            except TimeoutError as error:
                raise self._fail(f"{self.name} sent {said} {end}") from error
            except OSError as error:
                raise self._fail(f"the connection to {self.name} broke: {error}") from error
            if not data:
                self.decoder.finish()
                return None
            said = "no whole message within"
            self.ready += self.decoder.feed(data)
        return self.ready.popleft()

    def _check(self) -> None:
        if self.failure is not None and not self._has_said():
            raise TrebuchetError(f"{self.failure}; the connection is closed since then")

    def _fail(self, failure: str) -> TrebuchetError:
        self.failure = failure
        self.close()
        return TrebuchetError(failure)

    def _fail_to_send(self, failure: str, error: OSError) -> None:
        self.failure = failure
        if not self._has_said():
            raise self._fail(failure) from error

    def _has_said(self) -> bool:
        """Whether there is a message that came before the failure."""
        try:
            self.socket.settimeout(0)
            while not self.ready and (data := self.socket.recv(1 << 16)):
                self.ready += self.decoder.feed(data)
        except OSError:
            pass  # no more has come
        return bool(self.ready)
