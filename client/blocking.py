"""``Board`` and ``Pool``: calls that block; the sockets of :mod:`.link`."""

import contextlib
import errno
import itertools
import os
import selectors
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar, Unpack

from .dispatch import Dispatcher, Member
from .jobs import Call, Service
from .link import Link, LinkState
from .management import Management
from .owner import Leased, Mapping, Options, Owner, check_addresses, make_member
from .probe import ProbeAccess
from .registers import RegisterAccess, RegisterBlocks

__all__ = ["Board", "Pool", "unacknowledged"]

T = TypeVar("T")
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
#: Bytes that are received at a time.
_CHUNK = 1 << 18


def unacknowledged(connected: socket.socket) -> int:
    """Bytes in the kernel that the peer has not taken; 0 where a kernel does not tell."""
    size = bytearray(4)
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        import fcntl  # noqa: PLC0415 - not every system has it
        import termios  # noqa: PLC0415 - as above

        fcntl.ioctl(connected, termios.TIOCOUTQ, size)
    return int.from_bytes(size, sys.byteorder)


class _Wire:
    """A socket of a link: connecting to one address after the other, then connected."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.socket: socket.socket | None = None
        self.addresses: Iterator[Any] = iter(())
        self.fault: OSError = OSError("the name has no address")

    def connect(self) -> None:
        """Begin to connect, or say that it failed."""
        link = self.link
        link.opening()
        try:
            found = socket.getaddrinfo(link.host, link.port, type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:  # a name with an empty part is a ValueError
            link.failed(f"cannot connect to {link.name}: {error}")
            return
        self.addresses = iter(found)
        self._next()

    def _next(self) -> None:
        for family, kind, protocol, _, address in self.addresses:
            self.close()
            self.socket = socket.socket(family, kind, protocol)
            self.socket.setblocking(False)
            code = self.socket.connect_ex(address)
            if code in (0, errno.EINPROGRESS):
                return
            self.fault = OSError(code, os.strerror(code))
        self.link.failed(f"cannot connect to {self.link.name}: {self.fault}")

    def adopt(self, connected: socket.socket) -> None:
        """Take a connection that there is already."""
        connected.setblocking(False)
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connected
        self.link.opened(lambda: unacknowledged(connected))

    def writable(self) -> None:
        assert self.socket is not None
        if self.link.state == LinkState.OPENING:
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self.fault = OSError(code, os.strerror(code))
                self._next()
            else:
                self.adopt(self.socket)
            return
        outgoing = self.link.session.outgoing
        try:
            while outgoing:
                self.link.sent(self.socket.send(outgoing[0]))
        except BlockingIOError:
            pass
        except OSError as error:
            # A peer may refuse a message by its header and hang up: what it said comes first.
            self.readable()
            if self.link.state == LinkState.OPEN:
                self.link.broke(error)

    def readable(self) -> None:
        assert self.socket is not None
        while self.link.state == LinkState.OPEN:
            try:
                data = self.socket.recv(_CHUNK)
            except BlockingIOError:
                return
            except OSError as error:
                self.link.broke(error)
                return
            if data:
                self.link.received(data)
            else:
                self.link.ended()
            if len(data) < _CHUNK:
                return

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None


class _Wires:
    """The sockets of a dispatcher's links."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.wires: dict[Link, _Wire] = {}

    def step(self, block: bool = True) -> None:
        """Wait until something happens, and do what follows from it; ``block`` False: only look.

        The dispatcher was polled before, and has a call that is not done.
        """
        dispatcher = self.dispatcher
        self._drop_closed()  # a poll closes links, of which some are opened again at once
        opening = dispatcher.openable()
        for link in opening:
            self.wires[link] = wire = _Wire(link)
            wire.connect()
        # A name that does not resolve, for one: what waited for it may be done.
        block = block and all(link.state != LinkState.CLOSED for link in opening)
        self._drop_closed()
        pause = dispatcher.pause() if block else 0.0
        assert pause is not None or self.wires, "a call waits for nothing"
        with selectors.DefaultSelector() as selector:
            for wire in self.wires.values():
                if wire.socket is not None:
                    selector.register(wire.socket, _events(wire.link), wire)
            ready = selector.select(pause)
        for key, events in ready:
            if events & _READ:  # first: the peer may have hung up, so that nothing must be sent
                key.data.readable()
            if events & _WRITE and key.data.link.state != LinkState.CLOSED:
                key.data.writable()
        self._drop_closed()
        dispatcher.poll()

    def _drop_closed(self) -> None:
        for link in [link for link in self.wires if link.state == LinkState.CLOSED]:
            self.wires.pop(link).close()

    def close(self) -> None:
        for link, wire in self.wires.items():
            link.close()
            wire.close()
        self.wires.clear()


def _events(link: Link) -> int:
    if link.state == LinkState.OPENING:
        return _WRITE
    return _READ | _WRITE if link.session.outgoing else _READ


class Blocking(Owner):
    """A context manager whose calls block."""

    def __init__(self, members: list[Member], retries: int) -> None:
        super().__init__(members, retries)
        self._wires = _Wires(self._dispatcher)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a further call opens them again."""
        self._wires.close()

    def run(self, call: Call[T]) -> T:
        """Run a call (:mod:`.jobs`) and return its result."""
        task = self._dispatcher.start(call)
        try:
            self._dispatcher.poll()
            while not task.done:
                self._wires.step()
        finally:
            self._dispatcher.cancel(task)
        result: T = task.outcome()
        return result

    def map(self, operation: Any, *items: Iterable[Any], ordered: bool = True) -> Iterator[Any]:
        """Results of an operation for each item, as :func:`map` takes them.

        Several are under way at a time; the items are read only so far. ``ordered``: in their
        order, else as they come. The first that fails raises its error, and ends the others.
        """
        mapping = Mapping(self._dispatcher, operation.plan, ordered)
        waiting = zip(*items, strict=False)
        try:
            more = True
            while more or mapping.tasks:
                if more and mapping.room:
                    for arguments in itertools.islice(waiting, 1):
                        mapping.start(*arguments)
                        self._dispatcher.poll()
                        self._wires.step(block=False)
                        break
                    else:
                        more = False
                elif (task := mapping.ready()) is not None:
                    yield task.outcome()
                    continue
                else:
                    self._wires.step()
                if (task := mapping.ready()) is not None:
                    yield task.outcome()
        finally:
            mapping.close()


class Board(Blocking, Management, Leased, RegisterAccess, ProbeAccess):
    """A board; a context manager.

    >>> with Board("192.0.2.2") as board:
    ...     board.roles
    ...     board.matmul(a, b)
    ...     board.role("verilog_example").call(b"123456789")

    Nothing is connected before it is needed, and what is lost is connected anew. Use it in one
    thread at a time.

    Parameters
    ----------
    address : str
        ``HOST`` or ``HOST:PORT``, the port being that of ``port``.
    port : int
        TCP port of the roles.
    management : int
        TCP port of the board's processor: status and commands.
    roles : sequence of str or None
        Names of the roles by their numbers, of a peer without a status; a single one is the TCP
        port's. None: the status is asked when a role is first used by its name.
    timeout : float
        Seconds without progress after which a connection is given up, of simulated time where a
        simulator started this process: neither came a whole answer, nor was anything taken of what
        is sent.
    in_flight : int
        Messages under way at a time. A board works on one of a connection while the next one comes.
    retries : int
        How often a job that may be repeated is repeated (:mod:`.dispatch`).
    epoch : int or None
        Epoch of the lease of the board (docs/smp.md), which messages to it carry; also
        ``HOST:PORT@EPOCH``. None: there is none.
    """

    def __init__(self, address: str, **options: Unpack[Options]) -> None:
        self._member = make_member(address, **options)
        super().__init__([self._member], options.get("retries", 2))

    @classmethod
    def adopt(cls, connected: socket.socket, name: str, timeout: float = 30.0) -> Self:
        """A board that has connected to us, for its commands (active mode, firmware-manage.md).

        ``connected`` is the connection, ``name`` what messages call the board. It is not renewed.
        """
        made = cls(name, timeout=timeout)
        link = made._member.links[Service.MANAGEMENT]
        link.renewable, link.name = False, name
        made._wires.wires[link] = wire = _Wire(link)
        wire.adopt(connected)
        return made

    @property
    def roles(self) -> list[str]:
        """Names of the board's roles by their numbers; the status is asked once."""
        return self.fetch_roles()

    @property
    def registers(self) -> RegisterBlocks:
        """The board's registers by name: ``board.registers.tcp.rto_min`` (:mod:`.registers`)."""
        return RegisterBlocks(self)


class Pool(Blocking):
    """Boards that share work; a context manager.

    >>> with Pool(["192.0.2.2", "192.0.2.3"]) as pool:
    ...     for product in pool.map(pool.matmul.multiply, lefts, rights):
    ...         ...

    A job goes to the board with the fewest in flight. If a board is lost, its pure jobs are done by
    others; jobs that are not pure raise :class:`~.errors.ConnectionLost`. It is tried again while
    jobs wait. A board that is listed twice has two connections, so that two instances of a role
    work for this client. Parameters are those of :class:`Board`, for each board. A board that
    answers ``STALE`` has no jobs any more; others have them, if there are some.
    """

    def __init__(self, addresses: Sequence[str], **options: Unpack[Options]) -> None:
        members = [make_member(address, **options) for address in check_addresses(addresses)]
        super().__init__(members, options.get("retries", 2))
