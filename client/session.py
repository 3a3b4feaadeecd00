"""The conversation of one connection, without I/O: jobs become bytes, bytes become outcomes.

:class:`SmpSession` and :class:`StatusSession` have the same methods. A link (:mod:`.link`) makes
one for each connection, sends what is in ``outgoing``, and says what came.

Rules of an SMP conversation:

1. Data and stream messages have IDs from 1 on, which a link never gives twice in 2**32 messages.
   0 is none of them: with it a board refuses a message by its header.
2. An answer to an ID that was given and has its answer is a duplicate, or the answer to a job that
   was given up: it is counted and dropped. An ID that was never given ends the conversation.
3. A refusal without an ID in flight is that of the oldest message: a board answers in order.
4. Commands and configurations have no ID; their answers are those of the oldest message.
5. After ``BAD_TYPE``, ``TOO_LARGE``, ``TIMED_OUT``, ``TRUNCATED`` and ``STALE`` by the header the
   peer may read nothing more: no job is taken, and the link connects anew.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ..models.epoch import NO_EPOCH
from ..models.status import Status
from .errors import BoardError, ConnectionLost, ProtocolError, refusal
from .jobs import Batch
from .smp import (
    MAX_PAYLOAD,
    Decoder,
    Message,
    MessageType,
    data_message,
    parse_data,
    parse_response,
)
from .status import MAX_BYTES, is_whole, parse_answer, request_for

__all__ = ["Lease", "Numbers", "Outcome", "Session", "SmpSession", "StatusSession", "Ticket"]

#: Statuses after which a board reads no more of a connection, if they name no job.
_FINAL = (Status.BAD_TYPE, Status.TOO_LARGE, Status.TIMED_OUT, Status.TRUNCATED, Status.STALE)
#: Messages up to this size are sent with their header in one piece.
_JOINED = 1 << 16
_WITH_ID = (MessageType.DATA, MessageType.STREAM)


class Ticket(Protocol):
    """What a session must know of a job that it sends."""

    @property
    def batch(self) -> Batch: ...
    @property
    def operand(self) -> bytes: ...


#: The result of a job, or why there is none.
Outcome: TypeAlias = tuple[Ticket, bytes | BoardError]


class Numbers:
    """IDs of a link's messages: 1, 2, … 2**32 - 1, 1, …"""

    def __init__(self) -> None:
        self.last = self.count = 0

    def take(self) -> int:
        self.last, self.count = self.last % 0xFFFFFFFF + 1, self.count + 1
        return self.last

    def given(self, number: int) -> bool:
        """Whether ``number`` was given, among the latest 2**31."""
        return number > 0 and (self.last - number) % 0xFFFFFFFF < min(self.count, 1 << 31)


@dataclass
class Lease:
    """The epoch of a board's lease, which its messages carry; 0: there is none.

    ``stale``: the board's refusal of a job with this epoch.
    """

    epoch: int = NO_EPOCH
    stale: BoardError | None = None


@dataclass(frozen=True)
class _Sent:
    """A message that waits for its answer; ``end``: bytes of the conversation up to its end."""

    ticket: Ticket
    end: int


class Session:
    """What both kinds of conversation have.

    Attributes
    ----------
    outgoing : deque of memoryview
        What is to be sent next; whoever sends some of it calls :meth:`sent`.
    over : bool
        It takes no job any more.
    duplicates : int
        Answers that were dropped.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.outgoing: deque[memoryview] = deque()
        self.over = False
        self.duplicates = 0
        self._queued = self._sent = 0
        self._waiting: dict[int, _Sent] = {}

    @property
    def in_flight(self) -> int:
        """Messages without an answer."""
        return len(self._waiting)

    @property
    def inside(self) -> bool:
        """Whether a part of an answer has come."""
        raise NotImplementedError

    def unsent(self) -> int:
        """Bytes that are to be sent."""
        return self._queued - self._sent

    def sent(self, count: int) -> None:
        """``count`` bytes of ``outgoing`` were sent."""
        self._sent += count
        while count:
            first = self.outgoing[0]
            if count < len(first):
                self.outgoing[0] = first[count:]
                return
            count -= len(self.outgoing.popleft())

    def lost(self) -> list[tuple[Ticket, bool]]:
        """The connection is lost: jobs without an answer, and whether all of each was sent."""
        self.over = True
        found = [(sent.ticket, sent.end <= self._sent) for sent in self._waiting.values()]
        self._waiting.clear()
        return found

    def oldest(self) -> Ticket | None:
        """The job that waits for the longest time."""
        return next((sent.ticket for sent in self._waiting.values()), None)

    def abandon(self, ticket: Ticket) -> None:
        """Drop the answer to a job when it comes."""
        for number, sent in self._waiting.items():
            if sent.ticket is ticket:
                del self._waiting[number]
                return

    def _queue(self, number: int, ticket: Ticket, *parts: bytes) -> None:
        self.outgoing.extend(memoryview(part) for part in parts if part)
        self._queued += sum(map(len, parts))
        self._waiting[number] = _Sent(ticket, self._queued)

    def submit(self, ticket: Ticket, role: int | None) -> None:
        """Queue the message of a job; ``role``: number of the role on the board."""
        raise NotImplementedError

    def received(self, data: bytes) -> Iterator[Outcome]:
        """Take bytes of the peer; yield what they complete. Raises :class:`ProtocolError`."""
        raise NotImplementedError

    def ended(self) -> Iterator[Outcome]:
        """The peer says no more. Raises :class:`BoardError` if jobs have no answer."""
        raise NotImplementedError


class SmpSession(Session):
    """A conversation of SMP messages; ``numbers`` are the link's, ``lease`` is the board's."""

    def __init__(self, name: str, numbers: Numbers, lease: Lease | None = None) -> None:
        super().__init__(name)
        self.numbers, self.lease = numbers, lease or Lease()
        self._decoder = Decoder(8)
        self._spoke = False

    @property
    def inside(self) -> bool:
        return bool(self._decoder.buffer)

    def submit(self, ticket: Ticket, role: int | None) -> None:
        kind, number = ticket.batch.kind, self.numbers.take()
        largest = max(self._decoder.max_payload, 4 + ticket.batch.largest)
        self._decoder.max_payload = min(largest, MAX_PAYLOAD)
        if kind in _WITH_ID:
            # The operand stays where it is: it may be large.
            head = data_message(number, b"", kind, role, self.lease.epoch).pack()
            size = len(ticket.operand) + 4
            head = head[:4] + size.to_bytes(4, "little") + head[8:]
        else:
            head = Message(kind, b"", role, self.lease.epoch).pack()[:4]
            head += len(ticket.operand).to_bytes(4, "little")
        if len(ticket.operand) <= _JOINED:
            self._queue(number, ticket, head + ticket.operand)
        else:
            self._queue(number, ticket, head, ticket.operand)

    def received(self, data: bytes) -> Iterator[Outcome]:
        try:
            for message in self._decoder.feed(data):
                self._spoke = True
                yield from self._answer(message)
            self._decoder.feed(b"")  # raises if what is next is no message
        except ProtocolError as error:
            hint = "" if self._spoke else "; is it a Trebuchet board, and this a port with SMP?"
            raise ProtocolError(f"{self.name}: {error}{hint}") from error

    def ended(self) -> Iterator[Outcome]:
        self.over = True
        if self._decoder.buffer:
            raise ProtocolError(
                f"{self.name} closed the connection inside a message, after "
                f"{len(self._decoder.buffer)} bytes of it"
            )
        if self._waiting:
            count = len(self._waiting)
            plural = "s" if count > 1 else ""
            error = ConnectionLost(
                f"{self.name} closed the connection with {count} message{plural} unanswered"
            )
            error.transient = True
            raise error
        return iter(())

    def _answer(self, message: Message) -> Iterator[Outcome]:
        if message.kind == MessageType.DATA:
            number, result = parse_data(message.payload)
            if (sent := self._waiting.get(number)) is not None:
                if sent.ticket.batch.kind not in _WITH_ID:
                    raise ProtocolError(f"it answered with a {message.kind.name} message")
                del self._waiting[number]
                yield sent.ticket, result
            else:
                self._drop(number)
        elif message.kind == MessageType.RESPONSE:
            yield from self._refused(message)
        elif message.kind == MessageType.REPLY:
            number, sent = self._first()
            if sent.ticket.batch.kind != MessageType.COMMAND:
                raise ProtocolError(f"it sent a {message.kind.name} message")
            del self._waiting[number]
            yield sent.ticket, message.payload
        else:
            raise ProtocolError(f"it sent a {message.kind.name} message")

    def _first(self) -> tuple[int, _Sent]:
        for found in self._waiting.items():
            return found
        raise ProtocolError("it answered, and no message was under way")

    def _drop(self, number: int) -> None:
        if not self.numbers.given(number):
            raise ProtocolError(f"it answered message {number}, which is not under way")
        self.duplicates += 1

    def _refused(self, message: Message) -> Iterator[Outcome]:
        response = parse_response(message.payload)
        number = response.id or 0
        if number not in self._waiting:
            oldest = self.oldest()
            configuring = oldest is not None and oldest.batch.kind == MessageType.CONFIGURATION
            if number and not configuring:
                self._drop(number)
                return
            self.over |= response.status in _FINAL
            number, _ = self._first()
        sent = self._waiting.pop(number)
        kind = sent.ticket.batch.kind
        if response.status == Status.OK and kind == MessageType.CONFIGURATION:
            yield sent.ticket, b""
            return
        what = f"message {number}" if kind in _WITH_ID else f"the {kind.name.lower()} message"
        yield sent.ticket, refusal(response.status, f"{self.name} refused {what}")


class StatusSession(Session):
    """One `GET /status`; the answer ends by its length, or when the peer closes."""

    def __init__(self, name: str, host: str) -> None:
        super().__init__(name)
        self.host = host
        self._body = bytearray()

    @property
    def inside(self) -> bool:
        return bool(self._body)

    def submit(self, ticket: Ticket, role: int | None) -> None:
        self.over = True
        self._queue(1, ticket, request_for(self.host))

    def received(self, data: bytes) -> Iterator[Outcome]:
        self._body += data
        if len(self._body) > 2 * MAX_BYTES or is_whole(self._body):
            yield from self.ended()

    def ended(self) -> Iterator[Outcome]:
        self.over = True
        waiting = [sent.ticket for sent in self._waiting.values()]
        self._waiting.clear()
        for ticket in waiting:
            try:
                yield ticket, parse_answer(self.host, bytes(self._body))
            except BoardError as error:
                yield ticket, error
