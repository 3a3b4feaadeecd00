"""One connection of the load generator: queues transfers, sends, receives, times them.

Sockets do not block; :mod:`.generator` says when to send and to receive. All transfers send parts
of one buffer, and received payloads are not kept, so that a transfer of 64 MiB costs little more
processor time than the kernel's copy.
"""

import contextlib
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ...client.blocking import unacknowledged
from ...client.errors import BoardError, ConnectionLost, ProtocolError, refusal
from ...client.smp import Configuration, Decoder, Message, MessageType, parse_response
from ...models.progress import current_simulation
from ...models.status import Status
from .traffic import (
    Answer,
    PageReader,
    RawReader,
    Reader,
    SmpReader,
    Traffic,
    operand_header,
    status_name,
)

__all__ = ["Clock", "Connection", "Done", "Place", "Transfer"]

#: Bytes that are received at a time.
_CHUNK = 1 << 18
#: Pieces that one system call sends.
_PIECES = 64
#: Offset of the field in Linux' ``struct tcp_info``; microseconds.
_MIN_RTT = 148
_GET = b"GET / HTTP/1.1\r\nHost: trebuchet\r\nConnection: close\r\n\r\n"


class Clock:
    """Seconds of wall time, and the clock cycles of the simulator that started this process."""

    def __init__(self) -> None:
        self._simulation = current_simulation()
        self.simulated = self._simulation is not None

    @staticmethod
    def now() -> float:
        return time.perf_counter()

    def cycles(self) -> int:
        return self._simulation.cycles if self._simulation is not None else 0


@dataclass(frozen=True)
class Place:
    """Where a service is; ``role``: number of the role that messages name, None: the port's."""

    host: str
    port: int
    role: int | None = None

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Transfer:
    """What each transfer is: traffic, bytes of its operand, and a buffer of at least as many."""

    traffic: Traffic
    size: int
    payload: memoryview
    #: Sent on each connection before its first transfer.
    configuration: Configuration | None = None


@dataclass(frozen=True)
class Done:
    """A transfer has ended: since when and until when, and its simulated cycles.

    ``start`` is when it was to begin, the cycles are those since it began.
    """

    start: float
    end: float
    cycles: int
    sent: int
    received: int
    status: int = Status.OK


@dataclass(frozen=True)
class _Begun:
    start: float
    cycles: int
    #: Bytes of the connection up to the transfer's end.
    last: int


class Connection:
    """A connection to ``place``; opened by the constructor, but for pages."""

    def __init__(self, place: Place, transfer: Transfer, clock: Clock, timeout: float) -> None:
        self.place, self._transfer, self._clock = place, transfer, clock
        self._timeout = timeout
        self.out: deque[memoryview] = deque()
        #: Transfers under way, the oldest first, by their numbers.
        self.waiting: dict[int, _Begun] = {}
        self._number = self._queued = self._sent = 0
        self._buffer = memoryview(bytearray(_CHUNK))
        self._reader = self._make_reader()
        self._failure: OSError | None = None
        self.socket: socket.socket | None = None
        if transfer.traffic != Traffic.PAGE:
            self._open()

    def _make_reader(self) -> Reader:
        traffic = self._transfer.traffic
        if traffic.smp:
            return SmpReader(self.place.name)
        return PageReader(self.place.name) if traffic == Traffic.PAGE else RawReader()

    def _lost(self, error: OSError) -> ConnectionLost:
        return ConnectionLost(f"the connection to {self.place.name} broke: {error}")

    def _open(self) -> None:
        address = (self.place.host, self.place.port)
        try:
            opened = socket.create_connection(address, self._timeout)
        except OSError as error:
            raise ConnectionLost(
                f"cannot connect to {self.place.name} for {self._transfer.traffic.value} traffic: "
                f"{error.strerror or error}"
            ) from error
        self.socket = opened
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self._transfer.configuration is not None:
                self._configure(opened, self._transfer.configuration)
        except OSError as error:
            raise self._lost(error) from error
        opened.setblocking(False)

    def _configure(self, opened: socket.socket, configuration: Configuration) -> None:
        """Set up the benchmark role: the peer's answer must be OK."""
        opened.sendall(configuration.message().pack())
        decoder = Decoder(16)
        messages: list[Message] = []
        while not messages:
            data = opened.recv(64)
            if not data:
                raise ConnectionLost(f"{self.place.name} ended the connection when configured")
            messages = decoder.feed(data)
        if messages[0].kind != MessageType.RESPONSE:
            raise ProtocolError(f"{self.place.name} did not answer its configuration")
        status = parse_response(messages[0].payload).status
        if status != Status.OK:
            raise refusal(status, f"{self.place.name} refused the benchmarking configuration")

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    # --- transfers -----------------------------------------------------------------------------

    def start(self, at: float | None = None) -> None:
        """Queue one transfer, which was to begin at ``at``; None: now."""
        transfer = self._transfer
        if transfer.traffic == Traffic.PAGE:
            self._connect_for_page()
        self._number = self._number % 0xFFFFFFFF + 1
        parts: list[memoryview] = []
        if transfer.traffic.smp:
            head = operand_header(self._number, transfer.size, self.place.role)
            parts.append(memoryview(head))
        if transfer.traffic == Traffic.PAGE:
            parts.append(memoryview(_GET))
        elif transfer.size:
            parts.append(transfer.payload[: transfer.size])
        if isinstance(self._reader, RawReader):
            self._reader.expect(transfer.size)
        self.out.extend(parts)
        self._queued += sum(map(len, parts))
        begin = self._clock.now() if at is None else at
        self.waiting[self._number] = _Begun(begin, self._clock.cycles(), self._queued)

    def _connect_for_page(self) -> None:
        self.close()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self.socket.connect((self.place.host, self.place.port))

    def send(self) -> None:
        """Send what the kernel takes."""
        assert self.socket is not None
        try:
            count = self.socket.sendmsg([self.out[i] for i in range(min(_PIECES, len(self.out)))])
        except BlockingIOError:
            return
        except OSError as error:
            # What the peer said before it closed is still to be received.
            self.out.clear()
            self._failure = error
            return
        self._sent += count
        while count:
            first = self.out[0]
            if count < len(first):
                self.out[0] = first[count:]
                return
            count -= len(self.out.popleft())

    def receive(self) -> Iterator[Done]:
        """Take what has come; yield the transfers that it ends."""
        assert self.socket is not None
        try:
            count = self.socket.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._lost(error) from error
        answers = self._reader.feed(self._buffer[:count]) if count else self._reader.ended()
        for answer in answers:
            yield self._complete(answer)
        if not count:
            self._end()

    def _end(self) -> None:
        self.close()
        if self._failure is not None:
            raise self._lost(self._failure) from self._failure
        if self.waiting or self.out or self._transfer.traffic != Traffic.PAGE:
            raise ConnectionLost(
                f"{self.place.name} ended the connection with {len(self.waiting)} transfers under "
                "way"
            )

    def _complete(self, answer: Answer) -> Done:
        end, cycles = self._clock.now(), self._clock.cycles()
        number = answer.number or next(iter(self.waiting), 0)
        begun = self.waiting.pop(number, None)
        if begun is None:
            raise ProtocolError(f"{self.place.name} answered transfer {number}, not under way")
        traffic, size = self._transfer.traffic, self._transfer.size
        if traffic == Traffic.ECHO and answer.size != size:
            raise ProtocolError(f"{self.place.name} echoed {answer.size} bytes of {size}")
        sent = 0 if traffic == Traffic.PAGE else size
        spent = cycles - begun.cycles
        return Done(begun.start, end, spent, sent, answer.size, answer.status)

    def acknowledged(self) -> Iterator[Done]:
        """Discarded transfers that the peer has taken since the last call."""
        assert self.socket is not None
        taken = self._sent - unacknowledged(self.socket)
        end, cycles = self._clock.now(), self._clock.cycles()
        for number, begun in list(self.waiting.items()):
            if begun.last > taken:
                return
            del self.waiting[number]
            yield Done(begun.start, end, cycles - begun.cycles, self._transfer.size, 0)

    def wire(self) -> float | None:
        """Seconds of the least round trip that the kernel saw; None where it does not tell."""
        if self.socket is None or not hasattr(socket, "TCP_INFO"):
            return None
        found = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MIN_RTT + 4)
        if len(found) < _MIN_RTT + 4:
            return None
        least = int.from_bytes(found[_MIN_RTT:], sys.byteorder)
        return least * 1e-6 if 0 < least < 0xFFFFFFFF else None

    def check_status(self, done: Done) -> None:
        """Raise the error of a transfer that was refused."""
        if done.status != Status.OK:
            what = f"a transfer of {self._transfer.size} bytes"
            raise refused(self.place.name, what, done.status)


def refused(name: str, what: str, status: int) -> BoardError:
    """The error of a refusal, with what to do where the measurement can say it."""
    if status == Status.STOPPED:
        return BoardError(
            f"{name} answered {status_name(status)}: a job server takes a configuration first; "
            "add --cycles 0, or start it with --configured"
        )
    return refusal(status, f"{name} refused {what}")
