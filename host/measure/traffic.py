"""Kinds of traffic: the bytes of a transfer, and when it is complete; no I/O.

============  ==============  ==================================================================
traffic       port            a transfer
============  ==============  ==================================================================
``role``      4000, or the    an SMP data message with ``size`` bytes of operand, and its answer
              address's
``generate``  the same        an operand of 16 bytes, and ``size`` bytes of result: needs the
                              benchmark role, which is set up by a benchmarking configuration
                              (distributed-fpga-framework, 4.2.2)
``echo``      7               ``size`` bytes, and the same back
``discard``   9               ``size`` bytes; complete when TCP has the acknowledgement of all
``page``      8080            connect, `GET`, and the page until the board ends the connection
============  ==============  ==================================================================

A :class:`Reader` takes what a connection receives and says which transfers that completes.
"""

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ...client.errors import ProtocolError, describe_status
from ...client.smp import HEADER, MAX_PAYLOAD, PORT, Header, MessageType
from ...models.status import Status

__all__ = [
    "LARGEST",
    "PORTS",
    "PageReader",
    "RawReader",
    "Reader",
    "SmpReader",
    "Traffic",
    "operand_header",
    "status_name",
]


class Traffic(StrEnum):
    ROLE = "role"
    GENERATE = "generate"
    ECHO = "echo"
    DISCARD = "discard"
    PAGE = "page"

    @property
    def smp(self) -> bool:
        return self in (Traffic.ROLE, Traffic.GENERATE)


#: TCP ports of a board's services (docs/plan.md).
PORTS = {
    Traffic.ROLE: PORT,
    Traffic.GENERATE: PORT,
    Traffic.ECHO: 7,
    Traffic.DISCARD: 9,
    Traffic.PAGE: 8080,
}
#: Bytes of the largest transfer.
LARGEST = MAX_PAYLOAD
_HEAD = struct.Struct("<BB2xII")
_ID_BYTES = 4
#: Bytes of a message that are looked at: header, and ID or response.
_LOOKED_AT = 16


def operand_header(number: int, size: int, role: int | None) -> bytes:
    """Header and ID of a data message with ``size`` bytes of operand; ``role``: its number."""
    named = 0 if role is None else role + 1
    return _HEAD.pack(MessageType.DATA, named, size + _ID_BYTES, number)


def status_name(code: int) -> str:
    """``TOO_LARGE``, or of an unknown status its description."""
    try:
        return Status(code).name
    except ValueError:
        return describe_status(code)


@dataclass(frozen=True)
class Answer:
    """A transfer is complete. ``number``: its ID, 0 where answers have none; ``size``: bytes of
    result; ``status``: why there is none, or OK."""

    number: int
    size: int
    status: int = Status.OK


class Reader(Protocol):
    """Takes received bytes in any pieces."""

    def feed(self, data: memoryview) -> Iterator[Answer]:
        """Yield what ``data`` completes. Raises :class:`ProtocolError`."""
        ...

    def ended(self) -> Iterator[Answer]:
        """The peer has ended the connection."""
        ...


class SmpReader:
    """SMP answers; of a payload only the first bytes are kept."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._head = bytearray()
        self._wanted = HEADER.size
        self._left = 0

    def feed(self, data: memoryview) -> Iterator[Answer]:
        place = 0
        while place < len(data):
            if len(self._head) < self._wanted:
                piece = data[place : place + self._wanted - len(self._head)]
                self._head += piece
                place += len(piece)
                if len(self._head) == HEADER.size == self._wanted:
                    self._begin()
            else:
                taken = min(self._left, len(data) - place)
                self._left -= taken
                place += taken
            if len(self._head) == self._wanted and not self._left:
                yield self._answer()

    def _begin(self) -> None:
        header = Header.of(self._head)
        kind, size = header.kind, header.size
        if kind not in (MessageType.DATA, MessageType.RESPONSE) or size > MAX_PAYLOAD + _ID_BYTES:
            raise ProtocolError(
                f"{self._name} sent a message of type {kind} with {size} bytes; is it a Trebuchet "
                "board or job server, and this a port with SMP?"
            )
        if kind == MessageType.DATA and size < _ID_BYTES or not size:
            raise ProtocolError(f"{self._name} answered with a message that has no ID")
        self._wanted = min(_LOOKED_AT, HEADER.size + size)
        self._left = HEADER.size + size - self._wanted

    def _answer(self) -> Answer:
        header = Header.of(self._head)
        kind, size = header.kind, header.size
        body = bytes(self._head[HEADER.size :])
        self._head.clear()
        self._wanted = HEADER.size
        if kind == MessageType.DATA:
            return Answer(int.from_bytes(body[:_ID_BYTES], "little"), size - _ID_BYTES)
        return Answer(int.from_bytes(body[4:8], "little"), 0, body[0])

    def ended(self) -> Iterator[Answer]:
        return iter(())


class RawReader:
    """An echo: transfers come back in order, each as long as it went."""

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()
        self._got = 0

    def expect(self, size: int) -> None:
        self._sizes.append(size)

    def feed(self, data: memoryview) -> Iterator[Answer]:
        self._got += len(data)
        while self._sizes and self._got >= self._sizes[0]:
            size = self._sizes.popleft()
            self._got -= size
            yield Answer(0, size)
        if self._got and not self._sizes:
            raise ProtocolError("the echo service sent more than it was sent")

    def ended(self) -> Iterator[Answer]:
        return iter(())


class PageReader:
    """A page: complete when the peer ends the connection."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._size = 0
        self._start = bytearray()

    def feed(self, data: memoryview) -> Iterator[Answer]:
        if len(self._start) < _LOOKED_AT:
            self._start += data[: _LOOKED_AT - len(self._start)]
        self._size += len(data)
        return iter(())

    def ended(self) -> Iterator[Answer]:
        if not self._start.startswith(b"HTTP/1.") or b" 200" not in self._start:
            raise ProtocolError(f"{self._name} sent no page; is it a Trebuchet board?")
        yield Answer(0, self._size)
        self._size = 0
        self._start.clear()
