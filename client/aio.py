"""``AsyncBoard`` and ``AsyncPool``: calls to await; the transports of :mod:`.link`."""

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Sequence
from typing import Any, Self, TypeVar, Unpack

from .blocking import unacknowledged
from .dispatch import Dispatcher, Member, Task
from .jobs import Call
from .link import Link, LinkState
from .management import Management
from .owner import Leased, Mapping, Options, Owner, check_addresses, make_member
from .probe import ProbeAccess
from .registers import RegisterAccess

__all__ = ["AsyncBoard", "AsyncPool"]

T = TypeVar("T")
#: Bytes that a transport keeps at most before it is given no more.
_BUFFERED = 1 << 16


class _Wire(asyncio.Protocol):
    """The transport of a link, from the beginning of its connect on."""

    def __init__(self, link: Link, wires: "_Wires") -> None:
        self.link, self.wires = link, wires
        self.transport: asyncio.Transport | None = None
        self.connecting: asyncio.Task[None] | None = None
        self.paused = False

    @property
    def current(self) -> bool:
        return self.wires.wires.get(self.link) is self

    async def connect(self) -> None:
        link, loop = self.link, asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: self, link.host, link.port)
        except (OSError, ValueError) as error:  # a name with an empty part is a ValueError
            if self.current and link.state == LinkState.OPENING:
                link.failed(f"cannot connect to {link.name}: {error}")
                self.wires.kick()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self.current or self.link.state != LinkState.OPENING:
            transport.abort()
            return
        self.transport = transport
        transport.set_write_buffer_limits(high=_BUFFERED)
        connected = transport.get_extra_info("socket")
        self.link.opened(lambda: transport.get_write_buffer_size() + unacknowledged(connected))
        self.wires.kick()

    def data_received(self, data: bytes) -> None:
        if self.current and self.link.state == LinkState.OPEN:
            self.link.received(data)
            self.wires.kick()

    def eof_received(self) -> None:
        if self.current and self.link.state == LinkState.OPEN:
            self.link.ended()
            self.wires.kick()

    def connection_lost(self, error: Exception | None) -> None:
        if self.current and self.link.state == LinkState.OPEN:
            if isinstance(error, OSError):
                self._drain()
            if self.link.state == LinkState.OPEN and isinstance(error, OSError):
                self.link.broke(error)
            elif self.link.state == LinkState.OPEN:
                self.link.ended()
            self.wires.kick()

    def _drain(self) -> None:
        """Receive what the peer said before it hung up, which the transport has not done."""
        assert self.transport is not None
        with (
            self.transport.get_extra_info("socket").dup() as connected,
            contextlib.suppress(OSError),
        ):
            connected.setblocking(False)
            while self.link.state == LinkState.OPEN and (data := connected.recv(_BUFFERED)):
                self.link.received(data)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.wires.kick()

    def write(self) -> None:
        """Give the transport what is to be sent, as far as it takes it."""
        while self.transport and self.link.session.outgoing and not self.paused:
            # The rest of a long piece would be copied into the transport's buffer.
            piece = self.link.session.outgoing[0][:_BUFFERED]
            self.transport.write(piece)
            self.link.sent(len(piece))

    def close(self) -> None:
        if self.connecting is not None:
            self.connecting.cancel()
        if self.transport is not None:
            self.transport.abort()


class _Wires:
    """The transports of a dispatcher's links."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.wires: dict[Link, _Wire] = {}
        self._timer: asyncio.TimerHandle | None = None

    def kick(self) -> None:
        """Do what follows from what happened."""
        dispatcher, loop = self.dispatcher, asyncio.get_running_loop()
        dispatcher.poll()
        self._drop_closed()
        for link in dispatcher.openable():
            self.wires[link] = wire = _Wire(link, self)
            link.opening()
            wire.connecting = loop.create_task(wire.connect())
        for wire in list(self.wires.values()):
            if wire.link.state == LinkState.OPEN:
                wire.write()
        if self._timer is not None:
            self._timer.cancel()
        pause = dispatcher.pause()
        self._timer = None if pause is None else loop.call_later(pause, self.kick)

    def _drop_closed(self) -> None:
        for link in [link for link in self.wires if link.state == LinkState.CLOSED]:
            self.wires.pop(link).close()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for link, wire in self.wires.items():
            link.close()
            wire.close()
        self.wires.clear()


class Waiting(Owner):
    """An asynchronous context manager whose calls are awaited. It belongs to one event loop."""

    def __init__(self, members: list[Member], retries: int) -> None:
        super().__init__(members, retries)
        self._wires = _Wires(self._dispatcher)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; a further call opens them again."""
        self._wires.close()
        await asyncio.sleep(0)  # transports close in the next round of the loop

    async def run(self, call: Call[T]) -> T:
        """Run a call (:mod:`.jobs`) and return its result; cancelled, it gives its jobs up."""
        if self._wires.wires:
            # The event loop looks at its sockets: one that was closed meanwhile is not written to.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        task = self._dispatcher.start(call)
        try:
            await self._until_done([task])
        finally:
            self._dispatcher.cancel(task)
        result: T = task.outcome()
        return result

    async def _until_done(self, tasks: list[Task]) -> None:
        """Wait for the first of some calls."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(task: Task) -> None:
            if not future.done():
                future.set_result(None)

        for task in tasks:
            task.on_done = done
        self._wires.kick()
        if not any(task.done for task in tasks):
            await future

    async def map(
        self,
        operation: Any,
        *items: Iterable[Any] | AsyncIterable[Any],
        ordered: bool = True,
    ) -> AsyncIterator[Any]:
        """Results of an operation for each item, as :meth:`.blocking.Blocking.map`.

        Items may be asynchronous iterators, too.
        """
        mapping = Mapping(self._dispatcher, operation.plan, ordered)
        source = _zipped(items)
        coming: asyncio.Task[Any] | None = None
        more = True
        try:
            while more or mapping.tasks:
                if more and coming is None and mapping.room:
                    coming = asyncio.ensure_future(anext(source))
                if coming is not None and not coming.done():
                    await self._either(coming, mapping.awaited())
                if coming is not None and coming.done():
                    finished, coming = coming, None
                    try:
                        mapping.start(*finished.result())
                        self._wires.kick()
                    except StopAsyncIteration:
                        more = False
                elif coming is None and mapping.tasks:
                    await self._until_done(mapping.awaited())
                while (task := mapping.ready()) is not None:
                    yield task.outcome()
        finally:
            if coming is not None:
                coming.cancel()
            mapping.close()

    async def _either(self, coming: "asyncio.Task[Any]", tasks: list[Task]) -> None:
        """Wait for the next item or for a call."""
        waits: set[asyncio.Task[Any]] = {coming}
        if tasks:
            waits.add(asyncio.ensure_future(self._until_done(tasks)))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in waits - {coming}:
            each.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await each


async def _zipped(items: Sequence[Any]) -> AsyncIterator[tuple[Any, ...]]:
    """As :func:`zip`, of iterators of both kinds."""
    sources = [each if hasattr(each, "__anext__") else aiter(_asynchronous(each)) for each in items]
    while True:
        try:
            yield tuple([await anext(source) for source in sources])
        except StopAsyncIteration:
            return


async def _asynchronous(items: Any) -> AsyncIterator[Any]:
    if hasattr(items, "__aiter__"):
        async for item in items:
            yield item
        return
    for item in items:
        yield item


class AsyncBoard(Waiting, Management, Leased, RegisterAccess, ProbeAccess):
    """:class:`~.blocking.Board` for asyncio.

    >>> async with AsyncBoard("192.0.2.2") as board:
    ...     await board.roles
    ...     first, second = await asyncio.gather(board.matmul(a, b), board.matmul(c, d))
    """

    def __init__(self, address: str, **options: Unpack[Options]) -> None:
        self._member = make_member(address, **options)
        super().__init__([self._member], options.get("retries", 2))

    @property
    def roles(self) -> Awaitable[list[str]]:
        """Names of the board's roles by their numbers, to be awaited."""
        return self.fetch_roles()


class AsyncPool(Waiting):
    """:class:`~.blocking.Pool` for asyncio."""

    def __init__(self, addresses: Sequence[str], **options: Unpack[Options]) -> None:
        members = [make_member(address, **options) for address in check_addresses(addresses)]
        super().__init__(members, options.get("retries", 2))
